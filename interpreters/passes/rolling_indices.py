"""Slices and updates whose index differs from step to step, as gathers and scatters at places that are scanned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from func.interpreters.core import Aval
from func.interpreters.passes.rolling_stacks import whole
from func.interpreters.primitives.indexing import gather, scatter
from func.interpreters.primitives.structural import embed, getitem, sliced_shape
from func.interpreters.program import Equation, Var


class Moving(NamedTuple):
    """An equation with an index that moves along some axes."""

    equation: Equation
    axes: list[int]
    places: list[list[Any]]
    """For each of the axes the positions in each step: a number, or a list of them."""

    def equations(
        self,
        inputs: tuple[Any, ...],
        outputs: tuple[Var, ...],
        places: Sequence[Var],
        zeros: Callable[[Var], Var],
        line: Any,
    ) -> list[Equation]:
        """The equations of a step that stand for it; `places` are the positions there."""
        index, first = self.equation.params["index"], self.axes[0]
        if self.equation.row is getitem:
            (source,) = inputs
            rest = [whole(source.shape[i]) if i in self.axes else entry for i, entry in enumerate(index)]
            axis = len([entry for entry in index[:first] if type(entry) is tuple])
            before = []
            if rest != [whole(length) for length in source.shape]:
                part = Var(Aval(sliced_shape(tuple(rest)), source.dtype))
                before = [Equation(getitem, (source,), {"index": tuple(rest)}, (part,), line)]
                source = part
            return [*before, Equation(gather, (source, *places), {"axis": axis}, outputs, line)]
        if self.equation.row is embed:
            inputs = (zeros(outputs[0]), *inputs)
        return [Equation(scatter, (*inputs, *places), {"axis": first}, outputs, line)]


def indexed(equation: Equation, indices: Sequence[tuple[Any, ...]]) -> Moving | None:
    """The equation with an index for each step, where it is along neighbouring axes that they differ, and those are
    all integers, or one slice."""
    first = indices[0]
    if None in first:
        return None
    axes = [axis for axis in range(len(first)) if any([index[axis] != first[axis] for index in indices])]
    if axes != list(range(axes[0], axes[-1] + 1)):
        return None
    slices = [axis for axis in axes if type(first[axis]) is tuple]
    if slices and len(axes) > 1:
        return None
    if equation.row is not getitem:
        shape = equation.outputs[0].shape
        if any([first[axis] != whole(shape[axis]) for axis in range(len(first)) if axis not in axes]):
            return None
        value = equation.inputs[-1]
        if type(value) is not Var or value.shape != sliced_shape(first) or value.dtype != equation.outputs[0].dtype:
            return None
    places = [[list(range(*index[axis])) if slices else index[axis] for index in indices] for axis in axes]
    return Moving(equation, axes, places)
