"""Rows of scipy.optimize: solutions as functions of parameters that the solver's functions close over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from tests.support.scipy_rows import Row, main

P = np.array([0.6, 1.1])
A = np.array([[3.0, 1.0], [0.5, 2.0]])
T = np.linspace(0.0, 2.0, 6)
Y = np.exp(-0.7 * T) + 0.05 * np.cos(5 * T)
TALL = np.array([[1.0, 0.2, 0.3], [0.4, 1.5, -0.6], [0.3, 0.2, 2.0], [1.0, -1.0, 0.5]])
SIDE = np.array([1.0, -0.5, 2.0, 0.3])
LOOSE = {"rtol": 1e-3, "exact": 1e-5}
"""Of solvers that stop at half of the digits, where differences of their results have few."""


def system(p: Any) -> Callable[[Any], Any]:
    """Two equations."""
    return lambda x: A @ x + 0.1 * np.sin(x) * p - p


def reversed_system(p: Any) -> Callable[[Any], Any]:
    """The same with the other sign."""
    return lambda x: -system(p)(x)


def cube(p: Any) -> Callable[[Any], Any]:
    """One equation."""
    return lambda x: x**3 - p[0] * p[1]


def bowl(p: Any) -> Callable[[Any], Any]:
    """A convex function of two variables."""
    return lambda x: np.sum((x - p) ** 2 + 0.1 * x**4) + 0.3 * p[0] * x[0] * x[1]


def slope(p: Any) -> Callable[[Any], Any]:
    """The gradient of `bowl`."""
    return lambda x: 2 * (x - p) + 0.4 * x**3 + 0.3 * p[0] * x[::-1]


def valley(p: Any) -> Callable[[Any], Any]:
    """A function of one variable."""
    return lambda x: (x - p[0] * p[1]) ** 2 + 0.1 * x**4


def valley_of_one(p: Any) -> Callable[[Any], Any]:
    """`valley` of a vector of one number."""
    return lambda x: valley(p)(x[0])


def finish(f: Any, x0: Any, args: Any = (), full_output: int = 0, disp: int = 0) -> Any:
    """The step that ends a search on a grid."""
    return scipy.optimize.fmin(f, x0, args, xtol=1e-12, ftol=1e-15, full_output=full_output, disp=0)


def decay(p: Any) -> Callable[[Any], Any]:
    """Residuals of a model with two parameters."""
    return lambda k: k[0] * np.exp(-k[1] * T * p[0]) - Y * p[1]


def model(p: Any) -> Callable[..., Any]:
    """The same model for curve_fit."""
    return lambda t, a, b: a * np.exp(-b * t * p[0])


SLOW = {"jit": "the same call as in the other columns, of many evaluations"}
ROUGH = dict.fromkeys(("jvp", "order 2"), "SciPy's solutions have too few digits for differences of them")
FIT = {"xtol": 1e-15, "ftol": 1e-15}
ROWS: dict[str, Row] = {
    "root": Row(lambda m, p: m.root(system(p), np.zeros(2), tol=1e-13).x, P),
    "root lm": Row(lambda m, p: m.root(lambda x, p: system(p)(x), [0.0, 0.0], (p,), "lm", tol=1e-13).x, P),
    "root fun": Row(lambda m, p: m.root(system(p), P, tol=1e-13).fun + p, P),
    "fsolve": Row(lambda m, p: m.fsolve(system(p), np.zeros(2), xtol=1e-13), P),
    "newton": Row(lambda m, p: m.newton(cube(p), 2.0, tol=1e-13), P),
    "newton of arrays": Row(
        lambda m, p: m.newton(lambda x: x**3 - p, np.array([1.0, 2.0]), fprime=lambda x: 3 * x**2, tol=1e-13), P
    ),
    "brentq": Row(lambda m, p: m.brentq(cube(p), 0, 5, xtol=1e-14), P),
    "brenth": Row(lambda m, p: m.brenth(cube(p), 0, 5, xtol=1e-14), P),
    "ridder": Row(lambda m, p: m.ridder(cube(p), 0, 5, xtol=1e-14), P),
    "bisect": Row(lambda m, p: m.bisect(cube(p), 0, 5, xtol=1e-14), P),
    "toms748": Row(lambda m, p: m.toms748(cube(p), 0, 5, xtol=1e-14), P),
    "root_scalar": Row(lambda m, p: m.root_scalar(cube(p), bracket=(0, 5), xtol=1e-14).root, P),
    "root_scalar halley": Row(
        lambda m, p: (
            m.root_scalar(
                cube(p), x0=2.0, fprime=lambda x: 3 * x**2, fprime2=lambda x: 6 * x, method="halley", xtol=1e-13
            ).root
        ),
        P,
    ),
    "fixed_point": Row(lambda m, p: m.fixed_point(lambda x: np.cos(p * x), [0.7, 0.7], xtol=1e-13), P),
    "broyden1": Row(lambda m, p: m.broyden1(system(p), np.zeros(2), f_tol=1e-13), P),
    "broyden2": Row(lambda m, p: m.broyden2(system(p), np.zeros(2), f_tol=1e-13), P),
    "anderson": Row(lambda m, p: m.anderson(system(p), np.zeros(2), f_tol=1e-13), P),
    "diagbroyden": Row(lambda m, p: m.diagbroyden(system(p), np.zeros(2), f_tol=1e-12, maxiter=200), P),
    "excitingmixing": Row(
        lambda m, p: m.excitingmixing(reversed_system(p), np.zeros(2), alpha=0.2, alphamax=0.3, f_tol=1e-12), P
    ),
    "linearmixing": Row(lambda m, p: m.linearmixing(system(p), np.zeros(2), alpha=-0.3, f_tol=1e-12, maxiter=300), P),
    "newton_krylov": Row(lambda m, p: m.newton_krylov(system(p), np.zeros(2), f_tol=1e-13), P),
    "minimize": Row(lambda m, p: m.minimize(bowl(p), np.zeros(2), jac=slope(p), tol=1e-12).x, P, 1e-5),
    "minimize Newton-CG": Row(
        lambda m, p: m.minimize(bowl(p), np.zeros(2), method="Newton-CG", jac=slope(p), tol=1e-13).x, P, 1e-5, 1e-9
    ),
    "minimize fun": Row(lambda m, p: m.minimize(bowl(p), np.zeros(2), jac=slope(p), tol=1e-10).fun, P),
    "minimize Nelder-Mead": Row(
        lambda m, p: m.minimize(bowl(p), np.zeros(2), method="Nelder-Mead", tol=1e-13).x, P, **LOOSE
    ),
    "minimize bounds": Row(
        lambda m, p: m.minimize(bowl(p), P, jac=slope(p), bounds=[(None, 0.2 * p[1]), (0, 5)], tol=1e-13).x, P, 1e-4
    ),
    "minimize equality": Row(
        lambda m, p: (
            m.minimize(
                bowl(p),
                np.zeros(2),
                jac=slope(p),
                constraints={
                    "type": "eq",
                    "fun": lambda x: x[0] * p[1] + x[1] - 1,
                    "jac": lambda x: np.array([p[1] + 0 * x[0], 1.0 + 0 * x[0]]),
                },
                tol=1e-14,
            ).x
        ),
        P,
        1e-5,
    ),
    "minimize inequality": Row(
        lambda m, p: (
            m.minimize(
                bowl(p),
                np.ones(2),
                jac=slope(p),
                constraints=[
                    {"type": "ineq", "fun": lambda x, q: 0.4 - x[:1] * q, "args": (p[1],)},
                    scipy.optimize.LinearConstraint(np.array([[1.0, 1.0]]), -9.0, 9.0),
                ],
                tol=1e-13,
            ).x
        ),
        P,
        1e-4,
        1e-8,
    ),
    "minimize_scalar": Row(lambda m, p: m.minimize_scalar(valley(p), (0, 1), tol=1e-12).x, P, **LOOSE),
    "minimize_scalar bounds": Row(
        lambda m, p: m.minimize_scalar(valley(p), bounds=(0, 3), options={"xatol": 1e-12}).x, P, **LOOSE
    ),
    "brent": Row(lambda m, p: m.brent(valley(p), tol=1e-12), P, **LOOSE),
    "golden": Row(lambda m, p: m.golden(valley(p), tol=1e-12), P, **LOOSE),
    "fminbound": Row(lambda m, p: m.fminbound(valley(p), 0, 3, xtol=1e-12), P, **LOOSE),
    "fmin": Row(lambda m, p: m.fmin(bowl(p), np.zeros(2), xtol=1e-12, ftol=1e-15, disp=0), P, **LOOSE),
    "fmin_powell": Row(lambda m, p: m.fmin_powell(bowl(p), np.zeros(2), xtol=1e-12, ftol=1e-15, disp=0), P, **LOOSE),
    "fmin_bfgs": Row(lambda m, p: m.fmin_bfgs(bowl(p), np.zeros(2), slope(p), gtol=1e-11, disp=0), P, 1e-5),
    "fmin_cg": Row(lambda m, p: m.fmin_cg(bowl(p), np.zeros(2), slope(p), gtol=1e-10, disp=0), P, 1e-4),
    "fmin_ncg": Row(lambda m, p: m.fmin_ncg(bowl(p), np.zeros(2), slope(p), avextol=1e-13, disp=0), P, 1e-5, 1e-9),
    "fmin_l_bfgs_b": Row(
        lambda m, p: m.fmin_l_bfgs_b(bowl(p), P, slope(p), bounds=[(0, 0.2), (0, 2)], pgtol=1e-13, factr=1)[0], P, 1e-4
    ),
    "fmin_tnc": Row(
        lambda m, p: m.fmin_tnc(bowl(p), P, slope(p), bounds=[(0, 0.2), (0, 2)], messages=0, pgtol=1e-13)[0], P, **LOOSE
    ),
    "basinhopping": Row(lambda m, p: m.basinhopping(bowl(p), np.zeros(2), niter=1, rng=1).x, P, **LOOSE),
    "differential_evolution": Row(
        lambda m, p: m.differential_evolution(bowl(p), [(0, 1), (0, 2)], rng=1, maxiter=5, popsize=4).x,
        P,
        **LOOSE,
        without=SLOW,
    ),
    "dual_annealing": Row(
        lambda m, p: m.dual_annealing(bowl(p), [(0, 1), (0, 2)], rng=1, maxiter=2).x, P, **LOOSE, without=SLOW
    ),
    "direct": Row(
        lambda m, p: m.direct(valley_of_one(p), [(0, 2)], vol_tol=1e-30, len_tol=1e-9).x,
        P,
        **LOOSE,
        without=SLOW | ROUGH,
    ),
    "shgo": Row(
        lambda m, p: m.shgo(bowl(p), [(0, 1), (0, 2)], minimizer_kwargs={"tol": 1e-13}, options={"jac": slope(p)}).x,
        P,
        **LOOSE,
        without=SLOW | ROUGH,
    ),
    "brute": Row(lambda m, p: m.brute(valley_of_one(p), [(0, 2)], Ns=4, finish=finish), P, **LOOSE),
    "fmin_slsqp": Row(
        lambda m, p: m.fmin_slsqp(
            bowl(p), np.zeros(2), [lambda x: x[0] * p[1] + x[1] - 1], fprime=slope(p), acc=1e-15, iprint=0
        ),
        P,
        **LOOSE,
    ),
    "fmin_cobyla": Row(
        lambda m, p: m.fmin_cobyla(bowl(p), np.zeros(2), [lambda x: 0.8 - x[0] * p[1] - x[1]], rhoend=1e-11),
        P,
        **LOOSE,
        without=ROUGH,
    ),
    "least_squares": Row(
        lambda m, p: m.least_squares(decay(p), np.ones(2), jac="3-point", gtol=1e-14, **FIT).x, P, **LOOSE
    ),
    "least_squares cost": Row(lambda m, p: m.least_squares(decay(p), np.ones(2), loss="soft_l1", f_scale=0.1).cost, P),
    "leastsq": Row(lambda m, p: m.leastsq(decay(p), np.ones(2), gtol=1e-14, **FIT)[0], P, **LOOSE),
    "curve_fit": Row(lambda m, p: m.curve_fit(model(p), T, Y * p[1], **FIT)[0], P, **LOOSE),
    "curve_fit covariance": Row(lambda m, p: m.curve_fit(model(p), T, Y * p[1], **FIT)[1], P, **LOOSE),
    "nnls": Row(lambda m, p: m.nnls(TALL * p[0], SIDE * p[1])[0], P),
    "nnls norm": Row(lambda m, p: m.nnls(TALL * p[0] + p[1], SIDE)[1], P),
    "lsq_linear": Row(
        lambda m, p: m.lsq_linear(TALL * p[0] + p[1], SIDE * p[1], bounds=(-0.1 * p[1], 0.3), method="bvls").x, P
    ),
    "linprog": Row(lambda m, p: m.linprog(-p, A_ub=np.array([[1, 2.0], [3, 1]]) * p, b_ub=[4.0, 5.0]).x, P),
    "linprog marginals": Row(
        lambda m, p: m.linprog(-p, A_ub=np.array([[1, 2.0], [3, 1]]) * p[0], b_ub=[4.0, 5.0]).ineqlin.marginals, P
    ),
    "isotonic_regression": Row(
        lambda m, p: m.isotonic_regression(SIDE * p[0] + p[1], weights=T[1:5] * p[1], increasing=False).x, P
    ),
    "rosen": Row(lambda m, p: m.rosen(p), P),
    "rosen_der": Row(lambda m, p: m.rosen_der(np.append(p, p[:1])) / 1000, P),
    "rosen_hess": Row(lambda m, p: m.rosen_hess(np.append(p, p[:1])) / 1000, P),
    "rosen_hess_prod": Row(lambda m, p: m.rosen_hess_prod(np.append(p, p[:1]), np.append(p[:1], p)) / 1000, P),
}

WITHOUT: dict[str, str] = {
    **dict.fromkeys(
        [
            "BFGS",
            "SR1",
            "HessianUpdateStrategy",
            "InverseJacobian",
            "KrylovJacobian",
            "BroydenFirst",
            "LbfgsInvHessProduct",
        ],
        "a class of approximate Hessians or Jacobians, which a solver uses",
    ),
    **dict.fromkeys(["Bounds", "LinearConstraint", "NonlinearConstraint"], "describes a problem; values may be traced"),
    **dict.fromkeys(["OptimizeResult", "RootResults"], "a result of solvers"),
    **dict.fromkeys(["NoConvergence", "OptimizeWarning"], "a class of exceptions or warnings"),
    **dict.fromkeys(
        [
            "cobyla",
            "lbfgsb",
            "linesearch",
            "minpack",
            "minpack2",
            "moduleTNC",
            "nonlin",
            "optimize",
            "slsqp",
            "tnc",
            "zeros",
        ],
        "a deprecated module",
    ),
    **dict.fromkeys(["show_options", "linprog_verbose_callback"], "prints"),
    "linear_sum_assignment": "returns indices",
    "quadratic_assignment": "returns indices",
    "milp": "its integers have no derivative",
    "bracket": "returns points of a search, which do not solve an equation",
    "line_search": "returns a step of a search, which does not solve an equation",
    "approx_fprime": "differences of a function; func.grad is the derivative",
    "check_grad": "compares a gradient with differences",
}

if __name__ == "__main__":
    main("optimize", ROWS)
