"""Functions whose result has a length that depends on values; jit needs a fixed `size=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import cumulative, shapes
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import argsort, reduce_any
from func.interpreters.primitives.structural.sorting import lexsort
from func.numpy.argument_checks import arrayed, count, rank_of
from func.numpy.indexing import values_for_shape
from func.numpy.joining import concatenate, stack
from func.numpy.masks import asked_count, asked_places, first_places, places_along_axes
from func.numpy.protocol import implements
from func.numpy.shaping import ravel, reshape


def as_bool(x: Any) -> Array:
    """A condition as booleans."""
    x = operand(x)
    return x if dtype_of(x).kind == "b" else ops.not_equal(x, 0)


def zeros_at_end(x: Array, front: bool, what: str, instead: str) -> int:
    """The number of zeros at an end of a vector, which decides the shape of `what`."""
    held = shapes.convert(ops.not_equal(x, 0), dtype=np.dtype(np.intp))
    outside = ops.equal(cumulative.cumsum(held, axis=0, reverse=not front), 0)
    asked = asked_count(outside)
    return int(values_for_shape(outside, what, instead).sum()) if asked is None else asked


def _checked_size(size: Any, function: str) -> int:
    if not isinstance(size, (int, np.integer)) or size < 0:
        raise ArgumentError(f"func.numpy.{function}: size must be a non-negative int, not {size!r}")
    return int(size)


@implements(np.nonzero)
def nonzero(a: Array, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of elements that are not zero, one array for each axis, as numpy.nonzero.

    Their number depends on the values: vmap splits the batch where it differs, and jit raises StagingError. With `size`
    there are `size` indices: it drops later ones and fills missing ones with `fill_value` (default 0; a tuple has one
    value for each axis).
    """
    mask = as_bool(arrayed(operand(a)))
    if size is None:
        asked = asked_places(mask)
        if asked is not None:
            return tuple(asked)
        known = values_for_shape(
            mask,
            "np.nonzero(x)",
            "Write func.numpy.nonzero(x, size=n), or np.where(condition, x, 0) and keep the shape.",
        )
        return tuple(known.nonzero())
    size = _checked_size(size, "nonzero")
    shape = shape_of(mask)
    places, there = first_places(ravel(mask), size)
    fills: Sequence[Any] = fill_value if isinstance(fill_value, tuple) else [fill_value or 0] * len(shape)
    if len(fills) != len(shape):
        raise ArgumentError(f"func.numpy.nonzero: fill_value has {len(fills)} entries for {len(shape)} axes")
    indices = places_along_axes(places, shape)
    return tuple([shapes.where(there, index, fill) for index, fill in zip(indices, fills, strict=True)])


@implements(np.flatnonzero)
def flatnonzero(a: Array, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The flat indices of elements that are not zero, as numpy.flatnonzero; `size` and `fill_value` as in `nonzero`."""
    return nonzero(ravel(operand(a)), size=size, fill_value=fill_value)[0]


@implements(np.argwhere)
def argwhere(a: Array, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of nonzero elements as rows, as numpy.argwhere; `size` and `fill_value` as in `nonzero`."""
    a = operand(a)
    if rank_of(a) == 0:
        return nonzero(ops.multiply(a, np.ones(1, dtype_of(a))), size=size, fill_value=fill_value)[0][:, None][:, :0]
    return stack(list(nonzero(a, size=size, fill_value=fill_value)), axis=1)


def sized_unique(x: Array, size: Any, fill_value: Any, equal_nan: bool) -> tuple[Array, Array, Array, Array]:
    """(values, first indices, inverse indices, counts) of `size` distinct elements of a flat array.

    A missing element has the value `fill_value` (default: the smallest element), index 0 and count 0.
    """
    size, n = _checked_size(size, "unique"), shape_of(x)[0]
    order, ordered, is_first = _groups(x, equal_nan)
    places, there = first_places(is_first, size + 1)
    ends = shapes.where(there[1:], places[1:], n)
    places, there = places[:size], there[:size]
    fill = ordered[0] if fill_value is None else operand(fill_value)
    values = shapes.where(there, gather(ordered, places, axis=0), fill)
    counts = shapes.where(there, ops.subtract(ends, places), 0)
    return values, shapes.where(there, gather(order, places, axis=0), 0), _inverse(order, is_first), counts


def asked_unique(x: Array, equal_nan: bool) -> tuple[Array, Array, Array] | None:
    """(first indices, inverse indices, counts) of the distinct elements or rows; the trace asks for their number.

    None where the values are known, or where the trace does not ask.
    """
    if known_value(x) is not None:
        return None
    order, _, is_first = _groups(x, equal_nan)
    asked = asked_places(is_first)
    if asked is None:
        return None
    ends = concatenate([asked[0][1:], np.full(np.minimum(len(asked[0]), 1), len(x))])
    return gather(order, asked[0], axis=0), _inverse(order, is_first), ops.subtract(ends, asked[0])


def _groups(x: Array, equal_nan: bool) -> tuple[Array, Array, Array]:
    """The order that sorts elements or rows, the sorted ones, and a mask of the first of each run of equal ones."""
    n = shape_of(x)[0]
    is_flat = rank_of(x) == 1
    columns = [x] if is_flat else list(reshape(x, (n, count(shape_of(x)[1:]))).T)
    order = lexsort(*columns[::-1], axis=0) if columns else np.arange(n)
    ordered = gather(x, order, axis=0)
    changes = ops.not_equal(ordered[1:], ordered[:-1])
    if not is_flat:
        changes = reduce_any(changes, axes=tuple(range(1, rank_of(x))))
    elif equal_nan and dtype_of(x).kind in "fc":
        missing = ops.isnan(ordered)
        changes = ops.logical_and(changes, ops.logical_not(ops.logical_and(missing[1:], missing[:-1])))
    return order, ordered, concatenate([np.ones(np.minimum(n, 1), bool), changes])


def _inverse(order: Array, is_first: Array) -> Array:
    """The group of each element: the number of first ones up to its place in the order."""
    group = cumulative.cumsum(shapes.convert(is_first, dtype=np.dtype(np.intp)), axis=0, reverse=False)
    return gather(ops.subtract(group, 1), argsort(order, axis=0, kind="stable"), axis=0)
