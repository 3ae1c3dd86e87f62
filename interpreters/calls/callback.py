"""Calls of Python for their side effects, as equations: they have no outputs, and are kept all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.interpreters.core import Array, NonDifferentiable, Params, nondifferentiable


def _impl(xp: Any, *args: Array, function: Any) -> tuple[Any, ...]:
    function(*args)
    return ()


def _batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return callback(*args, **params)


callback: NonDifferentiable = nondifferentiable(
    "callback", _impl, aval=lambda *avals, function: (), batch=_batch, multiple=True, cost=0, calls_python=True
)
"""function(*arrays), each time that the program runs; of mapped values it gets all lanes."""
