"""The gamma function and related ones: logarithms, polygamma, zeta, beta, binomial coefficients."""

from __future__ import annotations

import math

from func.backends.array_helpers import special
from func.interpreters.core import Array, Primitive
from func.interpreters.primitives.elementwise.builder import Elementwise, add, multiply, negative
from func.interpreters.primitives.elementwise.table import (
    cos,
    equal,
    isfinite,
    less,
    logical_and,
    logical_not,
    real,
    sin,
    subtract,
)
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.special.builders import (
    missing,
    ordered,
    publish,
    special_constant,
    special_primitive,
    times,
)
from func.interpreters.primitives.structural.shapes import full_like, where

gamma: Elementwise = special_primitive("gamma", lambda x, out: multiply(out, digamma(x)))
publish(
    gamma,
    "z",
    """The gamma function Γ(z), real or complex; poles at 0, -1, -2, ... DLMF 5.2.1.

    >>> import func
    >>> float(func.grad(func.special.gamma)(1.0))
    -0.5772156649015329
    """,
)
gammaln: Elementwise = special_primitive("gammaln", lambda x: digamma(x))
publish(gammaln, "x", "log|Γ(x)| of real x. DLMF 5.2.1.")
loggamma: Elementwise = special_primitive("loggamma", lambda x: digamma(x))
publish(loggamma, "z", "The principal branch of log Γ(z), with the cut along the negative real axis. DLMF 5.4.")
gammasgn = special_constant("gammasgn", 1)
publish(gammasgn, "x", "The sign of Γ(x), which has no derivative.")


def _rgamma_partial(x: Array, out: Array) -> Array:
    """-ψ(x) / Γ(x); left of 1/2 by reflection Γ(1 - x) (cos πx - ψ(1 - x) sin(πx) / π), also at the poles of Γ.

    Source: DLMF 5.5.3.
    """
    left = less(real(x), 0.5)
    inside = where(left, full_like(x, 1, ()), x)
    mirrored = subtract(1, where(left, x, full_like(x, 0, ())))
    angle = multiply(where(left, x, full_like(x, 0, ())), math.pi)
    wave = subtract(cos(angle), times(digamma(mirrored), sin(angle), 1 / math.pi))
    return where(left, multiply(gamma(mirrored), wave), negative(multiply(rgamma(inside), digamma(inside))))


rgamma: Elementwise = special_primitive("rgamma", _rgamma_partial)
publish(rgamma, "z", "1 / Γ(z), an entire function: its derivative holds at the poles of Γ too. DLMF 5.5.3.")

polygamma: Elementwise = special_primitive(
    "polygamma",
    missing("polygamma", "its order n"),
    lambda x, y: polygamma(add(x, 1), y),
    impl=reporting_missing(special.polygamma, "special"),
)
"""ψ⁽ⁿ⁾(x), the arguments in the order n, x. DLMF 5.15."""
digamma: Elementwise = special_primitive("digamma", lambda x: polygamma(1, x))
publish(digamma, "z", "ψ(z) = Γ'(z) / Γ(z), real or complex. DLMF 5.2.2.")

zeta: Elementwise = special_primitive(
    "hurwitz_zeta",
    missing("zeta", "its first argument"),
    lambda x, y: negative(multiply(x, zeta(add(x, 1), y))),
    ufunc="zeta",
)
"""Hurwitz' ζ(s, q) = Σ (k + q)⁻ˢ. DLMF 25.11.17."""
riemann_zeta: Elementwise = special_primitive("riemann_zeta", missing("zeta", "its first argument"), ufunc="zeta")
zetac: Elementwise = special_primitive("zetac", missing("zetac", "its argument"))
publish(zetac, "x", "Riemann's ζ(x) - 1; its derivative is not defined.")


polygamma_gap: Elementwise = special_primitive(
    "polygamma_gap",
    missing("polygamma_gap", "its order n"),
    lambda x, y, z: polygamma_gap(add(x, 1), y, z),
    lambda x, y, z: polygamma(add(x, 1), add(y, z)),
    impl=reporting_missing(special.polygamma_gap, "special"),
)
"""ψ⁽ⁿ⁾(a + d) - ψ⁽ⁿ⁾(a), the arguments in the order n, a, d: differences that keep their digits."""


def digamma_gap(a: Array, d: Array) -> Array:
    """ψ(a + d) - ψ(a)."""
    return polygamma_gap(0, a, d)


gammaln_gap: Elementwise = special_primitive(
    "gammaln_gap",
    lambda x, y: digamma_gap(x, y),
    lambda x, y: digamma(add(x, y)),
    impl=reporting_missing(special.gammaln_gap, "special"),
)
"""log Γ(a + d) - log Γ(a)."""
stirling: Primitive = ordered("stirling", special.stirling)
"""log Γ(x) - (x - 1/2) log x + x - log(2π)/2, which is small for large x."""

beta: Elementwise = special_primitive(
    "beta",
    lambda x, y, out: negative(multiply(out, digamma_gap(x, y))),
    lambda x, y, out: negative(multiply(out, digamma_gap(y, x))),
)
publish(beta, "a b", "Euler's beta function Γ(a) Γ(b) / Γ(a + b). DLMF 5.12.1.")
betaln: Elementwise = special_primitive(
    "betaln", lambda x, y: negative(digamma_gap(x, y)), lambda x, y: negative(digamma_gap(y, x))
)
publish(betaln, "a b", "log|B(a, b)|.")


def _poch_partial_x(x: Array, y: Array, out: Array) -> Array:
    """(x)_m (ψ(x + m) - ψ(x)), which is zero for m = 0 also at the poles of ψ."""
    return multiply(out, _gap_or_nothing(x, y))


def _gap_or_nothing(a: Array, d: Array) -> Array:
    """ψ(a + d) - ψ(a), which is zero for d = 0 also at the poles of ψ."""
    nothing = logical_and(equal(d, 0), logical_not(isfinite(digamma(a))))
    return where(nothing, full_like(a, 0, ()), digamma_gap(a, d))


poch: Elementwise = special_primitive("poch", _poch_partial_x, lambda x, y, out: multiply(out, digamma(add(x, y))))
publish(poch, "x m", "Pochhammer's symbol (x)ₘ = Γ(x + m) / Γ(x). DLMF 5.2.5.")


def _binom_partial_n(x: Array, y: Array, out: Array) -> Array:
    """C(n, k) (ψ(n + 1) - ψ(n - k + 1)), which is zero for k = 0 also at the poles of ψ."""
    return multiply(out, negative(_gap_or_nothing(add(x, 1), negative(y))))


def _binom_partial_k(x: Array, y: Array, out: Array) -> Array:
    """C(n, k) (ψ(n - k + 1) - ψ(k + 1))."""
    return multiply(out, digamma_gap(add(y, 1), subtract(x, multiply(y, 2))))


binom: Elementwise = special_primitive("binom", _binom_partial_n, _binom_partial_k)
publish(binom, "n k", "The binomial coefficient of real n and k. DLMF 1.2.6.")
