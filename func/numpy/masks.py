"""The places where a mask holds, for a known number of them or for one that a trace asks for."""

from __future__ import annotations

import numpy as np

from func.interpreters.core import Array, concrete, known_value, shape_of
from func.interpreters.core.errors import StagingError
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.reductions import argsort
from func.interpreters.primitives.structural.slicing import concatenate
from func.numpy.argument_checks import count


def first_places(mask: Array, size: int) -> tuple[Array, Array]:
    """The first `size` indices where a flat mask holds, and a mask of the valid ones."""
    n = shape_of(mask)[0]
    order = argsort(ops.logical_not(mask), axis=0, kind="stable")[:size]
    if n < size:
        order = concatenate(order, np.zeros(size - n, np.intp), axis=0)
    return order, ops.less(np.arange(size), count_of(mask))


def count_of(mask: Array) -> Array:
    """The number of elements of a mask that hold."""
    counted = shapes.convert(mask, dtype=np.dtype(np.intp))
    return shapes.reduce_sum(counted, axes=tuple(range(len(shape_of(mask)))))


def places_along_axes(places: Array, shape: tuple[int, ...]) -> list[Array]:
    """For each axis the indices of places in an array that is laid out flat."""
    return [
        ops.remainder(ops.floor_divide(places, count(shape[axis + 1 :])), shape[axis]) for axis in range(len(shape))
    ]


def asked_places(mask: Array) -> list[Array] | None:
    """For each axis the indices where a traced mask holds; the trace asks for their number.

    None where the values are known, or where the trace does not ask.
    """
    shape = shape_of(mask)
    if known_value(mask) is not None or not shape:
        return None
    if 0 in shape:
        return [np.zeros(0, np.intp) for _ in shape]
    size = asked_count(mask)
    if size is None:
        return None
    places, _ = first_places(shapes.reshape(mask, shape=(count(shape),)), size)
    return places_along_axes(places, shape)


def asked_count(mask: Array) -> int | None:
    """The number of elements of a traced mask that hold, by a question of the trace; None where it does not ask."""
    try:
        return int(concrete(count_of(mask)))
    except StagingError:
        return None
