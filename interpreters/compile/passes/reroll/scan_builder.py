"""A loop that was found as one `scan_call`: its constants, carries, rows of inputs and of outputs, its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.passes.reroll.loop_steps import Fixed, Given, Moved, Steps, indices
from func.interpreters.compile.passes.reroll.moving_indices import Moving, indexed
from func.interpreters.compile.passes.reroll.sequences import cost, longest, size_of, turned
from func.interpreters.compile.passes.reroll.stacks import Stacks
from func.interpreters.control.scan import scan_call
from func.interpreters.control.scan_derivatives import ScanLoop, stacked
from func.interpreters.core import Aval, aval_of
from func.interpreters.program.program import Equation, Program, Var

ENDS = 2
"""So many steps at the ends may stay outside the loop if its inputs are rows of one array then."""
SMALL = 1 << 18
"""The bytes that may be put together for a loop each time it runs."""
FEW = 8
_EXACT = frozenset([np.dtype(np.float64), np.dtype(np.complex128)])


class Refused(Exception):
    """A loop that cannot be rolled up, or had better not be."""


def trimmed(steps: Steps, stacks: Stacks) -> Steps:
    """The loop without steps at its ends for which inputs would have to be put together."""
    first, last = 0, steps.count
    for values in _given(steps):
        pieces = stacks.pieces(values)
        if len(pieces) > 1:
            low, high = longest(pieces)
            if high - low >= steps.count - ENDS:
                first, last = max(first, low), min(last, high)
    return steps if (first, last) == (0, steps.count) else steps.narrowed(first, last)


def check_worth(steps: Steps, stacks: Stacks) -> bool:
    """Raise Refused where too much would have to be put together; otherwise say whether the steps go backwards
    through the rows that there are."""
    count = total = backwards = forwards = 0
    for values in _given(steps):
        pieces = stacks.pieces(values)
        number, size = cost(pieces, size_of(values[0]))
        count, total = count + number, total + size
        backwards += turned(pieces)
        forwards += number == 0 and not turned(pieces)
    if count > max(FEW, steps.count * steps.period // 2) or total > SMALL:
        raise Refused
    return backwards > forwards


def _given(steps: Steps) -> list[tuple[Any, ...]]:
    """The variables that are given for each step, each sequence once."""
    found: dict[tuple[Any, ...], None] = {}
    for j in range(steps.period):
        for k in range(len(steps.equation(j).inputs)):
            operand = steps.operand(j, k)
            if isinstance(operand, Given) and type(operand.values[0]) is Var:
                found[operand.values] = None
    return list(found)


class Scan:
    """The parts of the scan, and its body, equation by equation."""

    def __init__(self, steps: Steps, stacks: Stacks, backwards: bool) -> None:
        self.steps = steps
        self.stacks = stacks
        self.backwards = backwards
        self.consts: dict[Any, Var] = {}
        self.rows: dict[Any, tuple[Callable[[], Var], Var]] = {}
        """For each input with a row per step: how to make it, and the row in the body."""
        self.carries: dict[Any, tuple[Any, Var]] = {}
        """For each carry, (output, what the steps before the first one gave): its start and its variable."""
        self.equations: list[Equation] = []
        self.made: list[Var] = []
        """The outputs of a step."""
        for j in range(steps.period):
            self._equation(j)

    # --- the body -----------------------------------------------------------------------------------------------

    def _equation(self, j: int) -> None:
        equation = self.steps.equation(j)
        inputs = tuple([self._operand(equation, j, k) for k in range(len(equation.inputs))])
        outputs = tuple([Var(out.aval) for out in equation.outputs])
        self.made.extend(outputs)
        different = indices(self.steps, j)
        if different is None:
            self.equations.append(Equation(equation.primitive, inputs, equation.params, outputs, equation.line))
            return
        moving = indexed(equation, different)
        if moving is None:
            raise Refused
        self.equations.extend(moving.equations(inputs, outputs, self._positions(moving), self._zeros, equation.line))

    def _operand(self, equation: Equation, j: int, k: int) -> Any:
        match self.steps.operand(j, k):
            case Fixed(value):
                return self._const(value) if type(value) is Var else value
            case Moved(0, output, _):
                return self.made[output]
            case Moved(back, output, before):
                starts = tuple(reversed(before))
                for i in range(1, back + 1):
                    self._carry((output, *starts[:i]), starts[i - 1])
                return self.carries[output, *starts][1]
            case Given(values):
                return self._given(values) if type(values[0]) is Var else self._numbers(values, equation, k)

    def _const(self, value: Var) -> Var:
        found = self.consts.get(value)
        if found is None:
            found = self.consts[value] = Var(value.aval)
        return found

    def _carry(self, key: Any, start: Var) -> None:
        if key not in self.carries:
            self.carries[key] = (start, self._checked(Var(start.aval)))

    def _given(self, values: tuple[Any, ...]) -> Var:
        if values not in self.rows:
            row = self._checked(Var(values[0].aval))
            self.rows[values] = (lambda: self.stacks.stack(self._turned(values), row.shape), row)
        return self.rows[values][1]

    def _numbers(self, values: tuple[Any, ...], equation: Equation, k: int) -> Var:
        """Python scalars that differ from step to step, in the dtype in which the equation computes."""
        others = [x.dtype if type(x) is Var else x for x in equation.inputs]
        try:
            dtype = np.result_type(*others)
            array = np.array(self._turned(values), dtype)
        except (TypeError, OverflowError):
            raise Refused from None
        avals = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
        avals[k] = Aval((), dtype)
        found = equation.primitive.aval(*avals, **equation.params)
        needs_cotangent = equation.outputs[0]
        if equation.primitive.multiple or (found.shape, found.dtype) != (needs_cotangent.shape, needs_cotangent.dtype):
            raise Refused
        row = Var(Aval((), dtype))
        self.rows[row] = (lambda: self.stacks.constant(array), row)
        return row

    def _positions(self, moving: Moving) -> list[Var]:
        """The indices that differ from step to step, as rows of constants."""
        found = []
        for positions in moving.places.positions:
            array = np.array(self._turned(positions), np.int64)
            row = Var(Aval(array.shape[1:], array.dtype))
            self.rows[row] = (lambda array=array: self.stacks.constant(array), row)  # type: ignore[misc]
            found.append(row)
        return found

    def _zeros(self, out: Var) -> Var:
        return self._const(self.stacks.constant(np.zeros(out.shape, out.dtype)))

    def _turned(self, values: Any) -> Any:
        return values[::-1] if self.backwards else values

    def _checked(self, var: Var) -> Var:
        """A variable that enters or leaves the loop, where it is an array: weak scalars must not turn strong."""
        if var.weak and not self._only_double(var):
            raise Refused
        return var

    def _only_double(self, var: Var) -> bool:
        """Whether a weak scalar and an array would be promoted alike in the whole program."""
        if var.dtype not in _EXACT:
            return False
        program = self.steps.sequence.program
        variables = [*program.inputs, *program.constants, *self.steps.sequence.number]
        return all([x.dtype in _EXACT or x.dtype.kind in "biu" for x in variables])

    # --- what leaves the loop -----------------------------------------------------------------------------------

    def emit(self, body_of: Callable[[Program], CompiledCall]) -> None:
        """Append the scan, and what its operands need, to the new program."""
        steps, stacks = self.steps, self.stacks
        finals, kept = self._leaving()
        outputs = [*self._carried(), *[self.made[i] for i in kept]]
        inputs = [*self.consts.values(), *[var for _, var in self.carries.values()], *[row for _, row in self._rows()]]
        body = body_of(Program(inputs, self.equations, outputs, {}))
        loop = ScanLoop(len(self.consts), len(self.carries), steps.count, self.backwards)
        starts = [start if start is not None else self._start(var) for start, var in self.carries.values()]
        operands = [
            *[stacks.present(x) for x in self.consts],
            *[stacks.present(x) for x in starts],
            *[make() for make, _ in self._rows()],
        ]
        ends = [finals.get(key) or Var(Aval(var.shape, var.dtype)) for key, (_, var) in self.carries.items()]
        ys = [Var(stacked(self.made[i], steps.count)) for i in kept]
        params = {"body": body, "loop": loop}
        stacks.equations.append(Equation(scan_call, tuple(operands), params, (*ends, *ys), steps.equation(0).line))
        self._expose(kept, ys, set(finals.values()))

    def _rows(self) -> list[tuple[Callable[[], Var], Var]]:
        return list(self.rows.values())

    def _start(self, var: Var) -> Var:
        return self.stacks.constant(np.zeros(var.shape, var.dtype))  # type: ignore[no-any-return]

    def _leaving(self) -> tuple[dict[Any, Var], dict[int, list[Var]]]:
        """(carries whose end is needed, outputs of which rows are needed), by what is used behind the loop."""
        last, stop = self.steps.sequence.last, self.steps.stop
        finals: dict[Any, Var] = {}
        kept: dict[int, list[Var]] = {}
        ends: dict[tuple[int, int], Any] = {}
        for key in self.carries:
            ends.setdefault((key[0], len(key) - 1), key)
        for i, variables in enumerate(self.steps.outputs()):
            needed = [j for j, var in enumerate(variables) if last.get(var, -1) >= stop]
            if not needed:
                continue
            self._checked(self.made[i])
            for j in needed:
                if (i, len(variables) - j) in ends:
                    finals[ends[i, len(variables) - j]] = variables[j]
            if all([(i, len(variables) - j) in ends for j in needed]):
                continue
            if needed == [len(variables) - 1]:
                key = (i, None)
                self.carries[key] = (None, Var(self.made[i].aval))
                finals[key] = variables[-1]
            else:
                kept[i] = variables
        return finals, kept

    def _carried(self) -> list[Var]:
        """What becomes of each carry in a step."""
        return [self.made[key[0]] if len(key) == 2 else self.carries[key[:-1]][1] for key in self.carries]

    def _expose(self, kept: dict[int, list[Var]], ys: list[Var], there: set[Var]) -> None:
        """Say which rows are which variables, and forget how those inside were made."""
        stacks, count, stop = self.stacks, self.steps.count, self.steps.stop
        for variables in self.steps.outputs():
            for var in variables:
                stacks.made.pop(var, None)
        for variables, stack in zip(kept.values(), ys, strict=True):
            for i, var in enumerate(variables):
                stacks.rows[var] = (stack, count - 1 - i if self.backwards else i)
                if var not in there and self.steps.sequence.last.get(var, -1) >= stop:
                    stacks.absent.add(var)


def scanned(steps: Steps, stacks: Stacks, body_of: Callable[[Program], CompiledCall]) -> bool:
    """Append a loop as a scan to the new program, if that is worth it and can be done."""
    try:
        Scan(steps, stacks, check_worth(steps, stacks)).emit(body_of)
    except Refused:
        return False
    return True
