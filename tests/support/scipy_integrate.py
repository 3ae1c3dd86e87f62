"""Rows of scipy.integrate."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 7))
T = np.arange(7.0) + RNG.uniform(-0.2, 0.2, size=7)
EVEN = RNG.normal(size=(2, 9))


def points_of_box(m, x):
    """An integral over a box by quasi-Monte Carlo."""
    sampler = qmc.Halton(2, seed=3)
    low, high = [0, x[2]], [1, x[3]]
    return m.qmc_quad(
        lambda t: np.exp(x[0] * t[0]) + t[1] ** 2 * x[1], low, high, n_points=8, n_estimates=3, qrng=sampler
    )


def volterra(t, y, c):
    """The equations of Lotka and Volterra."""
    return [c[0] * y[0] - c[1] * y[0] * y[1], c[3] * y[0] * y[1] - c[2] * y[1]]


def decays(t, y, rate):
    """A decay, faster for large values."""
    return -rate * y**2


def falls(m, x):
    """The time and speed of the impact of a body that is thrown upwards."""

    def height(t, y):
        return y[0]

    height.terminal, height.direction = True, -1
    fall = m.solve_ivp(
        lambda t, y: [y[1], -x[0] - x[2] * y[1]], (0, 5), [0.1, x[1]], events=height, rtol=1e-10, atol=1e-10
    )
    return np.concatenate([fall.t_events[0], fall.y_events[0][0], fall.t[-1:], fall.y[:, -1]])


def in_two_parts(m, x):
    """A decay, to a time and on to another one."""
    solver = m.ode(lambda t, y, c: -c * y**2).set_integrator("dop853", rtol=1e-10, atol=1e-12)
    solver.set_f_params(x[0]).set_initial_value(x[1], 0.0)
    solver.integrate(0.1)
    return solver.integrate(x[2])


def turns(m, x):
    """A turn in the complex plane."""
    solver = m.complex_ode(lambda t, y: 1j * x[0] * y).set_integrator("vode", rtol=1e-10, atol=1e-12)
    solver.set_initial_value(x[1] * 1j, 0.0)
    return np.abs(solver.integrate(0.3) + 1)


def hangs(m, x):
    """A beam under a load, at a separate point."""
    nodes = np.linspace(0, 1, 5)
    solution = m.solve_bvp(
        lambda t, y: np.stack([y[1], -x[0] * np.exp(y[0])]), lambda a, b: np.stack([a[0], b[0] - x[1]]), nodes,
        np.zeros((2, 5)), tol=1e-7,
    )  # fmt: skip
    return np.concatenate([solution.y[:, -1], solution.sol(0.3)])


TIGHT = {"rtol": 1e-10, "atol": 1e-12}
START = np.array([1.5, 1.0, 3.0, 1.0, 1.0, 0.3])
TIMES = [0.1, 0.2]


ROWS: dict[str, Row] = {
    "trapezoid": Row(lambda m, x: m.trapezoid(x, T, axis=1), X),
    "trapezoid of nodes": Row(lambda m, x: m.trapezoid(X, x), T),
    "simpson": Row(lambda m, x: m.simpson(x, dx=0.3), X),
    "simpson of an even number": Row(lambda m, x: m.simpson(x, T[:6], axis=1), X[:, :6]),
    "simpson of nodes": Row(lambda m, x: m.simpson(X[:, :6], x=x), T[:6]),
    "cumulative_trapezoid": Row(lambda m, x: m.cumulative_trapezoid(x, axis=0, initial=0), X),
    "cumulative_trapezoid of nodes": Row(lambda m, x: m.cumulative_trapezoid(X, x), T),
    "cumulative_simpson": Row(lambda m, x: m.cumulative_simpson(x, x=T), X),
    "cumulative_simpson of even": Row(lambda m, x: m.cumulative_simpson(x, dx=0.4, axis=0, initial=1.0), X),
    "cumulative_simpson of nodes": Row(lambda m, x: m.cumulative_simpson(X, x=x), T),
    "romb": Row(lambda m, x: m.romb(x, dx=0.2), EVEN),
    "fixed_quad": Row(lambda m, x: m.fixed_quad(lambda t, c: np.exp(c * t), x[0], x[1], args=(x[2],), n=4), X[0, :3]),
    "quad": Row(lambda m, x: m.quad(lambda t, c: np.exp(c * t) * np.sin(x[3] * t), x[0], x[1], args=(x[2],)), X[0, :4]),
    "quad to infinity": Row(lambda m, x: m.quad(lambda t: np.exp(-((x[0] * t) ** 2)) * x[1], x[2], np.inf), X[0, :3]),
    "quad of complex": Row(
        lambda m, x: np.abs(m.quad(lambda t: np.exp(1j * x[0] * t), 0, x[1], complex_func=True)[0]), X[0, :2]
    ),
    "quad with a weight": Row(lambda m, x: m.quad(lambda t: t**2 * x[0], x[1], 2.0, weight="cos", wvar=3.0), X[0, :2]),
    "quad_vec": Row(lambda m, x: m.quad_vec(lambda t: np.cos(t * x[:2]), x[2], 1.0, epsrel=1e-10), X[0, :3]),
    "dblquad": Row(lambda m, x: m.dblquad(lambda t, s: np.sin(s * x[0]) * t, 0, 1, 0, lambda s: s), X[0, :1]),
    "tplquad": Row(lambda m, x: m.tplquad(lambda t, s, r: t * s * r * x[0], 0, 1, 0, 1, 0, lambda r, s: s), X[0, :1]),
    "nquad": Row(lambda m, x: m.nquad(lambda t, s, c: np.exp(c * t * s), [[0, 1], [0.0, 1.0]], args=(x[0],)), X[0, :1]),
    "solve_ivp": Row(
        lambda m, x: m.solve_ivp(volterra, (0, x[5]), x[4:6], t_eval=TIMES, args=(x[:4],), rtol=1e-8, atol=1e-10).y,
        START,
    ),
    "solve_ivp of all steps": Row(
        lambda m, x: m.solve_ivp(volterra, (x[4], 0.3), x[4:6], "DOP853", args=(x[:4],), rtol=1e-10, atol=1e-10).y[
            :, -1
        ],
        START - 0.1,
        without={"jit": "t_eval is needed"},
    ),
    "solve_ivp between steps": Row(
        lambda m, x: m.solve_ivp(
            lambda t, y: -x[0] * y, (0, 0.3), x[1:3], "RK23", rtol=1e-7, atol=1e-9, dense_output=True
        ).sol(x[2]),
        np.array([0.8, 0.3, 0.2]),
        rtol=1e-5,
    ),
    "solve_ivp with events": Row(
        falls, np.array([9.8, 3.0, 0.3]), without={"jit": "the number of events is not known"}
    ),
    "solve_ivp by Radau": Row(
        lambda m, x: m.solve_ivp(decays, (0, 0.2), x[1:], "Radau", [0.1, 0.2], args=(x[:1],), rtol=1e-7, atol=1e-9).y,
        np.array([1.5, 1.0]),
        1e-5,
        exact=1e-5,
    ),
    "solve_ivp by BDF": Row(
        lambda m, x: m.solve_ivp(decays, (0, 0.1), x[1:], "BDF", [0.05, 0.1], args=(x[:1],), rtol=1e-7, atol=1e-9).y,
        np.array([1.5, 1.0]),
        1e-5,
        exact=1e-5,
    ),
    "solve_ivp by LSODA": Row(
        lambda m, x: m.solve_ivp(decays, (0, 0.3), x[1:], "LSODA", [0.1, 0.3], args=(x[:1],), rtol=1e-9, atol=1e-11).y,
        np.array([1.5, 1.0]),
        exact=1e-6,
    ),
    "odeint": Row(
        lambda m, x: m.odeint(lambda y, t, c: [-c * y[0] * y[1], y[0]], x[1:3], [0, 0.1, x[3]], (x[0],), **TIGHT),
        np.array([1.5, 1.0, 0.7, 0.3]),
        exact=1e-7,
        rtol=1e-5,
    ),
    "ode": Row(in_two_parts, np.array([1.5, 0.7, 0.3]), exact=1e-7, rtol=1e-5),
    "complex_ode": Row(turns, np.array([1.5, 0.3]), exact=1e-7, rtol=1e-5),
    "tanhsinh": Row(
        lambda m, x: m.tanhsinh(lambda t, c: np.exp(-c * t) / np.sqrt(t), 0.0, x[:2], args=(x[2],)).integral,
        np.array([1.5, 0.7, 0.3]),
    ),
    "tanhsinh of logarithms": Row(
        lambda m, x: m.tanhsinh(lambda t: -((x[0] * t) ** 2) / 2, 0.0, np.inf, log=True).integral, np.array([1.5])
    ),
    "nsum": Row(lambda m, x: m.nsum(lambda k, c: 1 / k**c, x[0], 20.5, args=(x[1],)).sum, np.array([1.0, 2.5])),
    "cubature": Row(
        lambda m, x: (
            m.cubature(lambda t: np.exp(-x[0] * t[:, 0]) * t[:, 1], [0.0, 0.0], [x[1], 1.0], rule="gk15").estimate
        ),
        np.array([1.5, 0.7]),
    ),
    "solve_bvp": Row(hangs, np.array([0.8, 0.3]), 1e-5, 1e-7, {"jit": "the number of nodes is not known"}),
    "qmc_quad": Row(lambda m, x: points_of_box(m, x).integral, X[0, :4]),
}

STEPPERS = "a solver whose steps the caller takes; solve_ivp differentiates"
WITHOUT: dict[str, str] = {
    "newton_cotes": "a table of numbers, by an integer",
    "lebedev_rule": "a table of numbers, by an integer",
    "IntegrationWarning": "a class of warnings",
    "ODEintWarning": "a class of warnings",
    "dop": "a deprecated module",
    "lsoda": "a deprecated module",
    "odepack": "a deprecated module",
    "quadpack": "a deprecated module",
    "vode": "a deprecated module",
    "OdeSolver": "a base class",
    "DenseOutput": "a base class",
    "OdeSolution": "a result of solve_ivp, without use alone",
    "RK23": STEPPERS,
    "RK45": STEPPERS,
    "DOP853": STEPPERS,
    "Radau": STEPPERS,
    "BDF": STEPPERS,
    "LSODA": STEPPERS,
}
"""Public names without a row, each with its reason."""

if __name__ == "__main__":
    main("integrate", ROWS)
