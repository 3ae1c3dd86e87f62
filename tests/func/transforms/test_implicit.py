"""custom_root, custom_linear_solve, fixed_point and pure_callback: derivatives by the equation, in every nesting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import func
from func import errors, tree

A = np.array([[3.0, 1.0], [0.5, 2.0]])
SYMMETRIC = np.array([[3.0, 1.0], [1.0, 2.0]])
P = np.array([1.0, 2.0])


def newton(g: Callable[[Any], Any], x0: Any) -> Any:
    def step(state: Any) -> Any:
        x, _ = state
        move = np.linalg.solve(func.jacfwd(g)(x), g(x))
        return x - move, move

    return func.while_loop(lambda s: np.max(np.abs(s[1])) > 1e-14, step, (x0, np.ones_like(x0)))[0]


def conjugate_gradients(g: Callable[[Any], Any], y: Any) -> Any:
    def step(state: Any) -> Any:
        x, r, p, rs = state
        image = g(p)
        rate = rs / np.sum(p * image)
        x, r = x + rate * p, r - rate * image
        new = np.sum(r * r)
        return x, r, r + new / rs * p, new

    return func.while_loop(lambda s: s[3] > 1e-24, step, (np.zeros_like(y), y, y, np.sum(y * y)))[0]


def dense(g: Callable[[Any], Any], y: Any) -> Any:
    return np.linalg.solve(func.jacfwd(g)(y), y)


def residual(x: Any, p: Any) -> Any:
    return SYMMETRIC @ x + x**3 - p


def by_closure(p: Any) -> Any:
    return func.custom_root(lambda x: residual(x, p), newton)(np.zeros(2))


def pair_of(v: Any) -> Any:
    return {"a": v[0], "b": v[1]}


ROOTS: dict[str, Callable[[Any], Any]] = {
    "parameters": lambda p: func.custom_root(residual, newton)(np.zeros(2), p),
    "closure": by_closure,
    "tangent_solve": lambda p: func.custom_root(residual, newton, conjugate_gradients)(np.zeros(2), p),
    "outside": lambda p: func.custom_root(
        residual,
        lambda g, x0: func.pure_callback(
            lambda p: scipy.optimize.root(lambda x: residual(x, p), np.zeros(2), tol=1e-13).x,
            x0,
            p,
            vmap_method="sequential",
        ),
    )(np.zeros(2), p),
    "trees": lambda p: func.custom_root(
        lambda x, p: {"a": 3 * x["a"] + x["b"] + x["a"] ** 3 - p[0], "b": x["a"] + 2 * x["b"] + x["b"] ** 3 - p[1]},
        lambda g, x0: pair_of(newton(lambda v: np.stack(tree.leaves(g(pair_of(v)))), x0)),
    )(np.zeros(2), p),
}  # fmt: skip


def loss_of(root: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda p: np.sum(np.stack(tree.leaves(root(p))) ** 2)


def explicit(p: Any) -> Any:
    """The root and its derivatives by many Newton steps that are differentiated."""
    x = np.zeros(2) * p
    for _ in range(8):
        x = x - np.linalg.solve(SYMMETRIC + 3 * np.diag(x**2), residual(x, p))
    return np.sum(x**2)


@pytest.mark.parametrize("name", ROOTS)
def test_roots_in_every_mode(name: str) -> None:
    loss = loss_of(ROOTS[name])
    gradient, matrix = func.grad(explicit)(P), func.hessian(explicit)(P)
    for transform in (func.grad, func.jacfwd, lambda f: func.jit(func.grad(f)), lambda f: func.grad(func.jit(f))):
        np.testing.assert_allclose(transform(loss)(P), gradient, rtol=1e-9)
    for transform in (
        func.hessian,
        lambda f: func.jacrev(func.jacrev(f)),
        lambda f: func.jacfwd(func.jacfwd(f)),
        lambda f: func.jit(func.hessian(f)),
    ):
        np.testing.assert_allclose(transform(loss)(P), matrix, rtol=1e-8)
    batch = np.stack([P, 2 * P])
    for transform in (lambda f: func.vmap(func.grad(f)), lambda f: func.jit(func.vmap(func.grad(f)))):
        np.testing.assert_allclose(transform(loss)(batch), [func.grad(explicit)(p) for p in batch], rtol=1e-8)
    t = func.tensor(P, requires_grad=True)
    loss(t).backward()
    np.testing.assert_allclose(t.grad, gradient, rtol=1e-9)


def test_third_derivatives() -> None:
    root = func.custom_root(lambda x, p: x**3 - p, lambda g, x0: scipy.optimize.brentq(g, 0.0, 10.0))
    f: Callable[[Any], Any] = lambda p: root(1.0, p)  # noqa: E731
    np.testing.assert_allclose(func.grad(func.grad(func.grad(f)))(8.0), 10 / 27 * 8 ** (-8 / 3), rtol=1e-10)


def test_complex_roots() -> None:
    root = func.custom_root(lambda z, c: z**2 - c, lambda g, z0: z0)
    c = -1.0 + 0.5j
    gradient = func.grad(lambda c: np.real(root(np.sqrt(-1.0 + 0.5j), c)))(c)
    np.testing.assert_allclose(gradient, func.grad(lambda c: np.real(np.sqrt(c)))(c))


def test_auxiliary_outputs_and_starts_have_no_derivative() -> None:
    root = func.custom_root(residual, lambda g, x0: (newton(g, x0), {"value": g(x0)}), has_aux=True)

    def loss(start: Any, p: Any) -> Any:
        x, aux = root(start, p)
        return np.sum(x) + np.sum(aux["value"])

    starts, gradient = func.grad(loss, (0, 1))(0.1 * P, P)
    np.testing.assert_array_equal(starts, np.zeros(2))
    np.testing.assert_allclose(gradient, func.grad(lambda p: np.sum(by_closure(p)))(P))


LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "dense": lambda a, b: func.custom_linear_solve(lambda x: a @ x, b, dense, dense),
    "symmetric": lambda a, b: func.custom_linear_solve(
        lambda x: (a @ x + x @ a) / 2, b, conjugate_gradients, symmetric=True
    ),
    "trees": lambda a, b: func.custom_linear_solve(
        lambda x: {"x": a @ x["x"]},
        {"x": b},
        lambda g, y: {"x": dense(lambda v: g({"x": v})["x"], y["x"])},
        lambda g, y: {"x": dense(lambda v: g({"x": v})["x"], y["x"])},
    )["x"],
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_solves_in_every_mode(name: str) -> None:
    def loss(a: Any, b: Any) -> Any:
        return np.sum(LINEAR[name](a, b) ** 2)

    def right(a: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve((a + a.T) / 2 if name == "symmetric" else a, b) ** 2)

    batch = np.stack([A, 2 * A]), np.stack([P, P + 1])
    transforms: list[tuple[Any, Any]] = [
        (lambda f: func.grad(f, (0, 1)), (A, P)),
        (lambda f: func.jacfwd(f, (0, 1)), (A, P)),
        (lambda f: func.hessian(f, (0, 1)), (A, P)),
        (lambda f: func.jacrev(func.grad(f, (0, 1)), (0, 1)), (A, P)),
        (lambda f: func.jit(func.grad(f, (0, 1))), (A, P)),
        (lambda f: func.jit(func.hessian(f, (0, 1))), (A, P)),
        (lambda f: func.vmap(func.grad(f, (0, 1))), batch),
        (lambda f: func.vmap(func.grad(f, 1), in_axes=(None, 0)), (A, batch[1])),
    ]
    for transform, args in transforms:
        got, expected = tree.leaves(transform(loss)(*args)), tree.leaves(transform(right)(*args))
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


def test_fixed_points() -> None:
    f: Callable[[Any], Any] = lambda a: func.fixed_point(lambda x: np.cos(a * x), 1.0, tol=1e-14)  # noqa: E731
    x = f(1.0)
    slope = -x * np.sin(x) / (1 + np.sin(x))
    for transform in (func.grad, func.jacfwd, lambda f: func.jit(func.grad(f))):
        np.testing.assert_allclose(transform(f)(1.0), slope, rtol=1e-10)
    np.testing.assert_allclose(func.vmap(func.grad(f))(np.array([1.0, 0.5]))[0], slope, rtol=1e-10)
    pair = func.grad(
        lambda a: func.fixed_point(lambda x, a: {"u": x["v"] / a, "v": np.cos(x["u"])}, {"u": 1, "v": 1}, a)["u"]
    )
    np.testing.assert_allclose(pair(2.0), -0.18487, atol=1e-5)
    with pytest.warns(errors.SolverWarning, match="has not converged"):
        func.fixed_point(lambda x: 2 * x, 1.0, max_steps=5)


def outside(x: Any) -> Any:
    return np.sort(x)


REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a derivative of outside code": (
        lambda: func.grad(lambda x: np.sum(func.pure_callback(outside, x, x)))(P),
        errors.NotDifferentiableError,
        "outside function outside has no derivative",
    ),
    "outside code without a way to map": (
        lambda: func.vmap(lambda x: func.pure_callback(outside, x, x))(np.ones((2, 2))),
        errors.ArgumentError,
        "vmap_method",
    ),
    "an unknown way to map": (
        lambda: func.pure_callback(outside, P, P, vmap_method="all"), errors.ArgumentError, "is none of",
    ),
    "a shape that was not promised": (
        lambda: func.jit(lambda x: func.pure_callback(lambda x: x[:1], x, x))(P),
        errors.CustomRuleError,
        r"shape \(1,\)",
    ),
    "a tree that was not promised": (
        lambda: func.pure_callback(lambda x: (x, x), P, P), errors.CustomRuleError, "the tree",
    ),
    "too few equations": (
        lambda: func.grad(lambda p: np.sum(func.custom_root(lambda x, p: x[:1] - p, lambda g, x: x)(P, p)))(1.0),
        errors.CustomRuleError,
        "1 equations for 2 unknowns",
    ),
    "no transposed solver": (
        lambda: func.grad(lambda b: np.sum(func.custom_linear_solve(lambda x: A @ x, b, dense)))(P),
        errors.NotDifferentiableError,
        "transpose_solve",
    ),
    "a map that is not square": (
        lambda: func.grad(lambda b: np.sum(func.custom_linear_solve(lambda x: x[:1], b, dense)))(P),
        errors.CustomRuleError,
        "must be square",
    ),
    "a singular Jacobian": (
        lambda: func.grad(lambda p: func.custom_root(lambda x, p: 0 * x - 0 * p, lambda g, x: x)(0.0, p))(1.0),
        np.linalg.LinAlgError,
        "ingular",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    call, kind, words = REFUSALS[name]
    with pytest.raises(kind, match=words):
        call()


def test_outside_code_in_compiled_and_mapped_functions() -> None:
    x = np.array([[3.0, 1.0], [5.0, 2.0]])
    np.testing.assert_array_equal(func.jit(lambda x: 2 * func.pure_callback(outside, x, x))(x[0]), [2.0, 6.0])
    for method in ("sequential", "broadcast_all", "expand_dims"):
        mapped = func.vmap(lambda x, y: func.pure_callback(np.add, x, x, y, vmap_method=method), in_axes=(0, None))  # noqa: B023
        np.testing.assert_array_equal(mapped(x, x[0]), x + x[0])
        np.testing.assert_array_equal(func.jit(mapped)(x, x[0]), x + x[0])
    kept = []
    func.pure_callback(lambda x: kept.append(x) or x, x, x)  # type: ignore[func-returns-value]
    assert not np.shares_memory(kept[0], x)
    argument = func.grad(lambda x: np.sum(x[func.pure_callback(np.argmax, np.int64(0), x)]))(np.array([1.0, 4.0]))
    np.testing.assert_array_equal(argument, [0.0, 1.0])


def test_outside_code_with_a_rule() -> None:
    @func.custom_jvp
    def exponential(x: Any) -> Any:
        return func.pure_callback(np.exp, x, x, vmap_method="broadcast_all")

    @exponential.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        y = exponential(*primals)
        return y, y * tangents[0]

    matrix = func.jit(func.hessian(lambda x: np.sum(x * exponential(x))))(np.ones(2))
    np.testing.assert_allclose(matrix, 3 * np.e * np.eye(2))
