"""Reductions that ignore NaN; the derivative with respect to a NaN element is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, is_inexact, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.reductions import reduce_all
from func.numpy import cumulative, reductions, statistics
from func.numpy.argument_checks import NO_VALUE, scalar_of, to_dtype
from func.numpy.memory import like_copy
from func.numpy.protocol import implements
from func.numpy.reductions import finish, is_given, mask_for, reduction_axes, total_of


def without_nan(a: Any, fill: Any) -> tuple[Array, Array | None]:
    """The array with NaN replaced, and the mask of NaN (None for dtypes without NaN)."""
    a = operand(a)
    if not is_inexact(dtype_of(a)):
        return a, None
    mask = ops.isnan(a)
    return like_copy(shapes.where(mask, shapes.full_like(a, fill, ()), a), a), mask


@implements(np.nansum)
def nansum(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The sum of the elements that are not NaN, as numpy.nansum."""
    return reductions.sum(without_nan(a, 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The product of the elements that are not NaN, as numpy.nanprod."""
    return reductions.prod(without_nan(a, 1)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nancumsum)
def nancumsum(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """The cumulative sum, with NaN as zero, as numpy.nancumsum."""
    return cumulative.cumsum(without_nan(a, 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """The cumulative product, with NaN as one, as numpy.nancumprod."""
    return cumulative.cumprod(without_nan(a, 1)[0], axis, dtype, out)


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
    return finish(scalar_of(like_copy(_over_count(total, number), total)), shape, axes, keepdims, out)


def _nan_variance(
    filled: Array, mask: Array, axes: Any, dtype: Any, ddof: Any, where: Any, center: Any, out: Any
) -> Array:
    shape = shape_of(filled)
    dtype = None if dtype is None else np.dtype(dtype)
    number = _count_valid(mask, axes, where)
    kept_shape = shapes.ones_at(shape, axes)
    if not is_given(center):
        total = total_of(filled, axes, dtype, NO_VALUE, where)
        center = shapes.reshape(_over_count(total, number), shape=kept_shape)
    gap = to_dtype(ops.subtract(filled, operand(center)), dtype_of(filled))
    gap = shapes.where(mask, shapes.full_like(gap, 0, ()), gap)
    squares = ops.real(ops.multiply(gap, ops.conjugate(gap))) if dtype_of(gap).kind == "c" else ops.multiply(gap, gap)
    total = statistics.total_into(out, squares, axes, dtype, where)
    freedom = ops.subtract(number, ddof)
    bad = ops.less_equal(freedom, 0)
    statistics.warn_where(bad, "Degrees of freedom <= 0 for slice.")
    safe = shapes.where(bad, shapes.full_like(freedom, 1, ()), freedom)
    result = shapes.where(bad, shapes.full_like(total, np.nan, ()), statistics.divided(total, safe))
    return like_copy(result, total)


@implements(np.nanvar)
def nanvar(
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
    """The variance of the elements that are not NaN, as numpy.nanvar."""
    filled, mask = without_nan(a, 0)
    if mask is None:
        return statistics.var(filled, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    axes = reduction_axes(axis, len(shape_of(filled)))
    ddof = statistics.freedom(ddof, correction)
    result = _nan_variance(filled, mask, axes, dtype, ddof, where, mean, out)
    return finish(scalar_of(result), shape_of(filled), axes, keepdims, out)


@implements(np.nanstd)
def nanstd(
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
    """The standard deviation without NaN, as numpy.nanstd; its derivative at zero is zero."""
    filled, mask = without_nan(a, 0)
    if mask is None:
        return statistics.std(filled, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    axes = reduction_axes(axis, len(shape_of(filled)))
    ddof = statistics.freedom(ddof, correction)
    squared = _nan_variance(filled, mask, axes, dtype, ddof, where, mean, out)
    return finish(scalar_of(statistics.root_of(squared)), shape_of(filled), axes, keepdims, out)


def _nan_extremum(
    a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str, fill: float
) -> Array:
    """An extremum with NaN replaced by `fill`; NaN where all elements are NaN."""
    filled, mask = without_nan(a, fill)
    shape = shape_of(filled)
    axes = reduction_axes(axis, len(shape))
    loop = reductions.loop_dtype(getattr(np, name), filled, None, out)
    is_missing = not is_given(initial)
    if mask is None and not is_missing and loop is not None and is_inexact(loop):
        mask = ops.isnan(to_dtype(filled, loop))  # of integers whose result is floating-point
    if mask is not None and not is_missing and is_inexact(dtype_of(initial := operand(initial))):
        # An initial value of NaN is ignored too.
        is_missing = ops.isnan(initial)
        initial = shapes.where(is_missing, shapes.full_like(initial, fill, ()), initial)
    result = reductions.extremum(to_dtype(filled, loop), axes, name, initial, where, out)
    if mask is not None:
        counted = mask_for(filled, where)
        if counted is not None:
            mask = ops.logical_or(mask, ops.logical_not(counted))
        if is_missing is not False:
            all_nan = ops.logical_and(reduce_all(mask, axes=axes), is_missing)
            result = shapes.where(all_nan, shapes.full_like(result, np.nan, ()), result)
        statistics.warn_where(ops.isnan(result), "All-NaN slice encountered")
    return finish(scalar_of(result), shape, axes, keepdims, out)


@implements(np.nanmax)
def nanmax(
    a: Array,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The largest element that is not NaN, as numpy.nanmax."""
    return _nan_extremum(a, axis, out, keepdims, initial, where, "maximum", -np.inf)


@implements(np.nanmin)
def nanmin(
    a: Array,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The smallest element that is not NaN, as numpy.nanmin."""
    return _nan_extremum(a, axis, out, keepdims, initial, where, "minimum", np.inf)


def _refuse_all_nan(mask: Array | None, axis: Any) -> None:
    if mask is None:
        return
    axes = reduction_axes(axis, len(shape_of(mask)))
    known = known_value(reduce_all(mask, axes=axes)) if all(shape_of(mask)) else None
    if known is not None and np.any(known):
        raise ValueError("All-NaN slice encountered")


@implements(np.nanargmax)
def nanargmax(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
    """The index of the largest element that is not NaN, as numpy.nanargmax."""
    filled, mask = without_nan(a, -np.inf)
    _refuse_all_nan(mask, axis)
    return reductions.argmax(filled, axis, out, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
    """The index of the smallest element that is not NaN, as numpy.nanargmin."""
    filled, mask = without_nan(a, np.inf)
    _refuse_all_nan(mask, axis)
    return reductions.argmin(filled, axis, out, keepdims=keepdims)
