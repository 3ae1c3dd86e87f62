"""Facts about traced values that no rule can know: whether a value is a root, and which elements were selected.

A root has no derivative at zero, and follows a convention; its square has derivatives of every order. The power
`norm(x) ** 2` therefore looks for the root: the derivatives of the root alone do not determine those of the square. The
first write deletes a fact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from func.interpreters.core import Array, Tracer, dtype_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.numpy.argument_checks import scalar_of

Power: TypeAlias = Callable[[Any, Any], Any]
"""power(root, n) for even n, the fact about a root. It does not hold the root itself, which holds it."""


class Known:
    """The process-wide state of facts."""

    ever = False
    """Whether any value ever had a fact: a look at an unset slot costs as much as an operation."""


def remembering(x: Array, fact: Any) -> Array:
    """A value that knows a fact about itself."""
    if type(x) is Tracer:
        Known.ever = True
        x._fact = x._value, x._attached, fact
    return x


def fact_of(x: Array) -> Any:
    """The fact about an unwritten value; None if there is none."""
    known = getattr(x, "_fact", None) if type(x) is Tracer else None
    if known is None:
        return None
    value, attached, fact = known
    return fact if value is x._value and attached is x._attached else None


def root(x: Array) -> Array:
    """The square root of a sum of squares; its derivative is zero where all of them are."""
    return remembering(scalar_of(ops.root(x)), power_by(lambda: x))


def power_by(square: Callable[[], Array]) -> Power:
    """Even powers of a root, with the derivatives of its square; None if that has another dtype."""

    def power(root: Array, n: Any) -> Array | None:
        squared = square()
        if dtype_of(squared) != dtype_of(root):
            return None
        known: Array = ops.square(root) if n == 2 else ops.power(root, n)
        return revalued(known, squared if n == 2 else ops.power(squared, n // 2))

    return power


def unaliased(x: Array) -> Array:
    """The traced value in a new tracer, which users cannot write to."""
    return Tracer(x._interpreter, x._value, x._attached) if type(x) is Tracer else x


def power_of_root(x: Array, n: Any) -> Array | None:
    """x to an even power if x is a known root."""
    if not Known.ever or type(n) not in (int, float):
        return None
    power = fact_of(x)
    return power(x, n) if callable(power) and n > 0 and n % 2 == 0 else None
