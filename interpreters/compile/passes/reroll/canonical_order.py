"""The equations of a program in an order in which the steps of an unrolled loop look alike, with a sign for each.

Slices of arrays that have many are taken at once, others right before they are needed. What adds up values that are
not needed any more is done as soon as they are there: a total that the optimiser computes at the end, or the sum of a
list, joins the steps.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from func.interpreters.compile.passes.equation_builder import count_uses
from func.interpreters.primitives.structural.slicing import embed, getitem, update
from func.interpreters.program.equality import canonical
from func.interpreters.program.program import Equation, Program, Var

FIRST = -1
"""The place of equations that need only inputs and constants."""
SHARED = 8
"""What is needed so often is taken for a constant of a loop if it can be computed at the start, and an array of which
there are so many slices for a sequence that is there before the loop."""
INDEXED = frozenset({getitem, update, embed})
"""Rows whose index may differ from step to step."""


class Ordered:
    """Equations in order. Each output has a number: the outputs are numbered through."""

    __slots__ = ("bases", "equations", "last", "number", "places", "program", "signs")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.equations = in_order(program)
        self.number: dict[Any, int] = {}
        """The number of each output; inputs, constants and literals have none."""
        self.bases: list[int] = []
        """For each equation the number of its first output."""
        self.places: list[int] = []
        """For each number the place of its equation."""
        self.last: dict[Any, int] = {}
        """The place of the last equation that needs a variable; the length for outputs of the program."""
        for place, equation in enumerate(self.equations):
            self.bases.append(len(self.places))
            for out in equation.outputs:
                self.number[out] = len(self.places)
                self.places.append(place)
            for x in equation.inputs:
                if type(x) is Var:
                    self.last[x] = place
        self.last.update(dict.fromkeys([x for x in program.outputs if type(x) is Var], len(self.equations)))
        self.signs = signs(program, self.equations)


def in_order(program: Program) -> list[Equation]:
    """The equations, moved to where those of other steps have their counterparts: slices right behind what they are
    slices of or right before the first equation that needs them, what all steps need to the front, sums right behind
    the last of their terms."""
    uses = count_uses(program)
    parts = Counter([equation.inputs[0] for equation in program.equations if equation.primitive is getitem])
    root: dict[Any, int] = {}
    slices: list[int] = []
    roots, owners = [], list(range(len(program.equations)))
    for place, equation in enumerate(program.equations):
        inputs, outputs = equation.inputs, equation.outputs
        at = place
        if equation.primitive is getitem:
            at = root.get(inputs[0], FIRST)
            if parts[inputs[0]] < SHARED and (at != FIRST or uses[outputs[0]] < SHARED):
                slices.append(place)
        elif len(outputs) == 1:
            if uses[outputs[0]] >= SHARED and all([root.get(x, FIRST) == FIRST for x in inputs]):
                at = FIRST
            elif len(inputs) == 2:
                at = _earliest(inputs, outputs[0], root, uses, place)
        roots.append(at)
        for out in outputs:
            root[out] = at
    _before_their_first_use(program, slices, roots, owners)
    return [program.equations[i] for i in np.lexsort([range(len(roots)), owners, roots])]


def _before_their_first_use(program: Program, slices: list[int], roots: list[int], owners: list[int]) -> None:
    """Set the order of slices to that of the first equation that needs them, ahead of it."""
    first: dict[Any, tuple[int, int]] = {}
    needs_cotangent = {program.equations[place].outputs[0] for place in slices}
    late = set(slices)
    for place, equation in enumerate(program.equations):
        if place not in late and not needs_cotangent.isdisjoint(equation.inputs):
            for x in needs_cotangent.intersection(equation.inputs):
                first[x] = min(first.get(x, (place, place)), (roots[place], place))
    for place in reversed(slices):
        equation = program.equations[place]
        out, source = equation.outputs[0], equation.inputs[0]
        where = first.get(out, (place, place))
        roots[place], owners[place] = where
        if source in needs_cotangent:
            first[source] = min(first.get(source, where), where)


def _earliest(inputs: tuple[Any, ...], out: Var, root: dict[Any, int], uses: dict[Any, int], place: int) -> int:
    """Where two operands are there, if one of them, no smaller than the output, is not needed any more."""
    x, y = inputs
    first, second = root.get(x), root.get(y)
    if first is None or second is None or x is y or max(first, second) == FIRST:
        return place
    if (uses[x] == 1 and x.shape == out.shape) or (uses[y] == 1 and y.shape == out.shape):
        return max(first, second)
    return place


# --- signs ------------------------------------------------------------------------------------------------------


def signs(program: Program, equations: list[Equation]) -> np.ndarray[Any, Any]:
    """A number for each equation, equal for those that could be the same equation of two steps: the row, the
    parameters and the operands' kinds are equal. An index counts only with what it selects."""
    kinds: dict[Any, int] = {}
    known: dict[Any, int] = {}
    kind_of: dict[Any, int] = {}
    for x in (*program.inputs, *program.constants):
        kind_of[x] = kinds.setdefault((x.shape, x.dtype, x.weak), len(kinds))
    result = []
    for equation in equations:
        for x in equation.outputs:
            kind_of[x] = kinds.setdefault((x.shape, x.dtype, x.weak), len(kinds))
        operands = [kind_of[x] if x in kind_of else type(x) for x in equation.inputs]
        outputs = [kind_of[x] for x in equation.outputs]
        sign = (equation.primitive, _parameters(equation) if equation.params else (), *operands, "to", *outputs)
        result.append(known.setdefault(sign, len(known)))
    return np.array(result, np.int32)


def _parameters(equation: Equation) -> Any:
    params = equation.params
    if equation.primitive in INDEXED:
        return tuple([_selected(entry) for entry in params["index"]])
    return tuple([key for name, value in params.items() for key in (name, _parameter(value))])


def _selected(entry: Any) -> Any:
    return (len(range(*entry)), entry[2]) if type(entry) is tuple else type(entry)


def _parameter(value: Any) -> Any:
    kind = type(value)
    if kind is int or kind is str or (kind is tuple and all([type(entry) is int for entry in value])):
        return value
    return id(value) if getattr(value, "pulls", False) else canonical(value)
