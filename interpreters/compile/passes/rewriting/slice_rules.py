"""Rules for basic indexing: slices of slices, broadcasts, concatenations and padding, and padding of padding."""

from __future__ import annotations

import bisect
import itertools
from typing import Any

from func.interpreters.compile.passes.index_arithmetic import (
    Index,
    are_disjoint,
    as_run,
    compose,
    count,
    interval,
    is_whole,
    shift,
)
from func.interpreters.compile.passes.rewriting.arithmetic_rules import filled, is_positive_zero
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule
from func.interpreters.core import Primitive, Shape
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.indexing import scatter_add
from func.interpreters.primitives.structural.shapes import broadcast, reshape
from func.interpreters.primitives.structural.slicing import concatenate, embed, getitem, update
from func.interpreters.program.program import Var

MAX_FLATTENED = 64
"""Inner concatenations of more pieces are not flattened."""


def drop_trivial_index(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """x[…, None] = reshape(x[…]); an index that selects everything is a reshape."""
    if None in index:
        return rw.reshape(rw.emit(getitem, x, index=tuple([e for e in index if e is not None])), out.shape)
    return rw.reshape(x, out.shape) if is_whole(index, x.shape) else None


def slice_of_slice(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """x[i][j] = x[i ∘ j]."""
    inner = rw.definition(x, getitem)
    if inner is None or None in inner.params["index"]:
        return None
    return rw.emit(getitem, inner.inputs[0], index=compose(inner.params["index"], index))


def slice_of_broadcast(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """A slice of a broadcast is the broadcast of a slice."""
    inner = rw.operand(x, broadcast)
    if type(inner) is not Var:
        return None
    first = len(index) - len(inner.shape)
    entries = [
        entry if length == full else 0 if isinstance(entry, int) else (0, 1, 1)
        for entry, length, full in zip(index[first:], inner.shape, x.shape[first:], strict=True)
    ]
    return rw.emit(broadcast, rw.emit(getitem, inner, index=tuple(entries)), shape=out.shape)


def slice_of_concatenation(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """A slice within one piece of a concatenation is a slice of this piece."""
    equation = rw.definition(x, concatenate)
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
    return rw.emit(getitem, equation.inputs[place], index=shift(index, axis, -starts[place]))


def slice_of_padding(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """embed(x, i)[i] = x, embed(x, i)[j] = 0 for disjoint i and j."""
    equation = rw.definition(x, embed)
    if equation is None or None in equation.params["index"]:
        return None
    if equation.params["index"] == index:
        return equation.inputs[0]
    return filled(rw, out, 0) if are_disjoint(index, equation.params["index"]) else None


def slice_of_update(rw: Rewriter, out: Var, x: Any, *, index: Index) -> Any:
    """update(x, v, i)[i] = v, update(x, v, i)[j] = x[j] for disjoint i and j."""
    equation = rw.definition(x, update)
    if equation is None or None in equation.params["index"]:
        return None
    before, value = equation.inputs
    if equation.params["index"] == index:
        return rw.broadcast_like(value, out)
    return rw.emit(getitem, before, index=index) if are_disjoint(index, equation.params["index"]) else None


def drop_trivial_padding(rw: Rewriter, out: Var, x: Any, *, index: Index, shape: Shape) -> Any:
    """Padding at an index with new axes pads a reshape; padding at an index that selects everything is a reshape."""
    if None in index:
        entries = tuple([entry for entry in index if entry is not None])
        inner = tuple([count(entry) for entry in entries if not isinstance(entry, int)])
        return rw.emit(embed, rw.reshape(x, inner), index=entries, shape=shape)
    return rw.reshape(x, shape) if is_whole(index, shape) else None


def padding_of_padding(rw: Rewriter, out: Var, x: Any, *, index: Index, shape: Shape) -> Any:
    """embed(embed(x, j), i) = embed(x, i ∘ j)."""
    inner = rw.definition(x, embed)
    if inner is None or None in inner.params["index"]:
        return None
    return rw.emit(embed, inner.inputs[0], index=compose(index, inner.params["index"]), shape=shape)


def sum_of_padding(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """embed(x, i) + embed(y, i) = embed(x + y, i)."""
    left, right = rw.definition(x, embed), rw.definition(y, embed)
    if left is None or right is None or left.params != right.params or not (rw.used_once(x) and rw.used_once(y)):
        return None
    return rw.emit(embed, rw.emit(add, left.inputs[0], right.inputs[0]), **left.params)


def sum_with_scatter(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x + scatter_add(0, v, i) = scatter_add(x, v, i), in either order."""
    for target, scattered in ((x, y), (y, x)):
        equation = rw.definition(scattered, scatter_add)
        if equation is None or not rw.used_once(scattered) or type(target) is not Var:
            continue
        zeros, value, *indices = equation.inputs
        fits = target.shape == scattered.shape == out.shape and target.dtype == scattered.dtype == out.dtype
        if fits and is_positive_zero(rw.scalar(zeros)):
            return rw.emit(scatter_add, target, value, *indices, **equation.params)
    return None


def update_of_everything(rw: Rewriter, out: Var, x: Any, value: Any, *, index: Index) -> Any:
    """An update of everything is the value; an update of zeros is padding."""
    if None in index:
        return None
    if type(value) is Var and is_whole(index, out.shape) and value.dtype == out.dtype:
        return rw.reshape(value, out.shape)
    selected = tuple([count(entry) for entry in index if not isinstance(entry, int)])
    if is_positive_zero(rw.scalar(x)) and type(value) is Var and value.shape == selected:
        return rw.emit(embed, value, index=index, shape=out.shape)
    return None


def flatten_concatenation(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """Inner concatenations are flattened, empty pieces dropped; a single piece is the result."""
    flat: list[Any] = []
    for piece in pieces:
        inner = rw.definition(piece, concatenate)
        if (
            inner is not None
            and inner.params["axis"] == axis
            and rw.used_once(piece)
            and len(inner.inputs) <= MAX_FLATTENED
            and len({part.dtype for part in inner.inputs}) == 1
        ):
            flat.extend(inner.inputs)
        else:
            flat.append(piece)
    long = [piece for piece in flat if piece.shape[axis]] or flat[:1]
    if len(long) == 1:
        return rw.broadcast_like(long[0], out)
    return rw.emit(concatenate, *long, axis=axis) if len(long) != len(flat) or len(flat) > len(pieces) else None


def concatenation_of_slices(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """Neighbouring slices of one array, in order or in reverse, are one slice."""
    slices = [_slice_along(rw, piece, axis) for piece in pieces]
    if None in slices or len({(id(piece[0]), piece[1], piece[2]) for piece in slices if piece}) != 1:
        return None
    runs = [piece[3] for piece in slices if piece]
    source, before, after, _ = slices[0]  # type: ignore[misc]
    if all([a[1] == b[0] for a, b in itertools.pairwise(runs)]):
        joined = (runs[0][0], runs[-1][1], 1)
    elif all([a[0] == b[1] and b[1] - b[0] == 1 for a, b in itertools.pairwise(runs)]) and runs[0][1] - runs[0][0] == 1:
        joined = (runs[0][0], runs[-1][0] - 1, -1)
    else:
        return None
    return rw.reshape(rw.emit(getitem, source, index=(*before, joined, *after)), out.shape)


def _slice_along(rw: Rewriter, piece: Any, axis: int) -> tuple[Any, Index, Index, tuple[int, int]] | None:
    """(array, index before and after the axis, start and stop along it) where a piece is a slice of step one.

    Also for a piece that an integer selects and a reshape gives its axis back.
    """
    inner = rw.operand(piece, reshape)
    equation = rw.definition(piece if inner is None else inner, getitem)
    if equation is None:
        return None
    (source,), index = equation.inputs, equation.params["index"]
    if len(index) != len(piece.shape) or any([entry is None for entry in index]):
        return None
    if inner is not None and not isinstance(index[axis], int):
        return None
    start, stop, step = as_run(index[axis])
    others = (*index[:axis], *index[axis + 1 :])
    if step != 1 or stop <= start or any([isinstance(entry, int) for entry in others]):
        return None
    return source, index[:axis], index[axis + 1 :], (start, stop)


def stack_of_arrays(rw: Rewriter, out: Var, *pieces: Any, axis: int) -> Any:
    """np.stack of arrays is a concatenation along their first axis, and a reshape."""
    inner = [rw.operand(piece, reshape) for piece in pieces]
    if axis != 0 or len(pieces) < 2 or any([type(x) is not Var or not x.shape for x in inner]):
        return None
    if any([piece.shape != (1, *x.shape) for piece, x in zip(pieces, inner, strict=True)]):
        return None
    return rw.reshape(rw.emit(concatenate, *inner, axis=0), out.shape)


TABLE: dict[Primitive, tuple[Rule, ...]] = {
    getitem: (
        drop_trivial_index,
        slice_of_slice,
        slice_of_broadcast,
        slice_of_concatenation,
        slice_of_padding,
        slice_of_update,
    ),
    embed: (drop_trivial_padding, padding_of_padding),
    add: (sum_of_padding, sum_with_scatter),
    update: (update_of_everything,),
    concatenate: (flatten_concatenation, concatenation_of_slices, stack_of_arrays),
}
