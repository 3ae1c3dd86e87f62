"""Joining and splitting arrays: concatenate, stack, split, tile, repeat, delete, insert, append."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.primitives.structural.slicing import concatenate as join
from func.numpy.argument_checks import as_shape, common, normalize_axis, rank_of, to_dtype
from func.numpy.creation import sequence, stacked
from func.numpy.indexing import elements_at
from func.numpy.inplace import write_into
from func.numpy.protocol import implements
from func.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand_dims, moveaxis, ravel, reshape


@implements(np.concatenate)
def concatenate(
    arrays: Sequence[Any], /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along an existing axis, as numpy.concatenate."""
    parts = [to_dtype(a, dtype) for a in common(sequence(arrays))]
    if not parts:
        raise ValueError("need at least one array to concatenate")
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
    joined = join(*parts, axis=place)
    return joined if out is None else write_into(out, joined)


concat = concatenate


def joined(parts: Sequence[Array], axis: int) -> Array:
    """Arrays of different dtypes joined along an axis."""
    parts = common(parts)
    return parts[0] if len(parts) == 1 else join(*parts, axis=axis)


@implements(np.stack)
def stack(
    arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along a new axis, as numpy.stack."""
    joined = stacked(sequence(arrays), axis, dtype)
    return joined if out is None else write_into(out, joined)


@implements(np.vstack)
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the first axis, as numpy.vstack; vectors become rows."""
    return concatenate([atleast_2d(a) for a in sequence(tup)], 0, dtype=dtype)


@implements(np.hstack)
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the second axis (vectors along their only one), as numpy.hstack."""
    parts = [atleast_1d(a) for a in sequence(tup)]
    return concatenate(parts, 0 if parts and rank_of(parts[0]) == 1 else 1, dtype=dtype)


@implements(np.dstack)
def dstack(tup: Sequence[Any]) -> Array:
    """Arrays joined along the third axis, as numpy.dstack."""
    return concatenate([atleast_3d(a) for a in sequence(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Array:
    """Arrays joined as columns, as numpy.column_stack."""
    parts = [operand(a) for a in sequence(tup)]
    return concatenate([a if rank_of(a) == 2 else expand_dims(atleast_1d(a), 1) for a in parts], 1)


@implements(np.block)
def block(arrays: Any) -> Array:
    """An array from nested lists of blocks, as numpy.block; the innermost lists are joined along the last axis."""

    def depth(entry: Any) -> int:
        return 1 + max([depth(e) for e in entry], default=0) if isinstance(entry, list) else 0

    levels = depth(arrays)

    def ranks(entry: Any) -> int:
        return max([ranks(e) for e in entry], default=0) if isinstance(entry, list) else rank_of(operand(entry))

    rank = max(ranks(arrays), levels)

    def join_level(entry: Any, level: int) -> Array:
        if not isinstance(entry, list):
            entry = operand(entry)
            return reshape(entry, (*[1] * (rank - rank_of(entry)), *shape_of(entry)))
        return concatenate([join_level(e, level + 1) for e in entry], rank - levels + level)

    return join_level(arrays, 0)


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


@implements(np.vsplit)
def vsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the first axis, as numpy.vsplit."""
    if rank_of(operand(ary)) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@implements(np.hsplit)
def hsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the second axis (the first of a vector), as numpy.hsplit."""
    if rank_of(operand(ary)) < 1:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if rank_of(operand(ary)) > 1 else 0)


@implements(np.dsplit)
def dsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the third axis, as numpy.dsplit."""
    if rank_of(operand(ary)) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


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
    spread = broadcast(
        reshape(A, tuple([n for length in lengths for n in (1, length)])),
        shape=tuple([n for length, r in zip(lengths, times, strict=True) for n in (r, length)]),
    )
    return reshape(spread, tuple([length * r for length, r in zip(lengths, times, strict=True)]))


@implements(np.repeat)
def repeat(a: Array, repeats: Any, axis: int | None = None) -> Array:
    """Each element or subarray repeated, as numpy.repeat; the derivative sums over the repetitions."""
    a = operand(a)
    if axis is None or (axis in (0, -1) and not shape_of(a)):
        a, axis = ravel(a), 0
    length = shape_of(a)[axis]
    return elements_at(a, np.repeat(np.arange(length), np.asarray(repeats)), axis)


@implements(np.append)
def append(arr: Array, values: Any, axis: int | None = None) -> Array:
    """An array with values appended, as numpy.append."""
    if axis is None:
        return concatenate([ravel(operand(arr)), ravel(operand(values))])
    return concatenate([arr, values], axis)


@implements(np.delete)
def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """An array without the elements at the places `obj`, as numpy.delete."""
    arr = operand(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    return elements_at(arr, np.delete(np.arange(shape_of(arr)[axis]), obj), axis)


@implements(np.insert)
def insert(arr: Array, obj: Any, values: Any, axis: int | None = None) -> Array:
    """An array with values inserted before the places `obj`, as numpy.insert."""
    arr, values = operand(arr), operand(values)
    if axis is None:
        arr, axis = ravel(arr), 0
    place = normalize_axis(axis, rank_of(arr))
    length = shape_of(arr)[place]
    marks = np.insert(np.arange(length), obj, -1)
    count = len(marks) - length
    rest = (*shape_of(arr)[:place], *shape_of(arr)[place + 1 :])
    scalar_index = isinstance(obj, (int, np.integer))
    if scalar_index and rank_of(values) and rank_of(values) == len(rest) and count == 1:
        new = broadcast_to(expand_dims(values, 0), (count, *rest))
    elif rank_of(values) == rank_of(arr) and rank_of(arr) > 1:
        new = broadcast_to(moveaxis(values, place, 0), (count, *rest))
    else:
        new = broadcast_to(reshape(values, (-1, *[1] * len(rest))) if rank_of(values) == 1 else values, (count, *rest))
    whole = concatenate([moveaxis(arr, place, 0), to_dtype(new, arr.dtype)], 0)
    source = np.where(marks < 0, 0, marks)
    source[marks < 0] = length + np.argsort(np.argsort(np.flatnonzero(marks < 0)))
    return moveaxis(whole[source], 0, place)


@implements(np.resize)
def resize(a: Array, new_shape: Any) -> Array:
    """The elements, repeated as often as the new shape needs, as numpy.resize."""
    flat = ravel(operand(a))
    shape = as_shape(new_shape)
    total = int(np.prod(shape, dtype=np.int64))
    return reshape(elements_at(flat, np.arange(total) % max(shape_of(flat)[0], 1), 0), shape)
