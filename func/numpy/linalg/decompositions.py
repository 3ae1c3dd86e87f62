"""Matrix factorizations, eigenvalues and singular values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, known_value, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.linalg import qr as orthogonal
from func.interpreters.primitives.linalg import singular, solving, spectral
from func.interpreters.primitives.linalg.matrices import mH
from func.interpreters.primitives.structural.shapes import expand
from func.numpy.argument_checks import rank_of
from func.numpy.inplace import view_real
from func.numpy.linalg.checks import EighResult, EigResult, LinAlgError, QRResult, SVDResult, matrices
from func.numpy.protocol import implements
from func.numpy.selection import take_along_axis
from func.numpy.shaping import flip
from func.numpy.sorting import argsort, sort


@implements(np.linalg.cholesky)
def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    """The lower (upper) triangular factor of a Hermitian positive-definite matrix, as numpy.linalg.cholesky.

    It reads one triangle of the matrix, and the derivative is with respect to it: the gradient is triangular.
    """
    return solving.cholesky(matrices(a), upper=bool(upper))


def _lower(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return UPLO.upper() == "L"


@implements(np.linalg.eigh)
def eigh(a: Array, UPLO: str = "L") -> Any:
    """Eigenvalues in ascending order and eigenvectors of a Hermitian matrix, as numpy.linalg.eigh.

    It reads one triangle of the matrix, and the derivative is with respect to it: the gradient is triangular. Complex
    vectors have LAPACK's phase, which makes their first component (with "U" their last one) real. The undetermined part
    of the derivative at equal eigenvalues is zero.
    """
    lower = _lower(UPLO)
    return EighResult(*spectral.eigh(matrices(a), lower=lower))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Array, UPLO: str = "L") -> Array:
    """Eigenvalues of a Hermitian matrix in ascending order, as numpy.linalg.eigvalsh."""
    lower = _lower(UPLO)
    return spectral.eigvalsh(matrices(a), lower=lower)


def _finite(a: Array) -> Array:
    known = known_value(a)
    if known is not None and not np.isfinite(known).all():
        raise LinAlgError("Array must not contain infs or NaNs")
    return a


_ALWAYS_COMPLEX = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 5)
"""From NumPy 2.5 on the eigenvalues of a real matrix are complex numbers also where all are real."""


def _is_real(w: Array, a: Array) -> bool:
    """Whether the eigenvalues of a real matrix are all real; False under jit, where this is unknown."""
    known = known_value(w)
    return dtype_of(a).kind != "c" and known is not None and bool((known.imag == 0).all())


@implements(np.linalg.eig)
def eig(a: Array) -> Any:
    """Eigenvalues and right eigenvectors of a square matrix, as numpy.linalg.eig.

    Each vector keeps Euclidean length one and its largest component real, as in LAPACK; the undetermined part of the
    derivative at equal eigenvalues is zero. The results are real if all eigenvalues of a real matrix are real (always
    complex while staging, and from NumPy 2.5 on).
    """
    a = _finite(matrices(a))
    w, v = spectral.eig(a)
    is_real = not _ALWAYS_COMPLEX and _is_real(w, a)
    return EigResult(view_real(w), view_real(v)) if is_real else EigResult(w, v)


@implements(np.linalg.eigvals)
def eigvals(a: Array) -> Array:
    """Eigenvalues of a square matrix, as numpy.linalg.eigvals; always complex while staging, and from NumPy 2.5 on."""
    return spectral.eigvals(_finite(matrices(a))) if _ALWAYS_COMPLEX else real_eigvals(a)


def real_eigvals(a: Array) -> Array:
    """Eigenvalues of a square matrix; real numbers if all those of a real matrix are."""
    a = _finite(matrices(a))
    w = spectral.eigvals(a)
    return view_real(w) if _is_real(w, a) else w


@implements(np.linalg.svd)
def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition U diag(s) Vh, as numpy.linalg.svd.

    Pairs of vectors keep their common phase. The undetermined part of the derivative is zero: at equal singular
    values, and in the columns that full_matrices adds.
    """
    if hermitian:
        return _svd_of_hermitian(a, compute_uv)
    a = matrices(a, square=False)
    if not compute_uv:
        return singular.svdvals(a)
    return SVDResult(*singular.svd(a, full_matrices=bool(full_matrices)))


def _svd_of_hermitian(a: Array, compute_uv: bool) -> Any:
    """The decomposition of a Hermitian matrix by its eigenvalues; their signs go into V."""
    if not compute_uv:
        return flip(sort(ops.absolute(eigvalsh(a))), -1)
    w, u = eigh(a)
    size = ops.absolute(w)
    order = flip(argsort(size), -1)
    signs = take_along_axis(ops.copysign(1.0, w), order, -1)
    u = take_along_axis(u, expand(order, (rank_of(order) - 1,)), -1)
    return SVDResult(u, take_along_axis(size, order, -1), mH(ops.multiply(u, expand(signs, (rank_of(signs) - 1,)))))


@implements(np.linalg.svdvals)
def svdvals(x: Array, /) -> Array:
    """The singular values in descending order, as numpy.linalg.svdvals."""
    return singular.svdvals(matrices(x, square=False))


@implements(np.linalg.qr)
def qr(a: Array, mode: str = "reduced") -> Any:
    """The QR decomposition, as numpy.linalg.qr; the factors of mode "raw" have no derivative.

    A derivative needs the first min(m, n) columns to be independent.
    """
    if mode in ("f", "full"):
        warnings.warn("The 'full' option is deprecated in favor of 'reduced'.", DeprecationWarning, stacklevel=2)
        mode = "reduced"
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    a = matrices(a, square=False)
    if mode == "raw":
        return orthogonal.qr_raw(a)
    m, n = shape_of(a)[-2:]
    q, r = orthogonal.qr(a, mode="complete" if mode == "complete" and m > n else "reduced")
    return r if mode == "r" else QRResult(q, r)
