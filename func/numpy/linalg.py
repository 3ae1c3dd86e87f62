"""numpy.linalg on traced arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives import linalg as la
from func.interpreters.primitives.structural import where as where_row
from func.numpy.arguments import many_axes, one_axis, rank_of
from func.numpy.products import cross, matmul, outer, tensordot, trace, vecdot
from func.numpy.protocol import implements
from func.numpy.reductions import max, min, sum
from func.numpy.selection import diagonal
from func.numpy.shaping import expand_dims, matrix_transpose, moveaxis, ravel, reshape, swapaxes
from func.numpy.ufuncs import absolute

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

EighResult = np.linalg.eigh(np.eye(1)).__class__
SVDResult = np.linalg.svd(np.eye(1)).__class__
QRResult = np.linalg.qr(np.eye(1)).__class__
SlogdetResult = np.linalg.slogdet(np.eye(1)).__class__


def _matrix(a: Any, square: bool = True) -> Array:
    """A floating point array of matrices, checked as numpy.linalg does."""
    a = operand(a)
    if rank_of(a) < 2:
        raise np.linalg.LinAlgError(f"{rank_of(a)}-dimensional array given. Array must be at least two-dimensional")
    if square and shape_of(a)[-1] != shape_of(a)[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return a if dtype_of(a).kind in "fc" else rows.multiply(a, 1.0)


@implements(np.linalg.cholesky)
def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    """The lower (upper) triangular factor of a positive-definite matrix."""
    a = _matrix(a)
    if not upper:
        return la.cholesky(a)
    return la.mH(la.cholesky(la.mH(a)))


@implements(np.linalg.inv)
def inv(a: Array) -> Array:
    """The inverse."""
    return la.inv(_matrix(a))


@implements(np.linalg.det)
def det(a: Array) -> Array:
    """The determinant; singular matrices have their derivative too."""
    return la.det(_matrix(a))


@implements(np.linalg.slogdet)
def slogdet(a: Array) -> Any:
    """(sign, log |det|)."""
    return SlogdetResult(*la.slogdet(_matrix(a)))


@implements(np.linalg.solve)
def solve(a: Array, b: Array) -> Array:
    """The solution x of a x = b; a one-dimensional b is a vector, any other a stack of matrices."""
    a, b = _matrix(a), operand(b)
    if rank_of(b) == 1:
        if shape_of(b)[0] != shape_of(a)[-1]:
            raise ValueError(f"solve: a is {shape_of(a)}, but b is {shape_of(b)}")
        column = np.broadcast_shapes(shape_of(a)[:-2])
        from func.numpy.shaping import broadcast_to

        spread = broadcast_to(expand_dims(b, -1), (*column, shape_of(b)[0], 1))
        return la.solve(a, spread)[..., 0]
    if shape_of(b)[-2] != shape_of(a)[-1]:
        raise ValueError(f"solve: a is {shape_of(a)}, but b is {shape_of(b)}")
    batch = np.broadcast_shapes(shape_of(a)[:-2], shape_of(b)[:-2])
    return la.solve(_spread(a, batch), _spread(b, batch))


def _spread(x: Array, batch: tuple[int, ...]) -> Array:
    from func.numpy.shaping import broadcast_to

    return x if shape_of(x)[:-2] == batch else broadcast_to(x, (*batch, *shape_of(x)[-2:]))


@implements(np.linalg.eigh)
def eigh(a: Array, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return EighResult(*la.eigh(_matrix(a), lower=UPLO.upper() == "L"))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Array, UPLO: str = "L") -> Array:
    """Eigenvalues of a Hermitian matrix."""
    return eigh(a, UPLO)[0]


@implements(np.linalg.svd)
def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition; full_matrices has no derivative for rectangular matrices."""
    a = _matrix(a, square=False)
    if not compute_uv:
        return svdvals(a)
    return SVDResult(*la.svd(a, full_matrices=full_matrices))


@implements(np.linalg.svdvals)
def svdvals(x: Array, /) -> Array:
    """The singular values, largest first."""
    return la.svd(_matrix(x, square=False), full_matrices=False)[1]


@implements(np.linalg.qr)
def qr(a: Array, mode: str = "reduced") -> Any:
    """The QR decomposition in modes reduced, complete and r."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'" if mode != "raw" else "mode 'raw' has no traced version")
    q, r = la.qr(_matrix(a, square=False), mode="complete" if mode == "complete" else "reduced")
    return r if mode == "r" else QRResult(q, r)


@implements(np.linalg.matrix_power)
def matrix_power(a: Array, n: int) -> Array:
    """An integer power of a square matrix, by repeated squaring."""
    a = _matrix(a)
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 0:
        return rows.add(rows.multiply(a, 0), np.eye(shape_of(a)[-1], dtype=dtype_of(a)))
    result, base = None, a
    while n:
        if n & 1:
            result = base if result is None else matmul(result, base)
        n >>= 1
        base = matmul(base, base) if n else base
    return result


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Array:
    """The product of several matrices, in the order that costs least."""
    from func.numpy.inplace import write_into

    parts = [operand(a) for a in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    first_vector, last_vector = rank_of(parts[0]) == 1, rank_of(parts[-1]) == 1
    parts[0] = parts[0][None, :] if first_vector else parts[0]
    parts[-1] = parts[-1][:, None] if last_vector else parts[-1]
    sizes = [shape_of(parts[0])[0], *[shape_of(p)[1] for p in parts]]
    cost: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0.0, i) for i in range(len(parts))}
    for width in range(1, len(parts)):
        for i in range(len(parts) - width):
            j = i + width
            options = [
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]
            cost[i, j] = sorted(options)[0]

    def product(i: int, j: int) -> Array:
        return parts[i] if i == j else matmul(product(i, cost[i, j][1]), product(cost[i, j][1] + 1, j))

    result = product(0, len(parts) - 1)
    result = result[0] if first_vector else result
    result = result[..., 0] if last_vector else result
    return result if out is None else write_into(out, result)


@implements(np.linalg.pinv)
def pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The pseudo-inverse by the singular value decomposition; small singular values count as zero."""
    a = _matrix(a, square=False)
    u, s, vh = la.svd(a, full_matrices=False)
    limit = rtol if rtol is not None else 1e-15 if rcond is None else rcond
    keep = rows.greater(s, rows.multiply(expand_dims(max(s, -1), -1), limit))
    inverse = where_row(keep, rows.divide(1, where_row(keep, s, np.ones((), dtype_of(s)))), np.zeros((), dtype_of(s)))
    return matmul(la.scale_columns(la.mH(vh), inverse), la.mH(u))


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The number of singular values above a tolerance."""
    from func.numpy.selection import count_nonzero

    A = operand(A)
    if rank_of(A) < 2:
        return rows.not_equal(count_nonzero(A), 0) * 1
    s = svdvals(A)
    if tol is None:
        eps = np.finfo(dtype_of(s)).eps * np.max(shape_of(A)[-2:]) if rtol is None else rtol
        tol = rows.multiply(expand_dims(max(s, -1), -1), eps)
    return count_nonzero(rows.greater(s, tol), axis=-1)


@implements(np.linalg.cond)
def cond(x: Array, p: Any = None) -> Array:
    """The condition number in a norm."""
    x = _matrix(x, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        s = svdvals(x)
        return rows.divide(s[..., -1], s[..., 0]) if p == -2 else rows.divide(s[..., 0], s[..., -1])
    return rows.multiply(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Array, b: Array, axes: Any = None) -> Array:
    """The solution x of tensordot(a, x, x.ndim) = b."""
    a, b = operand(a), operand(b)
    if axes is not None:
        order = [k for k in range(rank_of(a)) if k not in axes] + list(axes)
        from func.numpy.shaping import transpose

        a = transpose(a, order)
    rest = shape_of(a)[rank_of(b) :]
    n = int(np.prod(rest, dtype=np.int64))
    return reshape(solve(reshape(a, (-1, n)), ravel(b)), rest)


@implements(np.linalg.tensorinv)
def tensorinv(a: Array, ind: int = 2) -> Array:
    """The inverse of an array taken as a linear map."""
    a = operand(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    left, right = shape_of(a)[:ind], shape_of(a)[ind:]
    return reshape(inv(reshape(a, (int(np.prod(left)), -1))), (*right, *left))


# --- norms ------------------------------------------------------------------------------------------------------


def _root_of_squares(x: Array, axes: tuple[int, ...]) -> Array:
    """The Euclidean norm, with derivative zero at zero."""
    squares = rows.multiply(x, x)
    if dtype_of(x).kind == "c":
        squares = rows.add(rows.square(rows.real(x)), rows.square(rows.imag(x)))
    total = sum(squares, axes)
    nothing = rows.equal(total, 0)
    one = np.ones((), dtype_of(total))
    return where_row(nothing, np.zeros((), dtype_of(total)), rows.sqrt(where_row(nothing, one, total)))


def _vector_norm(x: Array, ord: Any, axis: int) -> Array:
    if ord in (None, 2):
        return _root_of_squares(x, (axis,))
    size = absolute(x)
    if ord == np.inf:
        return max(size, axis)
    if ord == -np.inf:
        return min(size, axis)
    if ord == 0:
        return sum(rows.multiply(rows.not_equal(x, 0), np.ones((), dtype_of(size))), axis)
    if ord == 1:
        return sum(size, axis)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    total = sum(rows.power(size, ord), axis)
    nothing = rows.equal(total, 0)
    one = np.ones((), dtype_of(total))
    return where_row(nothing, np.zeros((), dtype_of(total)), rows.power(where_row(nothing, one, total), 1.0 / ord))


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, int]) -> Array:
    if ord in (None, "fro", "f"):
        return _root_of_squares(x, axes)
    moved = moveaxis(x, axes, (-2, -1))
    if ord in (2, -2, "nuc"):
        s = svdvals(moved)
        return max(s, -1) if ord == 2 else min(s, -1) if ord == -2 else sum(s, -1)
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    sums = sum(absolute(moved), -2 if abs(ord) == 1 else -1)
    return max(sums, -1) if ord > 0 else min(sums, -1)


@implements(np.linalg.norm)
def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """A vector or matrix norm; the derivative of a Euclidean norm at zero is zero."""
    x = operand(x)
    x = x if dtype_of(x).kind in "fc" else rows.multiply(x, 1.0)
    rank = rank_of(x)
    if axis is None:
        if ord is None:
            axes = tuple(range(rank))
            return _kept(_root_of_squares(x, axes), shape_of(x), axes, keepdims)
        if rank not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
        axis = tuple(range(rank))
    places = [one_axis(k, rank) for k in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(places) == 1:
        result = _vector_norm(x, ord, places[0])
    elif len(places) == 2:
        if places[0] == places[1]:
            raise ValueError("Duplicate axes given.")
        result = _matrix_norm(x, ord, (places[0], places[1]))
    else:
        raise ValueError("Improper number of dimensions to norm.")
    return _kept(result, shape_of(x), tuple(places), keepdims)


def _kept(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Array:
    return reshape(x, tuple([1 if i in axes else n for i, n in enumerate(shape)])) if keepdims else x


@implements(np.linalg.vector_norm)
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of vectors along axes (all by default)."""
    x = operand(x)
    axes = many_axes(axis, rank_of(x))
    kept = [n for i, n in enumerate(shape_of(x)) if i not in axes]
    flat = reshape(moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else x, (*kept, -1))
    return _kept(norm(flat, ord, -1), shape_of(x), axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.diagonal)
def _linalg_diagonal(x: Array, /, *, offset: int = 0) -> Array:
    return diagonal(x, offset, -2, -1)


@implements(np.linalg.trace)
def _linalg_trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    return trace(x, offset, -2, -1, dtype)


@implements(np.linalg.outer)
def _linalg_outer(x1: Array, x2: Array, /) -> Array:
    return outer(x1, x2)


@implements(np.linalg.cross)
def _linalg_cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    return cross(x1, x2, axis=axis)


@implements(np.linalg.matmul)
def _linalg_matmul(x1: Array, x2: Array, /) -> Array:
    return matmul(x1, x2)


@implements(np.linalg.tensordot)
def _linalg_tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    return tensordot(x1, x2, axes)


@implements(np.linalg.vecdot)
def _linalg_vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    return vecdot(x1, x2, axis=axis)


@implements(np.linalg.matrix_transpose)
def _linalg_transpose(x: Array, /) -> Array:
    return swapaxes(x, -1, -2)
