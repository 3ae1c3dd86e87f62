"""Checkpoints: a function that is run a second time when its derivative is asked for, and what a policy keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from func.interpreters.core import ZERO, Array, Tracer, zeros_like
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import Flat, jvp_flat, pull_flat, running
from func.interpreters.primitives.structural.identity import shielded
from func.interpreters.program.program import Program
from func.interpreters.stage import Recorder


@dataclass(frozen=True)
class Again:
    """Runs the checkpointed function a second time; without a policy that is the function itself."""

    fun: Flat

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        return self.fun(*primals)


@dataclass(frozen=True, eq=False)
class AgainFromProgram:
    """Runs the recorded equations a second time, with the outputs that the policy saved given."""

    program: Program
    kept: tuple[int, ...]

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        given = dict(zip(self.kept, saved, strict=True))

        def override(i: int, operands: tuple[Array, ...]) -> Any:
            if i not in given:
                return None
            equation = self.program.equations[i]
            options = tuple(equation.params.items())
            return (WIRING.saved_output(given[i], *operands, primitive=equation.primitive, options=options),)

        return self.program.run(primals, override)


@dataclass(frozen=True)
class Saved:
    """What a policy keeps: the arrays, and how to run again with them."""

    again: Any
    values: list[Array]


def run_with_policy(fun: Flat, primals: Sequence[Array], policy: Any) -> tuple[list[Array], Saved]:
    """Run forwards; policy(row, params) says which equations' outputs to keep."""
    if policy is None:
        return list(fun(*primals)), Saved(Again(fun), [])
    recorder = Recorder("checkpoint", policy)
    with running(recorder):
        inputs = [recorder.lift(p) for p in primals]
        variables = [tracer.attached for tracer in inputs]
        outs = fun(*inputs)
        program = recorder.program(variables, outs)
        positions = {id(equation): i for i, equation in enumerate(program.equations)}
        kept = [(positions[id(e)], value) for e, value in recorder.saved if id(e) in positions]
        values = [out.value if type(out) is Tracer and out.interpreter is recorder else out for out in outs]
    return values, Saved(AgainFromProgram(program, tuple([i for i, _ in kept])), [value for _, value in kept])


@dataclass(frozen=True)
class RecomputedForward:
    """The tangent map of a checkpointed function, computed by running it again."""

    again: Any
    active: tuple[int, ...]
    primals: int
    saved: int

    def __call__(self, *operands: Array) -> list[Array]:
        primals = shielded(operands[: self.primals])
        saved = operands[self.primals : self.primals + self.saved]
        tangents: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, operands[self.primals + self.saved :], strict=True):
            tangents[i] = t
        outs, douts = jvp_flat(lambda *args: self.again(args, saved), primals, tangents)
        return [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]


@dataclass(frozen=True)
class RecomputedBackward:
    """The pullback of a checkpointed function, computed by running it again."""

    again: Any
    active: tuple[int, ...]
    primals: int

    def __call__(self, known: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        primals, saved = shielded(known[: self.primals]), known[self.primals :]
        cts = pull_flat(lambda *args: self.again(args, saved), primals, self.active, ct)
        return [zeros_like(primals[i]) if c is ZERO else c for i, c in zip(self.active, cts, strict=True)]
