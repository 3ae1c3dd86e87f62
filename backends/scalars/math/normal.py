"""The error function, its complement, and the normal distribution."""

from __future__ import annotations

import math

from func.backends.scalars.math.exponential import exp_of_sum
from func.backends.scalars.math.vector_arithmetic import Coefficients, Emitter, Real

# erf(v) / v - 1 in v², |v| ≤ 0.8. Minimax.
ERF = Coefficients(
    double=(
        0.12837916709551256, -0.3761263890318363, 0.11283791670947425, -0.026866170643244928, 0.005223977601730442,
        -0.0008548325282856669, 0.00012055253193700988, -1.4923294835606602e-05, 1.6417213012397639e-06,
        -1.58288177488748e-07, 1.1082613304694253e-08,
    ),
    single=(0.12837917, -0.37612605, 0.11283143, -0.026822109, 0.0050874413, -0.00065496075),
)  # fmt: skip

# (1 + 2v) exp(v²) erfc(v) in t = (v - K) / (v + K), 0 ≤ v ≤ 28 (10). Minimax, below 2**-56 (2**-29) of it. Source of
# the form: Shepherd and Laframboise (1981), Mathematics of Computation 36.
CENTRE = {64: 3.5, 32: 3.0}
ERFCX = Coefficients(
    double=(
        1.2423492448711544, -0.14000918013761926, -0.010555596332215362, 0.09751909515324077, -0.11508959816036674,
        0.08798315382548996, -0.048823325823747356, 0.01909933093254344, -0.004215019959463533,
        -0.00030226779298454543, 0.0005643847993584359, -0.00012151285116505971, -4.278401345833376e-05,
        2.4262293474651037e-05, 2.333706818342603e-06, -3.8170960482754165e-06, -5.480639840832842e-08,
        6.034628875504026e-07, 4.973539588773781e-09, -9.527323689513108e-08, -8.357743806143628e-09,
        1.1056631643687758e-08, 2.6757367481957924e-09,
    ),
    single=(
        1.253008, -0.13562115, -0.047562398, 0.12964642, -0.11927097, 0.06829577, -0.023797529, 0.0025673788,
        0.0020018097, -0.0007775882, -0.00026812978,
    ),
)  # fmt: skip
SMALL = 0.8


def erf_excess(emit: Emitter, v: Real) -> Real:
    """erf(v) - v of |v| ≤ 0.8."""
    return v * emit.polynomial(v * v, emit.coefficients(ERF))


def erfcx_quotient(emit: Emitter, v: Real) -> tuple[Real, Real]:
    """exp(v²) erfc(v) of v ≥ 0 as numerator and denominator 1 + 2v."""
    centre = CENTRE[emit.width]
    t = (v - centre) / (v + centre)
    first, *others = emit.coefficients(ERFCX)
    return emit.fma(t, emit.polynomial(t, others), first), emit.fma(v, 2.0, 1.0)


def tail(emit: Emitter, v: Real, square: Real, rest: Real) -> tuple[Real, Real]:
    """erfc(v) of v ≥ 0 with v² given as a sum of two numbers, and exp(v²) erfc(v).

    The rounding errors of the denominator and of the quotient enter the exponent as a fraction of the result; 0.85
    approximates the inverse of the numerator.
    """
    numerator, denominator = erfcx_quotient(emit, v)
    quotient = numerator / denominator
    lost = 1.0 - (denominator - (v + v))
    product, product_rest = emit.two_product(quotient, denominator)
    fraction = ((numerator - product) - product_rest - quotient * lost) * 0.85
    return exp_of_sum(emit, -square, fraction - rest) * quotient, quotient


def complement(emit: Emitter, v: Real, size: Real, tail: Real) -> Real:
    """erfc(v) of bounded v, from `tail` = erfc(|v|) where |v| is not small."""
    excess = erf_excess(emit, v)
    middle = (v < 0.25).select(1.0 - (v + excess), 0.5 - ((v - 0.5) + excess))
    far = (v < 0.0).select(2.0 - tail, tail)
    return (size < SMALL).select(middle, v.is_nan().select(v, far))


def erf(emit: Emitter, x: Real) -> Real:
    """The error function."""
    size = abs(x).at_most(emit.pick(6.0, 4.0))
    numerator, denominator = erfcx_quotient(emit, size)
    far = 1.0 - exp_of_sum(emit, -(size * size), emit.number(0.0)) * numerator / denominator
    return (size < SMALL).select(x + erf_excess(emit, x), far.with_sign(x))


def erfc(emit: Emitter, x: Real) -> Real:
    """1 - erf(x), to full relative accuracy."""
    size = abs(x).at_most(emit.pick(28.0, 10.5))
    return complement(emit, x, size, tail(emit, size, *emit.two_product(size, size))[0])


def ndtr(emit: Emitter, x: Real) -> Real:
    """The normal distribution function, ½ erfc(-x / √2)."""
    size = abs(x).at_most(emit.pick(39.0, 14.7))
    scaled = size * math.sqrt(0.5)
    return complement(emit, x * -math.sqrt(0.5), scaled, tail(emit, scaled, *half_square(emit, size))[0]) * 0.5


def half_square(emit: Emitter, x: Real) -> tuple[Real, Real]:
    """x²/2 as a sum of two numbers."""
    square, rest = emit.two_product(x, x)
    return square * 0.5, rest * 0.5


def log_ndtr(emit: Emitter, x: Real) -> Real:
    """The logarithm of the normal distribution function.

    log1p(-ndtr(-x)) above 0; below, where ndtr(x) = exp(-x²/2) erfcx(-x/√2) / 2, the sum of the logarithms.
    """
    size = abs(x)
    scaled = size.at_most(emit.pick(1e150, 1e18)) * math.sqrt(0.5)
    probability, factor = tail(emit, scaled, *half_square(emit, size.at_most(40.0)))
    upper = complement(emit, scaled, scaled, probability) * 0.5
    below = emit.call("log", factor * 0.5) - x * x * 0.5
    return (x < 0.0).select(below, emit.call("log1p", -upper))
