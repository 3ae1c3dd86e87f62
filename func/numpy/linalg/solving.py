"""Solving linear systems, inverses, determinants and ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.backends.array_helpers.linalg import float_dtype, real_dtype
from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.linalg import determinants, singular, solving
from func.interpreters.primitives.linalg.matrices import mT
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import convert, expand
from func.interpreters.primitives.structural.slicing import getitem
from func.numpy.argument_checks import NO_VALUE, rank_of
from func.numpy.linalg.checks import LinAlgError, SlogdetResult, floating, matrices, matrix, with_batch
from func.numpy.linalg.decompositions import svd
from func.numpy.protocol import implements
from func.numpy.reductions import any, count_nonzero, max
from func.numpy.selection import where
from func.numpy.shaping import broadcast_to, ravel, reshape, transpose


@implements(np.linalg.inv)
def inv(a: Array) -> Array:
    """The inverse of square matrices, as numpy.linalg.inv."""
    return solving.inv(matrices(a))


@implements(np.linalg.det)
def det(a: Array) -> Array:
    """The determinant of square matrices, as numpy.linalg.det; its derivative is exact for singular matrices too."""
    return determinants.det(matrices(a))


@implements(np.linalg.slogdet)
def slogdet(a: Array) -> Any:
    """(sign, log |det|) of square matrices, as numpy.linalg.slogdet; the sign of real ones has derivative zero."""
    return SlogdetResult(*determinants.slogdet(matrices(a)))


@implements(np.linalg.solve)
def solve(a: Array, b: Array) -> Array:
    """The solution x of a x = b, as numpy.linalg.solve; b is a vector if it has one axis, else a stack of matrices."""
    a, b = matrices(a), floating(b)
    n = shape_of(a)[-1]
    vector = rank_of(b) == 1
    column = expand(b, (1,)) if vector else b
    if rank_of(b) == 0 or shape_of(column)[-2] != n:
        raise ValueError(f"solve: a of shape {shape_of(a)} and b of shape {shape_of(b)} do not match in size {n}")
    batch = np.broadcast_shapes(shape_of(a)[:-2], shape_of(column)[:-2])
    x = solving.solve(with_batch(a, batch), with_batch(column, batch))
    return _first_column(x) if vector else x


def _first_column(x: Array) -> Array:
    return getitem(x, index=(*[(0, n, 1) for n in shape_of(x)[:-1]], 0))


@implements(np.linalg.pinv)
def pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NO_VALUE) -> Array:
    """The pseudo-inverse, as numpy.linalg.pinv; singular values up to rcond (rtol) times the largest one count as zero.

    The derivative is the one at constant rank.
    """
    if rcond is not None and rtol is not NO_VALUE:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    a = operand(a)
    if rank_of(a) > 1 and 0 in shape_of(a)[-2:]:
        return mT(a)  # of no elements, in any dtype
    a = matrices(a, square=bool(hermitian))
    limit, cut = _rank_limit(a, rcond, rtol)
    batch = shape_of(a)[:-2]
    limit = limit if shape_of(limit) == batch else broadcast_to(limit, batch)
    return singular.pinv(a, stop_gradient(limit), hermitian=bool(hermitian), cut=cut)


def _rank_limit(a: Array, rcond: Any, rtol: Any) -> tuple[Array, bool]:
    """The limit, and whether it may drop singular values above rounding errors."""
    if rcond is not None:
        tolerance = rcond
    elif rtol is NO_VALUE:
        tolerance = 1e-15
    elif rtol is None:
        tolerance = np.max(shape_of(a)[-2:]) * np.finfo(dtype_of(a)).eps
    else:
        tolerance = rtol
    limit = operand(tolerance)
    limit = limit if hasattr(limit, "dtype") else np.asarray(limit, real_dtype(dtype_of(a)))
    known = known_value(limit)
    return limit, known is None or bool((known > 1e-8).any())


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above a tolerance, as numpy.linalg.matrix_rank."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = operand(A)
    if rank_of(A) < 2:
        return ops.multiply(any(ops.not_equal(A, 0)), 1)
    s = svd(A, compute_uv=False, hermitian=hermitian)
    if tol is None:
        rtol = np.max(shape_of(A)[-2:]) * np.finfo(dtype_of(s)).eps if rtol is None else _trailing(rtol)
        tol = ops.multiply(max(s, axis=-1, keepdims=True, initial=0), rtol)
    else:
        tol = _trailing(tol)
    return count_nonzero(ops.greater(s, tol), axis=-1)


def _trailing(x: Any) -> Array:
    x = operand(x)
    return reshape(x, (*shape_of(x), 1)) if hasattr(x, "dtype") else x


@implements(np.linalg.lstsq)
def lstsq(a: Array, b: Array, rcond: float | None = None) -> tuple[Array, Array, Any, Array]:
    """Least-squares solutions of a x = b, as numpy.linalg.lstsq: (x, residuals, rank, singular values of a).

    The derivative is the one at constant rank. The residuals are empty where NumPy's are: m <= n or deficient rank.
    Under jit the rank is unknown: the residuals are NaN if it is deficient.
    """
    a, b = matrix(a), floating(b)
    vector = rank_of(b) == 1
    columns = matrix(expand(b, (1,)) if vector else b)
    m, n = shape_of(a)
    if shape_of(columns)[0] != m:
        raise LinAlgError("Incompatible dimensions")
    dtype = np.result_type(float_dtype(dtype_of(a)), dtype_of(columns))
    a, columns = [x if dtype_of(x) == dtype else convert(x, dtype=dtype) for x in (a, columns)]
    limit = float(np.finfo(dtype).eps * np.maximum(n, m) if rcond is None else rcond)
    x, residuals, s = singular.lstsq(a, columns, limit=limit, cut=limit > 1e-8)
    rank = count_nonzero(ops.greater(s, ops.multiply(max(s, axis=-1, initial=0), limit)))
    known = known_value(rank)
    if m <= n or (known is not None and (known != n).all()):
        residuals = np.zeros(0, real_dtype(dtype))
    elif known is None or (known != n).any():
        residuals = where(ops.equal(rank, n), residuals, np.asarray(np.nan, real_dtype(dtype)))
    return _first_column(x) if vector else x, residuals, convert(rank, dtype=np.dtype(np.intc)), s


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Array, b: Array, axes: Any = None) -> Array:
    """The solution x of tensordot(a, x, x.ndim) = b, as numpy.linalg.tensorsolve."""
    a, b = operand(a), operand(b)
    rank = rank_of(a)
    if axes is not None:
        order = list(range(rank))
        for k in axes:
            order.remove(k)
            order.insert(rank, k)
        a = transpose(a, order)
    rest = shape_of(a)[rank_of(b) :]
    n = math.prod(rest)
    if math.prod(shape_of(a)) != n**2:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return reshape(solve(reshape(a, (n, n)), ravel(b)), rest)


@implements(np.linalg.tensorinv)
def tensorinv(a: Array, ind: int = 2) -> Array:
    """The inverse of an array as a linear map from its last axes to its first `ind` ones, as numpy.linalg.tensorinv."""
    a = operand(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    left, right = shape_of(a)[:ind], shape_of(a)[ind:]
    return reshape(inv(reshape(a, (math.prod(right), -1))), (*right, *left))
