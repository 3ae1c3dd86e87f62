"""Values with one row for each step, made from what is there, and the variables that are rows of such stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.compile.passes.reroll.moving_indices import places, whole
from func.interpreters.compile.passes.reroll.sequences import LONG, Items, Picked, Piece, Pieces, Repeated, Woven
from func.interpreters.core import Shape
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import broadcast, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Equation, Program, Var


class Stacks(EquationBuilder):
    """The equations of the rolled program, and which rows of which stacks its variables are."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.rows: dict[Any, tuple[Var, int]] = {}
        """For values that a loop has stacked: the stack and the row."""
        self.absent: set[Any] = set()
        """Those that are not variables of the rolled program yet."""
        self.made: dict[Any, Equation] = {x: equation for equation in program.equations for x in equation.outputs}
        """How values outside loops are made."""
        self._pieces = Pieces(self.made, self.rows)
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
            if self.rows and self._is_joined(equation):
                self._joined(equation)
                continue
            if self.absent:
                for x in equation.inputs:
                    self.present(x)
            self.equations.append(equation)

    def pieces(self, values: Sequence[Var]) -> list[Piece]:
        """What a sequence of variables is made of."""
        return self._pieces.pieces(values)

    # --- stacks -------------------------------------------------------------------------------------------------

    def stack(self, values: tuple[Var, ...], shape: Shape) -> Var:
        """The values as rows of one array."""
        found = self._stacked.get(values)
        if found is None:
            made = [self._made(piece, shape) for piece in self.pieces(values)]
            found = self._stacked[values] = made[0] if len(made) == 1 else self.emit(concatenate, *made, axis=0)
        return found

    def _made(self, piece: Piece, shape: Shape) -> Any:
        full = (piece.count, *shape)
        match piece:
            case Items():
                return self.reshape(self._items(piece), full)
            case Picked():
                return self.reshape(self._picked(piece), full)
            case Woven():
                strands = [self._made(strand, (1, *shape)) for strand in piece.strands]
                return self.reshape(self.emit(concatenate, *strands, axis=1), full)
            case Repeated():
                one = self.reshape(self.present(piece.value), (1, *shape))
                return one if piece.count == 1 else self.emit(broadcast, one, shape=full)

    def _items(self, piece: Items) -> Any:
        """Slices of one array, with the steps in front."""
        entry, axis, count = piece.index[piece.axis], piece.axis, piece.count
        before = len([one for one in piece.index[:axis] if type(one) is tuple])
        if type(entry) is int:
            rows = self._along(piece, _range(entry, piece.step, count))
            return self._to_front(rows, before)
        width = len(range(*entry))
        if entry[2] != 1 or piece.step != width:
            return self._picked(piece)
        chunks = self._along(piece, (entry[0], entry[0] + count * width, 1))
        split = (*chunks.shape[:before], count, width, *chunks.shape[before + 1 :])
        return self._to_front(self.reshape(chunks, split), before)

    def _along(self, piece: Items, entry: tuple[int, int, int]) -> Any:
        """The array that the slices are of, with another slice along the axis where they move."""
        index = (*piece.index[: piece.axis], entry, *piece.index[piece.axis + 1 :])
        return self.slice(self.present(piece.source), index)

    def _picked(self, piece: Items | Picked) -> Any:
        """Slices that may overlap, or lie here and there, with the steps in front."""
        source = self.present(piece.source)
        indices = piece.indices if isinstance(piece, Picked) else piece.all_indices()
        found = places(indices)
        assert found is not None
        rest, axis = found.rest(indices[0], source.shape)
        positions = [self.constant(np.array(one)) for one in found.positions]
        return self._to_front(self.emit(gather, self.slice(source, rest), *positions, axis=axis), axis)

    def _to_front(self, x: Any, axis: int) -> Any:
        order = [axis, *[i for i in range(len(x.shape)) if i != axis]]
        return self.permute(x, order)

    # --- concatenations -----------------------------------------------------------------------------------------

    def _joined(self, equation: Equation) -> None:
        """A concatenation of many rows and slices, which is made of the arrays they come from."""
        out, pieces, axis = equation.outputs[0], equation.inputs, equation.params["axis"]
        shape = pieces[0].shape
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        turned = self.permute(self.stack(pieces, shape), order)
        self.equations.append(Equation(reshape, (turned,), {"shape": out.shape}, (out,), self.line))

    def _is_joined(self, equation: Equation) -> bool:
        """Whether an equation is such a concatenation."""
        pieces = equation.inputs
        if equation.primitive is not concatenate or len(pieces) < LONG:
            return False
        first = pieces[0]
        if not all([type(x) is Var and x.shape == first.shape and x.dtype == first.dtype for x in pieces]):
            return False
        found = self.pieces(pieces)
        return 2 * len(found) <= len(pieces) and not all([isinstance(one, Repeated) for one in found])


def _range(first: int, step: int, count: int) -> tuple[int, int, int]:
    """The slice first, first + step, ... of so many entries."""
    last = first + (count - 1) * step
    return first, last + (1 if step > 0 else -1), step
