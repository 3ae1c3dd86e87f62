"""Gamma and related continuous variates that generated source calls by name."""

from __future__ import annotations

import math
from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of
from func.backends.array_helpers.random import Trials, shaped


def polygamma_of(xp: Any, order: int, x: Any) -> Any:
    """The derivative of the given order of digamma."""
    special = scipy_of(xp, "special")
    return special.digamma(x) if order == 0 else special.polygamma(order, x)


def random_polygamma(xp: Any, a: Any, *, order: int) -> Any:
    """The derivative of the given order of digamma, in the dtype of its argument."""
    a = xp.asarray(a)
    return shaped(xp, polygamma_of(xp, order, a).astype(a.dtype), a.shape)


def in_dtype_of(out: Any, x: Any) -> Any:
    """A result in the dtype of the argument: SciPy widens half precision."""
    dtype = numpy.dtype(getattr(x, "dtype", numpy.float64))
    return out if out.dtype == dtype else out.astype(dtype)


def random_mills(xp: Any, z: Any) -> Any:
    """Mills' ratio of the normal distribution: (1 - Φ(z)) / φ(z)."""
    return in_dtype_of(math.sqrt(math.pi / 2) * scipy_of(xp, "special").erfcx(z * math.sqrt(0.5)), z)


def random_ndtr(xp: Any, x: Any) -> Any:
    """The normal distribution function."""
    return in_dtype_of(scipy_of(xp, "special").ndtr(x), x)


def random_ndtri(xp: Any, p: Any) -> Any:
    """The inverse of the normal distribution function."""
    return in_dtype_of(scipy_of(xp, "special").ndtri(p), p)


def gauss_legendre() -> Any:
    """64 nodes in (0, 1) and their weights, computed once."""
    cache = vars(gauss_legendre)
    if not cache:
        nodes, weights = numpy.polynomial.legendre.leggauss(64)
        cache["rule"] = (nodes + 1) / 2, weights / 2
    return cache["rule"]


def moments_of(xp: Any, stop: Any, exponent: Any, count: int) -> list[Any]:
    """∫ s^k exp(exponent(s)) ds from 0 to `stop` for k < count, one after another along a vector."""
    nodes, weights = [xp.asarray(each) for each in gauss_legendre()]
    s = stop[:, None] * nodes
    terms = xp.exp(exponent(s)) * (stop[:, None] * weights)
    out = []
    for _ in range(count):
        out.append(xp.sum(terms, -1))
        terms = terms * s
    return out


def gamma_slope_below(xp: Any, a: Any, y: Any, order: int) -> Any:
    """The slope for exp(y) <= a + 1; integrals stop where their integrand has fallen by exp(-45).

    With x = e^y and t = x e^(-s) in F(x) = ∫ p(t) dt, integrated by parts:
    dy/da = -(1/a) ((y - ψ(a + 1)) (1 + x I₀) - x I₁),  I_k = ∫₀^∞ s^k exp(-(a + 1) s + x (1 - e^(-s))) ds.
    """
    decay = 45.0
    x = xp.exp(y)
    rest = a + 1 - x
    lead = 2 * rest - decay
    root = xp.sqrt(lead * lead + 8 * decay * (a + 1))
    positive = xp.where(lead > 0, lead, 0.0)
    stop = xp.where(lead > 0, 4 * decay / (positive + root), (root - xp.where(lead > 0, 0.0, lead)) / (2 * (a + 1)))
    rest_, x_ = rest[:, None], x[:, None]
    moments = moments_of(xp, stop, lambda s: -rest_ * s - x_ * (s + xp.expm1(-s)), order + 2)
    logs = [y - polygamma_of(xp, 0, a + 1), *[-polygamma_of(xp, j, a + 1) for j in range(1, order + 1)]]
    first = [(-1) ** k * x * moments[k] + (1 if k == 0 else 0) for k in range(order + 1)]
    brackets = [
        sum([math.comb(k, j) * logs[j] * first[k - j] for j in range(k + 1)]) - (-1) ** k * x * moments[k + 1]
        for k in range(order + 1)
    ]
    total = 0.0
    for j in range(order + 1):
        total = total - math.comb(order, j) * (-1) ** j * math.factorial(j) * brackets[order - j] / a ** (j + 1)
    return total


def gamma_slope_above(xp: Any, a: Any, y: Any, order: int) -> Any:
    """The slope for exp(y) > a + 1.

    With t = x e^s in 1 - F(x): dy/da = (y - ψ(a)) J₀ + J₁,  J_k = ∫₀^∞ s^k exp(a s - x (e^s - 1)) ds.
    """
    decay = 45.0
    x = xp.exp(y)
    gap = x - a
    stop = xp.minimum(2 * decay / (gap + xp.sqrt(gap * gap + 2 * x * decay)), xp.log1p(decay / gap))
    gap_, x_ = gap[:, None], x[:, None]
    moments = moments_of(xp, stop, lambda s: -gap_ * s - x_ * (xp.expm1(s) - s), order + 2)
    logs = [y - polygamma_of(xp, 0, a), *[-polygamma_of(xp, j, a) for j in range(1, order + 1)]]
    return sum([math.comb(order, j) * logs[j] * moments[order - j] for j in range(order + 1)]) + moments[order + 1]


def random_gamma_slope(xp: Any, a: Any, y: Any, *, order: int) -> Any:
    """The derivative of order k + 1 by a at a fixed quantile of the logarithm y of a gamma variate."""
    block = 1 << 12
    a, y = xp.asarray(a), xp.asarray(y)
    shape = numpy.broadcast_shapes(a.shape, y.shape)
    dtype = numpy.result_type(a.dtype, y.dtype)
    flat_a, flat_y = [xp.reshape(xp.broadcast_to(v, shape), (-1,)).astype(numpy.float64) for v in (a, y)]
    out = xp.full(flat_a.shape, numpy.nan)
    finite = xp.isfinite(flat_y) & (flat_a > 0)
    low = flat_y <= xp.log1p(flat_a * finite)
    for rule, part in ((gamma_slope_below, finite & low), (gamma_slope_above, finite & ~low)):
        places = xp.flatnonzero(part)
        for start in range(0, places.shape[0], block):
            here = places[start : start + block]
            out[here] = rule(xp, flat_a[here], flat_y[here], order)
    return shaped(xp, out.astype(dtype), shape)


def random_loggamma(xp: Any, key: Any, a: Any) -> Any:
    """The quantile of a uniform number, from the nearer tail: for a given key a smooth function of the shape parameter.

    Near zero F(e^y) = e^(a y) / Γ(a + 1), which also gives the logarithms of numbers that underflow; below a logarithm
    of -36 this first term of the series suffices.
    """
    special = scipy_of(xp, "special")
    a = xp.asarray(a)
    shape, dtype = a.shape, a.dtype
    trials = Trials(xp, key, shape)
    flat = xp.reshape(a, (-1,)).astype(numpy.float64)
    out = xp.full(trials.size, numpy.nan)
    places = xp.flatnonzero(flat > 0)
    a, unit = flat[places], trials.units(0, places)
    y = (xp.log(unit) + special.gammaln(a + 1)) / a
    for inverse, tail, part in (
        (special.gammaincinv, unit, (y > -36.0) & (unit <= 0.5)),
        (special.gammainccinv, 1 - unit, (y > -36.0) & (unit > 0.5)),
    ):
        here = xp.flatnonzero(part)
        y[here] = xp.log(inverse(a[here], tail[here]))
    out[places] = y
    return shaped(xp, out.astype(dtype), shape)


def random_wald(xp: Any, key: Any, mean: Any) -> Any:
    """Inverse Gaussian variates of unit scale.

    Source: J. Michael, W. Schucany, R. Haas (1976), Generating random variates using transformations with multiple
    roots.
    """
    mean = xp.asarray(mean)
    trials = Trials(xp, key, mean.shape)
    every = xp.arange(trials.size)
    flat = xp.reshape(mean, (-1,)).astype(numpy.float64)
    w = flat * scipy_of(xp, "special").ndtri(trials.units(0, every)) ** 2
    small = 2 * flat / (2 + w + xp.sqrt(w * (4 + w)))
    out = xp.where(trials.units(1, every) * (flat + small) <= flat, small, flat * flat / small)
    return shaped(xp, out.astype(mean.dtype), mean.shape)
