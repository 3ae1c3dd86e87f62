"""Norms and moduli remember what they are roots of: their squares have the derivatives of that, also at zero.

A root has no derivative at zero, and follows a convention; its square has derivatives of every order. The composite is
found where it is written, `norm(x) ** 2`, since no derivative of the root alone tells what the square's is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from func.interpreters.core import Array, Tracer, dtype_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.numpy.argument_checks import scalar_of

Power: TypeAlias = Callable[[Any, Any], Any]
"""power(root, n) for even n. It does not hold the root itself, which holds it."""


def remembering(root: Array, power: Power) -> Array:
    """A root that knows its even powers."""
    if type(root) is Tracer:
        root._square = root._value, root._attached, power
    return root


def root(x: Array) -> Array:
    """The square root of a sum of squares, whose derivative is zero where all of them are."""
    return remembering(scalar_of(ops.root(x)), power_by(lambda: x))


def power_by(square: Callable[[], Array]) -> Power:
    """Even powers of a root, with the derivatives of its square; None where that has another dtype."""

    def power(root: Array, n: Any) -> Array | None:
        squared = square()
        if dtype_of(squared) != dtype_of(root):
            return None
        known: Array = ops.square(root) if n == 2 else ops.power(root, n)
        return revalued(known, squared if n == 2 else ops.power(squared, n // 2))

    return power


def box_of(x: Array) -> Array:
    """A traced value in a box of its own, which users cannot write to."""
    return Tracer(x._interpreter, x._value, x._attached) if type(x) is Tracer else x


def power_of_root(x: Tracer, n: Any) -> Array | None:
    """x to an even power where x remembers what it is."""
    value, attached, power = getattr(x, "_square", _FORGOTTEN)
    return None if power is None or value is not x._value or attached is not x._attached else power(x, n)


_FORGOTTEN = (None, None, None)
