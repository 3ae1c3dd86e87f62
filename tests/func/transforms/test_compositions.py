"""Every composition of the transforms to depth three, on many functions, against differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.linspace(0.3, 1.1, 4)
A = np.random.default_rng(0).normal(size=(4, 4))
P = A @ A.T + 4 * np.eye(4)

Function = Callable[[Any], Any]


def loop(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        total = total + np.sin(x) ** (i + 1)
    return total


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] ** 2
    y[0] = np.exp(x[0])
    y *= x
    return y


def branching(x: Any) -> Any:
    return x**2 if np.sum(x) > 0 else x


VECTOR: dict[str, Function] = {
    "sin": np.sin,
    "cube": lambda x: x**3,
    "tanh product": lambda x: np.tanh(A @ x) * x,
    "log sum exp": lambda x: np.log(np.sum(np.exp(x))) * x,
    "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "norm": lambda x: np.linalg.norm(x) * x,
    "quadratic": lambda x: x * (x @ P @ x),
    "solve": lambda x: np.linalg.solve(P + np.outer(x, x), x),
    "cholesky": lambda x: np.linalg.cholesky(P + np.outer(x, x)) @ x,
    "slogdet": lambda x: np.linalg.slogdet(P + np.outer(x, x))[1] * x,
    "inverse": lambda x: np.linalg.inv(P + np.diag(x)) @ x,
    "eigenvalues": lambda x: np.linalg.eigvalsh(P + np.outer(x, x)),
    "where": lambda x: np.where(x > 0.6, x**2, np.sin(x)),
    "maximum": lambda x: np.maximum(x**2, 0.5),
    "max": lambda x: np.max(x**2) * x,
    "sort": lambda x: np.sort(np.sin(3 * x)),
    "cumsum": lambda x: np.cumsum(x**2),
    "cumprod": lambda x: np.cumprod(x),
    "prod": lambda x: np.prod(x) * x,
    "std": lambda x: np.std(x) * x,
    "indexing": lambda x: x[[0, 2, 2, 1]] * x[::-1],
    "mask": lambda x: x * np.sum(x[np.array([True, False, True, True])]),
    "concatenate": lambda x: np.concatenate([x[1:] ** 2, x[:1]]),
    "stacked": lambda x: np.stack([x, x**2]).sum(axis=0),
    "array": lambda x: np.array([x[0] * x[1], np.sin(x[2]), x[3], 1.0]),
    "einsum": lambda x: np.einsum("i,ij,j->j", x, A, x),
    "convolve": lambda x: np.convolve(x, x, mode="same"),
    "arctan2": lambda x: np.arctan2(x, x[::-1] + 1),
    "interp": lambda x: np.interp(x, [0.0, 0.5, 2.0], [0.0, 1.0, 0.3]) * x,
    "loop": loop,
    "written": written,
    "branching": branching,
    "nested grad": lambda x: func.grad(lambda y: np.sum(np.sin(y) * y))(x),
    "nested map": lambda x: func.vmap(lambda t: t**2 + t * x[0])(x),
}

V = np.random.default_rng(1).normal(size=4)
CT = np.random.default_rng(2).normal(size=4)

# Each transform turns a vector function into a vector function; the reference does the same by differences.


def by_grad(f: Function) -> Function:
    return func.grad(lambda x: np.sum(f(x) * CT))


def by_vjp(f: Function) -> Function:
    return lambda x: func.vjp(f, x)[1](CT + 0 * func.stop_gradient(x))[0]


def by_jvp(f: Function) -> Function:
    return lambda x: func.jvp(f, (x,), (V + 0 * func.stop_gradient(x),))[1]


def by_linearize(f: Function) -> Function:
    return lambda x: func.linearize(f, x)[1](V)


def by_vmap(f: Function) -> Function:
    return lambda x: func.vmap(f)(np.stack([x, x * 1.1]))[1]


def by_checkpoint(f: Function) -> Function:
    return func.checkpoint(f)


def directional(f: Function) -> Function:
    step = 3e-4

    def difference(x: Any) -> Any:
        # fourth order, so that nesting keeps enough digits
        return (8 * (f(x + step * V) - f(x - step * V)) - (f(x + 2 * step * V) - f(x - 2 * step * V))) / (12 * step)

    return difference


def transposed(f: Function) -> Function:
    step = 3e-4

    def difference(x: Any) -> Any:
        rows = []
        for e in np.eye(4):
            d = (8 * (f(x + step * e) - f(x - step * e)) - (f(x + 2 * step * e) - f(x - 2 * step * e))) / (12 * step)
            rows.append(np.sum(d * CT))
        return np.array(rows)

    return difference


TRANSFORMS: dict[str, tuple[Callable[[Function], Function], Callable[[Function], Function]]] = {
    "grad": (by_grad, transposed),
    "vjp": (by_vjp, transposed),
    "jvp": (by_jvp, directional),
    "linearize": (by_linearize, directional),
    "vmap": (by_vmap, lambda f: lambda x: f(x * 1.1)),
    "checkpoint": (by_checkpoint, lambda f: f),
}
DERIVATIVES = {"grad", "vjp", "jvp", "linearize"}
ORDERS = [order for depth in (1, 2) for order in itertools.product(TRANSFORMS, repeat=depth)]
DEEP = list(itertools.product(["grad", "jvp", "vmap", "linearize", "checkpoint"], repeat=3))


def compare(name: str, order: tuple[str, ...], tolerance: float) -> None:
    ours, reference = VECTOR[name], VECTOR[name]
    for transform in order:
        wrap, differences = TRANSFORMS[transform]
        ours, reference = wrap(ours), differences(reference)
    got, expected = ours(X), reference(X)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize("name", VECTOR)
def test_depth_one_and_two(name: str) -> None:
    for order in ORDERS:
        compare(name, order, 1e-7 if sum([t in DERIVATIVES for t in order]) < 2 else 1e-4)


@pytest.mark.parametrize("name", VECTOR)
def test_depth_three(name: str) -> None:
    for order in DEEP:
        derivatives = sum([t in DERIVATIVES for t in order])
        if derivatives < 3:
            compare(name, order, 1e-7 if derivatives < 2 else 1e-4)
            continue
        # a third difference has no digits left: compare with the first two orders exact, the last by differences
        ours: Function = VECTOR[name]
        for transform in order[:2]:
            ours = TRANSFORMS[transform][0](ours)
        wrap, differences = TRANSFORMS[order[2]]
        got, expected = wrap(ours)(X), differences(ours)(X)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6 * max(1.0, float(np.abs(expected).max())))
