"""Shared LU: one factorization P A = L U for all solves, determinants and inverses of a matrix A and of Aᴴ."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.compile.passes.equation_builder import Definitions, EquationBuilder
from func.interpreters.compile.passes.linalg.scalar_multiples import adjoint_operand
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.table import isinf
from func.interpreters.primitives.linalg.determinants import slogdet
from func.interpreters.primitives.linalg.inverses import factored_inverse, factored_slogdet, factored_solve, lu_factors
from func.interpreters.primitives.linalg.solving import inv, solve
from func.interpreters.primitives.structural.shapes import reshape, where
from func.interpreters.program.program import Equation, Program, Var

MIN_ROWS = 16
"""For smaller matrices and stacks, repeating the factorization is faster than storing factors."""
_FACTORING: frozenset[Primitive] = frozenset({solve, inv, slogdet})


def share_lu(program: Program) -> Program:
    """Factor every matrix once."""
    factoring = [equation for equation in program.equations if equation.primitive in _FACTORING]
    if len(factoring) < 2:
        return program
    reader = _Reader(program.constants, program.equations)
    uses = {equation: use for equation in factoring if (use := reader.use(equation)) is not None}
    counts = Counter([use.matrix for use in uses.values()])
    if max(counts.values(), default=0) < 2:
        return program
    raising = {use.matrix for use in uses.values() if use.params == {"safe": False}}
    builder = EquationBuilder(program)
    factors: dict[Var, tuple[Var, ...]] = {}
    for equation in program.equations:
        use = uses.get(equation)
        if use is None or counts[use.matrix] < 2:
            builder.equations.append(equation)
            continue
        matrix, primitive, others, params = use
        if primitive is factored_inverse and matrix in raising:
            params = {"safe": False}  # some inverse of this matrix raises if it is singular, so all may
        if matrix not in factors:
            factors[matrix] = tuple([Var(aval) for aval in lu_factors.aval(matrix.aval)])
            builder.equations.append(Equation(lu_factors, (matrix,), {}, factors[matrix], equation.line))
        inputs = (matrix, *factors[matrix], *others)
        builder.equations.append(Equation(primitive, inputs, params, equation.outputs, equation.line))
    return builder.build(program.outputs)


class _Use(NamedTuple):
    """The use of a matrix by an equation: the primitive that takes its factors, with further operands and
    parameters."""

    matrix: Var
    primitive: Primitive
    others: tuple[Any, ...]
    params: dict[str, Any]


class _Reader(Definitions):
    """Finds the matrices of solves, determinants and inverses."""

    def use(self, equation: Equation) -> _Use | None:
        """The use of one large matrix by an equation; None for other equations."""
        a = equation.inputs[0]
        if type(a) is not Var or len(a.shape) != 2 or a.shape[0] < MIN_ROWS or a.dtype != equation.outputs[0].dtype:
            return None
        if equation.primitive is slogdet:
            return _Use(a, factored_slogdet, (), {})
        if equation.primitive is inv:
            regular = self._nan_safe(a)
            strict = equation.params.get("strict", True)
            return _Use(regular or a, factored_inverse, (), {"safe": regular is not None}) if strict else None
        inner = adjoint_operand(self, a)
        return _Use(inner or a, factored_solve, equation.inputs[1:], {"adjoint": inner is not None})

    def _nan_safe(self, a: Var) -> Var | None:
        """A where a = where(isinf(log |det A|), 1, A)."""
        equation = self.definition(a)
        if equation is None or equation.primitive is not where:
            return None
        condition, identity, regular = equation.inputs
        value = self.constant_value(identity)
        test = self.definition(condition)
        if test is not None and test.primitive is reshape:
            test = self.definition(test.inputs[0])
        if test is None or test.primitive is not isinf or value is None or type(regular) is not Var:
            return None
        determinant = self.definition(test.inputs[0])
        if determinant is None or determinant.primitive is not slogdet or determinant.outputs[1] is not test.inputs[0]:
            return None
        is_identity = np.shape(value) == a.shape and np.array_equal(value, np.eye(len(value)))
        return regular if is_identity and determinant.inputs[0] is regular else None
