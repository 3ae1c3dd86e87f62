"""A canonical order of equations, in which the steps of an unrolled loop look alike, and signatures of equations.

Slices of an array with many slices come right after it, other slices right before their first use. An operation on two
values without other uses comes as soon as both are there. So a total that is computed at the end, or the sum of a list,
becomes part of the steps. An operation that native code computes together with another one comes as soon as their
operand is there. The loop then keeps its result for the backward loop, in place of the operand.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from func.backends.loops.nest_cleanup import COMPUTED_WITH
from func.interpreters.compile.passes.equation_builder import count_uses
from func.interpreters.primitives.structural.slicing import embed, getitem, update
from func.interpreters.program.equality import canonical
from func.interpreters.program.program import Equation, Program, Var

FIRST = -1
"""The place of equations that depend on inputs and constants only."""
MANY_USES = 8
"""The uses from which on a value may be a constant of a loop, and the slices from which on an array is a sequence.
The constant can be computed at the start; the sequence exists before the loop."""
COMPUTED_TOGETHER = frozenset([other for other, _ in COMPUTED_WITH.values()])
"""Names of primitives that native code computes together with another one of the same operand."""
INDEXED = frozenset({getitem, update, embed})
"""Primitives whose index may differ from step to step."""


class OrderedEquations:
    """The equations of a program in canonical order, with consecutive numbers for their outputs."""

    __slots__ = ("equations", "first_output", "last_use", "number", "place_of", "program", "signatures")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.equations = canonical_order(program)
        self.number: dict[Any, int] = {}
        """The number of each output; inputs, constants and scalars have none."""
        self.first_output: list[int] = []
        """For each equation, the number of its first output."""
        self.place_of: list[int] = []
        """For each output number, the place of the equation."""
        self.last_use: dict[Any, int] = {}
        """The place of the last equation that uses a variable; the number of equations for outputs of the program."""
        for place, equation in enumerate(self.equations):
            self.first_output.append(len(self.place_of))
            for out in equation.outputs:
                self.number[out] = len(self.place_of)
                self.place_of.append(place)
            for x in equation.inputs:
                if type(x) is Var:
                    self.last_use[x] = place
        self.last_use.update(dict.fromkeys([x for x in program.outputs if type(x) is Var], len(self.equations)))
        self.signatures = signatures(program, self.equations)


def canonical_order(program: Program) -> list[Equation]:
    """The equations, sorted so that those of one step of a loop stand together.

    A slice moves behind its source or before its first use, what all steps use to the front, a sum behind its terms.
    """
    uses = count_uses(program)
    slice_counts = Counter([equation.inputs[0] for equation in program.equations if equation.primitive is getitem])
    ready: dict[Any, int] = {}
    slices: list[int] = []
    targets, owners = [], list(range(len(program.equations)))
    for place, equation in enumerate(program.equations):
        inputs, outputs = equation.inputs, equation.outputs
        target = place
        if equation.primitive is getitem:
            target = ready.get(inputs[0], FIRST)
            if slice_counts[inputs[0]] < MANY_USES and (target != FIRST or uses[outputs[0]] < MANY_USES):
                slices.append(place)
        elif len(outputs) == 1:
            if uses[outputs[0]] >= MANY_USES and all([ready.get(x, FIRST) == FIRST for x in inputs]):
                target = FIRST
            elif len(inputs) == 2:
                target = _earliest(inputs, outputs[0], ready, uses, place)
            elif equation.primitive.name in COMPUTED_TOGETHER and uses.get(inputs[0]) == 2:
                target = ready.get(inputs[0], place)
        targets.append(target)
        for out in outputs:
            ready[out] = target
    _move_before_first_use(program, slices, targets, owners)
    return [program.equations[i] for i in np.lexsort([range(len(targets)), owners, targets])]


def _move_before_first_use(program: Program, slices: list[int], targets: list[int], owners: list[int]) -> None:
    """Set the target and owner of each slice to those of the first equation that uses it."""
    first: dict[Any, tuple[int, int]] = {}
    sliced = {program.equations[place].outputs[0] for place in slices}
    moving = set(slices)
    for place, equation in enumerate(program.equations):
        if place not in moving and not sliced.isdisjoint(equation.inputs):
            for x in sliced.intersection(equation.inputs):
                first[x] = min(first.get(x, (place, place)), (targets[place], place))
    for place in reversed(slices):
        equation = program.equations[place]
        out, source = equation.outputs[0], equation.inputs[0]
        use = first.get(out, (place, place))
        targets[place], owners[place] = use
        if source in sliced:
            first[source] = min(first.get(source, use), use)


def _earliest(inputs: tuple[Any, ...], out: Var, ready: dict[Any, int], uses: dict[Any, int], place: int) -> int:
    """The place where both operands are ready, if one of them, of the shape of the output, has no other use."""
    x, y = inputs
    first, second = ready.get(x), ready.get(y)
    if first is None or second is None or x is y or max(first, second) == FIRST:
        return place
    if (uses[x] == 1 and x.shape == out.shape) or (uses[y] == 1 and y.shape == out.shape):
        return max(first, second)
    return place


def signatures(program: Program, equations: list[Equation]) -> np.ndarray[Any, Any]:
    """A number for each equation, equal for two that could be the same equation of different steps.

    These have equal primitives, parameters and avals; for an index only the shape of its selection counts.
    """
    kinds: dict[Any, int] = {}
    numbers: dict[Any, int] = {}
    kind_of: dict[Any, int] = {}
    kind = 0
    for x in (*program.inputs, *program.constants):
        kind_of[x] = kinds.setdefault((x.shape, x.dtype, x.weak), len(kinds) + 1)
    result = []
    for equation in equations:
        for x in equation.outputs:
            kind_of[x] = kind = kinds.setdefault((x.shape, x.dtype, x.weak), len(kinds) + 1)
        operands = tuple([kind_of.get(x) or type(x) for x in equation.inputs])
        results = kind if len(equation.outputs) == 1 else tuple([kind_of[x] for x in equation.outputs])
        signature = equation.primitive, operands, results, _parameters(equation) if equation.params else ()
        result.append(numbers.setdefault(signature, len(numbers)))
    return np.array(result, np.int32)


def _parameters(equation: Equation) -> Any:
    params = equation.params
    if equation.primitive in INDEXED:
        return tuple([_selection(entry) for entry in params["index"]])
    return tuple([key for name, value in params.items() for key in (name, _parameter(value))])


def _selection(entry: Any) -> Any:
    return (len(range(*entry)), entry[2]) if type(entry) is tuple else type(entry)


def _parameter(value: Any) -> Any:
    kind = type(value)
    if kind is int or kind is str or (kind is tuple and all([type(entry) is int for entry in value])):
        return value
    return id(value) if getattr(value, "pulls", False) else canonical(value)
