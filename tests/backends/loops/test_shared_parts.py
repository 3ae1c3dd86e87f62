"""Functions that share most of their work: the computations of kernels with both of one argument."""

from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)
X, Y = 3 * RNG.normal(size=(2, 1000))


def value_and_slope(x: Any) -> Any:
    return func.value_and_grad(lambda x: np.sum(np.tanh(x) * Y.astype(x.dtype)))(x)


def of_different_arguments(x: Any) -> Any:
    return np.tanh(x), func.grad(lambda x: np.sum(np.tanh(x)))(2 * x)


def two_slopes(x: Any) -> Any:
    return func.grad(lambda x: np.sum(np.tanh(x) * Y.astype(x.dtype) + np.tanh(x - 1)))(x)


def in_loops(x: Any) -> Any:
    def loss(x: Any) -> Any:
        return np.sum(func.scan(lambda c, row: (np.tanh(c + row), None), x, np.stack([Y, Y]).astype(x.dtype))[0])

    return func.grad(loss)(x)


def counts(f: Any, x: Any) -> tuple[int, int]:
    """How often the kernels have tanh alone, and with its derivative."""
    text = str(func.jit(f).lower(x).kernels)
    return text.count("= tanh("), text.count("= tanh_with_sech_squared(")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [value_and_slope, of_different_arguments, two_slopes, in_loops])
def test_results_are_those_of_plain_evaluation(f: Any, dtype: Any) -> None:
    x = np.concatenate([X, [0.0, -0.0, 1e-310, 20.0, -400.0, np.inf, -np.inf]])[:1000].astype(dtype)
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    for found, right in zip(func.tree.leaves(func.jit(f)(x)), func.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64, np.float16])
def test_other_dtypes_are_compiled_too(dtype: Any) -> None:
    x = (X[:100] + 1j * Y[:100]).astype(dtype) if np.dtype(dtype).kind == "c" else X[:100].astype(dtype)
    pushed = [
        jvp(lambda x: np.tanh(x), (x,), (np.ones_like(x),))
        for jvp in (func.jvp, lambda *args: func.jit(lambda *a: func.jvp(args[0], *a))(*args[1:]))
    ]
    for found, right in zip(*reversed(pushed), strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-3 if dtype is np.float16 else 1e-5)


def test_tanh_is_computed_beside_its_derivative_of_the_same_argument() -> None:
    assert counts(value_and_slope, X) == (0, 1)
    assert counts(of_different_arguments, X)[1] == 0
    assert counts(lambda x: np.tanh(x), X) == (1, 0)


def test_one_exponential_serves_both() -> None:
    text = func.jit(value_and_slope).lower(X).llvm_ir
    calls = [line.partition("=")[2] for line in text.splitlines() if " = call" in line and "func_own" in line]
    assert calls and all("expm1_double_quarter" in call for call in calls)
    assert len(set(calls)) == len(calls)


def test_special_values_beside_the_derivative() -> None:
    x = np.array([0.0, -0.0, 1e-310, -1e-310, 5e-324, 22.0, 354.0, 360.0, 1e300, np.inf, np.nan])
    value, slope = func.jit(lambda x: (np.tanh(x), func.jvp(np.tanh, (x,), (np.ones_like(x),))[1]))(x)
    np.testing.assert_array_equal(value, np.tanh(x))
    np.testing.assert_array_equal(np.signbit(value), np.signbit(x))
    np.testing.assert_array_equal(slope[:5], 1.0)
    np.testing.assert_array_equal(slope[7:], [0.0, 0.0, 0.0, np.nan])
