"""Calls of Python for their side effects, as equations: they have no outputs, and programs keep them all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.interpreters.core import Array, NonDifferentiable, Params, nondifferentiable
from func.interpreters.core.parameters import FUNCTION


def _callback_impl(xp: Any, *args: Array, function: Any) -> tuple[Any, ...]:
    function(*args)
    return ()


def _callback_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return callback(*args, **params)


callback: NonDifferentiable = nondifferentiable(
    "callback",
    _callback_impl,
    aval=lambda *avals, function: (),
    parameters={"function": FUNCTION},
    batch=_callback_batch,
    multiple=True,
    cost=0,
    calls_python=True,
)
"""function(*arrays), each time the program runs. Batched arguments arrive whole, with their batch axis."""
