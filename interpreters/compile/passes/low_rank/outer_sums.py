"""Sums over outer products are products of sums: Σᵢⱼ (uᵢ vⱼ)² = Σᵢ uᵢ² · Σⱼ vⱼ².

A contraction that sums nothing, like the gradient of a weight matrix for every sample of a batch, stays a pair of
factors through reshapes, squares, products of its like and scalings; a sum over it is a contraction of the factors.
Where some equation needs the product itself, it is computed as before, and its other uses are left alone.
"""

from __future__ import annotations

from typing import Any

from func.interpreters.compile.passes.low_rank.outer_products import SMALLEST, OuterState, Product, Stack
from func.interpreters.compile.passes.low_rank.outer_rules import RULES
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.shapes import convert
from func.interpreters.program.program import Equation, Program, Var


def outer(program: Program) -> Program:
    """The same program without outer products that are only summed; the program itself where there are none."""
    starts = {equation.outputs[0] for equation in program.equations if _begins(equation)}
    while starts:
        state = OuterState(program, starts)
        rewritten = _rewrite(state, program)
        if not state.needed:
            return rewritten if state.fired else program
        starts -= state.needed
    return program


def _begins(equation: Equation) -> bool:
    """True for large products without sums, in which either operand has axes of its own."""
    if equation.primitive is not contract and equation.primitive is not multiply:
        return False
    out = equation.outputs[0]
    x, y = equation.inputs
    if type(x) is not Var or type(y) is not Var or out.size < SMALLEST or out.dtype.kind not in "fc":
        return False
    if equation.primitive is contract:
        labels = equation.params["spec"]
        own = [set(labels.x) - set(labels.y), set(labels.y) - set(labels.x)]
        return all(own) and {*labels.x, *labels.y} == set(labels.out) and max(x.size, y.size) < out.size
    return max(x.size, y.size) < out.size and len(x.shape) == len(y.shape)


def _rewrite(state: OuterState, program: Program) -> Program:
    values: dict[Var, Any] = {}
    for equation in program.equations:
        operands = tuple([values.get(x, x) if type(x) is Var else x for x in equation.inputs])
        state.line = equation.line
        out = equation.outputs[0]
        if out in state.starts:
            values[out] = state.start(equation)
            continue
        result = None
        if any([isinstance(x, (Product, Stack)) for x in operands]):
            rule = RULES.get(equation.primitive.name)
            mark = len(state.equations)
            result = rule(state, equation, operands) if rule is not None else None
            if result is None:
                del state.equations[mark:]
        if result is not None:
            typed = type(result) is not Var or result.dtype == out.dtype
            values[out] = result if typed else state.emit(convert, result, dtype=out.dtype)
            continue
        inputs = tuple([state.demand(x, y) for x, y in zip(operands, equation.inputs, strict=True)])
        state.equations.append(Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line))
    outputs = [state.demand(values.get(x, x), x) if type(x) is Var else x for x in program.outputs]
    return Program(program.inputs, state.equations, outputs, state.constants).pruned()
