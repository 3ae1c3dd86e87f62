"""Cholesky factors, solves and inverses of stacks of matrices. Each rule cites its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import linalg
from func.backends.array_helpers.linalg import float_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Linear, Primitive, Shaped
from func.interpreters.core.parameters import FLAG
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.linalg.matrices import (
    are_square,
    from_triangle,
    has_sides,
    keep_where,
    lower_half,
    mH,
    mm,
    onto_triangle,
    same_aval,
    solve_batch,
)
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.written_pullbacks import direct


def _cholesky_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, upper: bool = False) -> tuple[Array, Array]:
    """dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ keeps the lower triangle and halves the diagonal.

    dA is that of the Hermitian matrix of which one triangle is read.
    Source: I. Murray (2016), arXiv:1602.07527, equation 8.
    """
    (a,), (da,) = primals, tangents
    factor = cholesky(a, upper=upper)
    lower = mH(factor) if upper else factor
    left = triangular_solve(lower, from_triangle(da, not upper), lower=True, adjoint=False, unit=False)
    inner = mH(triangular_solve(lower, mH(left), lower=True, adjoint=False, unit=False))
    tangent = mm(lower, lower_half(inner))
    return factor, mH(tangent) if upper else tangent


def _cholesky_adjoint(ct: Array, parents: Any, saved: Any, *, upper: bool = False) -> tuple[Array]:
    """½ L⁻ᴴ (P + Pᴴ) L⁻¹ with P = Φ(Lᴴ L̄), taken onto the triangle that is read.

    Source: I. Murray (2016), arXiv:1602.07527, equation 10.
    """
    factor = saved[-1]
    lower, contribution = (mH(factor), mH(ct)) if upper else (factor, ct)
    middle = multiply(from_triangle(mm(mH(lower), contribution), True), 0.5)  # ½ (P + Pᴴ)
    left = triangular_solve(lower, middle, lower=True, adjoint=True, unit=False)
    whole = mH(triangular_solve(lower, mH(left), lower=True, adjoint=True, unit=False))
    return (onto_triangle(whole, not upper),)


cholesky: Primitive = direct(
    "cholesky",
    linalg.cholesky,
    _cholesky_adjoint,
    aval=same_aval,
    parameters={"upper": FLAG.or_absent()},
    fits=are_square,
    batch=core.leading_axes("cholesky"),
    jvp=_cholesky_jvp,
    cost=costs.cubic(1 / 3),
    pull_factor=12,  # a product and two solves of n right sides
)
"""L with L Lᴴ = A, or with `upper` U = Lᴴ from the upper triangle."""


known_factor: Linear = core.linear(
    "known_factor",
    lambda xp, x, *, upper=False: x,
    aval=same_aval,
    parameters={"upper": FLAG.or_absent()},
    fits=are_square,
    transpose=lambda ct, x, **params: (ct,),
    batch=lambda x, **params: known_factor(x, **params),
    cost=0,
    view=True,
    mask="elementwise",
    covers=True,
)
"""The identity, for results of `cholesky` before this program or values linear in them, with a real diagonal."""

FACTORS = frozenset({cholesky, known_factor})
"""The primitives whose output is a Cholesky factor."""


def _triangular_solve_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Array, Any]:
    """A x = b gives A dx = db - dA x with the triangle of dA that is read.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.2.
    """
    (a, b), (da, db) = primals, tangents
    x = triangular_solve(a, b, lower=lower, adjoint=adjoint, unit=unit)
    right = db
    if da is not ZERO:
        da = _triangle(da, lower, unit)
        right = core.add_tangents(db, negative(mm(mH(da) if adjoint else da, x)))
    return x, triangular_solve(a, right, lower=lower, adjoint=adjoint, unit=unit)


def _triangular_solve_transpose(
    ct: Array, a: Array, b: Shaped, *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Any, Array]:
    return ZERO, triangular_solve(a, ct, lower=lower, adjoint=not adjoint, unit=unit)


def _triangle(x: Array, lower: bool, unit: bool) -> Array:
    """The triangle of a matrix that is read."""
    if unit:
        return keep_where(x, (lambda i, j: j < i) if lower else (lambda i, j: j > i))
    return keep_where(x, (lambda i, j: j <= i) if lower else (lambda i, j: j >= i))


def _triangular_solve_adjoint(
    ct: Array, parents: Any, saved: Any, *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Any, Array]:
    """b̄ = A⁻ᴴ x̄ and Ā = -b̄ xᴴ, or its adjoint, in the triangle that is read. Source: Giles (2008), section 2.2.2."""
    a, _, x = saved
    right = triangular_solve(a, ct, lower=lower, adjoint=not adjoint, unit=unit)
    if parents[0] is None:
        return ZERO, right
    outer = mm(x, mH(right)) if adjoint else mm(right, mH(x))
    return negative(_triangle(outer, lower, unit)), right


triangular_solve: Primitive = direct(
    "triangular_solve",
    reporting_missing(linalg.triangular_solve),
    _triangular_solve_adjoint,
    aval=lambda a, b, **params: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    parameters={"lower": FLAG, "adjoint": FLAG, "unit": FLAG},
    fits=has_sides,
    batch=solve_batch(lambda a, b, **params: triangular_solve(a, b, **params)),
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
    cost=costs.with_sides(0, 1),
    pull_factor=3,  # a solve and an outer product
)
"""A⁻¹ B or A⁻ᴴ B for triangular A; B is (…, n, k)."""


def _solve_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """A dx = db - dA x. Source: Giles (2008), section 2.2.2."""
    (a, b), (da, db) = primals, tangents
    x = solve(a, b)
    right = db if da is ZERO else core.add_tangents(db, negative(mm(da, x)))
    return x, solve(a, right)


def _solve_adjoint(ct: Array, parents: Any, saved: Any) -> tuple[Any, Array]:
    """b̄ = A⁻ᴴ x̄, Ā = -b̄ xᴴ. Source: Giles (2008), section 2.2.2."""
    a, _, x = saved
    right = solve(mH(a), ct)
    return ZERO if parents[0] is None else negative(mm(right, mH(x))), right


solve: Primitive = direct(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    _solve_adjoint,
    aval=lambda a, b: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    fits=has_sides,
    batch=solve_batch(lambda a, b: solve(a, b)),
    jvp=_solve_jvp,
    transpose=lambda ct, a, b: (ZERO, solve(mH(a), ct)),
    cost=costs.with_sides(2 / 3, 2),
)
"""A⁻¹ B; B is (…, n, k)."""


def _inv_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, strict: bool = True) -> tuple[Array, Array]:
    """dA⁻¹ = -A⁻¹ dA A⁻¹. Source: Giles (2008), section 2.2.3."""
    (a,), (da,) = primals, tangents
    out = inv(a, strict=strict)
    return out, negative(mm(mm(out, da), out))


def _inv_adjoint(ct: Array, parents: Any, saved: Any, *, strict: bool = True) -> tuple[Array]:
    """Ā = -A⁻ᴴ X̄ A⁻ᴴ. Source: Giles (2008), section 2.2.3."""
    dual = mH(saved[-1])
    return (negative(mm(mm(dual, ct), dual)),)


inv: Primitive = direct(
    "inv",
    linalg.inv,
    _inv_adjoint,
    aval=same_aval,
    parameters={"strict": FLAG.or_absent()},
    fits=are_square,
    batch=core.leading_axes("inv"),
    jvp=_inv_jvp,
    cost=costs.cubic(2),
)
"""A⁻¹. A singular matrix raises, or becomes NaN where `strict` is off."""
