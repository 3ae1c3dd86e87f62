"""What sequences of values are made of: slices of one array, rows that a loop has stacked, one value many times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from func.interpreters.compile.passes.reroll.moving_indices import Index, places, shift, shifted, whole
from func.interpreters.primitives.structural.shapes import reshape
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.program.program import Equation, Var

STRANDS = 4
"""So many pieces at most are woven."""
LONG = 4
"""Shorter pieces are neither woven nor picked."""


@dataclass(frozen=True, slots=True)
class Items:
    """Slices of one array whose index moves along one axis by the same step each time."""

    source: Var
    index: Index
    axis: int
    step: int
    count: int

    def all_indices(self) -> list[Index]:
        """The indices of all of them."""
        return [shifted(self.index, self.axis, i * self.step) for i in range(self.count)]


@dataclass(frozen=True, slots=True)
class Picked:
    """Slices of one array here and there."""

    source: Var
    indices: tuple[Index, ...]

    @property
    def count(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class Repeated:
    """One value, so many times."""

    value: Any
    count: int


@dataclass(frozen=True, slots=True)
class Woven:
    """Pieces whose rows take turns."""

    strands: tuple[Items, ...]

    @property
    def count(self) -> int:
        return len(self.strands) * self.strands[0].count


Piece: TypeAlias = Items | Picked | Repeated | Woven


class Pieces:
    """What is known of the variables of a program: how they are made, and which are rows of which stacks."""

    def __init__(self, made: dict[Any, Equation], rows: Mapping[Any, tuple[Var, int]]) -> None:
        self.made = made
        self.rows = rows

    def pieces(self, values: Sequence[Any]) -> list[Piece]:
        """Few pieces that give, one after the other, the variables in order, whatever their shapes."""
        bases = [self._base(x) for x in values]
        found: list[Piece] = []
        start = 0
        while start < len(bases):
            piece = self._piece(bases[start:])
            found.append(piece)
            start += piece.count
        return found

    def _base(self, x: Any) -> Any:
        """What a variable is a reshape of."""
        while x not in self.rows and x in self.made and self.made[x].primitive is reshape:
            x = self.made[x].inputs[0]
        return x

    def _piece(self, bases: Sequence[Any]) -> Piece:
        """The piece at the beginning."""
        same = next((i for i, x in enumerate(bases) if x is not bases[0]), len(bases))
        if same > 1:
            return Repeated(bases[0], same)
        piece = self._items(bases)
        if piece.count >= LONG:
            return piece
        return self._woven(bases) or self._picked(bases) or piece

    def _items(self, bases: Sequence[Any]) -> Items | Repeated:
        first = self._slice(bases[0])
        second = self._slice(bases[1]) if len(bases) > 1 else None
        if first is None:
            return Repeated(bases[0], 1)
        source, index = first
        moved = None if second is None or second[0] is not source else shift(index, second[1])
        if moved is None:
            return Items(source, index, 0, 1, 1) if bases[0] in self.rows else Repeated(bases[0], 1)
        axis, step = moved
        count = 2
        for base in bases[2:]:
            found = self._slice(base)
            if found is None or found[0] is not source or found[1] != shifted(index, axis, count * step):
                break
            count += 1
        return Items(source, index, axis, step, count)

    def _woven(self, bases: Sequence[Any]) -> Woven | None:
        for number in range(2, STRANDS + 1):
            if number >= len(bases) or self._source(bases[0]) is not self._source(bases[number]):
                continue
            strands = [self._items(bases[i::number]) for i in range(min(number, len(bases)))]
            items = [strand for strand in strands if isinstance(strand, Items)]
            count = min([strand.count for strand in strands])
            if count >= LONG and len(items) == len(strands) and len({strand.source for strand in items}) > 1:
                return Woven(tuple([replace(strand, count=count) for strand in items]))
        return None

    def _picked(self, bases: Sequence[Any]) -> Picked | None:
        indices = []
        source = self._source(bases[0])
        for base in bases:
            found = self._slice(base)
            if found is None or found[0] is not source:
                break
            indices.append(found[1])
        if len(indices) < LONG or places(indices) is None:
            return None
        return Picked(source, tuple(indices))

    def _source(self, x: Any) -> Any:
        """The array that a variable is a slice of."""
        found = self._slice(x)
        return x if found is None else found[0]

    def _slice(self, x: Any) -> tuple[Var, Index] | None:
        """(array, index) of a row of a stack, or of a slice."""
        row = self.rows.get(x)
        if row is not None:
            return row[0], (row[1], *[whole(length) for length in row[0].shape[1:]])
        equation = self.made.get(x)
        if equation is None or equation.primitive is not getitem or None in equation.params["index"]:
            return None
        return equation.inputs[0], equation.params["index"]


def cost(pieces: Sequence[Piece], size: int) -> tuple[int, int]:
    """(pieces, bytes) that have to be put together for rows of so many bytes; nothing where there is one piece."""
    if len(pieces) == 1 and not isinstance(pieces[0], Repeated):
        return (0 if isinstance(pieces[0], Items) else 1), 0
    return len(pieces), size * sum([piece.count for piece in pieces])


def turned(pieces: Sequence[Piece]) -> bool:
    """Whether the rows are there in the opposite order."""
    return len(pieces) == 1 and isinstance(pieces[0], Items) and pieces[0].step < 0


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
