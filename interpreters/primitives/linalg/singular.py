"""Singular values and vectors, pseudo-inverses and least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import inverses, linalg
from func.backends.array_helpers.linalg import float_dtype, real_dtype
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    add_tangents,
    dtype_of,
    general,
    leading_axes,
    materialize,
    shape_of,
)
from func.interpreters.core.parameters import FLAG, NUMBER
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, negative
from func.interpreters.primitives.elementwise.conventions import by_convention
from func.interpreters.primitives.elementwise.partials import is_followed
from func.interpreters.primitives.elementwise.table import equal, greater, logical_and, not_equal, subtract
from func.interpreters.primitives.linalg.entangled import entangle
from func.interpreters.primitives.linalg.matrices import (
    Cusps,
    along_columns,
    along_rows,
    are_matrices,
    are_square,
    block,
    cusps,
    diagonal_of,
    from_triangle,
    hermitian_part,
    keep_where,
    largest,
    mH,
    mm,
    real_part,
    row_of,
    safe_reciprocal,
    scale_columns,
    turn_to_real,
    with_cusps,
)
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import convert, expand, full_like, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate


def _svd_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, full_matrices: bool) -> tuple[Any, Any]:
    """With P = Uᴴ dA V: ds = Re diag P, and dU = U ω, dV = V η for antihermitian ω, η with ω S + dS - S η = P.

    The Hermitian part of P is (s_j - s_i) (ω + η) / 2, its antihermitian part (s_j + s_i) (ω - η) / 2. On the diagonal
    only ω - η is determined (by i Im P / s): a complex pair of vectors may turn together. It turns so that the first
    component of one of them stays real, as in LAPACK: that of V, or of U if the matrix is wide.
    Columns that only one of U and V has: U₂ᴴ dU₁ = U₂ᴴ dA V S⁻¹, and full factors stay unitary.
    Sources: M. Giles (2008), section 3.2; J. Townsend (2016), "Differentiating the singular value decomposition";
    Z.-Q. Wan and S.-X. Zhang (2019), arXiv:1909.02659, for complex matrices.
    """
    (a,), (da,) = primals, tangents
    u, s, vh = svd(a, full_matrices=full_matrices)
    cusp = cusps(s, source=a)
    inner, thin, du, dv = _turning(a, da, *basis_of_svd(a, u, s, vh), cusp)
    are_zero = equal(stop_gradient(s), 0)
    mixing = where(expand(are_zero, (len(shape_of(s)) - 1,)), inner, hermitian_part(inner))
    ds = _moved_values(real_part(diagonal_of(inner)), a, s, cusp)
    ds, du = _entangle_thin(ds, du, mixing, s, thin[0])
    ds, dv = _entangle_thin(ds, dv, mixing, s, thin[1])
    return (u, s, vh), (du, ds, mH(dv))


def _turning(
    a: Array, da: Array, u: Array, s: Array, vh: Array, cusp: Cusps | None
) -> tuple[Array, tuple[Array, Array], Array, Array]:
    """P, the columns of U and V that belong to singular values, dU and dV."""
    k = shape_of(s)[-1]
    thin_u = block(u, (0, shape_of(u)[-2]), (0, k))
    thin_v = block(mH(vh), (0, shape_of(vh)[-1]), (0, k))
    inner = mm(mm(mH(thin_u), da), thin_v)
    left, right = _rotations(inner, s, cusp)
    inverse = safe_reciprocal(s, reshape(largest(s), shape=(*shape_of(s)[:-1], 1)))
    du = _turned(u, thin_u, left, scale_columns(mm(da, thin_v), inverse))
    dv = _turned(mH(vh), thin_v, right, scale_columns(mm(mH(da), thin_u), inverse))
    if dtype_of(u).kind == "c" and k:
        full, d_full = (mH(vh), dv) if shape_of(a)[-2] >= shape_of(a)[-1] else (u, du)
        first, d_first = (block(row, (0, 1), (0, k)) for row in (full, d_full))
        turn = turn_to_real(row_of(first, 0), row_of(d_first, 0))
        du, dv = (add(d, _beside_zeros(scale_columns(thin, turn), d)) for thin, d in ((thin_u, du), (thin_v, dv)))
    du, dv = (_columns_with_cusps(d, k, cusp) for d in (du, dv))
    return inner, (thin_u, thin_v), du, dv


def _basis_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Those of svd, where nothing reads U and V together with the singular values."""
    (a, u, s, vh), da = primals, tangents[0]
    out = singular_basis(a, u, s, vh)
    if da is ZERO:
        return out, (ZERO, ZERO)
    s = svdvals(a)
    _, _, du, dv = _turning(a, da, out[0], s, out[1], cusps(s, source=a))
    return out, (du, mH(dv))


singular_basis: Primitive = general(
    "singular_basis",
    lambda xp, a, u, s, vh: (u, vh),
    aval=lambda a, u, s, vh: (u, vh),
    fits=lambda a, u, s, vh: are_matrices(a, u, vh) and s.shape == (*a.shape[:-2], min(a.shape[-2:])),
    batch=leading_axes("singular_basis"),
    jvp=_basis_jvp,
    multiple=True,
    body=lambda params: lambda a, u, s, vh: (u, vh),
    cost=0,
)
"""U and Vᴴ of a matrix A whose decomposition is known; the derivatives are by A alone, and not `entangled`."""


def basis_of_svd(a: Array, u: Array, s: Array, vh: Array) -> tuple[Array, Array, Array]:
    """U, s and Vᴴ for results that do not read the vectors of equal singular values together with these."""
    if not is_followed(a):
        return u, s, vh
    u, vh = singular_basis(a, *(stop_gradient(x) for x in (u, s, vh)))
    return u, s, vh


def singular_vectors(a: Array, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """`svd`, for such results."""
    return basis_of_svd(a, *svd(a, full_matrices=full_matrices))


def _entangle_thin(ds: Array, columns: Array, mixing: Array, s: Array, thin: Array) -> tuple[Array, Array]:
    """`entangle` of the vectors that belong to singular values."""
    rows, n = shape_of(columns)[-2:]
    k = shape_of(s)[-1]
    if k == n:
        return entangle(ds, columns, mixing, s, thin, "singular")
    ds, first = entangle(ds, block(columns, (0, rows), (0, k)), mixing, s, thin, "singular")
    return ds, concatenate(first, block(columns, (0, rows), (k, n)), axis=len(shape_of(columns)) - 1)


def _beside_zeros(columns: Array, like: Array) -> Array:
    """Columns followed by zeros, as many as another matrix has."""
    k, n = shape_of(columns)[-1], shape_of(like)[-1]
    if k == n:
        return columns
    return concatenate(columns, full_like(columns, 0, (*shape_of(columns)[:-1], n - k)), axis=len(shape_of(like)) - 1)


def _columns_with_cusps(columns: Array, k: int, cusp: Cusps | None) -> Array:
    """Tangents of the vectors of k singular values, and of those that a matrix has besides."""
    rows, n = shape_of(columns)[-2:]
    if k == n or cusp is None:
        return with_cusps(columns, cusp)
    thin = with_cusps(block(columns, (0, rows), (0, k)), cusp)
    return concatenate(thin, block(columns, (0, rows), (k, n)), axis=len(shape_of(columns)) - 1)


def _moved_values(ds: Array, a: Array, s: Array, cusp: Cusps | None) -> Array:
    """The tangent of singular values; by convention one of exactly zero has the derivative zero, as a norm has."""
    total = expand(reduce_sum(real_part(a), axes=(len(shape_of(a)) - 2, len(shape_of(a)) - 1)), (len(shape_of(s)) - 1,))
    moves = convert(not_equal(s, 0), dtype=dtype_of(s))
    return multiply(with_cusps(ds, cusp), by_convention(moves, lambda: equal(s, 0), total))


def _rotations(inner: Array, s: Array, cusp: Cusps | None) -> tuple[Array, Array]:
    """ω and η of the columns that belong to singular values."""
    scale = largest(s)
    s = with_cusps(s, cusp)
    minus = keep_where(safe_reciprocal(subtract(along_columns(s), along_rows(s)), scale), lambda i, j: i != j)
    plus = safe_reciprocal(add(along_columns(s), along_rows(s)), scale)
    symmetric = multiply(minus, hermitian_part(inner))
    apart = multiply(plus, multiply(subtract(inner, mH(inner)), 0.5))
    return add(symmetric, apart), subtract(symmetric, apart)


def _turned(full: Array, thin: Array, rotation: Array, drift: Array) -> Array:
    """The tangent of `full` = [thin, rest]: thin columns turn by `rotation` and leave their span as `drift` does."""
    n, k = shape_of(thin)[-2:]
    turned = mm(thin, rotation)
    if n == k:
        return turned
    if shape_of(full)[-1] == k:
        return add(turned, subtract(drift, mm(thin, mm(mH(thin), drift))))
    rest = block(full, (0, n), (k, n))
    outside = mm(mH(rest), drift)
    return concatenate(add(turned, mm(rest, outside)), negative(mm(thin, mH(outside))), axis=len(shape_of(thin)) - 1)


def _svd_aval(a: Aval, *, full_matrices: bool) -> tuple[Aval, Aval, Aval]:
    *batch, m, n = a.shape
    k = min(m, n)
    dtype = float_dtype(a.dtype)
    left, right = (m, n) if full_matrices else (k, k)
    return (
        Aval((*batch, m, left), dtype),
        Aval((*batch, k), real_dtype(a.dtype)),
        Aval((*batch, right, n), dtype),
    )


svd: Primitive = general(
    "svd",
    lambda xp, a, *, full_matrices: tuple(xp.linalg.svd(a, full_matrices)),
    aval=_svd_aval,
    parameters={"full_matrices": FLAG},
    fits=are_matrices,
    batch=leading_axes("svd"),
    jvp=_svd_jvp,
    multiple=True,
    cost=costs.per_matrix(costs.svd),
)


def _svdvals_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """ds = Re diag(Uᴴ dA V). Source: Giles (2008), section 3.2."""
    (a,), (da,) = primals, tangents
    u, _, vh = singular_vectors(a)
    product = multiply(conjugate(u), mm(da, mH(vh)))
    ds = real_part(reduce_sum(product, axes=(len(shape_of(product)) - 2,)))
    values = svdvals(a)
    return values, _moved_values(ds, a, values, cusps(values))


svdvals: Primitive = general(
    "svdvals",
    lambda xp, a: xp.linalg.svd(a, compute_uv=False),
    aval=lambda a: Aval((*a.shape[:-2], min(a.shape[-2:])), real_dtype(a.dtype)),
    fits=are_matrices,
    batch=leading_axes("svdvals"),
    jvp=_svdvals_jvp,
    cost=costs.per_matrix(costs.qr),
)


def _pinv_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, hermitian: bool, cut: bool) -> tuple[Array, Array]:
    """dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, while the rank is constant.

    Source: G. Golub and V. Pereyra (1973), SIAM J. Numer. Anal. 10, equation 4.12. With `cut` the limit is so large
    that it may cut off singular values that matter, and the derivative is taken through the singular values.
    """
    (a, limit), (da, _) = primals, tangents
    p = pinv(a, limit, hermitian=hermitian, cut=cut)
    if hermitian:
        a, da = from_triangle(a, True), from_triangle(da, True)
    if cut:
        return p, _cut_pinv_tangent(a, da, limit)
    ph, dah = mH(p), mH(da)
    rows = mm(mm(p, ph), dah)
    columns = mm(mm(dah, ph), p)
    total = add(subtract(rows, mm(mm(rows, a), p)), subtract(columns, mm(p, mm(a, columns))))
    return p, subtract(total, mm(mm(p, da), p))


def _cut_pinv_tangent(a: Array, da: Array, limit: Array) -> Array:
    """For P = V g(S) Uᴴ with g(s) = 1/s of the remaining values, 0 of the others, in the basis of singular vectors.
    There (g_i - g_j) / (s_i - s_j) multiplies the Hermitian part of Uᴴ dA V, and (g_i + g_j) / (s_i + s_j) the other
    one. The part that leads out of the span gets g / s. Equal remaining values have the limit -1 / (s_i s_j)."""
    u, s, vh = singular_vectors(a)
    v = mH(vh)
    scale = reshape(largest(s), shape=(*shape_of(s)[:-1], 1))
    is_kept = greater(s, multiply(scale, expand(limit, (len(shape_of(limit)),))))
    zero = full_like(s, 0, ())
    g = where(is_kept, safe_reciprocal(s, multiply(scale, 0)), zero)
    gi, gj, si, sj = along_rows(g), along_columns(g), along_rows(s), along_columns(s)
    both_kept = logical_and(along_rows(is_kept), along_columns(is_kept))
    apart = safe_reciprocal(subtract(si, sj), largest(s))
    minus = where(both_kept, negative(multiply(gi, gj)), multiply(subtract(gi, gj), apart))
    plus = multiply(add(gi, gj), safe_reciprocal(add(si, sj), multiply(largest(s), 0)))
    inner = mm(mm(mH(u), da), v)
    hermitian = hermitian_part(inner)
    core = add(multiply(minus, hermitian), multiply(plus, subtract(inner, hermitian)))
    out = mm(u, core)
    ratio = multiply(g, g)
    m, n = shape_of(a)[-2:]
    if m > n:
        contribution = mm(da, v)
        out = add(out, scale_columns(subtract(contribution, mm(u, mm(mH(u), contribution))), ratio))
    out = mm(out, vh)
    if n > m:
        contribution = mm(mH(u), da)
        out = add(out, mm(scale_columns(u, ratio), subtract(contribution, mm(mm(contribution, v), vh))))
    return mH(out)


def _have_limits(a: Aval, limit: Aval, *, hermitian: bool, cut: bool) -> bool:
    """Whether there is a limit for each matrix, and Hermitian ones are square."""
    return (are_square(a) if hermitian else are_matrices(a)) and limit.shape == a.shape[:-2]


pinv: Primitive = general(
    "pinv",
    inverses.pinv,
    aval=lambda a, limit, **params: Aval((*a.shape[:-2], a.shape[-1], a.shape[-2]), float_dtype(a.dtype)),
    parameters={"hermitian": FLAG, "cut": FLAG},
    fits=_have_limits,
    batch=leading_axes("pinv"),
    jvp=_pinv_jvp,
    cost=costs.per_matrix(costs.svd),
)
"""The pseudo-inverse of (…, m, n); singular values up to `limit` (…) times the largest count as zero."""


def _lstsq_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, limit: float, cut: bool) -> tuple[Any, Any]:
    """x = P b with the pseudo-inverse P of A; d‖b - A x‖² = 2 Re (b - A x)ᴴ (db - dA x), as Aᴴ (b - A x) = 0."""
    (a, b), (da, db) = primals, tangents
    x, residuals, s = lstsq(a, b, limit=limit, cut=cut)
    share = full_like(s, limit, shape_of(a)[:-2])
    d_right: Any = db
    dx: Any = ZERO
    ds: Any = ZERO
    if da is ZERO:
        p = pinv(a, share, hermitian=False, cut=cut)
    else:
        p, dp = _pinv_jvp((a, share), (da, ZERO), hermitian=False, cut=cut)
        dx = mm(dp, b)
        d_right = add_tangents(db, negative(mm(da, x)))
        ds = convert(_svdvals_jvp((a,), (da,))[1], dtype=dtype_of(s))
    if db is not ZERO:
        dx = add_tangents(mm(p, db), dx)
    rest = subtract(b, mm(a, x))
    d_residuals = real_part(reduce_sum(multiply(conjugate(rest), multiply(d_right, 2)), axes=(len(shape_of(b)) - 2,)))
    return (x, residuals, s), (dx, d_residuals, ds)


def _lstsq_aval(a: Aval, b: Aval, **params: Any) -> tuple[Aval, Aval, Aval]:
    dtype = np.result_type(float_dtype(a.dtype), b.dtype)
    batch, (m, n), k = a.shape[:-2], a.shape[-2:], b.shape[-1]
    values = Aval((*batch, min(m, n)), real_dtype(dtype))
    return Aval((*batch, n, k), dtype), Aval((*batch, k), real_dtype(dtype)), values


def _lstsq_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Any) -> Any:
    return lstsq(*materialize(size, batched, args), **params)


def _lstsq_cost(ins: Sequence[Aval], outs: Sequence[Aval], params: Params) -> float:
    """A singular value decomposition, applied to the right-hand sides."""
    m, n = ins[0].shape[-2:]
    return costs.svd(m, n) + 4 * m * n * (ins[1].size / max(m, 1))


lstsq: Primitive = general(
    "lstsq",
    linalg.lstsq,
    aval=_lstsq_aval,
    parameters={"limit": NUMBER, "cut": FLAG},
    fits=lambda a, b, **params: are_matrices(a, b) and a.shape[:-1] == b.shape[:-1],
    batch=_lstsq_batch,
    jvp=_lstsq_jvp,
    multiple=True,
    cost=_lstsq_cost,
)
"""Least-squares solutions x of A x = b, sums of squared residuals, singular values; b is (…, m, k)."""
