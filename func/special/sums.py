"""Softmax and logarithms of sums of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, Array, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise.table import logaddexp
from func.interpreters.primitives.special import logsumexp as ops
from func.interpreters.primitives.structural.reductions import keep_axes
from func.interpreters.primitives.structural.shapes import broadcast, convert, full_like
from func.numpy.argument_checks import floating, normalize_axes, to_dtype
from func.numpy.utilities import result_type

# fmt: off
__all__ = [
    "log_softmax", "logsumexp", "softmax", "softplus",
]
# fmt: on


def _of_exponentials(x: Array) -> Array:
    """An array in the dtype of its exponentials, a small one for small integers."""
    x = operand(x)
    if not hasattr(x, "dtype") or dtype_of(x).kind not in "iu":
        return floating(x)
    return convert(x, dtype=np.exp.resolve_dtypes((dtype_of(x), None))[1])


def softmax(x: Array, axis: Any = None) -> Array:
    """exp(x) / Σ exp(x) over `axis` (None: all axes).

    >>> import numpy as np, func
    >>> float(func.special.softmax(np.array([0.0, 0.0]))[0])
    0.5
    """
    x = _of_exponentials(x)
    return ops.softmax(x, axes=normalize_axes(axis, len(shape_of(x))))


def log_softmax(x: Array, axis: Any = None) -> Array:
    """x - log Σ exp(x) over `axis` (None: all axes)."""
    x = _of_exponentials(x)
    return ops.log_softmax(x, axes=normalize_axes(axis, len(shape_of(x))))


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """x broadcast to a shape."""
    return x if shape_of(x) == shape else broadcast(x, shape=shape)


def logsumexp(a: Array, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log Σ b exp(a) over `axis` (None: all axes) without overflow; b defaults to 1.

    A negative sum of real numbers gives NaN. With `return_sign` the result is the pair of log|Σ b exp(a)| and the sign
    of the sum (its phase for complex numbers). Infinite terms share the derivative equally.

    >>> import numpy as np, func
    >>> func.grad(lambda x: func.special.logsumexp(x))(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    if b is not None:
        a, b = operand(a), operand(b)
        dtype = result_type(a, b)
        a, b = [floating(_as_dtype(x, dtype)) for x in (a, b)]
    a = floating(a)
    shape = np.broadcast_shapes(shape_of(a), () if b is None else shape_of(b))
    full = shape or (1,)
    axes = normalize_axes(axis, len(full))
    a = _broadcast_to(a, full)
    if b is None and not return_sign:
        outs = (ops.logsumexp(a, axes=axes),)
    else:
        weights = full_like(a, 1, full) if b is None else _broadcast_to(b, full)
        outs = ops.weighted_logsumexp(a, weights, axes=axes, signed=return_sign)
    if keepdims:
        outs = tuple([keep_axes(out, full, axes) for out in outs])
    return tuple(outs) if return_sign else outs[0]


def _as_dtype(x: Array, dtype: np.dtype[Any]) -> Array:
    return np.asarray(x, dtype)[()] if type(x) in PYTHON_SCALARS else to_dtype(x, dtype)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), the integral of expit."""
    return logaddexp(0, operand(x))
