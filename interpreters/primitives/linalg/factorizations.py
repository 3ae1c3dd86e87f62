"""LU factors, column pivots of QR, and solves of matrices that are known to have a structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import linalg
from func.backends.array_helpers.linalg import float_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Primitive, Shaped
from func.interpreters.core.parameters import FLAG, are_integers, one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, conjugate, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.linalg.matrices import (
    are_matrices,
    block,
    from_triangle,
    has_sides,
    identity_like,
    keep_where,
    mH,
    mm,
    solve_batch,
)
from func.interpreters.primitives.linalg.solving import triangular_solve
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.shapes import broadcast, expand, fit_cotangent
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.primitives.structural.sorting import reorder


def _lu_aval(a: Aval) -> tuple[Aval, Aval, Aval]:
    *batch, m, n = a.shape
    pivots = Aval((*batch, min(m, n)), np.int32)
    return Aval(a.shape, float_dtype(a.dtype)), pivots, Aval((*batch, m), np.int64)


def lower_of(packed: Array) -> Array:
    """The unit lower triangle (…, m, min(m, n)) of packed factors."""
    m, n = core.shape_of(packed)[-2:]
    k = min(m, n)
    left = block(packed, (0, m), (0, k))
    below = keep_where(left, lambda i, j: j < i)
    return add(below, keep_where(broadcast_identity(left), lambda i, j: i == j))


def broadcast_identity(x: Array) -> Array:
    """Ones on the diagonal of a rectangular matrix like x."""
    m, n = core.shape_of(x)[-2:]
    return block(identity_like(x, max(m, n)), (0, m), (0, n))


def upper_of(packed: Array) -> Array:
    """The upper triangle (…, min(m, n), n) of packed factors."""
    m, n = core.shape_of(packed)[-2:]
    return keep_where(block(packed, (0, min(m, n)), (0, n)), lambda i, j: j >= i)


def rows_in_order(a: Array, order: Array) -> Array:
    """The rows of each matrix in the order given (…, m)."""
    rank = len(core.shape_of(a))
    wide = broadcast(expand(order, (rank - 1,)), shape=core.shape_of(a))
    return reorder(a, wide, axis=rank - 2)


def _lu_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """With F = L⁻¹ P dA U⁻¹ of the leading square: dL = L tril(F, -1), dU = triu(F) U; the exchanges P are constant.

    The rest of a tall or wide matrix follows from dA₂ = dL₂ U + L₂ dU and dA₂ = dL U₂ + L dU₂.
    Source: F. de Hoog, R. Anderssen, M. Lukas (2011), "Differentiation of matrix functionals using triangular
    factorization", Math. Comp. 80, section 3.
    """
    (a,), (da,) = primals, tangents
    packed, pivots, order = lu(a)
    m, n = core.shape_of(a)[-2:]
    k = min(m, n)
    da_ordered = rows_in_order(da, order)
    square = block(packed, (0, k), (0, k))
    inner = _between(square, block(da_ordered, (0, k), (0, k)))
    d_lower = mm(lower_of(square), keep_where(inner, lambda i, j: j < i))
    d_upper = mm(keep_where(inner, lambda i, j: j >= i), upper_of(square))
    tangent = add(d_lower, d_upper)
    rank = len(core.shape_of(a))
    if m > n:
        rest = subtract(block(da_ordered, (k, m), (0, n)), mm(block(packed, (k, m), (0, n)), d_upper))
        tangent = concatenate(tangent, _right_divided(rest, square), axis=rank - 2)
    elif n > m:
        rest = subtract(block(da_ordered, (0, m), (k, n)), mm(d_lower, block(packed, (0, m), (k, n))))
        wide = triangular_solve(square, rest, lower=True, adjoint=False, unit=True)
        tangent = concatenate(tangent, wide, axis=rank - 1)
    return (packed, pivots, order), (tangent, ZERO, ZERO)


def _between(square: Array, x: Array) -> Array:
    """L⁻¹ x U⁻¹."""
    return _right_divided(triangular_solve(square, x, lower=True, adjoint=False, unit=True), square)


def _right_divided(x: Array, square: Array) -> Array:
    """x U⁻¹."""
    return mH(triangular_solve(square, mH(x), lower=False, adjoint=True, unit=False))


lu: Primitive = core.general(
    "lu",
    reporting_missing(linalg.lu),
    aval=_lu_aval,
    fits=are_matrices,
    batch=core.leading_axes("lu"),
    jvp=_lu_jvp,
    multiple=True,
    cost=costs.per_matrix(costs.lu),
)
"""L and U in one matrix (…, m, n), LAPACK's row exchanges (…, min(m, n)), and the order of rows that they make."""


pivot_order = core.nondifferentiable(
    "pivot_order",
    linalg.pivot_order,
    aval=lambda pivots: Aval(pivots.shape, np.int64),
    fits=lambda pivots: len(pivots.shape) > 0 and are_integers(pivots),
    batch=core.leading_axes("pivot_order"),
    cost=0,
)
"""The order of the rows of square matrices that LAPACK's exchanges (…, n) make."""


def _qr_order_aval(a: Aval) -> Aval:
    return Aval((*a.shape[:-2], a.shape[-1]), np.int64)


qr_order = core.nondifferentiable(
    "qr_order",
    reporting_missing(linalg.qr_order),
    aval=_qr_order_aval,
    fits=are_matrices,
    batch=core.leading_axes("qr_order"),
    cost=costs.per_matrix(costs.qr),
)
"""The order of the columns of each matrix after a pivoted QR."""


TRIANGLES = {"upper triangular": False, "lower triangular": True}
SYMMETRIC, HERMITIAN = ("sym", "symmetric"), ("her", "hermitian", "pos", "positive definite")
ASSUMPTION = one_of(*(None, "gen", "general", "diagonal", "tridiagonal", "banded"), *TRIANGLES, *SYMMETRIC, *HERMITIAN)


def structured(a: Array, assume: str | None, lower: bool) -> Array:
    """The part of a direction of A that the solver reads, as the full matrix that it represents.

    Where one triangle is read, this is the symmetric (Hermitian) matrix with it, as in `cholesky`.
    """
    if assume in TRIANGLES:
        return keep_where(a, (lambda i, j: j <= i) if TRIANGLES[assume] else (lambda i, j: j >= i))
    if assume == "diagonal":
        return keep_where(a, lambda i, j: i == j)
    if assume == "tridiagonal":
        return add(
            keep_where(a, lambda i, j: i == j),
            add(keep_where(a, lambda i, j: i == j + 1), keep_where(a, lambda i, j: j == i + 1)),
        )
    if assume in HERMITIAN:
        return from_triangle(a, lower)
    if assume in SYMMETRIC:
        return from_triangle(a, lower, hermitian=False)
    return a


def _adjoint(a: Array, assume: str | None, lower: bool) -> tuple[Array, str | None]:
    """The adjoint matrix and its structure."""
    if assume in TRIANGLES:
        return mH(a), "upper triangular" if TRIANGLES[assume] else "lower triangular"
    if assume in HERMITIAN:
        return a, assume
    if assume in SYMMETRIC:
        return (conjugate(a) if core.dtype_of(a).kind == "c" else a), assume
    return mH(a), assume


def _solve_assumed_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, assume: str | None, lower: bool
) -> tuple[Array, Any]:
    """A dx = db - dA x with the part of dA that the solver reads.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.2.
    """
    (a, b), (da, db) = primals, tangents
    x = solve_assumed(a, b, assume=assume, lower=lower)
    right = db if da is ZERO else core.add_tangents(db, negative(mm(structured(da, assume, lower), x)))
    return x, solve_assumed(a, right, assume=assume, lower=lower)


def _solve_assumed_transpose(ct: Array, a: Array, b: Shaped, *, assume: str | None, lower: bool) -> tuple[Any, Array]:
    adjoint, kind = _adjoint(a, assume, lower)
    return ZERO, fit_cotangent(solve_assumed(adjoint, ct, assume=kind, lower=lower), b)


solve_assumed: Primitive = core.general(
    "solve_assumed",
    reporting_missing(linalg.solve_assumed),
    aval=lambda a, b, **params: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    parameters={"assume": ASSUMPTION, "lower": FLAG},
    fits=has_sides,
    batch=solve_batch(lambda a, b, **params: solve_assumed(a, b, **params)),
    jvp=_solve_assumed_jvp,
    transpose=_solve_assumed_transpose,
    cost=costs.with_sides(1 / 3, 2),
)
"""A⁻¹ B by the solver for a structure of A (None: the one SciPy finds); B is (…, n, k)."""
