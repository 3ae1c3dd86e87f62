"""Incomplete gamma and beta functions, and distribution functions expressed by them."""

from __future__ import annotations

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import incomplete as ops

# fmt: off
__all__ = [
    "bdtr", "bdtrc", "betainc", "betaincc", "betainccinv", "betaincinv", "chdtr", "chdtrc", "fdtr", "fdtrc", "gammainc",
    "gammaincc", "gammainccinv", "gammaincinv", "gdtr", "gdtrc", "pdtr", "pdtrc", "stdtr",
]
# fmt: on


def gammainc(a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function P(a, x), a > 0, x >= 0. DLMF 8.2.4.

    >>> import func
    >>> round(float(func.grad(func.special.gammainc)(2.0, 1.5)), 12)
    -0.313488637825
    """
    return ops.gammainc(operand(a), operand(x))


def gammaincc(a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function Q = 1 - P. DLMF 8.2.4."""
    return ops.gammaincc(operand(a), operand(x))


def gammaincinv(a: Array, y: Array) -> Array:
    """The x with P(a, x) = y."""
    return ops.gammaincinv(operand(a), operand(y))


def gammainccinv(a: Array, y: Array) -> Array:
    """The x with Q(a, x) = y."""
    return ops.gammainccinv(operand(a), operand(y))


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularised incomplete beta function, a, b > 0, 0 <= x <= 1. DLMF 8.17.2."""
    return ops.betainc(operand(a), operand(b), operand(x))


def betaincc(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b)."""
    return ops.betaincc(operand(a), operand(b), operand(x))


def betaincinv(a: Array, b: Array, y: Array) -> Array:
    """The x with I_x(a, b) = y."""
    return ops.betaincinv(operand(a), operand(b), operand(y))


def betainccinv(a: Array, b: Array, y: Array) -> Array:
    """The x with 1 - I_x(a, b) = y."""
    return ops.betainccinv(operand(a), operand(b), operand(y))


def stdtr(df: Array, t: Array) -> Array:
    """Student's distribution function; its third derivative by df is not defined."""
    return ops.stdtr(operand(df), operand(t))


def chdtr(v: Array, x: Array) -> Array:
    """The χ² distribution function of v degrees of freedom, P(v / 2, x / 2)."""
    return ops.chdtr(operand(v), operand(x))


def chdtrc(v: Array, x: Array) -> Array:
    """1 - chdtr(v, x)."""
    return ops.chdtrc(operand(v), operand(x))


def gdtr(a: Array, b: Array, x: Array) -> Array:
    """The gamma distribution function of rate a and shape b, P(b, a x)."""
    return ops.gdtr(operand(a), operand(b), operand(x))


def gdtrc(a: Array, b: Array, x: Array) -> Array:
    """1 - gdtr(a, b, x)."""
    return ops.gdtrc(operand(a), operand(b), operand(x))


def fdtr(dfn: Array, dfd: Array, x: Array) -> Array:
    """The F distribution function; its third derivatives by the degrees of freedom are not defined."""
    return ops.fdtr(operand(dfn), operand(dfd), operand(x))


def fdtrc(dfn: Array, dfd: Array, x: Array) -> Array:
    """1 - fdtr(dfn, dfd, x)."""
    return ops.fdtrc(operand(dfn), operand(dfd), operand(x))


def bdtr(k: Array, n: Array, p: Array) -> Array:
    """The binomial distribution function; it has a derivative by p alone."""
    return ops.bdtr(operand(k), operand(n), operand(p))


def bdtrc(k: Array, n: Array, p: Array) -> Array:
    """1 - bdtr(k, n, p)."""
    return ops.bdtrc(operand(k), operand(n), operand(p))


def pdtr(k: Array, m: Array) -> Array:
    """The Poisson distribution function; it has a derivative by the mean m alone."""
    return ops.pdtr(operand(k), operand(m))


def pdtrc(k: Array, m: Array) -> Array:
    """1 - pdtr(k, m)."""
    return ops.pdtrc(operand(k), operand(m))
