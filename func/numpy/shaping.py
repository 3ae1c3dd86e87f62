"""Changes of shape: reshape, transpose, new and removed axes, flips and rolls; views as in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import iterated_order, order_letter
from func.interpreters.core import EVALUATE, Array, Tracer, operand, shape_of
from func.interpreters.imperative.interpreter import Imperative
from func.interpreters.primitives.structural import slicing
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.primitives.structural.slicing import concatenate
from func.numpy import memory
from func.numpy.argument_checks import (
    arrayed,
    as_array,
    as_shape,
    count,
    normalize_axes,
    normalize_axis,
    rank_of,
    to_host,
    weak_kind,
)
from func.numpy.inplace import getitem, view_broadcast, view_permute, view_reshape
from func.numpy.protocol import implements


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """The shape, as numpy.shape."""
    return shape_of(operand(a))


@implements(np.ndim)
def ndim(a: Any) -> int:
    """The number of axes, as numpy.ndim."""
    return rank_of(operand(a))


@implements(np.size)
def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the length of an axis, as numpy.size."""
    lengths = shape_of(operand(a))
    return count(lengths) if axis is None else lengths[normalize_axis(axis, len(lengths))]


@implements(np.reshape)
def reshape(
    a: Array, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None
) -> Array:
    """The elements in another shape, as numpy.reshape; a view where NumPy's is."""
    a = operand(a)
    shape = newshape if shape is None else shape
    target = list(as_shape(shape))
    total = count(shape_of(a))
    if target.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    if -1 in target:
        known = count([n for n in target if n != -1])
        if known == 0 or total % known:
            raise ValueError(f"cannot reshape array of size {total} into shape {tuple(target)}")
        target[target.index(-1)] = total // known
    if count(target) != total:
        raise ValueError(f"cannot reshape array of size {total} into shape {tuple(target)}")
    letter = order_letter(order, "C")
    if letter == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    in_columns = letter == "F" or (letter == "A" and memory.fortran_or_c(a) == "F")
    out = view_reshape(transpose(a) if in_columns else a, tuple(target[::-1] if in_columns else target))
    out = transpose(out) if in_columns else out
    if copy is False and type(a) is Tracer and out is not a and memory.view_of(out) is None and not memory.is_scalar(a):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return memory.copied(out) if copy else out


@implements(np.ravel)
def ravel(a: Array, order: str = "C") -> Array:
    """The elements in one axis, as numpy.ravel; a view where NumPy's is."""
    a = operand(a)
    size = (count(shape_of(a)),)
    letter = order_letter(order, "C")
    if rank_of(a) > 1 and letter == "K":
        a = view_permute(a, iterated_order(memory.layout_of(a)))
    elif letter == "F" or (letter == "A" and memory.fortran_or_c(a) == "F"):
        a = transpose(a)
    if type(a) is not Tracer and isinstance(a, np.ndarray):
        return np.ravel(a)
    return view_reshape(a, size, memory.flat_view)


@implements(np.transpose, np.permute_dims)
def transpose(a: Array, axes: Any = None) -> Array:
    """The array with permuted axes (reversed by default), as a view, as numpy.transpose."""
    a = _arrayed_number(operand(a))
    rank = rank_of(a)
    if axes is None:
        is_tensor = type(a) is Tracer and (a._interpreter is EVALUATE or type(a._interpreter) is Imperative)
        # For a vector, only tensors show whether the view is another array: it has no `grad` and separate hooks.
        return view_permute(a, tuple(reversed(range(rank)))) if rank > 1 or (rank and is_tensor) else a
    order = tuple([normalize_axis(axis, rank) for axis in as_shape(axes)])
    if len(order) != rank:
        raise ValueError("axes don't match array")
    if len(set(order)) != rank:
        raise ValueError("repeated axis in transpose")
    return view_permute(a, order)


permute_dims = transpose


def _arrayed_number(a: Array) -> Array:
    """A number of Python, traced or not, as a 0-d array; NumPy's scalars have methods and remain."""
    return as_array(a) if weak_kind(a) or type(a) is bool else a


@implements(np.matrix_transpose)
def matrix_transpose(x: Array, /) -> Array:
    """The array with its last two axes exchanged, as a view, as numpy.matrix_transpose."""
    if rank_of(operand(x)) < 2:
        raise ValueError("Input array must be at least 2-dimensional")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged, as a view, as numpy.swapaxes."""
    a = operand(a)
    order = list(range(rank_of(a)))
    i, j = normalize_axis(axis1, len(order), "axis1"), normalize_axis(axis2, len(order), "axis2")
    order[i], order[j] = order[j], order[i]
    return view_permute(a, tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Array, source: Any, destination: Any) -> Array:
    """The array with axes moved, the others in order, as a view, as numpy.moveaxis."""
    a = operand(a)
    rank = rank_of(a)
    sources = [normalize_axis(s, rank, "source") for s in as_shape(source)]
    places = [normalize_axis(d, rank, "destination") for d in as_shape(destination)]
    if len(sources) != len(places):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(rank) if axis not in sources]
    for place, origin in sorted(zip(places, sources, strict=True)):
        order.insert(place, origin)
    return view_permute(a, tuple(order))


@implements(np.rollaxis)
def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    """The array with an axis moved before another, as a view, as numpy.rollaxis."""
    rank = rank_of(operand(a))
    axis = normalize_axis(axis, rank)
    start = start + rank if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.expand_dims)
def expand_dims(a: Array, axis: Any) -> Array:
    """The array with new axes of length one, as a view, as numpy.expand_dims."""
    a = operand(a)
    new_axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    lengths = list(shape_of(a))
    for place in normalize_axes(tuple(new_axes), len(lengths) + len(new_axes)):
        lengths.insert(place, 1)
    return view_reshape(a, tuple(lengths))


@implements(np.squeeze)
def squeeze(a: Array, axis: Any = None) -> Array:
    """The array without axes of length one, as a view, as numpy.squeeze."""
    a = operand(a)
    lengths = shape_of(a)
    if not lengths and axis in (0, -1):
        return a
    axes = [i for i, n in enumerate(lengths) if n == 1] if axis is None else normalize_axes(axis, len(lengths))
    if any([lengths[i] != 1 for i in axes]):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return view_reshape(a, tuple([n for i, n in enumerate(lengths) if i not in axes]))


@implements(np.broadcast_to)
def broadcast_to(array: Array, shape: Any, subok: bool = False) -> Array:
    """An array broadcast to a shape, as numpy.broadcast_to."""
    array = operand(array)
    target = as_shape(shape)
    try:
        fits = np.broadcast_shapes(shape_of(array), target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"an array of shape {shape_of(array)} cannot be broadcast to shape {target}")
    if type(array) is not Tracer:
        return broadcast(array, shape=target)
    return view_broadcast(array, target)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """Arrays broadcast to their common shape, as numpy.broadcast_arrays."""
    arrays = [as_array(arrayed(operand(a))) for a in args]
    arrays = [memory.with_memory(memory.fresh(a)) if type(a) is Tracer and memory.is_scalar(a) else a for a in arrays]
    target = np.broadcast_shapes(*[shape_of(a) for a in arrays])
    return tuple([a if shape_of(a) == target else view_broadcast(a, target) for a in arrays])


def _atleast(arys: Sequence[Any], expand: Any) -> Any:
    out = tuple([expand(operand(a)) for a in arys])
    return out[0] if len(out) == 1 else out


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Arrays of at least one axis, as numpy.atleast_1d."""
    return _atleast(arys, lambda a: a if rank_of(a) else view_reshape(_arrayed(a), (1,)))


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Arrays of at least two axes, new ones in front, as numpy.atleast_2d."""
    return _atleast(arys, lambda a: _expanded(a, 2))


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Arrays of at least three axes, new ones placed as in NumPy, as numpy.atleast_3d."""
    return _atleast(arys, lambda a: _expanded(a, 3))


def _arrayed(a: Any) -> Array:
    return a if type(a) is Tracer else as_array(a)


def _expanded(a: Array, rank: int) -> Array:
    """An array of at least this rank, with NumPy's new axes: their strides, 0, determine the layout of copies."""
    own = rank_of(a)
    if own >= rank:
        return a
    if own == 0:
        return view_reshape(_arrayed(a), (1,) * rank)
    return _arrayed(a)[(*[None] * (own == 1), ..., *[None] * (rank == 3))]


@implements(np.flip)
def flip(m: Array, axis: Any = None) -> Array:
    """The array reversed along axes (all by default), as numpy.flip."""
    m = _arrayed_number(operand(m))
    axes = normalize_axes(axis, rank_of(m))
    index = tuple([slice(None, None, -1) if i in axes else slice(None) for i in range(rank_of(m))])
    return getitem(m, index) if type(m) is Tracer else m[index]


@implements(np.fliplr)
def fliplr(m: Array) -> Array:
    """The array reversed along its second axis, as numpy.fliplr."""
    if rank_of(operand(m)) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


@implements(np.flipud)
def flipud(m: Array) -> Array:
    """The array reversed along its first axis, as numpy.flipud."""
    if rank_of(operand(m)) < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@implements(np.rot90)
def rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    """The array rotated by k quarter turns in the plane of two axes, as numpy.rot90."""
    first, second = as_shape(axes)
    m = operand(m)
    k %= 4
    if k == 0:
        return getitem(m, ...) if type(m) is Tracer else np.rot90(m, 0, axes)
    if k == 2:
        return flip(flip(m, first), second)
    return swapaxes(flip(m, second), first, second) if k == 1 else flip(swapaxes(m, first, second), second)


def _part(shape: tuple[int, ...], axis: int, start: int, stop: int) -> tuple[tuple[int, int, int], ...]:
    """The normalised index of a range along one axis."""
    return tuple([(start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape)])


@implements(np.roll)
def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    """The array shifted cyclically along axes, as numpy.roll."""
    a = operand(a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape_of(a))
    axes = [normalize_axis(place, rank_of(a)) for place in as_shape(axis)]
    if max(np.ndim(shift), np.ndim(axis)) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    shifts: dict[int, int] = {}
    for by, place in np.broadcast(to_host(shift), axes if np.ndim(axis) else axes[0]):
        shifts[int(place)] = shifts.get(int(place), 0) + int(by)
    rolled = a
    for place, by in shifts.items():
        length = shape_of(a)[place]
        cut = (length - by % length) if length else 0
        if length and cut != length:
            tail, head = [
                slicing.getitem(rolled, index=_part(shape_of(a), place, *bounds))
                for bounds in ((cut, length), (0, cut))
            ]
            rolled = concatenate(tail, head, axis=place)
    return memory.copied(a) if rolled is a else memory.in_order_of(rolled, a)


def reshape_method(self: Tracer, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """x.reshape."""
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose_method(self: Tracer, *axes: Any) -> Array:
    """x.transpose."""
    if not axes or axes[0] is None:
        return transpose(self)
    return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes)


def flatten_method(self: Tracer, order: str = "C") -> Array:
    """x.flatten."""
    return memory.copied(ravel(self, order))


transposed, matrix_transposed = property(transpose), property(matrix_transpose)
"""x.T and x.mT."""
