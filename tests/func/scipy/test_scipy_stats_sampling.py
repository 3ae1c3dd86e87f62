"""Samples of scipy.stats that differentiate by the parameters: by seeds and generators of NumPy's, and by keys."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import func
import func.scipy.stats
from tests.support.scipy_stats import CONTINUOUS

KEY = func.random.key(3)
NAMES = (
    "beta", "burr12", "chi", "erlang", "exponnorm", "f", "foldnorm", "gamma", "gengamma", "genextreme", "invgamma",
    "invgauss", "johnsonsu", "loggamma", "lognorm", "nakagami", "nct", "norm", "norminvgauss", "rdist", "rice",
    "skewnorm", "t", "triang", "truncnorm", "vonmises", "wald", "weibull_min", "wrapcauchy",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_quantiles_of_constant_probabilities(name):
    dist, shapes = getattr(scipy.stats, name), np.array(CONTINUOUS[name])
    p = np.array([*shapes, 0.3, 1.4])

    def draw(p):
        return dist.rvs(*p, size=2, random_state=11)

    samples, pushed = func.jvp(draw, (p,), (np.linspace(0.3, -0.2, len(p)),))
    assert np.array_equal(samples, draw(p))
    if name in ("vonmises", "wrapcauchy"):
        return
    u = dist.cdf(samples, *p)
    expected = func.jvp(lambda p: dist.ppf(u, *p), (p,), (np.linspace(0.3, -0.2, len(p)),))[1]
    np.testing.assert_allclose(pushed, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_keys_draw_from_the_distribution(name):
    dist, shapes = getattr(scipy.stats, name), CONTINUOUS[name]
    samples = dist.rvs(*shapes, 0.3, 1.4, size=200, random_state=KEY)
    ranks = (samples - 0.3) / 1.4
    if name in ("vonmises", "wrapcauchy"):
        ranks = np.mod(ranks, 2 * np.pi) if name == "wrapcauchy" else ranks
        assert np.all(np.abs(samples) <= 2 * np.pi)
        return
    assert scipy.stats.kstest(dist.cdf(ranks, *shapes), "uniform").pvalue > 1e-3


def test_samplers_of_scipy_by_keys():
    def draw(p):
        return scipy.stats.vonmises.rvs(*p, size=3, random_state=KEY)

    p = np.array([3.99, 0.3, 1.0])
    samples, jacobian = draw(p), func.jit(func.jacobian(draw))(p)
    slope = func.jacobian(lambda p: scipy.stats.vonmises.cdf(samples, *p))(p)
    np.testing.assert_allclose(jacobian, -slope / scipy.stats.vonmises.pdf(samples, *p)[:, None], rtol=1e-6)
    other = func.vmap(lambda key: scipy.stats.vonmises.rvs(3.99, size=3, random_state=key))(func.random.split(KEY, 2))
    assert len(np.unique(other)) == 6


@pytest.mark.parametrize("name", ["gamma", "johnsonsu", "nct", "t"])
def test_derivatives_of_samples_by_keys(name):
    p = np.array([*CONTINUOUS[name], 0.3, 1.4])

    def draw(p):
        return getattr(scipy.stats, name).rvs(*p, size=3, random_state=KEY)

    jacobian = func.jit(func.jacobian(draw))(p)
    differences = [(draw(p + 1e-6 * e) - draw(p - 1e-6 * e)) / 2e-6 for e in np.eye(len(p))]
    np.testing.assert_allclose(jacobian.T, differences, rtol=1e-5, atol=1e-6)


def test_roads_give_the_same_samples():
    def draw(a, key):
        return scipy.stats.gamma(a, 0.1, scale=2.0).rvs(size=2, random_state=key)

    expected = draw(1.3, KEY)
    np.testing.assert_allclose(func.jit(draw)(1.3, KEY), expected, rtol=1e-12)
    np.testing.assert_allclose(func.vjp(lambda a: draw(a, KEY), 1.3)[0], expected, rtol=1e-12)
    keys = func.random.split(KEY, 3)
    np.testing.assert_allclose(
        func.jit(func.vmap(draw, in_dims=(None, 0)))(1.3, keys), np.stack([draw(1.3, k) for k in keys]), rtol=1e-12
    )
    shapes = np.array([1.3, 2.0])
    np.testing.assert_allclose(func.vmap(lambda a: draw(a, 4))(shapes), [draw(a, 4) for a in shapes], rtol=1e-12)
    np.testing.assert_allclose(func.jit(lambda a: draw(a, 4))(1.3), draw(1.3, 4), rtol=1e-12)


def test_second_derivatives_of_samples():
    def square(a):
        return np.sum(scipy.stats.gamma.rvs(a, size=3, random_state=0) ** 2)

    u = scipy.stats.gamma.cdf(scipy.stats.gamma.rvs(1.3, size=3, random_state=0), 1.3)
    expected = func.grad(func.grad(lambda a: np.sum(scipy.stats.gamma.ppf(u, a) ** 2)))(1.3)
    np.testing.assert_allclose(func.grad(func.grad(square))(1.3), expected, rtol=1e-6)


def test_discrete_samples_are_constants():
    assert func.grad(lambda mu: 1.0 * np.sum(scipy.stats.poisson.rvs(mu, size=3, random_state=0)))(3.0) == 0.0
    for name, shapes in (("poisson", (3.0,)), ("nbinom", (5.3, 0.5)), ("binom", (9, 0.4)), ("zipf", (3.5,))):
        counts = getattr(scipy.stats, name).rvs(*shapes, loc=2, size=4, random_state=KEY)
        assert counts.dtype == np.int64
        assert np.all(counts >= 2)


@pytest.mark.parametrize("state", [None, np.random.default_rng(0), np.random.RandomState(0)])
def test_generators_that_transforms_cannot_see(state):
    def draw(a):
        return scipy.stats.gamma.rvs(a, size=2, random_state=state)

    assert np.all(np.isfinite(func.jacobian(draw)(1.3)))
    with pytest.raises(func.random.RandomnessError, match="a key of func"):
        func.jit(draw)(1.3)
    with pytest.raises(func.random.RandomnessError, match="Map keys"):
        func.vmap(draw)(np.ones(2))
    with pytest.raises(func.random.RandomnessError, match="the same numbers"):
        func.jit(lambda loc: scipy.stats.norm.rvs(loc, size=2, random_state=state))(1.3)


def test_a_generator_of_func_follows_vmap():
    generator = func.random.Generator(0)
    out = func.vmap(lambda m: scipy.stats.norm.rvs(m, size=2, random_state=generator), randomness="different")(
        np.zeros(2)
    )
    assert len(np.unique(out)) == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a: scipy.stats.gamma.rvs(-a, random_state=0), ValueError, "domain"),
        (lambda a: scipy.stats.norm.rvs(scale=-a, random_state=KEY), ValueError, "scale"),
        (lambda a: scipy.stats.gamma.rvs(a, shape=2), TypeError, "unexpected"),
        (lambda a: scipy.stats.gamma.rvs(scale=a), TypeError, "missing 1 required"),
        (lambda a: scipy.stats.gamma.rvs(a * np.ones(2), size=3), ValueError, "size does not match"),
        (lambda a: scipy.stats.random_correlation.rvs([a, 2 - a]), func.errors.UnsupportedFunctionError, "eigenvalues"),
        (
            lambda a: scipy.stats.vonmises_fisher.rvs([1.0, 0, 0, 0], a, random_state=0),
            func.errors.UnsupportedFunctionError,
            "rejection",
        ),
        (
            lambda a: scipy.stats.matrix_t.rvs(df=a, random_state=0),
            func.errors.UnsupportedFunctionError,
            "random_state",
        ),
    ],
)
def test_what_cannot_be_drawn(call, error, words):
    with pytest.raises(error, match=words):
        func.grad(lambda a: np.sum(call(a)))(1.3)


def _matrix(v):
    return np.eye(3) * 2.0 + np.outer(v, v)


def _unit(v):
    return v / np.sqrt(np.sum(v * v))


V = np.array([0.3, -0.5, 0.8])
MULTIVARIATE = {
    "multivariate_normal": lambda v, o: scipy.stats.multivariate_normal.rvs(v, _matrix(v), **o),
    "of a number": lambda v, o: scipy.stats.multivariate_normal.rvs(v, 2.0, **o),
    "frozen": lambda v, o: scipy.stats.multivariate_normal(v, _matrix(v)).rvs(**o),
    "multivariate_t": lambda v, o: scipy.stats.multivariate_t.rvs(v, _matrix(v), 3.0 + v[0], **o),
    "dirichlet": lambda v, o: scipy.stats.dirichlet.rvs(v * v + 0.5, **o),
    "wishart": lambda v, o: scipy.stats.wishart.rvs(4 + v[0], _matrix(v), **o),
    "wishart frozen": lambda v, o: scipy.stats.wishart(4, _matrix(v)).rvs(**o),
    "invwishart": lambda v, o: scipy.stats.invwishart.rvs(4 + v[0], _matrix(v), **o),
    "matrix_normal": lambda v, o: scipy.stats.matrix_normal.rvs(None, _matrix(v), _matrix(v)[:2, :2], **o),
    "matrix_t": lambda v, o: scipy.stats.matrix_t.rvs(None, _matrix(v), _matrix(v)[:2, :2], 3.0, **o),
    "multinomial": lambda v, o: 1.0 * scipy.stats.multinomial.rvs(5, v * v / np.sum(v * v), **o),
    "normal_inverse_gamma": lambda v, o: np.stack(
        scipy.stats.normal_inverse_gamma.rvs(v[0], 1 + v[1], 3 + v[2], 2.0, **o)
    ),
    "vonmises_fisher": lambda v, o: scipy.stats.vonmises_fisher.rvs(_unit(v), 3 + v[0], **o),
    "vonmises_fisher plane": lambda v, o: scipy.stats.vonmises_fisher(_unit(v[:2]), 3 + v[0]).rvs(**o),
}


@pytest.mark.parametrize("name", MULTIVARIATE)
def test_multivariate_samples(name):
    f = MULTIVARIATE[name]
    for size in (1, 2):
        for state in (7, KEY):
            options = {"size": size, "random_state": state}
            plain = f(V, options)
            traced = func.vjp(lambda v, options=options: f(v, options), V)[0]
            assert np.shape(traced) == np.shape(plain)
            np.testing.assert_allclose(traced, plain, rtol=1e-10, atol=1e-12)
    seeded = {"size": 2, "random_state": 7}
    np.testing.assert_allclose(func.jit(lambda v: f(v, seeded))(V), f(V, seeded), rtol=1e-9)
    keyed = {"size": 2, "random_state": KEY}
    if name not in ("multinomial", "vonmises_fisher plane"):  # SciPy's algorithm there, which rejects
        differences = np.stack([(f(V + 1e-6 * e, keyed) - f(V - 1e-6 * e, keyed)) / 2e-6 for e in np.eye(3)], axis=-1)
        np.testing.assert_allclose(func.jacobian(lambda v: f(v, keyed))(V), differences, rtol=1e-5, atol=1e-6)


MEANS = {
    "multivariate_t": (lambda p, x: scipy.stats.multivariate_t.rvs([0, 0], p * np.eye(2), 5 + p, **x), 2),
    "dirichlet": (lambda p, x: scipy.stats.dirichlet.rvs(np.array([1.0, 2.0, 0.7]) * p, **x), 2),
    "wishart": (lambda p, x: scipy.stats.wishart.rvs(3 + p, p * np.eye(2), **x), 1),
    "invwishart": (lambda p, x: scipy.stats.invwishart.rvs(7 + p, p * np.eye(2), **x), 1),
    "normal_inverse_gamma": (lambda p, x: scipy.stats.normal_inverse_gamma.rvs(0, p, 4 + p, 2.0, **x)[0], 2),
    "vonmises_fisher": (lambda p, x: scipy.stats.vonmises_fisher.rvs([1.0, 0.0, 0.0], p, **x), 1),
    "vonmises_fisher plane": (lambda p, x: scipy.stats.vonmises_fisher.rvs([0.6, 0.8], p, **x), 1),
}


@pytest.mark.parametrize("name", MEANS)
def test_derivatives_of_drawn_samples_are_those_of_the_distribution(name):
    """The derivative of a mean over SciPy's samples is near that over func's, which has other noise."""
    f, power = MEANS[name]

    def mean(p, state):
        return np.mean(f(p, {"size": 4000, "random_state": state}) ** power, axis=0)

    slopes = [func.jvp(lambda p, state=state: mean(p, state), (1.5,), (1.0,))[1] for state in (1, KEY)]
    np.testing.assert_allclose(*slopes, rtol=0.15, atol=0.15)


def test_a_frozen_distribution_with_a_covariance_object_takes_keys():
    cov = scipy.stats.Covariance.from_diagonal([1.0, 4.0])
    frozen = scipy.stats.multivariate_normal([1.0, 2.0], cov)
    assert frozen.rvs(3, random_state=KEY).shape == (3, 2)
    gradient = func.grad(lambda m: np.sum(scipy.stats.multivariate_normal.rvs(m, cov, 3, KEY)))(np.zeros(2))
    np.testing.assert_allclose(gradient, 3.0)
