"""Functions defined by linear differential equations of second order: Kelvin, Mathieu, spheroidal, parabolic cylinder.

SciPy gives most of them with their first derivatives, and the equation gives the second. Next to them are integrals of
Airy, Bessel and Struve functions. Characteristic values differentiate by their parameter q or c; no other derivative by
an order or a parameter is defined.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.backends.array_helpers import characteristic_values as helpers
from func.interpreters.core import Array, Primitive
from func.interpreters.primitives.elementwise.table import cos, cosh, exp, greater, imag, less, log, real, sqrt
from func.interpreters.primitives.special.bessel import airy, i0, j0, k0, modstruve, struve, y0
from func.interpreters.primitives.special.builders import by_name, check_real, near_zero
from func.interpreters.primitives.structural.shapes import convert, full_like, where

AIRY_FAR, AIRY_TERMS = 16.0, 20


def _airy_numbers() -> tuple[list[float], list[float]]:
    """The coefficients uₖ and vₖ of the expansions in 1/ζ. DLMF 9.7.2."""
    u = [1.0]
    for k in range(1, AIRY_TERMS):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / ((2 * k - 1) * 216 * k))
    return u, [(6 * k + 1) / (1 - 6 * k) * number for k, number in enumerate(u)]


def _airye_far(z: Array, numbers: list[float], power: float, scale: float, step: float) -> Array:
    """The derivative of scale z^power Σ numbersₖ (step/ζ)ᵏ, term by term. DLMF 9.7.5 to 9.7.8."""
    inverse = 1.5 * step / (z * sqrt(z))
    total = full_like(z, 0, ())
    for k in range(AIRY_TERMS - 1, -1, -1):
        total = total * inverse + numbers[k] * (power - 1.5 * k)
    return scale * total * exp((power - 1) * log(z))


def _airye_slopes(z: Array, ai: Array, aip: Array, bi: Array, bip: Array) -> tuple[Array, ...]:
    """The scales are e^ζ and e^(-|Re ζ|) with ζ = 2/3 z^(3/2), whose slope is √z; the second is not holomorphic.

    For large z the terms cancel, and the slopes are those of the expansions.
    """
    check_real("airye", z)
    root = sqrt(where(greater(z, 0), z, full_like(z, 0, ())))
    plain = (aip + root * ai, z * ai + root * aip, bip - root * bi, z * bi - root * bip)
    is_far = greater(z, AIRY_FAR)
    far, (u, v), unit = where(is_far, z, full_like(z, AIRY_FAR, ())), _airy_numbers(), 1 / math.sqrt(math.pi)
    series = (
        _airye_far(far, u, -0.25, unit / 2, -1.0), _airye_far(far, v, 0.25, -unit / 2, -1.0),
        _airye_far(far, u, -0.25, unit, 1.0), _airye_far(far, v, 0.25, unit, 1.0),
    )  # fmt: skip
    return tuple([where(is_far, one, other) for one, other in zip(series, plain, strict=True)])


airye: Primitive = by_name("airye", "z", outs=4, z=_airye_slopes)
"""DLMF 9.2.1."""


TERMS = 12
"""Terms of the series below, which are even: more than double precision needs."""
BER = [(-1) ** k * 4 * k / (2.0 ** (4 * k) * math.factorial(2 * k) ** 2) for k in range(1, TERMS)]
BEI = [(-1) ** k * (4 * k + 2) / (2.0 ** (4 * k + 2) * math.factorial(2 * k + 1) ** 2) for k in range(TERMS)]
BESSEL = [1 / (4.0**k * math.factorial(k) ** 2) for k in range(1, TERMS)]
STRUVE = [(-1) ** k / (2.0 ** (2 * k + 1) * math.gamma(k + 1.5) ** 2) for k in range(TERMS)]


def _ber_slope_over(slope: Array, x: Array) -> Array:
    """ber′(x) / x. DLMF 10.65.1."""
    return near_zero(x, BER, lambda x: slope / x, first=2, step=4)


def _bei_slope_over(slope: Array, x: Array) -> Array:
    """bei′(x) / x. DLMF 10.65.1."""
    return near_zero(x, BEI, lambda x: slope / x, step=4)


def _i0_over(x: Array) -> Array:
    """(I₀(x) - 1) / x. DLMF 10.25.2."""
    return near_zero(x, BESSEL, lambda x: (i0(x) - 1) / x, first=1, step=2)


def _j0_over(x: Array) -> Array:
    """(1 - J₀(x)) / x. DLMF 10.2.2."""
    signed = [(-1) ** k * term for k, term in enumerate(BESSEL)]
    return near_zero(x, signed, lambda x: (1 - j0(x)) / x, first=1, step=2)


def _struve_over(x: Array) -> Array:
    """H₀(x) / x. DLMF 11.2.1."""
    return near_zero(x, STRUVE, lambda x: struve(0.0, x) / x, step=2)


# ber + i bei and ker + i kei solve w'' = i w - w'/x. DLMF 10.61.
ber: Primitive = by_name("ber", "x", x=lambda x, out: berp(x))
bei: Primitive = by_name("bei", "x", x=lambda x, out: beip(x))
ker: Primitive = by_name("ker", "x", x=lambda x, out: kerp(x))
kei: Primitive = by_name("kei", "x", x=lambda x, out: keip(x))
berp: Primitive = by_name("berp", "x", x=lambda x, out: -bei(x) - _ber_slope_over(out, x))
beip: Primitive = by_name("beip", "x", x=lambda x, out: ber(x) - _bei_slope_over(out, x))
kerp: Primitive = by_name("kerp", "x", x=lambda x, out: -kei(x) - out / x)
keip: Primitive = by_name("keip", "x", x=lambda x, out: ker(x) - out / x)


def _kelvin_slopes(x: Array, be: Array, ke: Array, bep: Array, kep: Array) -> tuple[Array, ...]:
    over = _ber_slope_over(real(bep), x) + 1j * _bei_slope_over(imag(bep), x)
    return bep, kep, 1j * be - over, 1j * ke - kep / x


kelvin: Primitive = by_name("kelvin", "x", outs=4, x=_kelvin_slopes)

itairy: Primitive = by_name(
    "itairy", "x", outs=4, x=lambda x, *outs: (airy(x)[0], airy(x)[2], airy(-x)[0], airy(-x)[2])
)
iti0k0: Primitive = by_name("iti0k0", "x", outs=2, x=lambda x, *outs: (i0(x), k0(x)))
it2i0k0: Primitive = by_name("it2i0k0", "x", outs=2, x=lambda x, *outs: (_i0_over(x), -k0(x) / x))
itj0y0: Primitive = by_name("itj0y0", "x", outs=2, x=lambda x, *outs: (j0(x), y0(x)))
it2j0y0: Primitive = by_name("it2j0y0", "x", outs=2, x=lambda x, *outs: (_j0_over(x), -y0(x) / x))
it2struve0: Primitive = by_name("it2struve0", "x", x=lambda x, out: -_struve_over(x))
itmodstruve0: Primitive = by_name("itmodstruve0", "x", x=lambda x, out: modstruve(0.0, x))


def _fresnel(name: str, sign: int) -> Primitive:
    """F = ∫ₓ^∞ e^(± i t²) dt and K = e^(∓ i (x² + π/4)) F / √π."""
    turn = complex(math.cos(math.pi / 4), -sign * math.sin(math.pi / 4)) / math.sqrt(math.pi)
    return by_name(name, "x", outs=2, x=lambda x, f, k: (-exp(sign * 1j * x * x), -2j * sign * x * k - turn))


modfresnelp: Primitive = _fresnel("modfresnelp", 1)
modfresnelm: Primitive = _fresnel("modfresnelm", -1)

# Parabolic cylinder functions. DLMF 12.2.2 and 12.14.1.
pbdv: Primitive = by_name("pbdv", "v x", outs=2, x=lambda v, x, d, dp: (dp, (x * x / 4 - v - 0.5) * d))
pbvv: Primitive = by_name("pbvv", "v x", outs=2, x=lambda v, x, d, dp: (dp, (x * x / 4 - v - 0.5) * d))
pbwa: Primitive = by_name("pbwa", "a x", outs=2, x=lambda a, x, w, wp: (wp, (a - x * x / 4) * w))


def _with_slopes(name: str, arguments: str) -> Primitive:
    """A characteristic value, whose first two derivatives by its last argument NumPy code computes on the host."""
    last = arguments.split()[-1]
    second = by_name(f"{name}_bend", arguments, impl=getattr(helpers, f"{name}_bend"))
    to_second: dict[str, Any] = {last: lambda *args: second(*args[:-1])}
    first = by_name(f"{name}_slope", arguments, impl=getattr(helpers, f"{name}_slope"), **to_second)
    to_first: dict[str, Any] = {last: lambda *args: first(*args[:-1])}
    return by_name(name, arguments, **to_first)


mathieu_a: Primitive = _with_slopes("mathieu_a", "m q")
mathieu_b: Primitive = _with_slopes("mathieu_b", "m q")
_DEGREE = math.pi / 180


def _mathieu(name: str, value: Primitive) -> Primitive:
    """w'' = -(a - 2 q cos 2x) w, of x in degrees. DLMF 28.2.1."""
    return by_name(
        name,
        "m q x",
        outs=2,
        x=lambda m, q, x, w, wp: (
            _DEGREE * wp,
            -_DEGREE * (value(m, q) - 2 * q * cos(2 * _DEGREE * x)) * w,
        ),
    )


def _modified_mathieu(name: str, value: Primitive) -> Primitive:
    """w'' = (a - 2 q cosh 2x) w. DLMF 28.20.1."""
    return by_name(name, "m q x", outs=2, x=lambda m, q, x, w, wp: (wp, (value(m, q) - 2 * q * cosh(2 * x)) * w))


mathieu_cem: Primitive = _mathieu("mathieu_cem", mathieu_a)
mathieu_sem: Primitive = _mathieu("mathieu_sem", mathieu_b)
mathieu_modcem1: Primitive = _modified_mathieu("mathieu_modcem1", mathieu_a)
mathieu_modcem2: Primitive = _modified_mathieu("mathieu_modcem2", mathieu_a)
mathieu_modsem1: Primitive = _modified_mathieu("mathieu_modsem1", mathieu_b)
mathieu_modsem2: Primitive = _modified_mathieu("mathieu_modsem2", mathieu_b)

pro_cv: Primitive = _with_slopes("pro_cv", "m n c")
obl_cv: Primitive = _with_slopes("obl_cv", "m n c")


def _spheroidal(x: Array, w: Array, wp: Array, m: Array, c2: Array, cv: Array) -> tuple[Array, Array]:
    """(1 - x²) w'' = 2x w' - (λ - c² x² - m²/(1 - x²)) w. DLMF 30.2.1."""
    rest = 1 - x * x
    return wp, (2 * x * wp - (cv - c2 * x * x - m * m / rest) * w) / rest


def _oblate_radial(x: Array, w: Array, wp: Array, m: Array, c: Array, cv: Array) -> tuple[Array, Array]:
    """(1 + x²) w'' = -2x w' + (λ - c² x² - m²/(1 + x²)) w."""
    rest = 1 + x * x
    return wp, ((cv - c * c * x * x - m * m / rest) * w - 2 * x * wp) / rest


def _or_else(c: Array, below: float) -> Array:
    """A parameter c in double precision, or another number where it is negative.

    There SciPy's characteristic values and angular functions are those of c = 0, and the others solve no equation.
    """
    c = convert(c, dtype=np.dtype(np.float64))
    return where(less(c, 0), full_like(c, below, ()), c)


def _angular(name: str, sign: int, value: Primitive) -> Primitive:
    if name.endswith("_cv"):
        return by_name(
            name,
            "m n c cv x",
            outs=2,
            x=lambda m, n, c, cv, x, w, wp: _spheroidal(x, w, wp, m, sign * _or_else(c, math.nan) ** 2, cv),
        )
    return by_name(
        name,
        "m n c x",
        outs=2,
        x=lambda m, n, c, x, w, wp: _spheroidal(x, w, wp, m, sign * _or_else(c, 0.0) ** 2, value(m, n, c)),
    )


def _prolate(name: str) -> Primitive:
    if name.endswith("_cv"):
        return _angular(name, 1, pro_cv)
    return by_name(
        name,
        "m n c x",
        outs=2,
        x=lambda m, n, c, x, w, wp: _spheroidal(x, w, wp, m, _or_else(c, math.nan) ** 2, pro_cv(m, n, c)),
    )


def _oblate(name: str) -> Primitive:
    if name.endswith("_cv"):
        return by_name(
            name,
            "m n c cv x",
            outs=2,
            x=lambda m, n, c, cv, x, w, wp: _oblate_radial(x, w, wp, m, _or_else(c, math.nan), cv),
        )
    return by_name(
        name,
        "m n c x",
        outs=2,
        x=lambda m, n, c, x, w, wp: _oblate_radial(x, w, wp, m, _or_else(c, math.nan), obl_cv(m, n, c)),
    )


pro_ang1, pro_ang1_cv = [_angular(name, 1, pro_cv) for name in ("pro_ang1", "pro_ang1_cv")]
pro_rad1, pro_rad2, pro_rad1_cv, pro_rad2_cv = [
    _prolate(name) for name in ("pro_rad1", "pro_rad2", "pro_rad1_cv", "pro_rad2_cv")
]
obl_ang1, obl_ang1_cv = [_angular(name, -1, obl_cv) for name in ("obl_ang1", "obl_ang1_cv")]
obl_rad1, obl_rad2 = [_oblate(name) for name in ("obl_rad1", "obl_rad2")]
obl_rad1_cv, obl_rad2_cv = [_oblate(name) for name in ("obl_rad1_cv", "obl_rad2_cv")]

wright_bessel: Primitive = by_name("wright_bessel", "a b x", x=lambda a, b, x, out: wright_bessel(a, a + b, x))
"""Σ x^k / (k! Γ(a k + b)). DLMF 10.46.1."""
log_wright_bessel: Primitive = by_name(
    "log_wright_bessel", "a b x", x=lambda a, b, x, out: exp(log_wright_bessel(a, a + b, x) - out)
)
besselpoly: Primitive = by_name(
    "besselpoly",
    "a lmb nu",
    a=lambda a, lmb, nu, out: besselpoly(a, lmb + 1, nu - 1) - besselpoly(a, lmb + 1, nu + 1),
)
"""∫₀¹ x^λ J_ν(2 a x) dx, of which 2 J'_ν = J_(ν-1) - J_(ν+1)."""
