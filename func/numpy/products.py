"""Products of arrays, all by the contraction primitive."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import broadcast_shape
from func.backends.array_helpers.strides import memory_order_of
from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.structural.contraction import contract, matmul_spec, spec
from func.interpreters.primitives.structural.shapes import convert, expand, reshape
from func.numpy import reductions
from func.numpy.argument_checks import arrayed, as_array, normalize_axis, rank_of, scalar_of, to_dtype
from func.numpy.inplace import with_out
from func.numpy.memory import in_order, is_abstract, is_plain, layout_of, with_memory, with_order_of
from func.numpy.protocol import implements, ufunc_function
from func.numpy.shaping import moveaxis, ravel
from func.numpy.ufuncs import conjugated


@ufunc_function(np.matmul)
def matmul(x1: Array, x2: Array, /) -> Array:
    """The matrix product of the last two axes, as numpy.matmul."""
    x, y = _single(operand(x1)), _single(operand(x2))
    a, b = shape_of(x), shape_of(y)
    if not a or not b:
        raise ValueError(f"matmul: shapes {a} and {b}: 0-d arrays have no matrix product, multiply them with *")
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ValueError(
            f"matmul: the inner dimensions differ, {a[-1]} and {b[-2 if len(b) > 1 else 0]}: shapes {a} and {b}"
        )
    if len(a) <= 2 and len(b) <= 2:
        return contract(x, y, spec=matmul_spec(len(a), len(b), 0, 0))
    return _over_batches("matmul", x, y, "nk" if len(a) > 1 else "k", "km" if len(b) > 1 else "k")


def _single(x: Array) -> Array:
    """x in single precision if it is bfloat16, as NumPy multiplies such matrices."""
    if "ml_dtypes" in sys.modules and dtype_of(x).kind == "V":
        return convert(x, dtype=np.dtype(np.float32))
    return x


def _over_batches(function: str, x: Array, y: Array, x_core: str, y_core: str) -> Array:
    """The product over "k" of the last axes of x and y, whose batch axes broadcast.

    Drops batch axes of length one: a contraction allows an operand to lack a label.
    """
    a, b = shape_of(x), shape_of(y)
    batches = [a[: len(a) - len(x_core)], b[: len(b) - len(y_core)]]
    try:
        batch = broadcast_shape(batches)
    except ValueError:
        raise ValueError(f"{function}: the batch axes of shapes {a} and {b} do not broadcast") from None
    operands = (x, y)
    x, x_labels = _without_ones(x, batches[0], len(batch))
    y, y_labels = _without_ones(y, batches[1], len(batch))
    core = {"k": 0, "n": 1, "m": 2}
    free = tuple([core[c] for c in x_core + y_core if c != "k"])
    out = tuple([3 + i for i, n in enumerate(batch) if 3 + i in x_labels or 3 + i in y_labels])
    labels = spec((*x_labels, *[core[c] for c in x_core]), (*y_labels, *[core[c] for c in y_core]), (*out, *free))
    result = contract(x, y, spec=labels)
    if len(out) != len(batch):
        result = reshape(result, shape=(*batch, *shape_of(result)[len(out) :]))
    if len(batch) < 2 or all(map(is_plain, operands)) or not hasattr(np, function):
        return in_order(result, "C")  # NumPy's loop over batch axes, if there are several, is in the order of memory
    return with_order_of(result, functools.partial(memory_order_of, getattr(np, function)), operands)


def _without_ones(x: Array, batch_shape: Sequence[int], rank: int) -> tuple[Array, tuple[int, ...]]:
    """x without its batch axes of length one, and the labels of the others."""
    labels = tuple([3 + rank - len(batch_shape) + i for i, n in enumerate(batch_shape) if n != 1])
    if len(labels) != len(batch_shape):
        x = reshape(x, shape=(*[n for n in batch_shape if n != 1], *shape_of(x)[len(batch_shape) :]))
    return x, labels


def _vectors(function: str, x: Array, y: Array, lengths: tuple[int, int]) -> None:
    if lengths[0] != lengths[1]:
        raise ValueError(
            f"{function}: the summed axes differ, {lengths[0]} and {lengths[1]}: shapes {shape_of(x)} and {shape_of(y)}"
        )


def _with_rank(function: str, name: str, x: Any, rank: int) -> Array:
    x = _single(operand(x))
    if rank_of(x) < rank:
        raise ValueError(f"{function}: {name} has {rank_of(x)} dimensions, {rank} are needed")
    return x


@ufunc_function(getattr(np, "vecdot", None))
def vecdot(x1: Array, x2: Array, /) -> Array:
    """The product of vectors along the last axis, the first one conjugated, as numpy.vecdot."""
    x, y = _with_rank("vecdot", "x1", x1, 1), _with_rank("vecdot", "x2", x2, 1)
    _vectors("vecdot", x, y, (shape_of(x)[-1], shape_of(y)[-1]))
    return _over_batches("vecdot", conjugated(x), y, "k", "k")


@ufunc_function(getattr(np, "matvec", None))
def matvec(x1: Array, x2: Array, /) -> Array:
    """The product of matrices and vectors, as numpy.matvec."""
    x, y = _with_rank("matvec", "x1", x1, 2), _with_rank("matvec", "x2", x2, 1)
    _vectors("matvec", x, y, (shape_of(x)[-1], shape_of(y)[-1]))
    return _over_batches("matvec", x, y, "nk", "k")


@ufunc_function(getattr(np, "vecmat", None))
def vecmat(x1: Array, x2: Array, /) -> Array:
    """The product of conjugated vectors and matrices, as numpy.vecmat."""
    x, y = _with_rank("vecmat", "x1", x1, 1), _with_rank("vecmat", "x2", x2, 2)
    _vectors("vecmat", x, y, (shape_of(x)[-1], shape_of(y)[-2]))
    return _over_batches("vecmat", conjugated(x), y, "k", "km")


@implements(np.dot)
def dot(a: Array, b: Array, out: Any = None) -> Array:
    """The sum of products over the last axis of a and the second-to-last of b, as numpy.dot."""
    x, y = arrayed(operand(a)), arrayed(operand(b))
    n, m = rank_of(x), rank_of(y)
    if n == 0 or m == 0:
        product, is_blas = _scaled(x, y)
        return _acceptable(product, out) if is_blas else scalar_of(with_out(product, out))
    place = -2 if m > 1 else 0
    if shape_of(x)[-1] != shape_of(y)[place]:
        raise ValueError(
            f"shapes {shape_of(x)} and {shape_of(y)} not aligned: "
            f"{shape_of(x)[-1]} (dim {n - 1}) != {shape_of(y)[place]} (dim {m + place if m > 1 else 0})"
        )
    left = (*range(1, n), 0)
    right = tuple(range(n, n + m - 1))
    y_labels = (0,) if m == 1 else (*right[:-1], 0, right[-1])
    result = contract(x, y, spec=spec(left, y_labels, (*left[:-1], *right)))
    return _acceptable(result, out)


def _acceptable(result: Array, out: Any) -> Array:
    """The result in `out`, which np.dot takes only if it could have made it; without axes also as a scalar."""
    if out is None:
        return result
    same = dtype_of(out) == dtype_of(result) and shape_of(out) == shape_of(result)
    if not same or not layout_of(out).flags.c_contiguous:
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
        )
    return scalar_of(with_out(result, out))


def _scaled(x: Array, y: Array) -> tuple[Array, bool]:
    """(product with a number, whether BLAS computes it in C order); else the ufunc does, in its operands' order."""
    product = multiply(x, y)
    is_blas = dtype_of(product).char in "fdFD" and len(shape_of(product)) <= 2
    return in_order(product, "C") if is_blas and len(shape_of(product)) == 2 else product, is_blas


@implements(np.inner)
def inner(a: Array, b: Array, /) -> Array:
    """The sum of products over the last axes, as numpy.inner."""
    x, y = arrayed(operand(a)), arrayed(operand(b))
    if not shape_of(x) or not shape_of(y):
        return _scaled(x, y)[0]
    if shape_of(x)[-1] != shape_of(y)[-1]:
        raise ValueError(
            f"shapes {shape_of(x)} and {shape_of(y)} not aligned: {shape_of(x)[-1]} (dim {rank_of(x) - 1}) != "
            f"{shape_of(y)[-1]} (dim {rank_of(y) - 1})"
        )
    return scalar_of(tensordot(x, y, (-1, -1)))


@implements(np.outer)
def outer(a: Array, b: Array, out: Any = None) -> Array:
    """All products of elements of two flattened arrays, as numpy.outer."""
    x, y = ravel(arrayed(operand(a))), ravel(arrayed(operand(b)))
    return with_out(contract(x, y, spec=spec((0,), (1,), (0, 1))), out)


@implements(np.vdot)
def vdot(a: Array, b: Array, /) -> Array:
    """The sum of products of two flattened arrays, the first one conjugated, as numpy.vdot."""
    x, y = ravel(arrayed(operand(a))), ravel(arrayed(operand(b)))
    if shape_of(x) != shape_of(y):
        raise ValueError(f"vdot: cannot pair {shape_of(x)[0]} elements with {shape_of(y)[0]}")
    return contract(conjugated(x), y, spec=spec((0,), (0,), ()))


def _axis_list(axes: Any) -> list[int]:
    return list(axes) if np.iterable(axes) else [axes]


@implements(np.tensordot)
def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """The sum of products over `axes`, as numpy.tensordot: a number of them, or (axes of a, axes of b)."""
    x, y = arrayed(operand(a)), arrayed(operand(b))
    n, m = rank_of(x), rank_of(y)
    if np.iterable(axes):
        left, right = [_axis_list(side) for side in axes]
    else:
        left, right = list(range(-axes, 0)), list(range(axes))
    left = [normalize_axis(axis, n) for axis in left]
    right = [normalize_axis(axis, m) for axis in right]
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ValueError("duplicate axes are not allowed in tensordot")
    pairs = list(zip(left, right, strict=False))
    if len(left) != len(right) or any([shape_of(x)[i] != shape_of(y)[j] for i, j in pairs]):
        raise ValueError(
            f"shape-mismatch for sum: axes {left} of shape {shape_of(x)} with axes {right} of shape {shape_of(y)}"
        )
    y_labels = list(range(n, n + m))
    for i, j in pairs:
        y_labels[j] = i
    out = [i for i in range(n) if i not in left] + [label for label in y_labels if label >= n]
    result = contract(x, y, spec=spec(tuple(range(n)), tuple(y_labels), tuple(out)))
    return with_memory(as_array(in_order(result, "C")))


@implements(np.trace)
def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Array:
    """The sum of a diagonal, as numpy.trace."""
    from func.numpy.selection import diagonal  # start-up time

    return reductions.sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.kron)
def kron(a: Array, b: Array) -> Array:
    """The Kronecker product, as numpy.kron: copies of b scaled by the elements of a."""
    x, y = arrayed(operand(a)), arrayed(operand(b))
    if rank_of(x) == 0 or rank_of(y) == 0:
        return multiply(x, y)
    rank = max(rank_of(x), rank_of(y))
    outer_shape = (*[1] * (rank - rank_of(x)), *shape_of(x))
    padded_shape = (*[1] * (rank - rank_of(y)), *shape_of(y))
    wide = reshape(x, shape=tuple([k for n in outer_shape for k in (n, 1)]))
    narrow = reshape(y, shape=tuple([k for n in padded_shape for k in (1, n)]))
    shape = tuple([n * m for n, m in zip(outer_shape, padded_shape, strict=True)])
    product = reshape(multiply(wide, narrow), shape=shape)
    if is_abstract(product) or all([type(array) is not Tracer or is_plain(array) for array in (x, y)]):
        return product
    return with_order_of(product, functools.partial(memory_order_of, np.kron), (x, y))


@implements(np.cross)
def cross(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross product of vectors of three components, as numpy.cross; of two, the third is zero."""
    from func.numpy.joining import concatenate  # start-up time

    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = arrayed(operand(a)), arrayed(operand(b))
    if rank_of(x) < 1 or rank_of(y) < 1:
        raise ValueError("At least one array has zero dimension")
    x = moveaxis(x, normalize_axis(axisa, rank_of(x), "axisa"), -1)
    y = moveaxis(y, normalize_axis(axisb, rank_of(y), "axisb"), -1)
    n, m = shape_of(x)[-1], shape_of(y)[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if 2 in (n, m):
        warnings.warn(
            "Arrays of 2-dimensional vectors are deprecated. Use arrays of 3-dimensional vectors instead.",
            DeprecationWarning,
            stacklevel=2,
        )
    dtype = np.promote_types(dtype_of(x), dtype_of(y))
    parts = _cross_parts(to_dtype(x, dtype), to_dtype(y, dtype))
    if len(parts) == 1:
        return in_order(parts[0], "C")
    rank = rank_of(parts[0])
    result = in_order(concatenate([expand(part, (rank,)) for part in parts], -1), "C")
    return moveaxis(result, -1, normalize_axis(axisc, rank + 1, "axisc"))


def _cross_parts(x: Array, y: Array) -> list[Array]:
    """The components, each rounded as in NumPy."""
    x0, x1, y0, y1 = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    last = subtract(multiply(x0, y1), multiply(x1, y0))
    n, m = shape_of(x)[-1], shape_of(y)[-1]
    if n == 2 and m == 2:
        return [last]
    if n == 2:
        return [multiply(x1, y[..., 2]), negative(multiply(x0, y[..., 2])), last]
    if m == 2:
        return [negative(multiply(x[..., 2], y1)), multiply(x[..., 2], y0), last]
    x2, y2 = x[..., 2], y[..., 2]
    first = subtract(multiply(x1, y2), multiply(x2, y1))
    second = subtract(multiply(x2, y0), multiply(x0, y2))
    return [first, second, last]
