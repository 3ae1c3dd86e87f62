"""Promises that faults have broken unnoticed: shares at infinities, remainders of negative numbers, owned results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
@pytest.mark.parametrize("x", [np.inf, -np.inf])
def test_equal_infinities_share_the_derivative(function: Any, x: float) -> None:
    assert func.grad(function, argnums=(0, 1))(x, x) == (0.5, 0.5)
    assert func.jvp(function, (x, x), (1.0, 0.0))[1] == 0.5


@pytest.mark.parametrize("x", [-7.5, 7.5])
@pytest.mark.parametrize("y", [-2.0, 2.0])
def test_remainders_of_negative_numbers(x: float, y: float) -> None:
    assert func.grad(np.fmod, argnums=(0, 1))(x, y) == (1.0, -np.trunc(x / y))
    assert func.grad(np.remainder, argnums=(0, 1))(x, y) == (1.0, -np.floor(x / y))
    for compiler in ("llvm", "numpy"):
        for function in (np.fmod, np.remainder, np.floor_divide):
            i, j = np.array([int(x)]), np.array([int(y)])
            np.testing.assert_array_equal(func.jit(function, compiler=compiler)(i, j), function(i, j))


def test_results_hold_no_larger_array() -> None:
    gradient = func.grad(lambda x: np.sum(np.concatenate([x, np.ones(1000)]) ** 2))(np.ones(3))
    assert gradient.base is None or gradient.base.size == gradient.size
    np.testing.assert_array_equal(gradient, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("compiler", ["llvm", "numpy"])
def test_memory_of_operands_is_reused_only_once_it_is_read(compiler: str) -> None:
    def f(x: Any) -> Any:
        a = x * x
        b = a + 1
        a *= 2
        return b * a[::-1] - a, a

    x = np.linspace(0, 1, 300_000)
    for got, expected in zip(func.jit(f, compiler=compiler)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, expected)
