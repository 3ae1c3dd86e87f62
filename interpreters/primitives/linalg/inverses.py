"""Primitives by which passes replace others where the factors of a matrix are known.

The primitives `factored_…` take the matrix and its LU factors. The factors only save work: they are constants to every
derivative, which is by the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import inverses
from func.backends.array_helpers.linalg import float_dtype
from func.interpreters.core import ZERO, Array, Aval, Primitive, add_tangents, general, leading_axes, nondifferentiable
from func.interpreters.core.parameters import FLAG
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.elementwise.table import isinf
from func.interpreters.primitives.linalg.determinants import slogdet
from func.interpreters.primitives.linalg.matrices import (
    are_square,
    hermitian_part,
    keep_where,
    mH,
    mm,
    over_matrices,
    same_aval,
)
from func.interpreters.primitives.structural.shapes import full_like, where


def _cholesky_inverse_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """dX = -X (dL Lᴴ + L dLᴴ) X with the triangle of dL that is read.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.3.
    """
    (factor,), (tangent,) = primals, tangents
    lower = keep_where(factor, lambda i, j: j <= i)
    d_lower = keep_where(tangent, lambda i, j: j <= i)
    inverse = cholesky_inverse(factor)
    inner = multiply(hermitian_part(mm(d_lower, mH(lower))), 2.0)
    return inverse, negative(mm(mm(inverse, inner), inverse))


cholesky_inverse: Primitive = general(
    "cholesky_inverse",
    inverses.cholesky_inverse,
    aval=same_aval,
    fits=are_square,
    batch=leading_axes("cholesky_inverse"),
    jvp=_cholesky_inverse_jvp,
    cost=costs.cubic(2 / 3),
)
"""(L Lᴴ)⁻¹ from lower Cholesky factors L, whose upper triangles are not read."""


def _factors_aval(a: Aval) -> tuple[Aval, Aval]:
    return Aval(a.shape, float_dtype(a.dtype)), Aval(a.shape[:-1], np.int32)


lu_factors = nondifferentiable(
    "lu_factors",
    inverses.lu_factors,
    aval=_factors_aval,
    fits=are_square,
    batch=leading_axes("lu_factors"),
    multiple=True,
    cost=costs.cubic(2 / 3),
)
"""LAPACK's L and U in one matrix and its row exchanges, also of singular matrices, for the primitives below."""


def _turned(a: Any, adjoint: bool) -> Any:
    return mH(a) if adjoint and a is not ZERO else a


def _factored_solve_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, adjoint: bool) -> tuple[Array, Any]:
    """A dx = db - dA x, or with Aᴴ. Source: Giles (2008), section 2.2.2."""
    a, packed, pivots, b = primals
    x = factored_solve(a, packed, pivots, b, adjoint=adjoint)
    right = tangents[3]
    if tangents[0] is not ZERO:
        right = add_tangents(right, negative(mm(_turned(tangents[0], adjoint), x)))
    if right is ZERO:
        return x, ZERO
    return x, factored_solve(a, packed, pivots, right, adjoint=adjoint)


factored_solve: Primitive = general(
    "factored_solve",
    inverses.factored_solve,
    aval=lambda a, packed, pivots, b, *, adjoint: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    parameters={"adjoint": FLAG},
    factored_by="lu_factors",
    batch=leading_axes("factored_solve"),
    jvp=_factored_solve_jvp,
    transpose=lambda ct, a, packed, pivots, b, *, adjoint: (
        *[ZERO] * 3,
        factored_solve(a, packed, pivots, ct, adjoint=not adjoint),
    ),
    cost=costs.with_sides(0, 2),
)
"""A⁻¹ B or A⁻ᴴ B; B is (…, n, k)."""


def _factored_slogdet_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The tangent rule of `slogdet`, which has no factors."""
    assert slogdet.jvp is not None
    return slogdet.jvp(primals[:1], tangents[:1])  # type: ignore[no-any-return]


factored_slogdet: Primitive = general(
    "factored_slogdet",
    inverses.factored_slogdet,
    aval=lambda a, packed, pivots: slogdet.aval(a),
    factored_by="lu_factors",
    batch=leading_axes("factored_slogdet"),
    jvp=_factored_slogdet_jvp,
    multiple=True,
    cost=costs.per_input(1),
)
"""The sign and the logarithm of the determinant."""


def _factored_inverse_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, safe: bool) -> tuple[Array, Any]:
    """dA⁻¹ = -A⁻¹ dA A⁻¹; the identity returned for a singular matrix is constant."""
    out = factored_inverse(*primals, safe=safe)
    if tangents[0] is ZERO:
        return out, ZERO
    tangent = negative(mm(mm(out, tangents[0]), out))
    if safe:
        singular = over_matrices(isinf(factored_slogdet(*primals)[1]))
        tangent = where(singular, full_like(tangent, 0, ()), tangent)
    return out, tangent


factored_inverse: Primitive = general(
    "factored_inverse",
    inverses.factored_inverse,
    aval=lambda a, packed, pivots, *, safe: same_aval(a),
    parameters={"safe": FLAG},
    factored_by="lu_factors",
    batch=leading_axes("factored_inverse"),
    jvp=_factored_inverse_jvp,
    cost=costs.cubic(4 / 3),
)
"""A⁻¹. A singular matrix raises, or with `safe` gives the identity."""
