"""Indices that differ from step to step: where they move, and slices and updates as gathers and scatters there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from func.interpreters.core import Aval
from func.interpreters.primitives.structural.indexing import gather, scatter
from func.interpreters.primitives.structural.slicing import embed, getitem, sliced_shape
from func.interpreters.program.program import Equation, Var

Index: TypeAlias = tuple[Any, ...]


def whole(length: int) -> tuple[int, int, int]:
    """The slice of everything along an axis."""
    return 0, length, 1


def shifted(index: Index, axis: int, by: int) -> Index:
    """An index moved along one axis."""
    entry = index[axis]
    moved = entry + by if type(entry) is int else (entry[0] + by, entry[1] + by, entry[2])
    return (*index[:axis], moved, *index[axis + 1 :])


def shift(one: Index, other: Index) -> tuple[int, int] | None:
    """(axis, step) where an index is another one moved along one axis."""
    differ = [axis for axis, (x, y) in enumerate(zip(one, other, strict=True)) if x != y]
    if len(differ) != 1:
        return None
    (axis,) = differ
    x, y = one[axis], other[axis]
    if type(x) is not type(y):
        return None
    step = y - x if type(x) is int else y[0] - x[0]
    return (axis, step) if shifted(one, axis, step) == other else None


class Places(NamedTuple):
    """Neighbouring axes along which indices differ, and the positions there: numbers, or along one axis lists."""

    axes: list[int]
    positions: list[list[Any]]

    def rest(self, index: Index, shape: Sequence[int]) -> tuple[Index, int]:
        """(index without what moves, the axis that comes to stand where that was)."""
        left = tuple([whole(shape[i]) if i in self.axes else entry for i, entry in enumerate(index)])
        return left, len([entry for entry in index[: self.axes[0]] if type(entry) is tuple])


def places(indices: Sequence[Index]) -> Places | None:
    """Where indices differ, if that is along neighbouring axes, and they have integers there or one slice."""
    first = indices[0]
    if any([None in index for index in indices]):
        return None
    axes = [axis for axis in range(len(first)) if any([index[axis] != first[axis] for index in indices])]
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        return None
    slices = type(first[axes[0]]) is tuple
    if slices and len(axes) > 1:
        return None
    shapes = {tuple([_extent(index[axis]) for axis in axes]) for index in indices}
    if len(shapes) > 1:
        return None
    return Places(axes, [[list(range(*index[axis])) if slices else index[axis] for index in indices] for axis in axes])


def _extent(entry: Any) -> int | None:
    return len(range(*entry)) if type(entry) is tuple else None


class Moving(NamedTuple):
    """An equation with an index that moves."""

    equation: Equation
    places: Places

    def equations(
        self,
        inputs: tuple[Any, ...],
        outputs: tuple[Var, ...],
        positions: Sequence[Var],
        zeros: Callable[[Var], Var],
        line: Any,
    ) -> list[Equation]:
        """The equations of a step that stand for it; `positions` are those of the step."""
        if self.equation.primitive is getitem:
            (source,) = inputs
            rest, axis = self.places.rest(self.equation.params["index"], source.shape)
            before = []
            if rest != tuple([whole(length) for length in source.shape]):
                part = Var(Aval(sliced_shape(rest), source.dtype))
                before = [Equation(getitem, (source,), {"index": rest}, (part,), line)]
                source = part
            return [*before, Equation(gather, (source, *positions), {"axis": axis}, outputs, line)]
        if self.equation.primitive is embed:
            inputs = (zeros(outputs[0]), *inputs)
        return [Equation(scatter, (*inputs, *positions), {"axis": self.places.axes[0]}, outputs, line)]


def indexed(equation: Equation, indices: Sequence[Index]) -> Moving | None:
    """The equation with an index for each step, where such positions can be scanned."""
    found = places(indices)
    if found is None:
        return None
    if equation.primitive is not getitem:
        first, shape = indices[0], equation.outputs[0].shape
        if any([first[axis] != whole(shape[axis]) for axis in range(len(first)) if axis not in found.axes]):
            return None
        value = equation.inputs[-1]
        if type(value) is not Var or value.shape != sliced_shape(first) or value.dtype != equation.outputs[0].dtype:
            return None
    return Moving(equation, found)
