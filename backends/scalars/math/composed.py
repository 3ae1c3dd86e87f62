"""Functions composed of other elementary functions, and fix-ups of libmvec's functions.

For some arguments libmvec computes lane by lane, ten times slower; if the result is known, it gets a harmless argument
instead. Its sine and cosine pass 1 by an ulp, which would make `arccos` or a square root of the result NaN.
"""

from __future__ import annotations

import math

from func.backends.scalars.math.vector_arithmetic import Emitter, FunctionBody, Real


def logaddexp(emit: Emitter, x: Real, y: Real) -> Real:
    """log(e**x + e**y), rounded as NumPy's: to an ulp of the greater of |max| and log 2."""
    total = x.at_least(y) + emit.call("log1p", emit.call("exp", -abs(x - y)))
    return x.equals(y).select(x + math.log(2), (x.is_nan() | y.is_nan()).select(x + y, total))


def logaddexp2(emit: Emitter, x: Real, y: Real) -> Real:
    """log2(2**x + 2**y), rounded as `logaddexp`."""
    small = emit.call("log1p", emit.call("exp2", -abs(x - y))) * (1 / math.log(2))
    return x.equals(y).select(x + 1.0, (x.is_nan() | y.is_nan()).select(x + y, x.at_least(y) + small))


def expit(emit: Emitter, x: Real) -> Real:
    """The logistic function, 1 / (1 + e**-x)."""
    small = emit.call("exp", -abs(x))
    return (x < 0.0).select(small, 1.0) / (small + 1.0)


def log_expit(emit: Emitter, x: Real) -> Real:
    """The logarithm of the logistic function."""
    return x.at_most(0.0) - emit.call("log1p", emit.call("exp", -abs(x)))


def logit(emit: Emitter, p: Real) -> Real:
    """log(p / (1 - p)); above ¼ by the inverse hyperbolic tangent, since 2p - 1 is exact there."""
    near = p > 0.25
    upper = emit.call("arctanh", near.select(p * 2.0 - 1.0, 0.0)) * 2.0
    below = near.select(0.25, p)
    return near.select(upper, emit.call("log", below / (1.0 - below)))


def xlogy(emit: Emitter, x: Real, y: Real) -> Real:
    """x log y, and 0 for x = 0 unless y is NaN."""
    zero = x.equals(0.0)
    return (zero & ~y.is_nan()).select(0.0, x * emit.call("log", y))


def xlog1py(emit: Emitter, x: Real, y: Real) -> Real:
    """x log1p y, and 0 for x = 0 unless y is NaN."""
    zero = x.equals(0.0)
    return (zero & ~y.is_nan()).select(0.0, x * emit.call("log1p", y))


def gammaln(emit: Emitter, x: Real) -> Real:
    """log |Γ(x)|, -inf at -inf as in SciPy."""
    return x.equals(-math.inf).select(-math.inf, in_double(emit, "lgamma", x))


def gamma(emit: Emitter, x: Real) -> Real:
    """Γ(x)."""
    return in_double(emit, "tgamma", x)


def in_double(emit: Emitter, name: str, x: Real) -> Real:
    """libm's function in double precision: its single one errs by more than four units."""
    if emit.double:
        return emit.scalar(name, x)
    wide = emit.widened(x)
    return emit.narrowed(wide.emit.scalar(name, wide))


def logarithm(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """A logarithm of numbers that are not positive and finite."""
    from func.backends.scalars.math.exponential import log_special  # start-up time: sines need none of it

    return log_special(emit, x, library(((x > 0.0) & (x < math.inf)).select(x, 1.0)))


def log1p(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """log1p of numbers that are not above -1 and finite."""
    from func.backends.scalars.math.exponential import log1p_special  # start-up time: sines need none of it

    return log1p_special(emit, x, library(((x > -1.0) & (x < math.inf)).select(x, 1.0)))


def bounded(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """A result between -1 and 1."""
    usual: Real = library(x)
    return usual.at_most(1.0).at_least(-1.0)


def erfc(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """erfc where it is 0."""
    vanishing = x > emit.pick(27.5, 10.5)
    return vanishing.select(0.0, library(vanishing.select(1.0, x)))
