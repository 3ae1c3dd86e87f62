"""Recomputation: values that are alive at the peak without a use there are computed again before their next use.

At the peak the pass drops a set of values, first those that cost least to compute again for their size. Before their
next use it repeats their equations, with those of operands that are gone; later uses read the new values. So a chain
whose values are all needed backwards is cut into segments, as by checkpoints. The new program has another peak, at
which the pass repeats this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.structural.identity import barrier, late_tag
from func.interpreters.program.liveness import liveness
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import bytes_of, last_uses, memory_roots

MOST_REPEATED = 100
"""The most equations that are repeated for one value."""
MOST_CANDIDATES = 120
MOST_ROUNDS, MOST_IDLE = 100, 20
"""The most rounds, and the most in a row without a lower peak, since many places may share the peak."""
FAR = 1.5
"""Programs whose estimate is farther above the limit are not planned."""
STEP, WORTH_SHOWING = 0.8, 0.95
"""The aim of a round, as a share of what can be dropped, and the peak of the next planned program."""


def is_arranged(program: Program) -> bool:
    """Whether this module made a program. Its loops are not to be rolled up: a loop keeps the values of all steps."""
    return any([equation.primitive is barrier and equation.params["tag"] < 0 for equation in program.equations])


def _arranged(program: Program) -> Program:
    """The same program, marked as one of this module."""
    place = next((i for i, x in enumerate(program.outputs) if type(x) is Var and x not in program.inputs), None)
    if place is None:
        return program
    x = program.outputs[place]
    out = Var(x.aval)
    outputs = [out if i == place else y for i, y in enumerate(program.outputs)]
    equations = [*program.equations, Equation(barrier, (x,), {"tag": late_tag()}, (out,))]
    return Program(program.inputs, equations, outputs, program.constants)


def with_less_memory(program: Program) -> Iterator[Program]:
    """Programs with the same outputs, each with a lower peak and more work than the one before.

    The first one is the same program with its loops unrolled."""
    yield _arranged(program)
    found = liveness(program)
    fixed = found.arguments + found.constants + found.results
    shown = best = found.peak
    target = fixed + STEP * (best - fixed)
    idle = 0
    for _ in range(MOST_ROUNDS):
        changed = _Round(program, target).program()
        if changed is None:
            return
        program = changed
        peak = liveness(program).peak
        idle = 0 if peak < best else idle + 1
        if idle > MOST_IDLE:
            return
        best = min(best, peak)
        if peak <= target or best < WORTH_SHOWING * shown:
            yield program
            shown = best
            target = fixed + STEP * (best - fixed)


class _Round:
    """One peak of a program, and the values to drop there."""

    def __init__(self, program: Program, target: float) -> None:
        self.source = program
        self.target = target
        self.roots = memory_roots(program)
        self.last = last_uses(program, self.roots)
        self.found = liveness(program)
        self.place = self.found.place
        self.defining = {out: equation for equation in program.equations for out in equation.outputs}
        costs = program.cost().equations
        self.cost = {
            id(equation): cost.operations + cost.bytes_moved + 1
            for equation, cost in zip(program.equations, costs, strict=True)
        }
        self.next_use: dict[Var, int] = {}
        """For each memory the first equation behind the peak that reads it."""
        for number in range(len(program.equations) - 1, self.place, -1):
            for x in program.equations[number].inputs:
                if type(x) is Var:
                    self.next_use[self.roots[x]] = number

    def program(self) -> Program | None:
        """The program with less memory at this peak; None if nothing can be dropped."""
        dropped = self._dropped() if self.place >= 0 else set()
        return self._rewritten(dropped) if dropped else None

    def _dropped(self) -> set[Var]:
        """The values to drop."""
        here = {self.roots[x] for x in (*self._equation().inputs, *self._equation().outputs) if type(x) is Var}
        made = [out for e in self.source.equations[: self.place] for out in e.outputs if self.roots[out] is out]
        candidates = [
            var
            for var in made
            if bytes_of(var) and self.last.get(var, -1) > self.place and var in self.next_use and var not in here
        ]
        candidates = sorted(candidates, key=lambda var: -bytes_of(var))[:MOST_CANDIDATES]
        dropped: set[Var] = set()
        excess = self.found.peak - self.target
        while candidates and excess > 0:
            costs = [(self._cost_of(var, dropped), var) for var in candidates]
            ratios = [(cost / bytes_of(var), var.serial, var) for cost, var in costs if cost is not None]
            if not ratios:
                break
            var = min(ratios)[2]
            candidates.remove(var)
            dropped.add(var)
            excess -= bytes_of(var)
        return dropped

    def _equation(self) -> Equation:
        return self.source.equations[self.place]

    def _cost_of(self, var: Var, dropped: set[Var]) -> float | None:
        """The cost of computing a value again before its next use, if others are dropped too.

        None if that is impossible, or takes too many equations."""
        at, cost = self.next_use[var], 0.0
        seen: set[int] = set()
        stack = [var]
        while stack:
            x = stack.pop()
            equation = self.defining.get(x)
            if equation is None or id(equation) in seen:
                continue
            if equation.primitive.calls_python or not equation.outputs or len(seen) >= MOST_REPEATED:
                return None
            seen.add(id(equation))
            cost += self.cost[id(equation)]
            stack += [
                y for y in equation.inputs if type(y) is Var and (self.roots[y] in dropped or not self._is_there(y, at))
            ]
        return cost

    def _is_there(self, x: Var, at: int) -> bool:
        """Whether a value is in memory at an equation in any case."""
        root = self.roots[x]
        return root not in self.last or self.last[root] >= at

    def _rewritten(self, dropped: set[Var]) -> Program:
        """The program that computes the dropped values again."""
        again: dict[Var, Var] = {}
        equations = list(self.source.equations[: self.place + 1])
        tag = late_tag()
        shields: dict[Var, Var] = {}

        def shield(x: Any) -> Any:
            """A value that is still in memory, behind a barrier: nothing computed from it moves up."""
            if type(x) is not Var or x in self.source.constants:
                return x
            if x not in shields:
                shields[x] = Var(x.aval)
                equations.append(Equation(barrier, (x,), {"tag": tag}, (shields[x],)))
            return shields[x]

        def computed(x: Var, at: int) -> Var:
            stack = [x]
            while stack:
                y = stack[-1]
                if y in again:
                    stack.pop()
                    continue
                equation = self.defining[y]
                missing = [z for z in equation.inputs if is_gone(z, at) and z not in again]
                if missing:
                    stack += missing
                    continue
                stack.pop()
                inputs = tuple([again[z] if is_gone(z, at) else shield(z) for z in equation.inputs])
                outputs = tuple([Var(out.aval) for out in equation.outputs])
                again.update(zip(equation.outputs, outputs, strict=True))
                equations.append(Equation(equation.primitive, inputs, equation.params, outputs, equation.line))
            return again[x]

        def is_gone(z: Any, at: int) -> bool:
            return type(z) is Var and z in self.defining and (self.roots[z] in dropped or not self._is_there(z, at))

        before = {out for equation in equations for out in equation.outputs if bytes_of(out)}
        for number in range(self.place + 1, len(self.source.equations)):
            equation = self.source.equations[number]
            needs = [x for x in equation.inputs if type(x) is Var and self.roots[x] in dropped and x in self.defining]
            if needs:
                tag = late_tag()
                shields.clear()
            late = [x for x in equation.inputs if x in before] if isinstance(equation.primitive, Pointwise) else []
            inputs = tuple(
                [computed(x, number) if x in needs else shield(x) if x in late else x for x in equation.inputs]
            )
            if inputs != equation.inputs:
                equation = Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)
            equations.append(equation)
        outputs = self.source.outputs
        return Program(self.source.inputs, equations, outputs, self.source.constants).pruned()


def fitting(program: Program, limit: int, peak_of: Callable[[Program], int]) -> tuple[Program, int]:
    """(The first program whose peak is within a limit, else the one of the lowest peak, that peak).

    `peak_of` takes long. The search skips programs that, by their equations, are far above the limit, as the first is.
    """
    best, lowest = program, peak_of(program)
    if lowest <= limit:
        return best, lowest
    share = lowest / max(liveness(program).peak, 1)
    passed_over = None
    for changed in with_less_memory(program):
        if share * liveness(changed).peak > FAR * limit and not _is_same_work(changed, program):
            passed_over = changed
            continue
        passed_over = None
        peak = peak_of(changed)
        if peak < lowest:
            best, lowest = changed, peak
        if peak <= limit:
            return best, lowest
    if passed_over is not None and (peak := peak_of(passed_over)) < lowest:
        best, lowest = passed_over, peak
    return best, lowest


def _is_same_work(changed: Program, program: Program) -> bool:
    """Whether nothing is computed again, so that the equations tell nothing new."""
    return len(changed.equations) <= len(program.equations) + 1
