"""A program's derivative in two halves: what is known when the arguments are, and what waits for (co)tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from func.interpreters import drivers
from func.interpreters.core import ZERO, Array, Aval, Tracer, is_inexact
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import walk
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage

if TYPE_CHECKING:
    from func.interpreters.calls.compiled_call import CompiledCall


def split(program: Program, unknown: Sequence[Var], outputs: int) -> tuple[Program, Program]:
    """Split a program by what depends on some inputs (its last ones). The first half gives the first `outputs`
    outputs and the residuals, the second takes the residuals and the unknown inputs and gives the other outputs."""
    late: set[Var] = set(unknown)
    first: list[Equation] = []
    second: list[Equation] = []
    made_by: dict[Var, Equation] = {}
    for equation in program.equations:
        if any([x in late for x in equation.inputs if type(x) is Var]):
            late.update(equation.outputs)
            second.append(equation)
        else:
            first.append(equation)
            made_by.update(dict.fromkeys(equation.outputs, equation))
    needed: dict[Var, None] = {}
    again: dict[int, Equation] = {}

    def need(var: Any) -> None:
        stack = [var]
        while stack:
            one = stack.pop()
            if type(one) is not Var or one in late or one in program.constants or one in needed:
                continue
            equation = made_by.get(one)
            if equation is not None and equation.primitive.recompute:
                again[id(equation)] = equation
                stack.extend(equation.inputs)
            else:
                needed[one] = None

    for equation in second:
        for x in equation.inputs:
            need(x)
    for x in program.outputs[outputs:]:
        need(x)
    repeated = [equation for equation in first if id(equation) in again]
    known_inputs = program.inputs[: len(program.inputs) - len(unknown)]
    residuals = list(needed)
    known = Program(known_inputs, first, [*program.outputs[:outputs], *residuals], program.constants).pruned()
    fresh = {var: Var(var.aval) for equation in repeated for var in equation.outputs}
    fresh |= {var: Var(var.aval) for var in residuals}

    def renamed(x: Any) -> Any:
        return fresh.get(x, x) if type(x) is Var else x

    body = [
        Equation(e.primitive, tuple(map(renamed, e.inputs)), e.params, tuple(map(renamed, e.outputs)), e.line)
        for e in (*repeated, *second)
    ]
    rest = Program(
        [*[fresh[var] for var in residuals], *unknown],
        body,
        list(map(renamed, program.outputs[outputs:])),
        program.constants,
    ).pruned()
    return known, rest


class Linearized:
    """known(*args) gives the outputs and residuals; tangent(*residuals, *tangents) the tangents of some outputs."""

    __slots__ = ("has_tangent", "known", "tangent")

    def __init__(self, compiled: CompiledCall, active: tuple[bool, ...]) -> None:
        count = len(active)
        places = [i for i, is_active in enumerate(active) if is_active]
        which: list[bool] = []

        def joint(*values: Array) -> list[Array]:
            tangents: list[Any] = [ZERO] * count
            for i, t in zip(places, values[count:], strict=True):
                tangents[i] = t
            outs, moved = drivers.jvp_flat(compiled.run_on, values[:count], tangents)
            which[:] = [t is not ZERO for t in moved]
            return [*outs, *[t for t in moved if t is not ZERO]]

        inputs = compiled.program.inputs
        avals = [*[var.aval for var in inputs], *[Aval(inputs[i].shape, inputs[i].dtype) for i in places]]
        program = drivers.stage_flat(joint, avals, DerivedStage("jvp"))
        known, tangent = split(program, program.inputs[count:], len(which))
        self.known = compiled.derived(known)
        self.tangent = compiled.derived(tangent)
        self.has_tangent = tuple(which)

    def run(self, args: Sequence[Array], tangents: Sequence[Array]) -> tuple[list[Any], Any]:
        """Outputs, and tangents of the outputs (ZERO where there is none)."""
        count = len(self.has_tangent)
        outs = self.known(*args)
        if not any(self.has_tangent):
            return list(outs[:count]), ZERO
        moved = iter(self.tangent(*outs[count:], *tangents))
        return list(outs[:count]), tuple([next(moved) if has else ZERO for has in self.has_tangent])


class Pulled:
    """forward(*args) gives the outputs and residuals; backward(*residuals, *cotangents of the inexact outputs) gives
    the cotangents of the active arguments that have one; guarded(*args, *cotangents) the same, where zeros win."""

    __slots__ = ("_nan_safe", "active", "backward", "compiled", "forward", "inexact", "outputs", "reached")

    def __init__(self, compiled: CompiledCall, active: tuple[bool, ...]) -> None:
        self.compiled = compiled
        self.active = active
        avals = compiled.out_avals
        self.outputs = len(avals)
        self.inexact = tuple([i for i, aval in enumerate(avals) if is_inexact(aval.dtype)])
        program, self.reached = self._joint(False)
        program = WIRING.reroll_loops(program, compiled.compiler)
        forward, backward = split(program, program.inputs[len(active) :], self.outputs)
        self.forward = compiled.derived(forward)
        self.backward = compiled.derived(backward)
        self._nan_safe: tuple[CompiledCall, tuple[bool, ...]] | None = None

    def _joint(self, nan_safe: bool) -> tuple[Program, tuple[bool, ...]]:
        count = len(self.active)
        reached: list[bool] = []
        program = self.compiled.program

        def joint(*values: Array) -> list[Array]:
            interpreter = grad_interpreter("vjp")
            with drivers.running(interpreter):
                args = [interpreter.lift(x) if on else x for x, on in zip(values, self.active, strict=False)]
                nodes = [x.attached for x, on in zip(args, self.active, strict=True) if on]
                outs = list(self.compiled.run_on(*args))
                seeds = []
                for i, ct in zip(self.inexact, values[count:], strict=True):
                    out = outs[i]
                    if type(out) is Tracer and out.interpreter is interpreter:
                        seeds.append((out.attached, ct))
                plain = [o.value if type(o) is Tracer and o.interpreter is interpreter else o for o in outs]
                del args, outs
            contribution = walk(seeds, nodes, nan_safe)
            reached[:] = [ct is not ZERO for ct in contribution]
            return [*plain, *[ct for ct in contribution if ct is not ZERO]]

        avals = self.compiled.out_avals
        cts = [Aval(avals[i].shape, avals[i].dtype) for i in self.inexact]
        given = [var.aval for var in program.inputs]
        return drivers.stage_flat(joint, [*given, *cts], DerivedStage("vjp")), tuple(reached)

    def nan_safe(self, args: Sequence[Array], cts: Sequence[Array]) -> list[Any]:
        """Cotangents of the active arguments, all computed again with rows in which zero cotangents win."""
        if self._nan_safe is None:
            program, reached = self._joint(True)
            made = Program(program.inputs, program.equations, program.outputs[self.outputs :], program.constants)
            self._nan_safe = self.compiled.derived(made.pruned()), reached
        backward, reached = self._nan_safe
        contribution = iter(backward(*args, *cts))
        return [next(contribution) if is_reached else ZERO for is_reached in reached]

    def not_nan_safe(self, residuals: Sequence[Array], cts: Sequence[Array]) -> list[Any]:
        """Cotangents of the active arguments."""
        contribution = iter(self.backward(*residuals, *cts))
        return [next(contribution) if is_reached else ZERO for is_reached in self.reached]
