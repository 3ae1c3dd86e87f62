"""The error function with its scaled, imaginary and inverse forms, Fresnel's integrals, and the normal distribution."""

from __future__ import annotations

import math

from func.interpreters.core import Array, Primitive, dtype_of
from func.interpreters.primitives.elementwise.builder import Elementwise, add, multiply, negative
from func.interpreters.primitives.elementwise.table import absolute, cos, divide, exp, greater, sin, square, subtract
from func.interpreters.primitives.special.builders import by_name, publish, special_primitive, times
from func.interpreters.primitives.structural.shapes import full_like, where

_SLOPE = 2 / math.sqrt(math.pi)
_FAR = 40.0
_ONE = 8.5
"""Where the normal distribution function is 1 in double precision."""


def _bell(x: Array) -> Array:
    """2 / √π exp(-x²)."""
    return multiply(exp(negative(square(x))), _SLOPE)


erf: Elementwise = special_primitive("erf", lambda x: _bell(x), cost=20)
publish(
    erf,
    "z",
    """The error function, real or complex. DLMF 7.2.1.

    >>> import func
    >>> float(func.grad(func.special.erf)(0.0))
    1.1283791670955126
    """,
)
erfc: Elementwise = special_primitive("erfc", lambda x: negative(_bell(x)), cost=20)
publish(erfc, "z", "1 - erf(z). DLMF 7.2.2.")
erfi: Elementwise = special_primitive("erfi", lambda x: multiply(exp(square(x)), _SLOPE))
publish(erfi, "z", "-i erf(i z).")
erfinv: Elementwise = special_primitive("erfinv", lambda out: multiply(exp(square(out)), 1 / _SLOPE))
publish(erfinv, "y", "The inverse of erf on (-1, 1), with infinite slope at the ends.")
erfcinv: Elementwise = special_primitive("erfcinv", lambda out: multiply(exp(square(out)), -1 / _SLOPE))
publish(erfcinv, "y", "The inverse of erfc on (0, 2), with infinite slope at the ends.")


def _far_series(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Σ cₙ (1 / 2x²)ⁿ."""
    y = divide(0.5, square(x))
    out: Array = coefficients[-1]
    for number in coefficients[-2::-1]:
        out = add(multiply(out, y), number)
    return out


def _switched(x: Array, plain: Array, far: Array, both_sides: bool) -> Array:
    """The asymptotic series for large real x, where the plain formula cancels."""
    return where(greater(absolute(x) if both_sides else x, _FAR), far, plain)


def _beyond(x: Array, both_sides: bool) -> Array:
    """x where it is large, elsewhere 1."""
    return where(greater(absolute(x) if both_sides else x, _FAR), x, full_like(x, 1, ()))


def _over_twice(x: Array, y: Array) -> Array:
    """x / y² without the square, whose own square in a derivative is beyond all numbers."""
    return divide(divide(x, y), y)


def _erfcx_partial(x: Array, out: Array) -> Array:
    """2 x erfcx(x) - 2 / √π; for large x by the series of DLMF 7.12.1, as the terms cancel."""
    plain = subtract(times(x, out, 2), _SLOPE)
    if dtype_of(x).kind == "c":
        return plain
    y = _beyond(x, False)
    series = _far_series(y, (1.0, -3.0, 15.0, -105.0, 945.0, -10395.0, 135135.0))
    return _switched(x, plain, _over_twice(multiply(series, -0.5 * _SLOPE), y), False)


erfcx: Elementwise = special_primitive("erfcx", _erfcx_partial)
publish(erfcx, "z", "exp(z²) erfc(z).")


def _dawsn_partial(x: Array, out: Array) -> Array:
    """1 - 2 x D(x); for large x by the series of D from DLMF 7.12.1, as the terms cancel."""
    plain = subtract(1, times(x, out, 2))
    if dtype_of(x).kind == "c":
        return plain
    y = _beyond(x, True)
    series = _far_series(y, (1.0, 3.0, 15.0, 105.0, 945.0, 10395.0, 135135.0))
    return _switched(x, plain, _over_twice(multiply(series, -0.5), y), True)


# DLMF 7.10.3.
dawsn: Elementwise = special_primitive("dawsn", _dawsn_partial)
publish(dawsn, "z", "Dawson's integral, real or complex. DLMF 7.2.5.")
# DLMF 7.10.2.
wofz: Elementwise = special_primitive("wofz", lambda x, out: add(times(x, out, -2), 1j * _SLOPE), is_complex=True)
publish(wofz, "z", "Faddeeva's function w(z) = exp(-z²) erfc(-i z), complex. DLMF 7.2.3.")


def _fresnel_slopes(x: Array, *outs: Array) -> tuple[Array, Array]:
    """sin(π x² / 2) and cos(π x² / 2)."""
    angle = multiply(square(x), math.pi / 2)
    return sin(angle), cos(angle)


fresnel: Primitive = by_name(
    "fresnel", "z", outs=2, z=_fresnel_slopes, doc="Fresnel's integrals (S(z), C(z)). DLMF 7.2.7 and 7.2.8."
)


def _normal(x: Array) -> Array:
    """exp(-x² / 2) / √(2π)."""
    return multiply(exp(multiply(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))


def _hazard(x: Array) -> Array:
    """The derivative of log Φ, √(2 / π) / erfcx(-x / √2), which never is 0 / 0; to the right, where Φ is 1, that of Φ.

    There erfcx grows until it is infinite, and so do its derivatives.
    """
    if dtype_of(x).kind == "c":
        return divide(math.sqrt(2 / math.pi), erfcx(multiply(x, -math.sqrt(0.5))))
    is_one = greater(x, _ONE)
    left = where(is_one, full_like(x, 0, ()), x)
    hazard = divide(math.sqrt(2 / math.pi), erfcx(multiply(left, -math.sqrt(0.5))))
    return where(is_one, _normal(x), hazard)


ndtr: Elementwise = special_primitive("ndtr", lambda x: _normal(x))
publish(ndtr, "x", "The normal distribution function Φ(x), real or complex.")
log_ndtr: Elementwise = special_primitive("log_ndtr", lambda x: _hazard(x))
publish(log_ndtr, "x", "log Φ(x), accurate in the far tail.")
ndtri: Elementwise = special_primitive(
    "ndtri", lambda out: multiply(exp(multiply(square(out), 0.5)), math.sqrt(2 * math.pi))
)
publish(ndtri, "p", "The inverse of Φ on (0, 1), with infinite slope at the ends.")
ndtri_exp: Elementwise = special_primitive("ndtri_exp", lambda out: divide(1, _hazard(out)))
publish(ndtri_exp, "y", "The x with log Φ(x) = y, for y < 0.")


def _owens_partial_h(x: Array, y: Array) -> Array:
    """-φ(h) erf(a h / √2) / 2. Source: D. Owen (1956), Tables for computing bivariate normal probabilities."""
    return times(_normal(x), erf(times(x, y, math.sqrt(0.5))), -0.5)


def _owens_partial_a(x: Array, y: Array) -> Array:
    """exp(-h² (1 + a²) / 2) / (2π (1 + a²))."""
    scale = add(square(y), 1)
    return divide(multiply(exp(times(square(x), scale, -0.5)), 0.5 / math.pi), scale)


owens_t: Elementwise = special_primitive("owens_t", _owens_partial_h, _owens_partial_a)
publish(owens_t, "h a", "Owen's T function. Source: D. Owen (1956).")
