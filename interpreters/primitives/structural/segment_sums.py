"""Sums over segments of an axis: np.add.reduceat and its transpose."""

from __future__ import annotations

import numpy as np

from func.backends.array_helpers import arrays
from func.backends.array_helpers.strides import memory_order_of
from func.interpreters.core import Array, Aval, Linear, Shaped, linear
from func.interpreters.core.parameters import AXIS, STARTS
from func.interpreters.primitives import costs
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.shapes import full_like, same_dtype

Starts = tuple[int, ...]


def segment_bounds(starts: Starts, length: int) -> list[tuple[int, int]]:
    """(start, stop) of each segment; a start that is not below the next is a segment of one element."""
    stops = [*starts[1:], length]
    return [(start, stop if stop > start else start + 1) for start, stop in zip(starts, stops, strict=True)]


def _sum_aval(x: Aval, *, starts: Starts, axis: int) -> Aval:
    shape = (*x.shape[:axis], len(starts), *x.shape[axis + 1 :])
    return Aval(shape, np.add.reduce(np.zeros(1, x.dtype)).dtype)


def _sum_transpose(ct: Array, x: Shaped, *, starts: Starts, axis: int) -> tuple[Array]:
    bounds = segment_bounds(starts, x.shape[axis])
    places = np.concatenate([np.arange(start, stop) for start, stop in bounds])
    segments = np.repeat(np.arange(len(bounds)), [stop - start for start, stop in bounds])
    spread = same_dtype(gather(ct, segments, axis=axis), x)
    return (scatter_add(full_like(ct, 0, x.shape, x.dtype), spread, places, axis=axis),)


segment_sum: Linear = linear(
    "segment_sum",
    arrays.segment_sum,
    aval=_sum_aval,
    parameters={"starts": STARTS, "axis": AXIS},
    transpose=_sum_transpose,
    batch=lambda x, *, starts, axis: segment_sum(x, starts=starts, axis=axis + 1),
    cost=costs.per_input(1),
    layout=lambda x, *, starts, axis: memory_order_of(
        lambda array: arrays.segment_sum(np, array, starts=starts, axis=axis), x, whole=(axis,)
    ),
    reduces="add",
    mask="padded",
)
