"""Advanced indexing in one normal form: integer arrays of equal shape on consecutive axes.

`gather(x, i0, i1, ..., axis=k)` is x[:, ..., i0, i1, ...] with k full slices in front; the indexed axes are replaced
by the index shape. Every NumPy index is brought to this form by transposes and basic slices (func.numpy.indexing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import arrays
from func.backends.array_helpers.strides import axes_by_stride, memory_order_of
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Linear, Params, Shape, Shaped
from func.interpreters.core.parameters import AXIS_OR_END, are_integers, have_equal_shapes
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.table import equal
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    fit_cotangent,
    full_like,
    move_axis,
    reshape,
    where,
)
from func.interpreters.primitives.structural.slicing import writable


def _prefix(axis: int, indices: Sequence[Array], xp: Any = np) -> tuple[Any, ...]:
    """The index with full slices in front; host indices move to the device of the array."""
    if xp is not np:
        indices = [xp.asarray(index) if isinstance(index, (np.ndarray, np.generic)) else index for index in indices]
    return (*[slice(None)] * axis, *indices)


def _gathered_shape(x: Shape, index: Shape, count: int, axis: int) -> Shape:
    return (*x[:axis], *index, *x[axis + count :])


def _are_indices(x: Aval, indices: Sequence[Aval], axis: int) -> bool:
    """Whether there are integers of one shape for consecutive axes from this one on."""
    return (
        len(indices) > 0
        and axis + len(indices) <= len(x.shape)
        and are_integers(*indices)
        and have_equal_shapes(*indices)
    )


def _can_be_written(x: Aval, value: Aval, indices: Sequence[Aval], axis: int) -> bool:
    """Whether a value broadcasts to the elements at the indices."""
    if not _are_indices(x, indices, axis):
        return False
    region = _gathered_shape(x.shape, indices[0].shape, len(indices), axis)
    return np.broadcast_shapes(value.shape, region) == region


def _no_index_cotangents(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([ZERO] * len(indices))


def _batch_indices(size: int, indices: Sequence[Array], batched: Sequence[bool]) -> tuple[Array, list[Array]]:
    """All indices with the batch axis in front, and the index of the batch element itself."""
    full = core.materialize(size, batched, indices)
    elements = iota(size, full[0])
    shape = core.shape_of(full[0])
    return broadcast(reshape(elements, shape=(size, *[1] * (len(shape) - 1))), shape=shape), full


def _gather_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, *indices = args
    axis = params["axis"]
    if not any(batched[1:]):
        return gather(x, *indices, axis=axis + 1)
    if not batched[0]:
        return move_axis(gather(x, *core.materialize(size, batched[1:], indices), axis=axis), axis, 0)
    elements, full = _batch_indices(size, indices, batched[1:])
    return (
        gather(move_axis(x, 0, axis), elements, *full, axis=axis)
        if axis == 0
        else _with_batch_axis(x, elements, full, axis)
    )


def _with_batch_axis(x: Array, elements: Array, full: Sequence[Array], axis: int) -> Array:
    """Gather by element of the batch behind full slices: the batch axis moves next to the indexed axes."""
    return move_axis(gather(move_axis(x, 0, axis), elements, *full, axis=axis), axis, 0)


def _gather_layout(x: Any, *indices: Any, axis: int) -> Any:
    return memory_order_of(
        lambda x, *ones: x[_prefix(axis, [np.zeros_like(one, np.intp) for one in ones])], x, *indices
    )


gather: Linear = core.linear(
    "gather",
    lambda xp, x, *indices, axis: x[_prefix(axis, indices, xp)],
    aval=lambda x, *indices, axis: Aval(_gathered_shape(x.shape, indices[0].shape, len(indices), axis), x.dtype),
    parameters={"axis": AXIS_OR_END},
    fits=lambda x, *indices, axis: _are_indices(x, indices, axis),
    transpose=lambda ct, x, *indices, axis: (
        scatter_add(full_like(ct, 0, x.shape, x.dtype), ct, *indices, axis=axis),
        *_no_index_cotangents(indices),
    ),
    batch=_gather_batch,
    positions=(0,),
    layout=_gather_layout,
    cost=0,
    numpy_suffices=True,
    reads_selected=True,
    view=lambda ins: all([aval.shape == () for aval in ins[1:]]),
    checks_indices=True,
    mask="covered",
)


def _scatter_layout(x: Any, value: Any, *indices: Any, axis: int) -> tuple[int, ...]:
    return axes_by_stride(x.strides)


def _scatter_add_impl(xp: Any, x: Array, value: Array, *indices: Array, axis: int) -> Array:
    return arrays.scatter_add(xp, writable(xp, x), _prefix(axis, indices, xp), value)


def _scatter_transpose_add(ct: Array, x: Any, value: Any, *indices: Array, axis: int) -> tuple[Any, ...]:
    return (
        fit_cotangent(ct, x) if isinstance(x, Shaped) else ZERO,
        fit_cotangent(gather(ct, *indices, axis=axis), value) if isinstance(value, Shaped) else ZERO,
        *_no_index_cotangents(indices),
    )


def _scatter_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params, primitive: Any) -> Array:
    x, value, *indices = args
    axis = params["axis"]
    if type(x) is np.ndarray and not batched[0]:  # as in a pullback: zeros that no element needs an array of
        x, batched = np.broadcast_to(x.copy(), (size, *x.shape)), (True, *batched[1:])
    x, value = core.materialize(size, batched[:2], (x, value))
    if not any(batched[2:]):
        return primitive(x, value, *indices, axis=axis + 1)
    elements, full = _batch_indices(size, indices, batched[2:])
    out = primitive(move_axis(x, 0, axis), move_axis(value, 0, axis), elements, *full, axis=axis)
    return move_axis(out, axis, 0)


scatter_add: Linear = core.linear(
    "scatter_add",
    _scatter_add_impl,
    aval=lambda x, value, *indices, axis: x,
    parameters={"axis": AXIS_OR_END},
    fits=lambda x, value, *indices, axis: _can_be_written(x, value, indices, axis),
    transpose=_scatter_transpose_add,
    batch=lambda size, batched, args, params: _scatter_batch(size, batched, args, params, scatter_add),
    layout=_scatter_layout,
    positions=(0, 1),
    cost=costs.per_input(1),
    checks_indices=True,
    mask="covered",
    covers=True,
)
"""x with values added at an index; repeated indices add up."""


def _scatter_impl(xp: Any, x: Array, value: Array, *indices: Array, axis: int) -> Array:
    out = writable(xp, x)
    out[_prefix(axis, indices, xp)] = value
    return out


def _scatter_transpose(ct: Array, x: Any, value: Any, *indices: Array, axis: int) -> tuple[Any, ...]:
    """Overwritten elements get nothing; of several values written to one place only the last one counts."""
    shape = core.shape_of(ct)
    index_shape = core.shape_of(indices[0])
    region = _gathered_shape(shape, index_shape, len(indices), axis)
    to_x: Any = ZERO
    to_value: Any = ZERO
    if isinstance(x, Shaped):
        to_x = fit_cotangent(scatter(ct, full_like(ct, 0, region), *indices, axis=axis), x)
    if isinstance(value, Shaped):
        count = math.prod(index_shape)
        order = reshape(iota(count, indices[0]), shape=index_shape)
        board = full_like(indices[0], -1, shape[axis : axis + len(indices)], np.intp)
        last = equal(gather(scatter(board, order, *indices, axis=0), *indices, axis=0), order)
        tail = len(region) - axis - len(index_shape)
        written = reshape(last, shape=(*core.shape_of(last), *[1] * tail))
        to_value = fit_cotangent(where(written, gather(ct, *indices, axis=axis), 0), value)
    return to_x, to_value, *_no_index_cotangents(indices)


scatter: Linear = core.linear(
    "scatter",
    _scatter_impl,
    aval=lambda x, value, *indices, axis: x,
    parameters={"axis": AXIS_OR_END},
    fits=lambda x, value, *indices, axis: _can_be_written(x, value, indices, axis),
    transpose=_scatter_transpose,
    batch=lambda size, batched, args, params: _scatter_batch(size, batched, args, params, scatter),
    layout=_scatter_layout,
    positions=(0, 1),
    cost=0,
    checks_indices=True,
    mask="covered",
)
"""x with values written at an index; of repeated indices the last one stays, as in NumPy."""
