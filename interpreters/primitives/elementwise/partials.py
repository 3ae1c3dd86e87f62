"""Partial derivatives of elementwise primitives: the values that they need, and how they scale a direction.

A partial is a function. The names of its arguments tell what it needs among the arguments `x`, `y`, `z` and the output
`out` of the primitive; a pullback saves these values. A name alone is that value itself, a number is a constant
partial, and None means no derivative. A tuple is a product: its factors scale a direction one after another, since the
product itself may leave the range of numbers. A factor whose first argument is `direction` returns the scaled
direction.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, Array, Tracer, dtype_of
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.structural.shapes import convert

Factor: TypeAlias = Callable[..., Array] | str
"""A function of the values that it names, or the name of a saved value."""
Rule: TypeAlias = Factor | tuple[Factor, ...] | int | None
"""A factor, several of them for their product, a constant, or None for no derivative."""
_NAMES = ("x", "y", "z")


class Partial:
    """One partial derivative: how to compute it from the saved (x, y, z, out), and which of those it needs."""

    __slots__ = ("constant", "evaluate", "factors", "maps", "needs", "rule")
    evaluate: Callable[[Any], Array]

    def __init__(self, rule: Factor | tuple[Factor, ...] | int, arity: int) -> None:
        places = {name: i for i, name in enumerate(_NAMES[:arity])} | {"out": arity}
        self.factors: tuple[Partial, ...] = ()
        """Those of a product."""
        if isinstance(rule, tuple):
            self.factors = tuple([Partial(factor, arity) for factor in rule])
            rule = _FactorProduct(self.factors, arity)
        self.rule: Any = rule
        self.constant = rule if isinstance(rule, int) else None
        names: Sequence[str] = ()
        if isinstance(rule, str):
            names = (rule,)
        elif callable(rule) and not self.factors:
            names = _parameters(rule)
        self.maps: Any = rule if tuple(names[:1]) == ("direction",) else None
        """A rule of the direction and of the values that it names."""
        if self.maps is not None:
            names, self.rule = names[1:], _at_one(self.maps)
        self.needs: tuple[int, ...] = tuple([places[name] for name in names])
        if isinstance(rule, _FactorProduct):
            self.needs = rule.needs
        if isinstance(rule, str):
            self.evaluate = operator.itemgetter(self.needs[0])
        elif callable(rule):
            self.evaluate = _of_saved(self.rule, self.needs)

    def scaled(self, saved: Sequence[Array], direction: Array, adjoint: bool, selects: int) -> Array:
        """partial · direction, by the conjugate partial for an adjoint."""
        if self.maps is not None:
            return self.adjoint(saved, direction) if adjoint else self.maps(direction, *[saved[i] for i in self.needs])
        for factor in self.factors:
            direction = factor.scaled(saved, direction, adjoint, selects)
        return direction if self.factors else WIRING.scale(self.evaluate(saved), direction, adjoint, selects)

    def adjoint(self, saved: Sequence[Array], direction: Array) -> Array:
        """A direction scaled by the conjugate of a partial that maps directions."""
        return self.maps(direction, *[_conjugate(saved[need]) for need in self.needs])


def _conjugate(x: Array) -> Array:
    return WIRING.conjugate(x) if dtype_of(x).kind == "c" else x


def _at_one(rule: Any) -> Callable[..., Array]:
    """The partial of a rule that maps directions."""
    return functools.partial(rule, 1)


class _FactorProduct:
    """The product of factors as one rule."""

    def __init__(self, factors: Sequence[Partial], arity: int) -> None:
        self.factors = factors
        self.needs: tuple[int, ...] = tuple(sorted({need for factor in factors for need in factor.needs}))
        self.arity = arity

    def __call__(self, *values: Array) -> Array:
        saved: list[Any] = [None] * (self.arity + 1)
        for need, value in zip(self.needs, values, strict=True):
            saved[need] = value
        first, *others = self.factors
        product = first.evaluate(saved)
        for factor in others:
            product = factor.scaled(saved, product, False, False)
        return product


def _parameters(rule: Callable[..., Array]) -> Sequence[str]:
    """The names of a rule's parameters. `inspect` takes twenty times as long, for every partial at the import."""
    if type(rule) is FunctionType and not hasattr(rule, "__wrapped__"):
        code = rule.__code__
        return code.co_varnames[: code.co_argcount]
    return list(inspect.signature(rule).parameters)


def _of_saved(rule: Callable[..., Array], needs: tuple[int, ...]) -> Callable[[Any], Array]:
    """A rule as a function of all saved values."""
    if len(needs) == 1:
        (place,) = needs
        return lambda saved: rule(saved[place])
    return lambda saved: rule(*[saved[place] for place in needs])


def in_precision_of(out: Array, saved: Sequence[Array]) -> Sequence[Array]:
    """The operands of partials, in the precision of the output: a narrower one loses digits or overflows."""
    dtype = dtype_of(out)
    for value in saved:
        if value is not None and type(value) not in PYTHON_SCALARS and dtype_of(value) is not dtype:
            return [
                value if value is None or type(value) in PYTHON_SCALARS else _widened(value, dtype) for value in saved
            ]
    return saved


def _widened(value: Array, dtype: np.dtype[Any]) -> Array:
    """A value in the precision of a dtype where its own is narrower."""
    own = dtype_of(value)
    if own.kind not in "fciub" or dtype.kind not in "fc":
        return value
    precision = np.finfo(dtype).dtype
    wide = np.promote_types(own, precision)
    return convert(value, dtype=wide) if wide != own and np.finfo(wide).dtype == precision else value


def is_followed(value: Array) -> bool:
    """Whether a derivative of the value may be taken: a level differentiates it, or a Program that is traced."""
    while type(value) is Tracer:
        if value._interpreter.differentiates or value._value is None:
            return True
        value = value._value
    return False


def is_checked_for_nan(value: Array) -> bool:
    """Whether a value is traced by a program that runs its NaN-safe variant where an output has a NaN."""
    while type(value) is Tracer:
        owner = value._interpreter
        if owner.checks_nan is not None:
            return owner.checks_nan
        value = value._value
    return False
