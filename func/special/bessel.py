"""Bessel, Airy and Struve functions. Derivatives by the order are not defined and raise."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import bessel as ops
from func.special.protocol import implements_scipy

# fmt: off
__all__ = [
    "airy", "hankel1", "hankel1e", "hankel2", "hankel2e", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv",
    "jve", "k0", "k0e", "k1", "k1e", "kn", "kv", "kve", "modstruve", "spherical_in", "spherical_jn", "spherical_kn",
    "spherical_yn", "struve", "y0", "y1", "yn", "yv", "yve",
]
# fmt: on


def j0(x: Array) -> Array:
    """The Bessel function of the first kind and order 0. DLMF 10.2.2.

    >>> import func
    >>> float(func.grad(func.special.j0)(0.0))
    -0.0
    """
    return ops.j0(operand(x))


def j1(x: Array) -> Array:
    """The Bessel function of the first kind and order 1. DLMF 10.2.2."""
    return ops.j1(operand(x))


def jv(v: Array, z: Array) -> Array:
    """The Bessel function of the first kind and real order v. DLMF 10.2.2."""
    return ops.jv(operand(v), operand(z))


def jve(v: Array, z: Array) -> Array:
    """jv(v, z) exp(-|Im z|); holomorphic for real z only."""
    return ops.jve(operand(v), operand(z))


def y0(x: Array) -> Array:
    """The Bessel function of the second kind and order 0, x > 0. DLMF 10.2.3."""
    return ops.y0(operand(x))


def y1(x: Array) -> Array:
    """The Bessel function of the second kind and order 1, x > 0. DLMF 10.2.3."""
    return ops.y1(operand(x))


def yn(n: Array, x: Array) -> Array:
    """The Bessel function of the second kind and integer order n, x > 0."""
    return ops.yn(operand(n), operand(x))


def yv(v: Array, z: Array) -> Array:
    """The Bessel function of the second kind and real order v. DLMF 10.2.3."""
    return ops.yv(operand(v), operand(z))


def yve(v: Array, z: Array) -> Array:
    """yv(v, z) exp(-|Im z|); holomorphic for real z only."""
    return ops.yve(operand(v), operand(z))


def hankel1(v: Array, z: Array) -> Array:
    """The Hankel function of the first kind, J + i Y. DLMF 10.4.3."""
    return ops.hankel1(operand(v), operand(z))


def hankel1e(v: Array, z: Array) -> Array:
    """hankel1(v, z) exp(-i z)."""
    return ops.hankel1e(operand(v), operand(z))


def hankel2(v: Array, z: Array) -> Array:
    """The Hankel function of the second kind, J - i Y. DLMF 10.4.3."""
    return ops.hankel2(operand(v), operand(z))


def hankel2e(v: Array, z: Array) -> Array:
    """hankel2(v, z) exp(i z)."""
    return ops.hankel2e(operand(v), operand(z))


def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 0. DLMF 10.25.2."""
    return ops.i0(operand(x))


def i0e(x: Array) -> Array:
    """i0(x) exp(-|x|), where the derivative of |x| at zero is taken as zero."""
    return ops.i0e(operand(x))


def i1(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 1. DLMF 10.25.2."""
    return ops.i1(operand(x))


def i1e(x: Array) -> Array:
    """i1(x) exp(-|x|)."""
    return ops.i1e(operand(x))


def iv(v: Array, z: Array) -> Array:
    """The modified Bessel function of the first kind and real order v. DLMF 10.25.2."""
    return ops.iv(operand(v), operand(z))


def ive(v: Array, z: Array) -> Array:
    """iv(v, z) exp(-|Re z|); holomorphic for real z only."""
    return ops.ive(operand(v), operand(z))


def k0(x: Array) -> Array:
    """The modified Bessel function of the second kind and order 0, x > 0. DLMF 10.25.3."""
    return ops.k0(operand(x))


def k0e(x: Array) -> Array:
    """k0(x) exp(x)."""
    return ops.k0e(operand(x))


def k1(x: Array) -> Array:
    """The modified Bessel function of the second kind and order 1, x > 0. DLMF 10.25.3."""
    return ops.k1(operand(x))


def k1e(x: Array) -> Array:
    """k1(x) exp(x)."""
    return ops.k1e(operand(x))


def kn(n: Array, x: Array) -> Array:
    """The modified Bessel function of the second kind and integer order n, x > 0."""
    return ops.kn(operand(n), operand(x))


def kv(v: Array, z: Array) -> Array:
    """The modified Bessel function of the second kind and real order v. DLMF 10.25.3."""
    return ops.kv(operand(v), operand(z))


def kve(v: Array, z: Array) -> Array:
    """kv(v, z) exp(z)."""
    return ops.kve(operand(v), operand(z))


@implements_scipy("airy")
def airy(z: Array) -> tuple[Array, ...]:
    """The Airy functions and their derivatives (Ai, Ai', Bi, Bi'), real or complex. DLMF 9.2."""
    return tuple(ops.airy(operand(z)))


def struve(v: Array, x: Array) -> Array:
    """Struve's function of real order v, x > 0. DLMF 11.2.1."""
    return ops.struve(operand(v), operand(x))


def modstruve(v: Array, x: Array) -> Array:
    """The modified Struve function of real order v, x > 0. DLMF 11.2.2."""
    return ops.modstruve(operand(v), operand(x))


jn = jv


def _spherical(primitive: Any, n: Any, z: Array, derivative: bool) -> Array:
    """A spherical Bessel function of integer order, or its derivative by the argument."""
    n, z = operand(n), operand(z)
    return primitive.partials[1].rule(n, z) if derivative else primitive(n, z)


@implements_scipy("_spherical_jn")
def spherical_jn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the first kind and integer order n. DLMF 10.47.3."""
    return _spherical(ops.spherical_jn, n, z, derivative)


@implements_scipy("_spherical_yn")
def spherical_yn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the second kind and integer order n. DLMF 10.47.4."""
    return _spherical(ops.spherical_yn, n, z, derivative)


@implements_scipy("_spherical_in")
def spherical_in(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the first kind and integer order n. DLMF 10.47.7."""
    return _spherical(ops.spherical_in, n, z, derivative)


@implements_scipy("_spherical_kn")
def spherical_kn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the second kind and integer order n. DLMF 10.47.9."""
    return _spherical(ops.spherical_kn, n, z, derivative)
