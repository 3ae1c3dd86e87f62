"""Exponential, trigonometric and elliptic integrals, hypergeometric functions, spherical harmonics."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import derivative_families
from func.interpreters.primitives.special import integrals as ops
from func.special.protocol import implements_scipy, in_first_loop

# fmt: off
__all__ = [
    "agm", "cbrt", "cosdg", "cosm1", "cotdg", "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "exp1", "exp2",
    "exp10", "expi", "expm1", "expn", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "lambertw", "log1p", "shichi", "sici",
    "sinc", "sindg", "spence", "tandg", "wrightomega",
]
# fmt: on


def cbrt(x: Array) -> Array:
    """The real cube root."""
    return ops.cbrt(operand(x))


def exp2(x: Array) -> Array:
    """2^x."""
    return ops.exp2(operand(x))


def exp10(x: Array) -> Array:
    """10^x."""
    return ops.exp10(operand(x))


def expm1(z: Array) -> Array:
    """exp(z) - 1 without cancellation, real or complex."""
    return ops.expm1(operand(z))


def log1p(z: Array) -> Array:
    """log(1 + z) without cancellation, real or complex."""
    return ops.log1p(operand(z))


def cosm1(x: Array) -> Array:
    """cos(x) - 1 without cancellation."""
    return ops.cosm1(operand(x))


def sindg(x: Array) -> Array:
    """The sine of an angle in degrees."""
    return ops.sindg(operand(x))


def cosdg(x: Array) -> Array:
    """The cosine of an angle in degrees."""
    return ops.cosdg(operand(x))


def tandg(x: Array) -> Array:
    """The tangent of an angle in degrees."""
    return ops.tandg(operand(x))


def cotdg(x: Array) -> Array:
    """The cotangent of an angle in degrees."""
    return ops.cotdg(operand(x))


def exp1(z: Array) -> Array:
    """The exponential integral E₁(z), real or complex. DLMF 6.2.1."""
    return ops.exp1(operand(z))


def expi(z: Array) -> Array:
    """The exponential integral Ei(z), real or complex. DLMF 6.2.5."""
    return ops.expi(operand(z))


def expn(n: Array, x: Array) -> Array:
    """The exponential integral Eₙ(x) of integer n >= 0, x > 0. DLMF 8.19.2."""
    return ops.expn(operand(n), operand(x))


@implements_scipy("sici")
def sici(z: Array) -> tuple[Array, ...]:
    """The sine and cosine integrals (Si(z), Ci(z)). DLMF 6.2.9 and 6.2.11."""
    return tuple(ops.sici(operand(z)))


@implements_scipy("shichi")
def shichi(z: Array) -> tuple[Array, ...]:
    """The hyperbolic sine and cosine integrals (Shi(z), Chi(z)). DLMF 6.2.15 and 6.2.16."""
    return tuple(ops.shichi(operand(z)))


def spence(z: Array) -> Array:
    """The dilogarithm ∫₁ᶻ log t / (1 - t) dt, real or complex. DLMF 25.12.2 at 1 - z."""
    return ops.spence(operand(z))


def wrightomega(z: Array) -> Array:
    """Wright's ω, with ω + log ω = z. DLMF 4.13."""
    return ops.wrightomega(operand(z))


def ellipkinc(phi: Array, m: Array) -> Array:
    """The incomplete elliptic integral of the first kind F(φ|m), by the parameter m = k². DLMF 19.2.4."""
    return ops.ellipkinc(operand(phi), operand(m))


def ellipeinc(phi: Array, m: Array) -> Array:
    """The incomplete elliptic integral of the second kind E(φ|m), by the parameter m = k². DLMF 19.2.5."""
    return ops.ellipeinc(operand(phi), operand(m))


def agm(a: Array, b: Array) -> Array:
    """The arithmetic-geometric mean of positive numbers. DLMF 19.8.5."""
    return ops.agm(operand(a), operand(b))


def hyp0f1(v: Array, z: Array) -> Array:
    """The confluent limit function 0F1(; v; z); no derivative by v. DLMF 16.2.1."""
    return ops.hyp0f1(operand(v), operand(z))


def hyp1f1(a: Array, b: Array, x: Array) -> Array:
    """Kummer's function M(a, b, x); no derivative by a and b. DLMF 13.2.2."""
    return ops.hyp1f1(operand(a), operand(b), operand(x))


def hyperu(a: Array, b: Array, x: Array) -> Array:
    """Tricomi's function U(a, b, x), x > 0; no derivative by a and b. DLMF 13.2.6."""
    return ops.hyperu(operand(a), operand(b), operand(x))


@implements_scipy("hyp2f1")
def hyp2f1(a: Array, b: Array, c: Array, z: Array) -> Array:
    """Gauss' function F(a, b; c; z); no derivative by a, b and c. DLMF 15.2.1."""
    return ops.hyp2f1(operand(a), operand(b), operand(c), operand(z))


@implements_scipy("ellipk")
def ellipk(m: Array) -> Array:
    """The complete elliptic integral of the first kind K(m), by the parameter m = k². DLMF 19.2.8."""
    return ops.ellipk(in_first_loop(m), order=0)


@implements_scipy("ellipkm1")
def ellipkm1(p: Array) -> Array:
    """K(1 - p), accurate for small p."""
    return ops.ellipkm1(in_first_loop(p), order=0)


@implements_scipy("ellipe")
def ellipe(m: Array) -> Array:
    """The complete elliptic integral of the second kind E(m), by the parameter m = k². DLMF 19.2.8."""
    return ops.ellipe(in_first_loop(m), order=0)


def sinc(x: Array) -> Array:
    """sin(πx) / (πx), as np.sinc."""
    return derivative_families.sinc(operand(x), order=0)


@implements_scipy("_lambertw")
def lambertw(z: Array, k: Any = 0, tol: float = 1e-8) -> Array:
    """Lambert's W(z) of the branch k, complex, with W exp(W) = z. DLMF 4.13.1.

    >>> import func
    >>> float(func.grad(lambda z: func.special.lambertw(z).real)(0.0))
    1.0
    """
    return ops.lambertw(operand(z), operand(k), tol)
