"""Ranges, grids, window functions, triangles and the indices that select them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.linalg.matrices import constant_mask
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.indexing import scatter
from func.numpy.argument_checks import arrayed, rank_of, to_dtype, weak_kind
from func.numpy.creation import like_array, ones_like
from func.numpy.elementary import i0
from func.numpy.joining import concatenate, stack
from func.numpy.memory import copied
from func.numpy.protocol import implements, implements_creation
from func.numpy.selection import diagonal
from func.numpy.shaping import broadcast_arrays, expand_dims, moveaxis, ravel, reshape
from func.numpy.ufuncs import sign

bartlett = np.bartlett
blackman = np.blackman
diag_indices = np.diag_indices
fromfunction = np.fromfunction
hamming = np.hamming
hanning = np.hanning
indices = np.indices
mask_indices = np.mask_indices
tril_indices = np.tril_indices
triu_indices = np.triu_indices


def _floating(x: Any) -> Array:
    return ops.multiply(operand(x), 1.0)


def _kind(x: Array) -> Any:
    """The argument of np.result_type for an operand: a dtype, or an adapting Python number."""
    return weak_kind(x)(1) if weak_kind(x) else dtype_of(x)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers between two ends, as numpy.linspace; differentiable in both."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    gaps = num - 1 if endpoint else num
    start, stop = operand(start), operand(stop)
    natural = np.result_type(_kind(start), _kind(stop), 1.0)
    low, high = _arrayed(start, natural), _arrayed(stop, natural)
    delta = ops.subtract(high, low)
    ticks = np.arange(num).reshape(-1, *[1] * rank_of(delta)).astype(natural)
    step: Any = np.nan
    if gaps > 0:
        step = ops.divide(delta, gaps)
        known = known_value(step)
        tiny = known is not None and bool((np.asarray(known) == 0).any()) if not hasattr(known, "get") else False
        out = ops.multiply(ops.divide(ticks, gaps), delta) if tiny else ops.multiply(ticks, step)
    else:
        out = ops.multiply(ticks, delta)
    out = ops.add(out, low)
    if endpoint and num > 1:
        last = shapes.broadcast(expand_dims(high, 0), shape=(1, *shape_of(out)[1:]))
        out = concatenate([out[:-1], last])
    out = moveaxis(out, 0, axis) if axis else out
    if dtype is not None and np.issubdtype(dtype, np.integer):
        out = ops.floor(out)
    out = to_dtype(out, natural if dtype is None else dtype)
    return (out, step) if retstep else out


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """base to evenly spaced powers, as numpy.logspace; differentiable in base and both ends."""
    base = operand(base)
    if rank_of(base):
        start, stop, base = [operand(x) for x in broadcast_arrays(start, stop, base)]
        base = expand_dims(base, axis)
    return to_dtype(ops.power(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """A geometric progression between two ends, not zero, as numpy.geomspace; differentiable in both."""
    start, stop = arrayed(operand(start)), arrayed(operand(stop))
    natural = np.result_type(dtype_of(start), dtype_of(stop), float(num), np.zeros((), dtype))
    start, stop = to_dtype(start, natural), to_dtype(stop, natural)
    for end in (start, stop):
        known = known_value(end)
        if known is not None and np.any(known == 0):
            raise ValueError("Geometric sequence cannot include zero")
    direction = sign(start)
    first, final = ops.divide(start, direction), ops.divide(stop, direction)
    out = logspace(ops.log10(first), ops.log10(final), num, endpoint, 10.0, natural)
    shape = (1, *shape_of(out)[1:])
    if num > 0:
        parts = [to_dtype(shapes.broadcast(expand_dims(first, 0), shape=shape), natural), out[1:]]
        if num > 1 and endpoint:
            parts = [parts[0], out[1:-1], to_dtype(shapes.broadcast(expand_dims(final, 0), shape=shape), natural)]
        out = concatenate(parts)
    out = ops.multiply(out, direction)
    return to_dtype(moveaxis(out, 0, axis) if axis else out, natural if dtype is None else dtype)


def _arrayed(x: Array, dtype: Any) -> Array:
    return to_dtype(x, dtype) if hasattr(x, "dtype") else np.asarray(x, dtype)[()]


def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of M points, differentiable in beta, as numpy.kaiser."""
    beta = to_dtype(operand(beta), np.float64)
    if M == 1:
        return ones_like(reshape(beta, (1,)))
    n = np.arange(0, float(M))
    alpha = (M - 1) / 2.0
    return ops.divide(i0(ops.multiply(beta, np.sqrt(1 - ((n - alpha) / alpha) ** 2.0))), i0(beta))


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate grids from coordinate vectors, as numpy.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    grids = []
    for i, x in enumerate(xi):
        place = 1 - i if indexing == "xy" and rank > 1 and i < 2 else i
        grids.append(reshape(operand(x), tuple([-1 if axis == place else 1 for axis in range(rank)])))
    full = tuple(grids) if sparse else tuple(broadcast_arrays(*grids))
    return tuple([copied(grid, "C") for grid in full]) if copy else full


@implements(np.vander)
def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of x as columns, as numpy.vander."""
    x = operand(x)
    if rank_of(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = shape_of(x)[0] if N is None else N
    x = to_dtype(x, np.promote_types(dtype_of(x), int))
    columns: list[Array] = [ones_like(x), x]
    for _ in range(n - 2):
        columns.append(ops.multiply(columns[-1], x))
    columns = columns[:n]
    if not columns:
        return np.empty((shape_of(x)[0], 0), dtype_of(x))
    return stack(columns if increasing else columns[::-1], axis=1)


@implements_creation(np.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Array:
    """Ones on and below diagonal k, zeros elsewhere, as numpy.tri."""
    return like_array(np.tri(N, M, k, dtype), like)


def _band(m: Array, test: Callable[[Array, Array], Array]) -> Array:
    m = operand(m)
    m = arrayed(m)
    if rank_of(m) == 0:
        raise TypeError("np.tril and np.triu need an array of at least one axis: a number has no triangle")
    if rank_of(m) < 2:
        m = shapes.broadcast(m, shape=(*shape_of(m), *shape_of(m)))
    return shapes.where(constant_mask(m, test), m, shapes.full_like(m, 0, (), dtype_of(m)))


@implements(np.tril)
def tril(m: Array, k: int = 0) -> Array:
    """The lower triangle of matrices, as numpy.tril: zero above diagonal k."""
    return _band(m, lambda i, j: j - i <= k)


@implements(np.triu)
def triu(m: Array, k: int = 0) -> Array:
    """The upper triangle of matrices, as numpy.triu: zero below diagonal k."""
    return _band(m, lambda i, j: j - i >= k)


@implements(np.diag)
def diag(v: Array, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal, as numpy.diag."""
    v = operand(v)
    if rank_of(v) == 2:
        return diagonal(v, k)
    if rank_of(v) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    (n,) = shape_of(v)
    i = np.arange(n)
    board = shapes.full_like(v, 0, (n + abs(k), n + abs(k)))
    return scatter(board, v, i + max(-k, 0), i + max(k, 0), axis=0)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    """The matrix with the flattened argument on its diagonal, as numpy.diagflat."""
    v = operand(v)
    return diag(ravel(arrayed(v)), k)


@implements(np.diag_indices_from)
def diag_indices_from(arr: Array) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with equal axes, as numpy.diag_indices_from."""
    shape = shape_of(operand(arr))
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def _triangle_of(arr: Array, select: Callable[..., Any], k: int) -> tuple[Any, ...]:
    shape = shape_of(operand(arr))
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    return select(shape[-2], k=k, m=shape[-1])  # type: ignore[no-any-return]


@implements(np.tril_indices_from)
def tril_indices_from(arr: Array, k: int = 0) -> tuple[Any, ...]:
    """The indices of the lower triangle of a matrix, as numpy.tril_indices_from."""
    return _triangle_of(arr, tril_indices, k)


@implements(np.triu_indices_from)
def triu_indices_from(arr: Array, k: int = 0) -> tuple[Any, ...]:
    """The indices of the upper triangle of a matrix, as numpy.triu_indices_from."""
    return _triangle_of(arr, triu_indices, k)
