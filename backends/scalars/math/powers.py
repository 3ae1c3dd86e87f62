"""Powers and roots."""

from __future__ import annotations

import math

from func.backends.scalars.math.exponential import exp_of_sum
from func.backends.scalars.math.vector_arithmetic import Coefficients, Emitter, Mask, Real

# ((log((1 + s) / (1 - s)) / s - 2) / s² - 2/3) / s² in s², |s| ≤ (√2 - 1) / (√2 + 1). Minimax, below 2**-72.
LOG_TAIL = (
    0.39999999999999986, 0.2857142857144198, 0.22222222218169596, 0.18181818803798463, 0.1538456083974202,
    0.13336181695864577, 0.116772990822783, 0.11970218717292179,
)  # fmt: skip
TWO_THIRDS = (2 / 3, 3.700743415417188e-17)
LN2 = (float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45"))

# As `LOG` and `EXP` of `exponential`, to 2**-44 and 2**-31: single precision computed in double.
LOG_MIDDLE = (0.6666666667577124, 0.3999999563040095, 0.285721083366857, 0.22176220899319704, 0.19583707350074356)
EXP_MIDDLE = (
    0.5000000044768186, 0.16666666820382875, 0.04166635436535997, 0.00833327178571282, 0.001394131365016174,
    0.00019915065511378244,
)  # fmt: skip

# ∛m on [√½, √2]. Minimax, below 2**-19 (2**-13) of it.
CBRT = Coefficients(
    double=(
        0.4216900165134256, 1.056013911018043, -0.8360675544244991, 0.5109638040761283, -0.1795559185114059,
        0.02695475464441175,
    ),
    single=(0.49250966908638494, 0.7397177595429176, -0.2903791225510943, 0.058220938918513515),
)  # fmt: skip


def log_sum(emit: Emitter, x: Real) -> tuple[Real, Real]:
    """log x of positive finite x as a sum of two numbers, to 2**-64 of it.

    As log x = n ln 2 + 2s + s³·(2/3 + s²·R(s²)) with s = (m - 1) / (m + 1), where the sums and products that
    matter carry their rounding errors.
    """
    mantissa, exponent = emit.mantissa_exponent(x)
    f = mantissa - 1.0
    below, below_rest = emit.two_sum(emit.number(2.0), f)
    inverse = 1.0 / below
    s = f * inverse
    back, back_rest = emit.two_product(s, below)
    s_rest = (((f - back) - back_rest) - s * below_rest) * inverse
    z, z_rest = emit.two_product(s, s)
    z_rest = emit.fma(s + s, s_rest, z_rest)
    w, w_rest = emit.two_sum(emit.number(TWO_THIRDS[0]), z * emit.polynomial(z, LOG_TAIL))
    zw, zw_rest = emit.two_product(z, w)
    zw_rest = zw_rest + (z * (w_rest + TWO_THIRDS[1]) + z_rest * w)
    cubic, cubic_rest = emit.two_product(s, zw)
    cubic_rest = cubic_rest + (s * zw_rest + s_rest * zw)
    total, lost = emit.two_sum(exponent * LN2[0], s + s)
    total, lost_too = emit.two_sum(total, cubic)
    rest = (lost + lost_too) + (emit.fma(exponent, LN2[1], s_rest + s_rest) + cubic_rest)
    return emit.two_sum(total, rest)


def power_of_positive(emit: Emitter, x: Real, y: Real) -> Real:
    """x**y in double precision of positive finite x."""
    high, low = log_sum(emit, x)
    product, rest = emit.two_product(y, high)
    rest = rest + y * low
    return exp_of_sum(emit, product, (abs(product) < 800.0).select(rest, 0.0))


def power_in_double(emit: Emitter, x: Real, y: Real) -> Real:
    """x**y in single precision of positive finite x, by 2**(y log2 x) in double precision."""
    x, y = emit.widened(x), emit.widened(y)
    wide = x.emit
    mantissa, exponent = wide.mantissa_exponent(x, subnormal=False)
    f = mantissa - 1.0
    s = f / (f + 2.0)
    z = s * s
    log2 = wide.fma(wide.fma(s * z, wide.polynomial(z, LOG_MIDDLE), s + s), 1 / math.log(2), exponent)
    scaled = (y * log2).at_most(300.0).at_least(-300.0)
    n = wide.nearest(scaled)
    r = (scaled - n) * math.log(2)
    value = wide.fma(r * r, wide.polynomial(r, EXP_MIDDLE), r) + 1.0
    return emit.narrowed(value * wide.power_of_two(n))


def power(emit: Emitter, x: Real, y: Real) -> Real:
    """x**y."""
    size = abs(x)
    edge = size.equals(0.0) | size.equals(math.inf)
    positive = edge.select(1.0, size)
    usual = (power_of_positive if emit.double else power_in_double)(emit, positive, y)
    whole, is_odd = parity(emit, y)
    usual = ((x < 0.0) & ~whole & ~edge).select(math.nan, usual)
    rising = (size > 1.0).select(y, -y)
    limit = (rising > 0.0).select(math.inf, 0.0)
    limit = size.equals(1.0).select(1.0, limit)
    usual = (edge | abs(y).equals(math.inf)).select(limit, usual)
    usual = usual.flipped(is_odd.bits_where(x.sign_bit()))
    usual = (x.is_nan() | y.is_nan()).select(x + y, usual)
    return (y.equals(0.0) | x.equals(1.0)).select(1.0, usual)


def parity(emit: Emitter, y: Real) -> tuple[Mask, Mask]:
    """The masks of integers and of odd integers in y; numbers beyond 2**digits are integers, beyond twice that even."""
    size = abs(y)
    whole_above = 2.0 ** (emit.digits + 1)
    bounded = size.at_most(whole_above)
    below = emit.intrinsic("floor", bounded)
    half = bounded * 0.5
    whole = bounded.equals(below)
    return whole, whole & ~half.equals(emit.intrinsic("floor", half))


def cbrt(emit: Emitter, x: Real) -> Real:
    """The cube root: a polynomial of the mantissa, then one step of Halley's iteration."""
    size = abs(x)
    mantissa, exponent = emit.mantissa_exponent(size)
    third = emit.nearest(exponent, 1 / 3)
    over = exponent - third * 3.0
    factor = (over > 0.0).select(2.0 ** (1 / 3), (over < 0.0).select(2.0 ** (-1 / 3), 1.0))
    scaled = mantissa * (over > 0.0).select(2.0, (over < 0.0).select(0.5, 1.0))
    guess = emit.polynomial(mantissa, emit.coefficients(CBRT)) * factor
    cube = guess * guess * guess
    root = guess - guess * ((cube - scaled) / (cube + cube + scaled))
    usual = (root * emit.power_of_two(third)).with_sign(x)
    return ((size > 0.0) & (size < math.inf)).select(usual, x)


def hypot(emit: Emitter, x: Real, y: Real) -> Real:
    """√(x² + y²), scaled by a power of two where squares would leave the range."""
    a, b = abs(x), abs(y)
    greater = a.at_least(b)
    large, small = greater > 2.0 ** emit.pick(510, 62), greater < 2.0 ** emit.pick(-450, -40)
    step = emit.pick(600, 98)
    up = large.select(2.0**-step, small.select(2.0**step, 1.0))
    down = large.select(2.0**step, small.select(2.0**-step, 1.0))
    a, b = a * up, b * up
    usual = emit.sqrt(emit.fma(a, a, b * b)) * down
    return (abs(x).equals(math.inf) | abs(y).equals(math.inf)).select(math.inf, usual)
