"""Histograms: differentiable in the weights and, through the edges, in the sample; counts are piecewise constant."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import cumulative, shapes, slicing
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.reductions import argsort
from func.interpreters.primitives.structural.sorting import reorder, search
from func.numpy import reductions
from func.numpy.argument_checks import arrayed, common, count, flattened, host_values, rank_of, to_dtype, weak_kind
from func.numpy.grids import linspace
from func.numpy.indexing import cut
from func.numpy.interpolation import diff
from func.numpy.protocol import implements
from func.numpy.sorting import sort

_BLOCK = 65536
_axes_of = range
"""The builtin `range`, which parameters of this name hide."""


def _all_known(values: Sequence[Any]) -> bool:
    return not [value for value in values if value is None]


def _outer_edges(a: Array, range: Any) -> tuple[Array, Array]:
    """The first and the last edge: `range` or that of the sample, widened if it is empty."""
    if range is not None:
        first, last = range
        known = [known_value(edge) for edge in (first, last)]
        if _all_known(known) and np.any(known[0] > known[1]):
            raise ValueError("max must be larger than min in range parameter.")
        origin = "supplied"
    elif count(shape_of(a)) == 0:
        return 0, 1
    else:
        first, last = reductions.min(a), reductions.max(a)
        origin = "autodetected"
    known = [known_value(edge) for edge in (first, last)]
    if _all_known(known) and not all([bool(np.isfinite(edge).all()) for edge in known]):
        raise ValueError(f"{origin} range of [{known[0]}, {known[1]}] is not finite")
    same = ops.equal(first, last)
    if type(same) in (bool, np.bool_) and not same:
        return first, last
    return (
        shapes.where(same, ops.subtract(first, 0.5), first),
        shapes.where(same, ops.add(last, 0.5), last),
    )


def _edges(a: Array, bins: Any, range: Any, weights: Any) -> tuple[Array, int | None]:
    """The edges of the bins, and the number of bins if they are equally wide."""
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
        known = host_values(a)
        fixed: Any = None if range is None else tuple([host_values(edge) for edge in range])
        bins = len(np.histogram_bin_edges(known, bins, fixed)) - 1
    if rank_of(operand(bins)) == 0:
        try:
            number = operator.index(bins)
        except TypeError as error:
            raise TypeError("`bins` must be an integer, a string, or an array") from error
        if number < 1:
            raise ValueError("`bins` must be positive, when an integer")
        first, last = _outer_edges(a, range)
        dtype = np.result_type(*[kind(1) if (kind := weak_kind(x)) else dtype_of(x) for x in (first, last, a)])
        if dtype.kind in "iub":
            dtype = np.result_type(dtype, float)
        edges = linspace(first, last, number + 1, endpoint=True, dtype=dtype)
        known = known_value(edges)
        if known is not None and np.any(known[..., :-1] >= known[..., 1:]):
            raise ValueError(f"Too many bins for data range. Cannot create {number} finite-sized bins.")
        return edges, number
    edges = operand(bins)
    if rank_of(edges) != 1:
        raise ValueError("`bins` must be 1d, when an array")
    known = known_value(edges)
    if known is not None and np.any(known[..., :-1] > known[..., 1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges, None


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of a histogram's bins, as numpy.histogram_bin_edges."""
    sample, weights = _sample(a, weights)
    return _edges(sample, bins, range, weights)[0]


def _sample(a: Any, weights: Any) -> tuple[Array, Array | None]:
    a = arrayed(operand(a))
    if dtype_of(a).kind == "b":
        a = to_dtype(a, np.uint8)
    if weights is None:
        return flattened(a), None
    weights = arrayed(operand(weights))
    if shape_of(weights) != shape_of(a):
        raise ValueError("weights should have the same shape as a.")
    return flattened(a), flattened(weights)


def _blocks(*arrays: Array | None) -> list[list[Array | None]]:
    """Arrays split into the blocks of NumPy's sums."""
    n = shape_of(arrays[0])[0]
    starts = range(0, n, _BLOCK) if n > _BLOCK else [0]
    return [[None if x is None else cut(x, 0, start, min(start + _BLOCK, n)) for x in arrays] for start in starts]


def _total(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = ops.add(total, part)
    return total


def _added(place: Array, weights: Array | None, number: int, dtype: Any) -> Array:
    """Ones or weights summed at places; the place `number` is outside."""
    values = shapes.full_like(place, 1, None, dtype) if weights is None else to_dtype(weights, dtype)
    return cut(scatter_add(shapes.full_like(place, 0, (number + 1,), dtype), values, place, axis=0), 0, 0, number)


def _even_counts(a: Array, edges: Array, number: int, weights: Array | None, dtype: Any) -> Array:
    """The histogram of equally wide bins."""
    parts = []
    for block, block_weights in _blocks(a, weights):
        block = to_dtype(block, dtype_of(edges))
        place = ops.subtract(search(edges, block, side="right", batch_rank=0), 1)
        first, last = slicing.getitem(edges, index=(0,)), slicing.getitem(edges, index=(number,))
        place = shapes.where(ops.equal(block, last), number - 1, place)
        inside = ops.logical_and(ops.greater_equal(block, first), ops.less_equal(block, last))
        place = shapes.where(inside, place, number)
        parts.append(_added(place, block_weights, number, dtype))
    return _total(parts)


def _uneven_counts(a: Array, edges: Array, weights: Array | None, dtype: Any) -> Array:
    """The histogram of bins of any width: differences of the cumulative histogram, as in NumPy."""
    parts = []
    for block, block_weights in _blocks(a, weights):
        if block_weights is None:
            ordered, below = sort(block, 0), None
        else:
            order = argsort(block, axis=0, kind=None)
            ordered = reorder(block, order, axis=0)
            running = cumulative.cumsum(to_dtype(reorder(block_weights, order, axis=0), dtype), axis=0, reverse=False)
            below = slicing.concatenate(shapes.full_like(running, 0, (1,)), running, axis=0)
        n = shape_of(edges)[0]
        places = slicing.concatenate(
            search(ordered, cut(edges, 0, 0, n - 1), side="left", batch_rank=0),
            search(ordered, cut(edges, 0, n - 1), side="right", batch_rank=0),
            axis=0,
        )
        parts.append(places if below is None else gather(below, places, axis=0))
    counts = diff(_total(parts))
    return counts if weights is None else to_dtype(counts, dtype)


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array]:
    """The count or weight of each bin, and the edges, as numpy.histogram; differentiable in the weights."""
    a, weights = _sample(a, weights)
    edges, number = _edges(a, bins, range, weights)
    dtype = np.dtype(np.intp) if weights is None else dtype_of(weights)
    simple = weights is None or np.can_cast(dtype, np.double) or dtype.kind == "c"
    if number is not None and simple:
        wide = dtype if weights is None else np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
        counts = to_dtype(_even_counts(a, edges, number, weights, wide), dtype)
    else:
        counts = _uneven_counts(a, edges, weights, dtype)
    if density:
        counts = ops.divide(ops.divide(counts, to_dtype(diff(edges), float)), shapes.reduce_sum(counts, axes=(0,)))
    return counts, edges


def _columns(sample: Any) -> list[Array]:
    """The coordinates of the sample, each a vector."""
    if isinstance(sample, (list, tuple)):
        return common([flattened(operand(column)) for column in sample])
    sample = operand(sample)
    if rank_of(sample) != 2:
        return [flattened(sample)]
    points, dimensions = shape_of(sample)
    return [slicing.getitem(sample, index=((0, points, 1), i)) for i in range(dimensions)]


def _grid_edges(columns: Sequence[Array], bins: Any, ranges: Any) -> list[Array]:
    try:
        bins_per_axis = list(bins)
    except TypeError:
        bins_per_axis = [bins] * len(columns)
    if len(bins_per_axis) != len(columns):
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * len(columns) if ranges is None else list(ranges)
    if len(ranges) != len(columns):
        raise ValueError("range argument must have one entry per dimension")
    edges = []
    for i, (column, number, bounds) in enumerate(zip(columns, bins_per_axis, ranges, strict=True)):
        if rank_of(operand(number)) == 0:
            if number < 1:
                raise ValueError(f"`bins[{i}]` must be positive, when an integer")
            first, last = _outer_edges(column, bounds)
            edges.append(linspace(first, last, operator.index(number) + 1))
        elif rank_of(operand(number)) == 1:
            known = known_value(operand(number))
            if known is not None and np.any(known[..., :-1] > known[..., 1:]):
                raise ValueError(f"`bins[{i}]` must be monotonically increasing, when an array")
            edges.append(operand(number))
        else:
            raise ValueError(f"`bins[{i}]` must be a scalar or 1d array")
    return edges


@implements(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """The count or weight of each bin, and the edges of each dimension, as numpy.histogramdd."""
    columns = _columns(sample)
    edges = _grid_edges(columns, bins, range)
    sizes = [shape_of(edge)[0] - 1 for edge in edges]
    place: Any = 0
    outside: Any = np.False_
    for column, edge, size in zip(columns, edges, sizes, strict=True):
        bin_number = ops.subtract(search(edge, column, side="right", batch_rank=0), 1)
        bin_number = shapes.where(ops.equal(column, slicing.getitem(edge, index=(size,))), size - 1, bin_number)
        outside = ops.logical_or(outside, ops.logical_or(ops.less(bin_number, 0), ops.greater_equal(bin_number, size)))
        place = ops.add(ops.multiply(place, size), bin_number)
    place = shapes.where(outside, count(sizes), place)
    weights = None if weights is None else flattened(operand(weights))
    counts = shapes.reshape(_added(place, weights, count(sizes), np.dtype(np.float64)), shape=tuple(sizes))
    if density:
        total = shapes.reduce_sum(counts, axes=tuple(_axes_of(len(sizes))))
        for i, edge in enumerate(edges):
            shape = tuple([size if i == k else 1 for k, size in enumerate(sizes)])
            counts = ops.divide(counts, shapes.reshape(diff(edge), shape=shape))
        counts = ops.divide(counts, total)
    return counts, edges


@implements(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """The count or weight of each rectangle, and the edges of both axes, as numpy.histogram2d."""
    x, y = operand(x), operand(y)
    if shape_of(x) != shape_of(y):
        raise ValueError("x and y must have the same length.")
    try:
        number = len(bins)
    except TypeError:
        number = 1
    if number not in (1, 2):
        bins = [operand(bins)] * 2
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]
