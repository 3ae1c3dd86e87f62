"""Reductions over axes: max, min, prod, mean, variance, log-sum-exp, any, all, argmax."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES
from func.backends.array_helpers.arrays import logaddexp_reduce, plain_where
from func.backends.array_helpers.strides import reduced_order
from func.backends.quiet import quietly
from func.interpreters import core
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Facts, Linear, NonDifferentiable, Params
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.parameters import AXES, AXIS, ELEMENT, FINITE, NOTHING, OPTIONAL_DTYPE, either, one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import SHARES, conjugate, multiply, not_equal, scale
from func.interpreters.primitives.elementwise.conventions import by_convention, revalued
from func.interpreters.primitives.elementwise.table import (
    divide,
    equal,
    exp,
    greater,
    isfinite,
    isnan,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    real,
    subtract,
)
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    convert,
    drop_axes,
    full_like,
    ones_at,
    reduce_by,
    reduce_sum,
    reshape,
    same_dtype,
    where,
    zero_of,
)

Axes = tuple[int, ...]


def keep_axes(reduced: Array, shape: tuple[int, ...], axes: Axes) -> Array:
    """A reduced array with its axes back, at length one."""
    return reshape(reduced, shape=ones_at(shape, axes))


def _shift(axes: Axes) -> Axes:
    return tuple([axis + 1 for axis in axes])


class Reduction(core.Primitive):
    """A reduction over axes. `partial(x, out, axes=..., ...)` is the derivative of the result (its axes kept) by each
    element. Both modes follow from it; for a real result of complex elements it is the steepest ascent."""

    pulls_by_primitives = True
    __slots__ = ("partial",)
    partial: Callable[..., Array]

    def weights(self, x: Array, out: Array, params: Params) -> Array:
        """The partial derivatives by all elements."""
        return quietly(functools.partial(self.partial, **params), x, keep_axes(out, core.shape_of(x), params["axes"]))

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = core.bind(self, primals, params)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        if not core.is_inexact(core.dtype_of(out)):
            return ZERO
        (x,), (dx,) = primals, tangents
        weights = self.weights(x, out, params)
        if core.dtype_of(x).kind == "c" and core.dtype_of(out).kind != "c":
            total = reduce_sum(real(self.weighted(dx, conjugate(weights))), axes=params["axes"])
        else:
            total = reduce_sum(self.weighted(dx, weights), axes=params["axes"])
        return same_dtype(total, out)

    def weighted(self, direction: Array, weights: Array) -> Array:
        """A direction times partial derivatives."""
        return multiply(weights, direction)

    def record(self, values: tuple[Array, ...], parents: Sequence[core.Shaped | None], params: Params) -> Any:
        out = core.bind(self, values, params)
        return out, self, (values[0], out)

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """The saved values, traced: the argument and the output."""
        return lift(0, saved[0]), lift(None, saved[1])

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        x, out = saved
        weights = self.weights(x, out, params)
        if core.dtype_of(out).kind == "c":
            weights = conjugate(weights)
        return (same_dtype(self.weighted(keep_axes(ct, core.shape_of(x), params["axes"]), weights), x),)

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        raise NotDifferentiableError(f"{self.name} is not linear and cannot be transposed")


def reduction(
    name: str,
    impl: Callable[..., Array],
    partial: Callable[..., Array],
    dtype: Callable[[np.dtype[Any]], Any] | None = None,
    kind: type[Reduction] = Reduction,
    **facts: Unpack[Facts],
) -> Reduction:
    """A reduction of one array with a parameter `axes` (non-negative, sorted); `dtype` is that of the result."""

    def aval(x: Aval, *, axes: Axes, **params: Any) -> Aval:
        return Aval(drop_axes(x.shape, axes), x.dtype if dtype is None else dtype(x.dtype))

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], **{**params, "axes": _shift(params["axes"])})

    facts.setdefault("layout", reduced_order)
    facts.setdefault("parameters", {"axes": AXES})
    primitive = kind(name, impl, aval=aval, batch=batch, **facts)
    primitive.partial = partial
    return primitive


def _extremum_partial(x: Array, out: Array, *, axes: Axes) -> Array:
    """Ties split evenly; where the result is NaN, the derivative is the NaN elements' share."""
    hit = equal(x, out)
    if core.is_inexact(core.dtype_of(x)):
        hit = logical_or(hit, isnan(x))
    hits = convert(hit, dtype=core.dtype_of(x))
    return share_of_ties(hits, keep_axes(reduce_sum(hits, axes=axes), core.shape_of(x), axes), x)


def share_of_ties(hits: Array, number: Array, x: Array) -> Array:
    """The share of each element of x in an extremum, where `number` of them are ones in `hits`."""
    return by_convention(divide(hits, number), lambda: logical_and(not_equal(hits, 0), greater(number, 1)), x)


class Extremum(Reduction):
    """max or min, whose pullback on plain arrays without NaN is a choice by one comparison."""

    __slots__ = ()

    def weighted(self, direction: Array, weights: Array) -> Array:
        """A direction times partial derivatives; a partial of zero means that the element was not selected."""
        return scale(weights, direction, False, SHARES)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        chosen = self._chosen(ct, saved, params)
        return super().pull(ct, parents, saved, params) if chosen is None else (chosen,)

    def _chosen(self, ct: Any, saved: Any, params: Params) -> Any:
        x, out = saved
        if type(x) is not ndarray or type(ct) not in HOST_TYPES or x.dtype.kind != "f":
            return None
        shape = ones_at(x.shape, params["axes"])
        hit = x == _array(out, copy=None).reshape(shape)
        number = _add.reduce(hit, params["axes"], x.dtype, keepdims=True)
        if not number.all():  # NaN equals nothing
            return None
        return plain_where(hit, _array(ct, copy=None).reshape(shape) / number, zero_of(x.dtype))


def _extremum(name: str, ufunc: str) -> Extremum:
    def impl(xp: Any, x: Array, *, axes: Axes) -> Array:
        return reduce_by(getattr(np, ufunc), x, axes) if xp is np else getattr(xp, name)(x, axes)

    primitive = reduction(name, impl, _extremum_partial, kind=Extremum, cost=costs.per_input(1), reduces=ufunc)
    assert isinstance(primitive, Extremum)
    return primitive


reduce_max = _extremum("max", "maximum")
reduce_min = _extremum("min", "minimum")


def _product_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    total: np.dtype[Any] = np.multiply.reduce(np.ones(1, dtype)).dtype
    return total


def _product_partial(x: Array, out: Array, *, axes: Axes) -> Array:
    """The product of all others; the quotient by the element where products of some others leave the range of numbers.

    The product has the derivatives, which the quotient, of which the element is a factor, has not.
    """
    from func.interpreters.primitives.structural.cumulative import products_of_others  # start-up time

    others = products_of_others(x, axes)
    if not core.is_inexact(core.dtype_of(x)):
        return others
    in_range = logical_and(isfinite(others), not_equal(others, 0))
    known = core.known_value(in_range)
    if known is not None and np.all(known):
        return others
    quotient = divide(out, x)
    replaces = logical_and(logical_not(in_range), logical_and(isfinite(quotient), not_equal(quotient, 0)))
    return revalued(where(replaces, quotient, others), others)


reduce_prod = reduction(
    "prod",
    lambda xp, x, *, axes: xp.multiply.reduce(x, axes) if xp is np else xp.prod(x, axes),
    _product_partial,
    _product_dtype,
    cost=costs.per_input(1),
    reduces="multiply",
)


def _variance_partial(x: Array, out: Array, *, axes: Axes, ddof: float) -> Array:
    """2 (x - mean) / (count - ddof)."""
    shape = core.shape_of(x)
    center = keep_axes(reduce_mean(x, axes=axes, dtype=None), shape, axes)
    number = math.prod([shape[axis] for axis in axes]) - ddof
    return multiply(subtract(x, center), 2 / number)


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.real(np.empty(0, dtype)).dtype


reduce_var = reduction(
    "variance",
    lambda xp, x, *, axes, ddof: xp.var(x, axes, ddof=ddof),
    _variance_partial,
    _real_dtype,
    parameters={"axes": AXES, "ddof": FINITE},
    cost=costs.per_input(4),
)
"""The variance of floating point elements, more than ddof of them."""


def centered(weights: Array, x: Array, axes: Axes) -> Array:
    """x - Σ weights x of weights that sum to one, twice. Where one weight is nearly one, its element is the remainder
    of a difference, and the second sum has its digits."""
    for _ in range(2):
        x = subtract(x, keep_axes(reduce_sum(multiply(weights, x), axes=axes), core.shape_of(weights), axes))
    return x


def _exponential_share(x: Array, out: Array, *, axes: Axes) -> Array:
    """exp(x - out), shared evenly between terms that are infinite or all zero."""
    infinite = logical_not(isfinite(out))
    hits = convert(logical_and(equal(x, out), infinite), dtype=core.dtype_of(real(x)))
    number = maximum(keep_axes(reduce_sum(hits, axes=axes), core.shape_of(x), axes), 1)
    zero = full_like(x, 0, ())
    plain = exp(where(infinite, zero, subtract(x, where(infinite, zero, out))))
    return where(infinite, convert(divide(hits, number), dtype=core.dtype_of(x)), plain)


def _exponential_share_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Any]:
    """p (dx - Σ p dx); out moves with x."""
    (x, out), (dx, _) = primals, tangents
    share = exponential_share(x, out, axes=axes)
    if dx is ZERO:
        return share, ZERO
    slope = where(isfinite(out), share, full_like(share, 0, ()))
    return share, multiply(slope, centered(slope, dx, axes))


exponential_share: core.Primitive = core.general(
    "exponential_share",
    lambda xp, x, out, *, axes: _exponential_share(x, out, axes=axes),
    aval=lambda x, out, *, axes: Aval(np.broadcast_shapes(x.shape, out.shape), x.dtype),
    parameters={"axes": AXES},
    fits=lambda x, out, **params: len(x.shape) == len(out.shape),
    batch=lambda size, batched, args, params: exponential_share(
        *core.materialize(size, batched, args), axes=_shift(params["axes"])
    ),
    jvp=_exponential_share_jvp,
    cost=10,
    mask="body",
    body=lambda params: lambda x, out: (_exponential_share(x, out, **params),),
)
"""The share of each term in the sum of exponentials whose logarithm is `out`, by which it is derived along with x."""
reduce_logaddexp = reduction("logaddexp_reduce", logaddexp_reduce, exponential_share, cost=costs.log_sum_exp)


_add, _array, _empty = np.add, np.array, np.empty  # as in `shapes`
_SINGLE = np.dtype(np.float32)
_EXACT_COUNTS = {np.dtype(np.float64): 2**53, np.dtype(np.float32): 2**24, np.dtype(np.float16): 2**11}


def counts_exactly(dtype: np.dtype[Any], number: Any) -> bool:
    """Whether total / number rounds as NumPy's division by an integer does, in double precision where it matters."""
    return (type(number) is int and number <= _EXACT_COUNTS.get(dtype, -1)) or dtype == np.complex128


def _mean_impl(xp: Any, x: Array, *, axes: Axes, dtype: Any) -> Array:
    total = reduce_by(_add, x, axes, dtype) if xp is np else xp.sum(x, axes, dtype)
    number = math.prod([core.shape_of(x)[axis] for axis in axes])
    if counts_exactly(total.dtype, number):
        return total / number
    return xp.asarray(xp.true_divide(total, np.intp(number))).astype(total.dtype)[()]


_REAL_SCALARS = frozenset({np.float64, np.float32})


def _mean_transpose(ct: Array, x: core.Shaped, *, axes: Axes, dtype: Any) -> tuple[Array]:
    number = math.prod([x.shape[axis] for axis in axes])
    if type(ct) in _REAL_SCALARS and ct.dtype == x.dtype:
        share = _empty(x.shape, x.dtype)
        share.fill(ct * type(ct)(1 / number))
        return (share,)
    share = same_dtype(multiply(ct, 1 / number), x)
    return (broadcast(reshape(share, shape=ones_at(x.shape, axes)), shape=x.shape),)


reduce_mean: Linear = core.linear(
    "mean",
    _mean_impl,
    aval=lambda x, *, axes, dtype: Aval(drop_axes(x.shape, axes), dtype or x.dtype),
    parameters={"axes": AXES, "dtype": OPTIONAL_DTYPE},
    transpose=_mean_transpose,
    batch=lambda x, *, axes, dtype: reduce_mean(x, axes=_shift(axes), dtype=dtype),
    cost=costs.per_input(1),
    layout=reduced_order,
    mask="covered",
    covers=True,
)
"""The mean of at least one floating point element (or in a floating point dtype)."""


def _optioned(name: str, ufunc: str, neutral: int, tangent: Callable[..., Array]) -> core.Primitive:
    """A reduction with a mask of the elements that count (or True) and a first value. NumPy adds such elements up in
    another order, so its ufunc gives the value. The derivative is that of the plain reduction."""

    def impl(xp: Any, x: Array, mask: Array, *, axes: Axes, dtype: Any, initial: Any) -> Array:
        if type(x) not in PYTHON_SCALARS and x.dtype.kind == "V" and dtype in (None, x.dtype):
            return impl(xp, x.astype(_SINGLE), mask, axes=axes, dtype=None, initial=initial).astype(x.dtype)
        options = {} if initial is None else {"initial": initial}
        if xp is np:
            return getattr(np, ufunc).reduce(x, axes, dtype, where=mask, **options)
        out = getattr(xp, name)(xp.where(mask, x, xp.asarray(neutral, core.dtype_of(x))), axes, dtype)
        return out if initial is None else getattr(xp, ufunc)(out, initial)

    def aval(x: Aval, mask: Aval, *, axes: Axes, dtype: Any, initial: Any) -> Aval:
        return Aval(drop_axes(x.shape, axes), dtype or getattr(np, ufunc).reduce(np.ones(1, x.dtype)).dtype)

    def jvp(
        primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes, dtype: Any, initial: Any
    ) -> tuple[Array, Any]:
        (x, mask), (dx, _) = primals, tangents
        out = primitive(x, mask, axes=axes, dtype=dtype, initial=initial)
        dx = where(mask, dx, full_like(dx, 0, ()))
        return out, tangent(where(mask, x, full_like(x, neutral, ())), dx, axes, core.dtype_of(out), initial)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        x, mask = core.materialize(size, batched, args) if core.shape_of(args[1]) else args
        return primitive(x, mask, **{**params, "axes": _shift(params["axes"])})

    primitive = core.general(
        f"{name}_with",
        impl,
        aval=aval,
        parameters={"axes": AXES, "dtype": OPTIONAL_DTYPE, "initial": either(NOTHING, ELEMENT)},
        fits=lambda x, mask, **params: mask.dtype == bool and np.broadcast_shapes(x.shape, mask.shape) == x.shape,
        batch=batch,
        jvp=jvp,
        cost=costs.per_element,
        reduces=ufunc,
        layout=lambda x, mask, **params: reduced_order(x, **params),
    )
    return primitive


def _sum_tangent(x: Array, dx: Array, axes: Axes, dtype: Any, initial: Any) -> Array:
    return reduce_sum(dx, axes=axes, dtype=dtype)


def _prod_tangent(x: Array, dx: Array, axes: Axes, dtype: Any, initial: Any) -> Array:
    from func.interpreters.primitives.structural.cumulative import products_of_others  # start-up time

    contribution = multiply(products_of_others(convert(x, dtype=dtype), axes), convert(dx, dtype=dtype))
    contribution = reduce_sum(contribution, axes=axes)
    return contribution if initial is None else multiply(contribution, convert(initial, dtype=dtype))


sum_with = _optioned("sum", "add", 0, _sum_tangent)
prod_with = _optioned("prod", "multiply", 1, _prod_tangent)


def _constant_reduction(name: str, ufunc: str) -> NonDifferentiable:
    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], axes=_shift(params["axes"]))

    primitive = core.nondifferentiable(
        name,
        lambda xp, x, *, axes: getattr(xp, name)(x, axes),
        aval=lambda x, *, axes: Aval(drop_axes(x.shape, axes), np.bool_),
        parameters={"axes": AXES},
        batch=batch,
        cost=costs.per_input(1),
        reduces=ufunc,
        layout=reduced_order,
    )
    return primitive


reduce_any = _constant_reduction("any", "logical_or")
reduce_all = _constant_reduction("all", "logical_and")


def _index_reduction(name: str, ufunc: str) -> NonDifferentiable:
    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], axis=params["axis"] + 1)

    primitive = core.nondifferentiable(
        name,
        lambda xp, x, *, axis: getattr(xp, name)(x, axis),
        aval=lambda x, *, axis: Aval(drop_axes(x.shape, (axis,)), np.intp),
        parameters={"axis": AXIS},
        batch=batch,
        cost=costs.per_input(1),
        reduces=ufunc,
    )
    return primitive


argmax = _index_reduction("argmax", "maximum")
argmin = _index_reduction("argmin", "minimum")


SORT_KIND = one_of(None, "quicksort", "mergesort", "heapsort", "stable")


def _argsort_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return argsort(args[0], axis=params["axis"] + 1, kind=params["kind"])


argsort: NonDifferentiable = core.nondifferentiable(
    "argsort",
    lambda xp, x, *, axis, kind: xp.argsort(x, axis, kind=kind) if xp is np else xp.argsort(x, axis),
    aval=lambda x, *, axis, kind: Aval(x.shape, np.intp),
    parameters={"axis": AXIS, "kind": SORT_KIND},
    batch=_argsort_batch,
    cost=costs.sorting,
)
