"""Linear algebra on the last two axes; leading axes are a batch. Each row's rules stand together, its source cited.

Convention: H is the conjugate transpose. Undetermined parts of degenerate spectra are dropped, not divided by zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, Array, Aval, Shaped, dtype_of, shape_of
from func.interpreters.errors import NotDifferentiableError
from func.interpreters.primitives.contraction import contract, matmul_spec, spec
from func.interpreters.primitives.elementwise import (
    add,
    conjugate,
    divide,
    equal,
    imag,
    less,
    multiply,
    negative,
    real,
    subtract,
)
from func.interpreters.primitives.kinds import Row, add_tangents, general, leading_axes
from func.interpreters.primitives.structural import (
    convert,
    expand,
    full_like,
    getitem,
    iota,
    permute,
    reduce_sum,
    reshape,
    where,
)

# --- helpers ----------------------------------------------------------------------------------------------------


def mT(x: Array) -> Array:
    """The transpose of the last two axes."""
    rank = len(shape_of(x))
    return permute(x, order=(*range(rank - 2), rank - 1, rank - 2))


def mH(x: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    return mT(conjugate(x) if dtype_of(x).kind == "c" else x)


def mm(x: Array, y: Array) -> Array:
    """Matrix product over equal batch axes."""
    rank = len(shape_of(x)) - 2
    return contract(x, y, spec=matmul_spec(2, 2, rank, rank))


def constant_mask(x: Array, test: Any) -> Array:
    """A boolean (n, m) matrix on x's backend: test(row, column)."""
    n, m = shape_of(x)[-2:]
    rows = reshape(iota(n, x), shape=(n, 1))
    columns = reshape(iota(m, x), shape=(1, m))
    return test(rows, columns)


def lower_half(x: Array) -> Array:
    """Φ: the lower triangle with the diagonal halved."""
    below = constant_mask(x, lambda i, j: j < i)
    diagonal = constant_mask(x, lambda i, j: j == i)
    zero = full_like(x, 0, ())
    return add(where(below, x, zero), where(diagonal, multiply(x, 0.5), zero))


def keep_where(x: Array, test: Any) -> Array:
    """x where test(row, column) holds, zero elsewhere."""
    return where(constant_mask(x, test), x, full_like(x, 0, ()))


def diagonal_of(x: Array) -> Array:
    """The diagonal (…, min(n, m)) of (…, n, m)."""
    n, m = shape_of(x)[-2:]
    k = min(n, m)
    square = _corner(x, k, k)
    on_diagonal = keep_where(square, lambda i, j: i == j)
    return reduce_sum(on_diagonal, axes=(len(shape_of(x)) - 1,))


def _corner(x: Array, n: int, m: int) -> Array:
    shape = shape_of(x)
    if shape[-2:] == (n, m):
        return x
    return getitem(x, index=(*[(0, length, 1) for length in shape[:-2]], (0, n, 1), (0, m, 1)))


def scale_columns(x: Array, s: Array) -> Array:
    """x diag(s)."""
    return multiply(x, expand(s, (len(shape_of(s)) - 1,)))


def identity_like(x: Array, n: int) -> Array:
    """The (n, n) identity of x's dtype, on x's backend."""
    rows = reshape(iota(n, x), shape=(n, 1))
    columns = reshape(iota(n, x), shape=(1, n))
    return convert(equal(rows, columns), dtype=dtype_of(x))


def _float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.real(np.empty(0, _float_dtype(dtype))).dtype


def _same(x: Aval, **params: Any) -> Aval:
    return Aval(x.shape, _float_dtype(x.dtype))


# --- Cholesky ---------------------------------------------------------------------------------------------------


def _cholesky_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ keeps the lower triangle and halves the diagonal.

    As NumPy reads the lower triangle only, dA is that of the Hermitian matrix it stands for: A and Aᴴ averaged.
    Source: I. Murray (2016), arXiv:1602.07527, equation 8.
    """
    (a,), (da,) = primals, tangents
    factor = cholesky(a)
    da = multiply(add(da, mH(da)), 0.5)
    left = triangular_solve(factor, da, lower=True, adjoint=False, unit=False)
    inner = mH(triangular_solve(factor, mH(left), lower=True, adjoint=False, unit=False))
    return factor, mm(factor, lower_half(inner))


cholesky: Row = general(
    "cholesky",
    lambda xp, a: xp.linalg.cholesky(a),
    aval=_same,
    batch=leading_axes("cholesky"),
    jvp=_cholesky_jvp,
)


# --- triangular and general solves ------------------------------------------------------------------------------


def _triangular_solve_impl(xp: Any, a: Array, b: Array, *, lower: bool, adjoint: bool, unit: bool) -> Array:
    if xp is np:
        from scipy.linalg import solve_triangular
    else:
        from cupyx.scipy.linalg import solve_triangular
    trans = ("C" if a.dtype.kind == "c" else "T") if adjoint else "N"
    if a.ndim == 2:
        return solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit, check_finite=False)
    out = xp.empty(b.shape, xp.result_type(a, b))
    for place in np.ndindex(*a.shape[:-2]):
        out[place] = solve_triangular(
            a[place], b[place], lower=lower, trans=trans, unit_diagonal=unit, check_finite=False
        )
    return out


def _triangular_solve_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Array, Any]:
    """A x = b gives A dx = db - dA x, of dA the triangle that is read.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.2.
    """
    (a, b), (da, db) = primals, tangents
    x = triangular_solve(a, b, lower=lower, adjoint=adjoint, unit=unit)
    right = db
    if da is not ZERO:
        if unit:
            da = keep_where(da, (lambda i, j: j < i) if lower else (lambda i, j: j > i))
        else:
            da = keep_where(da, (lambda i, j: j <= i) if lower else (lambda i, j: j >= i))
        right = add_tangents(db, negative(mm(mH(da) if adjoint else da, x)))
    return x, triangular_solve(a, right, lower=lower, adjoint=adjoint, unit=unit)


def _triangular_solve_transpose(
    ct: Array, a: Array, b: Shaped, *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Any, Array]:
    return ZERO, triangular_solve(a, ct, lower=lower, adjoint=not adjoint, unit=unit)


triangular_solve: Row = general(
    "triangular_solve",
    _triangular_solve_impl,
    aval=lambda a, b, **params: Aval(b.shape, np.result_type(_float_dtype(a.dtype), b.dtype)),
    batch=leading_axes("triangular_solve"),
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
)
"""A⁻¹ B or A⁻ᴴ B for triangular A; B is (…, n, k)."""


def _solve_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """A dx = db - dA x. Source: Giles (2008), section 2.2.2."""
    (a, b), (da, db) = primals, tangents
    x = solve(a, b)
    right = db if da is ZERO else add_tangents(db, negative(mm(da, x)))
    return x, solve(a, right)


solve: Row = general(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    aval=lambda a, b: Aval(b.shape, np.result_type(_float_dtype(a.dtype), b.dtype)),
    batch=leading_axes("solve"),
    jvp=_solve_jvp,
    transpose=lambda ct, a, b: (ZERO, solve(mH(a), ct)),
)
"""A⁻¹ B; B is (…, n, k)."""


def _inv_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """dA⁻¹ = -A⁻¹ dA A⁻¹. Source: Giles (2008), section 2.2.3."""
    (a,), (da,) = primals, tangents
    out = inv(a)
    return out, negative(mm(mm(out, da), out))


inv: Row = general("inv", lambda xp, a: xp.linalg.inv(a), aval=_same, batch=leading_axes("inv"), jvp=_inv_jvp)


# --- determinants -----------------------------------------------------------------------------------------------


def _slogdet_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """d log|det A| = Re tr(A⁻¹ dA); the phase turns by i Im tr(A⁻¹ dA). Source: Giles (2008), section 2.2.4."""
    (a,), (da,) = primals, tangents
    sign, logdet = slogdet(a)
    rank = len(shape_of(a)) - 2
    inverse = inv(a)
    trace = contract(inverse, da, spec=_trace_spec(rank))
    if dtype_of(a).kind != "c":
        return (sign, logdet), (ZERO, trace)
    return (sign, logdet), (multiply(multiply(imag(trace), 1j), sign), real(trace))


def _trace_spec(rank: int) -> Any:
    batch = tuple(range(2, 2 + rank))
    return spec((*batch, 0, 1), (*batch, 1, 0), batch)


def _slogdet_aval(a: Aval) -> tuple[Aval, Aval]:
    return Aval(a.shape[:-2], _float_dtype(a.dtype)), Aval(a.shape[:-2], _real_of(a.dtype))


slogdet: Row = general(
    "slogdet",
    lambda xp, a: tuple(xp.linalg.slogdet(a)),
    aval=_slogdet_aval,
    batch=leading_axes("slogdet"),
    jvp=_slogdet_jvp,
    multiple=True,
)


def _det_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """d det A = tr(adj(A) dA), with the adjugate from the singular value decomposition, so that singular matrices
    have their derivative too. Source: G. W. Stewart (1998), "On the adjugate matrix", Linear Algebra Appl. 283."""
    (a,), (da,) = primals, tangents
    rank = len(shape_of(a)) - 2
    return det(a), contract(adjugate(a), da, spec=_trace_spec(rank))


def adjugate(a: Array) -> Array:
    """adj(A) = det(U) det(V) V adj(S) Uᴴ for A = U S Vᴴ; the cofactors of S are products of the other values."""
    from func.interpreters.primitives.reductions import reduce_prod

    n = shape_of(a)[-1]
    rank = len(shape_of(a)) - 2
    if n == 0:
        return a
    u, s, vh = svd(a, full_matrices=False)
    others = where(
        constant_mask(a, lambda i, j: i == j), full_like(s, 1, ()), expand(s, (rank,))
    )  # row i: s with entry i replaced by one
    cofactors = convert(reduce_prod(others, axes=(rank + 1,)), dtype=dtype_of(a))
    turn = multiply(_unit_det(u), _unit_det(vh))
    out = mm(scale_columns(mH(vh), cofactors), mH(u))
    return multiply(out, reshape(turn, shape=(*shape_of(turn), 1, 1)))


def _unit_det(q: Array) -> Array:
    sign, _ = slogdet(q)
    return sign


det: Row = general(
    "det",
    lambda xp, a: xp.linalg.det(a),
    aval=lambda a: Aval(a.shape[:-2], _float_dtype(a.dtype)),
    batch=leading_axes("det"),
    jvp=_det_jvp,
)


# --- spectral decompositions ------------------------------------------------------------------------------------


def safe_reciprocal(gap: Array, scale: Array) -> Array:
    """1 / gap, and zero where the gap is lost in rounding: the undetermined part is dropped."""
    dtype = dtype_of(gap)
    tiny = multiply(scale, float(np.finfo(dtype).eps) * 4)
    degenerate = less(multiply(gap, gap), multiply(tiny, tiny))
    degenerate = _either(degenerate, equal(gap, 0))
    one = full_like(gap, 1, ())
    return where(degenerate, full_like(gap, 0, ()), divide(one, where(degenerate, one, gap)))


def _either(x: Array, y: Array) -> Array:
    from func.interpreters.primitives.elementwise import logical_or

    return logical_or(x, y)


def _largest(values: Array) -> Array:
    from func.interpreters.primitives.elementwise import absolute
    from func.interpreters.primitives.reductions import reduce_max
    from func.interpreters.primitives.structural import stop_gradient

    size = shape_of(values)[-1]
    if size == 0:
        return full_like(values, 1, (*shape_of(values)[:-1], 1, 1))
    top = reduce_max(stop_gradient(absolute(values)), axes=(len(shape_of(values)) - 1,))
    return expand(top, (len(shape_of(top)), len(shape_of(top)) + 1))


def _eigh_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool) -> tuple[Any, Any]:
    """dw = diag(Vᴴ dA V), dV = V (F ∘ Vᴴ dA V) with F_ij = 1 / (w_j - w_i), zero for equal eigenvalues.

    Source: Giles (2008), section 3.1.
    """
    (a,), (da,) = primals, tangents
    w, v = eigh(a, lower=lower)
    rank = len(shape_of(w)) - 1
    da = multiply(add(da, mH(da)), 0.5)
    inner = mm(mm(mH(v), da), v)
    gap = subtract(expand(w, (rank,)), expand(w, (rank + 1,)))
    factor = safe_reciprocal(gap, _largest(w))
    dv = mm(v, multiply(factor, inner))
    return (w, v), (real_part(diagonal_of(inner)), dv)


def real_part(x: Array) -> Array:
    """The real part of complex arrays; real ones as they are."""
    return real(x) if dtype_of(x).kind == "c" else x


eigh: Row = general(
    "eigh",
    lambda xp, a, *, lower: tuple(xp.linalg.eigh(a, "L" if lower else "U")),
    aval=lambda a, *, lower: (Aval(a.shape[:-1], _real_of(a.dtype)), Aval(a.shape, _float_dtype(a.dtype))),
    batch=leading_axes("eigh"),
    jvp=_eigh_jvp,
    multiple=True,
)


def _svd_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, full_matrices: bool) -> tuple[Any, Any]:
    """With P = Uᴴ dA V: ds = Re diag P; the antihermitian parts of dU and dV from P and Pᴴ over s_j² - s_i².

    Sources: Giles (2008), section 3.2; J. Townsend (2016), "Differentiating the singular value decomposition".
    The part of dU (dV) outside the span of U (V) is added for thin factors; full_matrices has no derivative there.
    """
    (a,), (da,) = primals, tangents
    u, s, vh = svd(a, full_matrices=full_matrices)
    m, n = shape_of(a)[-2:]
    if full_matrices and m != n:
        raise NotDifferentiableError(
            "svd with full_matrices=True has no derivative for the extra columns of a rectangular matrix; "
            "write np.linalg.svd(a, full_matrices=False)"
        )
    rank = len(shape_of(s)) - 1
    v = mH(vh)
    inner = mm(mm(mH(u), da), v)
    ds = real_part(diagonal_of(inner))
    sigma_i, sigma_j = expand(s, (rank + 1,)), expand(s, (rank,))
    scale = _largest(s)
    minus = safe_reciprocal(subtract(sigma_j, sigma_i), scale)
    plus = safe_reciprocal(add(sigma_j, sigma_i), scale)
    off = constant_mask(inner, lambda i, j: i != j)
    zero = full_like(minus, 0, ())
    minus = where(off, minus, zero)
    plus_off = where(off, plus, zero)
    hermitian = multiply(add(inner, mH(inner)), 0.5)
    skew = multiply(subtract(inner, mH(inner)), 0.5)
    # P = h + k: (σ_j - σ_i) multiplies (ω_U + ω_V)/2 in h, (σ_j + σ_i) multiplies (ω_U - ω_V)/2 in k
    both = multiply(minus, hermitian)
    apart = multiply(plus_off, skew)
    omega_u, omega_v = add(both, apart), subtract(both, apart)
    if dtype_of(a).kind == "c":
        phase = multiply(multiply(where(off, zero, plus), 1.0), skew)
        omega_u = add(omega_u, phase)
        omega_v = subtract(omega_v, phase)
    du, dv = mm(u, omega_u), mm(v, omega_v)
    inverse = safe_reciprocal(s, reshape(scale, shape=(*shape_of(s)[:-1], 1)))
    if m > n:
        outside = subtract(da, mm(u, mm(mH(u), da)))
        du = add(du, scale_columns(mm(outside, v), inverse))
    if n > m:
        outside = subtract(mH(da), mm(v, mm(vh, mH(da))))
        dv = add(dv, scale_columns(mm(outside, u), inverse))
    return (u, s, vh), (du, ds, mH(dv))


def _svd_aval(a: Aval, *, full_matrices: bool) -> tuple[Aval, Aval, Aval]:
    *batch, m, n = a.shape
    k = min(m, n)
    dtype = _float_dtype(a.dtype)
    left, right = (m, n) if full_matrices else (k, k)
    return (
        Aval((*batch, m, left), dtype),
        Aval((*batch, k), _real_of(a.dtype)),
        Aval((*batch, right, n), dtype),
    )


svd: Row = general(
    "svd",
    lambda xp, a, *, full_matrices: tuple(xp.linalg.svd(a, full_matrices)),
    aval=_svd_aval,
    batch=leading_axes("svd"),
    jvp=_svd_jvp,
    multiple=True,
)


def _qr_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, mode: str) -> tuple[Any, Any]:
    """dR = (sym part of Qᴴ dA R⁻¹, made triangular) R, dQ = dA R⁻¹ - Q dR R⁻¹.

    Sources: S. Walter, L. Lehmann, R. Lamour (2012), "On evaluating higher-order derivatives of the QR
    decomposition", for square and tall matrices; wide ones by splitting A = Q [R₁ R₂] as in arXiv:2009.10071.
    """
    (a,), (da,) = primals, tangents
    q, r = qr(a, mode=mode)
    m, n = shape_of(a)[-2:]
    if mode == "complete" and m > n:
        raise NotDifferentiableError(
            "qr with mode='complete' has no derivative for the extra columns of Q; write np.linalg.qr(a)"
        )
    if m < n:
        square, d_square = _corner(a, m, m), _corner(da, m, m)
        (_, _), (dq, _) = _qr_tall(square, d_square, q, _corner(r, m, m))
        return (q, r), (dq, add(mm(mH(dq), a), mm(mH(q), da)))
    return _qr_tall(a, da, q, r)


def _qr_tall(a: Array, da: Array, q: Array, r: Array) -> tuple[Any, Any]:
    # B = dA R⁻¹ by solving Rᴴ Bᴴ = dAᴴ
    scaled = mH(triangular_solve(r, mH(da), lower=False, adjoint=True, unit=False))
    inner = mm(mH(q), scaled)
    below = keep_where(inner, lambda i, j: j < i)
    rotation = subtract(below, mH(below))
    if dtype_of(a).kind == "c":
        diagonal = keep_where(inner, lambda i, j: i == j)
        rotation = add(rotation, multiply(multiply(imag(diagonal), 1j), 1.0))
    triangular = subtract(inner, rotation)
    dq = add(subtract(scaled, mm(q, inner)), mm(q, rotation))
    return (q, r), (dq, mm(triangular, r))


def _qr_aval(a: Aval, *, mode: str) -> tuple[Aval, Aval]:
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    dtype = _float_dtype(a.dtype)
    return Aval((*batch, m, k), dtype), Aval((*batch, k, n), dtype)


qr: Row = general(
    "qr",
    lambda xp, a, *, mode: tuple(xp.linalg.qr(a, mode)),
    aval=_qr_aval,
    batch=leading_axes("qr"),
    jvp=_qr_jvp,
    multiple=True,
)
