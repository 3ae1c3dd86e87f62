"""Sorting, searching and order statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, concrete, dtype_of, operand, shape_of
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives.reductions import argsort as argsort_row
from func.interpreters.primitives.structural import reduce_sum
from func.numpy.arguments import many_axes, one_axis, rank_of, refuse
from func.numpy.protocol import implements
from func.numpy.reductions import finish
from func.numpy.selection import take, take_along_axis
from func.numpy.shaping import expand_dims, moveaxis, ravel, reshape
from func.numpy.statistics import mean

__all__ = [
    "argpartition",
    "argsort",
    "bincount",
    "digitize",
    "lexsort",
    "median",
    "partition",
    "percentile",
    "quantile",
    "searchsorted",
    "sort",
    "unique",
]


@implements(np.argsort)
def argsort(a: Array, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """The order that sorts an axis."""
    refuse("argsort", order=(order, None))
    a = operand(a)
    if axis is None:
        a, axis = ravel(a), 0
    return argsort_row(a, axis=one_axis(axis, rank_of(a)), kind="stable" if stable else kind)


@implements(np.sort)
def sort(a: Array, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """The elements along an axis in ascending order; the derivative follows each element to its place."""
    refuse("sort", order=(order, None))
    a = operand(a)
    if axis is None:
        a, axis = ravel(a), 0
    return take_along_axis(a, argsort(a, axis, kind, stable=stable), axis)


@implements(np.argpartition)
def argpartition(a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """An order with the kth element in its sorted place (here: fully sorted)."""
    return argsort(a, axis, order=order)


@implements(np.partition)
def partition(a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The elements with the kth in its sorted place (here: fully sorted)."""
    return sort(a, axis, order=order)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Array:
    """The order that sorts by several keys, the last one first."""
    from func.numpy.creation import sequence

    return np.lexsort(tuple([concrete(operand(key)) for key in sequence(keys)]), axis)


@implements(np.searchsorted)
def searchsorted(a: Array, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Where values would be put into a sorted vector: the number of its elements before each."""
    a, v = operand(a), operand(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be one of 'left' or 'right' (got '{side}')")
    if sorter is not None:
        a = take(a, sorter, axis=0)
    v = v if hasattr(v, "shape") else np.asarray(v)
    before = (rows.less if side == "left" else rows.less_equal)(a, expand_dims(v, -1))
    return reduce_sum(before, axes=(rank_of(v),))


@implements(np.digitize)
def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    """The number of the bin that each element falls into."""
    edges = concrete(operand(bins))
    steps = np.diff(edges)
    if (steps < 0).any() and (steps > 0).any():
        raise ValueError("bins must be monotonically increasing or decreasing")
    if (steps < 0).any():
        return rows.subtract(len(edges), searchsorted(operand(bins)[::-1], x, "right" if not right else "left"))
    return searchsorted(bins, x, "left" if right else "right")


@implements(np.bincount)
def bincount(x: Array, /, weights: Any = None, minlength: int = 0) -> Array:
    """How often each integer occurs, or the sums of its weights, which are differentiable."""
    from func.interpreters.primitives.indexing import scatter_add
    from func.interpreters.primitives.structural import full_like

    x = operand(x)
    top = concrete(x)
    if dtype_of(x).kind not in "iub" or rank_of(x) != 1:
        raise TypeError("bincount needs a one-dimensional array of non-negative integers")
    if top.size and top.min() < 0:
        raise ValueError("'list' argument must have no negative elements")
    length = max(minlength, int(top.max()) + 1 if top.size else 0)
    values = np.ones(shape_of(x), np.intp) if weights is None else rows.multiply(operand(weights), 1.0)
    return scatter_add(full_like(values, 0, (length,)), values, x, axis=0)


@implements(np.unique)
def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements, sorted. Their number depends on the values: lanes of a vmap are parted."""
    ar = operand(ar)
    find: Any = np.unique
    _, first, *rest = find(concrete(ar), True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    values = take(ravel(ar), first, axis=0) if axis is None else take(ar, first, axis=axis)
    out = [values, *([first] if return_index else []), *rest]
    return out[0] if len(out) == 1 else tuple(out)


@implements(np.median)
def median(a: Array, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle of the sorted elements; of an even number the mean of the middle two."""
    a = operand(a)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    flat = _last(a, axes)
    n = shape_of(flat)[-1]
    ordered = sort(flat, -1)
    middle = ordered[..., n // 2 : n // 2 + 1] if n % 2 else ordered[..., n // 2 - 1 : n // 2 + 1]
    result = mean(middle, -1)
    if dtype_of(a).kind == "f":
        from func.numpy.selection import where

        result = where(rows.isnan(ordered[..., -1]), np.asarray(np.nan, dtype_of(a)), result)
    return finish(result, shape, axes, keepdims, out)


def _last(a: Array, axes: tuple[int, ...]) -> Array:
    """The given axes joined into the last one."""
    kept = [n for i, n in enumerate(shape_of(a)) if i not in axes]
    moved = moveaxis(a, axes, tuple(range(-len(axes), 0))) if axes else a
    return reshape(moved, (*kept, -1) if axes else (*kept, 1))


_ALPHA_BETA = {
    "linear": (1.0, 1.0),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}


@implements(np.quantile)
def quantile(
    a: Array,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    **rest: Any,
) -> Array:
    """Quantiles by interpolation between sorted elements; differentiable in a and q.

    Source of the methods: R. Hyndman, Y. Fan (1996), "Sample quantiles in statistical packages".
    """
    refuse("quantile", weights=(weights, None))
    a, q = operand(a), operand(q)
    shape = shape_of(a)
    axes = many_axes(axis, len(shape))
    ordered = sort(_last(a, axes), -1)
    n = shape_of(ordered)[-1]
    place = _virtual_place(q, n, method)
    low = rows.minimum(rows.maximum(rows.floor(place), 0), n - 1)
    high = rows.minimum(rows.add(low, 1), n - 1)
    share = rows.minimum(rows.maximum(rows.subtract(place, low), 0), 1)
    from func.numpy.creation import astype

    low_i, high_i = [astype(_arrayed(x), np.intp) for x in (low, high)]
    below, above = take(ordered, low_i, axis=-1), take(ordered, high_i, axis=-1)
    result = rows.add(below, rows.multiply(rows.subtract(above, below), share))
    moved = _q_first(result, rank_of(q))
    if keepdims:
        ones = tuple([1 if i in axes else m for i, m in enumerate(shape)])
        moved = reshape(moved, (*shape_of(q), *ones))
    return finish(moved, shape, axes, False, out)


def _arrayed(x: Any) -> Array:
    return x if hasattr(x, "dtype") else np.asarray(x)


def _virtual_place(q: Array, n: int, method: str) -> Array:
    if method in _ALPHA_BETA:
        alpha, beta = _ALPHA_BETA[method]
        return rows.subtract(rows.add(rows.multiply(q, n + 1 - alpha - beta), alpha), 1.0)
    place = rows.multiply(q, n - 1.0)
    if method == "lower":
        return rows.floor(place)
    if method == "higher":
        return rows.ceil(place)
    if method == "nearest":
        return rows.rint(place)
    if method == "midpoint":
        return rows.multiply(rows.add(rows.floor(place), rows.ceil(place)), 0.5)
    raise ValueError(f"np.quantile of a traced array does not know method={method!r}")


def _q_first(result: Array, rank: int) -> Array:
    total = rank_of(result)
    return moveaxis(result, tuple(range(total - rank, total)), tuple(range(rank))) if rank else result


@implements(np.percentile)
def percentile(
    a: Array,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **rest: Any,
) -> Array:
    """Percentiles: quantiles of q / 100."""
    return quantile(a, rows.divide(operand(q), 100), axis, out, overwrite_input, method, keepdims, **rest)
