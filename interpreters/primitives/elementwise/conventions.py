"""Conventions: a first derivative at a point where the function has none; further derivatives are undetermined.

The partial of |x| at zero is zero by convention. Its own derivative there is undetermined, not that of a constant:
|x|² and cos |x| have second derivatives that the convention does not know. So a rule that follows a convention returns
its partial by `by_convention`, which makes the next derivative NaN at these points alone. A convention is a factor of a
(co)tangent, never a tangent itself, since transposition needs linearity in tangents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from func.backends.array_helpers.arrays import broadcast_shape
from func.interpreters.core import Array, Shaped, Tracer, known_value
from func.interpreters.primitives.elementwise.builder import Elementwise, elementwise, multiply
from func.interpreters.primitives.elementwise.partials import is_followed as is_followed
from func.interpreters.primitives.structural.shapes import full_like, where

F = TypeVar("F", bound=Callable[..., Any])


def _value(xp: Any, value: Array, singular: Array, mover: Array) -> Array:
    """The value, with the shape of all operands: batch axes may be those of one alone."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in (value, singular, mover)])
    return value if np.shape(value) == shape else xp.broadcast_to(value, shape).copy()


def _is_operand(operands: Sequence[Shaped]) -> bool:
    """Whether the value is the first operand itself."""
    return operands[0].shape == broadcast_shape([x.shape for x in operands])


def undetermined_where(singular: Callable[[], Array], x: Array) -> Array:
    """A derivative that is NaN at some places, with all its derivatives, and zero elsewhere."""
    places = singular()
    value = where(places, full_like(x, math.nan, ()), full_like(x, 0, ()))
    return by_convention(value, lambda: places, x)


undetermined: Elementwise = elementwise(
    "undetermined",
    1,
    None,
    lambda y, z: undetermined_where(lambda: y, z),
    impl=_value,
    view=_is_operand,
    selects=(False, False, True),
    cost=0,
)
"""undetermined(value, singular, mover) is the value; where `singular` holds, its derivative by the mover is NaN."""

revalued: Elementwise = elementwise(
    "revalued", None, 1, impl=lambda xp, value, x: _value(xp, value, x, False), view=_is_operand, cost=0
)
"""The value of the first operand with the derivative of the second: that of a square of a norm exists at zero."""


def on_arrays(code: Callable[..., Any]) -> Callable[[F], F]:
    """`@on_arrays(code)`: the result of a rule on plain arrays by `code`, or None where `code` has none."""

    def mark(rule: F) -> F:
        rule.on_arrays = code  # type: ignore[attr-defined]
        return rule

    return mark


def by_convention(value: Array, singular: Callable[[], Array], *movers: Array) -> Array:
    """A partial derivative that follows a convention at the places `singular()`.

    There its own derivative by the movers, what it is computed from, is undetermined. It costs nothing where no further
    derivative is taken, and where the numbers are known and no place is singular.
    """
    movers = tuple([mover for mover in movers if is_followed(mover)])
    if not movers:
        return value
    places = singular()
    known = known_value(places)
    if isinstance(known, (ndarray, np.bool_, bool)) and not np.any(known):
        return value
    for mover in movers:
        value = undetermined(value, places, mover)
    return value


conventional: Elementwise = elementwise(
    "conventional",
    lambda x, y: by_convention(full_like(x, 1), lambda: y, x),
    None,
    impl=lambda xp, value, places: _value(xp, value, places, False),
    view=_is_operand,
    cost=0,
)
"""The first operand, whose derivative follows a convention where the second one holds."""


def orders_followed(value: Array) -> int:
    """The number of derivatives of the value that exist; two means all."""
    orders = 0
    while type(value) is Tracer and orders < 2:
        if value._value is None or value._interpreter.takes_further:
            return 2
        orders += value._interpreter.differentiates
        value = value._value
    return orders


def followed_by_convention(value: Array, singular: Callable[[], Array]) -> Array:
    """A value whose derivative follows a convention at the places `singular()`; the second is undetermined there."""
    if orders_followed(value) < 2:
        return value
    places = singular()
    known = known_value(places)
    if isinstance(known, (ndarray, np.bool_, bool)) and not np.any(known):
        return value
    marked: Array = conventional(value, places)
    return marked


def _nothing_there(direction: Array, y: Array, z: Array) -> Array:
    """Zero: a structural one where y does not hold, and where it does one whose own derivative is undetermined."""
    there = where(y, direction, full_like(z, 0, ()))
    return multiply(there, by_convention(full_like(z, 0), lambda: y, z))


isolated: Elementwise = elementwise("isolated", 1, None, _nothing_there, impl=_value, view=_is_operand, cost=0)
"""The first operand, whose derivative by the third one is zero: by convention, where the second one holds."""


def isolated_by_convention(value: Array, singular: Callable[[], Array], x: Array) -> Array:
    """A piecewise constant function of x, some of whose pieces are the points `singular()` alone.

    The other factor has derivatives near such a point that the piece does not know.
    """
    if orders_followed(x) < 2:
        return value
    places = singular()
    known = known_value(places)
    if isinstance(known, (ndarray, np.bool_, bool)) and not np.any(known):
        return value
    marked: Array = isolated(value, places, x)
    return marked


CONVENTIONS = frozenset({conventional, isolated, revalued, undetermined})
"""Primitives that only derivatives read: each is its first operand."""
