"""SciPy's solvers on traced values: their solutions differentiate; searches are refused by name."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import func
from func.errors import NotDifferentiableError

SOLVING: dict[str, Callable[[Any], Any]] = {
    "newton": lambda k: so.newton(lambda x: x**2 - k, 2.0, fprime=lambda x: 2 * x),
    "newton of arrays": lambda k: so.newton(lambda x: x**2 - k, np.array([2.0, -2.0]), fprime=lambda x: 2 * x)[0],
    "secant": lambda k: so.newton(lambda x: x**2 - k, 2.0),
    "halley": lambda k: so.root_scalar(lambda x: x**2 - k, x0=2.0, fprime=lambda x: 2 * x, method="newton").root,
    "golden": lambda k: so.minimize_scalar(lambda x: (4 * x - k) ** 2, (0.0, 1.0, 9.0), method="golden").x,
    "brent": lambda k: so.minimize_scalar(lambda x: (4 * x - k) ** 2, (1.0, 3.0), method="brent").x,
    "bounded": lambda k: so.minimize_scalar(lambda x: (4 * x - k) ** 2, (0, 9), (0, 9), method="bounded").x,
    "df-sane": lambda k: so.root(lambda x: 4 * x - k, np.ones(1), method="df-sane").x[0],
}
SEARCHING: dict[str, Callable[[Any], Any]] = {
    "bracket": lambda k: so.bracket(lambda x: (x - k) ** 2)[1],
    "line_search_wolfe2": lambda k: so.line_search(
        lambda x: np.sum((x - k) ** 2), lambda x: 2 * (x - k), np.zeros(1), np.ones(1)
    )[0],
}
REVERSE_AND_FORWARD = {"grad": func.grad, "jacfwd": func.jacfwd}


@pytest.mark.parametrize("intercepts", [False, True])
@pytest.mark.parametrize("mode", REVERSE_AND_FORWARD)
@pytest.mark.parametrize("name", SOLVING)
def test_solutions_have_their_own_derivative(name: str, mode: str, intercepts: bool) -> None:
    with func.intercept() if intercepts else nullcontext():
        slope = REVERSE_AND_FORWARD[mode](SOLVING[name])(4.0)
    np.testing.assert_allclose(slope, 0.25, rtol=1e-4)


def test_solvers_inside_of_derivatives() -> None:
    def slope(k: Any) -> Any:
        return func.jvp(lambda m: so.newton(lambda x: x**2 - m, 2.0, fprime=lambda x: 2 * x), (k,), (1.0,))[1]

    np.testing.assert_allclose(func.grad(slope)(4.0), -1 / 32)


@pytest.mark.parametrize("mode", REVERSE_AND_FORWARD)
@pytest.mark.parametrize("name", SEARCHING)
def test_searching_solver_is_refused(name: str, mode: str) -> None:
    with pytest.raises(NotDifferentiableError, match=rf"scipy.optimize.{name.split()[0]} .*[\s\S]*test_solvers.py"):
        REVERSE_AND_FORWARD[mode](SEARCHING[name])(4.0)


def test_solvers_of_plain_numbers_say_nothing() -> None:
    assert so.minimize_scalar(lambda x: func.grad(lambda y: (y - 2.0) ** 3)(x) - x, (0.0, 1.0, 9.0)).x > 0
    roots = func.vmap(lambda k: so.newton(lambda x: x**2 - k, 2.0, fprime=lambda x: 2 * x))(np.array([4.0, 9.0]))
    np.testing.assert_allclose(roots, [2.0, 3.0])


def test_a_last_newton_step_has_the_derivative_of_the_root() -> None:
    def root(k: Any) -> Any:
        x = so.brentq(lambda x: x**2 - float(func.stop_gradient(k)), 0, 10)
        return x - (x**2 - k) / (2 * x)

    np.testing.assert_allclose(func.grad(root)(4.0), 0.25)
