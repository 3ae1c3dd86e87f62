"""Products of arrays, all by the one contraction row."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.contraction import contract, matmul_spec, spec
from func.interpreters.primitives.elementwise import conjugate, multiply
from func.interpreters.primitives.structural import reshape
from func.numpy.protocol import implements


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


_ = (conjugate, dtype_of)
