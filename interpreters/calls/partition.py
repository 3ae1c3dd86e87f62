"""Partial evaluation of derivatives: partition a joint program into a known and a linear program.

The joint program of a derivative takes the arguments and, behind them, tangents (forward mode) or cotangents (reverse
mode). The known program is the part that depends on the arguments alone; it computes the outputs and the residuals. The
linear program takes the residuals and the (co)tangents. In reverse mode they are the forward and the backward program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from func.interpreters import drivers
from func.interpreters.compiled_backward import walk
from func.interpreters.core import ZERO, Array, Aval, Shaped, Tracer, aval_of, dtype_of, is_inexact
from func.interpreters.core.scopes import TransformScope
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.primitives.structural.identity import barrier
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage
from func.interpreters.structural_zeros import absent_like

T = TypeVar("T")


class Partition(NamedTuple):
    """The derivative of a program in two programs."""

    known: Program
    """(*args) -> (*outputs, *residuals)."""
    linear: Program
    """(*residuals, *tangents of the active arguments) -> tangents of outputs. In reverse mode (*residuals, *cotangents
    of the inexact outputs) -> cotangents of active arguments."""
    has_result: tuple[bool, ...]
    """The outputs that have a tangent; in reverse mode, the active arguments that have a cotangent."""


def partition_jvp(program: Program, active: Sequence[bool]) -> Partition:
    """The partition of forward mode, for tangents of the active arguments."""
    count = len(active)
    has_tangent: list[bool] = []

    def joint(*values: Array) -> list[Array]:
        outs, douts = drivers.jvp_flat(lambda *args: program.run(args), values[:count], expand(values[count:], active))
        has_tangent[:] = [dout is not ZERO for dout in douts]
        return [*outs, *select(douts, has_tangent)]

    avals = [var.aval for var in program.inputs]
    tangent_avals = [Aval(aval.shape, aval.dtype) for aval in select(avals, active)]
    joint_program = drivers.stage_flat(joint, [*avals, *tangent_avals], DerivedStage("jvp"))
    return Partition(*partition(joint_program, count, len(has_tangent)), tuple(has_tangent))


def partition_vjp(program: Program, active: Sequence[bool], compiler: str | None = None) -> Partition:
    """The partition of reverse mode, for cotangents of the active arguments."""
    count, outputs = len(active), len(program.outputs)
    out_avals = output_avals(program)
    inexact = [i for i, aval in enumerate(out_avals) if is_inexact(aval.dtype)]
    has_cotangent: list[bool] = []

    def joint(*values: Array) -> list[Array]:
        interpreter = grad_interpreter("vjp")
        with TransformScope(interpreter), drivers.running(interpreter):
            args = [interpreter.lift(x) if on else x for x, on in zip(values, active, strict=False)]
            nodes = [x._attached for x in select(args, active)]
            outs = list(program.run(args))
            seeds = [
                (outs[i]._attached, ct)
                for i, ct in zip(inexact, values[count:], strict=True)
                if type(outs[i]) is Tracer and outs[i]._interpreter is interpreter
            ]
            primal_outs = [o._value if type(o) is Tracer and o._interpreter is interpreter else o for o in outs]
            del args, outs
        cotangents = walk(seeds, nodes)
        has_cotangent[:] = [ct is not ZERO for ct in cotangents]
        return [*primal_outs, *select(cotangents, has_cotangent)]

    avals = [var.aval for var in program.inputs]
    cotangent_avals = [Aval(out_avals[i].shape, out_avals[i].dtype) for i in inexact]
    joint_program = drivers.stage_flat(joint, [*avals, *cotangent_avals], DerivedStage("vjp"))
    forward, backward = partition(WIRING.reroll_loops(joint_program, compiler), count, outputs)
    return Partition(forward, backward, tuple(has_cotangent))


def partition(program: Program, known_inputs: int, known_outputs: int) -> tuple[Program, Program]:
    """(known, linear): the part that depends on the first inputs alone, and the rest.

    The known program computes the first outputs and the residuals, the linear one maps the residuals and the other
    inputs to the other outputs. It also repeats the equations of a checkpoint, behind a barrier.
    """
    unknown_inputs = program.inputs[known_inputs:]
    unknown: set[Var] = set(unknown_inputs)
    known_equations: list[Equation] = []
    linear_equations: list[Equation] = []
    defining: dict[Var, Equation] = {}
    for equation in program.equations:
        if any([x in unknown for x in equation.inputs if type(x) is Var]):
            unknown.update(equation.outputs)
            linear_equations.append(equation)
        else:
            known_equations.append(equation)
            defining.update(dict.fromkeys(equation.outputs, equation))
    again = _computed_again(known_equations, program.outputs[:known_outputs])
    residuals: dict[Var, None] = {}
    repeated: set[int] = set()
    stack = [x for equation in linear_equations for x in equation.inputs] + list(program.outputs[known_outputs:])
    stack.reverse()
    while stack:
        x = stack.pop()
        if type(x) is not Var or x in unknown or x in program.constants or x in residuals:
            continue
        definition = defining.get(x)
        if definition is not None and (definition.primitive.recompute or x in again):
            repeated.add(id(definition))
            stack.extend(definition.inputs)
        else:
            residuals[x] = None
    repeated_equations = [equation for equation in known_equations if id(equation) in repeated]
    is_linear = repeated.union(map(id, linear_equations))
    known = Program(
        program.inputs[:known_inputs],
        known_equations,
        [*program.outputs[:known_outputs], *residuals],
        program.constants,
    ).pruned()
    copies = {var: Var(var.aval) for equation in repeated_equations for var in equation.outputs}
    copies |= {var: Var(var.aval) for var in residuals}

    def renamed(x: Any) -> Any:
        return copies.get(x, x) if type(x) is Var else x

    linear = Program(
        [*[copies[var] for var in residuals], *unknown_inputs],
        [
            Equation(e.primitive, tuple(map(renamed, e.inputs)), e.params, tuple(map(renamed, e.outputs)), e.line)
            for e in program.equations  # in this order: what a checkpoint computes again, just before its pullback
            if id(e) in is_linear
        ],
        list(map(renamed, program.outputs[known_outputs:])),
        program.constants,
    ).pruned()
    return known, linear


def _computed_again(equations: Sequence[Equation], outputs: Sequence[Any]) -> set[Any]:
    """The variables behind barriers that the outputs do not need."""
    needed: set[Any] = set(outputs)
    for equation in reversed(equations):
        if not needed.isdisjoint(equation.outputs) or equation.has_effect:
            needed.update(equation.inputs)
    behind: set[Any] = set()
    for equation in equations:
        if equation.primitive is barrier or not behind.isdisjoint(equation.inputs):
            behind.update([out for out in equation.outputs if out not in needed])
    return behind


def output_avals(program: Program) -> tuple[Aval, ...]:
    """The abstract values of a program's outputs."""
    return tuple([x.aval if type(x) is Var else aval_of(x) for x in program.outputs])


def active_arguments(values: Sequence[Array], directions: Sequence[Any]) -> tuple[bool, ...]:
    """The arguments that have a tangent, or need a cotangent; ZERO and None mean neither."""
    return tuple(
        [
            direction is not ZERO and direction is not None and is_inexact(dtype_of(x))
            for x, direction in zip(values, directions, strict=True)
        ]
    )


def select(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    """The values whose flag is set."""
    return [value for value, is_selected in zip(values, flags, strict=True) if is_selected]


def expand(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """A value wherever the flag is set, ZERO elsewhere: the inverse of `select`."""
    rest = iter(values)
    return [next(rest) if is_selected else ZERO for is_selected in flags]


def dense_cotangents(avals: Sequence[Shaped], ct: dict[int, Any]) -> list[Any]:
    """The cotangents of all inexact outputs, {position: cotangent} filled up with zeros."""
    like = next(iter(ct.values()))
    return [
        ct[i] if i in ct else absent_like(like, aval.shape, aval.dtype)
        for i, aval in enumerate(avals)
        if is_inexact(aval.dtype)
    ]
