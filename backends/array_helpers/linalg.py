"""Linear algebra that generated source calls by name: solves and factorizations of stacks of matrices."""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of


def float_dtype(dtype: Any) -> Any:
    """The dtype that linear algebra computes in."""
    return dtype if dtype.kind in "fc" else numpy.dtype(numpy.float64)


def real_dtype(dtype: Any) -> Any:
    """The dtype of moduli."""
    return numpy.empty(0, float_dtype(dtype)).real.dtype


def complex_dtype(dtype: Any) -> Any:
    """The dtype of eigenvalues of a general matrix."""
    return numpy.result_type(float_dtype(dtype), numpy.complex64)


def has_routine(xp: Any, name: str) -> bool:
    """Whether a backend itself has a function of scipy.linalg, so that the host need not compute it."""
    module = scipy_of(xp, "linalg")
    lacks = getattr(module, "lacks", None)
    return getattr(module, name, None) is not None if lacks is None else not lacks(name)


def as_dtype(xp: Any, value: Any, dtype: Any) -> Any:
    """An array of the backend in a dtype, copied only where it has to be."""
    array = xp.asarray(value)
    return array if array.dtype == dtype else array.astype(dtype)


def over_stack(xp: Any, call: Any, arrays: Any, outs: Any, cores: Any) -> tuple[Any, ...]:
    """call(*matrices) for every index of equal leading axes.

    `outs` are the shapes and dtypes of the results, `cores` the ranks of one call's arguments.
    """
    batch = arrays[0].shape[: arrays[0].ndim - cores[0]]
    if not batch:
        return tuple([as_dtype(xp, value, dtype) for value, (_, dtype) in zip(call(*arrays), outs, strict=True)])
    results = tuple([xp.empty(shape, dtype) for shape, dtype in outs])
    for index in numpy.ndindex(*batch):
        for result, value in zip(results, call(*[array[index] for array in arrays]), strict=True):
            result[index] = value
    return results


def cholesky(xp: Any, a: Any, *, upper: bool = False) -> Any:
    """The lower factor of Hermitian matrices, or the upper one."""
    if not upper:
        return xp.linalg.cholesky(a)
    if xp is numpy:
        return numpy.linalg.cholesky(a, upper=True)
    return xp.conjugate(xp.swapaxes(xp.linalg.cholesky(xp.conjugate(xp.swapaxes(a, -1, -2))), -1, -2))


def exchanged_order(xp: Any, pivots: Any, m: int) -> Any:
    """The order of rows after LAPACK's exchanges."""
    order = list(range(m))
    for i, j in enumerate(pivots.tolist()):
        if not 0 <= j < m:
            raise IndexError(f"the pivot {j} is not a row of a matrix with {m} rows")
        order[i], order[j] = order[j], order[i]
    return xp.asarray(numpy.asarray(order, numpy.int64))


def lu(xp: Any, a: Any) -> tuple[Any, ...]:
    """L and U in one matrix, LAPACK's row exchanges, and the order of rows after them."""
    *batch, m, n = a.shape
    factor = scipy_of(xp, "linalg").lu_factor

    def call(matrix: Any) -> Any:
        if 0 in matrix.shape:
            return xp.array(matrix), xp.zeros(0, numpy.int32), xp.arange(m)
        packed, pivots = factor(matrix, check_finite=False)
        return packed, pivots, exchanged_order(xp, pivots, m)

    outs = (
        (a.shape, float_dtype(a.dtype)),
        ((*batch, min(m, n)), numpy.dtype(numpy.int32)),
        ((*batch, m), numpy.dtype(numpy.int64)),
    )
    return over_stack(xp, call, (a,), outs, (2,))


def pivot_order(xp: Any, pivots: Any) -> Any:
    """The order of the rows of square matrices after LAPACK's exchanges."""
    n = pivots.shape[-1]

    def call(exchanges: Any) -> Any:
        return (exchanged_order(xp, exchanges, n),)

    return over_stack(xp, call, (pivots,), ((pivots.shape, numpy.dtype(numpy.int64)),), (1,))[0]


def qr_order(xp: Any, a: Any) -> Any:
    """The order of each matrix's columns after the sort of a pivoted QR."""
    factor = scipy_of(xp, "linalg").qr

    def call(matrix: Any) -> Any:
        return (factor(matrix, mode="r", pivoting=True, check_finite=False)[1],)

    out = ((*a.shape[:-2], a.shape[-1]), numpy.dtype(numpy.int64))
    return over_stack(xp, call, (a,), (out,), (2,))[0]


def triangular_solve(xp: Any, a: Any, b: Any, *, lower: bool, adjoint: bool, unit: bool) -> Any:
    """The solution of triangular systems, or of those of the adjoint matrices."""
    dtype = xp.result_type(a, b)
    a, b = as_dtype(xp, a, dtype), as_dtype(xp, b, dtype)  # CuPy would convert b to the dtype of a
    if b.size == 0:
        return xp.empty(b.shape, dtype)
    if xp is not numpy:
        return one_by_one(xp, a, b, device_triangular_solver(xp, lower, adjoint, unit))
    if a.ndim > 2 and a.shape[-1] <= 16 and a.size > 4 * a.shape[-1] ** 2:
        return solve_masked(a, b, lower, adjoint, unit)
    return one_by_one(numpy, a, b, host_triangular_solver(dtype, lower, adjoint, unit))


def one_by_one(xp: Any, a: Any, b: Any, solve_one: Any) -> Any:
    """Solve every system of a stack in turn."""
    if a.ndim == 2:
        return solve_one(a, b)
    out = xp.empty(b.shape, xp.result_type(a, b))
    for place in numpy.ndindex(*a.shape[:-2]):
        out[place] = solve_one(a[place], b[place])
    return out


def device_triangular_solver(xp: Any, lower: bool, adjoint: bool, unit: bool) -> Any:
    """One triangular solve by the routine of a device."""
    solve_triangular = scipy_of(xp, "linalg").solve_triangular

    def solve_one(a: Any, b: Any) -> Any:
        trans = ("C" if a.dtype.kind == "c" else "T") if adjoint else "N"
        return solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit, check_finite=False)

    return solve_one


def host_triangular_solver(dtype: Any, lower: bool, adjoint: bool, unit: bool) -> Any:
    """The solution by LAPACK's trtrs, which reads memory by columns: an array of rows is passed as its transpose."""
    from scipy.linalg import lapack

    trtrs = getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + "trtrs")

    def solve_one(a: Any, b: Any) -> Any:
        if a.flags.f_contiguous or (adjoint and dtype.kind == "c"):
            x, info = trtrs(a, b, lower, 2 * adjoint, unit)
        else:
            x, info = trtrs(a.T, b, not lower, 1 - adjoint, unit)
        if info > 0:
            raise numpy.linalg.LinAlgError(f"singular matrix: the triangular factor is zero at diagonal {info - 1}")
        return x

    return solve_one


def solve_masked(a: Any, b: Any, lower: bool, adjoint: bool, unit: bool) -> Any:
    """The solution of many small systems by one call of the general solver."""
    triangle = numpy.tril(a, -unit) if lower else numpy.triu(a, unit)
    if unit:
        triangle += numpy.eye(a.shape[-1], dtype=a.dtype)
    return numpy.linalg.solve(numpy.conjugate(numpy.swapaxes(triangle, -1, -2)) if adjoint else triangle, b)


def inv(xp: Any, a: Any, *, strict: bool = True) -> Any:
    """Inverses. A singular matrix raises, or becomes NaN where `strict` is off."""
    if strict or xp is not numpy:
        return xp.linalg.inv(a)
    try:
        return numpy.linalg.inv(a)
    except numpy.linalg.LinAlgError:
        flat = a.reshape(-1, *a.shape[-2:])
        return numpy.stack([inverse_or_nan(matrix) for matrix in flat]).reshape(a.shape)


def inverse_or_nan(a: Any) -> Any:
    """The inverse of one matrix, NaN where it is singular."""
    try:
        return numpy.linalg.inv(a)
    except numpy.linalg.LinAlgError:
        return numpy.full_like(a, numpy.nan)


def solve_assumed(xp: Any, a: Any, b: Any, *, assume: Any, lower: bool) -> Any:
    """The solution of systems whose matrices have a structure (None: SciPy detects it)."""
    dtype = numpy.result_type(a.dtype, b.dtype)
    if b.size == 0:
        return xp.empty(b.shape, dtype)
    if not has_routine(xp, "solve"):
        if assume in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite"):
            a = whole_matrix(xp, a, lower, assume not in ("sym", "symmetric"))
        elif assume in ("lower triangular", "upper triangular"):
            a = xp.tril(a) if assume == "lower triangular" else xp.triu(a)
        return xp.linalg.solve(a, b)
    solve = scipy_of(xp, "linalg").solve
    options = {} if assume is None else {"assume_a": assume}

    def call(matrix: Any, right: Any) -> Any:
        return (solve(matrix, right, lower=lower, check_finite=False, **options),)

    if a.shape[-1] == 1 and assume in ("her", "hermitian", "pos", "positive definite"):
        a = a.real  # for a stack LAPACK divides by it, for a single number SciPy by the whole
    return over_stack(xp, call, (a, b), ((b.shape, dtype),), (2, 2))[0]


def whole_matrix(xp: Any, a: Any, lower: bool, hermitian: bool) -> Any:
    """The symmetric or Hermitian matrix with one triangle of a."""
    strict = xp.tril(a, -1) if lower else xp.triu(a, 1)
    mirror = xp.swapaxes(strict, -1, -2)
    diagonal = (a.real if hermitian else a) * xp.eye(a.shape[-1], dtype=a.dtype)
    return strict + (xp.conjugate(mirror) if hermitian else mirror) + diagonal


def solve_banded(xp: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    """The solution of systems of banded matrices, given by their diagonals."""
    dtype = numpy.result_type(float_dtype(ab.dtype), b.dtype)
    if b.size == 0:
        return xp.empty(b.shape, dtype)
    solver = scipy_of(xp, "linalg").solve_banded

    def call(diagonals: Any, right: Any) -> Any:
        return (solver((lower, upper), diagonals, right, check_finite=False),)

    return over_stack(xp, call, (ab, b), ((b.shape, dtype),), (2, 2))[0]


def solveh_banded(xp: Any, ab: Any, b: Any, *, lower: bool) -> Any:
    """The solution of systems of Hermitian positive-definite banded matrices."""
    dtype = numpy.result_type(float_dtype(ab.dtype), b.dtype)
    if b.size == 0:
        return xp.empty(b.shape, dtype)
    solver = scipy_of(xp, "linalg").solveh_banded

    def call(diagonals: Any, right: Any) -> Any:
        return (solver(diagonals, right, lower=lower, check_finite=False),)

    return over_stack(xp, call, (ab, b), ((b.shape, dtype),), (2, 2))[0]


def lstsq(xp: Any, a: Any, b: Any, *, limit: float, cut: bool) -> tuple[Any, ...]:
    """x, the sums of squared residuals, and the singular values, of every matrix in turn."""
    batch = a.shape[:-2]
    (m, n), k = a.shape[-2:], b.shape[-1]
    dtype = numpy.result_type(float_dtype(a.dtype), b.dtype)
    x = xp.zeros((*batch, n, k), dtype)
    residuals = xp.zeros((*batch, k), real_dtype(dtype))
    s = xp.zeros((*batch, min(m, n)), real_dtype(dtype))
    for place in numpy.ndindex(*batch):
        x[place], squares, _, s[place] = xp.linalg.lstsq(a[place], b[place], limit)
        if squares.size:
            residuals[place] = squares
        elif k:
            residuals[place] = xp.sum(xp.abs(b[place] - a[place] @ x[place]) ** 2, 0)
    return x, residuals, s


def adjugate(xp: Any, a: Any) -> Any:
    """det(A) A⁻¹ where that is safe for all matrices, otherwise from singular values."""
    if xp is not numpy:
        return adjugate_by_svd(xp, a)
    with numpy.errstate(all="ignore"):
        inverse = inv(numpy, a, strict=False)
        condition = numpy.abs(a).sum(-1).max(-1) * numpy.abs(inverse).sum(-1).max(-1)
        if numpy.all(condition < 1e7):
            return numpy.linalg.det(a)[..., None, None] * inverse
        return adjugate_by_svd(numpy, a)


def adjugate_by_svd(xp: Any, a: Any) -> Any:
    """adj(A) = det(U) det(Vᴴ) V adj(S) Uᴴ for A = U S Vᴴ; the cofactors of S are products of the other values.

    Source: G. W. Stewart (1998), "On the adjugate matrix", Linear Algebra and its Applications 283.
    """
    u, s, vh = xp.linalg.svd(a)
    n = a.shape[-1]
    others = xp.where(xp.eye(n, dtype=bool), xp.ones((), s.dtype), s[..., None, :])
    turn = xp.linalg.det(u) * xp.linalg.det(vh)
    columns = xp.conjugate(xp.swapaxes(vh, -1, -2)) * xp.prod(others, -1)[..., None, :]
    return turn[..., None, None] * xp.matmul(columns, xp.conjugate(xp.swapaxes(u, -1, -2)))
