"""Linear systems (dense, triangular, banded, factored, Toeplitz, circulant), inverses and least squares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func import numpy as fnp
from func.interpreters.core import Array, dtype_of, known_value, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.linalg import banded, factorizations, singular, solving
from func.interpreters.primitives.linalg.matrices import mT
from func.interpreters.primitives.structural.shapes import full_like
from func.linalg import checks
from func.linalg.factorizations import rows_exchanged
from func.linalg.special_matrices import toeplitz

_STRUCTURES = {
    *(None, "diagonal", "tridiagonal", "banded", "general", "gen"),
    *(*factorizations.TRIANGLES, *factorizations.SYMMETRIC, *factorizations.HERMITIAN),
}
_FLIPPED = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}


def solve(
    a: Array,
    b: Array,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """The solution x of a x = b for a (…, n, n) and b (n,) or (…, n, k), by the solver for the structure of a.

    For "sym", "her" and "pos" it reads one triangle: the upper one, or with `lower` the lower one. The derivative is
    with respect to it: the gradient is triangular.

    Raises: ValueError for shapes that do not fit and unknown structures, LinAlgError for singular a,
    NotImplementedError for `transposed` with complex a.

    >>> import numpy as np, func
    >>> a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    >>> x = func.linalg.solve(a, b, assume_a="pos")
    >>> g = func.grad(lambda b: func.linalg.solve(a, b, assume_a="pos")[0])(b)
    >>> bool(np.allclose(g, np.linalg.inv(a)[0]))
    True
    """
    if assume_a not in _STRUCTURES:
        raise ValueError(f"assume_a: {assume_a} is not a recognized matrix structure")
    a = checks.validated(a, "a", check_finite)
    b = checks.validated(b, "b", check_finite)
    a = checks.squares(fnp.atleast_2d(a), "a", False)
    if transposed and dtype_of(a).kind == "c":
        raise NotImplementedError("transposed: a^T x = b of a complex a cannot be solved; pass a.T instead")
    b, vector = checks.right_hand_side(a, b, False)
    assume = "her" if assume_a == "hermitian" else assume_a
    if math.prod(shape_of(a)) == 1:  # SciPy divides by the number, for any structure
        assume = None
    elif dtype_of(a).kind != "c" and assume == "her":
        assume = "sym"
    if transposed and assume not in (*factorizations.SYMMETRIC, *factorizations.HERMITIAN):
        a, assume = mT(a), _FLIPPED.get(assume or "", assume)
    a, b = checks.promoted(a, b)
    return checks.from_columns(factorizations.solve_assumed(a, b, assume=assume, lower=bool(lower)), vector)


_TRANS = {"N": 0, "T": 1, "C": 2, 0: 0, 1: 1, 2: 2}


def _trans(trans: Any) -> int:
    if trans not in _TRANS:
        raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    return _TRANS[trans]


def solve_triangular(
    a: Array,
    b: Array,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of a x = b (trans 0, "N"), aᵀ x = b (1, "T") or aᴴ x = b (2, "C") for a triangular a (…, n, n).

    It does not read the other triangle. Raises: ValueError for shapes that do not fit and unknown `trans`, LinAlgError
    for a zero on the diagonal.
    """
    kind = _trans(trans)
    a = checks.squares(a, "a", check_finite)
    b, vector = checks.right_hand_side(a, b, check_finite)
    a, b = checks.promoted(a, b)
    return checks.from_columns(_by_triangle(a, b, kind, bool(lower), bool(unit_diagonal)), vector)


def _by_triangle(a: Array, b: Array, kind: int, lower: bool, unit: bool) -> Array:
    if kind == 1 and dtype_of(a).kind == "c":
        a = ops.conjugate(a)
    return solving.triangular_solve(a, b, lower=lower, adjoint=kind != 0, unit=unit)


def cho_solve(c_and_lower: Any, b: Array, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b from (c, lower), the result of cho_factor(a).

    >>> import numpy as np, func
    >>> def by_factor(a, b):
    ...     return func.linalg.cho_solve(func.linalg.cho_factor(a), b)
    >>> by_factor(np.array([[4.0, 2.0], [2.0, 2.0]]), np.array([2.0, 0.0]))
    array([ 1., -1.])
    """
    c, lower = c_and_lower
    if np.ndim(lower):  # SciPy's cho_factor returns one for each matrix of a batch
        if not (np.all(lower) or not np.any(lower)):
            raise ValueError("lower must be the same for all matrices of a batch")
        lower = bool(np.all(lower)) and np.size(lower) > 0
    c = checks.squares(c, "c", check_finite)
    b, vector = checks.right_hand_side(c, b, check_finite)
    c, b = checks.promoted(c, b)
    intermediate = solving.triangular_solve(c, b, lower=bool(lower), adjoint=not lower, unit=False)
    return checks.from_columns(
        solving.triangular_solve(c, intermediate, lower=bool(lower), adjoint=bool(lower), unit=False), vector
    )


def lu_solve(lu_and_piv: Any, b: Array, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b (trans 0), aᵀ x = b (1) or aᴴ x = b (2) from (lu, piv), the result of lu_factor(a)."""
    kind = _trans(trans)
    packed, pivots = lu_and_piv
    packed = checks.squares(packed, "lu", check_finite)
    b, vector = checks.right_hand_side(packed, b, check_finite)
    packed, b = checks.promoted(packed, b)
    if kind == 0:
        intermediate = _by_triangle(packed, rows_exchanged(b, pivots), 0, True, True)
        return checks.from_columns(_by_triangle(packed, intermediate, 0, False, False), vector)
    intermediate = _by_triangle(packed, b, kind, False, False)
    return checks.from_columns(
        rows_exchanged(_by_triangle(packed, intermediate, kind, True, True), pivots, back=True), vector
    )


def solve_banded(
    l_and_u: tuple[int, int],
    ab: Array,
    b: Array,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of a x = b for a banded a with l lower and u upper diagonals ab (…, l + u + 1, n).

    ab[u + i - j, j] = a[i, j]. Raises: ValueError for shapes that do not fit, LinAlgError for singular matrices.
    """
    lower, upper = int(l_and_u[0]), int(l_and_u[1])
    ab = checks.matrices(ab, "ab", check_finite)
    if lower + upper + 1 != shape_of(ab)[-2]:
        raise ValueError(
            f"l_and_u: ab must have l + u + 1 = {lower + upper + 1} rows, got {shape_of(ab)[-2]} (shape {shape_of(ab)})"
        )
    b, vector = _band_columns(ab, b, check_finite)
    ab, b = checks.promoted(ab, b)
    return checks.from_columns(banded.solve_banded(ab, b, lower=lower, upper=upper), vector)


def _band_columns(ab: Array, b: Any, check_finite: bool) -> tuple[Array, bool]:
    columns, vector = checks.as_columns(checks.vectors(b, "b", check_finite))
    if shape_of(columns)[-2] != shape_of(ab)[-1]:
        raise ValueError(f"ab of shape {shape_of(ab)} and b of shape {shape_of(b)} do not match")
    return columns, vector


def solveh_banded(
    ab: Array,
    b: Array,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of a x = b for a Hermitian positive-definite banded a with diagonals ab (…, u + 1, n).

    Upper form ab[u + i - j, j] = a[i, j] (i <= j), lower form ab[i - j, j] = a[i, j] (i >= j).
    """
    ab = checks.matrices(ab, "ab", check_finite)
    b, vector = _band_columns(ab, b, check_finite)
    ab, b = checks.promoted(ab, b)
    return checks.from_columns(banded.solveh_banded(ab, b, lower=bool(lower)), vector)


def _column_and_row(c_or_cr: Any) -> tuple[Array, Array | None]:
    """The first column and the first row (or None) of a Toeplitz matrix."""
    return c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)


def solve_toeplitz(c_or_cr: Any, b: Array, check_finite: bool = True) -> Array:
    """The solution x of T x = b for the Toeplitz matrix T with first column c (and first row r), by elimination."""
    c, r = _column_and_row(c_or_cr)
    c = checks.vectors(c, "c", check_finite)
    matrix = checks.in_double(toeplitz(c, None if r is None else checks.vectors(r, "r", check_finite)))
    matrix = checks.squares(matrix, "c and r", False)
    b, vector = checks.right_hand_side(matrix, b, check_finite)
    matrix, b = checks.promoted(matrix, b)
    return checks.from_columns(factorizations.solve_assumed(matrix, b, assume="gen", lower=False), vector)


def matmul_toeplitz(c_or_cr: Any, x: Array, check_finite: bool = False, workers: int | None = None) -> Array:
    """The product T x with the Toeplitz matrix T with first column c (and first row r)."""
    c, r = _column_and_row(c_or_cr)
    matrix = toeplitz(checks.vectors(c, "c", check_finite), None if r is None else checks.vectors(r, "r", check_finite))
    matrix = checks.in_double(matrix)
    columns, vector = checks.as_columns(checks.vectors(x, "x", check_finite))
    if shape_of(columns)[-2] != shape_of(matrix)[-1]:
        raise ValueError(f"x of shape {shape_of(x)} does not have {shape_of(matrix)[-1]} rows")
    return checks.from_columns(fnp.matmul(*checks.promoted(matrix, columns)), vector)


def solve_circulant(
    c: Array,
    b: Array,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """The solution x of C x = b for the circulant matrices C with first columns c (…, n), by Fourier transforms.

    `caxis`, `baxis` and `outaxis` are the axes of c, b and x with n elements; the others are broadcast. Singular
    matrices, with an eigenvalue of at most `tol`, raise LinAlgError, or give NaN in compiled code. With
    singular="lstsq" they give the least-squares solution.
    """
    if singular not in ("raise", "lstsq"):
        raise ValueError(f"singular must be 'raise' or 'lstsq', got {singular!r}")
    c, b = [checks.vectors(x, name, False) for x, name in ((c, "c"), (b, "b"))]
    if math.prod(shape_of(b)) == 0 and shape_of(c)[caxis] == shape_of(b)[baxis]:
        return fnp.zeros_like(b, dtype=np.result_type(dtype_of(c), dtype_of(b)))
    c, b = fnp.moveaxis(c, caxis, -1), fnp.moveaxis(b, baxis, -1)
    n = shape_of(c)[-1]
    if shape_of(b)[-1] != n:
        raise ValueError(f"b has length {shape_of(b)[-1]} along baxis, where the matrix of c has {n} rows")
    is_real = dtype_of(c).kind != "c" and dtype_of(b).kind != "c"
    scales, sides = fnp.fft.fft(c), fnp.fft.fft(b)  # the eigenvalues, and the coefficients by the eigenvectors
    sizes = fnp.abs(scales)
    if tol is None:
        tol = fnp.max(sizes, axis=-1, keepdims=True) * (n * np.finfo(np.float64).eps)
    is_small = fnp.less_equal(sizes, tol)
    is_singular = fnp.any(is_small)
    if singular == "raise":
        known = known_value(is_singular)
        if known is not None and bool(np.any(known)):
            raise np.linalg.LinAlgError("near singular circulant matrix: write singular='lstsq' for least squares")
        if known is None:
            scales = fnp.add(scales, fnp.where(is_singular, np.nan, fnp.zeros_like(sizes, shape=())))
        sides = fnp.divide(sides, scales)
    else:
        sides = fnp.where(is_small, 0, fnp.divide(sides, fnp.where(is_small, 1, scales)))
    x = fnp.fft.ifft(sides)
    return fnp.moveaxis(fnp.real(x) if is_real else x, -1, outaxis)


def lstsq(
    a: Array,
    b: Array,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Array, Array, Any, Array | None]:
    """Least-squares solutions of a x = b: (x, sums of squared residuals, rank, singular values of a).

    Singular values up to cond (the dtype's epsilon) times the largest count as zero; the derivative is that at constant
    rank. As in SciPy the residuals are empty if m <= n or the rank is deficient, and with "gelsy", which returns None
    for the singular values. Under jit the rank is unknown: the residuals are NaN if it is deficient.
    """
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ValueError(f"lapack_driver: LAPACK driver {lapack_driver!r} is not found")
    a = checks.matrices(a, "a", check_finite)
    b, vector = checks.right_hand_side(a, b, check_finite)
    a, b = checks.promoted(a, b)
    m, n = shape_of(a)[-2:]
    limit = float(np.finfo(dtype_of(a)).eps) if cond is None else float(cond)
    x, residuals, s = singular.lstsq(a, b, limit=limit, cut=limit > 1e-8)
    is_nonzero = ops.greater(s, ops.multiply(fnp.max(s, axis=-1, keepdims=True, initial=0), limit))
    rank = fnp.count_nonzero(is_nonzero, axis=-1)
    is_full = fnp.all(ops.equal(rank, n))
    known = known_value(is_full)
    if lapack_driver == "gelsy" or m <= n or (known is not None and not np.all(known)):
        residuals = fnp.zeros_like(x, shape=(*shape_of(s)[:-1], 0))
    elif known is None:
        residuals = fnp.where(is_full, residuals, np.nan)
    return (
        checks.from_columns(x, vector),
        checks.from_columns(residuals, vector) if shape_of(residuals)[-1] else residuals,
        rank,
        None if lapack_driver == "gelsy" else s,
    )


def inv(
    a: Array,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """The inverse of a (…, n, n); assume_a and lower have the same meaning as in solve.

    Raises: ValueError for shapes, LinAlgError for singular matrices.
    """
    a = checks.squares(a, "a", check_finite)
    if assume_a in (None, "general", "gen"):
        return solving.inv(a)
    n = shape_of(a)[-1]
    return solve(a, full_like(a, 1, ()) * fnp.eye(n, dtype=dtype_of(a)), lower, assume_a=assume_a, check_finite=False)


def det(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of a (…, n, n), with the derivative also for singular matrices."""
    return checks.in_double(fnp.linalg.det(checks.squares(a, "a", check_finite)))
