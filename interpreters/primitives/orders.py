"""Functions whose derivatives of every order are one row each: sinc, and the Bessel function behind np.i0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import Array, Aval, Params, dtype_of
from func.interpreters.primitives.elementwise import add, multiply
from func.interpreters.primitives.kinds import Row, general
from func.interpreters.primitives.structural import convert


def _ordered(name: str, impl: Callable[..., Array], slope: Callable[[Array, int], Array]) -> Row:
    """A row with a parameter `order`: the function's derivative of that order, whose own slope is given."""

    def aval(x: Aval, *, order: int) -> Aval:
        return Aval(x.shape, x.dtype if x.dtype.kind in "fc" else np.float64)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Array]:
        (x,), (dx,) = primals, tangents
        out = row(x, order=order)
        return out, convert(multiply(slope(x, order), dx), dtype=dtype_of(out))

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return row(args[0], **params)

    row = general(name, impl, aval=aval, batch=batch, jvp=jvp)
    return row


_SERIES_RADIUS = 3.0


def _sinc_series(y: Array, order: int) -> Array:
    """The derivative of Σ (-1)^k y^2k / (2k+1)! of an order, for small y."""
    total = 0.0 * y
    first = (order + 1) // 2
    for k in range(first + 15, first - 1, -1):
        coefficient = (-1) ** k / (2 * k + 1) * (1.0 / math.factorial(2 * k - order))
        total = total * (y * y) + coefficient
    return total if 2 * first == order else total * y


def _sinc_impl(xp: Any, x: Array, *, order: int) -> Array:
    y = math.pi * xp.asarray(x)
    if order == 0:
        tiny = xp.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
        y = xp.where(y, y, xp.asarray(tiny, y.dtype))
        return (xp.sin(y) / y)[()]
    small = xp.abs(y) < _SERIES_RADIUS
    far = xp.where(small, xp.asarray(1, y.dtype), y)
    waves = (xp.sin(far), xp.cos(far))
    value = waves[0] / far
    for n in range(1, order + 1):  # y s⁽ⁿ⁾ + n s⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾ y, from y s = sin y
        wave = waves[n % 2] * (-1 if n % 4 > 1 else 1)
        value = (wave - n * value) / far
    near = _sinc_series(xp.where(small, y, xp.asarray(0, y.dtype)), order)
    return (math.pi**order * xp.where(small, near, value))[()]


sinc: Row = _ordered("sinc", _sinc_impl, lambda x, order: sinc(x, order=order + 1))
"""The derivative of an order of sin(πx) / (πx); of order zero as NumPy computes it."""


def _i0_impl(xp: Any, x: Array, *, order: int) -> Array:
    """The modified Bessel function of the first kind; cupyx has no iv, there it is a recurrence."""
    if order == 0:
        return xp.i0(x)[()]
    special = scipy_of(xp, "special")
    x = xp.asarray(x) if dtype_of(x).kind == "f" else xp.asarray(x).astype(float)
    value = special.i1(x) if order == 1 else special.iv(order, x)
    return value.astype(x.dtype)[()]


def _i0_slope(x: Array, order: int) -> Array:
    if order == 0:
        return i0(x, order=1)
    return multiply(add(i0(x, order=order - 1), i0(x, order=order + 1)), 0.5)


i0: Row = _ordered("i0", _i0_impl, _i0_slope)
"""The modified Bessel function of the first kind; of order zero as NumPy computes it."""
