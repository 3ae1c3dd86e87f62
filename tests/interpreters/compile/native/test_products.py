"""Products of matrices by chunks: the chunks, that threads change no bit, that BLAS keeps its own number."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from func.backends.llvm.codegen import matrix_products
from func.backends.llvm.linalg import blas_threads, scipy_library
from func.backends.loops.kernels import Buffer, Dot, StridedRef
from func.backends.loops.product_blocks import LOSS, SHORTEST, STEP, grid_of, loss_of, step_of

SIZES = [(32, 784, 128), (784, 32, 128), (131, 300, 97), (64, 520, 333), (97, 1111, 96), (1030, 65, 70), (2, 900, 700)]


def _dot(
    batch: tuple[int, ...], sizes: tuple[int, int, int], char: str = "d", strides: tuple[int, int] = (1, 1)
) -> Dot:
    ref = StridedRef(Buffer(1, np.dtype(char)), 0, strides)
    return Dot(ref, ref, ref, batch, sizes)


@pytest.fixture
def threads_of_blas() -> object:
    """Reads the number of BLAS's threads."""
    if not blas_threads.has_control():
        pytest.fail("SciPy's BLAS is no OpenBLAS whose threads can be set")
    return ctypes.CFUNCTYPE(ctypes.c_int)(scipy_library.thread_functions()[scipy_library.GET])


@pytest.mark.parametrize("sizes", [*SIZES, (4096, 4096, 4096), (1, 10**6, 64), (49, 2**16, 49), (10**6, 3, 3)])
@pytest.mark.parametrize("batch", [(), (3,), (64, 2)])
def test_grids_cover_and_are_coarse(batch: tuple[int, ...], sizes: tuple[int, int, int]) -> None:
    places, *cuts = grid_of(_dot(batch, sizes))
    assert 1 <= places <= math.prod(batch)
    assert places * math.prod(cuts) <= 16
    for length, count in zip((sizes[0], sizes[2]), cuts, strict=True):
        step = step_of(length, count)
        rest = length - step * (count - 1)
        assert 0 < rest <= step
        if count > 1:
            assert step % STEP == 0
            assert step >= SHORTEST


@pytest.mark.parametrize("char", "fd")
def test_small_products_are_whole_and_large_ones_are_not(char: str) -> None:
    chunks = [math.prod(grid_of(_dot((), (n, n, n), char))) for n in (64, 384, 1024, 2048, 4096)]
    assert chunks == sorted(chunks)
    assert chunks[:3] == [1, 2, 2]
    assert chunks[-1] >= 8


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("strides", [(1, 1), (1, 5000)])
@pytest.mark.parametrize("sizes", [*SIZES, (200, 200, 200), (128, 256, 256), (1024, 784, 512), (32, 784, 512)])
def test_one_thread_loses_little_to_chunks(sizes: tuple[int, int, int], strides: tuple[int, int], char: str) -> None:
    dot = _dot((), sizes, char, strides)
    _, *cuts = grid_of(dot)
    assert loss_of(dot, *cuts) <= LOSS
    is_free = max(sizes[0], sizes[2]) >= 2048 and math.prod(sizes) >= 1 << 24
    assert not is_free or math.prod(cuts) >= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", SIZES)
def test_products_of_all_orders(sizes: tuple[int, int, int], dtype: type) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(m)
    x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    turned_x, turned_y = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)

    @func.jit
    def products(x, y, turned_x, turned_y):
        return x @ y, (x @ y).T, turned_x.T @ y, x @ turned_y.T, turned_x.T @ turned_y.T, (turned_y @ turned_x).T + 0

    expected = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x) @ np.abs(y)
    for place, made in enumerate(products(x, y, turned_x, turned_y)):
        error = np.abs((made.T if place == 1 else made) - expected)
        assert np.all(error <= 8 * np.sqrt(k) * np.finfo(dtype).eps * scale), place


def test_batches_of_products() -> None:
    rng = np.random.default_rng(0)
    for lead in ((5,), (3, 4), (1, 7)):
        x, y = rng.normal(size=(*lead, 70, 130)), rng.normal(size=(*lead, 130, 65))
        np.testing.assert_allclose(func.jit(np.matmul)(x, y), x @ y, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(func.jit(np.matmul)(x, y[-1:]), x @ y[-1:], rtol=1e-12, atol=1e-11)
    whole, small = rng.integers(-9, 9, (40, 60, 50)), rng.integers(-9, 9, (40, 50, 60))
    np.testing.assert_array_equal(func.jit(np.matmul)(whole, small), whole @ small)


def test_the_number_of_threads_changes_no_bit() -> None:
    rng = np.random.default_rng(1)

    def loss(w, x):
        return np.sum(np.tanh(np.tanh(x @ w[0]) @ w[1]) ** 2)

    w, x = (rng.normal(size=(300, 512)), rng.normal(size=(512, 90))), rng.normal(size=(257, 300))
    results = []
    for number in (1, 2, 3):
        with func.config.override(num_threads=number):
            results.append(func.jit(func.value_and_grad(loss))(w, x))
    for other in results[1:]:
        assert other[0] == results[0][0]
        for one, two in zip(other[1], results[0][1], strict=True):
            np.testing.assert_array_equal(one, two)


def test_products_where_the_threads_of_blas_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blas_threads, matrix_products):
        monkeypatch.setattr(module, "has_control", lambda: False)
    x, y = np.random.default_rng(2).normal(size=(2, 257, 257))
    multiply = func.jit(lambda x, y: x @ y)
    np.testing.assert_allclose(multiply(x, y), x @ y, rtol=1e-12, atol=1e-11)
    assert "func_blas" not in str(multiply.lower(x, y).llvm_ir)


def test_the_chunks_are_listed() -> None:
    x = np.ones((512, 512))
    assert "1 × 2 × 1 chunks of places, rows and columns" in str(func.jit(lambda x: x @ x).lower(x))


def test_blas_keeps_its_number_of_threads(threads_of_blas) -> None:
    before = threads_of_blas()
    x = np.random.default_rng(3).normal(size=(300, 300))
    func.jit(lambda x: x @ x)(x)
    func.jit(lambda x: np.linalg.cholesky(x @ x.T + np.eye(300)))(x)
    func.jit(np.linalg.solve)(np.eye(1300), np.ones(1300))  # large enough to run on the threads of BLAS
    assert threads_of_blas() == before


def test_blas_keeps_its_number_of_threads_where_a_call_raises(threads_of_blas) -> None:
    before = threads_of_blas()
    with pytest.raises(np.linalg.LinAlgError):
        func.jit(lambda x: np.linalg.cholesky(x @ x - 4 * np.eye(200)))(np.eye(200))
    assert threads_of_blas() == before


def test_factorisations_beside_large_ones() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(1210, 1210)) + 60 * np.eye(1210)
    b = rng.normal(size=(1210, 3))
    small = rng.normal(size=(4, 30, 30)) + 9 * np.eye(30)

    def mixed(a, b, small):
        return np.linalg.solve(a, b) + np.sum(np.linalg.inv(small)), a[:500, :500] @ a[:500, :500]

    for made, expected in zip(func.jit(mixed)(a, b, small), mixed(a, b, small), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-9)
