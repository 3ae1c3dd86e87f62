"""Transposition: walk a linear Program backwards, from cotangents of its outputs to those of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from func.backends.quiet import quietly
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    Shaped,
    add_tangents,
    bind,
    defensive_copy,
    dtype_of,
    innermost,
    is_inexact,
    shape_of,
    zeros_like,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import LinearStage


def not_linear(primitive: Primitive, params: Params) -> NotDifferentiableError:
    """The error for transposing an equation that is not linear; a rule may state the reason."""
    reason: str | None = getattr(params.get("bwd"), "reason", None)
    return NotDifferentiableError(reason or f"{primitive.name} is not linear and cannot be transposed")


def _known_or_zeros(x: Any, values: dict[Any, Any], linear: set[Var]) -> Any:
    if type(x) is not Var:
        return x
    return np.zeros(x.shape, x.dtype) if x in linear else values[x]


def transpose_program(program: Program, cts: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs of a linear program. Cotangents may be ZERO, before and after."""
    linear: set[Var] = set(program.inputs)
    decisions: set[Var] = set()  # variables that depend on the numbers of the inputs
    for equation in program.equations:
        are_unknown = [type(x) is Var and x in linear for x in equation.inputs]
        if any(are_unknown):
            flags = equation.primitive.reached(are_unknown, equation.params)
            reached = equation.outputs if flags is None else list(compress(equation.outputs, flags))
            linear.update(reached)
            unknown = list(compress(equation.inputs, are_unknown))
            if not equation.primitive.differentiable or all([x in decisions for x in unknown]):
                decisions.update(reached)
    values: dict[Any, Any] = dict(program.constants)
    for equation in program.equations:
        if not all([out in linear for out in equation.outputs]):  # linear ones have no number yet
            operands = tuple([_known_or_zeros(x, values, linear) for x in equation.inputs])
            out = bind(equation.primitive, operands, equation.params)
            values.update(zip(equation.outputs, out if equation.primitive.multiple else (out,), strict=True))
    cotangents: dict[Var, Any] = {}

    def contribute(var: Any, ct: Any) -> None:
        if ct is not ZERO and type(var) is Var and var in linear:
            cotangents[var] = add_tangents(cotangents.get(var, ZERO), ct)

    for output, ct in zip(program.outputs, cts, strict=True):
        contribute(output, ct)

    def pull_all() -> None:
        for equation in reversed(program.equations):
            out_cts = {i: cotangents.pop(out) for i, out in enumerate(equation.outputs) if out in cotangents}
            if not out_cts:
                continue
            primitive = equation.primitive
            parents = [x if type(x) is Var and x in linear else None for x in equation.inputs]
            if not primitive.differentiable or any([x in decisions for x in equation.inputs if type(x) is Var]):
                raise not_linear(primitive, equation.params)
            known: list[Any] = [
                values[x] if type(x) is Var and x not in linear else None if type(x) is Var else x
                for x in equation.inputs
            ]
            ct = out_cts if primitive.multiple else out_cts[0]
            for x, contribution in zip(
                equation.inputs, primitive.pull_linear(ct, parents, known, equation.params), strict=True
            ):
                contribute(x, contribution)

    quietly(pull_all)
    return [cotangents.get(var, ZERO) for var in program.inputs]


class LinearizedRule:
    """The pullback of a general primitive: it transposes the tangent program from the primitive's run."""

    name = "linearized"
    may_be_staged = False
    """Whether the next node of its kind may have a rule of primitives (`staged_rules.py`)."""

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        program, active, multiple = saved
        cts = [ct.get(i, ZERO) for i in range(len(program.outputs))] if multiple else [ct]
        contributions = iter(transpose_program(program, cts))
        return [next(contributions) if is_active else ZERO for is_active in active]

    covers = False

    def __reduce__(self) -> str:
        return "LINEARIZED_AT_FIRST" if self.may_be_staged else "LINEARIZED"


LINEARIZED = LinearizedRule()
LINEARIZED_AT_FIRST = LinearizedRule()
"""LINEARIZED for the first node of its kind."""
LINEARIZED_AT_FIRST.may_be_staged = True


def linearized(
    primitive: Primitive, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params
) -> Any:
    """Run a general primitive's jvp with traced tangents: (out, LINEARIZED, the tangent program)."""
    values = tuple(
        [value if p is not None else defensive_copy(value) for value, p in zip(values, parents, strict=True)]
    )
    stage = LinearStage(primitive.name)
    stage.example = next((innermost(v) for v, p in zip(values, parents, strict=True) if p is not None), None)
    tangents: list[Any] = []
    inputs = []
    for value, parent in zip(values, parents, strict=True):
        if parent is None or not is_inexact(dtype_of(value)):
            tangents.append(ZERO)
        else:
            tracer = stage.variable(Aval(shape_of(value), dtype_of(value)))
            tangents.append(tracer)
            inputs.append(tracer)
    try:
        out, tangent = quietly(primitive.forward, values, tuple(tangents), params)
        if tangent is ZERO:
            return out, None, None
        outs, out_tangents = (out, tangent) if primitive.multiple else ((out,), (tangent,))
        full = [zeros_like(o) if t is ZERO else t for o, t in zip(outs, out_tangents, strict=True)]
        program = stage.program([tracer._attached for tracer in inputs], full)
    finally:
        stage.close()
    return out, LINEARIZED, (program, [tangent is not ZERO for tangent in tangents], primitive.multiple)
