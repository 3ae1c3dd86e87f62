"""Integer starts of SciPy's solvers: SciPy passes the user's ints to derivatives, which take them as floats."""

import numpy as np
import pytest
from scipy import optimize

import func
from func.errors import DifferentiatedInputError


def g(v):
    return np.array([v[0] ** 2 + v[1] - 3, v[0] - v[1]])


def cost(v):
    return np.sum((v - 1.5) ** 2)


ROOT = np.full(2, (np.sqrt(13) - 1) / 2)
JACOBIANS = [func.jacobian(g), func.jacrev(g), func.jacfwd(g), func.jit(func.jacobian(g))]


@pytest.mark.parametrize("jacobian", JACOBIANS, ids=["jacobian", "jacrev", "jacfwd", "jit"])
def test_roots_and_least_squares(jacobian):
    np.testing.assert_allclose(optimize.fsolve(g, [0, 5], fprime=jacobian), ROOT)
    np.testing.assert_allclose(optimize.root(g, [0, 5], jac=jacobian).x, ROOT)
    np.testing.assert_allclose(optimize.least_squares(g, [0, 5], jac=jacobian).x, ROOT)


def test_minima_and_numbers():
    gradient, hessian = func.grad(cost), func.hessian(cost)
    for method in ("BFGS", "Newton-CG", "trust-exact"):
        found = optimize.minimize(cost, [1, 2], jac=gradient, hess=None if method == "BFGS" else hessian, method=method)
        np.testing.assert_allclose(found.x, 1.5, atol=1e-6)
    slope = func.grad(lambda x: x**2 - 2)
    assert optimize.newton(lambda x: x**2 - 2, 1, fprime=slope, fprime2=func.grad(slope)) == pytest.approx(np.sqrt(2))


def test_the_recipe_of_curve_fit():
    def model(t, a, k):
        return a * np.exp(-k * t)

    t = np.linspace(0, 4, 9)
    jacobian = func.jacobian(lambda p, t: model(t, *p))
    best, _ = optimize.curve_fit(
        model, t, model(t, 2.5, 0.8), p0=[1, 1], jac=lambda t, *p: jacobian(np.array(p, float), t)
    )
    np.testing.assert_allclose(best, [2.5, 0.8])


def test_ints_from_elsewhere_stay_errors():
    with pytest.raises(DifferentiatedInputError):
        func.jacobian(g)(np.array([0, 5]))
    with pytest.raises(DifferentiatedInputError):  # x is an array of the user's
        optimize.fsolve(lambda v: func.jacobian(g)(np.array([0, 5])) @ v, [1.0, 1.0])
