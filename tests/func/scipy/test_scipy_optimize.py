"""The laws of scipy.optimize's rows, and what they cannot show: warnings, errors, special solutions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import func
from func.errors import ArgumentError, SingularSystemError, SolverWarning, UnsupportedFunctionError
from tests.support.scipy_optimize import ROWS, WITHOUT
from tests.support.scipy_rows import check, parameters

own = func.scipy.optimize


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_optimize_rows(name, column):
    check(ROWS[name], "optimize", column)


def test_rows_cover_the_module():
    assert {name.split()[0] for name in ROWS} | set(WITHOUT) >= set(so.__all__)


START_AT_ROOT = {
    "newton": lambda p: so.newton(lambda x: x**2 - p, 2.0, fprime=lambda x: 2 * x),
    "newton of arrays": lambda p: so.newton(lambda x: x**2 - p, np.array([2.0, -2.0]), fprime=lambda x: 2 * x)[0],
    "secant": lambda p: so.newton(lambda x: x**2 - p, 2.0),
    "root": lambda p: so.root(lambda x: x**2 - p, np.array([2.0])).x[0],
    "root df-sane": lambda p: so.root(lambda x: x**2 - p, np.array([2.0]), method="df-sane").x[0],
    "fsolve": lambda p: so.fsolve(lambda x: x**2 - p, 2.0)[0],
    "root_scalar": lambda p: so.root_scalar(lambda x: x**2 - p, x0=2.0, fprime=lambda x: 2 * x, method="newton").root,
    "fixed_point": lambda p: so.fixed_point(lambda x: (x + p / x) / 2, 2.0),
    "minimize": lambda p: so.minimize(lambda x: (x[0] ** 2 - p) ** 2, np.array([2.0])).x[0],
    "least_squares": lambda p: so.least_squares(lambda x: x**2 - p, np.array([2.0])).x[0],
}


@pytest.mark.parametrize("name", START_AT_ROOT)
def test_a_solver_that_starts_at_its_solution_has_the_derivative(name):
    solver = START_AT_ROOT[name]
    for transform in (func.grad, func.jacfwd, lambda f: func.jit(func.grad(f))):
        np.testing.assert_allclose(transform(solver)(4.0), 0.25, rtol=1e-6)
    np.testing.assert_allclose(func.grad(func.grad(solver))(4.0), -1 / 32, rtol=1e-5)


BOWL = {"disp": 0, "full_output": 1}
OLDER = {
    "fmin": lambda m, f, g: m.fmin(f, np.zeros(2), xtol=1e-9, ftol=1e-12, retall=1, **BOWL),
    "fmin_powell": lambda m, f, g: m.fmin_powell(f, np.zeros(2), xtol=1e-9, ftol=1e-12, **BOWL),
    "fmin_cg": lambda m, f, g: m.fmin_cg(f, np.zeros(2), g, **BOWL),
    "fmin_bfgs": lambda m, f, g: m.fmin_bfgs(f, np.zeros(2), g, retall=1, **BOWL),
    "fmin_ncg": lambda m, f, g: m.fmin_ncg(f, np.zeros(2), g, **BOWL),
    "fmin_l_bfgs_b": lambda m, f, g: m.fmin_l_bfgs_b(f, np.zeros(2), g, bounds=[(0, 9), (0, 9)]),
    "fmin_l_bfgs_b of pairs": lambda m, f, g: m.fmin_l_bfgs_b(lambda x: (f(x), g(x)), np.zeros(2)),
    "fmin_l_bfgs_b by differences": lambda m, f, g: m.fmin_l_bfgs_b(f, np.zeros(2), approx_grad=True),
    "fmin_tnc": lambda m, f, g: m.fmin_tnc(f, np.zeros(2), g, messages=0),
    "fmin_slsqp": lambda m, f, g: m.fmin_slsqp(f, np.zeros(2), fprime=g, acc=1e-12, **BOWL),
    "brent": lambda m, f, g: m.brent(lambda x: f(np.array([1.0, 2.0]) * x), full_output=1),
    "golden": lambda m, f, g: m.golden(lambda x: f(np.array([1.0, 2.0]) * x), full_output=1),
    "fminbound": lambda m, f, g: m.fminbound(lambda x: f(np.array([1.0, 2.0]) * x), 0, 4, full_output=1),
}


@pytest.mark.parametrize("name", OLDER)
def test_older_functions_return_what_scipy_does(name):
    """By SciPy's own code: as many results, in its order, in compiled code too."""

    def call(module: Any, p: Any) -> Any:
        return OLDER[name](
            module, lambda x: np.sum((x - p * np.array([1.0, 2.0])) ** 2), lambda x: 2 * (x - p * np.array([1.0, 2.0]))
        )

    expected, seen = call(so, 1.5), []

    def place(p: Any) -> Any:
        found = call(so, p)
        seen.append(found)
        return np.sum(found[0])

    slope = np.sum(expected[0]) / 1.5
    np.testing.assert_allclose(func.grad(place)(1.5), slope, rtol=1e-4)
    np.testing.assert_allclose(func.jit(func.grad(place))(1.5), slope, rtol=1e-4)
    for found in seen:
        assert len(found) == len(expected)
    np.testing.assert_allclose(func.stop_gradient(call(own, 1.5)[0]), expected[0], atol=1e-4)


def test_tensors_and_trees_and_closures():
    def loss(tree):
        sol = so.root(lambda x, tree: x**3 + x - tree["b"] * tree["c"][0], np.zeros(2), args=(tree,), tol=1e-13)
        return np.sum(sol.x)

    tree = {"b": np.array([2.0, 10.0]), "c": [1.0]}
    gradient = func.grad(loss)(tree)
    np.testing.assert_allclose(gradient["b"], [1 / 4, 1 / 13], rtol=1e-9)
    t = func.tensor(tree["b"], requires_grad=True)
    loss({"b": t, "c": [1.0]}).backward()
    np.testing.assert_allclose(t.grad, gradient["b"])

    class Model:
        def __init__(self, b):
            self.b = b

        def __call__(self, x):
            return x**3 + x - self.b

    through_object = func.grad(lambda b: np.sum(so.root(Model(b), np.zeros(2), tol=1e-13).x))(tree["b"])
    np.testing.assert_allclose(through_object, [1 / 4, 1 / 13], rtol=1e-9)


def test_scipys_own_name_takes_differences_of_plain_numbers_also_beside_tensors():
    counts = []
    for _ in range(2):
        found = so.minimize(lambda x: np.sum((x - 1) ** 4), np.zeros(6))
        counts.append(found.nfev)
        func.tensor(np.ones(3), requires_grad=True)
    exact = own.minimize(lambda x: np.sum((x - 1) ** 4), np.zeros(6))
    assert counts[0] == counts[1] > 3 * exact.nfev


def test_results_are_scipys():
    def f(p):
        result = so.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(2))
        assert type(result) is so.OptimizeResult
        assert result.success is True and isinstance(result.message, str)
        assert {"x", "fun", "jac", "hess_inv", "nfev", "njev", "nit", "status"} <= set(result)
        x, info = so.brentq(lambda x: x - p[0], 0, 9, full_output=True)
        assert type(info) is so.RootResults and info.converged is True
        return result.fun + np.sum(result.jac) + x + info.root

    np.testing.assert_allclose(func.grad(f)(np.array([1.0, 2.0])), [2.0, 0.0], atol=1e-6)
    value, ok = func.jit(lambda p: (lambda r: (r.x, r.success))(so.minimize(lambda x: np.sum((x - p) ** 2), [0.0])))(
        3.0
    )
    np.testing.assert_allclose(value, [3.0])
    assert ok


def test_programs_without_traced_values_get_scipys_own_results():
    f = lambda x: np.sum((x - 1) ** 4)  # noqa: E731
    expected = so.minimize(f, np.zeros(3))
    inside = []
    func.grad(lambda y: (inside.append(so.minimize(f, np.zeros(3))), y * y)[1])(1.0)
    assert inside[0].nfev == expected.nfev
    np.testing.assert_array_equal(inside[0].x, expected.x)


def test_functions_that_func_cannot_trace_are_solved_by_differences():
    import math

    result = own.minimize(lambda x: math.exp(x[0]) - x[0], np.array([1.0]))
    np.testing.assert_allclose(result.x, [0.0], atol=1e-5)
    np.testing.assert_allclose(own.root(lambda x: [math.exp(x[0]) - 2.0], [0.5]).x, [np.log(2.0)])


def test_exact_derivatives_save_evaluations():
    rosen = lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)  # noqa: E731
    start = np.full(20, 0.5)
    assert own.minimize(rosen, start).nfev * 10 < so.minimize(rosen, start).nfev
    for method in ("Newton-CG", "trust-ncg", "trust-exact", "trust-krylov"):
        assert own.minimize(rosen, np.full(3, 0.9), method=method).success
    assert own.minimize(lambda x: np.sum(x**4 + x**2 - x), np.full(3, 0.9), method="dogleg").success


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "TNC", None])
def test_value_and_gradient_are_of_one_run_of_the_function(method):
    calls = []

    def objective(x, a):
        calls.append(1)
        return np.sum((x[1:] - x[:-1] ** 2) ** 2) + a * np.sum((1 - x) ** 2)

    exact = func.grad(objective)
    start = np.array([0.5, -0.3, 0.8])
    result = own.minimize(objective, start, (2.0,), method=method)
    assert len(calls) == result.nfev + 1  # once more to see that it can be traced
    expected = so.minimize(objective, start, (2.0,), method=method, jac=exact)
    assert result.nfev == expected.nfev
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.jac, expected.jac)


PROBLEMS = {
    "a double root": lambda p: so.root(lambda x: (x - p) ** 2, np.array([0.0])).x[0],
    "a double root of newton": lambda p: so.newton(lambda x: (x - p) ** 2, 0.5, maxiter=200),
    "not converged": lambda p: so.root(lambda x: x**2 + p, np.array([0.5])).x[0],
    "stopped early": lambda p: so.minimize(
        lambda x: np.sum((x - p) ** 4 + x**2), np.array([9.0]), options={"maxiter": 1}
    ).x[0],
    "a bound that is hardly active": lambda p: so.minimize(
        lambda x: (x[0] - p) ** 2, np.array([1.5]), bounds=[(None, 1.0)]
    ).x[0],
    "a degenerate vertex": lambda p: (
        so.linprog([-1.0, -2.0], A_ub=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], b_ub=np.stack([p, p, 2 * p])).fun
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives_that_do_not_exist_are_warned_of(name):
    for transform in (func.grad, func.jacfwd, lambda f: func.jit(func.grad(f))):
        with pytest.warns(SolverWarning, match=r"scipy.optimize.\w+ has"):
            transform(PROBLEMS[name])(1.0)


def test_singular_jacobians_raise():
    with pytest.raises(SingularSystemError, match=r"scipy.optimize.root: .* singular"):
        func.grad(lambda p: np.sum(so.root(lambda x: np.stack([x[0] + x[1] - p] * 2), np.zeros(2)).x))(1.0)
    with pytest.raises(SingularSystemError, match="linprog"):
        func.grad(lambda p: so.linprog([1.0, 1.0], A_ub=[[-1.0, -1.0]], b_ub=-np.reshape(p, 1)).x[0])(1.0)


def test_bad_input_raises_scipys_errors():
    with pytest.raises(ValueError, match="different signs"):
        func.grad(lambda p: so.brentq(lambda x: x**2 + p, 0, 1))(1.0)
    with pytest.raises(ValueError, match="Unknown solver"):
        func.grad(lambda p: so.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(2), method="none").x[0])(1.0)
    with pytest.raises(RuntimeError, match="Failed to converge"):
        func.grad(lambda p: so.newton(lambda x: x**2 + p, 0.5, fprime=lambda x: 2 * x))(1.0)
    with pytest.raises(UnsupportedFunctionError, match="integer variables"):
        func.grad(lambda p: so.linprog(np.stack([p, p]), bounds=(0, 1), integrality=[1, 1]).fun)(1.0)

    with pytest.raises(UnsupportedFunctionError, match=r"milp: .* integer variables"):
        func.grad(lambda p: so.milp([-1.0, p], integrality=[1, 0], bounds=so.Bounds(0, 1.5)).fun)(1.0)
    with pytest.raises(UnsupportedFunctionError, match=r"milp: .* integer variables"):
        func.grad(lambda p: so.milp([-1.0, 1.0], integrality=[1, 0], bounds=so.Bounds(0, np.stack([p, p]))).fun)(1.0)


def test_solvers_that_rounding_keeps_from_their_tolerance_are_at_the_solution():
    best = lambda p: so.minimize(lambda x: np.sum((x - p) ** 2 + 0.1 * x**4), np.zeros(2), tol=1e-15)  # noqa: E731
    assert not best(np.array([1.0, 2.0])).success
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes = func.jacfwd(lambda p: best(p).x)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(np.diag(slopes), [0.68826944, 0.45136516], rtol=1e-6)


TIMES = np.linspace(0, 2, 6)
DATA = 2 * np.exp(-0.7 * TIMES) + 0.05 * np.cos(5 * TIMES)
WEIGHTS = 0.1 + 0.05 * TIMES
SHAPED = np.diag(WEIGHTS**2) + 0.001


def fitted(place=0, x=TIMES, y=DATA, **options):
    model = lambda t, a, k: a * np.exp(-k * t)  # noqa: E731
    exact = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    return so.curve_fit(model, x, y, [1.0, 1.0], **exact, **options)[place]


FITS = {
    "x": lambda s: fitted(x=TIMES * s),
    "covariance and data": lambda s: fitted(1, y=DATA * s),
    "covariance and weights": lambda s: fitted(1, sigma=WEIGHTS + 0.01 * s * TIMES),
    "absolute weights": lambda s: fitted(1, sigma=WEIGHTS * s, absolute_sigma=True),
    "a matrix of weights": lambda s: fitted(0, sigma=SHAPED + 0.002 * s),
    "its covariance": lambda s: fitted(1, sigma=SHAPED * s, absolute_sigma=True),
    "a bound": lambda s: fitted(0, bounds=([0.0, 0.0], [1.5 * s, 3.0])),
}


@pytest.mark.parametrize("name", FITS)
def test_options_of_curve_fit_agree_with_differences(name):
    f, step = FITS[name], 1e-4
    differences = (f(1.0 + step) - f(1.0 - step)) / (2 * step)
    np.testing.assert_allclose(func.jacfwd(f)(1.0), differences, rtol=1e-3, atol=1e-5)


def test_curve_fit_of_several_variables():
    plane = lambda x, a, b: a * x[0] + b * x[1] ** 2  # noqa: E731
    known = lambda s: np.linalg.lstsq(np.stack([TIMES * s, (TIMES + 1.5) ** 2], 1), DATA, rcond=None)[0]  # noqa: E731
    for data in (lambda s: (TIMES * s, TIMES + 1.5), lambda s: np.stack([TIMES * s, TIMES + 1.5])):
        slope = func.jacfwd(lambda s, data=data: so.curve_fit(plane, data(s), DATA)[0])(1.1)
        np.testing.assert_allclose(slope, func.jacfwd(known)(1.1), rtol=1e-6, atol=1e-9)


def test_constants_and_starts_have_no_derivative():
    gradient = func.grad(lambda x0: so.root(lambda x: x**2 - 4.0 + 0 * x0, np.stack([x0])).x[0])(1.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    np.testing.assert_allclose(func.grad(lambda b: so.brentq(lambda x: x**2 - 4.0, 0, b))(9.0), 0.0)


def test_starts_of_integers_are_converted_for_exact_jacobians():
    meet = lambda x: np.array([x[0] ** 2 - 2 * x[1], x[1] - x[0]])  # noqa: E731
    model = lambda t, height, rate: height * np.exp(-rate * t)  # noqa: E731
    t = np.linspace(0.0, 2.0, 9)
    assert np.allclose(own.fsolve(meet, [1, 3]), 2.0) and np.allclose(own.root(meet, [1, 3]).x, 2.0)
    assert np.allclose(own.leastsq(meet, [1, 3])[0], 2.0)
    assert np.allclose(own.curve_fit(model, t, model(t, 2.0, 1.5), p0=[1, 1])[0], [2.0, 1.5])


def test_objects_of_bounds_and_constraints_hold_traced_values():
    def solution(p):
        box = so.Bounds([0.0, 0.0], [p, 9.0])
        line = so.LinearConstraint([[1.0, 1.0]], -np.inf, 2 * p)
        return so.minimize(lambda x: np.sum((x - 5) ** 2), np.zeros(2), bounds=box, constraints=[line]).x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)  # both hold x[0] at p
        np.testing.assert_allclose(func.jacfwd(solution)(1.5), [1.0, 1.0], atol=1e-6)


def test_indices_carry_no_derivative():
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])

    def total(c):
        rows, columns = own.linear_sum_assignment(c)
        return np.sum(c[rows, columns])

    np.testing.assert_array_equal(func.grad(total)(cost).sum(), 3.0)
    np.testing.assert_array_equal(func.jit(func.grad(total))(cost).sum(), 3.0)


def test_complex_roots():
    root = lambda c: so.newton(lambda z: z**2 - c, 1.0 + 1.0j, fprime=lambda z: 2 * z)  # noqa: E731
    np.testing.assert_allclose(
        func.grad(lambda c: np.real(root(c)))(1.0 + 2.0j), func.grad(lambda c: np.real(np.sqrt(c)))(1.0 + 2.0j)
    )


def test_args_that_scipy_unpacks_may_be_a_list():
    def root(p):
        found = so.newton(lambda x, a, b: a * x**3 + b * x - 1.0, np.ones(2), args=[p[0], p[1]])
        fit = so.least_squares(lambda x, a, b: np.stack([x[0] - a, x[0] - b]), np.array([0.5]), args=[p[0], p[1]])
        return np.sum(found) + fit.x[0]

    point = np.array([1.2, 0.7])
    slope = [(root(point + e) - root(point - e)) / 2e-6 for e in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(func.grad(root)(point), slope, rtol=1e-5)


@pytest.mark.parametrize("method", ["trf", "dogbox"])
@pytest.mark.parametrize("points", [1, 2, 3])
def test_fits_of_fewer_points_than_parameters_are_no_functions_of_the_data(points: int, method: str) -> None:
    """Infinitely many parameters fit the data; the one that SciPy returns depends on its steps."""
    t = np.arange(1.0, points + 1)

    def model(x: Any, a: Any, b: Any, c: Any) -> Any:
        return a * np.exp(-b * x) + c

    def fitted(y: Any) -> Any:
        return np.sum(so.curve_fit(model, t, y, p0=[1.0, 0.5, 0.1], method=method)[0])

    def solved(y: Any) -> Any:
        return np.sum(so.least_squares(lambda p: model(t, *p) - y, [1.0, 0.5, 0.1], method=method).x)

    for f in (fitted, solved):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                func.grad(f)(model(t, 1.2, 0.4, 0.2))
            except SingularSystemError:
                continue
        told = [str(w.message) for w in seen if issubclass(w.category, SolverWarning)]
        assert bool(told) == (points < 3), (points, told)
        assert all(["hardly determines" in text for text in told])


@pytest.mark.parametrize("transform", [func.grad, func.jit, func.vmap])
def test_nnls_of_no_rows_is_refused(transform: Any) -> None:
    A = np.ones((3, 2, 2))
    with pytest.raises(ArgumentError, match="A has no rows"):
        transform(lambda A: np.sum(so.nnls(A[:0], np.zeros(0))[0]))(A if transform is func.vmap else A[0])
