"""Logarithms of probabilities of discrete distributions, and their moments, by the name of SciPy's class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core import Array
from func.interpreters.primitives.special import incomplete
from func.interpreters.primitives.special.gamma import gammaln_gap
from func.scipy.stats import counting, double_exponential, log_densities
from func.scipy.stats.closed_tails import log1mexp
from func.scipy.stats.host_values import along


def _randint(k: Array, low: Array, high: Array) -> Array:
    """For every outcome; between integers the bounds are not valid, and this is the smooth function through them."""
    return np.ones_like(k) / (high - low)


def binom_slope(k: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """Along tangents of the trials and of their probability, by the incomplete beta function. DLMF 8.17.5."""
    n, p = [s + 0.0 for s in shapes]
    k = np.floor(func.stop_gradient(k))
    return along(lambda n, p: -sc.betainc(k + 1, n - k, p), [n, p], dots)


def _mass(logpmf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The logarithm of a probability and the probability."""
    return {"logpmf": logpmf, "pmf": lambda *args: np.exp(logpmf(*args))}


def _of_trials(k: Array, trials: Sequence[Array], choose: Callable[..., Any]) -> Array:
    """The probability of the numbers j of successes with choose(j, k), for trials of different probabilities."""
    k, *trials = np.broadcast_arrays(k, *trials)
    j = np.arange(len(trials) + 1.0)
    chances: Any = np.where(j == 0, 1.0, np.zeros((*np.shape(k), 1)))
    for p in trials:
        p = p[..., None]
        one_more = np.concatenate([np.zeros((*np.shape(k), 1)), chances[..., :-1]], axis=-1)
        chances = (1 - p) * chances + p * one_more
    return np.sum(np.where(choose(j, np.floor(k)[..., None]), chances, 0.0), axis=-1)


POISSON_BINOM: dict[str, Callable[..., Any]] = {
    "pmf": lambda k, *trials: _of_trials(k, trials, np.equal),
    "logpmf": lambda k, *trials: np.log(_of_trials(k, trials, np.equal)),
    "cdf": lambda k, *trials: _of_trials(k, trials, np.less_equal),
    "sf": lambda k, *trials: _of_trials(k, trials, np.greater),
}


def _betabinom(k: Array, n: Array, a: Array, b: Array) -> Array:
    return _log_ways(n, k) + gammaln_gap(a, k) + gammaln_gap(b, n - k) - gammaln_gap(a + b, n)


def _betanbinom(k: Array, n: Array, a: Array, b: Array) -> Array:
    ways = gammaln_gap(n, k) - sc.gammaln(k + 1)
    return ways + gammaln_gap(a, n) + gammaln_gap(b, k) - gammaln_gap(a + b, n + k)


def _nbinom(k: Array, n: Array, p: Array) -> Array:
    return gammaln_gap(n, k) - sc.gammaln(k + 1) + n * np.log(p) + sc.xlog1py(k, -p)


def _skellam(k: Array, mu1: Array, mu2: Array) -> Array:
    """The difference of two Poisson numbers, by the smaller one."""
    k, mu1, mu2 = np.broadcast_arrays(k, mu1, mu2)
    first, second = np.maximum(k, 0.0), np.maximum(-k, 0.0)
    centre = counting.positive_root(np.abs(k) + 1, func.stop_gradient(mu1 * mu2) - np.abs(k))
    first, second, mu1, mu2 = [x[..., None] for x in (first, second, mu1, mu2)]
    return counting.mixture(
        lambda j: counting.log_poisson(j + first, mu1) + counting.log_poisson(j + second, mu2), centre
    )


def _harmonic(n: Array, a: Array) -> Array:
    """Σ j^-a for j = 1 ... n: 64 terms, and the rest by the Euler-Maclaurin formula. n may be infinite for a > 1.

    For few terms it is the sum for n + 64 without the last 64, so that it is smooth in n. Source: DLMF 2.10.1.
    """
    n, a = np.broadcast_arrays(n, a)
    j = np.arange(1.0, 65.0)
    few, endless = n <= 64, np.isinf(n)

    def powers(start: Any) -> Array:
        return np.sum((start[..., None] + j) ** -a[..., None], axis=-1)

    def corrected(x: Any) -> Array:
        return a * x ** (-a - 1) / 24 - 7 * a * (a + 1) * (a + 2) * x ** (-a - 3) / 5760

    low, high = 64.5, np.where(endless, 65.0, np.where(few, n + 64, n)) + 0.5
    finite = sc.boxcox(high, 1 - a) - sc.boxcox(low, 1 - a) + corrected(high) - corrected(low)
    infinite = low ** (1 - a) / np.where(endless, a - 1, 1.0) - corrected(low)
    beyond = np.where(few, powers(np.where(few, n, 0.0)), 0.0)
    return powers(np.zeros(np.shape(n))) + np.where(endless, infinite, finite) - beyond


def _zeta(a: Array) -> Array:
    return _harmonic(np.asarray(np.inf), a)


def _zipf_moment(order: int, a: Array) -> Array:
    finite = a > order + 1
    return np.where(finite, _zeta(np.where(finite, a, order + 2.0) - order) / _zeta(a), np.inf)


def _log_ways(n: Array, k: Array) -> Array:
    return gammaln_gap(n - k + 1.0, 1.0 * k) - sc.gammaln(k + 1)


def _fisher(k: Array, total: Array, n: Array, draws: Array, odds: Array) -> Array:
    """Fisher's noncentral hypergeometric distribution, summed from its mode. Source: A. Fog (2008)."""
    k, total, n, draws, odds = np.broadcast_arrays(k, total, n, draws, odds)
    fixed = func.stop_gradient(odds)
    low, high = np.maximum(0.0, draws - (total - n)), np.minimum(draws, n)
    a, b, c = fixed - 1, (n + draws) * fixed + total - n - draws + fixed * 0, n * draws * fixed
    mode = np.round(np.clip(2 * c / (b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))), low, high))

    def exponent(j: Array, *of: Array) -> Array:
        total, n, draws, odds = of
        return _log_ways(n, j) + _log_ways(total - n, draws - j) + j * np.log(odds)

    shapes = (total, n, draws, odds)
    top = func.stop_gradient(exponent(mode, *shapes))
    wide = [s[..., None] for s in shapes]
    weight = counting.everywhere(lambda j: np.exp(exponent(j, *wide) - top[..., None]), mode, low, high)
    return exponent(k, *shapes) - top - np.log(weight)


def _wallenius(k: Array, total: Array, n: Array, draws: Array, odds: Array) -> Array:
    """Wallenius' noncentral hypergeometric distribution by its integral. Source: A. Fog (2008), equation 19."""
    k, total, n, draws, odds = np.broadcast_arrays(k, total, n, draws, odds)
    exponent = odds * (n - k) + (total - n) - (draws - k)
    ways = _log_ways(n, k) + _log_ways(total - n, draws - k)
    log_t, _, log_weights = double_exponential.unit_logarithms()
    k, draws, odds, exponent = [x[..., None] for x in (k, draws, odds, exponent)]
    last = exponent <= 0  # the sample takes everything
    scaled = log_t / np.where(last, 1.0, exponent)
    powers = k * log1mexp(odds * scaled) + (draws - k) * log1mexp(scaled)
    return np.where(last[..., 0], 0.0, ways + counting.log_sum(powers + log_weights, np.asarray(1.0)))


def _zipfian(k: Array, a: Array, n: Array) -> Array:
    return -a * np.log(k) - np.log(_harmonic(n, a))


def _yulesimon(k: Array, alpha: Array) -> Array:
    return np.log(alpha) + sc.betaln(k, alpha + 1)


def _zipf(k: Array, a: Array) -> Array:
    return -a * np.log(k) - np.log(_zeta(a))


DISCRETE: dict[str, dict[str, Callable[..., Any]]] = {
    "betabinom": _mass(_betabinom),
    "betanbinom": _mass(_betanbinom),
    "bernoulli": _mass(lambda k, p: sc.xlogy(k, p) + sc.xlog1py(1 - k, -p)),
    "binom": _mass(log_densities.binom),
    "nbinom": _mass(_nbinom),
    "poisson": {
        "logcdf": lambda k, mu: incomplete.log_gammaincc(np.floor(k) + 1, mu),
        "logsf": lambda k, mu: incomplete.log_gammainc(np.floor(k) + 1, mu),
    },
    "poisson_binom": POISSON_BINOM,
    "randint": {"pmf": _randint, "logpmf": lambda *args: np.log(_randint(*args))},
    "skellam": _mass(_skellam),
    "yulesimon": _mass(_yulesimon),
    "nchypergeom_fisher": _mass(_fisher),
    "nchypergeom_wallenius": _mass(_wallenius),
    "zipf": {**_mass(_zipf), "munp": _zipf_moment},
    "zipfian": _mass(_zipfian),
}


LAST_OUTCOMES = {"betabinom": 0, "zipfian": 1}
"""The place of the shape that is the last outcome, for discrete distributions with a finite one."""

HOST: dict[str, str] = {
    "betabinom": "cdf sf entropy",
    "betanbinom": "cdf sf stats entropy",
    "bernoulli": "cdf sf ppf isf",
    "binom": "cdf sf ppf isf entropy",
    "hypergeom": "pmf cdf sf logsf logcdf entropy stats",
    "logser": "cdf sf",
    "nbinom": "cdf logcdf sf stats",
    "nchypergeom_fisher": "cdf sf stats entropy",
    "nchypergeom_wallenius": "cdf sf stats entropy",
    "nhypergeom": "pmf cdf sf",
    "skellam": "cdf sf",
    "zipfian": "cdf sf stats",
}
"""Methods whose values are SciPy's own."""
