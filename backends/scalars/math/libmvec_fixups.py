"""Fix-ups of libmvec's functions.

For some arguments libmvec computes lane by lane, ten times slower; if the result is known, it gets a harmless argument
instead. Its sine and cosine pass 1 by an ulp, which would make `arccos` or a square root of the result NaN.
"""

from __future__ import annotations

import math

from func.backends.scalars.math.vector_arithmetic import Emitter, FunctionBody, Real


def logarithm(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """A logarithm of what is not positive and finite."""
    from func.backends.scalars.math.exponential import log_special  # start-up time: sines need none of it

    return log_special(emit, x, library(((x > 0.0) & (x < math.inf)).select(x, 1.0)))


def log1p(emit: Emitter, library: FunctionBody, x: Real) -> Real:
    """log1p of what is not above -1 and finite."""
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
