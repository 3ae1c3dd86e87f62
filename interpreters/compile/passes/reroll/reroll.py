"""Loops in Python that were unrolled while tracing, rolled up again: many equal steps become one scan.

A stretch of equations that repeats is a loop if each operand of a step relates to the step before in one way. Values
that steps hand on become carries, those that differ from step to step rows of arrays, and values needed later on are
stacked, so that the loop of a gradient reads what the loop before it has kept.
"""

from __future__ import annotations

from typing import Any

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.passes.cleanup import eliminate_dead_code
from func.interpreters.compile.passes.reroll.canonical_order import Ordered
from func.interpreters.compile.passes.reroll.loop_steps import Given, Steps, indices, recognised
from func.interpreters.compile.passes.reroll.moving_indices import indexed
from func.interpreters.compile.passes.reroll.period_search import stretches
from func.interpreters.compile.passes.reroll.scan_builder import scanned, trimmed
from func.interpreters.compile.passes.reroll.stacks import Stacks
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Program, Var

LEAST = 8
"""Loops of fewer steps stay as they are."""
MANY = 64
"""So do loops of fewer equations in all their steps."""
FUSED = 512
"""So many, if they are elementwise and one kernel takes them all."""
TRIES = 8
"""How many stretches are looked at before a part of a program is left alone."""
DEPTH = 3
"""Loops in loops, up to so many levels."""
_MOVES = frozenset({getitem, reshape, permute, broadcast, concatenate})


def reroll(program: Program, least: int = LEAST, many: int = MANY, fused: int = FUSED) -> Program:
    """The program with repeated steps as scans; the given one where nothing repeats.

    Loops have at least `least` steps and `many` equations in all of them, `fused` where all are elementwise.
    """
    return _Roller(least, many, fused).rolled(program, DEPTH)


class _Roller:
    """The limits, and the bodies made so far: loops with equal bodies share one, so that a loop of them is found."""

    def __init__(self, least: int, many: int, fused: int) -> None:
        self.least = least
        self.many = many
        self.fused = fused
        self.bodies: dict[Program, CompiledCall] = {}

    def rolled(self, program: Program, depth: int) -> Program:
        """The program with loops rolled up, and then loops of those."""
        for _ in range(depth):
            if len(program.equations) < max(self.many, self.least):
                break
            after = self._once(program, depth)
            if after is program:
                break
            program = after
        return program

    def _once(self, program: Program, depth: int) -> Program:
        sequence = Ordered(program)
        loops: list[Steps] = []
        self._search(sequence, 0, len(sequence.equations), loops)
        if not loops:
            return program

        def body_of(body: Program) -> CompiledCall:
            body = self.rolled(body, depth - 1)
            found = self.bodies.get(body)
            if found is None:
                found = self.bodies[body] = CompiledCall(body)
            return found

        stacks = Stacks(program)
        place, done = 0, False
        for loop in loops:
            steps = trimmed(loop, stacks)
            stacks.copied(sequence.equations[place : steps.start])
            place = steps.start
            if steps.count >= self.least and self._is_worth_it(steps) and scanned(steps, stacks, body_of):
                place, done = steps.stop, True
        if not done:
            return program
        stacks.copied(sequence.equations[place:])
        outputs = [stacks.present(x) for x in program.outputs]
        return eliminate_dead_code(Program(program.inputs, stacks.equations, outputs, stacks.constants))

    def _search(self, sequence: Ordered, start: int, stop: int, loops: list[Steps]) -> None:
        """Append the loops between two places, in order."""
        if stop - start < max(self.many, self.least):
            return
        for stretch in stretches(sequence.signs, start, stop, self.least, self.many)[:TRIES]:
            steps = recognised(sequence, stretch, self.least)
            if steps is not None and self._is_worth_it(steps) and _is_simple(steps):
                self._search(sequence, start, steps.start, loops)
                loops.append(steps)
                self._search(sequence, steps.stop, stop, loops)
                return

    def _is_worth_it(self, steps: Steps) -> bool:
        rows = {steps.equation(j).primitive for j in range(steps.period)}
        total = steps.count * steps.period
        if rows <= _MOVES or total < self.many:
            return False
        return total >= self.fused or not _is_one_kernel(steps)


def _is_one_kernel(steps: Steps) -> bool:
    """Whether all equations are elementwise, on scalars and arrays of one shape."""
    equations = [steps.equation(j) for j in range(steps.period)]
    shapes = {out.shape for equation in equations for out in equation.outputs} - {()}
    return len(shapes) <= 1 and all([isinstance(equation.primitive, Elementwise) for equation in equations])


def _is_simple(steps: Steps) -> bool:
    """Whether indices that differ can be scanned, and no values are given again and again, as would be those of a
    loop with a longer period."""
    for j in range(steps.period):
        different = indices(steps, j)
        if different is not None and indexed(steps.equation(j), different) is None:
            return False
        for k in range(len(steps.equation(j).inputs)):
            operand = steps.operand(j, k)
            if not isinstance(operand, Given) or type(operand.values[0]) is not Var:
                continue
            if 2 * len(set(operand.values)) <= steps.count and not _is_sliced(steps, operand.values):
                return False
    return True


def _is_sliced(steps: Steps, values: tuple[Any, ...]) -> bool:
    """Whether all values are slices of one array."""
    sequence = steps.sequence
    makers = [sequence.equations[sequence.places[sequence.number[x]]] for x in values if x in sequence.number]
    return (
        len(makers) == len(values)
        and {maker.primitive for maker in makers} == {getitem}
        and (len({maker.inputs[0] for maker in makers}) == 1)
    )
