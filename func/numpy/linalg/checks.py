"""The argument checks and the named results of numpy.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.structural.shapes import broadcast, convert
from func.numpy.argument_checks import rank_of

LinAlgError = np.linalg.LinAlgError

EighResult = np.linalg.eigh(np.eye(1)).__class__
EigResult = np.linalg.eig(np.eye(1)).__class__
SVDResult = np.linalg.svd(np.eye(1)).__class__
QRResult = np.linalg.qr(np.eye(1)).__class__
SlogdetResult = np.linalg.slogdet(np.eye(1)).__class__


def floating(a: Any) -> Array:
    """An array in a floating-point dtype that LAPACK supports."""
    a = operand(a)
    dtype = dtype_of(a)
    if dtype.kind not in "fc":
        return convert(a, dtype=np.dtype(np.float64))
    if dtype.char not in "fdFD":
        raise TypeError(f"array type {dtype.name} is unsupported in linalg")
    return a


def matrices(a: Any, square: bool = True) -> Array:
    """A stack of floating-point matrices."""
    a = floating(a)
    if rank_of(a) < 2:
        raise LinAlgError(f"{rank_of(a)}-dimensional array given. Array must be at least two-dimensional")
    if square and shape_of(a)[-1] != shape_of(a)[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return a


def matrix(a: Any) -> Array:
    """One floating-point matrix."""
    a = floating(a)
    if rank_of(a) != 2:
        raise LinAlgError(f"{rank_of(a)}-dimensional array given. Array must be two-dimensional")
    return a


def with_batch(x: Array, batch: tuple[int, ...], core: int = 2) -> Array:
    """x broadcast to these batch axes in front of its last `core` axes."""
    shape = shape_of(x)
    target = (*batch, *shape[len(shape) - core :])
    return x if shape == target else broadcast(x, shape=target)
