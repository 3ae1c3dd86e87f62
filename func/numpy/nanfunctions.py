"""Reductions that ignore NaN; the derivative with respect to a NaN element is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, is_inexact, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.reductions import reduce_all
from func.numpy import cumulative, reductions, statistics
from func.numpy.argument_checks import NO_VALUE, scalar_of, to_dtype
from func.numpy.memory import in_order_of
from func.numpy.protocol import F, implements, member
from func.numpy.reductions import finish, is_given, mask_for, reduction_axes, total_of


def without_nan(a: Any, fill: Any) -> tuple[Array, Array | None]:
    """The array with NaN replaced, and the mask of NaN (None for dtypes without NaN)."""
    a = operand(a)
    if not is_inexact(dtype_of(a)):
        return a, None
    mask = ops.isnan(a)
    return in_order_of(shapes.where(mask, shapes.full_like(a, fill, ()), a), a), mask


def _accumulated(original: F, reduction: Callable[..., Array], fill: int, what: str) -> F:
    @member(original, f"The {what} of the elements that are not NaN, as numpy.{original.__name__}.")
    def accumulated(
        a: Array,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Array:
        return reduction(without_nan(a, fill)[0], axis, dtype, out, keepdims, initial, where)

    return accumulated


def _running(original: F, reduction: Callable[..., Array], fill: int, doc: str) -> F:
    @member(original, doc)
    def running(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
        return reduction(without_nan(a, fill)[0], axis, dtype, out)

    return running


nansum = _accumulated(np.nansum, reductions.sum, 0, "sum")
nanprod = _accumulated(np.nanprod, reductions.prod, 1, "product")
nancumsum = _running(np.nancumsum, cumulative.cumsum, 0, "The cumulative sum, with NaN as zero, as numpy.nancumsum.")
nancumprod = _running(
    np.nancumprod, cumulative.cumprod, 1, "The cumulative product, with NaN as one, as numpy.nancumprod."
)


def _check_inexact(dtype: Any, out: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and dtype_of(out).kind not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")


def _count_valid(mask: Array, axes: tuple[int, ...], where: Any) -> Array:
    return total_of(ops.logical_not(mask), axes, np.dtype(np.intp), NO_VALUE, where)


def _over_count(total: Array, number: Array) -> Array:
    """total / number in the total's dtype; NaN, with derivative zero, where the number is zero."""
    empty = ops.equal(number, 0)
    safe = shapes.where(empty, shapes.full_like(number, 1, ()), number)
    return shapes.where(empty, shapes.full_like(total, np.nan, ()), statistics.divided(total, safe))


@implements(np.nanmean)
def nanmean(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Array:
    """The mean of the elements that are not NaN, as numpy.nanmean."""
    filled, mask = without_nan(a, 0)
    if mask is None:
        return statistics.mean(filled, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    shape = shape_of(filled)
    axes = reduction_axes(axis, len(shape))
    number = _count_valid(mask, axes, where)
    statistics.warn_where(ops.equal(number, 0), "Mean of empty slice")
    total = statistics.total_into(out, filled, axes, dtype, where)
    return finish(scalar_of(in_order_of(_over_count(total, number), total)), shape, axes, keepdims, out)


def _nan_variance(
    filled: Array, mask: Array, axes: Any, dtype: Any, ddof: Any, where: Any, center: Any, out: Any
) -> Array:
    shape = shape_of(filled)
    dtype = None if dtype is None else np.dtype(dtype)
    number = _count_valid(mask, axes, where)
    ones_shape = shapes.ones_at(shape, axes)
    if not is_given(center):
        total = total_of(filled, axes, dtype, NO_VALUE, where)
        center = shapes.reshape(_over_count(total, number), shape=ones_shape)
    gap = to_dtype(ops.subtract(filled, operand(center)), dtype_of(filled))
    gap = shapes.where(mask, shapes.full_like(gap, 0, ()), gap)
    squares = ops.real(ops.multiply(gap, ops.conjugate(gap))) if dtype_of(gap).kind == "c" else ops.multiply(gap, gap)
    total = statistics.total_into(out, squares, axes, dtype, where)
    freedom = ops.subtract(number, ddof)
    bad = ops.less_equal(freedom, 0)
    statistics.warn_where(bad, "Degrees of freedom <= 0 for slice.")
    safe = shapes.where(bad, shapes.full_like(freedom, 1, ()), freedom)
    result = shapes.where(bad, shapes.full_like(total, np.nan, ()), statistics.divided(total, safe))
    return in_order_of(result, total)


def _spread(original: F, reduction: Callable[..., Array], is_root: bool, doc: str) -> F:
    @member(original, doc)
    def spread(
        a: Array,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = NO_VALUE,
        *,
        where: Any = NO_VALUE,
        mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Array:
        filled, mask = without_nan(a, 0)
        if mask is None:
            return reduction(filled, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
        _check_inexact(dtype, out)
        axes = reduction_axes(axis, len(shape_of(filled)))
        squared = _nan_variance(filled, mask, axes, dtype, statistics.freedom(ddof, correction), where, mean, out)
        result = statistics.root_of(squared) if is_root else squared
        return finish(scalar_of(result), shape_of(filled), axes, keepdims, out)

    return spread


nanvar = _spread(np.nanvar, statistics.var, False, "The variance of the elements that are not NaN, as numpy.nanvar.")
nanstd = _spread(
    np.nanstd,
    statistics.std,
    True,
    "The standard deviation without NaN, as numpy.nanstd; its derivative at zero is zero.",
)


def _extreme(original: F, ufunc: Any, fill: float, doc: str) -> F:
    """An extremum with NaN replaced by `fill`; NaN where all elements are NaN."""

    @member(original, doc)
    def extreme(
        a: Array,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Array:
        filled, mask = without_nan(a, fill)
        shape = shape_of(filled)
        axes = reduction_axes(axis, len(shape))
        loop = reductions.loop_dtype(ufunc, filled, None, out)
        is_missing = not is_given(initial)
        if mask is None and not is_missing and loop is not None and is_inexact(loop):
            mask = ops.isnan(to_dtype(filled, loop))  # of integers whose result is floating-point
        if mask is not None and not is_missing and is_inexact(dtype_of(initial := operand(initial))):
            # An initial value of NaN is ignored too.
            is_missing = ops.isnan(initial)
            initial = shapes.where(is_missing, shapes.full_like(initial, fill, ()), initial)
        result = reductions.extremum(to_dtype(filled, loop), axes, ufunc.__name__, initial, where, out)
        if mask is not None:
            counted = mask_for(filled, where)
            if counted is not None:
                mask = ops.logical_or(mask, ops.logical_not(counted))
            if is_missing is not False:
                all_nan = ops.logical_and(reduce_all(mask, axes=axes), is_missing)
                result = shapes.where(all_nan, shapes.full_like(result, np.nan, ()), result)
            statistics.warn_where(ops.isnan(result), "All-NaN slice encountered")
        return finish(scalar_of(result), shape, axes, keepdims, out)

    return extreme


nanmax = _extreme(np.nanmax, np.maximum, -np.inf, "The largest element that is not NaN, as numpy.nanmax.")
nanmin = _extreme(np.nanmin, np.minimum, np.inf, "The smallest element that is not NaN, as numpy.nanmin.")


def _position(original: F, reduction: Callable[..., Array], fill: float, doc: str) -> F:
    @member(original, doc)
    def position(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
        filled, mask = without_nan(a, fill)
        if mask is not None:
            axes = reduction_axes(axis, len(shape_of(mask)))
            known = known_value(reduce_all(mask, axes=axes)) if all(shape_of(mask)) else None
            if known is not None and np.any(known):
                raise ValueError("All-NaN slice encountered")
        return reduction(filled, axis, out, keepdims=keepdims)

    return position


nanargmax = _position(
    np.nanargmax,
    reductions.argmax,
    -np.inf,
    "The index of the largest element that is not NaN, as numpy.nanargmax.",
)
nanargmin = _position(
    np.nanargmin,
    reductions.argmin,
    np.inf,
    "The index of the smallest element that is not NaN, as numpy.nanargmin.",
)
