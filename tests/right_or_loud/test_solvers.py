"""SciPy's solvers steered by traced values: refused, or warned of, by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import func
from func.errors import NotDifferentiableError, SolverWarning

CONVERGING: dict[str, Callable[[Any], Any]] = {
    "newton": lambda k: so.newton(lambda x: x**2 - k, 2.0, fprime=lambda x: 2 * x),
    "newton of arrays": lambda k: so.newton(lambda x: x**2 - k, np.array([2.0, -2.0]), fprime=lambda x: 2 * x)[1],
    "secant": lambda k: so.newton(lambda x: x**2 - k, 2.0),
    "halley": lambda k: so.root_scalar(lambda x: x**2 - k, x0=2.0, fprime=lambda x: 2 * x, method="newton").root,
    "a nested name": lambda k: func.jvp(
        lambda m: so.newton(lambda x: x**2 - m, 2.0, fprime=lambda x: 2 * x), (k,), (1.0,)
    )[1],
}
SEARCHING: dict[str, Callable[[Any], Any]] = {
    "minimize_scalar golden": lambda k: so.minimize_scalar(lambda x: (x - k) ** 2, (0.0, 2.0, 9.0), method="golden").x,
    "minimize_scalar brent": lambda k: so.minimize_scalar(lambda x: (x - k) ** 2, method="brent").x,
    "minimize_scalar bounded": lambda k: so.minimize_scalar(lambda x: (x - k) ** 2, (0, 9), (0, 9), method="bounded").x,
    "bracket": lambda k: so.bracket(lambda x: (x - k) ** 2)[1],
    "root df-sane": lambda k: so.root(lambda x: x**2 - k, np.ones(1), method="df-sane").x[0],
}
REVERSE_AND_FORWARD = {"grad": func.grad, "jacfwd": func.jacfwd}


@pytest.mark.parametrize("mode", REVERSE_AND_FORWARD)
@pytest.mark.parametrize("name", CONVERGING)
def test_converging_solver_warns(name: str, mode: str) -> None:
    with func.intercept(), pytest.warns(SolverWarning, match=r"scipy.optimize.\w+ is differentiated step by step"):
        REVERSE_AND_FORWARD[mode](CONVERGING[name])(4.0)


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
