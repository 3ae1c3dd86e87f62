"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math

from func.backends.scalars.math.exponential import exp_reduced, expm1_quarter, log1p_usual, near_zero, reduced
from func.backends.scalars.math.vector_arithmetic import Emitter, Real


def sinh(emit: Emitter, x: Real) -> Real:
    """The hyperbolic sine: (t + t / (t + 1)) / 2 with t = e**|x| - 1, of which a quarter is finite where sinh is."""
    quarter = expm1_quarter(emit, abs(x).at_most(emit.pick(710.6, 89.5)))
    half = quarter + quarter / (quarter * 4.0 + 1.0)
    return near_zero(emit, x, half + half)


def cosh(emit: Emitter, x: Real) -> Real:
    """The hyperbolic cosine, by a quarter of e**|x|."""
    n, r = reduced(emit, abs(x).at_most(emit.pick(710.6, 89.5)))
    quarter = exp_reduced(emit, r) * emit.power_of_two(n - 2.0)
    return quarter + quarter + 0.125 / quarter


def tanh(emit: Emitter, x: Real) -> Real:
    """The hyperbolic tangent: t / (t + 2) with t = e**(2|x|) - 1."""
    quarter = expm1_quarter(emit, abs(x).at_most(emit.pick(22.0, 10.0)) * 2.0)
    return near_zero(emit, x, quarter / (quarter + 0.5))


def sech_squared(emit: Emitter, x: Real) -> Real:
    """1 / cosh²: 4 (r - r²) with r = 1 / (e**(2|x|) + 1), whose divisor is infinite where the result is subnormal."""
    inverse = 1.0 / emit.fma(emit.call("expm1_double_quarter", x), 4.0, 2.0)
    return emit.fma(-inverse, inverse, inverse) * 4.0


def tanh_with_sech_squared(emit: Emitter, x: Real) -> Real:
    """The hyperbolic tangent by the same r: 1 - 2 r, and t r near zero."""
    quarter = emit.call("expm1_double_quarter", x)
    inverse = 1.0 / emit.fma(quarter, 4.0, 2.0)
    far = emit.fma(inverse, -2.0, 1.0)
    return near_zero(emit, x, (inverse < 0.25).select(far, quarter * 4.0 * inverse))


def expm1_double_quarter(emit: Emitter, x: Real) -> Real:
    """(e**(2|x|) - 1) / 4 up to where e**(2|x|) is infinite."""
    return expm1_quarter(emit, abs(x).at_most(emit.pick(355.0, 44.4)) * 2.0)


def arcsinh(emit: Emitter, x: Real) -> Real:
    """The inverse hyperbolic sine: log1p(|x| + x² / (1 + √(1 + x²))), for large ones log 2|x|."""
    size = abs(x)
    large = size > 2.0 ** emit.pick(28, 14)
    bounded = large.select(1.0, size)
    square = bounded * bounded
    inner = bounded + square / (emit.sqrt(square + 1.0) + 1.0)
    usual = log1p_usual(emit, large.select(size - 1.0, inner)) + large.select(math.log(2), 0.0)
    return (size < math.inf).select(usual.with_sign(x), x)


def arccosh(emit: Emitter, x: Real) -> Real:
    """The inverse hyperbolic cosine: log1p(t + √(2t + t²)) with t = x - 1, for large ones log 2x."""
    large = x > 2.0 ** emit.pick(28, 14)
    t = large.select(1.0, x - 1.0)
    inner = t + emit.sqrt(emit.fma(t, t, t + t))
    usual = log1p_usual(emit, large.select(x - 1.0, inner)) + large.select(math.log(2), 0.0)
    return ((x >= 1.0) & (x < math.inf)).select(usual, (x < 1.0).select(math.nan, x))


def arctanh(emit: Emitter, x: Real) -> Real:
    """The inverse hyperbolic tangent: ½ log1p(2|x| / (1 - |x|))."""
    size = abs(x)
    usual = log1p_usual(emit, (size + size) / (1.0 - size)) * 0.5
    outside = size.equals(1.0).select(math.inf, (size > 1.0).select(math.nan, size))
    return (size < 1.0).select(usual, outside).with_sign(x)
