"""Probabilities of boxes under multivariate normal distributions, which SciPy integrates by random points.

The derivatives are probabilities of fewer dimensions. By an end of the box: the density there times the probability of
the rest of the box given that coordinate. By a covariance: the mixed second derivative by the two coordinates. By a
variance: half of the second derivative. In two dimensions a formula computes those.

Source: R. Plackett (1954), A reduction formula for normal multivariate integrals; Z. Drezner, G. Wesolowsky (1990), On
the computation of the bivariate normal integral.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sc
from scipy.stats import _multivariate as _scipy

import func
from func.host.scipy_hooks import original
from func.interpreters.core import Aval
from func.scipy.stats import double_exponential
from func.scipy.stats import multivariate_methods as methods
from func.scipy.stats.host_values import along
from func.scipy.stats.multivariate_methods import OWN as OWN
from func.scipy.stats.multivariate_methods import method

_FAR = 40.0
"""The number of deviations beyond which a normal distribution has no probability."""


def _density(c: Any, variance: Any) -> Any:
    return np.exp(-0.5 * c * c / variance) / np.sqrt(2 * np.pi * variance)


def _interval(lower: Any, upper: Any, variance: Any) -> Any:
    """The probability of an interval, from the side where it is accurate."""
    deviation = np.sqrt(variance)
    low, high = [np.clip(x / deviation, -_FAR, _FAR) for x in (lower, upper)]
    above = low + high > 0
    return np.where(above, sc.ndtr(-low) - sc.ndtr(-high), sc.ndtr(high) - sc.ndtr(low))


def _rectangle(lower: Any, upper: Any, cov: Any) -> Any:
    """The probability of a rectangle in two dimensions."""
    first, second = np.sqrt(cov[..., 0, 0]), np.sqrt(cov[..., 1, 1])
    correlation = cov[..., 0, 1] / (first * second)
    nodes, weights = double_exponential.legendre(64)
    angle = np.arcsin(correlation)[..., None]
    sine, cosine = np.sin(angle * nodes), np.cos(angle * nodes)
    total: Any = _interval(lower[..., 0], upper[..., 0], cov[..., 0, 0])
    total = total * _interval(lower[..., 1], upper[..., 1], cov[..., 1, 1])
    for i, j in itertools.product((0, 1), (0, 1)):
        h = np.clip((upper, lower)[i][..., 0] / first, -_FAR, _FAR)[..., None]
        k = np.clip((upper, lower)[j][..., 1] / second, -_FAR, _FAR)[..., None]
        exponent = -(h * h + k * k - 2 * h * k * sine) / (2 * cosine * cosine)
        part = np.sum(weights * np.exp(exponent), axis=-1) * angle[..., 0] / (2 * np.pi)
        total = total + (part if i == j else -part)
    return total


def _rest(places: Sequence[int], at: Any, lower: Any, upper: Any, cov: Any) -> tuple[Any, Any]:
    """The density of some coordinates (…, k) at a point, and the probability of the others in the box given it."""
    n = cov.shape[-1]
    here, others = np.array(places), np.array([i for i in range(n) if i not in places], int)
    block = cov[here[:, None], here]
    factor = np.linalg.cholesky(block)
    maha = np.sum(np.square(np.linalg.solve(factor, at[..., None])), axis=(-2, -1))
    density = np.exp(-0.5 * (len(places) * np.log(2 * np.pi) + methods.log_det(factor) + maha))
    if not len(others):
        return density, 1.0
    across = cov[others[:, None], here]
    slope = np.linalg.solve(block, across.T).T
    mean = at @ slope.T
    left = cov[others[:, None], others] - slope @ across.T
    return density, probability(lower[..., others] - mean, upper[..., others] - mean, left)


def probability(lower: Any, upper: Any, cov: Any, outside: Callable[..., Any] | None = None) -> Any:
    """The probability that a normal vector of mean zero is in a box (…, n), which `outside` computes for n > 1."""
    n = cov.shape[-1]
    if n == 1:
        return _interval(lower[..., 0], upper[..., 0], cov[0, 0])
    if n == 2 and outside is None:
        return _rectangle(lower, upper, cov)
    shape = np.broadcast_shapes(lower.shape, upper.shape)[:-1]
    compute = _scipys if outside is None else outside

    @func.custom_jvp
    def box(lower: Any, upper: Any, cov: Any) -> Any:
        aval = Aval(shape, np.dtype(np.float64))
        return func.pure_callback(compute, aval, lower, upper, cov, vmap_method="sequential")

    def box_jvp(primals: Any, tangents: Any) -> Any:
        return box(*primals), _slope(primals, tangents)

    box.defjvp(box_jvp)
    return box(lower, upper, cov)


def _slope(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (lower, upper, cov), (d_lower, d_upper, d_cov) = primals, tangents
    n = cov.shape[-1]
    sides = [(upper, d_upper, 1.0), (lower, d_lower, -1.0)]
    total: Any = 0.0
    for i in range(n):
        for end, d_end, sign in sides:
            finite = np.isfinite(end[..., i])
            at = np.where(finite, end[..., i], 0.0)

            def face(c: Any, i: int = i) -> Any:
                density, rest = _rest([i], c[..., None], lower, upper, cov)
                return density * rest

            change = np.where(finite, d_end[..., i], 0.0) * face(at)
            curved = along(face, [at], [np.ones(np.shape(at))])
            total = total + sign * np.where(finite, change + 0.5 * d_cov[i, i] * curved, 0.0)
    for i, j in itertools.combinations(range(n), 2):
        for (first, _, sign), (second, _, other) in itertools.product(sides, sides):
            finite = np.isfinite(first[..., i]) & np.isfinite(second[..., j])
            pair = np.stack([np.where(finite, first[..., i], 0.0), np.where(finite, second[..., j], 0.0)], axis=-1)
            density, rest = _rest([i, j], pair, lower, upper, cov)
            total = total + np.where(finite, sign * other * d_cov[i, j] * density * rest, 0.0)
    return total


def _scipys(lower: Any, upper: Any, cov: Any) -> Any:
    run = original(_scipy.multivariate_normal_gen.cdf)
    shape = np.broadcast_shapes(lower.shape, upper.shape)
    lower, upper = np.broadcast_to(lower, shape), np.broadcast_to(upper, shape)
    return np.reshape(run(_scipy.multivariate_normal, upper, np.zeros(shape[-1]), cov, lower_limit=lower), shape[:-1])


@method("multivariate_normal_gen._cdf")
def _normal_cdf(
    self: Any, x: Any, mean: Any, cov: Any, maxpts: Any, abseps: float, releps: float, lower_limit: Any, rng: Any = None
) -> Any:
    run, n = original(_scipy.multivariate_normal_gen._cdf), mean.shape[0]
    lower = np.full(mean.shape, -np.inf) if lower_limit is None else np.asarray(lower_limit, float)
    lower, upper = np.broadcast_arrays(lower - mean, x - mean)

    def compute(lower: Any, upper: Any, cov: Any) -> Any:
        state = () if rng is None else (copy.deepcopy(rng),)
        values = run(self, upper, np.zeros(n), cov, maxpts, abseps, releps, lower, *state)
        return np.reshape(values, upper.shape[:-1])

    return _scipy._squeeze_output(probability(lower, upper, (cov + cov.T) / 2, compute))


@method("multivariate_normal_gen.logcdf", "multivariate_normal_frozen.logcdf")
def _normal_logcdf(self: Any, x: Any, *args: Any, **options: Any) -> Any:
    return np.log(self.cdf(x, *args, **options))
