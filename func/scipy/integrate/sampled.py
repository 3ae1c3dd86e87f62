"""Integrals of samples: Simpson's rule and its running form, on traced values.

SciPy's own code of the trapezoidal rules and of Romberg's is NumPy code, which runs on traced values as it is. That of
Simpson's rules divides by the distances of the nodes only where they are not zero, and tests the nodes; here that is
done in NumPy functions with derivatives. What is refused, and the dtype of the result, SciPy itself says, on arrays of
ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate as _scipy

from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.control.compiled_bodies import is_abstract
from func.interpreters.core import Array, Tracer, concrete, dtype_of, shape_of
from func.interpreters.stage import Stage
from func.interpreters.vmap import Vmap
from func.numpy import asarray


@with_converters
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integral along an axis by the composite Simpson's rule, with derivatives in the samples, `x` and `dx`.

    Where two nodes are equal the terms that divide by their distance are zero, as in SciPy, and so is their derivative.
    """
    if not holds_traced((y, x, dx)):
        return original(_scipy.simpson)(y, x, dx=dx, axis=axis)
    y, x = asarray(y), None if x is None else asarray(x)
    like = original(_scipy.simpson)(_ones(y), None if x is None else _nodes(x), dx=_one(dx), axis=axis)
    y = np.moveaxis(y, axis, -1)
    if x is None:
        h = np.full(max(y.shape[-1] - 1, 0), 1.0) * dx
    else:
        h = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1), axis=-1)
    count = y.shape[-1]
    if count % 2:
        total = _pairs(y, h)
    elif count == 2:
        total = 0.5 * h[..., 0] * (y[..., 0] + y[..., 1])
    else:
        total = _pairs(y[..., :-1], h[..., :-1]) + _last(y[..., -3:], h[..., -2], h[..., -1])
    return asarray(total).astype(asarray(like).dtype)[()]


def _pairs(y: Array, h: Array) -> Array:
    """Simpson's rule over pairs of intervals of lengths h."""
    h0, h1 = h[..., 0::2], h[..., 1::2]
    whole, ratio = h0 + h1, _quotient(h0, h1)
    left = y[..., 0:-2:2] * (2.0 - _quotient(1.0, ratio))
    middle = y[..., 1:-1:2] * (whole * _quotient(whole, h0 * h1))
    return np.sum(whole / 6.0 * (left + middle + y[..., 2::2] * (2.0 - ratio)), axis=-1)


def _last(y: Array, h0: Array, h1: Array) -> Array:
    """The integral over the last of two intervals, by the parabola through three points.

    Source: K. V. Cartwright, J. Math. Sci. Math. Educ. 12 (2017), equation 8.
    """
    alpha = _quotient(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _quotient(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = _quotient(h1**3, 6 * h0 * (h0 + h1))
    return alpha * y[..., 2] + beta * y[..., 1] - eta * y[..., 0]


def _quotient(x: Any, y: Any) -> Array:
    """x / y, and zero where y is."""
    is_zero = y == 0
    return np.where(is_zero, 0.0, x / np.where(is_zero, 1.0, y))


@with_converters
def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Array:
    """Running integral along an axis by Simpson's rule, with derivatives in samples, `x`, `dx` and `initial`.

    Raises:
        ValueError: The numbers of `x` are known and do not increase; in traced code their order is not looked at.
    """
    if not holds_traced((y, x, dx, initial)):
        return original(_scipy.cumulative_simpson)(y, x=x, dx=dx, axis=axis, initial=initial)
    y = asarray(y)
    given_dx = _ones(asarray(dx)) if holds_traced(dx) else dx
    x, dx, initial = [None if value is None else asarray(value) for value in (x, dx, initial)]
    nodes = None if x is None else known(x)
    if nodes is not None and np.any(np.diff(nodes, axis=axis if nodes.ndim > 1 else 0) <= 0):
        raise ValueError("Input x must be strictly increasing.")
    like = original(_scipy.cumulative_simpson)(
        _ones(y),
        x=None if x is None else _nodes(x, axis if x.ndim > 1 else 0),
        dx=given_dx,
        axis=axis,
        initial=None if initial is None else _ones(initial),
    )
    y = np.moveaxis(y, axis, -1)
    count = y.shape[-1]
    if x is not None:
        h = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1), axis=-1)
    else:
        h = dx if dx.ndim == 0 or count < 3 else np.moveaxis(dx, axis, -1)
    h = np.broadcast_to(h, (*y.shape[:-1], count - 1))
    if count < 3:
        out = np.cumsum(h * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    else:
        first = _first_of_two(h[..., :-1], h[..., 1:], y[..., :-2], y[..., 1:-1], y[..., 2:])
        second = _first_of_two(h[..., 1:], h[..., :-1], y[..., 2:], y[..., 1:-1], y[..., :-2])
        takes_first = np.arange(count - 2) % 2 == 0
        inner = np.where(takes_first[1:], first[..., 1:], second[..., :-1])
        out = np.cumsum(np.concatenate([first[..., :1], inner, second[..., -1:]], axis=-1), axis=-1)
    if initial is not None:
        start = np.broadcast_to(initial if initial.ndim == 0 else np.moveaxis(initial, axis, -1), (*y.shape[:-1], 1))
        out = np.concatenate([start, out + start], axis=-1)
    return np.moveaxis(out.astype(like.dtype), -1, axis)


def _first_of_two(h1: Array, h2: Array, y1: Array, y2: Array, y3: Array) -> Array:
    """The integral over the first of two intervals, by the parabola through their ends.

    Source: K. V. Cartwright, J. Math. Sci. Math. Educ. 12 (2017), equation 8.
    """
    part, ratio = h1 / (h1 + h2), h1 / h2
    product = part * ratio
    return h1 / 6 * ((3 - part) * y1 + (3 + product + part) * y2 - product * y3)


def known(value: Any) -> Any:
    """The plain array behind a value; None for a batch and in compiled code."""
    inner = value
    while type(inner) is Tracer:
        if isinstance(inner._interpreter, (Stage, Vmap)):
            return None
        inner = inner._value
    return inner


def numbers_of(value: Any) -> Any:
    """The plain array behind a value, for which a batch is split where its elements differ; None in compiled code."""
    return None if is_abstract(value) else concrete(value)


def _ones(value: Array) -> Any:
    return np.ones(shape_of(value), dtype_of(value))


def _nodes(value: Array, axis: int = 0) -> Any:
    """Increasing nodes of a shape and dtype."""
    shape = shape_of(value)
    if not shape:
        return _ones(value)
    axis %= len(shape)
    counts = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(counts, shape).astype(dtype_of(value))


def _one(value: Any) -> Any:
    return _ones(value)[()] if holds_traced(value) else value
