"""Constant folding: what depends on constants alone is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.cleanup import dead
from func.interpreters.compile.passes.rewriting.rewriter import stands_for
from func.interpreters.core import PYTHON_SCALARS, Array, Aval, aval_of
from func.interpreters.primitives.structural.identity import barrier
from func.interpreters.program.program import Equation, Program, Var

LARGEST = 1 << 16
"""Results of more bytes are only kept where they are no larger than what they were computed from."""


def folding(program: Program) -> Program:
    """The program in which equations of constants and scalars alone are constants."""
    constants = dict(program.constants)
    scalars: dict[Any, Any] = {}
    equations = []
    for equation in program.equations:
        if not scalars.keys().isdisjoint(equation.inputs):
            inputs = tuple([scalars.get(x, x) if type(x) is Var else x for x in equation.inputs])
            equation = Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)
        value = _folded(equation, constants)
        if value is None:
            equations.append(equation)
        else:
            (scalars if type(value) in PYTHON_SCALARS else constants)[equation.outputs[0]] = value
    if len(equations) == len(program.equations):
        return program
    outputs = [scalars.get(x, x) if type(x) is Var else x for x in program.outputs]
    return dead(Program(program.inputs, equations, outputs, constants))


def _folded(equation: Equation, constants: dict[Var, Array]) -> Any:
    """The array or scalar that an equation computes; None where something is not known, or not to be computed."""
    values = []
    for x in equation.inputs:
        value = constants.get(x) if type(x) is Var else x
        if value is None:
            return None
        values.append(value)
    if (
        len(equation.outputs) != 1
        or equation.primitive.multiple
        or equation.primitive is barrier
        or any([callable(one) for one in equation.params.values()])
    ):
        return None
    return _computed(equation, values)


def _computed(equation: Equation, values: Sequence[Any]) -> Any:
    """The value of an equation, if its operands are the host's and it is not too large."""
    (out,) = equation.outputs
    if not all([isinstance(value, (np.ndarray, np.generic)) or type(value) in PYTHON_SCALARS for value in values]):
        return None
    size = out.size * out.dtype.itemsize
    if size > LARGEST and size > sum([getattr(value, "nbytes", 0) for value in values]):
        return None
    with np.errstate(all="ignore"):
        value = equation.primitive(*values, **equation.params)
    if type(value) in PYTHON_SCALARS:
        return value if stands_for(value, out) else None
    return value if not out.weak and aval_of(value) == Aval(out.shape, out.dtype) else None
