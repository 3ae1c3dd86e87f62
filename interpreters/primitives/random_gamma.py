"""Gamma variates on a logarithmic scale, with their derivative by the shape parameter to any order.

A sample moves with its parameter so that its distribution function stays put (implicit reparameterisation):
dy/da = -(∂F/∂a) / (∂F/∂y). Source: M. Figurnov, S. Mohamed, A. Mnih (2018), Implicit reparameterization gradients.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import ZERO, Array, Aval, dtype_of, shape_of
from func.interpreters.primitives.elementwise import exp, multiply, subtract
from func.interpreters.primitives.kinds import Row, add_tangents, general, materialize
from func.interpreters.primitives.pointwise import zero_wins
from func.interpreters.primitives.random_bits import Trials, shaped
from func.interpreters.primitives.structural import align_ranks

_NODES = 64
_DECAY = 45.0
"""Integrals stop where their integrand has fallen by exp(-45)."""
_BLOCK = 1 << 12
_TINY = -36.0
"""Below this logarithm a gamma variate is known by the first term of its series."""


def _special(xp: Any, function: str, x: Array) -> Array:
    return getattr(scipy_of(xp, "special"), function)(x)


# --- polygamma --------------------------------------------------------------------------------------------------


def _polygamma(xp: Any, order: int, x: Array) -> Array:
    """The derivative of the given order of digamma."""
    return _special(xp, "digamma", x) if order == 0 else scipy_of(xp, "special").polygamma(order, x)


def _polygamma_impl(xp: Any, a: Array, *, order: int) -> Array:
    out = _polygamma(xp, order, xp.asarray(a))
    return shaped(xp, out.astype(dtype_of(a)), shape_of(a))


def _polygamma_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Any]:
    (a,), (da,) = primals, tangents
    return polygamma(a, order=order), multiply(polygamma(a, order=order + 1), da)


polygamma: Row = general(
    "random_polygamma",
    _polygamma_impl,
    aval=lambda a, *, order: a,
    batch=lambda size, batched, args, params: polygamma(*args, **params),
    jvp=_polygamma_jvp,
)

# --- the derivative of a sample ---------------------------------------------------------------------------------


@functools.cache
def _gauss_legendre() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Nodes in (0, 1) and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _moments(xp: Any, stop: Array, exponent: Any, count: int) -> list[Array]:
    """∫ s^k exp(exponent(s)) ds from 0 to `stop` for k < count, one after another along a vector."""
    nodes, weights = [xp.asarray(each) for each in _gauss_legendre()]
    s = stop[:, None] * nodes
    terms = xp.exp(exponent(s)) * (stop[:, None] * weights)
    out = []
    for _ in range(count):
        out.append(xp.sum(terms, -1))
        terms = terms * s
    return out


def _below(xp: Any, a: Array, y: Array, order: int) -> Array:
    """The slope for exp(y) <= a + 1.

    With x = e^y and t = x e^(-s) in F(x) = ∫ p(t) dt, integrated by parts:
    dy/da = -(1/a) ((y - ψ(a + 1)) (1 + x I₀) - x I₁),  I_k = ∫₀^∞ s^k exp(-(a + 1) s + x (1 - e^(-s))) ds.
    """
    x = xp.exp(y)
    rest = a + 1 - x
    lead = 2 * rest - _DECAY
    root = xp.sqrt(lead * lead + 8 * _DECAY * (a + 1))
    positive = xp.where(lead > 0, lead, 0.0)
    stop = xp.where(lead > 0, 4 * _DECAY / (positive + root), (root - xp.where(lead > 0, 0.0, lead)) / (2 * (a + 1)))
    rest_, x_ = rest[:, None], x[:, None]
    moments = _moments(xp, stop, lambda s: -rest_ * s - x_ * (s + xp.expm1(-s)), order + 2)
    logs = [y - _polygamma(xp, 0, a + 1), *[-_polygamma(xp, j, a + 1) for j in range(1, order + 1)]]
    first = [(-1) ** k * x * moments[k] + (1 if k == 0 else 0) for k in range(order + 1)]
    brackets = [
        sum([math.comb(k, j) * logs[j] * first[k - j] for j in range(k + 1)]) - (-1) ** k * x * moments[k + 1]
        for k in range(order + 1)
    ]
    total = 0.0
    for j in range(order + 1):
        total = total - math.comb(order, j) * (-1) ** j * math.factorial(j) * brackets[order - j] / a ** (j + 1)
    return total


def _above(xp: Any, a: Array, y: Array, order: int) -> Array:
    """The slope for exp(y) > a + 1.

    With t = x e^s in 1 - F(x): dy/da = (y - ψ(a)) J₀ + J₁,  J_k = ∫₀^∞ s^k exp(a s - x (e^s - 1)) ds.
    """
    x = xp.exp(y)
    gap = x - a
    stop = xp.minimum(2 * _DECAY / (gap + xp.sqrt(gap * gap + 2 * x * _DECAY)), xp.log1p(_DECAY / gap))
    gap_, x_ = gap[:, None], x[:, None]
    moments = _moments(xp, stop, lambda s: -gap_ * s - x_ * (xp.expm1(s) - s), order + 2)
    logs = [y - _polygamma(xp, 0, a), *[-_polygamma(xp, j, a) for j in range(1, order + 1)]]
    return sum([math.comb(order, j) * logs[j] * moments[order - j] for j in range(order + 1)]) + moments[order + 1]


def _slope_impl(xp: Any, a: Array, y: Array, *, order: int) -> Array:
    shape = np.broadcast_shapes(shape_of(a), shape_of(y))
    dtype = np.result_type(dtype_of(a), dtype_of(y))
    flat_a, flat_y = [xp.reshape(xp.broadcast_to(xp.asarray(v), shape), (-1,)).astype(np.float64) for v in (a, y)]
    out = xp.full(flat_a.shape, np.nan)
    finite = xp.isfinite(flat_y) & (flat_a > 0)
    low = flat_y <= xp.log1p(flat_a * finite)
    for rule, part in ((_below, finite & low), (_above, finite & ~low)):
        places = xp.flatnonzero(part)
        for start in range(0, places.shape[0], _BLOCK):
            here = places[start : start + _BLOCK]
            out[here] = rule(xp, flat_a[here], flat_y[here], order)
    return shaped(xp, out.astype(dtype), shape)


def _slope_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Any]:
    """By a it is the slope of the next order; by y it follows from the density log q = a y - e^y - ln Γ(a):
    ∂D_k/∂y = ψ^(k)(a) - [k = 0] y - (a - e^y) D_k - k D_(k-1).
    """
    (a, y), (da, dy) = primals, tangents
    out = slope(a, y, order=order)
    tangent: Any = ZERO
    if da is not ZERO:
        tangent = multiply(slope(a, y, order=order + 1), da)
    if dy is not ZERO:
        partial = subtract(polygamma(a, order=order), multiply(subtract(a, exp(y)), out))
        if order == 0:
            partial = subtract(partial, y)
        else:
            partial = subtract(partial, multiply(slope(a, y, order=order - 1), order))
        tangent = add_tangents(tangent, multiply(partial, dy))
    return out, tangent


slope: Row = general(
    "random_gamma_slope",
    _slope_impl,
    aval=lambda a, y, *, order: Aval(np.broadcast_shapes(a.shape, y.shape), np.result_type(a.dtype, y.dtype)),
    batch=lambda size, batched, args, params: slope(*align_ranks(size, batched, args), **params),
    jvp=_slope_jvp,
)
"""The derivative of order k + 1 by a at a fixed quantile of the logarithm y of a gamma variate; k-th by a alone."""

# --- sampling ---------------------------------------------------------------------------------------------------


def _loggamma_impl(xp: Any, key: Array, a: Array) -> Array:
    """The quantile of a uniform number, from the nearer tail: for a given key a smooth function of the shape parameter.

    Near zero F(e^y) = e^(a y) / Γ(a + 1), which also gives the logarithms of numbers that underflow.
    """
    shape, dtype = shape_of(a), dtype_of(a)
    trials = Trials(xp, key, shape)
    flat = xp.reshape(xp.asarray(a), (-1,)).astype(np.float64)
    out = xp.full(trials.size, np.nan)
    places = xp.flatnonzero(flat > 0)
    a, unit = flat[places], trials.units(0, places)
    y = (xp.log(unit) + _special(xp, "gammaln", a + 1)) / a
    special = scipy_of(xp, "special")
    for inverse, tail, part in (
        (special.gammaincinv, unit, (y > _TINY) & (unit <= 0.5)),
        (special.gammainccinv, 1 - unit, (y > _TINY) & (unit > 0.5)),
    ):
        here = xp.flatnonzero(part)
        y[here] = xp.log(inverse(a[here], tail[here]))
    out[places] = y
    return shaped(xp, out.astype(dtype), shape)


def _loggamma_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    (key, a), (_, da) = primals, tangents
    out = loggamma(key, a)
    return out, ZERO if da is ZERO else zero_wins(slope(a, out, order=0), da)


loggamma: Row = general(
    "random_loggamma",
    _loggamma_impl,
    aval=lambda key, a: a,
    batch=lambda size, batched, args, params: loggamma(*materialize(size, batched, args)),
    jvp=_loggamma_jvp,
)
"""Logarithms of gamma variates of unit scale: keys (…, 2) and shape parameters (…, *shape); NaN where a <= 0."""
