"""Multivariate distributions of scipy.stats: moments, boxes, margins and frozen distributions that SciPy made."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import func

S = np.array([[1.7, 0.2], [0.2, 1.5]])


def _matrix(v):
    return np.eye(len(v)) * 1.5 + np.outer(v, v)


def _differences(f, v, step=1e-6):
    return np.stack([(f(v + step * e) - f(v - step * e)) / (2 * step) for e in np.eye(len(v))], axis=-1)


MOMENTS = {
    "wishart.mode": (lambda v: scipy.stats.wishart.mode(4 + v[0], _matrix(v)), 2),
    "invwishart.mean": (lambda v: scipy.stats.invwishart.mean(6 + v[0], _matrix(v)), 2),
    "invwishart.var": (lambda v: scipy.stats.invwishart(7 + v[0], _matrix(v)).var(), 2),
    "multinomial.entropy": (lambda v: scipy.stats.multinomial.entropy(5, v * v / np.sum(v * v)), 3),
    "multinomial.entropy of many": (
        lambda v: scipy.stats.multinomial.entropy(np.array([[3], [5]]), v * v / np.sum(v * v)),
        3,
    ),
    "matrix_t": (lambda v: scipy.stats.matrix_t.logpdf(np.outer(v, v[:2]), None, _matrix(v), S, 3.0), 3),
    "matrix_t frozen": (lambda v: scipy.stats.matrix_t(None, _matrix(v), 2.0, 3.0).pdf(v[:, None]), 3),
    "normal_inverse_gamma": (
        lambda v: np.stack(
            [
                scipy.stats.normal_inverse_gamma.logpdf(v[0], 0.5 + v[1], mu=v[0] ** 2, b=3.0 + v[2]),
                scipy.stats.normal_inverse_gamma.pdf(v[0], -0.5, v[1], b=3.0),
                *scipy.stats.normal_inverse_gamma.mean(v[0], 2.0, 1.5 + v[2], 3.0),
                *scipy.stats.normal_inverse_gamma(v[0], 2.0, 3.5 + v[2], 3.0).var(),
            ]
        ),
        3,
    ),
    "marginal": (lambda v: scipy.stats.multivariate_normal.marginal([2, 0], v, _matrix(v)).logpdf([0.1, 0.3]), 3),
    "marginal of t": (lambda v: scipy.stats.multivariate_t.marginal([1], v, _matrix(v), 3.0).logpdf([0.1]), 3),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_and_densities(name):
    f, n = MOMENTS[name]
    v = np.linspace(0.3, 0.8, n)
    np.testing.assert_allclose(func.vjp(f, v)[0], f(v), rtol=1e-10)
    np.testing.assert_allclose(func.jacobian(f)(v), _differences(f, v), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(func.jit(func.vmap(f))(np.stack([v, v]))[1], f(v), rtol=1e-10)


def test_moments_that_do_not_exist():
    assert func.vjp(lambda s: scipy.stats.invwishart.var(4.0, s) is None, S)[0]
    assert np.all(np.isnan(func.jit(lambda df: scipy.stats.invwishart.mean(df, S))(2.5)))
    for v in (-1.0, 0.0):
        assert np.isnan(func.vjp(lambda b: scipy.stats.normal_inverse_gamma.logpdf(0.1, 1.0, b=b), v)[0])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("lower", [None, -1.3])
def test_probabilities_of_boxes(n, lower):
    v, x = np.linspace(-0.6, 0.9, n), np.linspace(0.5, 1.2, n)
    options = {"lower_limit": None if lower is None else np.full(n, lower), "rng": 3}

    def f(v):
        return scipy.stats.multivariate_normal.cdf(x + v**2, v, _matrix(v), **options)

    def g(v):
        return scipy.stats.multivariate_normal(v, _matrix(v)).logcdf(np.stack([x, x + v**2]), **options)

    np.testing.assert_allclose(func.vjp(f, v)[0], f(v), rtol=1e-9)
    rtol, step = (1e-6, 1e-5) if n < 3 else (2e-3, 1e-2)
    np.testing.assert_allclose(func.grad(f)(v), _differences(f, v, step), rtol=rtol, atol=rtol)
    if n < 3:
        np.testing.assert_allclose(func.jacobian(g)(v), _differences(g, v, step), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(func.jit(func.grad(f))(v), func.grad(f)(v), rtol=1e-10)
    if n == 2:
        np.testing.assert_allclose(func.hessian(f)(v), _differences(func.grad(f), v, 1e-4), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(func.vmap(func.grad(f))(np.stack([v, v]))[1], func.grad(f)(v), rtol=1e-10)


def test_boxes_that_are_turned_around_or_empty():
    def f(x):
        return scipy.stats.multivariate_normal.cdf(x, cov=S, lower_limit=np.array([0.4, -np.inf]))

    for x in (np.array([-0.3, 0.7]), np.array([0.4, np.inf]), np.array([-np.inf, 0.2])):
        np.testing.assert_allclose(func.vjp(f, x)[0], f(x), rtol=1e-9, atol=1e-12)
        assert np.all(np.isfinite(func.grad(f)(x)))
    x = np.array([-0.3, 0.7])
    np.testing.assert_allclose(func.grad(f)(x), _differences(f, x, 1e-5), rtol=1e-5)


FROZEN = {
    "multivariate_normal": (scipy.stats.multivariate_normal([0, 0.1], S), ("logpdf", "cdf", "logcdf")),
    "multivariate_t": (scipy.stats.multivariate_t([0, 0.1], S, df=3), ("pdf", "logpdf")),
    "wishart": (scipy.stats.wishart(4, S), ("pdf", "logpdf")),
    "invwishart": (scipy.stats.invwishart(4, S), ("pdf", "logpdf")),
    "matrix_normal": (scipy.stats.matrix_normal(None, S, S), ("pdf", "logpdf")),
    "vonmises_fisher": (scipy.stats.vonmises_fisher([0.6, 0.8], 2.0), ("pdf", "logpdf")),
}


@pytest.mark.parametrize("name", FROZEN)
def test_distributions_that_were_frozen_outside(name):
    frozen, methods = FROZEN[name]
    if name in ("wishart", "invwishart", "matrix_normal"):
        take = _matrix
    elif name == "vonmises_fisher":
        take = lambda v: v / np.sqrt(np.sum(v * v))  # noqa: E731
    else:
        take = lambda v: v  # noqa: E731
    v = np.array([0.3, 0.6])

    def f(v):
        return np.stack([getattr(frozen, method)(take(v)) for method in methods])

    np.testing.assert_allclose(func.vjp(f, v)[0], f(v), rtol=1e-9)
    np.testing.assert_allclose(func.jit(func.jacobian(f))(v), _differences(f, v, 1e-5), rtol=1e-5, atol=1e-8)


def test_covariances_of_traced_arrays():
    def f(v):
        diagonal = scipy.stats.Covariance.from_diagonal(v * v + 1)
        triangular = scipy.stats.Covariance.from_cholesky(np.tril(np.outer(v, v)) + np.eye(2))
        return np.stack(
            [
                scipy.stats.multivariate_normal.logpdf([1.0, 2.0], v, diagonal),
                scipy.stats.multivariate_normal(v, triangular).logpdf([1.0, 2.0]),
            ]
        )

    v = np.array([0.3, 0.6])
    np.testing.assert_allclose(func.jit(func.jacobian(f))(v), _differences(f, v), rtol=1e-6)


def test_singular_plain_covariances():
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])

    def f(x):
        return scipy.stats.multivariate_normal.logpdf(x, None, singular, allow_singular=True)

    x = np.array([0.4, 0.4])
    np.testing.assert_allclose(func.vjp(f, x)[0], f(x), rtol=1e-12)
    np.testing.assert_allclose(func.jit(func.grad(f))(x), [-0.2, -0.2], rtol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        func.grad(lambda m: scipy.stats.multivariate_normal.logpdf(x, None, m, allow_singular=True))(singular)


def test_frozen_distributions_draw_by_the_seed_that_they_were_made_with():
    key = func.random.key(0)

    def draw(m):
        return scipy.stats.multivariate_normal(m, S, seed=key).rvs(size=2)

    x = np.array([0.3, 0.6])
    expected = scipy.stats.multivariate_normal.rvs(x, S, size=2, random_state=key)
    np.testing.assert_allclose(func.vjp(draw, x)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(func.jit(draw)(x), expected, rtol=1e-12)
    alpha = np.array([0.5, 1.5])
    np.testing.assert_allclose(
        func.jacobian(lambda a: scipy.stats.dirichlet_multinomial(a, 4).mean())(alpha),
        _differences(lambda a: scipy.stats.dirichlet_multinomial(a, 4).mean(), alpha),
        rtol=1e-6,
    )


def test_what_is_refused():
    with pytest.raises(func.errors.UnsupportedFunctionError, match="random points"):
        func.grad(lambda x: scipy.stats.multivariate_t.cdf(x, shape=S, df=3))(np.ones(2))
    with pytest.raises(ValueError, match="unique"):
        func.grad(lambda v: scipy.stats.multivariate_normal.marginal([0, -2], v, S).logpdf(v))(np.ones(2))
