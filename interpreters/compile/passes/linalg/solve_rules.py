"""Rules for solves with triangular matrices, adjoints and scalar multiples, and for symmetric matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.compile.passes.cleanup import eliminate_common_subexpressions
from func.interpreters.compile.passes.linalg.scalar_multiples import adjoint_operand, is_matrix_transpose, multiple
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule, rewrite
from func.interpreters.core import Primitive, shape_of
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.elementwise.table import absolute, divide, exp, square, subtract
from func.interpreters.primitives.linalg.inverses import cholesky_inverse
from func.interpreters.primitives.linalg.solving import FACTORS, inv, solve, triangular_solve
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.shapes import permute, reshape
from func.interpreters.program.program import Equation, Program, Var

_SOLVES = frozenset({solve, inv, triangular_solve, cholesky_inverse})


def simplify_solves(program: Program) -> Program:
    """Apply the rules for solves, and eliminate the common subexpressions that result."""
    if not any([equation.primitive in _SOLVES for equation in program.equations]):
        return program
    simplified = rewrite(program, lambda primitive: _TABLE.get(primitive, ()))
    return program if simplified is program else eliminate_common_subexpressions(simplified)


def _is_lower(rw: Rewriter, x: Any) -> bool | None:
    """True for a matrix known to be lower triangular, False for an upper triangular one, None for others."""
    equation = rw.definition(x)
    transposed = False
    while equation is not None and (equation.primitive is conjugate or is_matrix_transpose(equation)):
        transposed = transposed is not (equation.primitive is permute)
        equation = rw.definition(equation.inputs[0])
    if equation is None or equation.primitive not in FACTORS:
        return None
    return equation.params.get("upper", False) is transposed


def solve_of_triangle(rw: Rewriter, out: Var, a: Any, b: Any) -> Any:
    """solve(A, b) = triangular_solve(A, b) where A is triangular."""
    lower = _is_lower(rw, a)
    return None if lower is None else rw.emit(triangular_solve, a, b, lower=lower, adjoint=False, unit=False)


def inverse_of_triangle(rw: Rewriter, out: Var, a: Any, *, strict: bool = True) -> Any:
    """inv(A) = triangular_solve(A, 1) where A is triangular."""
    lower = _is_lower(rw, a)
    if lower is None:
        return None
    identity = np.broadcast_to(np.eye(out.shape[-1], dtype=out.dtype), out.shape)
    return rw.emit(triangular_solve, a, rw.constant(identity), lower=lower, adjoint=False, unit=False)


def solve_of_adjoint(rw: Rewriter, out: Var, a: Any, b: Any, *, lower: bool, adjoint: bool, unit: bool) -> Any:
    """triangular_solve(Aᴴ, b) solves with A itself, in adjoint mode."""
    inner = adjoint_operand(rw, a)
    if inner is None:
        return None
    return rw.emit(triangular_solve, inner, b, lower=not lower, adjoint=not adjoint, unit=unit)


def solve_of_multiple(rw: Rewriter, out: Var, a: Any, b: Any, **params: Any) -> Any:
    """A⁻¹ (s b) = s A⁻¹ b for numbers s, so that several solves with b become one."""
    factor, base, conjugated = multiple(rw, b, len(out.shape) - 2)
    trivial = (b, rw.operand(b, reshape))
    if conjugated or factor.scalars or base in trivial or type(factor.number) is complex or 2 * b.size > a.size:
        return None
    plain = base if base.shape == b.shape else rw.reshape(base, b.shape)
    solved = rw.emit(triangular_solve if params else solve, a, plain, **params)
    return solved if factor.number == 1 else rw.emit(multiply, solved, float(factor.number))


def transpose_of_symmetric(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """Aᵀ = A where A is symmetric."""
    rank = len(order)
    is_transpose = rank > 1 and order == (*range(rank - 2), rank - 1, rank - 2)
    return x if is_transpose and x.dtype.kind == "f" and _is_symmetric(rw, x, MAX_DEPTH) else None


def _is_symmetric(rw: Rewriter, x: Any, depth: int) -> bool:
    """True for a real matrix whose definition shows that it equals its transpose."""
    equation = rw.definition(x)
    if equation is None or depth == 0 or len(x.shape) < 2:
        return False
    primitive, inputs = equation.primitive, equation.inputs
    if primitive is cholesky_inverse:
        return True
    if primitive in _PRESERVING:
        return all([_is_per_matrix(y, x) or (_is_matrix(y, x) and _is_symmetric(rw, y, depth - 1)) for y in inputs])
    return primitive is contract and _is_gram_matrix(rw, equation)


def _is_matrix(y: Any, x: Var) -> bool:
    return type(y) is Var and len(y.shape) > 1 and y.shape[-2:] == x.shape[-2:]


def _is_per_matrix(y: Any, x: Var) -> bool:
    """True for a scalar, and for one element per matrix of a stack."""
    shape = shape_of(y)
    return not shape or (len(shape) == len(x.shape) and shape[-2:] == (1, 1))


def _is_gram_matrix(rw: Rewriter, equation: Equation) -> bool:
    """True for contractions of the form s · U Uᵀ."""
    labels = equation.params["spec"]
    if len(labels.x) != len(labels.y) or len(labels.out) < 2:
        return False
    row, column = labels.out[-2:]
    swapped = tuple([{row: column, column: row}.get(label, label) for label in labels.x])
    if swapped != labels.y:
        return False
    stack = len(labels.out) - 2
    left, right = [multiple(rw, x, stack) for x in equation.inputs]
    return left[1:] == right[1:] and left.base.shape[:stack] == equation.outputs[0].shape[:stack]


_PRESERVING = frozenset({add, subtract, multiply, divide, negative, exp, nan_safe_multiply, absolute, square})
MAX_DEPTH = 12
"""The number of equations that the search for symmetry goes back."""
_TABLE: dict[Primitive, tuple[Rule, ...]] = {
    solve: (solve_of_triangle, solve_of_multiple),
    inv: (inverse_of_triangle,),
    triangular_solve: (solve_of_adjoint, solve_of_multiple),
    permute: (transpose_of_symmetric,),
}
