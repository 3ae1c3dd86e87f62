"""Products and diagonals under the names and signatures of numpy.linalg."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import EVALUATE, Array, Tracer, operand, shape_of
from func.interpreters.primitives.linalg.matrices import identity_like
from func.interpreters.primitives.structural.shapes import broadcast
from func.numpy import products
from func.numpy.argument_checks import rank_of
from func.numpy.linalg.checks import LinAlgError, matrices
from func.numpy.linalg.solving import inv
from func.numpy.memory import in_order_of
from func.numpy.protocol import implements
from func.numpy.selection import diagonal as plane_diagonal
from func.numpy.shaping import ravel, swapaxes


@implements(np.linalg.diagonal)
def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices in the last two axes, as numpy.linalg.diagonal."""
    return plane_diagonal(x, offset, -2, -1)


@implements(np.linalg.trace)
def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of matrices in the last two axes, as numpy.linalg.trace."""
    return products.trace(x, offset, -2, -1, dtype)


@implements(np.linalg.outer)
def outer(x1: Array, x2: Array, /) -> Array:
    """All products of elements of two vectors, as numpy.linalg.outer."""
    x, y = operand(x1), operand(x2)
    if rank_of(x) != 1 or rank_of(y) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={rank_of(x)} and x2.ndim={rank_of(y)}."
        )
    return products.outer(x, y)


@implements(np.linalg.cross)
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components, as numpy.linalg.cross."""
    x, y = operand(x1), operand(x2)
    if shape_of(x)[axis] != 3 or shape_of(y)[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{shape_of(x)[axis]} and {shape_of(y)[axis]} dimensional instead."
        )
    return products.cross(x, y, axis=axis)


@implements(np.linalg.matmul)
def matmul(x1: Array, x2: Array, /) -> Array:
    """The product of matrices in the last two axes, as numpy.linalg.matmul."""
    return products.matmul(x1, x2)


@implements(np.linalg.tensordot)
def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The sum of products over `axes` of each array, as numpy.linalg.tensordot."""
    return products.tensordot(x1, x2, axes)


@implements(np.linalg.vecdot)
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The product of vectors along an axis, the first one conjugated, as numpy.linalg.vecdot."""
    return products.vecdot(x1, x2, axis=axis)


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x: Array, /) -> Array:
    """The array with its last two axes exchanged, as a view, as numpy.linalg.matrix_transpose."""
    x = operand(x)
    if rank_of(x) < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {rank_of(x)}")
    return swapaxes(x, -1, -2)


@implements(np.linalg.matrix_power)
def matrix_power(a: Array, n: int) -> Array:
    """An integer power of a square matrix, by repeated squaring, as numpy.linalg.matrix_power."""
    a = operand(a)
    if rank_of(a) < 2 or shape_of(a)[-1] != shape_of(a)[-2]:
        matrices(a)
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if n == 0:
        identity = broadcast(identity_like(a, shape_of(a)[-1]), shape=shape_of(a))
        return in_order_of(Tracer(EVALUATE, identity, None) if type(a) is Tracer else identity, a)
    if n < 0:
        a, n = inv(a), -n
    if n == 3:
        return products.matmul(products.matmul(a, a), a)
    result, square = None, a
    while n:
        n, is_odd = divmod(n, 2)
        if is_odd:
            result = square if result is None else products.matmul(result, square)
        square = products.matmul(square, square) if n else square
    return result


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Array:
    """The product of several matrices in the cheapest order, as numpy.linalg.multi_dot."""
    parts = [operand(a) for a in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(parts) == 2:
        return products.dot(parts[0], parts[1], out)
    first_vector, last_vector = rank_of(parts[0]) == 1, rank_of(parts[-1]) == 1
    parts[0] = parts[0][None, :] if first_vector else parts[0]
    parts[-1] = parts[-1][:, None] if last_vector else parts[-1]
    for part in parts:
        if rank_of(part) != 2:
            raise LinAlgError(f"{rank_of(part)}-dimensional array given. Array must be two-dimensional")
    result = _chain(parts, _cheapest_splits(parts), 0, len(parts) - 1, out)
    if first_vector and last_vector:
        result = result[0, 0]
    elif first_vector or last_vector:
        result = ravel(result)
    return result


def _cheapest_splits(parts: Sequence[Array]) -> dict[tuple[int, int], int]:
    """The cheapest split of each run of factors, by the number of multiplications."""
    sizes = [shape_of(parts[0])[0], *[shape_of(part)[1] for part in parts]]
    cost = {(i, i): 0 for i in range(len(parts))}
    splits: dict[tuple[int, int], int] = {}
    for width in range(1, len(parts)):
        for i in range(len(parts) - width):
            j = i + width
            choices = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], splits[i, j] = min(choices)
    return splits


def _chain(parts: Sequence[Array], splits: dict[tuple[int, int], int], i: int, j: int, out: Any = None) -> Array:
    if i == j:
        return parts[i]
    k = splits[i, j]
    return products.dot(_chain(parts, splits, i, k), _chain(parts, splits, k + 1, j), out)
