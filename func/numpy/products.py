"""Products of arrays, all by the one contraction row."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.contraction import contract, matmul_spec, spec
from func.interpreters.primitives.elementwise import conjugate, multiply, subtract
from func.interpreters.primitives.structural import embed, reshape, windows
from func.numpy.arguments import as_shape, one_axis, rank_of
from func.numpy.protocol import implements, implements_ufunc
from func.numpy.shaping import ravel

__all__ = [
    "convolve",
    "correlate",
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "sliding_window_view",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]


def _strip_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Batch axes of length one in front can be broadcast by leaving them away."""
    kept = list(shape)
    while kept and kept[0] == 1:
        kept.pop(0)
    return tuple(kept)


def matmul(x1: Array, x2: Array) -> Array:
    """np.matmul."""
    x, y = operand(x1), operand(x2)
    a, b = shape_of(x), shape_of(y)
    if not a or not b:
        raise ValueError("matmul: Input operand does not have enough dimensions (0-d arrays multiply with *)")
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ValueError(
            f"matmul: the inner dimensions differ, {a[-1]} and {b[-2 if len(b) > 1 else 0]}: shapes {a} and {b}"
        )
    if len(a) <= 2 and len(b) <= 2:
        return contract(x, y, spec=matmul_spec(len(a), len(b), 0, 0))
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    x, y = _fit_batch(x, batch), _fit_batch(y, batch)
    a, b = shape_of(x), shape_of(y)
    out = contract(x, y, spec=matmul_spec(len(a), len(b), max(len(a) - 2, 0), max(len(b) - 2, 0)))
    full = (*batch, *((a[-2],) if len(a) > 1 else ()), *((b[-1],) if len(b) > 1 else ()))
    return out if shape_of(out) == full else reshape(out, shape=full)


def _fit_batch(x: Array, batch: tuple[int, ...]) -> Array:
    """Leading axes of length one dropped; inner ones broadcast, as contraction labels must agree in size."""
    shape = shape_of(x)
    if len(shape) <= 2:
        return x
    own = _strip_ones(shape[:-2])
    if own != shape[:-2]:
        x = reshape(x, shape=(*own, *shape[-2:]))
    wanted = batch[len(batch) - len(own) :]
    if own != wanted:
        from func.interpreters.primitives.structural import broadcast

        x = broadcast(x, shape=(*wanted, *shape[-2:]))
    return x


@implements(np.dot)
def dot(a: Array, b: Array, out: Any = None) -> Array:
    """np.dot: products of scalars, the last axis of a with the last but one of b otherwise."""
    x, y = operand(a), operand(b)
    n, m = len(shape_of(x)), len(shape_of(y))
    if n == 0 or m == 0:
        return multiply(x, y)
    shared = shape_of(x)[-1]
    if shared != shape_of(y)[-2 if m > 1 else 0]:
        raise ValueError(f"shapes {shape_of(x)} and {shape_of(y)} not aligned")
    left = (*range(1, n), 0)
    right = tuple(range(n, n + m - 1))
    y_labels = (0,) if m == 1 else (*right[:-1], 0, right[-1])
    return contract(x, y, spec=spec(left, y_labels, (*left[:-1], *right)))


@implements(np.inner)
def inner(a: Array, b: Array, /) -> Array:
    """The sum of products over the last axes."""
    x, y = operand(a), operand(b)
    if not shape_of(x) or not shape_of(y):
        return multiply(x, y)
    return tensordot(x, y, (-1, -1))


@implements(np.outer)
def outer(a: Array, b: Array, out: Any = None) -> Array:
    """All products of elements of two flattened arrays."""
    from func.numpy.inplace import write_into

    x, y = ravel(operand(a)), ravel(operand(b))
    result = contract(x, y, spec=spec((0,), (1,), (0, 1)))
    return result if out is None else write_into(out, result)


@implements(np.vdot)
def vdot(a: Array, b: Array, /) -> Array:
    """The sum of products of two flattened arrays, the first one conjugated."""
    x = operand(a)
    return dot(ravel(conjugate(x) if dtype_of(x).kind == "c" else x), ravel(operand(b)))


@implements(np.tensordot)
def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """The sum of products over chosen axes of each array."""
    x, y = operand(a), operand(b)
    n, m = rank_of(x), rank_of(y)
    if isinstance(axes, (int, np.integer)):
        left, right = list(range(n - axes, n)), list(range(axes))
    else:
        left, right = [list(as_shape(side)) for side in axes]
    left = [one_axis(axis, n) for axis in left]
    right = [one_axis(axis, m) for axis in right]
    pairs = list(zip(left, right, strict=False))
    if len(left) != len(right) or any([shape_of(x)[i] != shape_of(y)[j] for i, j in pairs]):
        raise ValueError("shape-mismatch for sum")
    y_labels = list(range(n, n + m))
    for i, j in pairs:
        y_labels[j] = i
    out = [i for i in range(n) if i not in left] + [label for label in y_labels if label >= n]
    return contract(x, y, spec=spec(tuple(range(n)), tuple(y_labels), tuple(out)))


@implements(np.kron)
def kron(a: Array, b: Array) -> Array:
    """Copies of b scaled by the elements of a."""
    x, y = operand(a), operand(b)
    rank = max(rank_of(x), rank_of(y))
    x = reshape(x, shape=(*[1] * (rank - rank_of(x)), *shape_of(x)))
    y = reshape(y, shape=(*[1] * (rank - rank_of(y)), *shape_of(y)))
    wide = reshape(x, shape=tuple([k for n in shape_of(x) for k in (n, 1)]))
    narrow = reshape(y, shape=tuple([k for n in shape_of(y) for k in (1, n)]))
    shape = tuple([n * m for n, m in zip(shape_of(x), shape_of(y), strict=True)])
    return reshape(multiply(wide, narrow), shape=shape)


@implements(np.trace)
def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Array:
    """The sum of a diagonal."""
    from func.numpy.reductions import sum
    from func.numpy.selection import diagonal

    return sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.cross)
def cross(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The vector product in three dimensions (two count as lying in the plane)."""
    from func.numpy.joining import stack
    from func.numpy.shaping import moveaxis

    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(operand(a), axisa, 0), moveaxis(operand(b), axisb, 0)
    if shape_of(x)[0] not in (2, 3) or shape_of(y)[0] not in (2, 3):
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    x0, x1, y0, y1 = x[0], x[1], y[0], y[1]
    last = subtract(multiply(x0, y1), multiply(x1, y0))
    if shape_of(x)[0] == 2 and shape_of(y)[0] == 2:
        return last
    x2 = x[2] if shape_of(x)[0] == 3 else multiply(x0, 0)
    y2 = y[2] if shape_of(y)[0] == 3 else multiply(y0, 0)
    first = subtract(multiply(x1, y2), multiply(x2, y1))
    second = subtract(multiply(x2, y0), multiply(x0, y2))
    return moveaxis(stack([first, second, last], 0), 0, axisc)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The product of vectors along an axis, the first one conjugated."""
    from func.numpy.reductions import sum

    x, y = operand(x1), operand(x2)
    return sum(multiply(conjugate(x) if dtype_of(x).kind == "c" else x, y), axis)


def matvec(x1: Array, x2: Array, /) -> Array:
    """Matrices times vectors."""
    return matmul(x1, operand(x2)[..., None])[..., 0]


def vecmat(x1: Array, x2: Array, /) -> Array:
    """Vectors, conjugated, times matrices."""
    x = operand(x1)
    return matmul((conjugate(x) if dtype_of(x).kind == "c" else x)[..., None, :], x2)[..., 0, :]


for _name, _function in (("vecdot", vecdot), ("matvec", matvec), ("vecmat", vecmat)):
    if hasattr(np, _name):
        implements_ufunc(getattr(np, _name))(_function)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Array, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows along axes, as trailing axes."""
    x = operand(x)
    sizes = as_shape(window_shape)
    axes = tuple(range(rank_of(x))) if axis is None else tuple([one_axis(k, rank_of(x)) for k in as_shape(axis)])
    if len(sizes) != len(axes):
        raise ValueError("Must provide matching length window_shape and axis")
    if any([size < 0 or size > shape_of(x)[k] for size, k in zip(sizes, axes, strict=True)]):
        raise ValueError("window shape cannot be larger than input array shape")
    return windows(x, sizes=sizes, axes=axes)


@implements(np.convolve)
def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """Discrete convolution of two vectors: windows of one times the other reversed."""
    x, y = operand(a), operand(v)
    if rank_of(x) != 1 or rank_of(y) != 1 or not shape_of(x)[0] or not shape_of(y)[0]:
        raise ValueError("convolve takes two vectors that are not empty")
    if shape_of(y)[0] > shape_of(x)[0]:
        x, y = y, x
    return _slide(x, y[::-1], mode, shape_of(y)[0] - 1 - (shape_of(y)[0] - 1) // 2)


@implements(np.correlate)
def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """Discrete correlation of two vectors, the second one conjugated."""
    x, y = operand(a), operand(v)
    y = conjugate(y) if dtype_of(y).kind == "c" else y
    if shape_of(y)[0] > shape_of(x)[0]:
        return convolve(y[::-1], x, mode) if mode != "same" else _same_swapped(x, y)
    return _slide(x, y, mode, shape_of(y)[0] // 2)


def _same_swapped(x: Array, y: Array) -> Array:
    full = convolve(y[::-1], x, "full")
    extra = shape_of(x)[0] - 1
    start = extra - extra // 2
    return full[start : start + shape_of(y)[0]]


def _slide(x: Array, y: Array, mode: str, before: int) -> Array:
    n, k = shape_of(x)[0], shape_of(y)[0]
    low, high = {"full": (k - 1, k - 1), "valid": (0, 0), "same": (before, k - 1 - before)}.get(mode, (-1, -1))
    if low < 0:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    padded = embed(x, index=((low, low + n, 1),), shape=(low + n + high,)) if low or high else x
    return dot(windows(padded, sizes=(k,), axes=(0,)), y)
