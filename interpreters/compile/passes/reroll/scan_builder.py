"""A recognised loop as one `scan_call`: its constants, carries, stacked inputs and outputs, and its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.passes.reroll.loop_steps import Carried, Invariant, PerStep, Steps, varying_indices
from func.interpreters.compile.passes.reroll.moving_indices import VaryingIndex, vary_index
from func.interpreters.compile.passes.reroll.stacks import (
    Stacks,
    is_reversed,
    longest_piece,
    size_of,
    stacking_cost,
)
from func.interpreters.control.scan import scan_call
from func.interpreters.control.scan_derivatives import ScanLoop, stacked
from func.interpreters.core import Aval, aval_of
from func.interpreters.program.program import Equation, Program, Var

MAX_TRIMMED = 2
"""This many steps may stay outside the loop if that makes an input a single piece."""
MAX_STACKED_BYTES = 1 << 18
"""The bytes that may be copied for the stacked inputs of a loop each time it runs."""
MIN_PIECES = 8
"""The number of pieces of stacked inputs that any loop may have."""
_EXACT = frozenset([np.dtype(np.float64), np.dtype(np.complex128)])


class Refused(Exception):
    """A loop that cannot be a scan, or is not worth it."""


def trim(steps: Steps, stacks: Stacks) -> Steps:
    """The loop without steps at its ends for which a stacked input would have several pieces."""
    first, last = 0, steps.count
    for values in _sequences(steps):
        pieces = stacks.pieces(values)
        if len(pieces) > 1:
            low, high = longest_piece(pieces)
            if high - low >= steps.count - MAX_TRIMMED:
                first, last = max(first, low), min(last, high)
    return steps if (first, last) == (0, steps.count) else steps.sub_range(first, last)


def check_worth(steps: Steps, stacks: Stacks) -> bool:
    """Whether most inputs are stacked in reverse. Raises Refused where too much would have to be copied."""
    count = total = backwards = forwards = 0
    for values in _sequences(steps):
        pieces = stacks.pieces(values)
        number, size = stacking_cost(pieces, size_of(values[0]))
        count, total = count + number, total + size
        backwards += is_reversed(pieces)
        forwards += number == 0 and not is_reversed(pieces)
    if count > max(MIN_PIECES, steps.count * steps.period // 2) or total > MAX_STACKED_BYTES:
        raise Refused
    return backwards > forwards


def _sequences(steps: Steps) -> list[tuple[Any, ...]]:
    """The sequences of variables with one value per step, each once."""
    sequences: dict[tuple[Any, ...], None] = {}
    for j in range(steps.period):
        for k in range(len(steps.equation(j).inputs)):
            operand = steps.operand(j, k)
            if isinstance(operand, PerStep) and type(operand.values[0]) is Var:
                sequences[operand.values] = None
    return list(sequences)


class Scan:
    """Translates the steps of a loop into a scan."""

    def __init__(self, steps: Steps, stacks: Stacks, backwards: bool) -> None:
        self.steps = steps
        self.stacks = stacks
        self.backwards = backwards
        self.consts: dict[Any, Var] = {}
        self.rows: dict[Any, tuple[Callable[[], Var], Var]] = {}
        """For each stacked input: a function that builds it, and its row in the body."""
        self.carries: dict[Any, tuple[Any, Var]] = {}
        """The initial value and the variable of each carry, by (output, *initial values of the steps before)."""
        self.equations: list[Equation] = []
        self.outputs: list[Var] = []
        """The outputs of a step, as variables of the body."""
        for j in range(steps.period):
            self._translate(j)

    def _translate(self, j: int) -> None:
        equation = self.steps.equation(j)
        inputs = tuple([self._operand(equation, j, k) for k in range(len(equation.inputs))])
        outputs = tuple([Var(out.aval) for out in equation.outputs])
        self.outputs.extend(outputs)
        indices = varying_indices(self.steps, j)
        if indices is None:
            self.equations.append(Equation(equation.primitive, inputs, equation.params, outputs, equation.line))
            return
        varying = vary_index(equation, indices)
        if varying is None:
            raise Refused
        positions = self._positions(varying)
        self.equations.extend(varying.equations(inputs, outputs, positions, self._zeros, equation.line))

    def _operand(self, equation: Equation, j: int, k: int) -> Any:
        match self.steps.operand(j, k):
            case Invariant(value):
                return self._const(value) if type(value) is Var else value
            case Carried(0, output, _):
                return self.outputs[output]
            case Carried(back, output, initial):
                starts = tuple(reversed(initial))
                for i in range(1, back + 1):
                    self._carry((output, *starts[:i]), starts[i - 1])
                return self.carries[output, *starts][1]
            case PerStep(values):
                return self._row(values) if type(values[0]) is Var else self._scalar_row(values, equation, k)

    def _const(self, value: Var) -> Var:
        if value not in self.consts:
            self.consts[value] = Var(value.aval)
        return self.consts[value]

    def _carry(self, key: Any, start: Var) -> None:
        if key not in self.carries:
            self.carries[key] = (start, self._check_strong(Var(start.aval)))

    def _row(self, values: tuple[Any, ...]) -> Var:
        if values not in self.rows:
            row = self._check_strong(Var(values[0].aval))
            self.rows[values] = (lambda: self.stacks.stack(self._in_scan_order(values), row.shape), row)
        return self.rows[values][1]

    def _scalar_row(self, values: tuple[Any, ...], equation: Equation, k: int) -> Var:
        """A row of Python scalars that differ from step to step, in the dtype in which the equation computes."""
        others = [x.dtype if type(x) is Var else x for x in equation.inputs]
        try:
            dtype = np.result_type(*others)
            array = np.array(self._in_scan_order(values), dtype)
        except (TypeError, OverflowError):
            raise Refused from None
        avals = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
        avals[k] = Aval((), dtype)
        aval, out = equation.primitive.aval(*avals, **equation.params), equation.outputs[0]
        if equation.primitive.multiple or (aval.shape, aval.dtype) != (out.shape, out.dtype):
            raise Refused
        row = Var(Aval((), dtype))
        self.rows[row] = (lambda: self.stacks.constant(array), row)
        return row

    def _positions(self, index: VaryingIndex) -> list[Var]:
        """The positions that vary from step to step, as rows of constants."""
        rows = []
        for positions in index.varying.positions:
            array = np.array(self._in_scan_order(positions), np.int64)
            row = Var(Aval(array.shape[1:], array.dtype))
            self.rows[row] = (lambda array=array: self.stacks.constant(array), row)  # type: ignore[misc]
            rows.append(row)
        return rows

    def _zeros(self, out: Var) -> Var:
        """A constant of zeros like an output, as a variable of the body."""
        return self._const(self.stacks.constant(np.zeros(out.shape, out.dtype)))

    def _in_scan_order(self, values: Any) -> Any:
        return values[::-1] if self.backwards else values

    def _check_strong(self, var: Var) -> Var:
        """Check that a variable may become an array at the border of the loop, where a weak scalar turns strong."""
        if var.weak and not self._only_double(var):
            raise Refused
        return var

    def _only_double(self, var: Var) -> bool:
        """True where a weak scalar and an array are promoted alike in the whole program."""
        if var.dtype not in _EXACT:
            return False
        program = self.steps.sequence.program
        variables = [*program.inputs, *program.constants, *self.steps.sequence.number]
        return all([x.dtype in _EXACT or x.dtype.kind in "biu" for x in variables])

    def emit(self, body_of: Callable[[Program], CompiledCall]) -> None:
        """Append the scan and its operands to the new program."""
        steps, stacks = self.steps, self.stacks
        finals, stacked_outputs = self._live_outputs()
        outputs = [*self._next_carries(), *[self.outputs[i] for i in stacked_outputs]]
        inputs = [
            *self.consts.values(),
            *[var for _, var in self.carries.values()],
            *[row for _, row in self.rows.values()],
        ]
        body = body_of(Program(inputs, self.equations, outputs, {}))
        loop = ScanLoop(len(self.consts), len(self.carries), steps.count, self.backwards)
        starts = [
            stacks.constant(np.zeros(var.shape, var.dtype)) if start is None else start
            for start, var in self.carries.values()
        ]
        operands = [
            *[stacks.materialize(x) for x in self.consts],
            *[stacks.materialize(x) for x in starts],
            *[build() for build, _ in self.rows.values()],
        ]
        ends = [finals.get(key) or Var(Aval(var.shape, var.dtype)) for key, (_, var) in self.carries.items()]
        ys = [Var(stacked(self.outputs[i], steps.count)) for i in stacked_outputs]
        params = {"body": body, "loop": loop}
        stacks.equations.append(Equation(scan_call, tuple(operands), params, (*ends, *ys), steps.equation(0).line))
        self._record_rows(stacked_outputs, ys, set(finals.values()))

    def _live_outputs(self) -> tuple[dict[Any, Var], dict[int, list[Var]]]:
        """(final carries, stacked outputs by their numbers) that are used after the loop."""
        last, stop = self.steps.sequence.last_use, self.steps.stop
        finals: dict[Any, Var] = {}
        stacked_outputs: dict[int, list[Var]] = {}
        ends: dict[tuple[int, int], Any] = {}
        for key in self.carries:
            ends.setdefault((key[0], len(key) - 1), key)
        for i, variables in enumerate(self.steps.outputs()):
            needed = [j for j, var in enumerate(variables) if last.get(var, -1) >= stop]
            if not needed:
                continue
            self._check_strong(self.outputs[i])
            for j in needed:
                if (i, len(variables) - j) in ends:
                    finals[ends[i, len(variables) - j]] = variables[j]
            if all([(i, len(variables) - j) in ends for j in needed]):
                continue
            if needed == [len(variables) - 1]:
                key = (i, None)
                self.carries[key] = (None, Var(self.outputs[i].aval))
                finals[key] = variables[-1]
            else:
                stacked_outputs[i] = variables
        return finals, stacked_outputs

    def _next_carries(self) -> list[Var]:
        """The value of each carry after a step."""
        return [self.outputs[key[0]] if len(key) == 2 else self.carries[key[:-1]][1] for key in self.carries]

    def _record_rows(self, stacked_outputs: dict[int, list[Var]], ys: list[Var], defined: set[Var]) -> None:
        """Record which variables are rows of the stacked outputs, and drop the definitions inside the loop."""
        stacks, count, stop = self.stacks, self.steps.count, self.steps.stop
        for variables in self.steps.outputs():
            for var in variables:
                stacks.source_definitions.pop(var, None)
        for variables, stack in zip(stacked_outputs.values(), ys, strict=True):
            for i, var in enumerate(variables):
                stacks.rows[var] = (stack, count - 1 - i if self.backwards else i)
                if var not in defined and self.steps.sequence.last_use.get(var, -1) >= stop:
                    stacks.absent.add(var)


def append_scan(steps: Steps, stacks: Stacks, body_of: Callable[[Program], CompiledCall]) -> bool:
    """Append a loop as a scan to the new program; False where that is impossible or not worth it."""
    try:
        Scan(steps, stacks, check_worth(steps, stacks)).emit(body_of)
    except Refused:
        return False
    return True
