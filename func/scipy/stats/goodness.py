"""Tests of how well a distribution fits: the statistic differentiates by the sample and by the distribution.

p-values have SciPy's values; where SciPy finds them in compiled code or by a series that it cuts off, the derivative is
that of the formula or the density.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

import func
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.source import at_line
from func.scipy.doors import holds_traced, original
from func.scipy.stats.estimates import floats, known
from func.scipy.stats.policies import in_wrapper
from func.scipy.stats.sample_ranks import on_the_host

__all__ = ["binomtest", "cramervonmises", "ks_1samp", "kstest", "shapiro"]


def _never(primals: Any, tangents: Any) -> NoReturn:
    raise NotDifferentiableError(f"such a derivative of a p-value of scipy.stats is not known{at_line()}")


def _with_value(value: Any, formula: Any) -> Any:
    """A value, with the derivative of a formula for it."""
    return value + (formula - func.stop_gradient(formula)) if holds_traced(formula) else value


def shapiro(x: Any) -> Any:
    """The Shapiro-Wilk test of normality."""
    return _shapiro(x)


@in_wrapper("shapiro")
def _shapiro(x: Any) -> Any:
    x = np.ravel(floats(x)).astype(float)
    n = len(x)
    if n < 3:
        raise ValueError("Data must be at least length 3.")
    w, p = on_the_host(original(_scipy.shapiro), _never, (func.stop_gradient(x),), {})
    weights = _royston_weights(n)
    centred = np.sort(x) - np.mean(x)
    scale = np.sqrt(np.sum(centred * centred))
    u = centred / np.where(scale > 0, scale, 1.0)
    product = np.sum(weights * u)
    rest = np.sum((u - weights * product) ** 2)  # 1 - w, without cancellation
    formula_w, formula_p = product * product, _royston_p(rest, n)
    if n > 3:
        formula_p = np.where(func.stop_gradient(rest) > 0, formula_p, 1.0)
    return _scipy._morestats.ShapiroResult(_with_value(w, formula_w), _with_value(p, formula_p))


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    return sum(c * x**k for k, c in enumerate(coefficients))


def _royston_weights(n: int) -> Any:
    """The weights of the ordered sample, with Σ a² = 1. Source: P. Royston (1995), algorithm AS R94."""
    if n == 3:
        return np.array([-math.sqrt(0.5), 0.0, math.sqrt(0.5)])
    m = sc.ndtri((np.arange(1, n // 2 + 1) - 0.375) / (n + 0.25))
    total = 2 * np.sum(m * m)
    root = 1 / math.sqrt(n)
    first = _polynomial((0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056), root) - m[0] / math.sqrt(total)
    if n > 5:
        second = _polynomial((0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633), root)
        second -= m[1] / math.sqrt(total)
        factor = (total - 2 * m[0] ** 2 - 2 * m[1] ** 2) / (1 - 2 * first**2 - 2 * second**2)
        ends = [first, second]
    else:
        factor = (total - 2 * m[0] ** 2) / (1 - 2 * first**2)
        ends = [first]
    half = np.concatenate([ends, -m[len(ends) :] / math.sqrt(factor)])
    weights = np.concatenate([-half, np.zeros(n % 2), half[::-1]])
    return weights / math.sqrt(np.sum(weights**2))


def _royston_p(rest: Any, n: int) -> Any:
    """The p-value of w = 1 - rest."""
    if n == 3:
        w = np.clip(1 - rest, 0.75, 1.0)
        return 6 / np.pi * (np.arcsin(np.sqrt(w)) - math.asin(math.sqrt(0.75)))
    y = np.log(np.where(rest > 0, rest, 1.0))
    if n <= 11:
        y = -np.log(np.maximum(_polynomial((-2.273, 0.459), n) - y, 1e-300))
        mean = _polynomial((0.544, -0.39978, 0.025054, -6.714e-4), n)
        deviation = math.exp(_polynomial((1.3822, -0.77857, 0.062767, -0.0020322), n))
    else:
        mean = _polynomial((-1.5861, -0.31082, -0.083751, 0.0038915), math.log(n))
        deviation = math.exp(_polynomial((-0.4803, -0.082676, 0.0030302), math.log(n)))
    return sc.ndtr(-(y - mean) / deviation)


def _two_sided_jet(d: float, n: int) -> list[float]:
    """1 - F and its first three derivatives, for the distribution function F of the two-sided statistic.

    F is an element of the n-th power of a matrix of polynomials of d, here with their Taylor coefficients.
    Source: G. Marsaglia, W. Tsang, J. Wang (2003), Evaluating Kolmogorov's distribution.
    """
    if not 0 < d < 1 or not n * d > 0.5:
        return [math.nan if math.isnan(d) else float(d <= 0.5 / n)] + [0.0] * 3
    k = int(n * d) + 1
    m, h, orders = 2 * k - 1, k - n * d, 4
    i, j = np.indices((m, m))
    jet = np.zeros((orders, m, m))
    jet[0] = i - j + 1 >= 0
    for order in range(orders):
        for p in range(1, m + 1):
            coefficient = math.comb(p, order) * h ** (p - order) if p >= order else 0.0
            jet[order, p - 1, 0] -= coefficient
            jet[order, m - 1, m - p] -= coefficient
        if 2 * h > 1 and m >= order:
            jet[order, m - 1, 0] += math.comb(m, order) * (2 * h - 1) ** (m - order) * 2**order
    jet /= sc.factorial(np.maximum(i - j + 1, 0))
    power, scale, left = np.zeros((orders, m, m)), 0.0, n
    power[0] = np.eye(m)
    base, base_scale = jet, 0.0
    while left:
        if left % 2:
            power, scale = _product(power, base, scale + base_scale)
        base, base_scale = _product(base, base, 2 * base_scale)
        left //= 2
    factor = math.exp(math.lgamma(n + 1) - n * math.log(n) + scale)
    values = factor * power[:, k - 1, k - 1]
    return [1 - values[0], *[-values[r] * math.factorial(r) * (-n) ** r for r in (1, 2, 3)]]


def _product(a: Any, b: Any, scale: float) -> tuple[Any, float]:
    """The product of two Taylor series of matrices, whose largest element is 1, and the logarithm of its scale."""
    out = np.stack([sum(a[r] @ b[order - r] for r in range(order + 1)) for order in range(len(a))])
    top = np.max(np.abs(out[0]))
    return out / top, scale + math.log(top)


def _derivative_of_sf(order: int) -> Callable[..., Any]:
    """A derivative of the exact two-sided p-value by the statistic."""

    def on_plain(d: Any, n: Any) -> Any:
        if order == 0:
            return original(_scipy.kstwo.sf)(d, n)
        flat = [_two_sided_jet(float(one), int(n))[order] for one in np.ravel(d)]
        return np.reshape(np.array(flat), np.shape(d))

    @func.custom_jvp
    def value(d: Any, n: Any) -> Any:
        return on_the_host(on_plain, _never, (d, n), {}, np.zeros(np.shape(d)))

    def rule(primals: Any, tangents: Any) -> Any:
        if order == 3:
            _never(primals, tangents)
        return value(*primals), _derivative_of_sf(order + 1)(*primals) * tangents[0]

    value.defjvp(rule)
    return value


def _two_sided_sf(d: Any, n: int) -> Any:
    """The exact p-value of the two-sided Kolmogorov-Smirnov statistic."""
    return _derivative_of_sf(0)(d, n)


def _one_sided_sf(d: Any, n: int) -> Any:
    """The exact p-value of a one-sided Kolmogorov-Smirnov statistic.

    Source: N. Smirnov, as in D. Knuth, The Art of Computer Programming, 3.3.1, equation (27).
    """
    value = on_the_host(original(_scipy.ksone.sf), _never, (func.stop_gradient(d), n), {})
    inside = func.stop_gradient((d > 0) & (d < 1))
    d = np.where(inside, d, 0.5)[..., None]
    j = np.arange(n + 1.0)
    rest = 1 - d - j / n
    added = func.stop_gradient(rest > 0)
    rest = np.where(added, rest, 1.0)
    logs = sc.gammaln(n + 1) - sc.gammaln(j + 1) - sc.gammaln(n - j + 1)
    terms = np.where(added, np.exp(logs + (j - 1) * np.log(d + j / n) + (n - j) * np.log(rest)), 0.0)
    formula = d[..., 0] * np.sum(terms, axis=-1)
    return _with_value(value, np.where(inside, formula, func.stop_gradient(formula)))


def _largest(excess: Any, x: Any) -> tuple[Any, Any]:
    """The largest excess of a distribution function, and where it is."""
    place = np.expand_dims(np.argmax(func.stop_gradient(excess), axis=-1), -1)
    taken = [np.take_along_axis(v, place, axis=-1)[..., 0] for v in (excess, np.broadcast_to(x, excess.shape))]
    return taken[0], taken[1]


def _called(cdf: Any, x: Any, args: Any) -> Any:
    return (getattr(_scipy, cdf).cdf if isinstance(cdf, str) else cdf)(x, *args)


def _is_plain(x: Any, cdf: Any, args: Any) -> bool:
    """Whether a test has no traced value: neither in the sample nor in what the distribution function returns."""
    return not holds_traced((x, args)) and not holds_traced(_called(cdf, np.ravel(np.asarray(x, float)), args))


def ks_1samp(
    x: Any, cdf: Any, args: Any = (), alternative: str = "two-sided", method: str = "auto", **options: Any
) -> Any:
    """The Kolmogorov-Smirnov test of a sample against a distribution function."""
    if _is_plain(x, cdf, args):
        return original(_scipy.ks_1samp)(x, cdf, args, alternative, method, **options)
    return _ks_1samp(x, cdf, args, alternative, method, **options)


@in_wrapper("ks_1samp")
def _ks_1samp(
    x: Any, cdf: Any, args: Any = (), alternative: str = "two-sided", method: str = "auto", *, axis: int = -1
) -> Any:
    side = {"t": "two-sided", "g": "greater", "l": "less"}.get(alternative.lower()[0], alternative)
    if side not in ("two-sided", "greater", "less"):
        raise ValueError(f"Unexpected value alternative={alternative!r}")
    x = np.sort(floats(x), axis=-1)
    n = x.shape[-1]
    dtype, values = x.dtype, _called(cdf, x, args)
    above, where_above = _largest(np.arange(1.0, n + 1) / n - values, x)
    below, where_below = _largest(values - np.arange(0.0, n) / n, x)
    if side != "two-sided":
        d, place, sign = (above, where_above, 1) if side == "greater" else (below, where_below, -1)
        signs = np.full(np.shape(d), sign, np.int8)[()]
        return _result(d, np.asarray(_one_sided_sf(d, n)).astype(dtype), place, signs)
    first = above > below
    d, place = np.where(first, above, below), np.where(first, where_above, where_below)
    signs = np.where(first, np.int8(1), np.int8(-1))
    if method in ("auto", "exact"):
        p = _two_sided_sf(d, n)
    elif method == "asymp":
        p = _scipy.kstwobign.sf(d * math.sqrt(n))
    else:
        p = 2 * _one_sided_sf(d, n)
    return _result(d, np.clip(np.asarray(p).astype(dtype), 0.0, 1.0), place, signs)


def _result(d: Any, p: Any, place: Any, sign: Any) -> Any:
    return _scipy._stats_py.KstestResult(d, p, statistic_location=place, statistic_sign=sign)


def kstest(
    rvs: Any,
    cdf: Any,
    args: Any = (),
    N: int = 20,
    alternative: str = "two-sided",
    method: str = "auto",
    **options: Any,
) -> Any:
    """The Kolmogorov-Smirnov test of a sample against a distribution or another sample."""
    if isinstance(rvs, str) or callable(rvs):
        return original(_scipy.kstest)(rvs, cdf, args, N, alternative, method, **options)
    if alternative not in ("two-sided", "greater", "less", "two_sided"):
        raise ValueError(f"Unexpected alternative: {alternative}")
    alternative = alternative.replace("_", "-")
    if isinstance(cdf, str) or callable(cdf):
        cdf = getattr(_scipy, cdf).cdf if isinstance(cdf, str) else cdf
        return ks_1samp(rvs, cdf, args, alternative, method, **options)
    return _scipy.ks_2samp(rvs, cdf, alternative=alternative, method=method, **options)


def cramervonmises(rvs: Any, cdf: Any, args: Any = (), **options: Any) -> Any:
    """The Cramér-von Mises test of a sample against a distribution function."""
    if _is_plain(rvs, cdf, args):
        return original(_scipy.cramervonmises)(rvs, cdf, args, **options)
    return _cramervonmises(rvs, cdf, args, **options)


@in_wrapper("cramervonmises")
def _cramervonmises(rvs: Any, cdf: Any, args: Any = (), *, axis: int = -1) -> Any:
    n = rvs.shape[-1]
    if n <= 1:
        raise ValueError("The sample must contain at least two observations.")
    values = _called(cdf, np.sort(floats(rvs), axis=-1), args)
    w = 1 / (12 * n) + np.sum(((2 * np.arange(1.0, n + 1) - 1) / (2 * n) - values) ** 2, axis=-1)
    return _hypotests().CramerVonMisesResult(statistic=w, pvalue=_cramer_von_mises_sf(w, n))


def _hypotests() -> Any:
    return importlib.import_module("scipy.stats._hypotests")


def _cramer_von_mises_sf(w: Any, n: int) -> Any:
    """The p-value: SciPy cuts its series off at terms of 1e-7, the derivative is that of more terms."""

    def sf(w: Any) -> Any:
        return np.where(np.isnan(w), np.nan, np.clip(1.0 - np.asarray(_hypotests()._cdf_cvm(w, n)), 0.0, None))[()]

    value = on_the_host(sf, _never, (func.stop_gradient(w),), {})
    inside = func.stop_gradient((w > 1 / (12 * n)) & (w < min(n / 3, _FAR)) & (value > 0))
    safe = np.asarray(np.where(inside, w, 0.5))
    formula = 1.0 - _limit_cdf(safe) * (1 + 1 / (12 * n)) - _correction(safe) / n
    return _with_value(value, np.where(inside, formula, value))


_TERMS, _FAR = 12, 6.0
"""Terms of the series, which are enough below this statistic; above it the p-value is below 1e-13."""


def _limit_cdf(x: Any) -> Any:
    """The distribution function for infinite samples. Source: S. Csörgő, J. Faraway (1996), equation (1.3)."""
    k = np.arange(_TERMS + 0.0)
    y, x = 4 * k + 1, x[..., None]
    q = y * y / (16 * x)
    factors = np.exp(sc.gammaln(k + 0.5) - sc.gammaln(k + 1)) / math.pi**1.5 * np.sqrt(y)
    return np.sum(factors / np.sqrt(x) * np.exp(-2 * q) * sc.kve(0.25, q), axis=-1)


def _correction(x: Any) -> Any:
    """The term of 1/n of the distribution function, less a twelfth of the limit: equation (1.10)."""

    def second(y: Any) -> Any:
        z = y * y / 4
        return np.exp(-2 * z) * (y / 2) ** 1.5 * (sc.kve(0.25, z) + sc.kve(0.75, z)) / math.sqrt(math.pi)

    def third(y: Any) -> Any:
        z = y * y / 4
        sums = 2 * sc.kve(0.25, z) + 3 * sc.kve(0.75, z) - sc.kve(1.25, z)
        return np.exp(-2 * z) / math.sqrt(math.pi) * (y / 2) ** 2.5 * sums

    k, x = np.arange(_TERMS + 0.0), x[..., None]
    root, first, last = 2 * np.sqrt(x), x**0.75, x**1.25
    m, gamma, more = 2 * k + 1, sc.gamma(k + 0.5), sc.gamma(k + 1.5)
    terms = (
        m * gamma * second((4 * k + 3) / root) / (9 * first)
        + gamma * third((4 * k + 1) / root) / (72 * last)
        + 2 * (m + 2) * more * third((4 * k + 5) / root) / (12 * last)
        + 7 * m * gamma * (second((4 * k + 1) / root) + second((4 * k + 5) / root)) / (144 * first)
    )
    return -np.sum(terms / (math.pi * sc.gamma(k + 1)), axis=-1)


def binomtest(k: Any, n: Any, p: Any = 0.5, alternative: str = "two-sided") -> Any:
    """The exact test of a probability p, by which the p-value differentiates; which outcomes it adds is held."""
    if known((p < 0) | (p > 1)):
        raise ValueError(f"p ({p}) must be in range [0,1]")
    k_, n_ = func.stop_gradient(k), func.stop_gradient(n)
    result = original(_scipy.binomtest)(k_, n_, 0.5, alternative)
    if alternative == "less":
        value = _scipy.binom.cdf(k_, n_, p)
    elif alternative == "greater":
        value = _scipy.binom.sf(k_ - 1, n_, p)
    else:
        outcomes = np.arange(n_ + 1)
        masses = _scipy.binom.pmf(outcomes, n_, p)
        added = func.stop_gradient(masses <= masses[k_] * (1 + 1e-7))
        value = np.where(func.stop_gradient(k_ == p * n_), 1.0, np.minimum(np.sum(np.where(added, masses, 0.0)), 1.0))
    result.pvalue = value
    return result
