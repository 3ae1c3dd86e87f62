"""Error functions, Dawson's and Fresnel's integrals, and the normal distribution function."""

from __future__ import annotations

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import error_functions as ops
from func.special.protocol import implements_scipy

# fmt: off
__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "fresnel", "log_ndtr", "ndtr", "ndtri", "ndtri_exp",
    "owens_t", "wofz",
]
# fmt: on


def erf(z: Array) -> Array:
    """The error function, real or complex. DLMF 7.2.1.

    >>> import func
    >>> float(func.grad(func.special.erf)(0.0))
    1.1283791670955126
    """
    return ops.erf(operand(z))


def erfc(z: Array) -> Array:
    """1 - erf(z). DLMF 7.2.2."""
    return ops.erfc(operand(z))


def erfcx(z: Array) -> Array:
    """exp(z²) erfc(z)."""
    return ops.erfcx(operand(z))


def erfi(z: Array) -> Array:
    """-i erf(i z)."""
    return ops.erfi(operand(z))


def erfinv(y: Array) -> Array:
    """The inverse of erf on (-1, 1), with infinite slope at the ends."""
    return ops.erfinv(operand(y))


def erfcinv(y: Array) -> Array:
    """The inverse of erfc on (0, 2), with infinite slope at the ends."""
    return ops.erfcinv(operand(y))


def dawsn(z: Array) -> Array:
    """Dawson's integral, real or complex. DLMF 7.2.5."""
    return ops.dawsn(operand(z))


def wofz(z: Array) -> Array:
    """Faddeeva's function w(z) = exp(-z²) erfc(-i z), complex. DLMF 7.2.3."""
    return ops.wofz(operand(z))


@implements_scipy("fresnel")
def fresnel(z: Array) -> tuple[Array, ...]:
    """Fresnel's integrals (S(z), C(z)). DLMF 7.2.7 and 7.2.8."""
    return tuple(ops.fresnel(operand(z)))


def ndtr(x: Array) -> Array:
    """The normal distribution function Φ(x), real or complex."""
    return ops.ndtr(operand(x))


def log_ndtr(x: Array) -> Array:
    """log Φ(x), accurate in the far tail."""
    return ops.log_ndtr(operand(x))


def ndtri(p: Array) -> Array:
    """The inverse of Φ on (0, 1), with infinite slope at the ends."""
    return ops.ndtri(operand(p))


def ndtri_exp(y: Array) -> Array:
    """The x with log Φ(x) = y, for y < 0."""
    return ops.ndtri_exp(operand(y))


def owens_t(h: Array, a: Array) -> Array:
    """Owen's T function. Source: D. Owen (1956)."""
    return ops.owens_t(operand(h), operand(a))
