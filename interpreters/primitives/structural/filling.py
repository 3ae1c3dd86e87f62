"""Constant arrays on the backend of a value, and the structural zeros in the place of an absent (co)tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends import namespace_of
from func.interpreters.core import Array, Aval, Linear, Shape, dtype_of, innermost, linear, shape_of
from func.interpreters.core.parameters import DTYPE, SHAPE

# By their own names: `numpy` has a `__getattr__`, so that Python finds np.zeros the long way; and while a transform
# runs, np.array by a function.
_array, _zeros = np.array, np.zeros


def full_like(like: Array, fill: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """A constant array of the shape and dtype of `like` (or as given), on its backend."""
    shape = shape_of(like) if shape is None else shape
    dtype = dtype_of(like) if dtype is None else dtype
    value = innermost(like)
    xp = namespace_of((value,))
    if fill == 0 and type(fill) is int:
        return _zeros(shape, dtype) if xp is np else xp.zeros(shape, dtype)
    return _array(fill, dtype) if xp is np and shape == () else xp.full(shape, fill, dtype)


def zeros_like(like: Array) -> Array:
    """Zeros of the shape, dtype and backend of a value."""
    return full_like(like, 0)


def _absent_batch(x: Array, *, shape: Shape, dtype: Any) -> Array:
    return absent(x, shape=(shape_of(x)[0], *shape), dtype=dtype)


absent: Linear = linear(
    "absent",
    lambda xp, x, *, shape, dtype: xp.zeros(shape, dtype),
    aval=lambda x, *, shape, dtype: Aval(shape, dtype),
    parameters={"shape": SHAPE, "dtype": DTYPE},
    transpose=lambda ct, x, *, shape, dtype: (absent(ct, shape=x.shape, dtype=x.dtype),),
    batch=_absent_batch,
    cost=0,
    mask="padded",
)
"""Zeros in place of an absent (co)tangent, for any (co)tangent x; they are structural."""


def iota(length: int, like: Array) -> Array:
    """0, 1, ..., length - 1 on the backend of `like`."""
    return namespace_of((innermost(like),)).arange(length)
