"""Structured matrices built from vectors, constant matrices, and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from func import numpy as fnp
from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core import Array, dtype_of, is_plain_array, known_value, operand, shape_of
from func.interpreters.primitives.elementwise.builder import conjugate
from func.linalg.checks import promoted
from func.numpy.linalg import norm as numpy_norm


def norm(a: Array, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Array:
    """A vector or matrix norm, with derivative zero at zero."""
    a = operand(a)
    value = known_value(a)
    if check_finite and is_plain_array(value) and not np.isfinite(value).all():
        raise ValueError("array must not contain infs or NaNs: a")
    return numpy_norm(a, ord, axis, keepdims)


def _vector(x: Any) -> Array:
    """An array with at least one axis."""
    return fnp.atleast_1d(operand(x))


def _take_last(values: Array, index: Any) -> Array:
    """values[..., index]."""
    return fnp.take(values, np.asarray(index), axis=-1)


def toeplitz(c: Array, r: Array | None = None) -> Array:
    """The matrix (…, m, n) with first column c (…, m) and first row r (…, n), by default conj(c); ignores r[0].

    >>> import numpy as np, func
    >>> func.linalg.toeplitz(np.array([1, 2, 3]), np.array([1, 4]))
    array([[1, 4],
           [2, 1],
           [3, 2]])
    """
    c = _vector(c)
    row: Array = (conjugate(c) if dtype_of(c).kind == "c" else c) if r is None else _vector(r)
    c, row = promoted(c, row, cores=(1, 1))
    m, n = shape_of(c)[-1], shape_of(row)[-1]
    values = fnp.concatenate([c, row[..., 1:]], -1)
    offset = np.arange(m)[:, None] - np.arange(n)
    return _take_last(values, np.where(offset >= 0, offset, m - 1 - offset))


def circulant(c: Array) -> Array:
    """The matrix (…, n, n) with first column c (…, n); each column is the previous one rotated down by one."""
    c = _vector(c)
    n = shape_of(c)[-1]
    return _take_last(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1))


def hankel(c: Array, r: Array | None = None) -> Array:
    """The matrix (…, m, n) with first column c (…, m) and last row r (…, n), by default zero; ignores r[0]."""
    c = _vector(c)
    row: Array = fnp.zeros_like(c) if r is None else _vector(r)
    c, row = promoted(c, row, cores=(1, 1))
    m, n = shape_of(c)[-1], shape_of(row)[-1]
    return _take_last(fnp.concatenate([c, row[..., 1:]], -1), np.arange(m)[:, None] + np.arange(n))


def companion(a: Array) -> Array:
    """The matrix (…, n - 1, n - 1) whose eigenvalues are the roots of the polynomial with coefficients a (…, n)."""
    a = _vector(a)
    n = shape_of(a)[-1]
    if n < 2:
        raise ValueError(f"The length of `a` along the last axis must be at least 2, got {n}.")
    value = known_value(a)
    if is_plain_array(value) and np.any(value[..., 0] == 0):
        raise ValueError("The first coefficient(s) of `a` (i.e. elements of `a[..., 0]`) must not be zero.")
    first = fnp.expand_dims(-a[..., 1:] / (1.0 * a[..., 0:1]), -2)
    below = np.eye(n - 2, n - 1, dtype=dtype_of(first))
    return fnp.concatenate([first, fnp.broadcast_to(below, (*shape_of(first)[:-2], n - 2, n - 1))], -2)


def block_diag(*arrs: Array) -> Array:
    """The block-diagonal matrix of matrices (…, m, n); vectors count as single rows."""
    blocks = promoted(*[fnp.atleast_2d(operand(a)) for a in (arrs or ([],))], cores=(2,) * max(len(arrs), 1))
    width = sum([shape_of(a)[-1] for a in blocks])
    rows = []
    start = 0
    for a in blocks:
        *batch, m, n = shape_of(a)
        left = fnp.zeros_like(a, shape=(*batch, m, start))
        right = fnp.zeros_like(a, shape=(*batch, m, width - start - n))
        rows.append(fnp.concatenate([left, a, right], -1))
        start += n
    return fnp.concatenate(rows, -2)


def khatri_rao(a: Array, b: Array) -> Array:
    """The column-wise Kronecker product (…, m n, k) of a (…, m, k) and b (…, n, k)."""
    a, b = operand(a), operand(b)
    if len(shape_of(a)) < 2 or len(shape_of(b)) < 2:
        raise ValueError(f"The both arrays should be 2-dimensional: a {shape_of(a)}, b {shape_of(b)}.")
    if shape_of(a)[-1] != shape_of(b)[-1]:
        raise ValueError(f"The number of columns of a {shape_of(a)} and b {shape_of(b)} should be equal.")
    product = fnp.expand_dims(a, -2) * fnp.expand_dims(b, -3)
    *batch, m, n, k = shape_of(product)
    return fnp.reshape(product, (*batch, m * n, k))


def diagsvd(s: Array, M: int, N: int) -> Array:
    """The matrix (…, M, N) of a singular value decomposition, with s (…, min(M, N)) on its diagonal."""
    s = _vector(s)
    k = shape_of(s)[-1]
    if k not in (M, N) or k > min(M, N):
        raise ValueError(f"Length of s must be the smaller one of M and N: got {k}, M={M}, N={N}.")
    return fnp.where(np.eye(M, N, dtype=bool), fnp.expand_dims(s, -1 if k == M else -2), dtype_of(s).type(0))


def leslie(f: Array, s: Array) -> Array:
    """The Leslie matrix (…, n, n) of fecundities f (…, n) and survivals s (…, n - 1)."""
    f, s = _vector(f), _vector(s)
    n = shape_of(f)[-1]
    if shape_of(s)[-1] != n - 1:
        raise ValueError(f"The length of s must be one less than the length of f: got {shape_of(s)[-1]} and {n}.")
    if n < 2:
        raise ValueError("The length of f must be at least 2.")
    f, s = promoted(f, s, cores=(1, 1))
    below = fnp.where(np.eye(n - 1, n, dtype=bool), fnp.expand_dims(s, -1), dtype_of(s).type(0))
    return fnp.concatenate([fnp.expand_dims(f, -2), below], -2)


def fiedler(a: Array) -> Array:
    """The symmetric matrix (…, n, n) of the distances |a_i - a_j|."""
    a = _vector(a)
    difference = fnp.expand_dims(a, -1) - fnp.expand_dims(a, -2)
    diagonal = np.eye(shape_of(a)[-1], dtype=bool)  # constant: a modulus there has no second derivative
    return fnp.where(diagonal, fnp.real(difference), fnp.abs(fnp.where(diagonal, 1, difference)))


def convolution_matrix(a: Array, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of length n is convolve(a, vector, mode); a is (…, m)."""
    if n <= 0:
        raise ValueError(f"n must be a positive integer, got {n}.")
    a = operand(a)
    m = shape_of(a)[-1] if shape_of(a) else 0
    if m == 0:
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"'mode' argument must be one of ('full', 'valid', 'same'), got {mode!r}")
    padded = fnp.concatenate([a, fnp.zeros_like(a, shape=(*shape_of(a)[:-1], 1))], -1)
    offset = np.arange(m + n - 1)[:, None] - np.arange(n)
    full = _take_last(padded, np.where((offset >= 0) & (offset < m), offset, m))
    trim = 0 if mode == "full" else min(n, m) - 1
    first = trim // 2 if mode == "same" else trim
    last = trim - first if mode == "same" else trim
    return full[..., first : m + n - 1 - last, :]


def _constant(name: str, *args: Any, **keywords: Any) -> Any:
    return getattr(scipy_of(np, "linalg"), name)(*args, **keywords)


def dft(n: int, scale: str | None = None) -> Any:
    """The matrix (n, n) of the discrete Fourier transform."""
    return _constant("dft", n, scale)


def hadamard(n: int, dtype: Any = int) -> Any:
    """Sylvester's Hadamard matrix (n, n), for n a power of two."""
    return _constant("hadamard", n, dtype)


def helmert(n: int, full: bool = False) -> Any:
    """The Helmert matrix (n - 1, n), or (n, n) with `full`."""
    return _constant("helmert", n, full)


def hilbert(n: int) -> Any:
    """The Hilbert matrix 1 / (i + j + 1)."""
    return _constant("hilbert", n)


def invhilbert(n: int, exact: bool = False) -> Any:
    """The inverse of the Hilbert matrix."""
    return _constant("invhilbert", n, exact)


def pascal(n: int, kind: str = "symmetric", exact: bool = True) -> Any:
    """The Pascal matrix of binomial coefficients."""
    return _constant("pascal", n, kind, exact)


def invpascal(n: int, kind: str = "symmetric", exact: bool = True) -> Any:
    """The inverse of the Pascal matrix."""
    return _constant("invpascal", n, kind, exact)
