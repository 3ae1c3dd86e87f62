"""Exponentials and logarithms."""

from __future__ import annotations

import math

from func.backends.scalars.math.vector_arithmetic import Coefficients, Emitter, Real

# (exp(r) - 1 - r) / r² on |r| ≤ ½ ln 2; the error is below 2**-56 (2**-26) of exp(r) - 1. These and the other
# coefficients without a source are minimax ones, computed by Remez's exchange in 50 digits and rounded.
EXP = Coefficients(
    double=(
        0.5000000000000006, 0.16666666666666685, 0.04166666666657504, 0.008333333333314262, 0.0013888888932705637,
        0.00019841269904424173, 2.4801503429274578e-05, 2.7557226203644516e-06, 2.7626911216047604e-07,
        2.5115161382829403e-08,
    ),
    single=(0.5, 0.1666654, 0.041666277, 0.008367008, 0.0013947155),
)  # fmt: skip

# (log((1 + s) / (1 - s)) / s - 2) / s² on |s| ≤ (√2 - 1) / (√2 + 1), in s².
LOG = Coefficients(
    double=(
        0.6666666666666734, 0.3999999999941692, 0.2857142874196405, 0.22222198611589658, 0.18183562518044646,
        0.15314093180281266, 0.14795551737240722,
    ),
    single=(0.66666776, 0.39977553, 0.2987147),
)  # fmt: skip

# ln 2 and log10 2 as sums of two numbers; n times the first is exact for every exponent n.
LN2 = {
    64: (float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")),
    32: (float.fromhex("0x1.62e0000000000p-1"), float.fromhex("0x1.0bfbe8e7bcd5ep-15")),
}
LOG10_2 = {
    64: (float.fromhex("0x1.34413509f7800p-2"), float.fromhex("0x1.fef311f12b358p-46")),
    32: (float.fromhex("0x1.3440000000000p-2"), float.fromhex("0x1.3509f79fef312p-18")),
}


def reduced(emit: Emitter, x: Real) -> tuple[Real, Real]:
    """n and r with x = n ln 2 + r, |r| ≤ ½ ln 2."""
    high, low = LN2[emit.width]
    n = emit.nearest(x, 1 / math.log(2))
    return n, emit.fma(n, -low, emit.fma(n, -high, x))


def exp_reduced(emit: Emitter, r: Real) -> Real:
    """exp(r) of a reduced argument."""
    return emit.fma(r * r, emit.polynomial(r, emit.coefficients(EXP)), r) + 1.0


def limits(emit: Emitter) -> tuple[float, float]:
    """The arguments below which exp is 0 and above which it is infinite."""
    return emit.pick((-746.0, 710.0), (-104.5, 89.0))


def exp(emit: Emitter, x: Real) -> Real:
    """e**x."""
    below, above = limits(emit)
    n, r = reduced(emit, x.at_most(above).at_least(below))
    return emit.scaled(exp_reduced(emit, r), n)


def exp_of_sum(emit: Emitter, x: Real, rest: Real) -> Real:
    """e**(x + rest) of a rest much smaller than 1."""
    below, above = limits(emit)
    n, r = reduced(emit, x.at_most(above).at_least(below))
    return emit.scaled(exp_reduced(emit, r + rest), n)


def exp2(emit: Emitter, x: Real) -> Real:
    """2**x."""
    x = x.at_most(emit.bias + 1.0).at_least(-emit.bias - emit.digits - 2.0)
    n = emit.nearest(x)
    return emit.scaled(exp_reduced(emit, (x - n) * math.log(2)), n)


def expm1_quarter(emit: Emitter, x: Real) -> Real:
    """(e**x - 1) / 4, which is finite as long as sinh and cosh are; x is bounded."""
    n, r = reduced(emit, x)
    small = emit.fma(r * r, emit.polynomial(r, emit.coefficients(EXP)), r)
    scale = emit.power_of_two(n - 2.0)
    return emit.fma(scale, small, scale - 0.25)


def expm1(emit: Emitter, x: Real) -> Real:
    """e**x - 1."""
    _, above = limits(emit)
    bounded = x.at_most(above).at_least(emit.pick(-40.0, -20.0))
    return near_zero(emit, x, expm1_quarter(emit, bounded) * 4.0)


def near_zero(emit: Emitter, x: Real, usual: Real) -> Real:
    """An odd function of slope 1 with the sign of x; x itself if intermediate values would be subnormal."""
    return (abs(x) < 8 * emit.tiny).select(x, usual.with_sign(x))


def log_parts(emit: Emitter, f: Real) -> tuple[Real, Real]:
    """log(1 + f) = f - (half - rest), for 1 + f in [√½, √2): as half = f²/2 and rest.

    Source: FreeBSD msun, e_log.c: with s = f / (2 + f), log(1 + f) = f - (f²/2 - s·(f²/2 + R(s²))).
    """
    half = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    series = z * emit.polynomial(z, emit.coefficients(LOG))
    return half, s * (half + series)


def log_special(emit: Emitter, x: Real, usual: Real) -> Real:
    """A logarithm with its values outside the positive numbers."""
    outside = x.equals(0.0).select(-math.inf, (x < 0.0).select(math.nan, x))
    return ((x > 0.0) & (x < math.inf)).select(usual, outside)


def log(emit: Emitter, x: Real) -> Real:
    """The natural logarithm."""
    mantissa, exponent = emit.mantissa_exponent(x)
    high, low = LN2[emit.width]
    f = mantissa - 1.0
    half, rest = log_parts(emit, f)
    return log_special(emit, x, exponent * high - ((half - emit.fma(exponent, low, rest)) - f))


def log2(emit: Emitter, x: Real) -> Real:
    """The logarithm to base 2."""
    mantissa, exponent = emit.mantissa_exponent(x)
    f = mantissa - 1.0
    half, rest = log_parts(emit, f)
    return log_special(emit, x, emit.fma(f - (half - rest), 1 / math.log(2), exponent))


def log10(emit: Emitter, x: Real) -> Real:
    """The logarithm to base 10."""
    mantissa, exponent = emit.mantissa_exponent(x)
    high, low = LOG10_2[emit.width]
    f = mantissa - 1.0
    half, rest = log_parts(emit, f)
    natural = f - (half - rest)
    return log_special(emit, x, emit.fma(exponent, high, emit.fma(natural, 1 / math.log(10), exponent * low)))


def log1p_usual(emit: Emitter, x: Real) -> Real:
    """log(1 + x) of -1 < x < inf.

    The rounding error of 1 + x enters as its quotient by 1 + x. Source: FreeBSD msun, s_log1p.c.
    """
    one = x + 1.0
    lost = (x < 1.0).select(x - (one - 1.0), 1.0 - (one - x)) / one
    mantissa, exponent = emit.mantissa_exponent(one)
    high, low = LN2[emit.width]
    f = mantissa - 1.0
    half, rest = log_parts(emit, f)
    return exponent * high - ((half - (emit.fma(exponent, low, lost) + rest)) - f)


def log1p_special(emit: Emitter, x: Real, usual: Real) -> Real:
    """log1p with its values outside the numbers above -1."""
    outside = x.equals(-1.0).select(-math.inf, (x < -1.0).select(math.nan, x))
    return ((x > -1.0) & (x < math.inf)).select(usual, outside)


def log1p(emit: Emitter, x: Real) -> Real:
    """log(1 + x)."""
    return log1p_special(emit, x, log1p_usual(emit, x).with_sign(x))
