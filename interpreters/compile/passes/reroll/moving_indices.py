"""Indices that vary from step to step, and slices and updates at them as gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from func.interpreters.compile.passes.index_arithmetic import Index, partial_axes, shift, whole_index
from func.interpreters.core import Aval
from func.interpreters.primitives.structural.indexing import gather, scatter
from func.interpreters.primitives.structural.slicing import embed, getitem, sliced_shape
from func.interpreters.program.program import Equation, Var


def shift_between(first: Index, second: Index) -> tuple[int, int] | None:
    """(axis, step) where the second index is the first, moved by the step along one axis."""
    differing = [axis for axis, (x, y) in enumerate(zip(first, second, strict=True)) if x != y]
    if len(differing) != 1:
        return None
    (axis,) = differing
    x, y = first[axis], second[axis]
    if type(x) is not type(y):
        return None
    step = y - x if type(x) is int else y[0] - x[0]
    return (axis, step) if shift(first, axis, step) == second else None


class VaryingAxes(NamedTuple):
    """Adjacent axes along which indices differ, and for each axis the positions: integers, or lists for one axis."""

    axes: list[int]
    positions: list[list[Any]]

    def rest(self, index: Index, shape: Sequence[int]) -> tuple[Index, int]:
        """(the index with the varying axes whole, the axis of its result where these begin)."""
        rest = tuple([(0, shape[i], 1) if i in self.axes else entry for i, entry in enumerate(index)])
        return rest, len([entry for entry in index[: self.axes[0]] if type(entry) is tuple])


def varying_axes(indices: Sequence[Index]) -> VaryingAxes | None:
    """The places where indices differ; None unless those are integers along adjacent axes or slices of one length."""
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
    return VaryingAxes(
        axes, [[list(range(*index[axis])) if slices else index[axis] for index in indices] for axis in axes]
    )


def _extent(entry: Any) -> int | None:
    return len(range(*entry)) if type(entry) is tuple else None


class VaryingIndex(NamedTuple):
    """A slice or update whose index varies from step to step."""

    equation: Equation
    varying: VaryingAxes

    def equations(
        self,
        inputs: tuple[Any, ...],
        outputs: tuple[Var, ...],
        positions: Sequence[Var],
        zeros: Callable[[Var], Var],
        line: Any,
    ) -> list[Equation]:
        """The equations of the loop body; `positions` are the positions of a step along the varying axes."""
        if self.equation.primitive is getitem:
            (source,) = inputs
            rest, axis = self.varying.rest(self.equation.params["index"], source.shape)
            slices = []
            if rest != whole_index(source.shape):
                part = Var(Aval(sliced_shape(rest), source.dtype))
                slices = [Equation(getitem, (source,), {"index": rest}, (part,), line)]
                source = part
            return [*slices, Equation(gather, (source, *positions), {"axis": axis}, outputs, line)]
        if self.equation.primitive is embed:
            inputs = (zeros(outputs[0]), *inputs)
        return [Equation(scatter, (*inputs, *positions), {"axis": self.varying.axes[0]}, outputs, line)]


def vary_index(equation: Equation, indices: Sequence[Index]) -> VaryingIndex | None:
    """An equation with the index of each step; None where a gather or scatter cannot do the same."""
    varying = varying_axes(indices)
    if varying is None:
        return None
    if equation.primitive is not getitem:
        first, shape = indices[0], equation.outputs[0].shape
        if not set(partial_axes(first, shape)) <= set(varying.axes):
            return None
        value = equation.inputs[-1]
        if type(value) is not Var or value.shape != sliced_shape(first) or value.dtype != equation.outputs[0].dtype:
            return None
    return VaryingIndex(equation, varying)
