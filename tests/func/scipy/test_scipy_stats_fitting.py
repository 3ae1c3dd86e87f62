"""Estimates, likelihoods and expectations of scipy.stats' distributions on traced values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import func

DIRECTION = np.cos(np.arange(40.0)) * 0.1
FITS = [
    ("beta", (2.0, 3.0), {"floc": 0, "fscale": 1.4}),
    ("expon", (), {}),
    ("expon", (), {"floc": -0.1}),
    ("gamma", (3.0,), {}),
    ("gamma", (3.0,), {"floc": 0.0}),
    ("gamma", (3.0,), {"floc": 0.0, "method": "MM"}),
    ("genextreme", (-0.1,), {}),
    ("gumbel_r", (), {}),
    ("halfnorm", (), {}),
    ("invgauss", (0.5,), {"floc": 0}),
    ("laplace", (), {}),
    ("logistic", (), {}),
    ("lognorm", (0.9,), {"floc": 0}),
    ("norm", (), {}),
    ("pareto", (3.0,), {}),
    ("powerlaw", (1.7,), {"floc": -0.1}),
    ("rayleigh", (), {}),
    ("t", (2.7,), {"f0": 2.7}),
    ("uniform", (), {}),
    ("uniform", (), {"fscale": 3.0}),
    ("vonmises", (3.0,), {"fscale": 1}),
    ("weibull_min", (1.8,), {"floc": 0}),
]


def _precise(f, x0, args=(), disp=0):
    for _ in range(2):
        x0 = scipy.optimize.fmin(f, x0, args=args, disp=0, xtol=1e-11, ftol=1e-13, maxiter=4000, maxfun=8000)
    return x0


@pytest.mark.parametrize(("name", "shapes", "options"), FITS)
def test_estimates_differentiate_by_the_data(name, shapes, options):
    dist = getattr(scipy.stats, name)
    data = dist.rvs(*shapes, scale=1.4 if name != "vonmises" else 1, size=40, random_state=1)
    value, pushed = func.jvp(lambda x: np.stack(dist.fit(x, **options)), (data,), (DIRECTION,))
    np.testing.assert_allclose(value, dist.fit(data, **options), rtol=1e-9)
    high, low = [np.array(dist.fit(data + s * DIRECTION, optimizer=_precise, **options)) for s in (1e-4, -1e-4)]
    np.testing.assert_allclose(pushed, (high - low) / 2e-4, rtol=3e-3, atol=3e-4)


@pytest.mark.parametrize("name", ["gamma", "weibull_min"])
def test_estimates_under_transforms(name):
    data = scipy.stats.gamma.rvs(3.0, size=20, random_state=1)

    def shape(m):
        return getattr(scipy.stats, name).fit(m * data + 0.01 * m**2 * data**2, floc=-0.1 * m)[0]

    first, second = func.grad(shape), func.grad(func.grad(shape))
    np.testing.assert_allclose(func.jit(first)(1.3), first(1.3), rtol=1e-7)
    np.testing.assert_allclose(func.vmap(first)(np.array([1.3, 1.2])), [first(1.3), first(1.2)], rtol=1e-7)
    np.testing.assert_allclose(second(1.3), (first(1.301) - first(1.299)) / 2e-3, rtol=1e-3)


def test_estimates_at_an_end_of_the_support_have_no_derivative():
    data = np.array([0.2, 0.5, 1.1, 1.3])
    with pytest.raises(func.errors.NotDifferentiableError, match="floc="):
        func.grad(lambda m: scipy.stats.loguniform.fit(m * data)[0])(1.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(func.jit(func.grad(lambda m: scipy.stats.loguniform.fit(m * data)[0]))(1.3))


def test_bad_calls_of_fit():
    data = np.array([0.2, 0.5, 1.1, 1.3])
    for call, words in (
        (lambda m: scipy.stats.expon.fit(m * data, floc=0, fscale=1), "nothing to optimize"),
        (lambda m: scipy.stats.uniform.fit(m * data, fscale=1e-3), "do not fit"),
        (lambda m: scipy.stats.gamma.fit(m * data, floc=0, fscale=1, fa=2), "nothing to optimize"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=words):
            func.grad(lambda m, call=call: call(m)[0])(1.0)


def test_fit_by_bounds_differentiates():
    data = np.array([1.0, 2.0, 3.0, 7.0])

    def spread(m):
        return scipy.stats.fit(scipy.stats.norm, m * data, bounds=[(0, 10), (0, 10)]).params[1]

    np.testing.assert_allclose(func.grad(spread)(1.2), np.std(data), rtol=1e-3)


def test_multivariate_fits():
    x = np.array([[1.0, 0.2], [0.4, -0.1], [1.0, 0.4]])
    matrix = func.jacobian(lambda m: scipy.stats.multivariate_normal.fit(m * x)[1])(1.5)
    np.testing.assert_allclose(matrix, 3.0 * np.cov(x.T, bias=True), rtol=1e-10)

    def concentration(m):
        y = x * np.stack([m, 1.0])
        return scipy.stats.vonmises_fisher.fit(y / np.sqrt(np.sum(y * y, axis=1, keepdims=True)))[1]

    difference = (concentration(1.5 + 1e-5) - concentration(1.5 - 1e-5)) / 2e-5
    np.testing.assert_allclose(func.grad(concentration)(1.5), difference, rtol=1e-4)


def test_likelihoods():
    data = np.array([1.0, 2.0])
    for theta in ((2.0, 0.1, 1.3), (2.0, 1.5, 1.3), (-2.0, 0.1, 1.3), (2.0, 0.1, -1.3)):
        expected = scipy.stats.gamma.nnlf(theta, data)
        got = func.jit(lambda *theta: scipy.stats.gamma.nnlf(theta, data))(*theta)
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    slope = func.grad(lambda s: scipy.stats.gamma.nnlf((2.0, 0.1, s), data))(1.3)
    np.testing.assert_allclose(slope, 2 * 2.0 / 1.3 - np.sum(data - 0.1) / 1.3**2, rtol=1e-12)


EXPECTATIONS = {
    "moment": lambda m: scipy.stats.gamma.expect(lambda x: m * x**2, args=(m,), loc=0.1),
    "part": lambda m: scipy.stats.norm(m).expect(np.sin, lb=0.0, conditional=True),
    "counts": lambda m: scipy.stats.poisson.expect(lambda k: m * k**2, args=(m,)),
    "many counts": lambda m: scipy.stats.poisson(200 * m).expect(lambda k: 1e-4 * k**2),
    "trials": lambda m: scipy.stats.binom.expect(args=(9, m / 3), loc=2),
    "some trials": lambda m: scipy.stats.binom(9, m / 3, 1).expect(lambda k: k**2, lb=3, ub=6, conditional=True),
    "closure": lambda m: scipy.stats.poisson(3.0).expect(lambda k: m * k**2),
}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_expectations(name):
    f = EXPECTATIONS[name]
    x = 1.3
    value, slope = func.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-9)
    np.testing.assert_allclose(slope, (f(x + 1e-5) - f(x - 1e-5)) / 2e-5, rtol=1e-5)
    if name != "moment":
        np.testing.assert_allclose(func.jit(func.grad(f))(x), slope, rtol=1e-8)
    np.testing.assert_allclose(func.vmap(func.grad(f))(np.array([x, 1.1])), [slope, func.grad(f)(1.1)], rtol=1e-8)
