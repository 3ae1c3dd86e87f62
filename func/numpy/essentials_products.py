"""einsum, tensordot, and the linear algebra that nearly every program uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives import linalg as la
from func.interpreters.primitives.contraction import contract, spec
from func.interpreters.primitives.structural import permute, reduce_sum, windows
from func.numpy.essentials import expand_dims, normalize_axes, reshape, swapaxes
from func.numpy.protocol import implements


@implements(np.outer)
def outer(a: Array, b: Array, out: Any = None) -> Array:
    a, b = operand(a), operand(b)
    return contract(reshape(a, (-1,)), reshape(b, (-1,)), spec=spec((0,), (1,), (0, 1)))


@implements(np.tensordot)
def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    a, b = operand(a), operand(b)
    n, m = len(shape_of(a)), len(shape_of(b))
    if isinstance(axes, int):
        left, right = list(range(n - axes, n)), list(range(axes))
    else:
        left, right = [[x] if isinstance(x, int) else list(x) for x in axes]
    left, right = [x % n for x in left], [x % m for x in right]
    x_labels = list(range(n))
    y_labels = list(range(n, n + m))
    for i, j in zip(left, right, strict=True):
        y_labels[j] = x_labels[i]
    out = [x for i, x in enumerate(x_labels) if i not in left] + [y for j, y in enumerate(y_labels) if j not in right]
    return contract(a, b, spec=spec(tuple(x_labels), tuple(y_labels), tuple(out)))


@implements(np.einsum)
def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Array:
    xs = [operand(x) for x in operands]
    left, _, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if "->" not in subscripts:
        right = "".join(sorted(c for c in set(left) if c != "," and left.count(c) == 1))
    xs = list(xs)
    while len(xs) > 1:
        x, y = xs.pop(0), xs.pop(0)
        s, t = terms.pop(0), terms.pop(0)
        later = set(right).union(*terms) if terms else set(right)
        x, s = _drop(x, s, set(t) | later)
        y, t = _drop(y, t, set(s) | later)
        out = "".join(dict.fromkeys([c for c in s + t if c in later]))
        if not terms:
            out = right
        code = {c: i for i, c in enumerate(dict.fromkeys(s + t))}
        xs.insert(0, contract(x, y, spec=spec(tuple(code[c] for c in s), tuple(code[c] for c in t), tuple(code[c] for c in out))))
        terms.insert(0, out)
    x, s = _drop(xs[0], terms[0], set(right))
    return permute(x, order=tuple(s.index(c) for c in right)) if s != right else x


def _drop(x: Array, s: str, keep: set[str]) -> tuple[Array, str]:
    gone = tuple(i for i, c in enumerate(s) if c not in keep)
    if not gone:
        return x, s
    return reduce_sum(x, axes=gone), "".join(c for c in s if c in keep)


@implements(np.linalg.cholesky)
def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    return la.cholesky(operand(a))


@implements(np.linalg.inv)
def inv(a: Array) -> Array:
    return la.inv(operand(a))


@implements(np.linalg.solve)
def solve(a: Array, b: Array) -> Array:
    a, b = operand(a), operand(b)
    if len(shape_of(b)) == 1:
        x = la.solve(a, reshape(b, (-1, 1)))
        return reshape(x, (-1,))
    return la.solve(a, b)


@implements(np.linalg.slogdet)
def slogdet(a: Array) -> Any:
    return la.slogdet(operand(a))


@implements(np.linalg.det)
def det(a: Array) -> Any:
    return la.det(operand(a))


@implements(np.linalg.norm)
def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    x = operand(x)
    axes = normalize_axes(axis, len(shape_of(x)))
    return rows.sqrt(reduce_sum(rows.square(x), axes=axes))


@implements(np.diagonal)
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    a = swapaxes(operand(a), 0, 0)
    n = min(shape_of(a)[axis1], shape_of(a)[axis2])
    i = np.arange(n)
    return a[i, i]


@implements(np.diag)
def diag(v: Array, k: int = 0) -> Array:
    return diagonal(v)


@implements(np.trace)
def trace(a: Array) -> Array:
    return reduce_sum(diagonal(a), axes=(0,))


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Array, window_shape: Any, axis: Any = None, **kwargs: Any) -> Array:
    x = operand(x)
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = tuple(range(len(shape_of(x)))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return windows(x, sizes=sizes, axes=tuple(a % len(shape_of(x)) for a in axes))


_ = (dtype_of, expand_dims)
