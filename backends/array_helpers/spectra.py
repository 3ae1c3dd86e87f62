"""Eigenvalues and functions of matrices that generated source calls by name."""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.array_helpers.arrays import on_host, scipy_of
from func.backends.array_helpers.linalg import complex_dtype, float_dtype, has_routine, over_stack, real_dtype


def eig(xp: Any, a: Any) -> tuple[Any, Any]:
    """Eigenvalues and right eigenvectors, always complex."""
    w, v = xp.linalg.eig(a)
    dtype = complex_dtype(a.dtype)
    return w.astype(dtype), v.astype(dtype)


def eigvals(xp: Any, a: Any) -> Any:
    """Eigenvalues, always complex."""
    return xp.linalg.eigvals(a).astype(complex_dtype(a.dtype))


def match_values(xp: Any, x: Any, y: Any) -> Any:
    """The boolean permutation matrix from y to x: the same numbers in another order."""
    n = x.shape[-1]
    distance = xp.abs(x[..., :, None] - y[..., None, :])
    if n == 0 or bool(xp.all(xp.abs(x - y) <= 1e-7 * xp.max(xp.abs(x), -1)[..., None])):
        return xp.array(xp.broadcast_to(xp.eye(n, dtype=bool), distance.shape))
    return on_host(xp, "scipy.optimize.linear_sum_assignment", nearest_pairs, distance)


def nearest_pairs(xp: Any, distance: Any) -> Any:
    """The permutation matrices of least total distance."""
    from scipy.optimize import linear_sum_assignment

    choice = numpy.zeros(distance.shape, bool)
    for place in numpy.ndindex(*distance.shape[:-2]):
        choice[place][linear_sum_assignment(distance[place])] = True
    return choice


def eigh_by_driver(xp: Any, a: Any, *, lower: bool, driver: Any, subset: Any) -> tuple[Any, ...]:
    """Eigenvalues and eigenvectors of Hermitian matrices by one of LAPACK's drivers (None: SciPy's choice)."""
    outs = _of_subset(a.shape, real_dtype(a.dtype), float_dtype(a.dtype), subset)
    if a.size == 0:
        return tuple([xp.empty(shape, dtype) for shape, dtype in outs])
    if not has_routine(xp, "eigh"):
        return _columns(xp.linalg.eigh(a, "L" if lower else "U"), subset)
    eigh = scipy_of(xp, "linalg").eigh

    def call(matrix: Any) -> Any:
        def solve(**chosen: Any) -> Any:
            return eigh(matrix, lower=lower, driver=driver, check_finite=False, **chosen)

        return _searched(solve, subset, "subset_by_index", "subset_by_value")

    return over_stack(xp, _of_finite(xp, call, outs, a.ndim - 2), (a,), outs, (2,))


def _of_subset(shape: Any, values: Any, vectors: Any, subset: Any) -> Any:
    """Shapes and dtypes of eigenvalues and vectors; `subset` is that of the primitives."""
    count = shape[-1] if subset is None else subset[1] - subset[0]
    return ((*shape[:-2], count), values), ((*shape[:-1], count), vectors)


def _columns(results: Any, subset: Any) -> tuple[Any, ...]:
    """The eigenvalues and vectors of a subset, of all of them."""
    first, last = (None, None) if subset is None else subset[:2]
    return tuple([x[..., first:last] for x in results])


def _searched(solve: Any, subset: Any, by_index: str, by_value: str) -> Any:
    """The result of `solve` for a subset: LAPACK searches between the values, or the indices if that finds others."""
    if subset is None:
        return solve()
    first, last, low, high = subset
    if first == last:
        return _columns(solve(), subset)
    if low is not None:
        out = solve(**{by_value: (low, high)})
        if out[0].shape[-1] == last - first:
            return out
    return solve(**{by_index: (first, last - 1)})


def _of_finite(xp: Any, call: Any, outs: Any, batch: int) -> Any:
    """`call` for matrices of finite numbers, and NaN for others: with those LAPACK's iterations may never end."""

    def guarded(*arrays: Any) -> Any:
        if all([bool(xp.isfinite(array).all()) for array in arrays]):
            return call(*arrays)
        return [xp.full(shape[batch:], numpy.nan, dtype) for shape, dtype in outs]

    return guarded


def eigh_pencil(xp: Any, a: Any, b: Any, *, kind: int, lower: bool, driver: Any, subset: Any) -> tuple[Any, ...]:
    """Eigenvalues and vectors of A V = B V W (kind 1), A B V = V W (2), B A V = V W (3) for positive-definite B."""
    dtype = numpy.result_type(float_dtype(a.dtype), float_dtype(b.dtype))
    outs = _of_subset(a.shape, real_dtype(dtype), dtype, subset)
    if a.size == 0:
        return tuple([xp.empty(shape, dtype) for shape, dtype in outs])
    if not has_routine(xp, "eigh"):
        return _columns(reduced_pencil(xp, a, b, kind, lower), subset)
    eigh = scipy_of(xp, "linalg").eigh

    def call(first: Any, second: Any) -> Any:
        def solve(**chosen: Any) -> Any:
            return eigh(first, second, type=kind, lower=lower, driver=driver, check_finite=False, **chosen)

        return _searched(solve, subset, "subset_by_index", "subset_by_value")

    return over_stack(xp, _of_finite(xp, call, outs, a.ndim - 2), (a, b), outs, (2, 2))


def reduced_pencil(xp: Any, a: Any, b: Any, kind: int, lower: bool) -> tuple[Any, ...]:
    """By the Cholesky factor B = L Lᴴ, where a backend has eigh for one matrix only."""

    def adjoint(x: Any) -> Any:
        return xp.conjugate(xp.swapaxes(x, -1, -2))

    if not lower:
        a, b = adjoint(a), adjoint(b)
    factor = xp.linalg.cholesky(b)
    whole = xp.tril(a) + adjoint(xp.tril(a, -1))
    if kind == 1:
        half = xp.linalg.solve(factor, whole)
        w, v = xp.linalg.eigh(adjoint(xp.linalg.solve(factor, adjoint(half))))
    else:
        w, v = xp.linalg.eigh(adjoint(factor) @ whole @ factor)
    return w, factor @ v if kind == 3 else xp.linalg.solve(adjoint(factor), v)


def eigh_tridiagonal(xp: Any, d: Any, e: Any, *, driver: str, subset: Any) -> tuple[Any, ...]:
    """Eigenvalues and vectors of real symmetric tridiagonal matrices."""
    dtype = numpy.result_type(float_dtype(d.dtype), float_dtype(e.dtype))
    eigh = scipy_of(xp, "linalg").eigh_tridiagonal

    def call(diagonal: Any, off_diagonal: Any) -> Any:
        def solve(**chosen: Any) -> Any:
            (select, select_range), *_ = [*chosen.items(), ("a", None)]
            options = {"select": select, "select_range": select_range, "check_finite": False}
            return eigh(diagonal, off_diagonal, **options, lapack_driver=driver)

        return _searched(solve, subset, "i", "v")

    outs = _of_subset((*d.shape, d.shape[-1]), dtype, dtype, subset)
    return over_stack(xp, _of_finite(xp, call, outs, d.ndim - 1), (d, e), outs, (1, 1))


def eigvalsh_tridiagonal(xp: Any, d: Any, e: Any, *, driver: str) -> Any:
    """Eigenvalues of real symmetric tridiagonal matrices."""
    dtype = numpy.result_type(float_dtype(d.dtype), float_dtype(e.dtype))
    values = scipy_of(xp, "linalg").eigvalsh_tridiagonal

    def call(diagonal: Any, off_diagonal: Any) -> Any:
        return (values(diagonal, off_diagonal, check_finite=False, lapack_driver=driver),)

    outs = ((d.shape, dtype),)
    return over_stack(xp, _of_finite(xp, call, outs, d.ndim - 1), (d, e), outs, (1, 1))[0]


def schur(xp: Any, a: Any, *, output: str) -> tuple[Any, ...]:
    """T and Z with A = Z T Zᴴ."""
    dtype = float_dtype(a.dtype) if output == "real" else complex_dtype(a.dtype)
    if a.size == 0:
        return xp.empty(a.shape, dtype), xp.empty(a.shape, dtype)
    factor = scipy_of(xp, "linalg").schur

    def call(matrix: Any) -> Any:
        return factor(matrix, output=output, check_finite=False)

    return over_stack(xp, call, (a,), ((a.shape, dtype), (a.shape, dtype)), (2,))


def frechet(xp: Any, function: Any, dtype: Any, a: Any, e: Any) -> Any:
    """L(A, E) of a function of one matrix by the matrix of twice the size."""
    if a.size == 0:
        return xp.empty(a.shape, dtype)

    def call(matrix: Any, direction: Any) -> Any:
        return (doubled(xp, function, matrix, direction),)

    return over_stack(xp, call, (a, e), ((a.shape, dtype),), (2, 2))[0]


def doubled(xp: Any, function: Any, a: Any, e: Any) -> Any:
    """L(A, E) of one matrix, E scaled to A's size so that neither is lost in rounding.

    Source: R. Mathias (1996), SIAM J. Matrix Anal. Appl. 17, theorem 2.1.
    """
    size, length = xp.linalg.norm(a).item(), xp.linalg.norm(e).item()
    scale = size / length if size and length else 1.0
    n = a.shape[-1]
    dtype = numpy.result_type(a.dtype, e.dtype)
    both = xp.zeros((2 * n, 2 * n), dtype)
    both[:n, :n] = a
    both[n:, n:] = a
    both[:n, n:] = e * dtype.type(scale)
    return function(xp, both)[:n, n:] / scale


def of_matrices(xp: Any, function: Any, dtype: Any, a: Any) -> Any:
    """A function of one matrix, applied to every matrix of a stack."""
    if a.size == 0:
        return xp.empty(a.shape, dtype)

    def call(matrix: Any) -> Any:
        return (function(xp, matrix),)

    return over_stack(xp, call, (a,), ((a.shape, dtype),), (2,))[0]


def expm(xp: Any, a: Any) -> Any:
    """The exponential."""
    dtype = float_dtype(a.dtype)
    if xp is not numpy:
        return of_matrices(xp, exponential_of_matrix, dtype, a)
    return scipy_of(xp, "linalg").expm(a).astype(dtype, copy=False) if a.size else xp.empty(a.shape, dtype)


def exponential_of_matrix(xp: Any, a: Any) -> Any:
    """The exponential of one matrix: devices take no stacks."""
    return scipy_of(xp, "linalg").expm(a)


def expm_frechet(xp: Any, a: Any, e: Any) -> Any:
    """L(A, E) of the exponential: the scaling, Padé approximation and squaring of both at once.

    Source: A. Al-Mohy and N. Higham (2009), "Computing the Fréchet derivative of the matrix exponential, with an
    application to condition number estimation", SIAM J. Matrix Anal. Appl. 30, algorithm 6.4.
    """
    dtype = numpy.result_type(float_dtype(a.dtype), float_dtype(e.dtype))
    if a.size == 0 or not has_routine(xp, "expm_frechet"):
        return frechet(xp, expm, dtype, a, e)
    direction = scipy_of(xp, "linalg").expm_frechet

    def call(matrix: Any, tangent: Any) -> Any:
        return (direction(matrix, tangent, compute_expm=False, check_finite=False),)

    return over_stack(xp, call, (a, e), ((a.shape, dtype),), (2, 2))[0]


def log_of_matrix(xp: Any, a: Any) -> Any:
    """Single precision is computed in double: SciPy measures the error of every logarithm in double precision."""
    return scipy_of(xp, "linalg").logm(a.astype(numpy.result_type(a.dtype, numpy.float64), copy=False))


def logm(xp: Any, a: Any) -> Any:
    """The principal logarithm, always complex."""
    return of_matrices(xp, log_of_matrix, complex_dtype(a.dtype), a)


def logm_frechet(xp: Any, a: Any, e: Any) -> Any:
    """L(A, E) of the logarithm."""
    dtype = numpy.result_type(float_dtype(a.dtype), float_dtype(e.dtype))
    return frechet(xp, log_of_matrix, complex_dtype(dtype), a, e)


def power_of_matrix(exponent: float) -> Any:
    """The principal power of one matrix, as a function."""

    def power(xp: Any, a: Any) -> Any:
        return scipy_of(xp, "linalg").fractional_matrix_power(a, exponent)

    return power


def fractional_matrix_power(xp: Any, a: Any, *, exponent: float) -> Any:
    """The principal power, always complex."""
    return of_matrices(xp, power_of_matrix(exponent), complex_dtype(a.dtype), a)


def fractional_matrix_power_frechet(xp: Any, a: Any, e: Any, *, exponent: float) -> Any:
    """L(A, E) of the power."""
    dtype = numpy.result_type(float_dtype(a.dtype), float_dtype(e.dtype))
    return frechet(xp, power_of_matrix(exponent), complex_dtype(dtype), a, e)


def root_of_matrix(xp: Any, a: Any) -> Any:
    """The principal square root of one matrix."""
    return scipy_of(xp, "linalg").sqrtm(a)


def sqrtm(xp: Any, a: Any) -> Any:
    """The principal square root, always complex."""
    return of_matrices(xp, root_of_matrix, complex_dtype(a.dtype), a)


def sylvester(xp: Any, a: Any, b: Any, q: Any, *, drop: bool) -> Any:
    """X with A X + X B = Q; with `drop` the part that a singular equation leaves undetermined is zero."""
    dtype = numpy.result_type(float_dtype(a.dtype), b.dtype, q.dtype)
    if q.size == 0:
        return xp.empty(q.shape, dtype)
    has_solver = has_routine(xp, "solve_sylvester")

    def call(a: Any, b: Any, q: Any) -> Any:
        if drop and meets_zero(xp, a, b):
            return (sylvester_by_pseudo_inverse(xp, a, b, q),)
        if not has_solver:
            return (sylvester_by_kronecker(xp, a, b, q),)
        return (scipy_of(xp, "linalg").solve_sylvester(a, b, q),)

    return over_stack(xp, call, (a, b, q), ((q.shape, dtype),), (2, 2, 2))[0]


def kronecker_sum(xp: Any, a: Any, b: Any) -> Any:
    """The matrix of X ↦ A X + X B."""
    return xp.kron(a, xp.eye(b.shape[0], dtype=b.dtype)) + xp.kron(xp.eye(a.shape[0], dtype=a.dtype), xp.transpose(b))


def sylvester_by_kronecker(xp: Any, a: Any, b: Any, q: Any) -> Any:
    """The solution of the Kronecker form, one linear system."""
    return xp.linalg.solve(kronecker_sum(xp, a, b), q.reshape(-1, 1)).reshape(q.shape)


def sylvester_by_pseudo_inverse(xp: Any, a: Any, b: Any, q: Any) -> Any:
    """The smallest solution of a singular system."""
    system = kronecker_sum(xp, a, b)
    limit = float(numpy.finfo(system.dtype).eps) * 16 * system.shape[0]
    return (xp.linalg.pinv(system, limit) @ q.reshape(-1, 1)).reshape(q.shape)


def meets_zero(xp: Any, a: Any, b: Any) -> bool:
    """Whether an eigenvalue of A and one of -B agree up to rounding, so that the solution is undetermined."""
    sums = xp.linalg.eigvals(a)[:, None] + xp.linalg.eigvals(b)
    largest = xp.max(xp.abs(sums)).item()
    smallest = xp.min(xp.abs(sums)).item()
    return bool(smallest <= float(numpy.finfo(a.dtype).eps) * 16 * a.shape[0] * largest)
