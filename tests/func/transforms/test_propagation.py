"""Covariances of results, and Hessians of weighted constraints, against formulas by hand."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import optimize

import func
from func.errors import ArgumentError, DifferentiatedInputError

SHAPES = [(), (1,), (2,), (0,), (1, 2)]


def linear(matrix, shape, x):
    return (matrix @ np.ravel(x)).reshape(shape)


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["eager", "jit"])
def test_covariances_of_linear_functions(wrap):
    rng = np.random.default_rng(0)
    for shape, out_shape in itertools.product(SHAPES, SHAPES):
        size, out_size = int(np.prod(shape)), int(np.prod(out_shape))
        matrix, root = rng.normal(size=(out_size, size)), rng.normal(size=(size, size))
        covariance = root @ root.T
        wanted = matrix @ covariance @ matrix.T
        transformed = func.propagate(lambda x, m=matrix, s=out_shape: linear(m, s, x))
        found = wrap(transformed)(rng.normal(size=shape), covariance.reshape((*shape, *shape)))
        assert found.shape == (*out_shape, *out_shape)
        np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-12, atol=1e-12)


def test_covariances_take_more_arguments_and_nest():
    x, covariance = np.array([2.0, 3.0]), np.array([[0.01, 0.002], [0.002, 0.04]])

    def f(x, power, *, scale=1.0):
        return scale * x[0] ** power * x[1]

    slope = np.array([2 * 2.0 * 3.0, 4.0]) * 5.0
    np.testing.assert_allclose(func.propagate(f)(x, covariance, 2, scale=5.0), slope @ covariance @ slope)
    by_covariance = func.grad(lambda c: func.propagate(f)(x, c, 2, scale=5.0))(covariance)
    np.testing.assert_allclose(by_covariance, np.outer(slope, slope))
    by_scale = func.grad(lambda scale: func.propagate(f)(x, covariance, 2, scale=scale))(5.0)
    np.testing.assert_allclose(by_scale, 2 / 5.0 * (slope @ covariance @ slope))
    rows = func.vmap(func.propagate(np.sin))(np.array([0.0, 0.5]), np.array([2.0, 3.0]))
    np.testing.assert_allclose(rows, np.cos([0.0, 0.5]) ** 2 * [2.0, 3.0])


def test_covariances_of_complex_results_are_hermitian():
    x, covariance = np.array([0.3, 0.7]), np.array([[0.5, 0.1], [0.1, 0.2]])
    slopes = np.diag(1j * np.exp(1j * x))
    found = func.propagate(lambda x: np.exp(1j * x))(x, covariance)
    np.testing.assert_allclose(found, slopes @ covariance @ slopes.conj().T)


def test_covariances_of_wrong_arguments():
    x = np.ones(2)
    with pytest.raises(
        ArgumentError, match=r"covariance has shape \(2, 2\), not \(2,\); np.diag makes one of variances"
    ):
        func.propagate(np.sin)(x, x)
    with pytest.raises(ArgumentError, match="takes x and its covariance"):
        func.propagate(np.sin)(x)
    with pytest.raises(ArgumentError, match="must return one array, not tuple"):
        func.propagate(lambda x: (x, x))(x, np.eye(2))
    with pytest.raises(DifferentiatedInputError, match=r"func.propagate differentiates with respect to x"):
        func.propagate(np.sin)(np.array([1, 2]), np.eye(2))


def circle(x):
    return np.array([x[0] ** 2 + x[1] ** 2, x[0] * x[1]])


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["eager", "jit"])
def test_hessian_of_a_lagrangian(wrap):
    v = np.array([3.0, 5.0])
    found = wrap(func.lagrangian_hessian(circle))(np.array([1.0, 2.0]), v)
    np.testing.assert_array_equal(found, [[6.0, 5.0], [5.0, 6.0]])
    first = wrap(func.lagrangian_hessian(lambda x: circle(x)[0]))(np.array([1.0, 2.0]), v[:1])
    np.testing.assert_array_equal(first, [[6.0, 0.0], [0.0, 6.0]])


def test_lagrangian_as_scipy_calls_it():
    constraint = optimize.NonlinearConstraint(
        circle, [1, -1], [1, 1], jac=func.jacobian(circle), hess=func.lagrangian_hessian(circle)
    )

    def cost(x):
        return x[0] + 2 * x[1]

    found = optimize.minimize(
        cost,
        [1.0, 0.5],
        jac=func.grad(cost),
        hess=func.hessian(cost),
        method="trust-constr",
        constraints=[constraint],
        tol=1e-12,
    )
    np.testing.assert_allclose(found.x, -np.array([1, 2]) / np.sqrt(5), atol=1e-6)


def test_lagrangian_of_wrong_arguments():
    with pytest.raises(ArgumentError, match=r"circle returns 2 numbers, but there are 3 multipliers"):
        func.lagrangian_hessian(circle)(np.ones(2), np.ones(3))
    with pytest.raises(ArgumentError, match="takes x and the multipliers"):
        func.lagrangian_hessian(circle)(np.ones(2))


def test_results_are_pickled_and_shown():
    transformed = pickle.loads(pickle.dumps(func.lagrangian_hessian(circle)))
    assert repr(transformed) == "func.lagrangian_hessian(circle)"
    assert repr(func.propagate(circle)) == "func.propagate(circle)"


@pytest.mark.parametrize("multipliers", [[3.0, 5.0], np.array([3.0, 5.0])], ids=["list", "array"])
def test_lagrangian_of_a_list(multipliers):
    found = func.lagrangian_hessian(lambda x: [*circle(x)])(np.array([1.0, 2.0]), multipliers)
    np.testing.assert_array_equal(found, [[6.0, 5.0], [5.0, 6.0]])
