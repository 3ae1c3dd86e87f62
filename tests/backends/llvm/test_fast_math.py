"""jit(fast_math=True): arithmetic is fused and reordered on request only."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")


def polynomial(x: Any) -> Any:
    return (x * x + 1.5) * x + 0.25


X = np.linspace(-3, 3, 1000)


def test_products_and_sums_are_fused_on_request_only() -> None:
    plain, fast = func.jit(polynomial), func.jit(polynomial, fast_math=True)
    np.testing.assert_array_equal(plain(X), polynomial(X))
    np.testing.assert_allclose(fast(X), polynomial(X), rtol=1e-12, atol=1e-14)
    assert " contract " in fast.lower(X).llvm_ir
    assert " contract " not in plain.lower(X).llvm_ir


def test_nan_and_infinities_stay() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0])
    fast = func.jit(lambda x: (np.maximum(x, 0.5) + x, np.isnan(x), np.sum(x)), fast_math=True)
    largest, is_nan, total = fast(x)
    np.testing.assert_array_equal(largest, np.maximum(x, 0.5) + x)
    np.testing.assert_array_equal(is_nan, np.isnan(x))
    assert np.isnan(total)


def test_elementary_functions_stay_accurate() -> None:
    fast = func.jit(lambda x: (np.exp(x), np.sin(x), np.log1p(np.abs(x)), np.tanh(x)), fast_math=True)
    for actual, expected in zip(fast(X), (np.exp(X), np.sin(X), np.log1p(np.abs(X)), np.tanh(X)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-15, atol=0)


def test_gradients_and_pickles_keep_it() -> None:
    fast = func.jit(lambda x: np.sum(polynomial(x)), fast_math=True)
    np.testing.assert_allclose(func.grad(fast)(X), 3 * X * X + 1.5, rtol=1e-12)
    assert pickle.loads(pickle.dumps(func.jit(np.sin, fast_math=True)))._fast_math


def test_it_is_for_native_code() -> None:
    with pytest.raises(func.errors.ArgumentError, match="fast_math is for native code"):
        func.jit(polynomial, compiler="numpy", fast_math=True)
    with func.config.override(compiler="numpy"):
        np.testing.assert_array_equal(func.jit(polynomial, fast_math=True)(X), polynomial(X))
