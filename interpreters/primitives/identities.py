"""Identities: with a label that checkpoint policies look for, and without a derivative."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Array, Shaped
from func.interpreters.primitives.kinds import Linear, NonDifferentiable, linear, nondifferentiable


def _identity_transpose(ct: Array, x: Shaped, **params: Any) -> tuple[Array]:
    return (ct,)


named: Linear = linear(
    "named",
    lambda xp, x, *, label: x,
    aval=lambda x, *, label: x,
    transpose=_identity_transpose,
    batch=lambda x, *, label: named(x, label=label),
)
"""The identity, carrying the label that checkpoint policies look for."""

stop_gradient: NonDifferentiable = nondifferentiable(
    "stop_gradient",
    lambda xp, x: x,
    aval=lambda x: x,
    batch=lambda size, batched, args, params: stop_gradient(args[0]),
)
"""The identity without a derivative."""
