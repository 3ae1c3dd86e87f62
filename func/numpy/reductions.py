"""Sums, products, extrema, means and variances, with NumPy's keywords; and running sums and products."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives import reductions as reduce_rows
from func.interpreters.primitives.structural import cumsum as cumsum_row
from func.interpreters.primitives.structural import ones_at, reduce_sum
from func.interpreters.primitives.structural import reshape as reshape_row
from func.interpreters.primitives.structural import where as where_row
from func.numpy.arguments import NO_VALUE, count, many_axes, one_axis, rank_of, to_dtype
from func.numpy.inplace import write_into
from func.numpy.protocol import implements
from func.numpy.shaping import ravel

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "nanargmax",
    "nanargmin",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def is_given(value: Any) -> bool:
    """Whether an optional keyword was given."""
    return value is not NO_VALUE and value is not None


def finish(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: Any, out: Any) -> Array:
    """Axes kept at length one if wanted, and the result written to `out`."""
    if is_given(keepdims) and keepdims:
        x = reshape_row(x if hasattr(x, "dtype") else np.asarray(x), shape=ones_at(shape, axes))
    return x if out is None else write_into(out, x)


def chosen(a: Array, where: Any, fill: Any) -> Array:
    """The elements that `where` keeps, the others replaced by a neutral one."""
    if not is_given(where) or where is True:
        return a
    return where_row(operand(where), a, np.asarray(fill, dtype_of(a)))


@implements(np.sum)
def sum(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The sum over axes."""
    a = chosen(to_dtype(operand(a), dtype), where, 0)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    total = reduce_sum(a, axes=axes)
    if is_given(initial):
        total = rows.add(total, operand(initial))
    return finish(total, shape, axes, keepdims, out)


@implements(np.prod)
def prod(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """The product over axes; its derivative is exact also where elements are zero."""
    a = chosen(to_dtype(operand(a), dtype), where, 1)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    total = reduce_rows.reduce_prod(a, axes=axes)
    if is_given(initial):
        total = rows.multiply(total, operand(initial))
    return finish(total, shape, axes, keepdims, out)


def _extremum(name: str, row: Any, pick: Any, worst: float) -> Callable[..., Array]:
    def extremum(
        a: Array,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Array:
        a = operand(a)
        if is_given(where) and where is not True:
            if not is_given(initial):
                raise ValueError(f"reduction operation '{name}' does not have an identity, so where= needs initial=")
            a = chosen(a, where, initial)
        shape = shape_of(a)
        axes = many_axes(axis, len(shape))
        if builtins.any([shape[i] == 0 for i in axes]) and not is_given(initial):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        result = row(a, axes=axes) if count(shape) else np.full([n for i, n in enumerate(shape) if i not in axes], worst)
        if is_given(initial):
            result = pick(result, operand(initial))
        return finish(result, shape, axes, keepdims, out)

    extremum.__name__ = name
    extremum.__doc__ = f"The {name}imum over axes; equal elements share the derivative."
    return extremum


max = implements(np.max, np.amax)(_extremum("max", reduce_rows.reduce_max, rows.maximum, -np.inf))
min = implements(np.min, np.amin)(_extremum("min", reduce_rows.reduce_min, rows.minimum, np.inf))
amax = max
amin = min


@implements(np.ptp)
def ptp(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The largest minus the smallest element."""
    spread = rows.subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    return spread if out is None else write_into(out, spread)


def _logical(row: Any, neutral: bool) -> Callable[..., Array]:
    def logical(
        a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
    ) -> Array:
        a = operand(a)
        if dtype_of(a).kind != "b":
            a = rows.not_equal(a, 0)
        a = chosen(a, where, neutral)
        axes = many_axes(axis, rank_of(a))
        return finish(row(a, axes=axes), shape_of(a), axes, keepdims, out)

    return logical


any = implements(np.any)(_logical(reduce_rows.reduce_any, False))
all = implements(np.all)(_logical(reduce_rows.reduce_all, True))


def _position(row: Any) -> Callable[..., Array]:
    def position(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
        a = operand(a)
        shape = shape_of(a)
        if count(shape) == 0:
            raise ValueError("attempt to get the position of an extremum of an empty sequence")
        if axis is None:
            return finish(row(ravel(a), axis=0), shape, tuple(range(len(shape))), keepdims, out)
        place = one_axis(axis, len(shape))
        return finish(row(a, axis=place), shape, (place,), keepdims, out)

    return position


argmax = implements(np.argmax)(_position(reduce_rows.argmax))
argmin = implements(np.argmin)(_position(reduce_rows.argmin))


# --- means and variances ----------------------------------------------------------------------------------------


def _mean_dtypes(a: Array, dtype: Any) -> tuple[Any, Any]:
    """(accumulate in, give back as): integers as float64, float16 summed in float32."""
    if dtype is not None:
        return np.dtype(dtype), None
    kind = dtype_of(a)
    if kind.kind in "iub":
        return np.dtype(np.float64), None
    return (np.dtype(np.float32), kind) if kind == np.float16 else (None, None)


@implements(np.mean)
def mean(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Array:
    """The arithmetic mean over axes."""
    a = operand(a)
    wide, narrow = _mean_dtypes(a, dtype)
    a = to_dtype(a, wide)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    number: Any = count([shape[i] for i in axes])
    if is_given(where) and where is not True:
        from func.numpy.shaping import broadcast_to

        number = sum(broadcast_to(where, shape), axes)
    total = reduce_sum(chosen(a, where, 0), axes=axes)
    return finish(to_dtype(rows.divide(total, number), narrow), shape, axes, keepdims, out)


@implements(np.var)
def var(
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
    """The variance over axes, with count - ddof in the denominator."""
    from func.numpy.ufuncs import absolute

    a = operand(a)
    wide, narrow = _mean_dtypes(a, dtype)
    a = to_dtype(a, wide)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    ddof = correction if is_given(correction) else ddof
    number: Any = count([shape[i] for i in axes])
    if is_given(where) and where is not True:
        from func.numpy.shaping import broadcast_to

        number = sum(broadcast_to(where, shape), axes, keepdims=True)
    center = mean
    if not is_given(mean):
        center = rows.divide(sum(a, axes, keepdims=True, where=where), number)
    gap = rows.subtract(a, center)
    if dtype_of(gap).kind == "c":
        squares = rows.add(rows.square(rows.real(gap)), rows.square(rows.imag(gap)))
    else:
        squares = rows.multiply(gap, gap)
    total = reduce_sum(chosen(squares, where, 0), axes=axes)
    if not isinstance(number, int):
        number = reshape_row(number, shape=shape_of(total))
    denominator = rows.maximum(rows.subtract(number, ddof), 0) if not isinstance(number, int) else builtins.max(number - ddof, 0)
    del absolute
    return finish(to_dtype(rows.divide(total, denominator), narrow), shape, axes, keepdims, out)


@implements(np.std)
def std(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = NO_VALUE,
    **options: Any,
) -> Array:
    """The standard deviation over axes; its derivative is zero where all elements are equal."""
    spread = var(a, axis, dtype, None, ddof, keepdims, **options)
    flat = rows.equal(spread, 0)
    one = np.ones((), dtype_of(spread))
    root = where_row(flat, rows.multiply(spread, 0), rows.sqrt(where_row(flat, one, spread)))
    return root if out is None else write_into(out, root)


@implements(np.average)
def average(a: Array, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE) -> Any:
    """The weighted mean over axes."""
    a = operand(a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        axes = many_axes(axis, rank_of(a))
        scale: Any = rows.multiply(rows.add(rows.multiply(result, 0), 1), float(count([shape_of(a)[i] for i in axes])))
    else:
        weights = operand(weights)
        if shape_of(weights) != shape_of(a):
            if axis is None or rank_of(weights) != 1:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            place = one_axis(axis, rank_of(a))
            if shape_of(weights)[0] != shape_of(a)[place]:
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            weights = reshape_row(
                weights, shape=tuple([n if i == place else 1 for i, n in enumerate(shape_of(a))])
            )
            from func.numpy.shaping import broadcast_to

            weights = broadcast_to(weights, shape_of(a))
        scale = sum(weights, axis, keepdims=keepdims)
        result = rows.divide(sum(rows.multiply(a, weights), axis, keepdims=keepdims), scale)
    return (result, scale) if returned else result


# --- ignoring NaN -----------------------------------------------------------------------------------------------


def _without_nan(a: Any, fill: Any) -> tuple[Array, Array]:
    a = operand(a)
    mask = rows.isnan(a) if dtype_of(a).kind in "fc" else rows.not_equal(a, a)
    return where_row(mask, np.asarray(fill, dtype_of(a)), a), mask


@implements(np.nansum)
def nansum(a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The sum of the elements that are not NaN."""
    return sum(_without_nan(a, 0)[0], axis, dtype, out, keepdims)


@implements(np.nanprod)
def nanprod(a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The product of the elements that are not NaN."""
    return prod(_without_nan(a, 1)[0], axis, dtype, out, keepdims)


@implements(np.nancumsum)
def nancumsum(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """The running sum, NaN counted as zero."""
    return cumsum(_without_nan(a, 0)[0], axis, dtype, out)


@implements(np.nanmean)
def nanmean(a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The mean of the elements that are not NaN."""
    filled, mask = _without_nan(a, 0)
    number = sum(rows.logical_not(mask), axis, keepdims=keepdims)
    result = rows.divide(sum(filled, axis, dtype, None, keepdims), number)
    return result if out is None else write_into(out, result)


@implements(np.nanvar)
def nanvar(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = NO_VALUE
) -> Array:
    """The variance of the elements that are not NaN."""
    filled, mask = _without_nan(a, 0)
    result = var(filled, axis, dtype, None, ddof, keepdims, where=rows.logical_not(mask))
    return result if out is None else write_into(out, result)


@implements(np.nanstd)
def nanstd(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = NO_VALUE
) -> Array:
    """The standard deviation of the elements that are not NaN."""
    return rows.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims))


@implements(np.nanmax)
def nanmax(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The largest element that is not NaN."""
    return max(_without_nan(a, -np.inf)[0], axis, out, keepdims)


@implements(np.nanmin)
def nanmin(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The smallest element that is not NaN."""
    return min(_without_nan(a, np.inf)[0], axis, out, keepdims)


@implements(np.nanargmax)
def nanargmax(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
    """The place of the largest element that is not NaN."""
    return argmax(_without_nan(a, -np.inf)[0], axis, out, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
    """The place of the smallest element that is not NaN."""
    return argmin(_without_nan(a, np.inf)[0], axis, out, keepdims=keepdims)


# --- running sums and products ----------------------------------------------------------------------------------


def _running(row: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def running(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
        a = to_dtype(operand(a), dtype)
        if axis is None:
            a, axis = ravel(a), 0
        result = row(a, one_axis(axis, rank_of(a)))
        return result if out is None else write_into(out, result)

    return running


cumsum = implements(np.cumsum)(_running(lambda a, axis: cumsum_row(a, axis=axis, reverse=False)))
cumprod = implements(np.cumprod)(_running(lambda a, axis: reduce_rows.cumprod(a, axis=axis)))


def _cumulative(running: Callable[..., Array], first: int) -> Callable[..., Array]:
    def cumulative(
        x: Array, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Array:
        x = operand(x)
        if axis is None:
            if rank_of(x) > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        result = running(x, axis, dtype, out)
        if include_initial:
            from func.numpy.joining import concatenate

            shape = [1 if i == axis % rank_of(x) else n for i, n in enumerate(shape_of(x))]
            result = concatenate([np.full(shape, first, dtype_of(result)), result], axis)
        return result

    return cumulative


cumulative_sum = _cumulative(cumsum, 0)
cumulative_prod = _cumulative(cumprod, 1)
if hasattr(np, "cumulative_sum"):
    implements(np.cumulative_sum)(cumulative_sum)
    implements(np.cumulative_prod)(cumulative_prod)
