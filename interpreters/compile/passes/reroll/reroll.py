"""Loop re-rolling: a Python loop that tracing unrolled becomes a scan.

A run of equations that repeats is a loop if each operand relates to earlier steps in the same way in all steps. Values
for the next step become carries, and values that differ from step to step become rows of stacked inputs. Values that
are used after the loop become stacked outputs, so that the loop of a gradient reads the residuals of the forward loop.
"""

from __future__ import annotations

from typing import Any

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.passes.reroll.canonical_order import OrderedEquations
from func.interpreters.compile.passes.reroll.loop_steps import (
    PerStep,
    Steps,
    find_stretches,
    recognize_loop,
    varying_indices,
)
from func.interpreters.compile.passes.reroll.moving_indices import vary_index
from func.interpreters.compile.passes.reroll.scan_builder import append_scan, trim
from func.interpreters.compile.passes.reroll.stacks import Stacks
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Program, Var

MIN_STEPS = 8
"""Loops of fewer steps stay unrolled."""
MIN_EQUATIONS = 64
"""Loops of fewer equations in all steps stay unrolled."""
MIN_FUSED = 512
"""Elementwise loops of fewer equations in all steps stay unrolled: they are one kernel."""
MAX_TRIES = 8
"""The number of stretches to try before a part of a program stays unrolled."""
MAX_DEPTH = 3
"""The largest depth of nested loops."""
_STRUCTURAL = frozenset({getitem, reshape, permute, broadcast, concatenate})


def reroll(program: Program, least: int = MIN_STEPS, many: int = MIN_EQUATIONS, fused: int = MIN_FUSED) -> Program:
    """Replace repeated steps by scans.

    A loop has at least `least` steps and in all steps `many` equations, or `fused` where these are elementwise.
    """
    return _Reroller(least, many, fused).reroll(program, MAX_DEPTH)


class _Reroller:
    """The limits, and the loop bodies by their programs: equal bodies are one object, so that loops of loops repeat."""

    def __init__(self, least: int, many: int, fused: int) -> None:
        self.least = least
        self.many = many
        self.fused = fused
        self.bodies: dict[Program, CompiledCall] = {}

    def reroll(self, program: Program, depth: int) -> Program:
        """The program with loops, then loops of loops, as scans."""
        for _ in range(depth):
            if len(program.equations) < max(self.many, self.least):
                break
            after = self._once(program, depth)
            if after is program:
                break
            program = after
        return program

    def _once(self, program: Program, depth: int) -> Program:
        sequence = OrderedEquations(program)
        loops: list[Steps] = []
        self._find_loops(sequence, 0, len(sequence.equations), loops)
        if not loops:
            return program

        def body_of(body: Program) -> CompiledCall:
            body = self.reroll(body, depth - 1)
            if body not in self.bodies:
                self.bodies[body] = CompiledCall(body)
            return self.bodies[body]

        stacks = Stacks(program)
        place, changed = 0, False
        for loop in loops:
            steps = trim(loop, stacks)
            stacks.copy(sequence.equations[place : steps.start])
            place = steps.start
            if steps.count >= self.least and self._is_worth_it(steps) and append_scan(steps, stacks, body_of):
                place, changed = steps.stop, True
        if not changed:
            return program
        stacks.copy(sequence.equations[place:])
        return stacks.build([stacks.materialize(x) for x in program.outputs])

    def _find_loops(self, sequence: OrderedEquations, start: int, stop: int, loops: list[Steps]) -> None:
        """Append the loops between two places, in order."""
        if stop - start < max(self.many, self.least):
            return
        for stretch in find_stretches(sequence.signatures, start, stop, self.least, self.many)[:MAX_TRIES]:
            steps = recognize_loop(sequence, stretch, self.least)
            if steps is not None and self._is_worth_it(steps) and _is_simple(steps):
                self._find_loops(sequence, start, steps.start, loops)
                loops.append(steps)
                self._find_loops(sequence, steps.stop, stop, loops)
                return

    def _is_worth_it(self, steps: Steps) -> bool:
        primitives = {steps.equation(j).primitive for j in range(steps.period)}
        total = steps.count * steps.period
        if primitives <= _STRUCTURAL or total < self.many:
            return False
        return total >= self.fused or not _is_one_kernel(steps)


def _is_one_kernel(steps: Steps) -> bool:
    """True where all equations are elementwise, on scalars and arrays of one shape."""
    equations = [steps.equation(j) for j in range(steps.period)]
    shapes = {out.shape for equation in equations for out in equation.outputs} - {()}
    return len(shapes) <= 1 and all([isinstance(equation.primitive, Elementwise) for equation in equations])


def _is_simple(steps: Steps) -> bool:
    """True where varying indices can be scanned and no sequence of values repeats, as in a multiple of the period."""
    for j in range(steps.period):
        indices = varying_indices(steps, j)
        if indices is not None and vary_index(steps.equation(j), indices) is None:
            return False
        for k in range(len(steps.equation(j).inputs)):
            operand = steps.operand(j, k)
            if not isinstance(operand, PerStep) or type(operand.values[0]) is not Var:
                continue
            if 2 * len(set(operand.values)) <= steps.count and not _is_sliced(steps, operand.values):
                return False
    return True


def _is_sliced(steps: Steps, values: tuple[Any, ...]) -> bool:
    """True where all values are slices of one array."""
    sequence = steps.sequence
    definitions = [sequence.equations[sequence.place_of[sequence.number[x]]] for x in values if x in sequence.number]
    is_slice = [definition.primitive is getitem for definition in definitions]
    return (
        len(is_slice) == len(values)
        and all(is_slice)
        and len({definition.inputs[0] for definition in definitions}) == 1
    )
