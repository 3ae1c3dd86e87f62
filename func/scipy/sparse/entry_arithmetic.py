"""Arithmetic of sparse matrices whose entries may be traced: products, sums, quotients and reductions.

SciPy finds the pattern of a result from matrices of ones; func computes the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as _scipy

from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, concrete, dtype_of, operand, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.linalg.sparse import sparse_product
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import convert, reshape
from func.scipy.sparse.patterns import (
    OWN,
    accumulated,
    canonical,
    coordinates,
    entries,
    is_scalar,
    joined,
    keys,
    lifted,
    ones_like,
    placed,
    scipy_class,
    values_at,
    with_entries,
)


def as_dense(value: Any) -> Array:
    """An operand that is not sparse, as an array."""
    if isinstance(value, np.matrix):
        return np.asarray(value)
    return operand(value)


def known(matrix: Any) -> Any:
    """The matrix with the numbers behind its entries; raises if there are none."""
    return with_entries(matrix, np.asarray(concrete(matrix.data)))


def product(matrix: Any, x: Array) -> Array:
    """A x for a dense x of shape (n, k)."""
    coords, data = entries(matrix)
    rows, cols = coords if len(coords) == 2 else (np.zeros_like(coords[0]), coords[0])
    length = matrix.shape[0] if matrix.ndim == 2 else 1
    x = operand(x)
    dtype = np.result_type(dtype_of(data), dtype_of(x))
    data, x = [part if dtype_of(part) == dtype else convert(part, dtype=dtype) for part in (data, x)]
    out: Array = sparse_product(data, rows, cols, x, length=length)
    return out


def _matmul_dense(matrix: Any, other: Any) -> Any:
    """A @ other with SciPy's shapes and errors."""
    x = as_dense(other)
    n = matrix.shape[-1]
    shape = shape_of(x)
    if len(shape) not in (1, 2) or matrix.ndim > 2:
        if matrix.format == "coo" and shape:
            raise UnsupportedFunctionError(
                f"products of sparse arrays of more than two dimensions have no traced version{at_line()}\n"
                "Write them with reshape, or with the entries: x.data and x.coords."
            )
        raise ValueError("could not interpret dimensions")
    if shape[0] != n:
        tail = "1?" if len(shape) == 1 or shape[1] == 1 else "m"
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={n}),(k={shape[0]},{tail})->(n,{tail})")
    out = product(matrix, x if len(shape) == 2 else reshape(x, shape=(n, 1)))
    if len(shape) == 1:
        rows = shape_of(out)[0]
        return reshape(out, shape=(rows,) if matrix.ndim == 2 else ())
    return out if matrix.ndim == 2 else reshape(out, shape=(shape[1],))


def _matmul_sparse(left: Any, right: Any) -> Any:
    """A @ B of sparse matrices: every entry of A times the entries of its row of B."""
    n = left.shape[-1]
    if n != right.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={n}),(k={right.shape[0]},m)->(n,m)")
    template = ones_like(left) @ ones_like(right)
    (coords, data), (other_coords, other) = entries(left), entries(right)
    inner = coords[-1]
    order = np.argsort(other_coords[0], kind="stable")
    starts = np.searchsorted(other_coords[0][order], np.arange(n + 1))
    counts = (starts[1:] - starts[:-1])[inner]
    first = np.repeat(np.arange(len(inner)), counts)
    offsets = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[np.repeat(starts[:-1][inner], counts) + offsets]
    terms = gather(data, first, axis=0) * gather(other, second, axis=0)
    if not _scipy.issparse(template):
        return np.sum(terms)
    places = (*[index[first] for index in coords[:-1]], *[index[second] for index in other_coords[1:]])
    return placed(template, places, terms)


def matmul(left: Any, other: Any) -> Any:
    """left @ other for a sparse matrix on the left."""
    if _scipy.issparse(other):
        return _matmul_sparse(left, lifted(other))
    return _matmul_dense(left, other)


def rmatmul(right: Any, other: Any) -> Any:
    """other @ right for a dense array on the left."""
    out = matmul(right.transpose(), np.transpose(as_dense(other)))
    return out if _scipy.issparse(out) else np.transpose(out)


def _multiply_dense(matrix: Any, other: Array) -> Any:
    """Element by element with a dense array: a sparse matrix with the pattern, broadcast."""
    shape = shape_of(other)
    if len(shape) > 2 and matrix.ndim <= 2:
        return matrix.toarray() * other
    ones = ones_like(matrix)
    template = ones.multiply(np.ones(shape))
    if not _scipy.issparse(template):
        return matrix.toarray() * other
    coords, places = coordinates(template)
    own = values_at(matrix, _broadcast_coords(coords, template.shape, matrix.shape))
    theirs = gather(other, *_broadcast_coords(coords, template.shape, shape), axis=0) if shape else other
    return with_entries(template, _in_data(own * theirs, places, template))


def _broadcast_coords(coords: Sequence[Any], shape: Sequence[int], own: Sequence[int]) -> tuple[Any, ...]:
    """Coordinates in a broadcast result as coordinates in the operand."""
    tail = coords[len(shape) - len(own) :]
    return tuple([index if length != 1 else np.zeros_like(index) for index, length in zip(tail, own, strict=True)])


def _in_data(values: Array, places: Any, template: Any) -> Array:
    """Values of the entries in the order of `coordinates`, as the data of the template."""
    if places is None:
        return values
    if isinstance(places, slice):
        places = np.arange(places.stop)
    return accumulated(values, places, template.data.shape)


def _multiply_sparse(matrix: Any, other: Any) -> Any:
    template = ones_like(matrix).multiply(ones_like(other))
    coords, places = coordinates(template)
    values = [values_at(part, _broadcast_coords(coords, template.shape, part.shape)) for part in (matrix, other)]
    return with_entries(template, _in_data(values[0] * values[1], places, template))


def multiply(matrix: Any, other: Any) -> Any:
    """Element by element."""
    if is_scalar(other):
        return with_entries(matrix, matrix.data * other)
    if _scipy.issparse(other):
        return _multiply_sparse(matrix, lifted(other))
    return _multiply_dense(matrix, as_dense(other))


def is_zero(value: Any) -> bool:
    return not holds_traced(value) and bool(value == 0)


def add(matrix: Any, other: Any, sign: int = 1) -> Any:
    """matrix ± other."""
    if is_scalar(other):
        if is_zero(other):
            return matrix.copy()
        verb = "adding a nonzero scalar to" if sign == 1 else "subtracting a nonzero scalar from"
        raise NotImplementedError(f"{verb} a sparse array is not supported")
    if not _scipy.issparse(other):
        x = as_dense(other)
        np.broadcast_shapes(shape_of(x), matrix.shape)
        return matrix.toarray() + x if sign == 1 else matrix.toarray() - x
    other = lifted(other)
    if other.shape != matrix.shape:
        raise ValueError("inconsistent shapes")
    template = ones_like(matrix) + ones_like(other)
    (coords, data), (other_coords, theirs) = entries(matrix), entries(other)
    both = tuple([np.concatenate(pair) for pair in zip(coords, other_coords, strict=True)])
    return placed(template, both, joined([data, theirs if sign == 1 else -theirs]))


def divide(matrix: Any, other: Any) -> Any:
    """matrix / other, element by element."""
    if is_scalar(other):
        return with_entries(matrix, matrix.data * (1 / other))
    if _scipy.issparse(other):
        raise UnsupportedFunctionError(
            f"the quotient of two sparse matrices is dense, and has no traced version{at_line()}\n"
            "Divide the entries (a.data / b.data) where the patterns are equal, or write a.toarray() / b.toarray()."
        )
    return multiply(matrix, 1 / as_dense(other))


def extremum(matrix: Any, other: Any, ufunc: Callable[..., Any], name: str) -> Any:
    """Element by element, the larger or smaller one."""
    if is_scalar(other):
        if not holds_traced(other) and not ufunc(0, other):
            out = canonical(matrix)
            out = out if out.format in ("csr", "csc") else out.tocsr()
            return with_entries(out, ufunc(out.data, other))
        return OWN[scipy_class(matrix)](ufunc(matrix.toarray(), other))
    if not _scipy.issparse(other):
        return ufunc(matrix.toarray(), as_dense(other))
    other = lifted(other)
    template = ones_like(matrix).maximum(ones_like(other))
    coords, places = coordinates(template)
    return with_entries(
        template, _in_data(ufunc(values_at(matrix, coords), values_at(other, coords)), places, template)
    )


def axes_of(axis: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of a reduction; None for all."""
    if axis is None or axis == ():
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    for one in axes:
        if not isinstance(one, (int, np.integer)):
            raise TypeError(f"axis must be an integer. (given {axis=})")
        if not -ndim <= one < ndim:
            raise ValueError(f"axis out of range. (given axis={one} for {ndim}D array)")
    normal = tuple(sorted({int(one) % ndim for one in axes}))
    if len(normal) != len(axes):
        raise ValueError("duplicate value in axis")
    return None if len(normal) == ndim else normal


def reduced_places(matrix: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The target of each entry in a sum over axes, and the shape of the targets."""
    coords, _ = coordinates(matrix)
    left = [i for i in range(matrix.ndim) if i not in axes]
    shape = tuple([matrix.shape[i] for i in left])
    return keys([coords[i] for i in left], shape), shape


def sum_over(matrix: Any, axis: Any, data: Array) -> Array:
    """The sum over axes of entries in one row, in SciPy's shapes."""
    axes = axes_of(axis, matrix.ndim)
    if axes is None:
        return np.sum(data)
    places, shape = reduced_places(matrix, axes)
    out = reshape(accumulated(data, places, (int(np.prod(shape)),)), shape=shape)
    if isinstance(matrix, _scipy.spmatrix):
        out = np.expand_dims(out, axes[0])
    return out
