"""Stacked values: sequences of variables, one per step, as rows of one array.

A sequence is split into few pieces: slices of one array at regular or irregular positions, rows that a loop has
stacked, one value repeated. Its stack is made of them without copying single rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.records import Record
from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.compile.passes.index_arithmetic import Index, run, shift, whole_index
from func.interpreters.compile.passes.reroll.moving_indices import shift_between, varying_axes
from func.interpreters.core import Shape
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import broadcast, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Equation, Program, Var

MAX_INTERLEAVED = 4
"""The largest number of interleaved pieces that is recognised."""
LONG = 4
"""Shorter pieces are neither interleaved nor irregular."""


class RegularSlices(Record):
    """Slices of one array whose index moves along one axis by a constant step."""

    source: Var
    index: Index
    axis: int
    step: int
    count: int

    def all_indices(self) -> list[Index]:
        """The index of each slice."""
        return [shift(self.index, self.axis, i * self.step) for i in range(self.count)]


class IrregularSlices(Record):
    """Slices of one array at other positions."""

    source: Var
    indices: tuple[Index, ...]

    @property
    def count(self) -> int:
        return len(self.indices)


class Repeated(Record):
    """One value, `count` times."""

    value: Any
    count: int


class Interleaved(Record):
    """Regular slices of several arrays in turn."""

    parts: tuple[RegularSlices, ...]

    @property
    def count(self) -> int:
        return len(self.parts) * self.parts[0].count


Piece: TypeAlias = RegularSlices | IrregularSlices | Repeated | Interleaved


class SequenceAnalysis:
    """Splits sequences of variables into pieces, by their definitions and the stacks of which they are rows."""

    def __init__(self, definitions: dict[Any, Equation], rows: Mapping[Any, tuple[Var, int]]) -> None:
        self.definitions = definitions
        self.rows = rows

    def pieces(self, values: Sequence[Any]) -> list[Piece]:
        """Few pieces whose concatenation is the sequence, up to the shape of rows."""
        bases = [self._base(x) for x in values]
        pieces: list[Piece] = []
        start = 0
        while start < len(bases):
            piece = self._first_piece(bases[start:])
            pieces.append(piece)
            start += piece.count
        return pieces

    def _base(self, x: Any) -> Any:
        """The variable of which x is a reshape."""
        while x not in self.rows and x in self.definitions and self.definitions[x].primitive is reshape:
            x = self.definitions[x].inputs[0]
        return x

    def _first_piece(self, bases: Sequence[Any]) -> Piece:
        """The piece with which a sequence begins."""
        same = next((i for i, x in enumerate(bases) if x is not bases[0]), len(bases))
        if same > 1:
            return Repeated(bases[0], same)
        piece = self._regular(bases)
        if piece.count >= LONG:
            return piece
        return self._interleaved(bases) or self._irregular(bases) or piece

    def _regular(self, bases: Sequence[Any]) -> RegularSlices | Repeated:
        first = self._slice(bases[0])
        second = self._slice(bases[1]) if len(bases) > 1 else None
        if first is None:
            return Repeated(bases[0], 1)
        source, index = first
        movement = None if second is None or second[0] is not source else shift_between(index, second[1])
        if movement is None:
            return RegularSlices(source, index, 0, 1, 1) if bases[0] in self.rows else Repeated(bases[0], 1)
        axis, step = movement
        count = 2
        for base in bases[2:]:
            slice_ = self._slice(base)
            if slice_ is None or slice_[0] is not source or slice_[1] != shift(index, axis, count * step):
                break
            count += 1
        return RegularSlices(source, index, axis, step, count)

    def _interleaved(self, bases: Sequence[Any]) -> Interleaved | None:
        for number in range(2, MAX_INTERLEAVED + 1):
            if number >= len(bases) or self._source(bases[0]) is not self._source(bases[number]):
                continue
            parts = [self._regular(bases[i::number]) for i in range(min(number, len(bases)))]
            regular = [part for part in parts if isinstance(part, RegularSlices)]
            count = min([part.count for part in parts])
            if count >= LONG and len(regular) == len(parts) and len({part.source for part in regular}) > 1:
                return Interleaved(tuple([part.with_fields(count=count) for part in regular]))
        return None

    def _irregular(self, bases: Sequence[Any]) -> IrregularSlices | None:
        indices = []
        source = self._source(bases[0])
        for base in bases:
            slice_ = self._slice(base)
            if slice_ is None or slice_[0] is not source:
                break
            indices.append(slice_[1])
        if len(indices) < LONG or varying_axes(indices) is None:
            return None
        return IrregularSlices(source, tuple(indices))

    def _source(self, x: Any) -> Any:
        """The array of which a variable is a slice."""
        slice_ = self._slice(x)
        return x if slice_ is None else slice_[0]

    def _slice(self, x: Any) -> tuple[Var, Index] | None:
        """(array, index) where a variable is a row of a stack or a slice."""
        row = self.rows.get(x)
        if row is not None:
            return row[0], (row[1], *whole_index(row[0].shape[1:]))
        equation = self.definitions.get(x)
        if equation is None or equation.primitive is not getitem or None in equation.params["index"]:
            return None
        return equation.inputs[0], equation.params["index"]


def stacking_cost(pieces: Sequence[Piece], size: int) -> tuple[int, int]:
    """(pieces, bytes) that must be copied to stack rows of `size` bytes; none for a single regular piece."""
    if len(pieces) == 1 and not isinstance(pieces[0], Repeated):
        return (0 if isinstance(pieces[0], RegularSlices) else 1), 0
    return len(pieces), size * sum([piece.count for piece in pieces])


def is_reversed(pieces: Sequence[Piece]) -> bool:
    """True where the rows are regular slices in reverse order."""
    return len(pieces) == 1 and isinstance(pieces[0], RegularSlices) and pieces[0].step < 0


def longest_piece(pieces: Sequence[Piece]) -> tuple[int, int]:
    """The start and the end of the longest piece."""
    start, best = 0, (0, 0)
    for piece in pieces:
        if piece.count > best[1] - best[0]:
            best = (start, start + piece.count)
        start += piece.count
    return best


def size_of(var: Var) -> int:
    """The size of a value in bytes."""
    return math.prod(var.shape) * var.dtype.itemsize


class Stacks(EquationBuilder):
    """Builds the rerolled program, and records which of its variables are rows of stacks."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.rows: dict[Any, tuple[Var, int]] = {}
        """The stack and the row of each value that a loop has stacked."""
        self.absent: set[Any] = set()
        """The rows that are not variables of the new program yet."""
        self.source_definitions: dict[Any, Equation] = {x: e for e in program.equations for x in e.outputs}
        """The definitions of values outside loops."""
        self._analysis = SequenceAnalysis(self.source_definitions, self.rows)
        self._stacked: dict[Any, Var] = {}

    def materialize(self, x: Any) -> Any:
        """Define a value that so far is only a row of a stack, and return it."""
        if x in self.absent:
            self.absent.remove(x)
            source, row = self.rows[x]
            index = (row, *whole_index(x.shape))
            self.equations.append(Equation(getitem, (source,), {"index": index}, (x,), self.line))
        return x

    def copy(self, equations: Sequence[Equation]) -> None:
        """Append equations outside loops."""
        for equation in equations:
            self.line = equation.line
            if self.rows and self._is_concatenation_of_rows(equation):
                self._concatenate(equation)
                continue
            if self.absent:
                for x in equation.inputs:
                    self.materialize(x)
            self.equations.append(equation)

    def pieces(self, values: Sequence[Var]) -> list[Piece]:
        """The pieces of a sequence of variables."""
        return self._analysis.pieces(values)

    def stack(self, values: tuple[Var, ...], shape: Shape) -> Var:
        """The values as rows of one array."""
        stack = self._stacked.get(values)
        if stack is None:
            pieces = [self._stack_piece(piece, shape) for piece in self.pieces(values)]
            stack = pieces[0] if len(pieces) == 1 else self.emit(concatenate, *pieces, axis=0)
            self._stacked[values] = stack
        return stack

    def _stack_piece(self, piece: Piece, shape: Shape) -> Any:
        full = (piece.count, *shape)
        match piece:
            case RegularSlices():
                return self.reshape(self._stack_regular(piece), full)
            case IrregularSlices():
                return self.reshape(self._gather(piece), full)
            case Interleaved():
                parts = [self._stack_piece(part, (1, *shape)) for part in piece.parts]
                return self.reshape(self.emit(concatenate, *parts, axis=1), full)
            case Repeated():
                row = self.reshape(self.materialize(piece.value), (1, *shape))
                return row if piece.count == 1 else self.emit(broadcast, row, shape=full)

    def _stack_regular(self, piece: RegularSlices) -> Any:
        """Regular slices, with the axis of steps in front."""
        entry, axis, count = piece.index[piece.axis], piece.axis, piece.count
        before = len([e for e in piece.index[:axis] if type(e) is tuple])
        if type(entry) is int:
            return self._to_front(self._slice_source(piece, run(entry, piece.step, count)), before)
        width = len(range(*entry))
        if entry[2] != 1 or piece.step != width:
            return self._gather(piece)
        chunks = self._slice_source(piece, (entry[0], entry[0] + count * width, 1))
        split = (*chunks.shape[:before], count, width, *chunks.shape[before + 1 :])
        return self._to_front(self.reshape(chunks, split), before)

    def _slice_source(self, piece: RegularSlices, entry: tuple[int, int, int]) -> Any:
        """The source of slices under their index, with another entry at the axis along which they move."""
        index = (*piece.index[: piece.axis], entry, *piece.index[piece.axis + 1 :])
        return self.slice(self.materialize(piece.source), index)

    def _gather(self, piece: RegularSlices | IrregularSlices) -> Any:
        """Slices that may overlap or be irregular, with the axis of steps in front."""
        source = self.materialize(piece.source)
        indices = piece.indices if isinstance(piece, IrregularSlices) else piece.all_indices()
        varying = varying_axes(indices)
        assert varying is not None
        rest, axis = varying.rest(indices[0], source.shape)
        positions = [self.constant(np.array(along_axis)) for along_axis in varying.positions]
        return self._to_front(self.emit(gather, self.slice(source, rest), *positions, axis=axis), axis)

    def _to_front(self, x: Any, axis: int) -> Any:
        """x with an axis moved to the front."""
        order = [axis, *[i for i in range(len(x.shape)) if i != axis]]
        return self.permute(x, order)

    def _concatenate(self, equation: Equation) -> None:
        """Append a concatenation of rows and slices as a permutation of their stack.

        Its memory is in the order of the stack, in which NumPy adds: sums may differ in the last bit.
        """
        out, pieces, axis = equation.outputs[0], equation.inputs, equation.params["axis"]
        shape = pieces[0].shape
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        stack = self.permute(self.stack(pieces, shape), order)
        self.equations.append(Equation(reshape, (stack,), {"shape": out.shape}, (out,), self.line))

    def _is_concatenation_of_rows(self, equation: Equation) -> bool:
        """True for a concatenation of many arrays of one aval that are few pieces, not all of them repeated values."""
        inputs = equation.inputs
        if equation.primitive is not concatenate or len(inputs) < LONG:
            return False
        first = inputs[0]
        if not all([type(x) is Var and x.shape == first.shape and x.dtype == first.dtype for x in inputs]):
            return False
        pieces = self.pieces(inputs)
        return 2 * len(pieces) <= len(inputs) and not all([isinstance(piece, Repeated) for piece in pieces])
