"""Values with one row for each step, made from what is there: slices of arrays, rows that other loops have stacked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import Shape
from func.interpreters.passes.emitter import Emitter
from func.interpreters.primitives.indexing import gather
from func.interpreters.primitives.structural import broadcast, concatenate, getitem, reshape
from func.interpreters.program import Equation, Program, Var


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of what a loop has stacked: first, first + step, ..."""

    source: Var
    first: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Items:
    """Slices of one array whose index moves along one axis by the same step each time."""

    source: Var
    index: tuple[Any, ...]
    axis: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """One value, so many times."""

    value: Any
    count: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """Python scalars."""

    values: tuple[Any, ...]

    @property
    def count(self) -> int:
        return len(self.values)


Piece: TypeAlias = Rows | Items | Repeated | Numbers


class Stacks(Emitter):
    """The equations of the rolled program, and which rows of which stacks its variables are."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.rows: dict[Any, tuple[Var, int]] = {}
        """For values that a loop has stacked: the stack and the row."""
        self.absent: set[Any] = set()
        """Those that are not variables of the rolled program yet."""
        self.made: dict[Any, Equation] = {x: equation for equation in program.equations for x in equation.outputs}
        self._stacked: dict[Any, Var] = {}

    def present(self, x: Any) -> Any:
        """A value, taken out of its stack if that is where it is."""
        if x in self.absent:
            self.absent.remove(x)
            source, row = self.rows[x]
            index = (row, *[whole(length) for length in x.shape])
            self.equations.append(Equation(getitem, (source,), {"index": index}, (x,), self.line))
        return x

    def copied(self, equations: Sequence[Equation]) -> None:
        """Append equations that are outside loops."""
        for equation in equations:
            self.line = equation.line
            if self.absent and self.is_joined(equation):
                self.joined(equation)
                continue
            if self.absent:
                for x in equation.inputs:
                    self.present(x)
            self.equations.append(equation)

    # --- pieces -------------------------------------------------------------------------------------------------

    def pieces(self, values: Sequence[Any]) -> list[Piece]:
        """The fewest pieces, taken one after the other, that give the values in order."""
        bases = [self._base(x) for x in values]
        found: list[Piece] = []
        start = 0
        while start < len(bases):
            piece = self._piece(bases, start)
            found.append(piece)
            start += piece.count
        return found

    def _base(self, x: Any) -> Any:
        """What a value is a reshape of."""
        while x not in self.rows and x in self.made and self.made[x].row is reshape:
            x = self.made[x].inputs[0]
        return x

    def _piece(self, bases: Sequence[Any], start: int) -> Piece:
        x = bases[start]
        if type(x) is not Var:
            stop = start + 1
            while stop < len(bases) and type(bases[stop]) is not Var:
                stop += 1
            return Numbers(tuple(bases[start:stop]))
        stop = start + 1
        while stop < len(bases) and bases[stop] is x:
            stop += 1
        if stop - start > 1:
            return Repeated(x, stop - start)
        if x in self.rows:
            return self._rows(bases, start)
        return self._items(bases, start)

    def _rows(self, bases: Sequence[Any], start: int) -> Piece:
        source, first = self.rows[bases[start]]
        places = [first]
        for x in bases[start + 1 :]:
            other, place = self.rows.get(x, (None, 0))
            if other is not source or (len(places) > 1 and place - places[-1] != places[1] - first):
                break
            places.append(place)
        return Rows(source, first, places[1] - first if len(places) > 1 else 1, len(places))

    def _items(self, bases: Sequence[Any], start: int) -> Piece:
        x = bases[start]
        first = self._slice(x)
        second = self._slice(bases[start + 1]) if start + 1 < len(bases) else None
        moved = None if first is None or second is None or first[0] is not second[0] else _moved(first[1], second[1])
        if first is None or moved is None:
            return Repeated(x, 1)
        axis, step = moved
        count = 1
        for base in bases[start + 1 :]:
            found = self._slice(base)
            if found is None or found[0] is not first[0] or found[1] != shifted(first[1], axis, count * step):
                break
            count += 1
        return Items(first[0], first[1], axis, step, count)

    def _slice(self, x: Any) -> tuple[Var, tuple[Any, ...]] | None:
        equation = self.made.get(x)
        if equation is None or equation.row is not getitem or x in self.rows:
            return None
        index = equation.params["index"]
        return None if None in index else (equation.inputs[0], index)

    # --- making them --------------------------------------------------------------------------------------------

    def stack(self, values: Sequence[Any], shape: Shape, dtype: Any) -> Var:
        """The values as rows of one array."""
        key = (*[x if type(x) is Var else (type(x), repr(x)) for x in values], dtype)
        found = self._stacked.get(key)
        if found is None:
            made = [self._made(piece, shape, dtype) for piece in self.pieces(values)]
            found = self._stacked[key] = made[0] if len(made) == 1 else self.emit(concatenate, *made, axis=0)
        return found

    def _made(self, piece: Piece, shape: Shape, dtype: Any) -> Any:
        full = (piece.count, *shape)
        match piece:
            case Numbers():
                return self.constant(np.array(piece.values, dtype))
            case Repeated():
                one = self.reshaped(self.present(piece.value), (1, *shape))
                return one if piece.count == 1 else self.emit(broadcast, one, shape=full)
            case Rows():
                rest = [whole(length) for length in piece.source.shape[1:]]
                entry = _range(piece.first, piece.step, piece.count)
                return self.reshaped(self.sliced(piece.source, (entry, *rest)), full)
            case Items():
                return self.reshaped(self._sliced_rows(piece), full)

    def _sliced_rows(self, piece: Items) -> Any:
        """Slices of one array, with the steps in front."""
        entry, axis, count = piece.index[piece.axis], piece.axis, piece.count
        source = self.present(piece.source)
        before = len([one for one in piece.index[:axis] if type(one) is tuple])
        if type(entry) is int:
            every = _range(entry, piece.step, count)
            return self._to_front(self.sliced(source, (*piece.index[:axis], every, *piece.index[axis + 1 :])), before)
        start, _, stride = entry
        width = len(range(*entry))
        if stride == 1 and piece.step == width:
            every = (start, start + count * width, 1)
            joined = self.sliced(source, (*piece.index[:axis], every, *piece.index[axis + 1 :]))
            shape = (*joined.shape[:before], count, width, *joined.shape[before + 1 :])
            return self._to_front(self.reshaped(joined, shape), before)
        places = start + piece.step * np.arange(count)[:, None] + stride * np.arange(width)
        joined = self.sliced(source, (*piece.index[:axis], whole(source.shape[axis]), *piece.index[axis + 1 :]))
        return self._to_front(self.emit(gather, joined, self.constant(places), axis=before), before)

    def _to_front(self, x: Any, axis: int) -> Any:
        order = [axis, *[i for i in range(len(x.shape)) if i != axis]]
        return self.permuted(x, order)

    def joined(self, equation: Equation) -> None:
        """A concatenation of many rows of stacks, which is made of the stacks."""
        out, pieces, axis = equation.outputs[0], equation.inputs, equation.params["axis"]
        shape = pieces[0].shape
        rows = self.stack(pieces, shape, out.dtype)
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        turned = self.permuted(rows, order)
        self.equations.append(Equation(reshape, (turned,), {"shape": out.shape}, (out,), self.line))

    def is_joined(self, equation: Equation) -> bool:
        """Whether an equation is such a concatenation."""
        pieces = equation.inputs
        if equation.row is not concatenate or len(pieces) < 4 or not any([self._base(x) in self.rows for x in pieces]):
            return False
        first = pieces[0]
        if not all([type(x) is Var and x.shape == first.shape and x.dtype == first.dtype for x in pieces]):
            return False
        return 2 * len(self.pieces(pieces)) <= len(pieces)


def whole(length: int) -> tuple[int, int, int]:
    """The slice of everything along an axis."""
    return 0, length, 1


def _range(first: int, step: int, count: int) -> tuple[int, int, int]:
    """The slice first, first + step, ... of so many entries."""
    last = first + (count - 1) * step
    return first, last + (1 if step > 0 else -1), step


def _moved(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[int, int] | None:
    """(axis, step) where two indices differ along one axis, by a shift."""
    differ = [axis for axis, (x, y) in enumerate(zip(one, other, strict=True)) if x != y]
    if len(differ) != 1:
        return None
    (axis,) = differ
    x, y = one[axis], other[axis]
    if type(x) is not type(y):
        return None
    step = y - x if type(x) is int else y[0] - x[0]
    return (axis, step) if shifted(one, axis, step) == other else None


def shifted(index: tuple[Any, ...], axis: int, by: int) -> tuple[Any, ...]:
    """An index moved along one axis."""
    entry = index[axis]
    moved = entry + by if type(entry) is int else (entry[0] + by, entry[1] + by, entry[2])
    return (*index[:axis], moved, *index[axis + 1 :])


def cost(pieces: Sequence[Piece], size: int) -> tuple[int, int]:
    """(pieces, bytes) that have to be put together for rows of so many bytes; nothing where there is one piece."""
    if len(pieces) == 1 and not (isinstance(pieces[0], Repeated) and pieces[0].count > 1):
        return 0, 0
    return len(pieces), size * sum([piece.count for piece in pieces])


def turned(pieces: Sequence[Piece]) -> bool:
    """Whether the rows are there in the opposite order."""
    return len(pieces) == 1 and isinstance(pieces[0], (Rows, Items)) and pieces[0].step < 0


def longest(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Where the longest piece begins and ends."""
    start, best = 0, (0, 0)
    for piece in pieces:
        if piece.count > best[1] - best[0]:
            best = (start, start + piece.count)
        start += piece.count
    return best


def size_of(var: Var) -> int:
    """The bytes of a value."""
    return math.prod(var.shape) * var.dtype.itemsize
