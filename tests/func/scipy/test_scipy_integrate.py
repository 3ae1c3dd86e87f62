"""The laws of scipy.integrate's rows, and what rows cannot show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import func
from func.errors import ArgumentError, NotDifferentiableError, UnsupportedFunctionError
from tests.support.scipy_integrate import ROWS, START, WITHOUT, volterra
from tests.support.scipy_rows import check, parameters

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_integrate_rows(name, column):
    check(ROWS[name], "integrate", column)


def test_every_public_name_has_a_row_or_a_reason():
    named = {name.partition(" ")[0] for name in ROWS}
    public = set(scipy.integrate.__all__)
    assert named <= public and not named & set(WITHOUT)
    assert public - named - set(WITHOUT) == set()


def difference(f, x, step=1e-5):
    return (f(x + step) - f(x - step)) / (2 * step)


def jumps(a):
    return scipy.integrate.quad(lambda x: a * x if x > 0.5 else a**2 * x, 0, 1, points=[0.5])[0]


class Line:
    """An integrand with an attribute."""

    def __init__(self, slope):
        self.slope = slope

    def __call__(self, x):
        return self.slope * x


quad = scipy.integrate.quad
OF_QUAD = {
    "an endpoint that is singular": lambda a: quad(lambda x: x ** (-a / 4), 0, 1)[0],
    "limits in the other order": lambda a: quad(lambda x: np.exp(a * x), 1.0, -a)[0],
    "both infinite": lambda a: quad(lambda x: np.exp(-a * x**2), -np.inf, np.inf)[0],
    "cauchy": lambda a: quad(lambda x: np.exp(a * x), -1.0, a, weight="cauchy", wvar=0.2)[0],
    "alg": lambda a: quad(lambda x: np.exp(a * x), 0, 1, weight="alg", wvar=(-0.3, 0.4))[0],
    "sin to infinity": lambda a: quad(lambda x: np.exp(-a * x), 0, np.inf, weight="sin", wvar=2.0)[0],
    "points": lambda a: quad(lambda x: np.abs(x - 0.3) ** (a / 4), 0, 1, points=[0.3])[0],
    "a branch": jumps,
    "full output": lambda a: quad(lambda x: np.exp(a * x), 0, 1, full_output=1)[0],
    "an object": lambda a: quad(Line(a), 0, 1)[0],
    "a tree": lambda a: quad(lambda x, p: p["a"][0] * x, 0, 1, args=({"a": [a]},))[0],
    "complex": lambda a: quad(lambda x: np.exp(1j * a * x), 0, -1, complex_func=True)[0].real,
    "nquad with limits": lambda a: scipy.integrate.nquad(
        lambda x, y: x * y * a, [lambda y: (0, a * y), (0, 1)], opts={"limit": 20}
    )[0],
    "quad_vec to infinity": lambda a: np.sum(
        scipy.integrate.quad_vec(lambda x: np.exp(-x * np.array([a, 2])), 0, np.inf)[0]
    ),
    "tanhsinh": lambda a: scipy.integrate.tanhsinh(lambda x: x ** (-a / 4), 0, 1).integral,
    "nsum": lambda a: scipy.integrate.nsum(lambda k: 1 / k ** (2 + a), 1, np.inf, maxterms=999).sum,
    "cubature": lambda a: scipy.integrate.cubature(lambda x: np.exp(-a * x[:, 0]), [a], [np.inf]).estimate,
}


@pytest.mark.parametrize("name", OF_QUAD)
def test_integrals_agree_with_differences(name):
    f = OF_QUAD[name]
    np.testing.assert_allclose(func.grad(f)(1.5), difference(f, 1.5), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(func.vmap(f)(np.array([1.5, 1.6])), [f(1.5), f(1.6)], rtol=1e-9)


def test_third_derivatives_of_an_integral():
    third = func.grad(func.grad(func.grad(lambda a: quad(lambda x: np.exp(a * x), 0, 1)[0])))
    np.testing.assert_allclose(third(0.0), 0.25, rtol=1e-12)


def test_integrals_under_a_mapped_gradient_in_compiled_code():
    f = func.jit(func.vmap(func.grad(lambda a: quad(lambda x: a * x**2, 0, a)[0])))
    np.testing.assert_allclose(f(np.array([0.2, 1.5])), 4 / 3 * np.array([0.2, 1.5]) ** 3)


def test_tensors_reach_integrals_and_solutions():
    for f in (lambda t: quad(lambda x: t * x, 0, t)[0], lambda t: decay(t, "RK45").y[0, -1]):
        tensor = func.tensor(2.0, requires_grad=True)
        f(tensor).backward()
        np.testing.assert_allclose(float(tensor.grad), func.grad(f)(2.0), rtol=1e-12)


def decay(rate, method, **options):
    return scipy.integrate.solve_ivp(lambda t, y: -rate * y, (0, 1.0), [1.0], method, **{**TIGHT, **options})


@pytest.mark.parametrize(
    ("method", "adjoint", "compiled"),
    [
        ("RK45", None, False),
        ("RK45", "forward", True),
        ("RK45", "continuous", False),
        ("DOP853", None, True),
        ("Radau", "discrete", True),
        ("Radau", "forward", False),
        ("LSODA", "forward", False),
        ("LSODA", "continuous", True),
    ],
)
def test_adjoints_agree(method, adjoint, compiled):
    def loss(x):
        solution = func.scipy.integrate.solve_ivp(
            volterra, (0, x[5]), x[4:6], method, [0.1, 0.25], args=(x[:4],), adjoint=adjoint, rtol=1e-9, atol=1e-11
        )
        return np.sum(solution.y**2)

    expected = [1.19584077, -0.294351171, -0.000953876891, 0.00194362803, 6.31560842, -0.333176533]
    gradient = func.jit(func.grad(loss)) if compiled else func.grad(loss)
    np.testing.assert_allclose(gradient(START), expected, rtol=1e-6, atol=1e-9)
    if adjoint == "continuous":
        np.testing.assert_allclose(func.jacfwd(loss)(START), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_step": 0.1, "first_step": 0.01},
        {"method": "RK23", "rtol": 1e-5, "atol": [1e-4, 1e-7]},
        {"method": "DOP853", "rtol": 1e-7},
    ],
)
def test_compiled_controllers_take_the_steps_of_scipy(options):
    def states(a):
        return scipy.integrate.solve_ivp(
            lambda t, y: -a * y * np.cos(3 * t), (2.0, 0.0), [1.0, 2.0], t_eval=[1.3, 0.0], **options
        ).y

    np.testing.assert_allclose(func.jit(states)(2.0), states(2.0), rtol=1e-12)


def stiff(t, y, rate):
    return [y[1], rate * (1 - y[0] ** 2) * y[1] - y[0] * np.cos(t)]


def slope_of_stiff(t, y, rate):
    return np.array([[0.0, 1.0], [-2 * rate * y[0] * y[1] - np.cos(t), rate * (1 - y[0] ** 2)]])


@pytest.mark.parametrize(
    ("times", "options"),
    [
        ([0.0, 1.5, 3.0], {}),
        ([3.0, 1.5, 1.0], {"max_step": 0.3, "first_step": 0.01, "rtol": 1e-6, "atol": [1e-8, 1e-7]}),
        ([0.0, 1.5, 3.0], {"rtol": 1e-5, "jac": lambda t, y, rate: slope_of_stiff(t, y, rate) + 0.5}),
        ([3.0, 1.5, 1.0], {"rtol": 1e-4, "jac": np.array([[0.0, 1.0], [-1.0, 0.0]])}),
    ],
)
def test_the_compiled_controller_of_radau_does_what_scipy_does(times, options):
    problem = (stiff, (times[0], times[-1]), [0.5, 0.0], "Radau", times)

    def solve(rate):
        found = func.scipy.integrate.solve_ivp(*problem, args=(rate,), **options)
        return found.y, found.nfev, found.njev, found.nlu

    known = scipy.integrate.solve_ivp(*problem, args=(3.0,), **{"jac": slope_of_stiff, **options})
    y, *counts = func.jit(solve)(3.0)
    np.testing.assert_allclose(y, known.y, rtol=1e-9, atol=1e-11)
    assert [int(count) for count in counts] == [known.nfev, known.njev, known.nlu]


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_second_derivatives_by_the_start_and_the_end(method):
    def end(p):
        solve = func.scipy.integrate.solve_ivp
        decay = lambda t, y, a: -a * y * np.cos(t)  # noqa: E731
        return solve(decay, (p[1], p[2]), [1.0], method, [p[2]], args=(p[0],), rtol=1e-8, atol=1e-10).y[0, 0]

    p = np.array([1.3, 0.2, 0.6])
    known = func.hessian(lambda p: np.exp(-p[0] * (np.sin(p[2]) - np.sin(p[1]))))(p)
    np.testing.assert_allclose(func.hessian(end)(p), known, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "LSODA"])
def test_times_of_events(method):
    def half(t, y):
        return y[0] - 0.5

    half.terminal = True

    def time(rate):
        solution = decay(rate, method, events=[half, lambda t, y: y[0] - 0.9])
        return solution.t_events[0][0] + solution.t[-1] + solution.t_events[1][0]

    expected = -(2 * np.log(2) + np.log(1 / 0.9)) / 4
    np.testing.assert_allclose(func.grad(time)(2.0), expected, rtol=1e-7)
    if method == "RK45":
        np.testing.assert_allclose(func.grad(func.grad(time))(2.0), -expected, rtol=1e-6)


def test_fourth_derivatives_of_the_time_of_an_event():
    def time(rate):
        leaves = lambda t, y: y[0] - 0.5  # noqa: E731
        leaves.terminal = True
        return decay(rate, "DOP853", events=leaves, rtol=1e-6, atol=1e-8, first_step=0.25).t_events[0][0]

    third = func.grad(func.grad(func.grad(time)))
    np.testing.assert_allclose(func.grad(third)(2.0), 0.75 * np.log(2), rtol=1e-2)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_spans_times_and_values_between_steps(method):
    def solve(span, **options):
        return scipy.integrate.solve_ivp(lambda t, y: -2 * t * y, span, [1.0], method, **options, **TIGHT)

    np.testing.assert_allclose(func.grad(lambda t: solve((t, 1.0)).y[0, -1])(0.5), np.exp(-0.75), rtol=1e-7)
    np.testing.assert_allclose(func.grad(lambda t: solve((0, t)).y[0, -1])(0.5), -np.exp(-0.25), rtol=1e-7)
    asked = func.grad(lambda t: solve((0, 1.0), t_eval=[0.1, t]).y[0, 1])(0.5)
    np.testing.assert_allclose(asked, -np.exp(-0.25), rtol=1e-6)
    between = func.grad(lambda t: solve((0, 1.0), dense_output=True).sol(np.stack([t, 0.3]))[0, 0])(0.5)
    np.testing.assert_allclose(between, -np.exp(-0.25), rtol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_complex_states(method):
    def parts(a):
        y = scipy.integrate.solve_ivp(
            lambda t, y: 1j * a * y, (1.0, 0.0), np.array([1 + 0j]), method, t_eval=[0.5, 0.0], **TIGHT
        ).y[0]
        return np.concatenate([y.real, y.imag])

    expected = [0.5 * np.sin(-1), np.sin(-2), -0.5 * np.cos(1), -np.cos(2)]
    np.testing.assert_allclose(func.jacfwd(parts)(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(func.jit(func.jacfwd(parts))(2.0), expected, rtol=1e-6)


def test_right_sides_that_write_into_arrays_of_their_own():
    def right_side(t, y, rate):
        out = np.zeros(1)
        out[0] = -rate * y[0]
        return out

    for method in ("RK45", "Radau"):
        end = lambda a: scipy.integrate.solve_ivp(right_side, (0, 1.0), [1.0], method, args=(a,), **TIGHT).y[0, -1]  # noqa: B023,E731
        np.testing.assert_allclose(func.grad(end)(2.0), -np.exp(-2), rtol=1e-8)


def test_solutions_that_fail_in_compiled_code_are_nan():
    def ends(y0, **options):
        solve = func.scipy.integrate.solve_ivp
        solution = solve(lambda t, y: y**2, (0, 2.0), [y0], t_eval=[0.5, 2.0], **options)
        return solution.y[0], solution.success

    states, success = func.jit(ends)(1.0)
    assert not success and np.isnan(states[1]) and abs(states[0] - 2) < 1e-3
    states, success = func.jit(lambda y0: ends(y0, max_steps=1))(1.0)
    assert not success and np.isnan(states).all()


@pytest.mark.parametrize("method", ["RK45", "Radau", "LSODA"])
def test_times_outside_of_the_span_in_compiled_code(method):
    solve = lambda a, t: func.scipy.integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0], method, t).y  # noqa: E731
    for times, words in (([0.5, 1.5], "within"), ([0.5, 0.2], "sorted")):
        with pytest.raises(ValueError, match=words):
            func.jit(lambda a, times=times: solve(a, times))(2.0)
    states = func.jit(lambda a: solve(a, [0.5, a]))(2.0)
    assert abs(states[0, 0] - np.exp(-1)) < 1e-3 and np.isnan(states[0, 1])


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_compiled_controllers_end_where_nothing_is_a_number(method):
    def end(a):
        solution = func.scipy.integrate.solve_ivp(lambda t, y: a * np.sqrt(y), (0, 1), [-1.0], method, [1.0])
        return solution.y[0, 0], solution.success

    with np.errstate(invalid="ignore"):
        state, success = func.jit(end)(2.0)
    assert np.isnan(state) and not success


def test_unknown_parameters_and_singular_terms_of_boundary_value_problems():
    def frequency(mass):
        x, guess = np.linspace(0, 1, 7), np.zeros((2, 7))
        guess[0, 1], guess[0, 3] = 1, -1
        return scipy.integrate.solve_bvp(
            lambda x, y, p: np.stack([y[1], -(p[0] ** 2) * mass * y[0]]),
            lambda a, b, p: np.stack([a[0], b[0], a[1] - p[0]]), x, guess, p=[6.0], tol=1e-6,
        ).p[0]  # fmt: skip

    np.testing.assert_allclose(func.grad(frequency)(1.0), -np.pi, rtol=1e-6)

    def centre(c):
        return scipy.integrate.solve_bvp(
            lambda x, y: np.stack([y[1], -c * y[0] ** 5]), lambda a, b: np.stack([a[1], b[0] - 0.75**0.5]),
            np.linspace(0, 1, 5), np.ones((2, 5)) * [[1.0], [0.0]], S=np.diag([0.0, -2.0]), tol=1e-6,
        ).y[0, 0]  # fmt: skip

    np.testing.assert_allclose(func.grad(centre)(1.0), difference(centre, 1.0, 1e-4), rtol=1e-5)


def test_a_root_inside_of_a_right_side_in_compiled_code():
    def end(a):
        root = lambda y: scipy.optimize.root(lambda z: z**3 + z - y * a, np.zeros(1), tol=1e-12).x  # noqa: E731
        solve = func.scipy.integrate.solve_ivp
        return solve(lambda t, y: -root(y), (0, 0.3), [1.0], "RK23", [0.3], max_steps=8).y[0, 0]

    np.testing.assert_allclose(func.jit(func.grad(end))(1.3), difference(end, 1.3, 1e-3), rtol=1e-3)


solve_ivp = func.scipy.integrate.solve_ivp
REFUSED = {
    "points": (lambda a: quad(lambda x: x, 0, 1, points=[a])[0], NotDifferentiableError, "split the integral there"),
    "wvar": (lambda a: quad(lambda x: x, 0, 1, weight="cos", wvar=a)[0], NotDifferentiableError, "into the integrand"),
    "alg": (lambda a: quad(lambda x: x, 0, a, weight="alg", wvar=(0, 0))[0], NotDifferentiableError, "Substitute"),
    "adjoint": (lambda a: solve_ivp(lambda t, y: -y, (0, 1), [a], adjoint="no").y[0, -1], ArgumentError, "'no'"),
    "discrete": (
        lambda a: solve_ivp(lambda t, y: -y, (0, 1), [a], "BDF", adjoint="discrete").y[0, -1], ArgumentError, "Leave",
    ),
    "no t_eval": (
        func.jit(lambda a: solve_ivp(lambda t, y: -y, (0, 1), [a]).y[0, -1]), UnsupportedFunctionError,
        r"t_eval=\[t1\]",
    ),
    "nodes": (
        lambda a: scipy.integrate.cumulative_simpson(np.ones(3), x=np.stack([a, a, a]))[0], ValueError,
        "increasing",
    ),
    "limits": (lambda a: scipy.integrate.fixed_quad(np.exp, 0, a * np.inf)[0], ValueError, "finite limits"),
    "y0": (lambda a: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), a).y[0, -1], ValueError, "1-dimensional"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    function, error, words = REFUSED[name]
    with pytest.raises(error, match=f"(?i){words}"):
        func.grad(function)(0.5)


@pytest.mark.parametrize("rule", ["simpson", "trapezoid", "cumulative_simpson", "cumulative_trapezoid"])
@pytest.mark.parametrize("shape", [(2,), (3,), (6, 2), (5, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_rules_for_samples_have_the_values_and_dtypes_of_scipy(rule, shape, dtype):
    function, y = getattr(scipy.integrate, rule), np.random.default_rng(2).normal(size=shape).astype(dtype)
    for options in ({"axis": 0}, {"axis": -1, "dx": 0.3}, {"axis": 0, "x": np.arange(shape[0]) ** 2.0}):
        expected = function(y, **options)
        got = func.jvp(lambda y, options=options: function(y, **options), (y,), (y,))[0]
        assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
