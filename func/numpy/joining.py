"""Joining and splitting arrays: concatenate, stack, split, tile, repeat, delete, insert, append."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.backends import is_device_array
from func.backends.array_helpers.strides import stand_in
from func.interpreters.core import PYTHON_SCALARS, Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.structural import shapes, slicing
from func.interpreters.primitives.structural.shapes import broadcast
from func.numpy.argument_checks import (
    arrayed,
    as_array,
    as_shape,
    common,
    normalize_axis,
    rank_of,
    to_dtype,
    to_host,
    weak_kind,
)
from func.numpy.creation import join, sequence, stacked, zeros_like
from func.numpy.indexing import elements_at, fit_value, values_for_shape
from func.numpy.memory import copied, fortran_or_c, in_order
from func.numpy.protocol import F, implements, member
from func.numpy.reductions import deliver
from func.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, expand_dims, moveaxis, ravel, reshape


@implements(np.concatenate)
def concatenate(
    arrays: Sequence[Any], /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along an existing axis, as numpy.concatenate."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    values = [operand(a) for a in sequence(arrays)]
    if not values:
        raise ValueError("need at least one array to concatenate")
    if out is None is dtype and type(axis) is int and (arrays_behind := _plain_arrays(values)):
        place = axis + arrays_behind[0].ndim if axis < 0 else axis
        if 0 <= place < arrays_behind[0].ndim and _fit(arrays_behind, place):
            return slicing.concatenate(*values, axis=place)
    adapts = dtype is None is out and any([weak_kind(value) for value in values])
    numbers = common(values) if adapts else values  # a number of Python takes the dtype of the others
    parts = [arrayed(n if weak_kind(v) else v) for n, v in zip(numbers, values, strict=True)]
    if axis is None:
        parts, axis = [ravel(a) for a in parts], 0
    rank = rank_of(parts[0])
    if rank == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    place = normalize_axis(axis, rank)
    for a in parts[1:]:
        if rank_of(a) != rank:
            raise ValueError(
                f"all the input array dimensions must match: one array has {rank} axes, another {rank_of(a)}"
            )
        for i, (n, m) in enumerate(zip(shape_of(parts[0]), shape_of(a), strict=True)):
            if i != place and n != m:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly: along axis "
                    f"{i} one array has {n} elements, another {m}"
                )
    if out is not None:
        length = sum([shape_of(a)[place] for a in parts])
        if shape_of(out) != (*shape_of(parts[0])[:place], length, *shape_of(parts[0])[place + 1 :]):
            raise ValueError(f"Output array is of the wrong shape: {shape_of(out)}")
    joined = join(_cast(parts, dtype if out is None else dtype_of(out), casting), place)
    return joined if out is None else deliver(joined, out)


concat = concatenate


def _plain_arrays(values: Sequence[Array]) -> list[Any]:
    """The arrays behind values traced by differentiation alone, if they have one dtype; otherwise none."""
    arrays: list[Any] = []
    for value in values:
        while type(value) is Tracer and value._interpreter.differentiates:
            value = value._value
        if type(value) is not ndarray or (arrays and value.dtype is not arrays[0].dtype):
            return []
        arrays.append(value)
    return arrays


def _fit(arrays: Sequence[Any], axis: int) -> bool:
    """Whether the arrays have one shape but for this axis."""
    shape = arrays[0].shape
    before, after = shape[:axis], shape[axis + 1 :]
    for array in arrays:
        shape = array.shape
        if shape[:axis] != before or shape[axis + 1 :] != after:
            return False
    return True


def _cast(parts: Sequence[Array], dtype: Any, casting: str) -> list[Array]:
    """Arrays in a dtype (by default that of all together), by a casting rule."""
    target: np.dtype[Any] = np.result_type(*[dtype_of(part) for part in parts]) if dtype is None else np.dtype(dtype)
    for part in parts:
        if not np.can_cast(dtype_of(part), target, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {dtype_of(part)!r} to {target!r} according to the rule '{casting}'"
            )
    return [to_dtype(part, target) for part in parts]


def joined(parts: Sequence[Array], axis: int) -> Array:
    """Arrays of different dtypes joined along an axis."""
    parts = common(parts)
    return parts[0] if len(parts) == 1 else join(parts, axis)


@implements(np.stack)
def stack(
    arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along a new axis, as numpy.stack."""
    parts = [arrayed(operand(a)) for a in sequence(arrays)]
    if not parts:
        raise ValueError("need at least one array to stack")
    if out is None is dtype and axis == 0 and (arrays_behind := _plain_arrays(parts)):
        shape = arrays_behind[0].shape
        if shape and all([array.shape == shape and array.flags.c_contiguous for array in arrays_behind]):
            joined = slicing.concatenate(*parts, axis=0)
            return shapes.reshape(joined, shape=(len(parts), *shape))
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if len({shape_of(part) for part in parts}) > 1:
        raise ValueError("all input arrays must have the same shape")
    place = normalize_axis(axis, rank_of(parts[0]) + 1)
    if out is not None and rank_of(out) != rank_of(parts[0]) + 1:
        raise ValueError("Output array has wrong dimensionality")
    joined = stacked(_cast(parts, dtype if out is None else dtype_of(out), casting), place)
    return joined if out is None else deliver(joined, out)


@implements(np.vstack)
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the first axis, as numpy.vstack; vectors become rows."""
    return concatenate([atleast_2d(a) for a in sequence(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the second axis (vectors along their only one), as numpy.hstack."""
    parts = [atleast_1d(a) for a in sequence(tup)]
    return concatenate(parts, 0 if parts and rank_of(parts[0]) == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Sequence[Any]) -> Array:
    """Arrays joined along the third axis, as numpy.dstack."""
    return concatenate([atleast_3d(a) for a in sequence(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Array:
    """Arrays joined as columns, as numpy.column_stack."""
    parts = [operand(a) for a in sequence(tup)]
    return concatenate([a if rank_of(a) > 1 else expand_dims(atleast_1d(a), 1) for a in parts], 1)


@implements(np.block)
def block(arrays: Any) -> Array:
    """An array from nested lists of blocks, as numpy.block; the innermost lists are joined along the last axis."""

    def depth(entry: Any, place: str) -> int:
        if isinstance(entry, tuple):
            raise TypeError(f"np.block: {place} is a tuple; blocks are arranged by lists alone")
        if not isinstance(entry, list):
            return 0
        if not entry:
            raise ValueError(f"np.block: the list {place} is empty")
        first, *others = [depth(e, f"{place}[{i}]") for i, e in enumerate(entry)]
        if any([other != first for other in others]):
            raise ValueError(f"np.block: the entries of the list {place} are lists of different depths")
        return 1 + first

    levels = depth(arrays, "arrays")

    def ranks(entry: Any) -> int:
        return max([ranks(e) for e in entry], default=0) if isinstance(entry, list) else rank_of(operand(entry))

    rank = max(ranks(arrays), levels)

    def join_level(entry: Any, level: int) -> Array:
        if not isinstance(entry, list):
            entry = operand(entry)
            return reshape(entry, (*[1] * (rank - rank_of(entry)), *shape_of(entry)))
        return concatenate([join_level(e, level + 1) for e in entry], rank - levels + level)

    return join_level(arrays, 0) if levels else copied(as_array(operand(arrays)), "C")


@implements(np.array_split)
def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis, at indices or of nearly equal length, as numpy.array_split."""
    ary = operand(ary)
    length = shape_of(ary)[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = divmod(length, sections)
        cuts = np.cumsum([0, *[each + 1] * extra, *[each] * (sections - extra)]).tolist()
    else:
        cuts = [0, *[operator.index(i) for i in indices_or_sections], length]
    place = normalize_axis(axis, rank_of(ary))
    whole: list[Any] = [slice(None)] * rank_of(ary)
    parts = []
    for start, stop in itertools.pairwise(cuts):
        whole[place] = slice(start, stop)
        parts.append(ary[tuple(whole)])
    return parts


@implements(np.split)
def split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis, at indices or of equal length, as numpy.split."""
    if isinstance(indices_or_sections, (int, np.integer)) and shape_of(operand(ary))[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def _split_along(original: F, place: int, rank: int, doc: str) -> F:
    @member(original, doc)
    def split_along(ary: Array, indices_or_sections: Any) -> list[Array]:
        axes = rank_of(operand(ary))
        if axes < rank:
            raise ValueError(f"{original.__name__} only works on arrays of {rank} or more dimensions")
        return split(ary, indices_or_sections, min(place, axes - 1))

    return split_along


vsplit = _split_along(np.vsplit, 0, 2, "Parts along the first axis, as numpy.vsplit.")
hsplit = _split_along(np.hsplit, 1, 1, "Parts along the second axis (the first of a vector), as numpy.hsplit.")
dsplit = _split_along(np.dsplit, 2, 3, "Parts along the third axis, as numpy.dsplit.")


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The subarrays along an axis, without it, as numpy.unstack."""
    members = moveaxis(x, axis, 0)
    return tuple([members[i] for i in range(shape_of(members)[0])])


if hasattr(np, "unstack"):
    implements(np.unstack)(unstack)


@implements(np.tile)
def tile(A: Array, reps: Any) -> Array:
    """An array repeated along each axis, as numpy.tile."""
    A = operand(A)
    times = as_shape(reps)
    lengths = (*[1] * (len(times) - rank_of(A)), *shape_of(A))
    times = (*[1] * (len(lengths) - len(times)), *times)
    if all([n == 1 for n in times]):
        return reshape(copied(as_array(arrayed(A))), lengths)
    spread = broadcast(
        reshape(A, tuple([n for length in lengths for n in (1, length)])),
        shape=tuple([n for length, r in zip(lengths, times, strict=True) for n in (r, length)]),
    )
    return in_order(reshape(spread, tuple([length * r for length, r in zip(lengths, times, strict=True)])), "C")


@implements(np.repeat)
def repeat(a: Array, repeats: Any, axis: int | None = None) -> Array:
    """Each element or subarray repeated, as numpy.repeat; the derivative sums over the repetitions."""
    a = operand(a)
    if axis is None or (axis in (0, -1) and not shape_of(a)):
        a, axis = ravel(a), 0
    length = shape_of(a)[axis]
    return in_order(elements_at(a, np.repeat(np.arange(length), to_host(repeats)), axis), "C")


@implements(np.append)
def append(arr: Array, values: Any, axis: int | None = None) -> Array:
    """An array with values appended, as numpy.append."""
    if axis is None:
        return concatenate([ravel(operand(arr)), ravel(operand(values))])
    return concatenate([arr, values], axis)


def _known_places(obj: Any) -> Any:
    """The places for np.insert and np.delete, which determine a shape; reads traced ones, on the host."""
    if type(obj) is Tracer:
        obj = values_for_shape(obj, "np.insert and np.delete", "Pass known places.")
    return to_host(obj) if is_device_array(obj) else obj


@implements(np.delete)
def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """An array without the elements at the places `obj`, as numpy.delete."""
    arr = operand(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    remaining = np.delete(np.arange(shape_of(arr)[normalize_axis(axis, rank_of(arr))]), _known_places(obj))
    rest = elements_at(arr, remaining, axis)
    return in_order(rest, fortran_or_c(arr)) if isinstance(obj, slice) or np.size(obj) == 1 else rest


@implements(np.insert)
def insert(arr: Array, obj: Any, values: Any, axis: int | None = None) -> Array:
    """An array with values inserted before the places `obj`, as numpy.insert."""
    arr, number = arrayed(operand(arr)), values
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis(axis, rank_of(arr))
    if dtype_of(arr).kind in "iu" and type(values) in (int, float):
        values = np.asarray(values, dtype_of(arr))  # raises where it does not fit
    if weak_kind(values) is int and type(values) is Tracer and dtype_of(arr).kind in "iu":
        values = to_dtype(values, dtype_of(arr))  # the same here
    values = arrayed(operand(values))
    length = shape_of(arr)[axis]
    places = _insertion_places(_known_places(obj), length)
    is_single = places.size == 1
    if is_single:
        index = places.item()
        if not -length <= index <= length:
            raise IndexError(f"index {index} is out of bounds for axis {axis} with size {length}")
        values = reshape(values, (*[1] * (rank_of(arr) - rank_of(values)), *shape_of(values)))
        values = values if places.ndim else moveaxis(values, 0, axis)
        places = (index + length if index < 0 else index) + np.arange(shape_of(values)[axis])
    else:
        places[places < 0] += length
        places[np.argsort(places, kind="stable")] += np.arange(len(places))
    region = (*shape_of(arr)[:axis], len(places), *shape_of(arr)[axis + 1 :])
    if len(places) == 0:  # ask NumPy for its rules of values without places
        none = stand_in(shape_of(arr), (0,) * rank_of(arr), dtype_of(arr))
        none[(*[slice(None)] * axis, slice(0, 0) if is_single else places)] = (
            number if type(number) in PYTHON_SCALARS else np.empty(shape_of(values), bool)
        )
        return in_order(elements_at(arr, np.arange(length), axis), fortran_or_c(arr))
    source = np.empty(length + len(places), np.intp)
    is_old = np.ones(len(source), bool)
    is_old[places] = False
    source[is_old] = np.arange(length)
    source[places] = length + np.arange(len(places))
    inserted = elements_at(join([arr, fit_value(values, region, arr)], axis), source, axis)
    return in_order(inserted, fortran_or_c(arr))


def _insertion_places(obj: Any, length: int) -> Any:
    """The places of np.insert as a writable integer array."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(length))
    places = np.array(obj)
    if places.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    if places.dtype.kind == "b":
        if places.ndim != 1:
            raise ValueError("boolean array argument obj to insert must be one dimensional")
        return np.flatnonzero(places)
    return places.astype(np.intp) if places.size == 0 and not isinstance(obj, np.ndarray) else places


@implements(np.resize)
def resize(a: Array, new_shape: Any) -> Array:
    """The elements, repeated as often as the new shape needs, as numpy.resize."""
    flat = ravel(operand(a))
    shape = as_shape(new_shape)
    total = int(np.prod(shape, dtype=np.int64))
    if any([n < 0 for n in shape]):
        raise ValueError("all elements of `new_shape` must be non-negative")
    if shape_of(flat)[0] == 0:
        return zeros_like(flat, shape=shape)
    return reshape(elements_at(flat, np.arange(total) % max(shape_of(flat)[0], 1), 0), shape)
