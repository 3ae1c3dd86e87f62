"""Matrix factorizations: Cholesky, LU, QR, Schur, polar, singular values; pseudo-inverses and subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from func import numpy as fnp
from func.backends.array_helpers.linalg import real_dtype
from func.interpreters.core import Array, dtype_of, is_plain_array, operand, shape_of
from func.interpreters.primitives.elementwise.conventions import revalued
from func.interpreters.primitives.linalg import factorizations, singular, solving
from func.interpreters.primitives.linalg import qr as orthogonal
from func.interpreters.primitives.linalg import schur as schur_primitives
from func.interpreters.primitives.linalg.matrices import mH
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import argsort
from func.linalg.checks import matrices, promoted, squares, untraced_call


def cholesky(a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """U with Uᴴ U = a, or with `lower` L with L Lᴴ = a, for a Hermitian positive-definite a (…, n, n).

    It reads one triangle, and the derivative is with respect to it: the gradient is triangular.

    >>> import numpy as np, func
    >>> func.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 1.],
           [0., 1.]])
    """
    return solving.cholesky(squares(fnp.atleast_2d(a), "a", check_finite), upper=not lower)


def cho_factor(
    a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """(c, lower) for cho_solve: a Cholesky factor. The other triangle is zero; SciPy leaves the input there."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def lu_factor(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """(lu, piv) for lu_solve: L and U of a (…, m, n) packed in one matrix, and the row interchanges."""
    packed, pivots, _ = factorizations.lu(matrices(a, "a", check_finite))
    return packed, pivots


def lu(
    a: Array,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Array, ...]:
    """(P, L, U) with a = P L U for a (…, m, n), or with `permute_l` (P L, U); P as indices with `p_indices`.

    The permutation has no derivative; that of L and U is the one at constant pivots.

    >>> import numpy as np, func
    >>> def log_det(a):
    ...     return np.sum(np.log(np.abs(np.diagonal(func.linalg.lu(a)[2]))))
    >>> func.grad(log_det)(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    a = matrices(a, "a", check_finite)
    packed, _, order = factorizations.lu(a)
    lower, upper = factorizations.lower_of(packed), factorizations.upper_of(packed)
    places = argsort(order, axis=len(shape_of(order)) - 1, kind=None)
    if permute_l:
        k = shape_of(lower)[-1]
        return (factorizations.rows_in_order(lower, places) if k else lower), upper
    if p_indices:
        return places.astype(np.int64 if shape_of(a)[-2:] == (1, 1) else np.int32), lower, upper
    dtype = dtype_of(packed)
    return _permutation(places, dtype if shape_of(a)[-2:] == (1, 1) else real_dtype(dtype)), lower, upper


def _permutation(places: Array, dtype: np.dtype[Any]) -> Array:
    """The permutation matrix P with P[i, places[i]] = 1."""
    m = shape_of(places)[-1]
    columns = fnp.arange(m) if is_plain_array(places) else fnp.cumsum(fnp.ones_like(places), -1) - 1
    return (fnp.expand_dims(places, -1) == fnp.expand_dims(columns, -2)).astype(dtype)


def rows_exchanged(b: Array, pivots: Array, back: bool = False) -> Array:
    """The rows of b (…, n, k) after the row interchanges of lu_factor, or with `back` after their inverse."""
    order = factorizations.pivot_order(operand(pivots))
    if back:
        order = argsort(order, axis=len(shape_of(order)) - 1, kind=None)
    if shape_of(order)[:-1] != shape_of(b)[:-2]:
        order = fnp.broadcast_to(order, shape_of(b)[:-1])
    return factorizations.rows_in_order(b, order)


def qr(
    a: Array,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """(Q, R) of a (…, m, n) in the modes "full", "economic" and "r" ((R,), of a batch R); "raw" has no derivative.

    `pivoting` permutes the columns first; the permutation, which has no derivative, is the last result. The derivative
    requires the first min(m, n) (permuted) columns to be linearly independent.
    """
    if mode not in ("full", "qr", "r", "economic", "raw"):
        raise ValueError(f"mode should be one of ['full', 'r', 'economic', 'raw'], got {mode!r}")
    if mode == "raw":
        return untraced_call("qr", "mode='raw'", (a,), mode="raw", pivoting=pivoting, check_finite=check_finite)
    a = matrices(a, "a", check_finite)
    m, n = shape_of(a)[-2:]
    order = None
    if pivoting:
        order = factorizations.qr_order(a)
        a = fnp.take_along_axis(a, fnp.expand_dims(order, -2), -1)
    q, r = orthogonal.qr(a, mode="complete" if mode != "economic" and m > n else "reduced")
    if mode == "r" and order is None and len(shape_of(a)) > 2:
        return r  # SciPy returns batches of one result without the tuple
    factors = (r,) if mode == "r" else (q, r)
    return factors if order is None else (*factors, order.astype(np.int32))


def rq(
    a: Array, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", check_finite: bool = True
) -> Any:
    """(R, Q) with a = R Q, R upper triangular, in the modes "full", "economic" and "r".

    It is a QR of aᴴ with rows and columns reversed, which makes the same Householder reflections as LAPACK's RQ.
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"mode should be one of ['full', 'r', 'economic'], got {mode!r}")
    a = matrices(a, "a", check_finite)
    m, n = shape_of(a)[-2:]
    q, r = orthogonal.qr(mH(fnp.flip(a, (-2, -1))), mode="complete" if mode != "economic" and n > m else "reduced")
    upper = fnp.flip(mH(r), (-2, -1))
    return upper if mode == "r" else (upper, fnp.flip(mH(q), (-2, -1)))


def schur(
    a: Array,
    output: str = "real",
    lwork: int | None = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> Any:
    """(T, Z) with a = Z T Zᴴ for a (…, n, n), Z unitary, T upper triangular.

    For real matrices output="real" has a diagonal block for every pair of complex eigenvalues, and no derivative if
    there is such a block. With output="complex" there is a derivative if the eigenvalues are distinct. The derivative
    keeps the undetermined phases of the columns of Z constant.
    """
    if output not in ("real", "complex", "r", "c"):
        raise ValueError("output must be 'real', or 'complex'")
    if sort is not None:
        return untraced_call("schur", "sort=", (a,), output=output, sort=sort, check_finite=check_finite)
    a = squares(a, "a", check_finite)
    kind = "complex" if output in ("complex", "c") or dtype_of(a).kind == "c" else "real"
    return tuple(schur_primitives.schur(a, output=kind))


def polar(a: Array, side: str = "right") -> tuple[Array, Array]:
    """(u, p) with a = u p ("right") or a = p u ("left"), u with orthonormal rows or columns, p semidefinite.

    The derivative of p is that of uᴴ a or a uᴴ, which equal singular values leave determined.
    """
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    a = matrices(a, "a")
    w, s, vh = singular.singular_vectors(a)
    u, fixed = w @ vh, [stop_gradient(x) for x in (w, fnp.expand_dims(s, -2), vh)]
    if side == "right":
        return u, revalued((mH(fixed[2]) * fixed[1]) @ fixed[2], mH(u) @ a)
    return u, revalued((fixed[0] * fixed[1]) @ mH(fixed[0]), a @ mH(u))


def svd(
    a: Array,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(U, s, Vh) with a = U diag(s) Vh, or s alone. The derivative drops its undetermined parts. Both drivers run
    "gesdd", which chooses the signs of the singular vectors.
    """
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f'lapack_driver must be "gesdd" or "gesvd", not "{lapack_driver}"')
    a = matrices(a, "a", check_finite)
    if not compute_uv:
        return singular.svdvals(a)
    return tuple(singular.svd(a, full_matrices=bool(full_matrices)))


def svdvals(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The singular values (…, min(m, n)) in descending order."""
    return singular.svdvals(matrices(a, "a", check_finite))


def _tolerance(a: Array, s: Array, atol: Any, rtol: Any) -> Any:
    """The largest singular value, and the fraction of it below which others count as zero."""
    atol = 0.0 if atol is None else atol
    rtol = max(shape_of(a)[-2:]) * float(np.finfo(dtype_of(a)).eps) if rtol is None else rtol
    if atol < 0.0 or rtol < 0.0:
        raise ValueError("atol and rtol values must be positive.")
    largest = fnp.max(s, axis=-1, initial=0)
    if atol == 0.0:
        return largest, rtol
    return largest, rtol + atol / fnp.where(largest == 0, 1.0, largest)


def _pinv(a: Array, atol: Any, rtol: Any, hermitian: bool, return_rank: bool) -> Any:
    """The pseudo-inverse, with the rank if `return_rank`."""
    s = fnp.abs(fnp.linalg.eigvalsh(a)) if hermitian else singular.svdvals(a)
    largest, limit = _tolerance(a, s, atol, rtol)
    inverse = fnp.linalg.pinv(a, rtol=limit, hermitian=hermitian)
    if not return_rank:
        return inverse
    return inverse, fnp.count_nonzero(s > fnp.expand_dims(largest * limit, -1), axis=-1)


def pinv(
    a: Array,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudo-inverse (…, n, m); singular values up to atol + rtol times the largest count as zero.

    The derivative is that at constant rank.
    """
    return _pinv(matrices(a, "a", check_finite), atol, rtol, False, return_rank)


def pinvh(
    a: Array,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudo-inverse of a Hermitian matrix, from one triangle."""
    a = squares(a, "a", check_finite)
    return _pinv(a if lower else mH(a), atol, rtol, True, return_rank)


def _rank(s: Array, shape: tuple[int, ...], rcond: float | None) -> int:
    """The rank of a matrix of this shape with singular values s."""
    if rcond is None:
        rcond = float(np.finfo(dtype_of(s)).eps) * max(shape)
    return int(fnp.count_nonzero(s > fnp.max(s, initial=0) * rcond))


def null_space(
    A: Array,
    rcond: float | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array:
    """An orthonormal basis (n, n - rank) of the null space of A (m, n), with the derivative at constant rank."""
    A = _single_matrix(A, check_finite)
    _, s, vh = singular.singular_vectors(A, full_matrices=True)
    return mH(vh[_rank(s, shape_of(A), rcond) :, :])


def orth(A: Array, rcond: float | None = None) -> Array:
    """An orthonormal basis (m, rank) of the range of A (m, n), with the derivative at constant rank."""
    A = _single_matrix(A, True)
    u, s, _ = singular.singular_vectors(A)
    return u[:, : _rank(s, shape_of(A), rcond)]


def _single_matrix(A: Array, check_finite: bool) -> Array:
    A = matrices(A, "A", check_finite)
    if len(shape_of(A)) != 2:
        raise ValueError(f"A must be one matrix (m, n), as the rank sets the shape of the result; got {shape_of(A)}")
    return A


def orthogonal_procrustes(A: Array, B: Array, check_finite: bool = True) -> tuple[Array, Array]:
    """(R, scale): the unitary R that minimises ‖A R - B‖, and the sum of the singular values of Aᴴ B."""
    A, B = promoted(matrices(A, "A", check_finite), matrices(B, "B", check_finite))
    if shape_of(A) != shape_of(B):
        raise ValueError(f"the shapes of A and B differ ({shape_of(A)} vs {shape_of(B)})")
    u, s, vh = singular.singular_vectors(mH(mH(B) @ A))
    return u @ vh, fnp.sum(s, axis=-1)


def subspace_angles(A: Array, B: Array) -> Array:
    """The angles between the ranges of A (m, k) and B (m, l), in radians, the largest first.

    Source: A. Knyazev and M. Argentati (2002), SIAM J. Sci. Comput. 23, algorithm 3.1.
    """
    QA, QB = orth(A), orth(B)
    if shape_of(QA)[0] != shape_of(QB)[0]:
        raise ValueError(f"A and B must have the same number of rows, got {shape_of(QA)[0]} and {shape_of(QB)[0]}")
    overlap = mH(QA) @ QB
    sigma = singular.svdvals(overlap)
    residual = QB - QA @ overlap if shape_of(QA)[1] >= shape_of(QB)[1] else QA - QB @ mH(overlap)
    is_small = sigma**2 >= 0.5
    sines = fnp.clip(singular.svdvals(residual), -1.0, 1.0)
    angles = fnp.flip(fnp.arcsin(fnp.where(fnp.flip(is_small), sines[: shape_of(sigma)[0]], 0.0)))
    return fnp.flip(fnp.where(is_small, angles, fnp.arccos(fnp.where(is_small, 0.0, fnp.clip(sigma, -1.0, 1.0)))))
