"""One LU factorisation for all solves, determinants and inverses of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.compile.passes.linalg.scalar_multiples import constant, maker
from func.interpreters.compile.passes.rewriting.rewriter import Emitter
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.elementwise.table import isinf
from func.interpreters.primitives.linalg.determinants import slogdet
from func.interpreters.primitives.linalg.inverses import factored_inverse, factored_slogdet, factored_solve, lu_factors
from func.interpreters.primitives.linalg.solving import inv, solve
from func.interpreters.primitives.structural.shapes import permute, reshape, where
from func.interpreters.program.program import Equation, Program, Var

SMALLEST = 16
"""Matrices with fewer rows are factored again sooner than factors are handed on, and so are stacks of matrices."""
_SHARING: frozenset[Primitive] = frozenset({solve, inv, slogdet})


def sharing(program: Program) -> Program:
    """The program in which no matrix is factored twice; the program itself where none is."""
    if len([None for equation in program.equations if equation.primitive in _SHARING]) < 2:
        return program
    reader = _Reader(program)
    found = {id(equation): reader.use(equation) for equation in program.equations if equation.primitive in _SHARING}
    times: dict[Var, int] = {}
    for use in found.values():
        if use is not None:
            times[use[0]] = times.get(use[0], 0) + 1
    if max(times.values(), default=0) < 2:
        return program
    inverted = {use[0] for use in found.values() if use is not None and use[3] == {"safe": False}}
    state = Emitter(program)
    factors: dict[Var, tuple[Var, ...]] = {}
    for equation in program.equations:
        use = found.get(id(equation))
        if use is None or times[use[0]] < 2:
            state.equations.append(equation)
            continue
        state.line = equation.line
        matrix, primitive, others, params = use
        if primitive is factored_inverse and matrix in inverted:
            params = {"safe": False}  # one that raises is asked for, so all may
        if matrix not in factors:
            factors[matrix] = tuple([Var(aval) for aval in lu_factors.aval(matrix.aval)])
            state.equations.append(Equation(lu_factors, (matrix,), {}, factors[matrix], equation.line))
        inputs = (matrix, *factors[matrix], *others)
        state.equations.append(Equation(primitive, inputs, params, equation.outputs, equation.line))
    return Program(program.inputs, state.equations, program.outputs, state.constants).pruned()


class _Reader:
    """What solves, determinants and inverses are those of."""

    def __init__(self, program: Program) -> None:
        self.constants = program.constants
        self.made = {out: equation for equation in program.equations for out in equation.outputs}

    def use(self, equation: Equation) -> tuple[Var, Primitive, tuple[Any, ...], dict[str, Any]] | None:
        """(matrix, row that takes its factors, further operands, parameters) of one large matrix, or None."""
        a = equation.inputs[0]
        if type(a) is not Var or len(a.shape) != 2 or a.shape[0] < SMALLEST or a.dtype != equation.outputs[0].dtype:
            return None
        if equation.primitive is slogdet:
            return a, factored_slogdet, (), {}
        if equation.primitive is inv:
            regular = self._nan_safe(a)
            strict = equation.params.get("strict", True)
            return (regular or a, factored_inverse, (), {"safe": regular is not None}) if strict else None
        inner = self._adjoint(a)
        other = equation.inputs[1]
        return (inner or a, factored_solve, (other,), {"adjoint": inner is not None})

    def _adjoint(self, a: Var) -> Var | None:
        """B where a = Bᴴ."""
        equation = maker(self, a)
        rows: list[Any] = [permute] if a.dtype.kind == "f" else [permute, conjugate]
        while rows:
            if equation is None or equation.primitive not in rows:
                return None
            rows.remove(equation.primitive)
            a = equation.inputs[0]
            equation = maker(self, a)
        return a

    def _nan_safe(self, a: Var) -> Var | None:
        """A where a is A, or the identity if log |det A| is infinite."""
        equation = maker(self, a)
        if equation is None or equation.primitive is not where:
            return None
        condition, identity, regular = equation.inputs
        value = constant(self, identity)
        test = maker(self, condition)
        if test is not None and test.primitive is reshape:
            test = maker(self, test.inputs[0])
        if test is None or test.primitive is not isinf or value is None or type(regular) is not Var:
            return None
        determinant = maker(self, test.inputs[0])
        if determinant is None or determinant.primitive is not slogdet or determinant.outputs[1] is not test.inputs[0]:
            return None
        is_identity = np.shape(value) == a.shape and np.array_equal(value, np.eye(len(value)))
        return regular if is_identity and determinant.inputs[0] is regular else None
