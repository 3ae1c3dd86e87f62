"""Spherical Bessel functions, and functions that return all orders up to one and their derivatives at a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.special import bessel, waves
from func.interpreters.primitives.special.integrals import hyp0f1
from func.interpreters.primitives.structural.shapes import convert
from func.special.protocol import implements_scipy

__all__ = [
    "lmbda", "obl_cv_seq", "pbdv_seq", "pbvv_seq", "pro_cv_seq", "riccati_jn", "riccati_yn", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn",
]  # fmt: skip


def _spherical(primitive: Any, n: Any, z: Array, derivative: bool) -> Array:
    """A spherical Bessel function of integer order, or its derivative by the argument."""
    n, z = operand(n), operand(z)
    return primitive.partials[1].rule(n, z) if derivative else primitive(n, z)


@implements_scipy("_spherical_jn")
def spherical_jn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the first kind and integer order n. DLMF 10.47.3."""
    return _spherical(bessel.spherical_jn, n, z, derivative)


@implements_scipy("_spherical_yn")
def spherical_yn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the second kind and integer order n. DLMF 10.47.4."""
    return _spherical(bessel.spherical_yn, n, z, derivative)


@implements_scipy("_spherical_in")
def spherical_in(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the first kind and integer order n. DLMF 10.47.7."""
    return _spherical(bessel.spherical_in, n, z, derivative)


@implements_scipy("_spherical_kn")
def spherical_kn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the second kind and integer order n. DLMF 10.47.9."""
    return _spherical(bessel.spherical_kn, n, z, derivative)


def _number(x: Array) -> Array:
    x = operand(x)
    if shape_of(x) != ():
        raise ValueError("arguments must be scalars.")
    return convert(x, dtype=np.dtype(np.float64))


def _plain(value: Any, name: str) -> Any:
    """An order, which determines the number of results."""
    if not np.isscalar(value) or isinstance(value, str):
        raise ValueError(f"arguments must be scalars; {name} is a plain number here.")
    return value


def _riccati(n: Any, x: Array, function: Callable[..., Array]) -> tuple[Array, Array]:
    """x f_k(x) of the orders 0 … n, and its derivatives."""
    if _plain(n, "n") < 0 or n != int(n):
        raise ValueError("n must be a non-negative integer.")
    orders, x = np.arange(int(n) + 1), _number(x)
    value = function(orders, x)
    return x * value, value + x * function(orders, x, derivative=True)


def riccati_jn(n: int, x: Array) -> tuple[Array, Array]:
    """Riccati's form x j_k(x) of the spherical Bessel functions of the orders 0 … n, and their derivatives."""
    return _riccati(n, x, spherical_jn)


def riccati_yn(n: int, x: Array) -> tuple[Array, Array]:
    """x y_k(x) of the orders 0 … n, and their derivatives; see `riccati_jn`."""
    return _riccati(n, x, spherical_yn)


def lmbda(v: float, x: Array) -> tuple[Array, Array]:
    """Jahnke and Emde's Γ(ν + 1) (2/x)^ν J_ν(x) of the orders v0, v0 + 1 … v, 0 <= v0 < 1, and their derivatives.

    It is ₀F₁(; ν + 1; -x²/4), whose derivative is -x/(2 (ν + 1)) times the next. DLMF 10.16.9.
    """
    if _plain(v, "v") < 0:
        raise ValueError("argument must be > 0.")
    x = _number(x)
    orders = v - int(v) + np.arange(int(v) + 1)
    square = x * x / -4
    return hyp0f1(orders + 1, square), x / (-2 * (orders + 1)) * hyp0f1(orders + 2, square)


def _cylinder(name: str, v: float, x: Array, function: Callable[..., Any]) -> tuple[Array, Array]:
    if _plain(v, "v") < 0:
        raise UnsupportedFunctionError(
            f"scipy.special.{name} of traced values and a negative order{at_line()}\n"
            f"Use scipy.special.{name.removesuffix('_seq')} of the orders that you need."
        )
    orders = v - int(v) + np.arange(max(int(v), 1) + 1)
    value, slope = function(orders, _number(x))
    return value, slope


def pbdv_seq(v: float, x: Array) -> tuple[Array, Array]:
    """The parabolic cylinder functions D of the orders v0, v0 + 1 … v, 0 <= v0 < 1, and their derivatives."""
    return _cylinder("pbdv_seq", v, x, waves.pbdv)


def pbvv_seq(v: float, x: Array) -> tuple[Array, Array]:
    """The parabolic cylinder functions V of the orders v0, v0 + 1 … v, 0 <= v0 < 1, and their derivatives."""
    return _cylinder("pbvv_seq", v, x, waves.pbvv)


def _characteristic(m: Any, n: Any, c: Array, function: Callable[..., Array]) -> Array:
    """The values of the modes n' = m … n."""
    if any([not math.isfinite(_plain(mode, "a mode")) or mode != math.floor(mode) for mode in (m, n)]):
        raise ValueError("Modes must be integers.")
    if n - m > 199:
        raise ValueError("Difference between n and m is too large.")
    return function(m, np.arange(m, n + 1), _number(c))


def pro_cv_seq(m: int, n: int, c: Array) -> Array:
    """The characteristic values of prolate spheroidal functions of the modes m and m … n."""
    return _characteristic(m, n, c, waves.pro_cv)


def obl_cv_seq(m: int, n: int, c: Array) -> Array:
    """The characteristic values of oblate spheroidal functions of the modes m and m … n."""
    return _characteristic(m, n, c, waves.obl_cv)
