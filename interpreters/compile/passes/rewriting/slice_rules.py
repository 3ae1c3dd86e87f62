"""Rules for basic indexing: slices of slices, of broadcasts, of joined and padded arrays, and padding of padding."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

from func.interpreters.compile.passes.rewriting.arithmetic_rules import filled, is_positive_zero
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule
from func.interpreters.core import Primitive, Shape
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.indexing import scatter_add
from func.interpreters.primitives.structural.shapes import broadcast, reshape
from func.interpreters.primitives.structural.slicing import concatenate, embed, getitem, update
from func.interpreters.program.program import Var

Entry: TypeAlias = int | tuple[int, int, int]
"""What an index says of one axis."""
Index: TypeAlias = tuple[Any, ...]


MANY = 64
"""Concatenations of more pieces are not taken apart."""

# --- indices ----------------------------------------------------------------------------------------------------


def count(entry: Entry) -> int:
    """How many positions an entry selects."""
    return 1 if isinstance(entry, int) else len(range(*entry))


def is_whole(index: Sequence[Any], shape: Shape) -> bool:
    """True where an index selects everything in order; integers may drop axes of length one."""
    return all([_is_whole_axis(entry, length) for entry, length in zip(index, shape, strict=True)])


def _is_whole_axis(entry: Entry, length: int) -> bool:
    if isinstance(entry, int) or length == 1:
        return length == 1 and count(entry) == 1
    return entry == (0, length, 1)


def compose(first: Index, second: Index) -> Index:
    """The index that selects what `second` selects of what `first` selects; neither has new axes."""
    rest = iter(second)
    return tuple([entry if isinstance(entry, int) else _within(entry, next(rest)) for entry in first])


def _within(entry: tuple[int, int, int], inner: Entry) -> Entry:
    start, _, step = entry
    if isinstance(inner, int):
        return start + inner * step
    length = count(inner)
    if length == 0:
        return 0, 0, 1
    begin, stride = start + inner[0] * step, inner[2] * step
    last = begin + (length - 1) * stride
    return begin, last + (1 if stride > 0 else -1), stride


def interval(entry: Entry) -> tuple[int, int]:
    """The first position that an entry selects, and the one after the last."""
    if isinstance(entry, int):
        return entry, entry + 1
    positions = range(*entry)
    if len(positions) == 0:
        return 0, 0
    return min(positions[0], positions[-1]), max(positions[0], positions[-1]) + 1


def disjoint(x: Index, y: Index) -> bool:
    """True where two indices of one array are seen to have no element in common."""
    pairs = [(interval(a), interval(b)) for a, b in zip(x, y, strict=True)]
    return any([a[1] <= b[0] or b[1] <= a[0] for a, b in pairs])


# --- getitem ----------------------------------------------------------------------------------------------------


def plain_index(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """New axes are put in by a reshape; what selects everything is a reshape, or nothing."""
    if None in index:
        return rw.reshaped(rw.emit(getitem, x, index=tuple([e for e in index if e is not None])), out.shape)
    return rw.reshaped(x, out.shape) if is_whole(index, x.shape) else None


def slice_again(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """A slice of a slice."""
    inner = rw.maker(x, getitem)
    if inner is None or None in inner.params["index"]:
        return None
    return rw.emit(getitem, inner.inputs[0], index=compose(inner.params["index"], index))


def slice_of_broadcast(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """A slice of a broadcast is the broadcast of a slice."""
    inner = rw.inside(x, broadcast)
    if type(inner) is not Var:
        return None
    own = index[len(index) - len(inner.shape) :]
    full = x.shape[len(index) - len(inner.shape) :]
    moved = tuple(
        [
            entry if length == wide else 0 if isinstance(entry, int) else (0, 1, 1)
            for entry, length, wide in zip(own, inner.shape, full, strict=True)
        ]
    )
    return rw.emit(broadcast, rw.emit(getitem, inner, index=moved), shape=out.shape)


def slice_of_joined(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """A slice of a concatenation that lies within one piece."""
    equation = rw.maker(x, concatenate)
    if equation is None:
        return None
    axis = equation.params["axis"]
    low, high = interval(index[axis])
    if x not in rw.memo:
        rw.memo[x] = [0, *itertools.accumulate([piece.shape[axis] for piece in equation.inputs])]
    starts = rw.memo[x]
    place = bisect.bisect_right(starts, low) - 1
    if low == high or high > starts[place + 1]:
        return None
    return rw.emit(getitem, equation.inputs[place], index=_shifted(index, axis, -starts[place]))


def _shifted(index: Index, axis: int, by: int) -> Index:
    entry = index[axis]
    moved = entry + by if isinstance(entry, int) else (entry[0] + by, entry[1] + by, entry[2])
    return (*index[:axis], moved, *index[axis + 1 :])


def slice_of_padded(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """What was put in comes out again; elsewhere there are zeros."""
    equation = rw.maker(x, embed)
    if equation is None or None in equation.params["index"]:
        return None
    if equation.params["index"] == index:
        return equation.inputs[0]
    return filled(rw, out, 0) if disjoint(index, equation.params["index"]) else None


def slice_of_updated(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """What was written comes out again; elsewhere it is the array before."""
    equation = rw.maker(x, update)
    if equation is None or None in equation.params["index"]:
        return None
    before, value = equation.inputs
    if equation.params["index"] == index:
        return rw.fitted(value, out)
    return rw.emit(getitem, before, index=index) if disjoint(index, equation.params["index"]) else None


# --- embed, update, concatenate ---------------------------------------------------------------------------------


def plain_padding(rw: Rewriter, out: Var, x: Any, *, index: Index, shape: Shape) -> Any:
    """Axes that an index adds are left out by a reshape; zeros that are all overwritten are not made."""
    if None in index:
        plain = tuple([entry for entry in index if entry is not None])
        inner = tuple([count(entry) for entry in plain if not isinstance(entry, int)])
        return rw.emit(embed, rw.reshaped(x, inner), index=plain, shape=shape)
    return rw.reshaped(x, shape) if is_whole(index, shape) else None


def pad_again(rw: Rewriter, out: Var, x: Any, *, index: Index, shape: Shape) -> Any:
    """Padding of what is padded."""
    inner = rw.maker(x, embed)
    if inner is None or None in inner.params["index"]:
        return None
    return rw.emit(embed, inner.inputs[0], index=compose(index, inner.params["index"]), shape=shape)


def sum_of_padded(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """Two arrays padded in the same way are added first."""
    left, right = rw.maker(x, embed), rw.maker(y, embed)
    if left is None or right is None or left.params != right.params or not (rw.used_once(x) and rw.used_once(y)):
        return None
    return rw.emit(embed, rw.emit(add, left.inputs[0], right.inputs[0]), **left.params)


def sum_with_scattered(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x plus what was added to zeros is added to x."""
    for one, other in ((x, y), (y, x)):
        equation = rw.maker(other, scatter_add)
        if equation is None or not rw.used_once(other) or type(one) is not Var or one.shape != out.shape:
            continue
        zeros, value, *indices = equation.inputs
        if is_positive_zero(rw.scalar(zeros)) and one.dtype == out.dtype:
            return rw.emit(scatter_add, one, value, *indices, **equation.params)
    return None


def whole_update(rw: Rewriter, out: Var, x: Any, value: Any, *, index: Index) -> Any:
    """What overwrites everything; what is written into zeros."""
    if None in index:
        return None
    if type(value) is Var and is_whole(index, out.shape) and value.dtype == out.dtype:
        return rw.reshaped(value, out.shape)
    plain = tuple([count(entry) for entry in index if not isinstance(entry, int)])
    if is_positive_zero(rw.scalar(x)) and type(value) is Var and value.shape == plain:
        return rw.emit(embed, value, index=index, shape=out.shape)
    return None


def join_again(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """One piece; pieces that are concatenations themselves; empty pieces."""
    flat: list[Any] = []
    for piece in pieces:
        inner = rw.maker(piece, concatenate)
        joined = inner is not None and inner.params["axis"] == axis and rw.used_once(piece) and _is_simple(inner.inputs)
        flat.extend(inner.inputs if joined and inner is not None else [piece])
    long = [piece for piece in flat if piece.shape[axis]] or flat[:1]
    if len(long) == 1:
        return rw.fitted(long[0], out)
    return rw.emit(concatenate, *long, axis=axis) if len(long) != len(flat) or len(flat) > len(pieces) else None


def _is_simple(pieces: Sequence[Any]) -> bool:
    return len(pieces) <= MANY and len({piece.dtype for piece in pieces}) == 1


def join_slices(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """Neighbouring slices of one array, joined in their order or its reverse."""
    found = [_slice_of(rw, piece, axis) for piece in pieces]
    if None in found or len({(id(one[0]), one[1], one[2]) for one in found if one}) != 1:
        return None
    runs = [one[3] for one in found if one]
    source, before, after, _ = found[0]  # type: ignore[misc]
    if all([a[1] == b[0] for a, b in itertools.pairwise(runs)]):
        whole = (runs[0][0], runs[-1][1], 1)
    elif all([a[0] == b[1] and b[1] - b[0] == 1 for a, b in itertools.pairwise(runs)]) and runs[0][1] - runs[0][0] == 1:
        whole = (runs[0][0], runs[-1][0] - 1, -1)
    else:
        return None
    return rw.reshaped(rw.emit(getitem, source, index=(*before, whole, *after)), out.shape)


def _slice_of(rw: Rewriter, piece: Any, axis: int) -> tuple[Any, Index, Index, tuple[int, int]] | None:
    """(array, index before and after the axis, the run along it) of a slice; of a row that got its axis back, too."""
    inner = rw.inside(piece, reshape)
    equation = rw.maker(piece if inner is None else inner, getitem)
    if equation is None:
        return None
    (source,), index = equation.inputs, equation.params["index"]
    if len(index) != len(piece.shape) or any([entry is None for entry in index]):
        return None
    if inner is not None and not isinstance(index[axis], int):
        return None
    start, stop, step = (index[axis], index[axis] + 1, 1) if isinstance(index[axis], int) else index[axis]
    others = (*index[:axis], *index[axis + 1 :])
    if step != 1 or stop <= start or any([isinstance(entry, int) for entry in others]):
        return None
    return source, index[:axis], index[axis + 1 :], (start, stop)


def join_primitives(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """Arrays that all got a new first axis are joined along the one they had."""
    inner = [rw.inside(piece, reshape) for piece in pieces]
    if axis != 0 or len(pieces) < 2 or any([type(one) is not Var or not one.shape for one in inner]):
        return None
    if any([piece.shape != (1, *one.shape) for piece, one in zip(pieces, inner, strict=True)]):
        return None
    return rw.reshaped(rw.emit(concatenate, *inner, axis=0), out.shape)


TABLE: dict[Primitive, tuple[Rule, ...]] = {
    getitem: (plain_index, slice_again, slice_of_broadcast, slice_of_joined, slice_of_padded, slice_of_updated),
    embed: (plain_padding, pad_again),
    add: (sum_of_padded, sum_with_scattered),
    update: (whole_update,),
    concatenate: (join_again, join_slices, join_primitives),
}
