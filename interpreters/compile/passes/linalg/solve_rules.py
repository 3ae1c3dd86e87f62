"""Rules for solves whose matrices are known to be triangular, or adjoints of what was factored."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.compile.passes.cleanup import common
from func.interpreters.compile.passes.linalg.scalar_multiples import maker, multiple
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule, rewritten
from func.interpreters.core import Primitive, shape_of
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.elementwise.table import absolute, divide, exp, square, subtract
from func.interpreters.primitives.linalg.inverses import cholesky_inverse
from func.interpreters.primitives.linalg.solving import cholesky, inv, solve, triangular_solve
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.shapes import permute, reshape
from func.interpreters.program.program import Equation, Program, Var

_ROWS = frozenset({solve, inv, triangular_solve, cholesky_inverse})


def factorings(program: Program) -> Program:
    """The program with what is known of its matrices made use of; the program itself where nothing is."""
    if not any([equation.primitive in _ROWS for equation in program.equations]):
        return program
    after = rewritten(program, rules_of)
    return program if after is program else common(after)


def rules_of(primitive: Primitive) -> tuple[Rule, ...]:
    """The rules for a row."""
    return _TABLE.get(primitive, ())


def _triangle(rw: Rewriter, x: Any) -> bool | None:
    """True for matrices known to be lower triangular, False for upper ones, None for others."""
    equation = maker(rw, x)
    flips = False
    while equation is not None and (equation.primitive is conjugate or _transposes(equation)):
        flips = flips is not (equation.primitive is permute)
        equation = maker(rw, equation.inputs[0])
    if equation is None or equation.primitive is not cholesky:
        return None
    return equation.params.get("upper", False) is flips


def _transposes(equation: Any) -> bool:
    rank = len(equation.outputs[0].shape)
    return equation.primitive is permute and equation.params["order"] == (*range(rank - 2), rank - 1, rank - 2)


def _adjoint(rw: Rewriter, x: Any) -> Any:
    """y where x = yᴴ, or None."""
    equation = maker(rw, x)
    if equation is None or not (_transposes(equation) or (equation.primitive is conjugate and x.dtype.kind == "c")):
        return None
    if x.dtype.kind != "c":
        return equation.inputs[0]
    inner = maker(rw, equation.inputs[0])
    if inner is None or {equation.primitive, inner.primitive} != {conjugate, permute}:
        return None
    return inner.inputs[0] if inner.primitive is conjugate or _transposes(inner) else None


def solve_of_triangle(rw: Rewriter, out: Var, a: Any, b: Any) -> Any:
    """A⁻¹ b by substitution where A is triangular."""
    lower = _triangle(rw, a)
    return None if lower is None else rw.emit(triangular_solve, a, b, lower=lower, adjoint=False, unit=False)


def inverse_of_triangle(rw: Rewriter, out: Var, a: Any, *, strict: bool = True) -> Any:
    """A⁻¹ by substitution where A is triangular."""
    lower = _triangle(rw, a)
    if lower is None:
        return None
    identity = np.broadcast_to(np.eye(out.shape[-1], dtype=out.dtype), out.shape)
    return rw.emit(triangular_solve, a, rw.constant(identity), lower=lower, adjoint=False, unit=False)


def solve_of_adjoint(rw: Rewriter, out: Var, a: Any, b: Any, *, lower: bool, adjoint: bool, unit: bool) -> Any:
    """(Aᴴ)⁻¹ b by the triangle A itself."""
    inner = _adjoint(rw, a)
    if inner is None:
        return None
    return rw.emit(triangular_solve, inner, b, lower=not lower, adjoint=not adjoint, unit=unit)


def multiples_move_out(rw: Rewriter, out: Var, a: Any, b: Any, **params: Any) -> Any:
    """A⁻¹ (s b) = s A⁻¹ b for numbers s, so that solves with b are one."""
    factor, base, conjugated = multiple(rw, b, len(out.shape) - 2)
    inside = (b, rw.inside(b, reshape))
    if conjugated or factor.scalars or base in inside or type(factor.number) is complex or 2 * b.size > a.size:
        return None
    plain = base if base.shape == b.shape else rw.reshaped(base, b.shape)
    solved = rw.emit(triangular_solve if params else solve, a, plain, **params)
    return solved if factor.number == 1 else rw.emit(multiply, solved, float(factor.number))


def transpose_of_symmetric(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """Aᵀ = A where A is symmetric."""
    rank = len(order)
    transposes = rank > 1 and order == (*range(rank - 2), rank - 1, rank - 2)
    return x if transposes and x.dtype.kind == "f" and _symmetric(rw, x, DEPTH) else None


def _symmetric(rw: Rewriter, x: Any, depth: int) -> bool:
    """True for real matrices that are their own transposes by the way they are made."""
    equation = maker(rw, x)
    if equation is None or depth == 0 or len(x.shape) < 2:
        return False
    primitive, inputs = equation.primitive, equation.inputs
    if primitive is cholesky_inverse:
        return True
    if primitive in _PRESERVING:
        return all([_is_per_matrix(y, x) or (_is_matrix(y, x) and _symmetric(rw, y, depth - 1)) for y in inputs])
    return primitive is contract and _is_square(rw, equation)


def _is_matrix(y: Any, x: Var) -> bool:
    return type(y) is Var and len(y.shape) > 1 and y.shape[-2:] == x.shape[-2:]


def _is_per_matrix(y: Any, x: Var) -> bool:
    """True for numbers, and for one number for each matrix."""
    shape = shape_of(y)
    return not shape or (len(shape) == len(x.shape) and shape[-2:] == (1, 1))


def _is_square(rw: Rewriter, equation: Equation) -> bool:
    """True for sums of s · u uᵀ."""
    labels = equation.params["spec"]
    if len(labels.x) != len(labels.y) or len(labels.out) < 2:
        return False
    primitive, column = labels.out[-2:]
    swapped = tuple([{primitive: column, column: primitive}.get(label, label) for label in labels.x])
    if swapped != labels.y:
        return False
    stack = len(labels.out) - 2
    left, right = [multiple(rw, x, stack) for x in equation.inputs]
    return left[1:] == right[1:] and left.base.shape[:stack] == equation.outputs[0].shape[:stack]


_PRESERVING = frozenset({add, subtract, multiply, divide, negative, exp, nan_safe_multiply, absolute, square})
DEPTH = 12
"""How many equations back symmetry is looked for."""
_TABLE: dict[Primitive, tuple[Rule, ...]] = {
    solve: (solve_of_triangle, multiples_move_out),
    inv: (inverse_of_triangle,),
    triangular_solve: (solve_of_adjoint, multiples_move_out),
    permute: (transpose_of_symmetric,),
}
