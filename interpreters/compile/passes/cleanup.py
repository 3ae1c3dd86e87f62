"""Common subexpressions: what was computed before is not computed again, constants of equal bytes are one.

Equations, and constants, that no output needs are dropped; equations without outputs have an effect and stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import PYTHON_SCALARS
from func.interpreters.program.program import Equation, Program, Var

SMALL = 1 << 16
"""Larger constants are compared by identity: hashing their bytes would take longer than is won."""


def common(program: Program) -> Program:
    """The program in which equal equations, and equal small constants, occur once."""
    renamed: dict[Var, Var] = {}
    constants: dict[Var, Any] = {}
    seen: dict[Any, tuple[Var, ...]] = {}
    for var, value in program.constants.items():
        found = seen.setdefault(_constant_key(value), (var,))[0]
        if found is var:
            constants[var] = value
        else:
            renamed[var] = found
    equations: list[Equation] = []
    for equation in program.equations:
        inputs = equation.inputs
        if not renamed.keys().isdisjoint(inputs):
            inputs = tuple([renamed.get(x, x) if type(x) is Var else x for x in inputs])
        try:  # equations without outputs, which have an effect, are equal to none
            outputs = seen.setdefault(_equation_key(equation, inputs), equation.outputs)
        except TypeError:  # a parameter that cannot be hashed
            outputs = equation.outputs
        if outputs is not equation.outputs:
            renamed.update(zip(equation.outputs, outputs, strict=True))
        elif inputs is equation.inputs:
            equations.append(equation)
        else:
            equations.append(Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line))
    if not renamed:
        return program
    outputs = tuple([renamed.get(x, x) if type(x) is Var else x for x in program.outputs])
    return Program(program.inputs, equations, outputs, constants)


def _equation_key(equation: Equation, inputs: tuple[Any, ...]) -> Any:
    keys = tuple([x if type(x) is Var else _scalar_key(x) for x in inputs])
    if equation.primitive.commutative and hash(keys[0]) > hash(keys[1]):
        keys = keys[::-1]
    if not equation.params:
        return equation.primitive, keys
    scalars = [_scalar_key(value) if type(value) in PYTHON_SCALARS else value for value in equation.params.values()]
    return equation.primitive, keys, *equation.params, *scalars


def _scalar_key(x: Any) -> Any:
    """Scalars of different types are different, and so are 0.0 and -0.0; a NaN is equal to itself."""
    return type(x), repr(x)


def _constant_key(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= SMALL:
        return type(value), value.dtype, value.shape, value.strides, value.tobytes()
    return id(value)


def dead(program: Program) -> Program:
    """The program without equations and constants that no output needs; the given one where all are needed."""
    needed: set[Any] = set(program.outputs)
    kept = []
    for equation in reversed(program.equations):
        if not equation.outputs or not needed.isdisjoint(equation.outputs):
            kept.append(equation)
            needed.update(equation.inputs)
    constants = {var: value for var, value in program.constants.items() if var in needed}
    if len(kept) == len(program.equations) and len(constants) == len(program.constants):
        return program
    kept.reverse()
    return Program(program.inputs, kept, program.outputs, constants)
