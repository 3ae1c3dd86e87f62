"""Dead-code elimination, common-subexpression elimination, constant folding, and removal of annotations."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import is_device_array
from func.backends.quiet import quietly
from func.interpreters.compile.passes.equation_builder import EquationBuilder, implements, substitute, substitute_atoms
from func.interpreters.core import PYTHON_SCALARS, Array, Aval, aval_of
from func.interpreters.primitives.elementwise.conventions import CONVENTIONS
from func.interpreters.primitives.structural.identity import barrier, named, renumbered, seed, stop_gradient
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.translations import keeps_bits

_ANNOTATIONS = frozenset({named, stop_gradient, renumbered}) | CONVENTIONS
"""Primitives that only transforms read; the value is the first operand."""
MAX_HASHED_BYTES = 1 << 16
"""Identity compares larger constants: hashing their bytes takes longer than it saves."""
MAX_FOLDED_BYTES = 1 << 16
"""Folding makes a larger result only if it is no larger than its operands."""


@keeps_bits
def eliminate_dead_code(program: Program) -> Program:
    """Drop equations and constants that no output needs; equations with an effect stay."""
    return program.pruned()


def pin_messages(program: Program) -> Program:
    """The program with an output of each equation that communicates among its outputs, behind its own.

    Findings of passes depend on constants and shapes, which may differ between processes. So no pass may find that a
    message is useless: others would wait for it.
    """
    pinned = [equation.outputs[0] for equation in program.equations if equation.communicates]
    return Program(program.inputs, program.equations, [*program.outputs, *pinned], program.constants)


@keeps_bits
def strip_annotations(program: Program) -> Program:
    """Drop annotations that only transforms read: names for checkpoint policies, stopped gradients, derivatives of
    written values, derivatives of conventions.

    An optimized program is for execution; transforms differentiate the program before optimization.
    """
    if not any([equation.primitive in _ANNOTATIONS for equation in program.equations]):
        return program

    def operand(equation: Equation) -> Any:
        if equation.primitive not in _ANNOTATIONS or not implements(equation.inputs[0], equation.outputs[0]):
            return None
        return equation.inputs[0]

    return EquationBuilder(program).replace_equations(operand)


@keeps_bits
def eliminate_common_subexpressions(program: Program) -> Program:
    """Keep one of equal equations, and one of equal small constants."""
    replacements: dict[Var, Var] = {}
    constants: dict[Var, Any] = {}
    seen: dict[Any, tuple[Var, ...]] = {}
    for var, value in program.constants.items():
        (representative,) = seen.setdefault(_constant_key(value), (var,))
        if representative is var:
            constants[var] = value
        else:
            replacements[var] = representative
    equations: list[Equation] = []
    for equation in program.equations:
        equation = substitute(equation, replacements)
        if equation.communicates or equation.has_effect:
            equations.append(equation)
            continue
        try:
            outputs = seen.setdefault(_equation_key(equation), equation.outputs)
        except TypeError:  # a parameter is unhashable
            outputs = equation.outputs
        if outputs is equation.outputs:
            equations.append(equation)
        else:
            replacements.update(zip(equation.outputs, outputs, strict=True))
    if not replacements:
        return program
    return Program(program.inputs, equations, substitute_atoms(program.outputs, replacements), constants)


def _equation_key(equation: Equation) -> Any:
    keys = tuple([x if type(x) is Var else _scalar_key(x) for x in equation.inputs])
    if equation.primitive.commutative and hash(keys[0]) > hash(keys[1]):
        keys = keys[::-1]
    if not equation.params:
        return equation.primitive, keys
    scalars = [_scalar_key(value) if type(value) in PYTHON_SCALARS else value for value in equation.params.values()]
    return equation.primitive, keys, *equation.params, *scalars


def _scalar_key(x: Any) -> Any:
    """A key that tells types and signs of zero apart and makes NaN equal to itself."""
    return type(x), repr(x)


def _constant_key(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= MAX_HASHED_BYTES:
        return type(value), value.dtype, value.shape, value.strides, value.tobytes()
    return id(value)


def with_small_constants_on_host(program: Program) -> Program:
    """The program with small constants of a device as arrays of the host, where passes can read them. They are copies,
    which no code writes, and executables bring them back once.
    """
    moved = {
        var: value.get()
        for var, value in program.constants.items()
        if is_device_array(value) and value.nbytes <= MAX_FOLDED_BYTES
    }
    if not moved:
        return program
    return Program(program.inputs, program.equations, program.outputs, {**program.constants, **moved})


@keeps_bits
def fold_constants(program: Program) -> Program:
    """Evaluate the equations whose operands are constants and scalars."""
    constants = dict(program.constants)
    scalars: dict[Any, Any] = {}
    equations = []
    for equation in program.equations:
        equation = substitute(equation, scalars)
        value = _fold(equation, constants)
        if value is None:
            equations.append(equation)
        else:
            (scalars if type(value) in PYTHON_SCALARS else constants)[equation.outputs[0]] = value
    if len(equations) == len(program.equations):
        return program
    return Program(program.inputs, equations, substitute_atoms(program.outputs, scalars), constants).pruned()


def _fold(equation: Equation, constants: dict[Var, Array]) -> Any:
    """The value of an equation; None if an operand is not constant, or the equation must not be folded."""
    operands = []
    for x in equation.inputs:
        value = constants.get(x) if type(x) is Var else x
        if value is None:
            return None
        operands.append(value)
    if (
        len(equation.outputs) != 1
        or equation.primitive.multiple
        or equation.primitive in (barrier, seed)
        or equation.primitive.communicates
        or any([callable(value) for value in equation.params.values()])
    ):
        return None
    return _evaluate(equation, operands)


def _evaluate(equation: Equation, operands: Sequence[Any]) -> Any:
    """The value of an equation on host arrays and scalars; None if it is too large, raises, or has another aval."""
    (out,) = equation.outputs
    if not all([isinstance(value, (np.ndarray, np.generic)) or type(value) in PYTHON_SCALARS for value in operands]):
        return None
    size = out.size * out.dtype.itemsize
    if size > MAX_FOLDED_BYTES and size > sum([getattr(value, "nbytes", 0) for value in operands]):
        return None
    try:
        value = quietly(functools.partial(equation.primitive, **equation.params), *operands)
    except Exception:  # the equation raises it when it runs
        return None
    if type(value) in PYTHON_SCALARS:
        return value if implements(value, out) else None
    return value if not out.weak and aval_of(value) == Aval(out.shape, out.dtype) else None
