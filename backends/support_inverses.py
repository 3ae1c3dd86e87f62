"""Inverses from factors that are at hand, for generated source.

As in `support`, each function stands alone.
"""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.support_linalg import float_dtype


def lapack_letter(dtype: Any) -> str:
    """What LAPACK's names begin with for a dtype."""
    return {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char]


def cholesky_factor(xp: Any, a: Any) -> Any:
    """The lower Cholesky factor of one matrix. Read by columns, its memory is that of the conjugate, and an upper
    factor of that is one of rows."""
    from scipy.linalg import lapack

    factor, info = getattr(lapack, lapack_letter(a.dtype) + "potrf")(a.T, lower=False, clean=True)
    if info > 0:
        raise numpy.linalg.LinAlgError("Matrix is not positive definite")
    return factor.T


def cholesky_inverse(xp: Any, factor: Any) -> Any:
    """(L Lᴴ)⁻¹ of lower factors, of which the triangle above the diagonal is not read."""
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
    found, info = getattr(lapack, lapack_letter(dtype) + "potri")(factor.astype(dtype, copy=False).T, lower=False)
    if info > 0:
        raise numpy.linalg.LinAlgError(f"singular matrix: the triangular factor is zero at diagonal {info - 1}")
    return mirrored(found.T)


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
