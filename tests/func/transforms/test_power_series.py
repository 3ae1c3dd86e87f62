"""jet, taylor and derivatives: closed forms, compositions with every transform, structural zeros, refusals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, cast

import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.special

import func
from func.errors import ArgumentError, DifferentiatedInputError, NotDifferentiableError, TangentError

X = np.array([0.3, 0.7, 1.2])
V = np.array([1.0, -0.5, 2.0])
ORDER = 3

Function = Callable[[Any], Any]


def nested(f: Function, x: Any, order: int = ORDER) -> list[Any]:
    """The derivatives along V by forward mode of forward mode."""
    orders: list[Function] = [lambda t: f(x + t * V)]
    for _ in range(order):
        orders.append(lambda t, g=orders[-1]: func.jvp(g, (t,), (1.0,))[1])
    return [g(0.0) for g in orders]


def along(f: Function, x: Any, order: int = ORDER) -> list[Any]:
    """The same by one jet."""
    out, series = func.jet(f, (x,), ([V, *[0.0] * (order - 1)],))
    return [out, *series]


def agree(got: list[Any], expected: list[Any]) -> bool:
    """Whether all derivatives are equal up to rounding."""
    return all(np.allclose(x, y, rtol=1e-8, atol=1e-9) for x, y in zip(got, expected, strict=True))


CLOSED: dict[str, tuple[Function, Function, float, int]] = {
    "exp": (np.exp, mpmath.exp, 0.4, 20),
    "log": (np.log, mpmath.log, 1.7, 20),
    "log1p": (np.log1p, lambda t: mpmath.log(1 + t), 0.4, 15),
    "sin": (np.sin, mpmath.sin, 1.1, 20),
    "cos": (np.cos, mpmath.cos, 1.1, 20),
    "tan": (np.tan, mpmath.tan, 0.4, 15),
    "tanh": (np.tanh, mpmath.tanh, 0.4, 20),
    "sinh": (np.sinh, mpmath.sinh, 0.4, 20),
    "sqrt": (np.sqrt, mpmath.sqrt, 1.3, 20),
    "cbrt": (np.cbrt, mpmath.cbrt, 1.3, 15),
    "power": (lambda x: x**2.7, lambda t: t ** mpmath.mpf(2.7), 1.3, 20),
    "cube": (lambda x: x**3, lambda t: t**3, 0.0, 10),
    "inverse": (lambda x: 1 / (1 + x * x), lambda t: 1 / (1 + t * t), 0.6, 20),
    "arctan": (np.arctan, mpmath.atan, 0.6, 15),
    "arcsin": (np.arcsin, mpmath.asin, 0.3, 12),
    "arctanh": (np.arctanh, mpmath.atanh, 0.3, 12),
    "bump": (lambda x: np.tanh(np.sin(x) + x**2 / 2), lambda t: mpmath.tanh(mpmath.sin(t) + t**2 / 2), 0.7, 12),
    "erf": (scipy.special.erf, mpmath.erf, 0.5, 15),
    "gamma": (scipy.special.gammaln, mpmath.loggamma, 2.5, 8),
    "bessel": (scipy.special.j0, lambda t: mpmath.besselj(0, t), 1.5, 10),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name: str) -> None:
    f, exact, x, order = CLOSED[name]
    got = func.taylor(f, x, 1.0, order)
    with mpmath.workdps(40):
        expected = [float(c) for c in mpmath.taylor(exact, mpmath.mpf(x), order)]
    scale = np.maximum(np.abs(expected), 1e-3 * np.max(np.abs(expected)))
    assert np.max(np.abs(np.array(got) - expected) / scale) < 1e-11


def scanned(x: Any) -> Any:
    return func.scan(lambda c, a: (np.sin(c) * a + c, c * a), x, np.arange(1.0, 4.0))[0]


def scanned_rows(x: Any) -> Any:
    carry, rows = func.scan(lambda c, a: (np.tanh(c * a), c + a), x[0], x)
    return carry + rows


def looped(x: Any) -> Any:
    return func.while_loop(lambda c: np.sum(c) < 40, lambda c: c * x + c + 1, x)


def branched(x: Any) -> Any:
    return func.cond(x[0] > 0, lambda x: np.exp(x), lambda x: x**2, x)


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] ** 2
    y[0] = np.exp(x[0])
    y *= x
    y[1] += np.sin(y[0])
    return y


def overwritten(x: Any) -> Any:
    x[0] = x[1] ** 3
    x *= 2
    return x


def imperative(x: Any) -> Any:
    w = func.tensor(np.ones(3), requires_grad=True)
    np.sum(np.sin(w * x) * w).backward()
    return w.grad


@func.custom_jvp
def with_tangents(x: Any) -> Any:
    return np.exp(x)


with_tangents.defjvp(lambda primals, tangents: (with_tangents(*primals), with_tangents(*primals) * tangents[0]))


@func.custom_jvp
def with_long_rule(x: Any) -> Any:
    return np.sin(x)


@with_long_rule.defjvp
def with_long_rule_jvp(primals: Any, tangents: Any) -> Any:
    weights = np.ones(3)
    slope = np.cos(primals[0]) * weights
    weights[:] = 5.0
    for _ in range(400):
        slope = slope + 0.0
    return np.sin(primals[0]), slope * tangents[0]


@func.custom_vjp
def with_pullback(x: Any) -> Any:
    return np.sin(x)


with_pullback.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.cos(x) * ct,))


class Exponential(func.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return np.exp(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0] * np.exp(ctx.saved_tensors[0])


def tangent_by_itself(x: Any) -> Any:
    return np.exp(x) * x


with_own_outputs = func.custom_jvp(tangent_by_itself)
with_own_outputs.defjvp(
    lambda primals, tangents: (tangent_by_itself(*primals), np.exp(primals[0]) * (1 + primals[0]) * tangents[0])
)


@func.custom_jvp
def with_sum(x: Any, y: Any) -> Any:
    return x * np.sin(y), np.sum(x)


@with_sum.defjvp
def with_sum_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return (x * np.sin(y), np.sum(x)), (dx * np.sin(y) + x * np.cos(y) * dy, np.sum(dx))


@func.custom_gradient
def with_gradient(x: Any) -> Any:
    return np.sin(x), lambda ct: ct * np.cos(x)


@func.custom_vmap
def with_batching(x: Any, y: Any) -> Any:
    return x * np.sin(y), np.argmax(x)


@with_batching.def_vmap
def with_batching_rule(size: int, batched: Any, x: Any, y: Any) -> Any:
    x, y = [a if has_axis else a + np.zeros((size, 1)) for a, has_axis in zip((x, y), batched, strict=True)]
    return (x * np.sin(y), np.argmax(x, axis=-1)), (True, True)


def linear_solve(x: Any) -> Any:
    matrix = 3 * np.eye(3) + np.outer(x, x**2)
    solution = func.custom_linear_solve(
        lambda y: matrix @ y,
        np.sin(x),
        lambda matvec, b: np.linalg.solve(matrix, b),
        lambda matvec, b: np.linalg.solve(matrix.T, b),
    )
    return solution * x


def root_by_newton(x: Any) -> Any:
    def solve(g: Any, y: Any) -> Any:
        for _ in range(30):
            y = y - g(y) / (3 * y**2 + 1)
        return y

    def tangent_solve(g: Any, y: Any) -> Any:
        return np.linalg.solve(func.jacfwd(g)(np.zeros(3)), y)

    return func.custom_root(lambda y, p: y**3 + y - p, solve, tangent_solve)(np.zeros(3), x * x)


def algebra(x: Any) -> Any:
    matrix = np.diag([4.0, 5.0, 6.0]) + np.outer(x, x)
    return np.linalg.solve(matrix, x) + np.linalg.eigvalsh(matrix) + np.linalg.det(matrix)


def reductions(x: Any) -> Any:
    return np.cumsum(x**2) + np.prod(x) + np.max(x) + np.linalg.norm(x) + np.sort(-x) + np.cumprod(x)


def powers(x: Any) -> Any:
    return x**2.5 + x**-3 + x ** np.float64(1.5) + 2.0**x + x**x + x ** np.array([2.0, 0.5, 1.5])


def in_a_batch(a: Any) -> Any:
    peers = func.collectives
    mean, rows = peers.pmean(np.sin(a), "i"), peers.all_gather(np.exp(a), "i")
    return peers.psum(a**2, "i") * a + mean * peers.pmax(a * a, "i") + np.sum(rows**2) * a * peers.axis_index("i")


def special(x: Any) -> Any:
    return scipy.special.gammaln(x) + scipy.special.expit(x) + scipy.special.logsumexp(x)


FUNCTIONS: dict[str, Function] = {
    "scan": scanned,
    "scan of rows": scanned_rows,
    "cond": branched,
    "jit": func.jit(lambda x: np.exp(np.sin(x)) * x),
    "jit of scan": func.jit(scanned),
    "grad inside jit": func.jit(func.grad(lambda x: np.sum(np.where(x > 0.5, np.sqrt(x), x) * x))),
    "fori_loop": lambda x: func.fori_loop(0, 4, lambda i, c: np.sin(c) + i * x, x),
    "grad": lambda x: func.grad(lambda y: np.sum(np.sin(y) * y**2 * x))(x),
    "hessian": lambda x: func.hessian(lambda y: np.sum(np.sin(y) * y[::-1]))(x),
    "jvp": lambda x: func.jvp(lambda y: np.exp(y * x), (x,), (x * 2,))[1],
    "vmap": lambda x: func.vmap(lambda a: np.exp(a) * x[0])(x),
    "jet": lambda x: func.jet(np.sin, (x * x,), ([x, x**2, np.exp(x)],))[1][2],
    "derivatives": lambda x: func.derivatives(np.tanh, 3)(x)[3],
    "writes": written,
    "writes to an argument": overwritten,
    "lists": lambda x: np.array([x[0] * x[1], np.sin(x[2])]),
    "tensors": imperative,
    "checkpoint": func.checkpoint(lambda x: np.sin(np.exp(x)) * x),
    "custom_jvp": lambda x: with_tangents(np.sin(x)) * with_tangents(x),
    "custom_jvp of many steps": lambda x: with_long_rule(x * x),
    "custom_vjp": lambda x: with_pullback(x * x),
    "custom_jvp of other outputs": lambda x: with_own_outputs(np.sin(x)),
    "custom_jvp of two batches": lambda x: func.vmap(lambda a: with_sum(x, a * x)[0] * with_sum(x * a, x)[1])(x),
    "custom_gradient": lambda x: with_gradient(x * x),
    "custom_vmap": lambda x: with_batching(x * x, np.ones(3))[0] * with_batching(np.ones(3), x)[0],
    "custom_vmap under vmap": lambda x: func.vmap(lambda a: with_batching(a * x, x)[0] * with_batching(x, x * a)[0])(x),
    "custom_linear_solve": linear_solve,
    "custom_linear_solve under vmap": lambda x: func.vmap(lambda a: linear_solve(a * x))(x),
    "custom_root": root_by_newton,
    "collectives": lambda x: func.vmap(in_a_batch, axis_name="i")(x),
    "Function": lambda x: Exponential.apply(np.sin(x)),
    "linear algebra": algebra,
    "expm": lambda x: scipy.linalg.expm(np.outer(x, x)) @ x,
    "special functions": special,
    "fixed_point": lambda x: func.fixed_point(lambda y, x: np.cos(y) * 0.5 + 0.1 * x, x, x),
    "powers": powers,
    "reductions": reductions,
    "complex": lambda x: np.real(np.exp(1j * x) * (1 + x * 1j) ** 3),
    "fft": lambda x: np.abs(np.fft.rfft(np.sin(x))) ** 2,
    "stop_gradient": lambda x: func.stop_gradient(x) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compositions(name: str) -> None:
    f = FUNCTIONS[name]
    expected = nested(f, X)
    assert agree(along(f, X), expected)
    assert agree(func.jit(lambda x: along(f, x))(X), expected), "jit"
    assert agree([row[1] for row in func.vmap(lambda x: along(f, x))(np.stack([X + 0.1, X]))], expected), "vmap"
    gradient = func.grad(lambda x: np.sum(along(f, x, 2)[2]))(X)
    assert np.allclose(np.vdot(gradient, V), np.sum(expected[3]), rtol=1e-8), "grad"


SOLVERS: dict[str, Function] = {
    "solve_ivp": lambda x: scipy.integrate.solve_ivp(lambda t, y: -x * y**2, (0, 1), np.sin(x), rtol=1e-6).y[:, -1],
    "quad": lambda x: scipy.integrate.quad(lambda t: np.sin(t * x[0]) * x[1], 0, x[2])[0],
    "root": lambda x: scipy.optimize.root(lambda y: y**3 + y - x, np.zeros(3), tol=1e-13).x,
    "CubicSpline": lambda x: scipy.interpolate.CubicSpline(np.arange(3.0), x**2)(np.sin(x)),
    "values that Python reads": lambda x: np.exp(x) if x[0] > 0 else x,
    "while": lambda x: python_loop(x),
    "pieces": lambda x: func.vmap(lambda a: np.sin(a) if a > 0.5 else a**3)(x),
}


def python_loop(x: Any) -> Any:
    y = x
    while np.sum(y) < 10:
        y = y * 1.5 + np.sin(x)
    return y


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_and_branches(name: str) -> None:
    assert agree(along(SOLVERS[name], X), nested(SOLVERS[name], X))


TRAPS: dict[str, tuple[Function, Any]] = {
    "sqrt": (np.sqrt, [0.0, 1.0, 4.0]),
    "log": (np.log, [0.0, 1.0, 4.0]),
    "chosen log": (lambda x: np.where(x > 0, np.log(x), x), [0.0, 1.0, -4.0]),
    "abs": (lambda x: np.abs(x) * x + np.abs(x) ** 2, [0.0, 1.0, -4.0]),
    "powers": (lambda x: x**0 + x**1.0 + x**2.5 + x**0.5, [0.0, 1.0, 4.0]),
    "array powers": (lambda x: x ** np.array([0.0, 1.0, 2.0]), [0.0, 0.0, 0.0]),
    "integer powers": (lambda x: x ** np.array([2, 3, 4]), [0.0, 0.0, -1.0]),
    "powers of zero": (lambda x: 0.0**x, [0.0, 1.0, 4.0]),
    "own powers": (lambda x: x**x, [0.0, 1.0, 4.0]),
    "xlogy": (lambda x: scipy.special.xlogy(x, x), [0.0, 1.0, 4.0]),
    "ties": (lambda x: np.max(x) * np.sort(x) + np.maximum(x * x, x), [4.0, 1.0, 4.0]),
    "norm": (np.linalg.norm, [0.0, 0.0, 0.0]),
    "products": (lambda x: np.prod(x) + np.cumprod(x), [0.0, 0.0, -2.0]),
    "steps": (lambda x: np.floor(x) * x + np.sign(x) + np.mod(x, 1.5), [0.0, 1.0, -2.0]),
    "quotients": (lambda x: x / x, [0.0, 2.0, -1.5]),
    "saturation": (lambda x: np.tanh(x) + scipy.special.expit(x) + np.logaddexp(0.0, x), [0.0, 800.0, -800.0]),
    "sinc": (np.sinc, [0.0, 1e-9, 1e-3]),
    "branch point": (np.cbrt, [0.0, 8.0, -8.0]),
    "determinant": (lambda x: np.linalg.det(np.diag(x)), [0.0, 0.0, 8.0]),
}


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_singular_points_are_those_of_nested_forward_mode(name: str) -> None:
    f, point = TRAPS[name]
    x = np.array(point)
    for v in (np.ones(3), np.array([0.0, 1.0, -0.5])):
        orders: list[Function] = [f]
        for _ in range(ORDER):
            orders.append(lambda y, g=orders[-1], v=v: func.jvp(g, (y,), (v,))[1])
        expected = [g(x) for g in orders]
        for terms in (func.taylor(f, x, v, ORDER), func.jit(lambda x, v=v: func.taylor(f, x, v, ORDER))(x)):
            for k, (term, derivative) in enumerate(zip(terms, expected, strict=True)):
                assert np.allclose(term * float(math.factorial(k)), derivative, rtol=1e-7, atol=1e-8, equal_nan=True), k


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp", "custom_gradient", "custom_vmap", "custom_linear_solve"])
def test_rules_do_not_run_twice_for_each_order(name: str) -> None:
    runs = []

    def counted(x: Any) -> Any:
        runs.append(0)
        return np.cos(x)

    if name == "custom_jvp":
        rule = func.custom_jvp(np.sin)
        rule.defjvp(lambda primals, tangents: (np.sin(*primals), counted(*primals) * tangents[0]))
    elif name == "custom_vjp":
        rule = func.custom_vjp(np.sin)
        rule.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (counted(x) * ct,))
    elif name == "custom_gradient":
        rule = func.custom_gradient(lambda x: (np.sin(x), lambda ct: ct * counted(x)))
    elif name == "custom_vmap":
        rule = func.custom_vmap(lambda x: counted(x) + x)
        rule.def_vmap(lambda size, batched, x: (counted(x) + x, True))
    else:
        rule = lambda x: func.custom_linear_solve(lambda y: np.exp(x) * y, x, lambda _, b: counted(0) * b / np.exp(x))  # noqa: E731

    def count(order: int) -> int:
        runs.clear()
        func.taylor(rule, X, V, order)
        return len(runs)

    assert count(8) <= 2 * count(4)
    sizes = [len(func.make_program(lambda x, k=k: func.taylor(rule, x, V, k))(X).equations) for k in (4, 8)]
    assert sizes[1] <= 4.5 * sizes[0]


def test_loops_of_unknown_length() -> None:
    assert agree(along(func.jit(looped), X), nested(looped, X))
    assert agree(func.jit(lambda x: along(looped, x))(X), nested(looped, X))
    with pytest.raises(NotDifferentiableError, match="max_steps"):
        func.grad(lambda x: np.sum(along(func.jit(looped), x)[2]))(X)


def test_curves() -> None:
    """A curve that is not a line: x(t) = exp(t), y(t) = 1 / (1 - t)."""
    series = [1.0] * 5, [float(math.factorial(k)) for k in range(1, 6)]

    def f(x: Any, y: Any) -> Any:
        return {"product": x["a"] * y, "sum": [x["a"] + y]}

    _, terms = func.jet(f, ({"a": 1.0}, 1.0), ({"a": series[0]}, series[1]))
    partial_sums = [sum(1 / math.factorial(j) for j in range(k + 1)) for k in range(6)]
    assert np.allclose(terms["product"], [math.factorial(k) * partial_sums[k] for k in range(1, 6)])
    assert np.allclose(terms["sum"][0], [1 + math.factorial(k) for k in range(1, 6)])


def test_chain() -> None:
    """The jet of a composition is the jet of the outer function at that of the inner one."""
    inner = func.jet(lambda x: (np.sin(x), x**2), (X,), ([V, X, V * X],))
    outer = func.jet(lambda a, b: a * np.exp(b), *inner)
    whole = func.jet(lambda x: np.sin(x) * np.exp(x**2), (X,), ([V, X, V * X],))
    assert agree([outer[0], *outer[1]], [whole[0], *whole[1]])


def test_trees_dtypes_and_order_zero() -> None:
    point = {"a": np.ones(2, np.float32), "n": np.arange(2, dtype=np.int8)}
    coefficients = func.taylor(lambda p: p["a"] ** 2 * p["n"], point, {"a": np.ones(2, np.float32), "n": 0}, 2)
    assert [c.dtype for c in coefficients] == [np.float32] * 3
    assert np.array_equal(coefficients[2], [0.0, 1.0])
    assert func.jet(np.sin, (1.0,), ([],)) == (np.sin(1.0), [])
    assert func.taylor(np.sin, 1.0, 1.0, 0) == [np.sin(1.0)]
    assert func.derivatives(np.sin, 0)(1.0) == (np.sin(1.0),)
    out, terms = func.jet(lambda x: np.argmax(x), (X,), ([V, V],))
    assert (out, terms) == (2, [0, 0])


def test_derivatives_of_arrays() -> None:
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    first, second = func.derivatives(lambda x: x**3, 2)(x)[1:]
    assert np.allclose(first, 3 * x**2)
    assert np.allclose(second, 6 * x)
    assert func.derivatives(lambda x: np.stack([x, x**2]), 1)(x)[1].shape == (2, 3, 2)
    assert func.derivatives(np.sin, 1)(np.zeros((0,)))[1].shape == (0,)
    powers = func.derivatives(lambda x, n, *, scale: scale * x**n, 2)(X, 4, scale=2.0)
    assert np.allclose(powers[2], 24 * X**2)
    by_second = func.derivatives(lambda n, x: x**n, 2, argnums=1)(4, X)
    assert np.allclose(by_second[2], 12 * X**2)
    by_name = func.derivatives(order=1, argnames="x")(lambda n, *, x: x**n)(4, x=2.0)
    assert by_name == (16.0, 32.0)
    assert np.allclose(func.derivatives(lambda x: x if x < 0 else x**2, 2)(np.array([-1.0, 2.0]))[1], [1.0, 4.0])


SELECTED: dict[str, tuple[Function, list[float]]] = {
    "where": (lambda x: np.where(x > 0, np.sqrt(x), 0.0) * 1.0, [0.0, -0.25]),
    "sqrt": (lambda x: np.sqrt(x) * np.array([0.0, 1.0]), [np.nan, -0.25]),
    "log": (lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), x), [0.0, -1.0]),
    "maximum": (lambda x: np.maximum(np.sqrt(x), 0.5) ** 2, [0.0, 0.0]),
    "root": (np.sqrt, [-np.inf, -0.25]),
}


@pytest.mark.parametrize("name", SELECTED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_structural_zeros(name: str) -> None:
    f, expected = SELECTED[name]
    x = np.array([0.0, 1.0])

    def second(x: Any) -> Any:
        return func.jet(f, (x,), ([np.ones(2), np.zeros(2)],))[1][1]

    assert np.allclose(second(x), expected, equal_nan=True)
    assert np.allclose(func.jit(second)(x), expected, equal_nan=True)


def test_zeros_of_the_direction_are_structural() -> None:
    x, v = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    for f in (np.sqrt, np.log1p, lambda x: x**1.5, lambda x: np.sqrt(x) * np.sqrt(x), lambda x: np.sin(np.sqrt(x)) / 2):
        terms = func.taylor(f, x, v, 3)[1:]
        assert np.array_equal([term[0] for term in terms], np.zeros(3))
        assert np.allclose(func.jit(lambda x, f=f: func.taylor(f, x, v, 3)[1:])(x), terms)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "f", [np.cbrt, np.sqrt, lambda x: x**2.5, lambda x: x**0.5], ids=["cbrt", "sqrt", "5/2", "1/2"]
)
def test_curves_that_begin_with_zeros_are_not_constant(f: Function) -> None:
    """At a branch point, of x(t) = t²: nothing is known of some derivative, and it is not zero."""
    x, second = np.array([0.0, 1.0]), np.array([2.0, 0.0])
    _, terms = func.jet(f, (x,), ([np.zeros(2), second, *[0.0] * 3],))
    assert not np.all(np.isfinite([term[0] for term in terms]))
    assert not np.any([term[1] for term in terms])
    _, jitted = func.jit(lambda x: func.jet(f, (x,), ([np.zeros(2), second, *[0.0] * 3],)))(x)
    assert np.array_equal(np.isfinite(jitted), np.isfinite(terms))


def test_cost_grows_with_the_square_of_the_order() -> None:
    def size(order: int) -> int:
        f = func.derivatives(lambda x: np.tanh(np.sin(x) + x**2 / 2), order)
        return len(func.make_program(f)(X).equations)

    assert size(10) <= 4.5 * size(5)
    assert size(20) <= 4.5 * size(10)
    program = func.make_program(lambda x: along(scanned, x, 8))(X)
    calls = [e for e in program.equations if e.primitive.name == "scan_call"]
    assert len(calls) == 1
    assert len(calls[0].params["body"].program.equations) < 200


def test_sine_and_cosine_share_their_series() -> None:
    program = func.make_program(lambda x: func.taylor(np.sin, x, 1.0, 8))(1.0)
    names = [equation.primitive.name for equation in program.equations]
    assert (names.count("sin"), names.count("cos")) == (1, 1)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative order": (lambda: func.taylor(np.sin, 1.0, 1.0, -1), ArgumentError, "order must be 0 or more, not -1"),
    "negative order of derivatives": (lambda: func.derivatives(np.sin, -2), ArgumentError, "0 or more, not -2"),
    "order no int": (lambda: func.derivatives(np.sin, cast(Any, 2.5)), TypeError, "order must be an int, not 2.5"),
    "lengths": (
        lambda: func.jet(np.add, (1.0, 1.0), ([1.0], [1.0, 0.0])),
        TangentError,
        "the same number of derivatives, but primals[0] has 1, primals[1] has 2",
    ),
    "count": (lambda: func.jet(np.add, (1.0, 1.0), ([1.0],)), TangentError, "one entry per primal (2)"),
    "no list": (lambda: func.jet(np.sin, (X,), (V,)), TangentError, "must be a list of derivatives, not ndarray"),
    "tree": (lambda: func.jet(len, ({"a": 1.0},), ([1.0],)), TangentError, "must have the tree of its primal"),
    "no tuple": (lambda: func.jet(np.sin, X, ([V],)), TypeError, "write (x,) for a single argument"),
    "shape": (
        lambda: func.jet(np.sin, (X,), ([np.ones(2)],)),
        TangentError,
        "shape (3,), but its tangent has shape (2,)",
    ),
    "dtype": (
        lambda: func.jet(np.sin, (X,), ([V.astype(np.float32)],)),
        TangentError,
        "convert it with .astype(np.float64)",
    ),
    "tree of v": (lambda: func.taylor(np.sin, 1.0, (1.0,), 2), TangentError, "v has the tree"),
    "integers": (lambda: func.taylor(np.sin, 1, 1, 2), DifferentiatedInputError, "a Python int"),
    "integers of derivatives": (lambda: func.derivatives(np.sin, 2)(1), DifferentiatedInputError, "pass a float"),
    "complex": (lambda: func.derivatives(np.sin, 2)(1j), DifferentiatedInputError, "func.taylor gives"),
    "no argument": (lambda: func.derivatives(np.sin, 2)(), ArgumentError, "without positional arguments"),
    "two arguments": (lambda: func.derivatives(np.add, 2, cast(Any, (0, 1))), TypeError, "func.taylor gives"),
    "no derivative": (
        lambda: func.taylor(lambda a: scipy.special.betainc(a, 2.0, 0.4), 1.5, 1.0, 4),
        NotDifferentiableError,
        "no derivative of",
    ),
    "shape by data": (
        lambda: func.jit(guards=False)(lambda x: func.taylor(lambda x: x[x > 0], x, V, 2))(X),
        Exception,
        "shape",
    ),
    "read": (lambda: func.taylor(lambda x: x * float(np.sum(x)), X, V, 2), Exception, "float"),
    "function": (lambda: func.jet(cast(Any, 3), (1.0,), ([1.0],)), TypeError, "jet"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=re.escape(message)):
        call()


def test_masks_change_shapes_outside_jit() -> None:
    coefficients = func.taylor(lambda x: x[x > 0.5] ** 2, X, V, 2)
    assert np.allclose(coefficients[2], V[1:] ** 2)


def test_series_of_right_hand_sides_that_stop() -> None:
    a = np.linspace(0.1, 1.0, 6).reshape(3, 2) ** 2
    direction = np.array([1.0, -0.5, 2.0])
    for zeros in (np.zeros(3), np.zeros(3) * direction):
        _, series = func.jet(lambda b: np.linalg.lstsq(a, b, rcond=None)[0], (X[:3],), ((direction, zeros, zeros),))
        assert np.allclose(series[0], np.linalg.pinv(a) @ direction)
        assert np.allclose(series[1], 0) and np.allclose(series[2], 0)


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("order", range(8))
def test_flows_are_taylor_series_of_solutions(order, wrap):
    flow = wrap(lambda y: func.taylor_flow(lambda y: y**2, y, order))
    np.testing.assert_allclose(flow(0.5), [0.5 ** (k + 1) for k in range(order + 1)], rtol=1e-14)  # y0 / (1 - y0 t)
    turn = wrap(lambda y: func.taylor_flow(lambda y: np.array([y[1], -y[0]]), y, order))
    exact = [1.0, 0.0, -1.0, 0.0] * 3
    found = np.array([*turn(np.array([0.0, 1.0]))])[:, 1]
    np.testing.assert_allclose(found, [exact[k] / math.factorial(k) for k in range(order + 1)], rtol=1e-14)


def test_flows_of_trees_and_of_time():
    found = func.taylor_flow(lambda s: {"t": 1.0, "y": s["t"] * s["y"]}, {"t": 0.0, "y": 1.0}, 6)  # exp(t^2 / 2)
    assert [c["y"] for c in found] == pytest.approx([1, 0, 1 / 2, 0, 1 / 8, 0, 1 / 48])
    assert [c["t"] for c in found] == [0, 1, 0, 0, 0, 0, 0]


def test_derivatives_of_flows():
    def third(a):
        return func.taylor_flow(lambda y: a * y, 1.0, 3)[3]

    assert func.grad(third)(2.0) == pytest.approx(2.0)  # a^3 / 6
    assert func.hessian(third)(2.0) == pytest.approx(2.0)
    np.testing.assert_allclose(func.vmap(third)(np.array([1.0, 2.0])), [1 / 6, 8 / 6])


def test_flows_of_wrong_right_hand_sides():
    with pytest.raises(TangentError, match=r"f\(y0\) has the tree \(\*,\), but y0 one array"):
        func.taylor_flow(lambda y: (y,), 1.0, 2)
    with pytest.raises(TangentError, match=r"f\(y0\) has shape \(2,\)"):
        func.taylor_flow(lambda y: y[:1], np.ones(2), 2)
    with pytest.raises(TangentError, match="dtype float64"):
        func.taylor_flow(lambda y: np.float64(2) * y, np.ones(2, np.float32), 2)
    with pytest.raises(DifferentiatedInputError, match=r"func\.taylor_flow differentiates with respect to y0"):
        func.taylor_flow(lambda y: y, 1, 2)
    with pytest.raises(DifferentiatedInputError, match="y0 has integers"):
        func.taylor_flow(lambda y: y, (1.0, 2), 2)
    with pytest.raises(ArgumentError, match="order must be 0 or more"):
        func.taylor_flow(lambda y: y, 1.0, -1)
