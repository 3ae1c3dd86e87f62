"""Trigonometric functions of degrees, and exponential, elliptic and hypergeometric integrals."""

from __future__ import annotations

import math
from typing import Any

from func.backends.array_helpers import special as support_special
from func.interpreters.core import Array, Primitive, dtype_of
from func.interpreters.primitives.elementwise.builder import Elementwise, add, multiply, negative
from func.interpreters.primitives.elementwise.table import (
    absolute,
    cos,
    divide,
    equal,
    exp,
    less,
    log,
    sin,
    sqrt,
    square,
    subtract,
)
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.special.builders import (
    by_name,
    missing,
    near_zero,
    ordered,
    publish,
    special_primitive,
    times,
)
from func.interpreters.primitives.special.derivative_families import sinc
from func.interpreters.primitives.special.logistic import log1prel
from func.interpreters.primitives.structural.shapes import full_like, where

_DEGREE = math.pi / 180

cbrt: Elementwise = special_primitive("special_cbrt", lambda out: divide(1, multiply(square(out), 3)), ufunc="cbrt")
publish(cbrt, "x", "The real cube root.")
exp2: Elementwise = special_primitive("special_exp2", lambda out: multiply(out, math.log(2)), ufunc="exp2")
publish(exp2, "x", "2^x.")
exp10: Elementwise = special_primitive("exp10", lambda out: multiply(out, math.log(10)))
publish(exp10, "x", "10^x.")
expm1: Elementwise = special_primitive("special_expm1", lambda x: exp(x), ufunc="expm1")
publish(expm1, "z", "exp(z) - 1 without cancellation, real or complex.")
log1p: Elementwise = special_primitive("special_log1p", lambda x: divide(1, add(x, 1)), ufunc="log1p")
publish(log1p, "z", "log(1 + z) without cancellation, real or complex.")
cosm1: Elementwise = special_primitive("cosm1", lambda x: negative(sin(x)))
publish(cosm1, "x", "cos(x) - 1 without cancellation.")
sindg: Elementwise = special_primitive("sindg", lambda x: multiply(cosdg(x), _DEGREE))
publish(sindg, "x", "The sine of an angle in degrees.")
cosdg: Elementwise = special_primitive("cosdg", lambda x: multiply(sindg(x), -_DEGREE))
publish(cosdg, "x", "The cosine of an angle in degrees.")
tandg: Elementwise = special_primitive("tandg", lambda out: multiply(add(square(out), 1), _DEGREE))
publish(tandg, "x", "The tangent of an angle in degrees.")
cotdg: Elementwise = special_primitive("cotdg", lambda x: divide(-_DEGREE, square(sindg(x))))
publish(cotdg, "x", "The cotangent of an angle in degrees.")

exp1: Elementwise = special_primitive("exp1", lambda x: negative(divide(exp(negative(x)), x)))
publish(exp1, "z", "The exponential integral E₁(z), real or complex. DLMF 6.2.1.")
expi: Elementwise = special_primitive("expi", lambda x: divide(exp(x), x))
publish(expi, "z", "The exponential integral Ei(z), real or complex. DLMF 6.2.5.")


def _expn_partial(x: Array, y: Array) -> Array:
    """-E_(n-1)(y); for n = 0 it is -e^(-y) (1 + y) / y². DLMF 8.19.13."""
    first = equal(x, 0)
    lower = subtract(where(first, full_like(x, 1, ()), x), 1)
    edge = divide(multiply(exp(negative(y)), add(y, 1)), square(y))
    return negative(where(first, edge, expn(lower, y)))


expn: Elementwise = special_primitive("expn", missing("expn", "its order n"), _expn_partial)
publish(expn, "n x", "The exponential integral Eₙ(x) of integer n >= 0, x > 0. DLMF 8.19.2.")


def _sici_slopes(x: Array, *outs: Array) -> tuple[Array, Array]:
    """sin x / x and cos x / x. DLMF 6.2.9 and 6.2.11."""
    return sinc(multiply(x, 1 / math.pi), order=0), divide(cos(x), x)


_SINE = [1 / math.factorial(2 * k + 1) for k in range(14)]


def _shichi_slopes(x: Array, *outs: Array) -> tuple[Array, Array]:
    """sinh x / x and cosh x / x; the former as a function of i x or by its series, so that it is regular at zero."""
    if dtype_of(x).kind == "c":
        sine = sinc(multiply(x, 1j / math.pi), order=0)
    else:
        sine = near_zero(x, _SINE, lambda x: divide(multiply(subtract(exp(x), exp(negative(x))), 0.5), x), step=2)
    return sine, divide(multiply(add(exp(x), exp(negative(x))), 0.5), x)


sici: Primitive = by_name(
    "sici", "z", outs=2, z=_sici_slopes, doc="The sine and cosine integrals (Si(z), Ci(z)). DLMF 6.2.9 and 6.2.11."
)
shichi: Primitive = by_name(
    "shichi",
    "z",
    outs=2,
    z=_shichi_slopes,
    doc="The hyperbolic sine and cosine integrals (Shi(z), Chi(z)). DLMF 6.2.15 and 6.2.16.",
)


def _spence_partial(x: Array) -> Array:
    """log x / (1 - x); near 1 by a function of x - 1, which loses the digits of a small x."""
    gap = subtract(x, 1)
    near = less(absolute(gap), 0.5)
    inner, outer = where(near, gap, full_like(gap, 0, ())), where(near, full_like(x, 2, ()), x)
    return where(near, negative(log1prel(inner, order=0)), divide(log(outer), subtract(1, outer)))


spence: Elementwise = special_primitive("spence", _spence_partial)
publish(spence, "z", "The dilogarithm ∫₁ᶻ log t / (1 - t) dt, real or complex. DLMF 25.12.2 at 1 - z.")

lambertw: Elementwise = special_primitive(
    "lambertw",
    lambda out: divide(exp(negative(out)), add(out, 1)),
    missing("lambertw", "its branch k"),
    missing("lambertw", "its tolerance"),
    is_complex=True,
)
"""W of z, its branch k and a tolerance. DLMF 4.13.4."""
wrightomega: Elementwise = special_primitive("wrightomega", lambda out: divide(out, add(out, 1)))
publish(wrightomega, "z", "Wright's ω, with ω + log ω = z. DLMF 4.13.")

ellipk: Primitive = ordered("ellipk", support_special.ellipk)
publish(ellipk, "m", "The complete elliptic integral of the first kind K(m), by the parameter m = k². DLMF 19.2.8.")
ellipkm1: Primitive = ordered("ellipkm1", support_special.ellipkm1)
publish(ellipkm1, "p", "K(1 - p), accurate for small p.")
ellipe: Primitive = ordered("ellipe", support_special.ellipe)
publish(ellipe, "m", "The complete elliptic integral of the second kind E(m), by the parameter m = k². DLMF 19.2.8.")


def _root(phi: Array, m: Array) -> Array:
    """√(1 - m sin²φ)."""
    return sqrt(subtract(1, multiply(m, square(sin(phi)))))


def _cubed_partial(x: Array, y: Array) -> Array:
    """sin²φ / (2 (1 - m sin²φ)^(3/2))."""
    root = _root(x, y)
    return divide(multiply(square(sin(x)), 0.5), times(root, root, root))


ellipkinc: Elementwise = special_primitive(
    "ellipkinc", lambda x, y: divide(1, _root(x, y)), lambda x, y: ellipkinc_dm(x, y)
)
publish(
    ellipkinc,
    "phi m",
    "The incomplete elliptic integral of the first kind F(φ|m), by the parameter m = k². DLMF 19.2.4.",
)
ellipeinc: Elementwise = special_primitive("ellipeinc", lambda x, y: _root(x, y), lambda x, y: ellipeinc_dm(x, y))
publish(
    ellipeinc,
    "phi m",
    "The incomplete elliptic integral of the second kind E(φ|m), by the parameter m = k². DLMF 19.2.5.",
)
ellipkinc_dm: Elementwise = special_primitive(
    "ellipkinc_dm",
    _cubed_partial,
    lambda x, y: ellipkinc_dmm(x, y),
    impl=reporting_missing(support_special.ellipkinc_dm, "special"),
)
ellipeinc_dm: Elementwise = special_primitive(
    "ellipeinc_dm",
    lambda x, y: divide(multiply(square(sin(x)), -0.5), _root(x, y)),
    lambda x, y: ellipeinc_dmm(x, y),
    impl=reporting_missing(support_special.ellipeinc_dm, "special"),
)


def _bend_partial(x: Array, y: Array, factor: float, power: int) -> Array:
    """A factor times sin⁴φ (1 - m sin²φ)^(-power/2)."""
    return divide(multiply(square(square(sin(x))), factor), times(*[_root(x, y)] * power))


ellipkinc_dmm: Elementwise = special_primitive(
    "ellipkinc_dmm",
    lambda x, y: _bend_partial(x, y, 0.75, 5),
    missing("the second derivative of ellipkinc by m", "m"),
    impl=support_special.ellipkinc_dmm,
)
ellipeinc_dmm: Elementwise = special_primitive(
    "ellipeinc_dmm",
    lambda x, y: _bend_partial(x, y, -0.25, 3),
    missing("the second derivative of ellipeinc by m", "m"),
    impl=support_special.ellipeinc_dmm,
)


def _agm_partial(a: Array, b: Array, out: Array) -> Array:
    """By a, from agm = π (a + b) / (4 K) with K at the complement p = 4 a b / (a + b)². DLMF 19.8.5."""
    total_ab, gap = add(a, b), subtract(a, b)
    first, second = divide(a, total_ab), divide(b, total_ab)
    slope = ellipkm1(times(first, second, 4), order=1)
    turn = times(divide(out, total_ab), divide(out, total_ab), slope, second, divide(gap, total_ab), 16 / math.pi)
    return add(divide(out, total_ab), turn)


agm: Elementwise = special_primitive(
    "agm", lambda x, y, out: _agm_partial(x, y, out), lambda x, y, out: _agm_partial(y, x, out)
)
publish(agm, "a b", "The arithmetic-geometric mean of positive numbers. DLMF 19.8.5.")

hyp0f1: Elementwise = special_primitive(
    "hyp0f1", missing("hyp0f1", "its parameter v"), lambda x, y: divide(hyp0f1(add(x, 1), y), x)
)
publish(hyp0f1, "v z", "The confluent limit function 0F1(; v; z); no derivative by v. DLMF 16.2.1.")
# DLMF 13.3.15.
hyp1f1: Elementwise = special_primitive(
    "hyp1f1",
    missing("hyp1f1", "its parameter a"),
    missing("hyp1f1", "its parameter b"),
    lambda x, y, z: multiply(divide(x, y), hyp1f1(add(x, 1), add(y, 1), z)),
)
publish(hyp1f1, "a b x", "Kummer's function M(a, b, x); no derivative by a and b. DLMF 13.2.2.")
# DLMF 13.3.22.
hyperu: Elementwise = special_primitive(
    "hyperu",
    missing("hyperu", "its parameter a"),
    missing("hyperu", "its parameter b"),
    lambda x, y, z: negative(multiply(x, hyperu(add(x, 1), add(y, 1), z))),
)
publish(hyperu, "a b x", "Tricomi's function U(a, b, x), x > 0; no derivative by a and b. DLMF 13.2.6.")


def _unavailable(function: str, argument: str) -> Any:
    """`missing` for a partial of all arguments."""
    raise_missing = missing(function, argument)
    return lambda *values: raise_missing()


def _hyp2f1_partial(a: Array, b: Array, c: Array, z: Array, out: Array) -> Array:
    """a b / c F(a + 1, b + 1; c + 1; z). DLMF 15.5.1."""
    return multiply(divide(multiply(a, b), c), hyp2f1(add(a, 1), add(b, 1), add(c, 1), z))


hyp2f1: Primitive = by_name(
    "hyp2f1",
    "a b c z",
    z=_hyp2f1_partial,
    doc="Gauss' function F(a, b; c; z); no derivative by a, b and c. DLMF 15.2.1.",
    **{name: _unavailable("hyp2f1", f"its parameter {name}") for name in "abc"},
)


def _ladder(n: Array, m: Array, theta: Array, phi: Array, step: int) -> Array:
    """√((n ∓ m) (n ± m + 1)) e^(∓ i φ) Y_n^(m ± 1)."""
    size = sqrt(multiply(subtract(n, multiply(m, step)), add(add(n, multiply(m, step)), 1.0)))
    inside = less(multiply(m, step), n)
    shifted = where(inside, add(m, step), m)
    return times(size, exp(multiply(phi, -1j * step)), sph_harm_y(n, shifted, theta, phi))


def _harmonic_partial_theta(n: Array, m: Array, theta: Array, phi: Array, out: Array) -> Array:
    """Half the difference of the two ladder operators. DLMF 14.10.3 and 14.30.1.

    SciPy's function depends on cos θ alone, so its slope changes the sign where sin θ does.
    """
    half = where(less(sin(theta), 0), full_like(theta, -0.5, ()), full_like(theta, 0.5, ()))
    return multiply(subtract(_ladder(n, m, theta, phi, 1), _ladder(n, m, theta, phi, -1)), half)


sph_harm_y: Primitive = by_name(
    "sph_harm_y",
    "n m theta phi",
    n=_unavailable("sph_harm_y", "its degree n"),
    m=_unavailable("sph_harm_y", "its order m"),
    theta=_harmonic_partial_theta,
    phi=lambda n, m, theta, phi, out: times(out, m, 1j),
    doc="",
)
