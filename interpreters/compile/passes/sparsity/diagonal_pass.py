"""Identity seeds stay symbolic: values that are zero except on diagonals are computed as vectors.

The seeds of a Jacobian and what elementwise maps, slices and sums make of them are sums of terms (see terms). A product
with such a value scales rows instead of contracting; where a rule does not know the structure of its result, or the
value leaves the program, the row `place` writes the terms into zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.compile.passes.sparsity.diagonal_rules import PRODUCTS, STARTS
from func.interpreters.compile.passes.sparsity.diagonal_rules import RULES as OTHERS
from func.interpreters.compile.passes.sparsity.diagonal_terms import GiveUp, terms_of
from func.interpreters.compile.passes.sparsity.diagonals import Banded, Bands
from func.interpreters.primitives.structural.shapes import permute
from func.interpreters.program.program import Equation, Program, Var

RULES = OTHERS | PRODUCTS


def bands(program: Program) -> Program:
    """The same program with sparse values computed as vectors; the program itself where there are none."""
    found = {}
    for var, value in program.constants.items():
        if type(value) is np.ndarray:
            terms = terms_of(value)
            if terms is not None:
                found[var] = terms
    if not found and not any([equation.primitive.name in STARTS for equation in program.equations]):
        return program
    state = Bands(program)
    values: dict[Var, Any] = {var: state.constant_terms(var, terms) for var, terms in found.items()}
    changed = False
    for equation in program.equations:
        operands = tuple([values.get(x, x) if type(x) is Var else x for x in equation.inputs])
        result = _by_rule(state, equation, operands)
        if result is not None:
            values[equation.outputs[0]] = result
            changed = True
        else:
            kept = _written(state, equation, operands)
            state.equations.append(kept)
            if kept.primitive is permute:
                state.permuted_from[kept.outputs[0]] = (kept.inputs[0], kept.params["order"])
    if not changed:
        return program
    outputs = [state.written(values.get(x, x)) if type(x) is Var else x for x in program.outputs]
    return Program(program.inputs, state.equations, outputs, state.constants).pruned()


def _by_rule(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The result of the equation's rule, or None where it has none or gives up."""
    name = equation.primitive.name
    if name not in RULES or not (name in STARTS or any([type(x) is Banded for x in operands])):
        return None
    state.line = equation.line
    mark = len(state.equations)
    try:
        return state.settled(equation.outputs[0], RULES[name](state, equation, operands))
    except GiveUp:
        del state.equations[mark:]
        return None


def _written(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Equation:
    """The equation as it was, on values that are written out."""
    inputs = tuple([state.written(x) for x in operands])
    if all([x is y for x, y in zip(inputs, equation.inputs, strict=True)]):
        return equation
    return Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)
