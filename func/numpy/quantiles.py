"""Medians, quantiles and percentiles, also of the elements that are not NaN.

The functions sort and interpolate as NumPy does, so that values agree to the bit. If NaN is ignored, the number of
elements is an array with one entry for each slice.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import memory_order_of
from func.interpreters.core import Array, dtype_of, is_inexact, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import cumulative, shapes
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.sorting import reorder
from func.numpy import statistics
from func.numpy.argument_checks import (
    NO_VALUE,
    arrayed,
    as_array,
    count,
    normalize_axes,
    scalar_of,
    to_dtype,
    weak_kind,
)
from func.numpy.indexing import cut, entry
from func.numpy.memory import in_order, is_plain, with_axes, with_order_of
from func.numpy.nanfunctions import nanmean
from func.numpy.protocol import F, implements, member
from func.numpy.reductions import deliver, deliver_taken, finish
from func.numpy.sorting import argsort, sort


def _sample_first(a: Array, axes: tuple[int, ...]) -> Array:
    """The array with the reduced axes merged into one axis in front."""
    shape = shape_of(a)
    remaining = [axis for axis in range(len(shape)) if axis not in axes]
    a = arrayed(a)
    reordered = a if (*axes, *remaining) == tuple(range(len(shape))) else shapes.permute(a, order=(*axes, *remaining))
    return shapes.reshape(reordered, shape=(count([shape[i] for i in axes]), *[shape[i] for i in remaining]))


def _take_places(ordered: Array, places: Array) -> Array:
    """ordered[places] along the first axis; places have shape (..., 1, ..., 1), or differ between slices."""
    rest = shape_of(ordered)[1:]
    if not rest or shape_of(places)[-len(rest) :] == (1,) * len(rest):
        batch = shape_of(places)[: len(shape_of(places)) - len(rest)]
        return gather(ordered, shapes.reshape(places, shape=batch), axis=0)
    full = np.broadcast_shapes(shape_of(places), rest)
    grids = [np.arange(n).reshape(-1, *[1] * (len(rest) - 1 - i)) for i, n in enumerate(rest)]
    return gather(ordered, *[shapes.broadcast(index, shape=full) for index in (places, *grids)], axis=0)


def _has_nan(ordered: Array) -> Array:
    """Whether each slice of the sorted sample holds NaN, which sorts to the end."""
    return ops.isnan(entry(ordered, -1))


@implements(np.median)
def median(a: Array, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The median, as numpy.median; the derivative goes to the middle element, or half each to the middle two."""
    a = operand(a)
    shape = shape_of(a)
    axes = normalize_axes(axis, len(shape))
    if axis == () and count(shape) == 0:
        raise ValueError("cannot reshape array of size 0")
    sample = _sample_first(a, axes)
    n = shape_of(sample)[0]
    if n == 0:
        return finish(statistics.mean(sample, 0), shape, axes, keepdims, out)
    ordered = sort(sample, 0)
    wide = np.float32 if out is not None and dtype_of(a) == np.float16 else None
    result = statistics.mean(cut(ordered, 0, (n - 1) // 2, n // 2 + 1), 0, wide)
    if is_inexact(dtype_of(a)):
        result = shapes.where(_has_nan(ordered), entry(ordered, -1), result)
    return finish(as_array(result) if keepdims is True else scalar_of(result), shape, axes, keepdims, out)


@implements(np.nanmedian)
def nanmedian(
    a: Array, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = NO_VALUE
) -> Array:
    """The median of the elements that are not NaN, as numpy.nanmedian."""
    a = operand(a)
    if not is_inexact(dtype_of(a)) or count(shape_of(a)) == 0:
        return (
            median(a, axis, out, keepdims=keepdims is True)
            if count(shape_of(a))
            else nanmean(a, axis, None, out, keepdims)
        )
    shape = shape_of(a)
    axes = normalize_axes(axis, len(shape))
    sample = _sample_first(a, axes)
    ordered = sort(sample, 0)
    number = shapes.reduce_sum(ops.logical_not(ops.isnan(sample)), axes=(0,), dtype=np.dtype(np.intp))
    below, above = [_take_places(ordered, ops.floor_divide(ops.maximum(ops.subtract(number, k), 0), 2)) for k in (1, 0)]
    pair = ops.divide(ops.add(_widened(below), _widened(above)), 2)
    result = shapes.where(ops.equal(ops.remainder(number, 2), 1), below, to_dtype(pair, dtype_of(a)))
    statistics.warn_where(ops.equal(number, 0), "All-NaN slice encountered")
    if len(shape) - len(axes) > 1 and not is_plain(a):
        is_small = math.prod([shape[i] for i in axes]) < 600  # NumPy goes through others one by one
        find = functools.partial(memory_order_of, functools.partial(np.nanmedian, axis=axes))
        result = with_order_of(result, find, [a]) if is_small else in_order(result, "C")
    return finish(as_array(result) if keepdims is True else scalar_of(result), shape, axes, keepdims, out)


def _widened(x: Array) -> Array:
    """float16 as float32, in which NumPy takes its means."""
    return shapes.convert(x, dtype=np.dtype(np.float32)) if dtype_of(x) == np.float16 else x


_ALPHA_BETA = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_METHODS = [
    *["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull"],
    *["linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"],
]


_DISCRETE = {"inverted_cdf", "closest_observation", "lower", "higher", "nearest"}
"""Methods that take an element of the sample."""


def _as_index(x: Array) -> Array:
    return shapes.convert(arrayed(x), dtype=np.dtype(np.intp))


def _boundary(index: Array, stays: Array) -> Array:
    """The index rounded down where `stays`, rounded down plus one elsewhere."""
    low = ops.floor(index)
    return ops.maximum(_as_index(shapes.where(stays, low, ops.add(low, 1))), 0)


def _virtual_place(n: Any, q: Array, method: str) -> Array:
    """The place of a quantile in the sorted sample; an integer if the method does not interpolate.

    Source: R. J. Hyndman, Y. Fan (1996), "Sample quantiles in statistical packages".
    """
    if method in _ALPHA_BETA:
        alpha, beta = _ALPHA_BETA[method]
        offset = ops.add(alpha, ops.multiply(q, 1 - alpha - beta))
        return ops.subtract(ops.add(ops.multiply(n, q), offset), 1)
    if method == "inverted_cdf":
        index = ops.subtract(ops.multiply(n, q), 1)
        return _boundary(index, ops.equal(ops.subtract(index, ops.floor(index)), 0))
    if method == "closest_observation":
        index = ops.subtract(ops.subtract(ops.multiply(n, q), 1), 0.5)
        is_odd = ops.equal(ops.remainder(ops.floor(index), 2), 1)
        return _boundary(index, ops.logical_and(ops.equal(ops.subtract(index, ops.floor(index)), 0), is_odd))
    if method == "averaged_inverted_cdf":
        return ops.subtract(ops.multiply(n, q), 1)
    place = ops.multiply(ops.subtract(n, 1), q)
    if method == "midpoint":
        return ops.multiply(0.5, ops.add(ops.floor(place), ops.ceil(place)))
    if method == "linear":
        return place
    return _as_index({"lower": ops.floor, "higher": ops.ceil, "nearest": ops.rint}[method](place))


def _share(gap: Array, place: Array, method: str) -> Array:
    """The weight of the upper neighbour."""
    if method == "averaged_inverted_cdf":
        return shapes.where(ops.equal(gap, 0), shapes.full_like(place, 0.5, ()), shapes.full_like(place, 1.0, ()))
    if method == "midpoint":
        whole = ops.equal(ops.remainder(place, 1), 0)
        return shapes.where(whole, shapes.full_like(place, 0.0, ()), shapes.full_like(place, 0.5, ()))
    return gap


def _between(ordered: Array, place: Array, n: Any, method: str, weak: bool) -> Array:
    """Interpolation between the neighbours of a place, from the nearer side as in NumPy."""
    low, last = ops.floor(place), ops.subtract(n, 1)
    above, below = ops.greater_equal(place, last), ops.less(place, 0)

    def neighbour(step: int) -> Array:
        inside = _as_index(shapes.where(ops.logical_or(above, below), 0, ops.add(low, step)))
        index = shapes.where(above, last, shapes.where(below, 0, inside))
        return _take_places(ordered, _as_index(ops.maximum(index, 0)))

    base = shapes.where(above, -1, shapes.where(below, 0, low))
    share = to_dtype(_share(ops.subtract(place, base), place, method), dtype_of(place))
    return _lerp(neighbour(0), neighbour(1), share, weak)


def _lerp(a: Array, b: Array, share: Array, weak: bool) -> Array:
    step, rest = ops.subtract(b, a), ops.subtract(1, share)
    upper = ops.greater_equal(share, 0.5)
    if weak:  # the share is a Python float in NumPy and takes the dtype of the elements
        dtype = dtype_of(a) if dtype_of(a).kind == "f" else np.dtype(np.float64)
        share, rest = to_dtype(share, dtype), to_dtype(rest, dtype)
    near = ops.add(a, ops.multiply(step, share))
    return shapes.where(upper, to_dtype(ops.subtract(b, ops.multiply(step, rest)), dtype_of(near)), near)


def _weighted_place(ordered_weights: Array, q: Array, valid: Any) -> Array:
    """The index of the first element at which the cumulative share of the weights reaches a quantile."""
    n = shape_of(ordered_weights)[0]
    cdf = cumulative.cumsum(to_dtype(ordered_weights, np.float64), axis=0, reverse=False)
    total = cut(cdf, 0, n - 1)
    known = known_value(total)
    if known is not None:
        no_weight = (known == 0) & (np.asarray(known_value(valid)) != 0)  # an empty one has none
        if np.isnan(known).any() or no_weight.any() or np.isinf(known).any():
            raise ValueError("Weights included NaN, inf or were all zero.")
    cdf = ops.divide(cdf, shapes.where(ops.equal(valid, 0), shapes.full_like(total, 1, ()), total))
    if dtype_of(q).kind == "f":
        cdf = to_dtype(cdf, dtype_of(q))
    cdf = shapes.where(ops.equal(cdf, 0), shapes.full_like(cdf, -1, ()), cdf)
    q_rank = len(shape_of(q)) - len(shape_of(cdf)) + 1
    aligned = shapes.reshape(cdf, shape=(n, *[1] * q_rank, *shape_of(cdf)[1:]))
    index = shapes.reduce_sum(ops.less(aligned, q), axes=(0,), dtype=np.dtype(np.intp))
    return ops.minimum(index, ops.maximum(ops.subtract(valid, 1), 0))


def _checked_q(q: Array, top: int) -> None:
    known = known_value(q)
    if known is not None and np.size(known) and not (np.min(known) >= 0 and np.max(known) <= 1):
        raise ValueError(f"{'Quantiles' if top == 1 else 'Percentiles'} must be in the range [0, {top}]")
    if len(shape_of(q)) > 2:
        raise ValueError("q must be a scalar or 1d")


def _checked_weights(weights: Any, a: Array, axis: Any, method: str) -> Array | None:
    if weights is None:
        return None
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    fitted = statistics.fit_weights(weights, a, axis)
    known = known_value(fitted)
    if known is not None and np.any(known < 0):
        raise ValueError("Weights must be non-negative.")
    return shapes.broadcast(fitted, shape=shape_of(a))


def _quantile(
    a: Any, q: Any, top: int, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, skip_nan: bool
) -> Array:
    a = operand(a)
    if dtype_of(a).kind == "c":
        raise TypeError("a must be an array of real numbers")
    weak = weak_kind(q) is not None
    q = arrayed(operand(q)) if top == 1 else arrayed(ops.divide(operand(q), top))
    _checked_q(q, top)
    weights = _checked_weights(weights, a, axis, method)
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {_METHODS}")
    shape = shape_of(a)
    if skip_nan and count(shape) == 0:
        return nanmean(a, axis, None, out, keepdims)
    axes = normalize_axes(axis, len(shape))
    if axis == () and count(shape) == 0:
        raise ValueError("cannot reshape array of size 0")
    sample = _sample_first(a, axes)
    if shape_of(sample)[0] == 0:
        raise IndexError("index -1 is out of bounds for axis 0 with size 0")
    aligned_q = shapes.reshape(q, shape=(*shape_of(q), *[1] * (len(shape_of(sample)) - 1)))
    inexact = is_inexact(dtype_of(a))
    result = _of_sample(sample, aligned_q, method, weak, skip_nan and inexact, weights, axes)
    if keepdims is True:
        ones_shape = [1 if i in axes else n for i, n in enumerate(shape)]
        result = shapes.reshape(arrayed(result), shape=(*shape_of(q), *ones_shape))
    rank = len(shape_of(result))
    if skip_nan and 0 < len(shape_of(q)) < rank:
        rest = (*range(len(shape_of(q)), rank), *range(len(shape_of(q))))  # NumPy makes them slice by slice
        result = with_axes(result, rest)
    elif not skip_nan:
        result = in_order(result, "C")
    if out is not None:
        is_taken = method in _DISCRETE or (method == "linear" and dtype_of(q).kind in "iu")
        exactly = is_taken and weights is None and not skip_nan  # by np.take in NumPy
        if exactly:
            return deliver_taken(result, out)
        is_sum = weights is None and not skip_nan  # by np.add in NumPy
        if is_sum and hasattr(out, "dtype") and not np.can_cast(dtype_of(result), dtype_of(out), "same_kind"):
            raise TypeError(
                f"Cannot cast quantiles from {dtype_of(result)!r} to {dtype_of(out)!r} with casting rule 'same_kind'"
            )
        return deliver(result, out)
    return scalar_of(result) if weights is None and keepdims is not True else as_array(result)


def _of_sample(
    sample: Array, q: Array, method: str, weak: bool, skip_nan: bool, weights: Any, axes: tuple[int, ...]
) -> Array:
    """Quantiles along the first axis, of all elements or of those that are not NaN."""
    n: Any = shape_of(sample)[0]
    nan = ops.isnan(sample) if is_inexact(dtype_of(sample)) else None
    if skip_nan:
        n = shapes.reduce_sum(ops.logical_not(nan), axes=(0,), dtype=np.dtype(np.intp))
        statistics.warn_where(ops.equal(n, 0), "All-NaN slice encountered")
        n = to_dtype(n, dtype_of(q))  # a Python int in NumPy, which takes the dtype of q
    if weights is None:
        ordered = sort(sample, 0)
        place = arrayed(_virtual_place(n, q, method))
    else:
        weights = _sample_first(weights, axes)
        if skip_nan:
            weights = shapes.where(nan, shapes.full_like(weights, 0, ()), weights)
        order = argsort(sample, 0)
        ordered, weights = (reorder(x, order, axis=0) for x in (sample, weights))
        place = _as_index(_weighted_place(weights, q, n))
    if dtype_of(place).kind in "iu" and (method not in _ALPHA_BETA):
        result = _take_places(ordered, ops.maximum(_as_index(place), 0) if skip_nan else _as_index(place))
    else:
        result = _between(ordered, place, n, method, weak)
    if nan is None or skip_nan:
        return result
    return shapes.where(_has_nan(ordered), entry(ordered, -1), result)


def _quantiles_of(original: F, top: int, skip_nan: bool, doc: str) -> F:
    @member(original, doc)
    def of_array(
        a: Array,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = NO_VALUE if skip_nan else False,
        *,
        weights: Any = None,
    ) -> Array:
        return _quantile(a, q, top, axis, out, method, keepdims, weights, skip_nan)

    return of_array


quantile = _quantiles_of(
    np.quantile,
    1,
    False,
    "Quantiles, as numpy.quantile; differentiable in the sample and, where the method interpolates, in q.",
)
percentile = _quantiles_of(np.percentile, 100, False, "Percentiles, as numpy.percentile: quantiles of q / 100.")
nanquantile = _quantiles_of(
    np.nanquantile, 1, True, "Quantiles of the elements that are not NaN, as numpy.nanquantile."
)
nanpercentile = _quantiles_of(
    np.nanpercentile, 100, True, "Percentiles of the elements that are not NaN, as numpy.nanpercentile."
)
