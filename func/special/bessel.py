"""Bessel functions and their relatives. None has a derivative by its order, which is refused."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import bessel as rows


def j0(x: Array) -> Array:
    """The Bessel function of the first kind and order 0. DLMF 10.2.2.

    >>> import func
    >>> float(func.grad(func.special.j0)(0.0))
    -0.0
    """
    return rows.j0(operand(x))


def j1(x: Array) -> Array:
    """The Bessel function of the first kind and order 1. DLMF 10.2.2."""
    return rows.j1(operand(x))


def jv(v: Array, z: Array) -> Array:
    """The Bessel function of the first kind and real order v. DLMF 10.2.2."""
    return rows.jv(operand(v), operand(z))


def jve(v: Array, z: Array) -> Array:
    """jv(v, z) exp(-|Im z|); holomorphic for real z only."""
    return rows.jve(operand(v), operand(z))


def y0(x: Array) -> Array:
    """The Bessel function of the second kind and order 0, x > 0. DLMF 10.2.3."""
    return rows.y0(operand(x))


def y1(x: Array) -> Array:
    """The Bessel function of the second kind and order 1, x > 0. DLMF 10.2.3."""
    return rows.y1(operand(x))


def yn(n: Array, x: Array) -> Array:
    """The Bessel function of the second kind and integer order n, x > 0."""
    return rows.yn(operand(n), operand(x))


def yv(v: Array, z: Array) -> Array:
    """The Bessel function of the second kind and real order v. DLMF 10.2.3."""
    return rows.yv(operand(v), operand(z))


def yve(v: Array, z: Array) -> Array:
    """yv(v, z) exp(-|Im z|); holomorphic for real z only."""
    return rows.yve(operand(v), operand(z))


def hankel1(v: Array, z: Array) -> Array:
    """The Hankel function of the first kind, J + i Y. DLMF 10.4.3."""
    return rows.hankel1(operand(v), operand(z))


def hankel1e(v: Array, z: Array) -> Array:
    """hankel1(v, z) exp(-i z)."""
    return rows.hankel1e(operand(v), operand(z))


def hankel2(v: Array, z: Array) -> Array:
    """The Hankel function of the second kind, J - i Y. DLMF 10.4.3."""
    return rows.hankel2(operand(v), operand(z))


def hankel2e(v: Array, z: Array) -> Array:
    """hankel2(v, z) exp(i z)."""
    return rows.hankel2e(operand(v), operand(z))


def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 0. DLMF 10.25.2."""
    return rows.i0(operand(x))


def i0e(x: Array) -> Array:
    """i0(x) exp(-|x|); at zero the derivative of |x| counts as zero."""
    return rows.i0e(operand(x))


def i1(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 1. DLMF 10.25.2."""
    return rows.i1(operand(x))


def i1e(x: Array) -> Array:
    """i1(x) exp(-|x|)."""
    return rows.i1e(operand(x))


def iv(v: Array, z: Array) -> Array:
    """The modified Bessel function of the first kind and real order v. DLMF 10.25.2."""
    return rows.iv(operand(v), operand(z))


def ive(v: Array, z: Array) -> Array:
    """iv(v, z) exp(-|Re z|); holomorphic for real z only."""
    return rows.ive(operand(v), operand(z))


def k0(x: Array) -> Array:
    """The modified Bessel function of the second kind and order 0, x > 0. DLMF 10.25.3."""
    return rows.k0(operand(x))


def k0e(x: Array) -> Array:
    """k0(x) exp(x)."""
    return rows.k0e(operand(x))


def k1(x: Array) -> Array:
    """The modified Bessel function of the second kind and order 1, x > 0. DLMF 10.25.3."""
    return rows.k1(operand(x))


def k1e(x: Array) -> Array:
    """k1(x) exp(x)."""
    return rows.k1e(operand(x))


def kn(n: Array, x: Array) -> Array:
    """The modified Bessel function of the second kind and integer order n, x > 0."""
    return rows.kn(operand(n), operand(x))


def kv(v: Array, z: Array) -> Array:
    """The modified Bessel function of the second kind and real order v. DLMF 10.25.3."""
    return rows.kv(operand(v), operand(z))


def kve(v: Array, z: Array) -> Array:
    """kv(v, z) exp(z)."""
    return rows.kve(operand(v), operand(z))


def airy(z: Array) -> tuple[Array, ...]:
    """The Airy functions and their derivatives (Ai, Ai', Bi, Bi'), real or complex. DLMF 9.2."""
    return tuple(rows.airy(operand(z)))


def struve(v: Array, x: Array) -> Array:
    """Struve's function of real order v, x > 0. DLMF 11.2.1."""
    return rows.struve(operand(v), operand(x))


def modstruve(v: Array, x: Array) -> Array:
    """The modified Struve function of real order v, x > 0. DLMF 11.2.2."""
    return rows.modstruve(operand(v), operand(x))


jn = jv


def _spherical(row: Any, n: Any, z: Array, derivative: bool) -> Array:
    """A spherical Bessel function of integer order or its derivative by the argument."""
    n, z = operand(n), operand(z)
    if not derivative:
        return row(n, z)
    partial = row.partials[1]
    return partial.rule(n, z)


def spherical_jn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the first kind and integer order n. DLMF 10.47.3."""
    return _spherical(rows.spherical_jn, n, z, derivative)


def spherical_yn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The spherical Bessel function of the second kind and integer order n. DLMF 10.47.4."""
    return _spherical(rows.spherical_yn, n, z, derivative)


def spherical_in(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the first kind and integer order n. DLMF 10.47.7."""
    return _spherical(rows.spherical_in, n, z, derivative)


def spherical_kn(n: Any, z: Array, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the second kind and integer order n. DLMF 10.47.9."""
    return _spherical(rows.spherical_kn, n, z, derivative)
