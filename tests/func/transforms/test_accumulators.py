"""`linear_transpose` and reverse mode of accumulators that begin with zeros: sums in loops, writes, `out=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

A = np.arange(9.0).reshape(3, 3) + 1
X, CT = np.ones(3), np.array([1.0, -2.0, 3.0])


def sum_of_columns(start: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = start(x)
        for i in range(3):
            y = y + A[:, i] * x[i]
        return y

    return f


def in_place(start: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = start(x)
        y += A @ x
        return y

    return f


def written(start: Callable[[Any], Any], write: Callable[[Any, Any], None]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = start(x)
        write(y, x)
        return y

    return f


def elements(y: Any, x: Any) -> None:
    for i in range(3):
        for j in range(3):
            y[i] += A[i, j] * x[j]


def rows(y: Any, x: Any) -> None:
    for i in range(3):
        y[i] = A[i] @ x


WRITES: dict[str, Callable[[Any, Any], None]] = {
    "elements": elements,
    "rows": rows,
    "slices": lambda y, x: (y.__setitem__(slice(2), (A @ x)[:2]), y.__setitem__(2, A[2] @ x))[0],
    "whole": lambda y, x: y.__setitem__(..., A @ x),
    "matmul out": lambda y, x: (np.matmul(A, x, out=y), None)[1],
    "dot out": lambda y, x: (np.dot(A, x, out=y), None)[1],
    "add out": lambda y, x: (np.add(y, A @ x, out=y), None)[1],
    "add.at": lambda y, x: np.add.at(y, [0, 1, 2], A @ x),
    "copyto": lambda y, x: np.copyto(y, A @ x),
}
STARTS: dict[str, Callable[[Any], Any]] = {
    "zeros_like": np.zeros_like,
    "zeros of like": lambda x: np.zeros(3, like=x),
    "zeros": lambda x: np.zeros(3),
    "full": lambda x: np.full(3, 0.0),
    "row of zeros": lambda x: np.zeros((2, 3))[1],
}
PLAIN = {
    **{f"sum from {name}": sum_of_columns(start) for name, start in STARTS.items()},
    "sum from 0.0": sum_of_columns(lambda x: 0.0),
    "sum of Python": lambda x: sum((A[:, i] * x[i] for i in range(3)), np.zeros(3)),
    "list with zero": lambda x: np.array([A[0] @ x, 0.0, A[2] @ x]) + np.array([0.0, A[1] @ x, 0.0]),
    "where zero": lambda x: np.where(CT > -1.0, A @ x, 0.0) + np.where(CT > -1.0, 0.0, A @ x),
    "concatenate zeros": lambda x: np.concatenate([A[:2] @ x, np.zeros(1)]) + np.concatenate([np.zeros(2), A[2:] @ x]),
    "carry": lambda x: func.fori_loop(0, 3, lambda i, y: y + func.numpy.take(A.T, i, axis=0) * x[i], np.zeros(3)),
}
BY_WRITES = {f"{way} into {name}": written(STARTS[name], write) for way, write in WRITES.items() for name in STARTS}
BY_WRITES |= {f"+= to {name}": in_place(start) for name, start in STARTS.items()}


@pytest.mark.parametrize("name", [*PLAIN, *BY_WRITES])
def test_transpose(name: str) -> None:
    f = {**PLAIN, **BY_WRITES}[name]
    with func.intercept():
        for g in (f, func.jit(f)):
            np.testing.assert_allclose(func.linear_transpose(g, X)(CT)[0], A.T @ CT)
            np.testing.assert_allclose(func.vjp(g, X)[1](CT)[0], A.T @ CT)
            np.testing.assert_allclose(func.jvp(g, (X,), (CT,))[1], A @ CT)
    if name in PLAIN or "like" in name:
        np.testing.assert_allclose(func.linear_transpose(f, X)(CT)[0], A.T @ CT)


@pytest.mark.parametrize("start", [lambda x: np.ones(3), lambda x: np.full(3, 2.0)])
def test_other_starts_are_not_linear(start: Callable[[Any], Any]) -> None:
    with pytest.raises(func.errors.NotDifferentiableError, match="adds a constant"):
        func.linear_transpose(sum_of_columns(start), X)
