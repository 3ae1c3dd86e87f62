"""The builder of elementwise primitives: a definition states the partial derivatives, this file derives the rest.

`partials.py` reads the partials, `pointwise.py` computes values. Elementwise primitives broadcast as NumPy does;
`fit_cotangent` undoes that in every pullback. Partials belong to holomorphic functions, so a pullback multiplies by
their conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from numpy import ndarray

from func.backends import HOST_TYPES
from func.backends.array_helpers import arrays
from func.backends.array_helpers.strides import iterated_order
from func.backends.blocks import LARGE
from func.backends.quiet import quietly
from func.interpreters.core import (
    ZERO,
    Array,
    Facts,
    Linear,
    Params,
    Shaped,
    Tracer,
    add_tangents,
    defensive_copy,
    dtype_of,
    is_inexact,
    linear,
    operand,
    shape_of,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.primitives.elementwise.partials import (
    Partial,
    Rule,
    in_precision_of,
    is_checked_for_nan,
    is_followed,
)
from func.interpreters.primitives.elementwise.pointwise import HOST_ARRAYS, Pointwise, call_numpy, elementwise_constant
from func.interpreters.primitives.structural.shapes import broadcast, convert, fit_cotangent, full_like, where

ULPS = 16
"""The error of a partial that is a normal number, in units of its last place, unless a row states another."""


class Elementwise(Pointwise):
    """A pointwise primitive defined by its partial derivatives."""

    pulls_by_primitives = True
    __slots__ = ("fast", "keeps", "mixes", "partials", "selects", "ulps")
    partials: tuple[Partial | None, ...]

    def __init__(
        self, name: str, partials: Sequence[Rule], selects: tuple[int, ...], ulps: float, **options: Any
    ) -> None:
        super().__init__(name, len(partials), **options)
        self.ulps = ulps
        """The error of first and second partials that are normal numbers, in units of their last place."""
        self.selects = selects
        self.covers = not any(selects)
        self.partials = tuple([None if rule is None else Partial(rule, self.arity) for rule in partials])
        self.mixes = self.arity > 1 and any([p is not None and callable(p.rule) for p in self.partials])
        """Whether a partial computes with operands that may be of other dtypes than the output."""
        self.keeps = tuple([self._needed_by(mask) for mask in range(1 << self.arity)])
        self.fast: Any = None
        """The fast forms that grad_fast makes of the primitive at its first record."""

    def _needed_by(self, mask: int) -> tuple[bool, ...]:
        """The members of (x, y, ..., out) that the pullback needs for the active arguments in the bit mask."""
        needed: set[int] = set()
        for i, partial in enumerate(self.partials):
            if mask >> i & 1 and partial is not None:
                needed.update(partial.needs)
        return tuple([place in needed for place in range(self.arity + 1)])

    def scaled(self, place: int, saved: Sequence[Array], direction: Array, adjoint: bool) -> Array:
        """partial · direction, by the conjugate partial for an adjoint."""
        partial = self.partials[place]
        assert partial is not None
        if partial.constant is not None:
            return direction if partial.constant == 1 else negative(direction)
        return partial.scaled(saved, direction, adjoint, self.selects[place])

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = self(*primals)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return ZERO
        saved = in_precision_of(out, (*primals, out)) if self.mixes else (*primals, out)
        total = quietly(self._total, saved, tangents)
        if total is ZERO:
            return ZERO
        if dtype_of(total) != dtype:
            total = convert(total, dtype=dtype)
        shape = shape_of(out)
        return total if shape_of(total) == shape else broadcast(total, shape=shape)

    def _total(self, saved: Any, tangents: tuple[Any, ...]) -> Any:
        total: Any = ZERO
        for place, tangent in enumerate(tangents):
            if tangent is not ZERO and self.partials[place] is not None:
                total = add_tangents(total, self.scaled(place, saved, tangent, False))
        return total

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = self(*values)
        mask = sum([1 << i for i, parent in enumerate(parents) if parent is not None and self.partials[i] is not None])
        if mask == 0:
            return out, None, None
        keeps = self.keeps[mask]
        saved = [
            (value if parents[i] is not None else defensive_copy(value)) if keeps[i] else None
            for i, value in enumerate(values)
        ]
        return out, self, [*saved, out if keeps[-1] else None]

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """The saved values, traced: lift(place, value) of an argument, lift(None, value) of the output."""
        return [lift(place if place < self.arity else None, value) for place, value in enumerate(saved)]

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        saved = in_precision_of(ct, saved) if self.mixes else saved
        return [
            ZERO
            if parent is None or self.partials[place] is None
            else fit_cotangent(self.scaled(place, saved, ct, True), parent)
            for place, parent in enumerate(parents)
        ]

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        for place, (partial, parent) in enumerate(zip(self.partials, parents, strict=True)):
            if parent is None or partial is None:
                continue
            if any([need == self.arity or parents[need] is not None for need in partial.needs]):
                raise NotDifferentiableError(f"{self.name} is not linear in argument {place} and cannot be transposed")
        return self.pull(ct, parents, (*known, None), params)


def scale(factor: Array, direction: Array, adjoint: bool, selects: int) -> Array:
    """factor · direction, by the conjugate factor for an adjoint. `selects`: a factor of zero means "not selected".

    A stage whose program has a NaN-safe variant records the plain product.
    """
    if adjoint and dtype_of(factor).kind == "c":
        factor = conjugate(factor)
    if selects and not is_checked_for_nan(direction):
        if selects == SHARES and is_followed(factor):
            direction = where(not_equal(factor, 0), direction, full_like(direction, 0, ()))
        return nan_safe_multiply(direction, factor)
    return multiply(factor, direction)


SHARES = 2
"""In the place of a true `selects`: the factor is the share of a choice. So a zero is not a choice even where its own
derivative, at ties, is not zero."""


class Unary(Elementwise):
    """An elementwise primitive of one argument; calls of it are dispatched without a loop over the arguments."""

    __slots__ = ()

    def __call__(self, x: Array, *more: Any, **keywords: Any) -> Any:
        try:
            if more or keywords:
                return call_numpy(self.ufunc, (x, *more), keywords)
            if type(x) is Tracer:
                return x._interpreter.apply1(self, x)
            if type(x) in HOST_ARRAYS:
                return self.numpy(x) if x.size < LARGE else self.on_large(x)  # type: ignore[misc]
            return self.compute((x,))
        except Exception as error:
            hide_outside(error)
            raise

    __call__.__qualname__ = "ufunc"  # what Python calls it where arguments are missing


class Binary(Elementwise):
    """An elementwise primitive of two arguments. Its calls are most of all calls, so they have `bind` written out."""

    __slots__ = ()

    def __call__(self, x: Array, y: Array, *more: Any, **keywords: Any) -> Any:
        try:
            if more or keywords:
                return call_numpy(self.ufunc, (x, y, *more), keywords)
            if type(x) is Tracer:
                if type(y) is not Tracer:
                    return x._interpreter.apply2(self, x, y if type(y) in HOST_TYPES else operand(y))
                if y._interpreter.level > x._interpreter.level:
                    return y._interpreter.apply2(self, x, y)
                return x._interpreter.apply2(self, x, y)
            if type(y) is Tracer:
                return y._interpreter.apply2(self, x if type(x) in HOST_TYPES else operand(x), y)
            if (type(x) in HOST_ARRAYS and type(y) in HOST_TYPES) or (type(y) in HOST_ARRAYS and type(x) in HOST_TYPES):
                if (type(x) is ndarray and x.size >= LARGE) or (type(y) is ndarray and y.size >= LARGE):
                    return self.on_large(x, y)
                return self.numpy(x, y)  # type: ignore[misc]
            return self.compute((x, y))
        except Exception as error:
            hide_outside(error)
            raise

    __call__.__qualname__ = "ufunc"


def elementwise(
    name: str,
    *partials: Rule,
    ufunc: str | None = None,
    impl: Callable[..., Any] | None = None,
    selects: int | tuple[int, ...] = False,
    weak: bool = False,
    ulps: float = ULPS,
    **facts: Unpack[Facts],
) -> Elementwise:
    """An elementwise primitive. `selects`: a partial of zero means that the argument was not selected, for all
    arguments or for each. `weak`: arithmetic. `ulps`: the bound on the error of its partials."""
    kind = {1: Unary, 2: Binary}.get(len(partials), Elementwise)
    facts.setdefault("cost", 1)
    selected = selects if isinstance(selects, tuple) else (selects,) * len(partials)
    return kind(name, partials, selected, ulps, ufunc=ufunc or name, impl=impl, weak=weak, **facts)


not_equal = elementwise_constant("not_equal", 2, commutative=True)
multiply: Elementwise = elementwise("multiply", "y", "x", weak=True, commutative=True)
negative: Elementwise = elementwise("negative", -1, weak=True)
conjugate: Linear = linear(
    "conjugate",
    lambda xp, x: xp.conjugate(x),
    aval=lambda x: x,
    transpose=lambda ct, x: (conjugate(ct),),
    batch=lambda x: conjugate(x),
    cost=1,
    mask="elementwise",
    covers=True,
    layout=iterated_order,
)
"""Linear over the reals, and its own adjoint."""


nan_safe_multiply: Elementwise = elementwise(
    "nan_safe_multiply", "y", "x", impl=arrays.nan_safe_multiply, selects=(True, False)
)
"""x · y where y weighs what was selected: exactly zero wherever y is, also where x is infinite or NaN.

So is its derivative by x.
"""
add: Elementwise = elementwise("add", 1, 1, weak=True, commutative=True)
