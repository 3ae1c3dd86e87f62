"""Inverses from factors that are at hand, for generated source."""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of
from func.backends.array_helpers.linalg import as_dtype, float_dtype, over_stack


def lapack_letter(dtype: Any) -> str:
    """The prefix of LAPACK's names for a dtype."""
    return {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char]


def cholesky_factor(xp: Any, a: Any) -> Any:
    """The lower Cholesky factor of one matrix.

    LAPACK reads memory by columns: it sees the conjugate matrix, whose upper factor is the lower one by rows.
    """
    from scipy.linalg import lapack

    factor, info = getattr(lapack, lapack_letter(a.dtype) + "potrf")(a.T, lower=False, clean=True)
    if info > 0:
        raise numpy.linalg.LinAlgError("Matrix is not positive definite")
    return factor.T


def cholesky_inverse(xp: Any, factor: Any) -> Any:
    """(L Lᴴ)⁻¹ of lower factors; ignores the triangle above the diagonal."""
    if factor.size == 0:
        return xp.asarray(factor, float_dtype(factor.dtype))
    if xp is not numpy:
        return xp.linalg.inv(xp.matmul(xp.tril(factor), xp.conjugate(xp.swapaxes(xp.tril(factor), -1, -2))))
    if factor.ndim == 2:
        return cholesky_inverse_of_one(factor)
    out = numpy.empty(factor.shape, float_dtype(factor.dtype))
    for place in numpy.ndindex(*factor.shape[:-2]):
        out[place] = cholesky_inverse_of_one(factor[place])
    return out


def cholesky_inverse_of_one(factor: Any) -> Any:
    """LAPACK's potri. Read by columns, the memory of L is an upper factor, that of the transposed inverse."""
    from scipy.linalg import lapack

    dtype = float_dtype(factor.dtype)
    inverse, info = getattr(lapack, lapack_letter(dtype) + "potri")(factor.astype(dtype, copy=False).T, lower=False)
    if info > 0:
        raise numpy.linalg.LinAlgError(f"singular matrix: the triangular factor is zero at diagonal {info - 1}")
    return mirrored(inverse.T)


def mirrored(x: Any, block: int = 64) -> Any:
    """A Hermitian matrix from its lower triangle, in place."""
    n = len(x)
    for start in range(0, n, block):
        stop = min(start + block, n)
        corner = numpy.tril(x[start:stop, start:stop])
        strict = numpy.tril(corner, -1)
        numpy.add(corner, numpy.conjugate(strict.T), x[start:stop, start:stop])
        numpy.conjugate(x[stop:, start:stop].T, x[start:stop, stop:])
    return x


def pinv(xp: Any, a: Any, limit: Any, *, hermitian: bool, cut: bool) -> Any:
    """Pseudo-inverses without the singular values below `limit` times the largest; `cut` concerns derivatives alone."""
    if xp is numpy:
        return numpy.linalg.pinv(a, limit, hermitian)
    if hermitian:  # of which the lower triangle counts
        below = xp.tril(a, -1)
        a = xp.tril(a) + xp.conjugate(xp.swapaxes(below, -1, -2))
    return xp.linalg.pinv(a, limit)


def lu_factors(xp: Any, a: Any) -> tuple[Any, ...]:
    """L and U in one matrix, and LAPACK's row exchanges; singular matrices are factored as others are."""
    dtype = float_dtype(a.dtype)
    outs = ((a.shape, dtype), (a.shape[:-1], numpy.dtype(numpy.int32)))
    if a.size == 0:
        return tuple([xp.zeros(shape, kind) for shape, kind in outs])
    return over_stack(xp, host_factors if xp is numpy else device_factors(xp), (as_dtype(xp, a, dtype),), outs, (2,))


def host_factors(a: Any) -> tuple[Any, Any]:
    """LAPACK's getrf."""
    from scipy.linalg import lapack

    packed, pivots, _ = getattr(lapack, lapack_letter(a.dtype) + "getrf")(a)
    return packed, pivots


def device_factors(xp: Any) -> Any:
    """The routine of a device, which may warn of singular matrices."""
    import warnings

    def factors(a: Any) -> tuple[Any, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            packed, pivots = scipy_of(xp, "linalg").lu_factor(a, check_finite=False)
        return packed, pivots

    return factors


def check_factors(packed: Any, pivots: Any) -> None:
    """Raise as NumPy does where a pivot is zero, and where LAPACK would exchange rows that there are not."""
    if packed.size and not packed.diagonal().all():
        raise numpy.linalg.LinAlgError("Singular matrix")
    if pivots.size and not 0 <= pivots.min() <= pivots.max() < len(packed):
        raise IndexError("row exchanges of LU factors are out of range")


def factored_solve(xp: Any, a: Any, packed: Any, pivots: Any, b: Any, *, adjoint: bool) -> Any:
    """A⁻¹ B or A⁻ᴴ B by LU factors."""
    dtype = numpy.result_type(packed.dtype, b.dtype)
    if b.size == 0:
        return xp.zeros(b.shape, dtype)

    def call(packed: Any, pivots: Any, b: Any) -> tuple[Any]:
        if xp is not numpy:
            return (scipy_of(xp, "linalg").lu_solve((packed, pivots), b, trans=2 * adjoint, check_finite=False),)
        from scipy.linalg import lapack

        check_factors(packed, pivots)
        return (getattr(lapack, lapack_letter(dtype) + "getrs")(packed, pivots, b, trans=2 * adjoint)[0],)

    arrays = as_dtype(xp, packed, dtype), pivots, as_dtype(xp, b, dtype)
    return over_stack(xp, call, arrays, ((b.shape, dtype),), (2, 1, 2))[0]


def factored_slogdet(xp: Any, a: Any, packed: Any, pivots: Any) -> tuple[Any, Any]:
    """The signs and the logarithms of determinants by LU factors."""
    pivot = xp.diagonal(packed, 0, -2, -1)
    sizes = xp.abs(pivot)
    singular = xp.any(sizes == 0, -1)
    exchanges = xp.sum(pivots != xp.arange(pivots.shape[-1]), -1)
    turned = xp.prod(pivot / xp.where(sizes == 0, xp.ones((), sizes.dtype), sizes), -1)
    sign = xp.where(singular, xp.zeros((), packed.dtype), xp.where(exchanges % 2 == 1, -turned, turned))
    with numpy.errstate(divide="ignore"):
        return sign, xp.sum(xp.log(sizes), -1)


def factored_inverse(xp: Any, a: Any, packed: Any, pivots: Any, *, safe: bool) -> Any:
    """A⁻¹ by LU factors; with `safe` the identity where there is none."""
    if a.size == 0:
        return as_dtype(xp, a, packed.dtype)
    identity = xp.eye(a.shape[-1], dtype=packed.dtype)

    def call(packed: Any, pivots: Any) -> tuple[Any]:
        if safe and bool(xp.isinf(xp.sum(xp.log(xp.abs(packed.diagonal()))))):
            return (identity,)
        if xp is not numpy:
            return (scipy_of(xp, "linalg").lu_solve((packed, pivots), identity, check_finite=False),)
        return (inverse_by_factors(packed, pivots),)

    with numpy.errstate(divide="ignore"):
        return over_stack(xp, call, (packed, pivots), ((a.shape, packed.dtype),), (2, 1))[0]


def inverse_by_factors(packed: Any, pivots: Any) -> Any:
    """LAPACK's getri."""
    from scipy.linalg import lapack

    check_factors(packed, pivots)
    letter = lapack_letter(packed.dtype)
    work = int(getattr(lapack, letter + "getri_lwork")(len(packed))[0].real)
    return getattr(lapack, letter + "getri")(packed, pivots, lwork=work)[0]
