"""The laws of scipy.stats' rows, and what rows cannot show."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import func
from tests.support.scipy_rows import LAWS, check
from tests.support.scipy_stats import CONTINUOUS, DISCRETE, ROWS, SAMPLES
from tests.support.scipy_stats_samples import ROWS as ELSEWHERE

CHECKED = ("jvp", "order 2", "jit", "vmap", "vjp", "value")
FULL = ("norm ", "beta density", "gamma cumulative", "t quantile", "binom")


def _chosen() -> list[tuple[str, str]]:
    """All laws of a few distributions and of all functions; of each other distribution one group and law in turn.

    Functions of samples are the same under both names: all laws are those of SciPy's own name.
    """
    chosen = []
    for place, name in enumerate(ROWS):
        if name in SAMPLES or name in ELSEWHERE:
            chosen += [(name, law) for law in ("value", "unmodified") if name in SAMPLES]
            continue
        distribution, _, group = name.partition(" ")
        laws = [law for law in (*LAWS, "unmodified") if law not in ROWS[name].without]
        if name.startswith(FULL) or distribution not in CONTINUOUS | DISCRETE:
            chosen += [(name, law) for law in laws]
        elif place % 3 == {"density": 0, "cumulative": 1, "quantile": 2}.get(group, 0) or group == "moments":
            chosen.append((name, CHECKED[place // 3 % len(CHECKED)]))
    return chosen


@pytest.mark.parametrize(("name", "column"), _chosen())
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_stats_rows(name, column):
    check(ROWS[name], "stats", column)


@pytest.mark.parametrize("name", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("shapes", [(2.0, 3.0), (-1.0, 3.0), (np.array([2.0, 2.0, 2.0, -3.0]), 3.0)])
def test_outside_the_support_and_invalid_parameters(name, shapes):
    x = np.array([-1.0, 0.5, np.nan, 2.0])

    def f(x):
        return getattr(scipy.stats.beta, name)(x, *shapes, loc=0.1, scale=0.9)

    expected = f(x)
    np.testing.assert_allclose(func.vjp(f, x)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(func.jit(f)(x), expected, rtol=1e-12)


def test_derivatives_outside_the_support_are_zero():
    gradient = func.grad(lambda x: np.sum(scipy.stats.gamma.pdf(x, 2.5)))(np.array([-1.0, 1.0]))
    assert gradient[0] == 0.0
    assert np.isfinite(gradient[1])


@pytest.mark.parametrize("name", ["ppf", "isf"])
def test_quantiles_at_the_ends(name):
    q = np.array([0.0, 0.3, 1.0, 1.5, np.nan])
    method = getattr(scipy.stats.gamma, name)
    np.testing.assert_allclose(func.vjp(lambda q: method(q, 2.0, 1.0, 3.0), q)[0], method(q, 2.0, 1.0, 3.0))


def test_frozen_distributions_and_keywords():
    def f(p):
        frozen = scipy.stats.gamma(a=p[0], loc=p[1], scale=p[2])
        low, high = frozen.interval(0.9)
        return frozen.logpdf(2.0) + frozen.mean() + frozen.std() + frozen.entropy() + high - low + frozen.median()

    p = np.array([2.0, 0.5, 1.5])
    differences = [(f(p + 1e-6 * e) - f(p - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(func.grad(f)(p), differences, rtol=1e-7)
    np.testing.assert_allclose(func.jit(func.grad(f))(p), differences, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_dtypes_and_shapes(dtype):
    x = np.ones((2, 1), dtype)
    loc = np.array([0.5, 1.5, 2.5], np.float32)
    expected = scipy.stats.norm.cdf(x, loc)
    got = func.vjp(lambda loc: scipy.stats.norm.cdf(x, loc), loc)[0]
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected)
    assert func.grad(lambda loc: np.sum(scipy.stats.norm.cdf([1, 2], loc)))(np.float32(0.5)).dtype == np.float32


def test_users_distributions():
    class Ramp(scipy.stats.rv_continuous):
        def _pdf(self, x, c):
            return c * x ** (c - 1.0)

        def _argcheck(self, c):
            return c > 0

    ramp = Ramp(a=0.0, b=1.0, name="ramp")

    def f(p):
        return ramp.cdf(p[0], p[1]) + ramp.ppf(0.3, p[1]) + ramp.mean(p[1])

    c, x = 2.5, 0.6
    expected = [c * x ** (c - 1), x**c * np.log(x) - 0.3 ** (1 / c) * np.log(0.3) / c**2 + 1 / (c + 1) ** 2]
    np.testing.assert_allclose(func.grad(f)(np.array([x, c])), expected, rtol=1e-8)
    np.testing.assert_allclose(func.jit(func.grad(f))(np.array([x, c])), expected, rtol=1e-8)


@pytest.mark.parametrize(("name", "step"), [("genextreme", 1e-7), ("genpareto", 1e-7), ("pearson3", 1e-3)])
def test_parameters_at_which_scipy_changes_its_formula(name, step):
    gradient = func.grad(lambda c: getattr(scipy.stats, name).logpdf(0.7, c))
    np.testing.assert_allclose(gradient(0.0), gradient(step), rtol=10 * step, atol=10 * step)


@pytest.mark.parametrize("skew", [0.04, -0.04, 3e-3, 1e-3, 1e-4, -1e-4, 2e-5])
def test_density_of_small_skewness(skew):
    """By the skewness, against the series of the logarithm to third order."""
    x = 0.7
    terms = [x**3 / 6 - x / 2, x**2 / 4 - x**4 / 8 - 1 / 24, 3 * (x**5 / 40 - x**3 / 24)]
    slope = func.grad(lambda c: scipy.stats.pearson3.logpdf(x, c))(skew)
    expected = sum([term * skew**k for k, term in enumerate(terms)])
    np.testing.assert_allclose(slope, expected, rtol=1e-10 + abs(skew) ** 3)


@pytest.mark.parametrize("skew", [0.2, 0.0501, 0.0499, -0.03, 0.02])
@pytest.mark.parametrize("x", [0.7, -2.0, 4.0])
def test_distribution_function_by_small_skewness(x, skew):
    """Against the incomplete gamma function in fifty digits."""

    def probability(s):
        a, b = 4 / s**2, 2 / s
        ends = (0, b * (x + b)) if s > 0 else (b * (x + b), mpmath.inf)
        return mpmath.gammainc(a, *ends, regularized=True)

    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -7
        above, below = mpmath.mpf(skew) + step, mpmath.mpf(skew) - step
        expected = float((probability(above) - probability(below)) / (2 * step))
    for sign, method in ((1, scipy.stats.pearson3.cdf), (-1, scipy.stats.pearson3.sf)):
        np.testing.assert_allclose(func.grad(lambda s, m=method: m(x, s))(skew), sign * expected, rtol=1e-8)
    q = float(scipy.stats.pearson3.cdf(x, skew))
    slope = func.grad(lambda s: scipy.stats.pearson3.ppf(q, s))(skew)
    np.testing.assert_allclose(slope, -expected / scipy.stats.pearson3.pdf(x, skew), rtol=1e-5)


@pytest.mark.parametrize("skew", [1e-3, -1e-4, 3e-5, 1e-6, 0.0])
def test_distribution_function_by_tiny_skewness(skew):
    """The limit is that of the series of Edgeworth, φ(x) (1 - x²) / 6."""
    x = 0.7
    limit = scipy.stats.norm.pdf(x) * (1 - x * x) / 6
    slope = func.grad(lambda s: scipy.stats.pearson3.cdf(x, s))(skew)
    np.testing.assert_allclose(slope, limit, rtol=1e-6 + abs(skew))


def test_outcomes_have_no_derivative():
    with pytest.raises(func.errors.NotDifferentiableError, match="outcome"):
        func.grad(lambda k: scipy.stats.poisson.logpmf(k, 3.0))(2.0)
    counts = np.array([0.0, 2.0, 5.0])
    rates = func.vmap(func.grad(lambda mu, k: scipy.stats.poisson.logpmf(k, mu)), in_dims=(None, 0))(3.0, counts)
    np.testing.assert_allclose(rates, counts / 3.0 - 1.0)


@pytest.mark.parametrize("name", ["cauchy", "chi2", "gamma", "genextreme", "kstwobign", "ncx2", "norm", "weibull_min"])
def test_densities_vanish_at_infinity_and_at_ends(name):
    dist, shapes = getattr(scipy.stats, name), CONTINUOUS[name]
    low = dist.support(*shapes)[0]
    x = np.array([-np.inf, np.inf, low])
    for method, expected in (("pdf", 0.0), ("logpdf", -np.inf)):
        f = getattr(dist, method)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(func.jit(lambda x, f=f: f(x, *shapes))(x), expected)
        slope = func.jvp(lambda x, f=f: f(x, *shapes), (x[:2],), (np.ones(2),))[1]
        np.testing.assert_array_equal(slope, 0.0)
        by_scale = func.jvp(lambda s, f=f: f(x[:2], *shapes, scale=s), (1.3,), (1.0,))[1]
        np.testing.assert_array_equal(by_scale, 0.0)


def test_the_middle_of_a_symmetric_distribution():
    def f(p):
        dist = scipy.stats.gennorm(p[0], loc=p[1])
        return np.stack([dist.cdf(0.7), dist.sf(0.7), dist.ppf(0.5), dist.isf(0.5)])

    density = scipy.stats.gennorm.pdf(0.0, 5.2)
    expected = [[0.0, -density], [0.0, density], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(func.jacobian(f)(np.array([5.2, 0.7])), expected, rtol=1e-12)


def test_shapes_at_which_a_density_is_singular_at_an_end():
    x = np.array([-0.9, 0.3, 0.95])
    differences = (scipy.stats.rdist.cdf(x, 1.6 + 1e-6) - scipy.stats.rdist.cdf(x, 1.6 - 1e-6)) / 2e-6
    np.testing.assert_allclose(func.jacobian(lambda c: scipy.stats.rdist.cdf(x, c))(1.6), differences, rtol=1e-6)


def test_singular_covariances_raise_and_are_nan_in_compiled_code():
    x = np.array([0.7, 1.3, 0.4])

    def f(x):
        return scipy.stats.multivariate_normal.logpdf(x, np.zeros(3), np.outer(x, x))

    for call in (f, func.grad(f), lambda x: func.vmap(f)(np.stack([x, x]))):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            call(x)
    assert np.isnan(func.jit(f)(x))


@pytest.mark.parametrize(
    ("method", "x", "expected"),
    [
        (scipy.stats.halflogistic.cdf, 2e-12, (0.5, -5e-13)),
        (scipy.stats.kstwobign.logpdf, 30.0, (1 / 30 - 120, -1 / 900 - 4)),
        (lambda x: scipy.stats.trapezoid.logpdf(x, 0.2, 0.8), 1e-9, (1e9, -1e18)),
    ],
)
def test_derivatives_far_out(method: Any, x: float, expected: tuple[float, float]) -> None:
    np.testing.assert_allclose(func.derivatives(method, 2)(x)[1:], expected, rtol=1e-12)


def test_the_tail_of_gibrats_law_is_that_of_a_normal_law() -> None:
    slope = func.grad(scipy.stats.gibrat.logsf)(1e50)
    np.testing.assert_allclose(slope, func.grad(lambda x: scipy.stats.lognorm.logsf(x, 1.0))(1e50), rtol=1e-12)
