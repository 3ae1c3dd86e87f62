"""Native code's own products with few rows or terms: exact sums, any order in memory, chunks, no reads outside."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from func.backends.llvm.linalg import thin_products
from func.backends.llvm.linalg.thin_products import is_thin, name_of
from func.backends.llvm.math.own_functions import Features, host_features

BITS = [bits for bits in (256, 512) if host_features().fma and host_features().bits >= bits]
SIZES = [
    (1, 1, 1),
    (2, 3, 70),
    (3, 40, 64),
    (6, 128, 32),
    (7, 129, 65),
    (8, 300, 1),
    (11, 257, 47),
    (32, 600, 95),
    (130, 33, 17),
    (600, 40, 31),
    (1100, 9, 130),
]
INDEX, POINTER = ctypes.c_int64, ctypes.c_void_p


@pytest.fixture(params=list(itertools.product(BITS, (np.float32, np.float64))), ids=lambda p: f"{p[0]}-{p[1].__name__}")
def code(request: pytest.FixtureRequest) -> Any:
    """(dtype, function of x, y and out)."""
    bits, dtype = request.param
    features = Features(libmvec=False, bits=bits, fma=True)
    address = thin_products.address_of(name_of(features, np.dtype(dtype)))
    assert address is not None
    kinds = [INDEX, INDEX, INDEX, POINTER, INDEX, INDEX, POINTER, INDEX, INDEX, POINTER, INDEX]
    function = ctypes.CFUNCTYPE(None, *kinds)(address)

    def product(x: Any, y: Any, out: Any) -> None:
        steps = [[stride // x.itemsize for stride in array.strides] for array in (x, y, out)]
        assert steps[2][1] == 1
        m, k, n = *x.shape, y.shape[1]
        function(m, n, k, x.ctypes.data, *steps[0], y.ctypes.data, *steps[1], out.ctypes.data, steps[2][0])

    return dtype, product


def surrounded(array: Any, order: str, beside: float = np.nan) -> Any:
    """The matrix in the middle of one with other numbers around it."""
    whole = np.full((array.shape[0] + 5, array.shape[1] + 3), beside, array.dtype, order=order)  # type: ignore[call-overload]
    part = whole[2:-3, 1:-2]
    part[...] = array
    return part


@pytest.mark.parametrize("sizes", SIZES)
def test_products_in_all_orders(code: Any, sizes: tuple[int, int, int]) -> None:
    dtype, product = code
    m, k, n = sizes
    rng = np.random.default_rng(m)
    x, y = rng.integers(-9, 9, (m, k)).astype(dtype), rng.integers(-9, 9, (k, n)).astype(dtype)
    for x_order, y_order in itertools.product("CF", "CF"):
        out = surrounded(np.zeros((m, n), dtype), "C", 7.0)
        product(surrounded(x, x_order), surrounded(y, y_order), out)
        np.testing.assert_array_equal(out, x.astype(np.float64) @ y.astype(np.float64))  # integers are exact
        whole = out.base
        assert np.count_nonzero(whole != 7) == np.count_nonzero(out != 7)  # nothing beside it was written


def test_any_strides(code: Any) -> None:
    dtype, product = code
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (50, 160)).astype(dtype), rng.integers(-9, 9, (160, 210)).astype(dtype)
    left, right = x[::3, ::2], y[::2, ::3]
    out = np.empty((left.shape[0], right.shape[1]), dtype)
    product(left, right, out)
    np.testing.assert_array_equal(out, left @ right)
    product(left[::-1, ::-1], right[::-1], out)
    np.testing.assert_array_equal(out, left[::-1, ::-1] @ right[::-1])


def test_chunks_of_rows_and_columns_change_no_bit(code: Any) -> None:
    dtype, product = code
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(45, 700)).astype(dtype), rng.normal(size=(700, 200)).astype(dtype)
    whole, parts = np.empty((2, 45, 200), dtype)
    product(x, y, whole)
    for rows, columns in itertools.product((slice(0, 13), slice(13, 45)), (slice(0, 96), slice(96, 200))):
        product(x[rows], y[:, columns], parts[rows, columns])
    np.testing.assert_array_equal(whole, parts)


def test_special_numbers(code: Any) -> None:
    dtype, product = code
    x, y = np.ones((9, 150), dtype), np.ones((150, 70), dtype)
    x[3, 140], y[5, 66] = np.inf, np.nan
    out = np.empty((9, 70), dtype)
    product(x, y, out)
    wanted = np.full((9, 70), 150, dtype)
    wanted[3], wanted[:, 66] = np.inf, np.nan
    np.testing.assert_array_equal(out, wanted)


def test_few_rows_and_few_terms_are_thin() -> None:
    wide, narrow = Features(libmvec=False, bits=512, fma=True), Features(libmvec=False, bits=128, fma=True)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    assert is_thin(wide, single, (32, 784, 512), in_rows=False) and is_thin(wide, double, (32, 784, 512), in_rows=False)
    assert is_thin(wide, single, (784, 32, 512), in_rows=False)
    assert not is_thin(wide, double, (128, 784, 512), in_rows=False)
    assert not is_thin(wide, single, (5000, 32, 5000), in_rows=False)  # results larger than the cache
    assert is_thin(wide, single, (512, 512, 512), in_rows=True)
    assert not is_thin(wide, single, (512, 300, 512), in_rows=True)
    assert not is_thin(wide, single, (512, 512, 161), in_rows=True)  # a fifth of the lanes would be empty
    assert not is_thin(wide, single, (512, 512, 512), in_rows=False)
    assert not is_thin(wide, double, (512, 512, 512), in_rows=True)
    assert not is_thin(wide, single, (2048, 512, 2048), in_rows=True)
    assert not is_thin(wide, single, (32, 784, 10), in_rows=False)
    assert not is_thin(wide, single, (32, 64, 64), in_rows=False)
    assert not is_thin(wide, np.dtype(np.float16), (32, 784, 512), in_rows=False)
    assert not is_thin(narrow, single, (32, 784, 512), in_rows=False)
    assert not is_thin(wide._replace(fma=False), single, (32, 784, 512), in_rows=True)


@pytest.mark.skipif(not BITS, reason="the processor has no vectors of 256 bits or no fused multiplication")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jitted_products_use_it_and_threads_change_no_bit(dtype: type) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(3, 40, 700)).astype(dtype), rng.normal(size=(700, 512)).astype(dtype)

    def loss(w: Any, x: Any) -> Any:
        h = np.tanh(x[0] @ w / 30)
        return np.sum((h @ w.T) ** 2) + np.sum(np.matmul(x, w) ** 2) / 700

    results = []
    for number in (1, 2, 3):
        with func.config.override(num_threads=number):
            gradient = func.jit(func.grad(loss))
            results.append(gradient(w, x))
    assert name_of(host_features(), np.dtype(dtype)) in str(gradient.lower(w, x).llvm_ir)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    wanted = func.grad(loss)(w.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(results[0], wanted, rtol=0, atol=300 * np.finfo(dtype).eps * np.abs(wanted).max())


@pytest.mark.skipif(not BITS, reason="the processor has no vectors of 256 bits or no fused multiplication")
def test_results_in_the_order_of_columns_are_large_products_too() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(32, 512)).astype(np.float32), rng.normal(size=(512, 512)).astype(np.float32)
    product = func.jit(lambda x, w: x @ w.T)
    assert name_of(host_features(), x.dtype) in str(product.lower(x, w).llvm_ir)
    np.testing.assert_allclose(product(x, w), x @ w.T, rtol=1e-3, atol=1e-3)
