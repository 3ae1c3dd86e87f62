"""Blocks of rows: the same numbers as row by row, for every number of rows and kind of row code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm.codegen import nests, row_blocks

RNG = np.random.default_rng(20261124)


def logistic(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return np.mean(np.logaddexp(0, z) - y * z)


def two_sums(w: Any, x: Any, y: Any) -> Any:
    return np.sum(np.exp(np.sum(x * w, axis=1)) * np.log1p(np.sum(x * x, axis=1)) * y)


def normalised(w: Any, x: Any, y: Any) -> Any:
    rows = x - np.mean(x, axis=1, keepdims=True)
    return np.sum(np.tanh(np.sum(rows * rows * w, axis=1)) * y)


def powers(w: Any, x: Any, y: Any) -> Any:
    return np.sum(np.sum(np.abs(x * w), axis=1) ** 1.7 * y)


def branches(w: Any, x: Any, y: Any) -> Any:
    z = np.sum(x * w, axis=1)
    return np.sum(np.where((z > 0) & (y > 0), np.exp(-z), np.cos(z)))


def picked(w: Any, x: Any, y: Any) -> Any:
    z = np.sum(x * w, axis=1)
    return np.sum(np.exp(z) * w[(np.abs(y) * 100).astype(int) % w.shape[0]])


def largest(w: Any, x: Any, y: Any) -> Any:
    return np.sum(np.log(np.max(np.abs(x * w), axis=1) + 1) * y)


PROGRAMS: list[Callable[..., Any]] = [logistic, two_sums, normalised, powers, branches, picked, largest]
ROWS = [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 100, 1003]


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The plans of the nests that were compiled in blocks. Compiled code is not taken from disk."""
    monkeypatch.setenv("FUNC_CACHE_DIR", "")
    plans: list[Any] = []

    class Noted(row_blocks.RowBlocks):
        def __init__(self, context: Any, nest: Any, plan: Any, *rest: Any) -> None:
            plans.append(plan)
            super().__init__(context, nest, plan, *rest)

    monkeypatch.setattr(nests, "RowBlocks", Noted)
    with func.config.override(compiler="llvm"):
        yield plans


@pytest.mark.parametrize(
    ("program", "dtype"),
    [(program, dtype) for program in PROGRAMS for dtype in (np.float64, np.float32)]
    + [(program, np.complex128) for program in (two_sums, normalised, powers, largest)],
)
def test_values_and_gradients_are_those_of_eager_code(program: Any, dtype: Any, blocked: list[Any]) -> None:
    for rows in ROWS:
        x = RNG.normal(size=(rows, 13)).astype(dtype)
        w, y = (0.1 * RNG.normal(size=13)).astype(dtype), RNG.normal(size=rows).astype(dtype)
        if dtype is np.complex128:
            x = x + dtype(1j) * RNG.normal(size=x.shape)

        def loss(w: Any, x: Any = x, y: Any = y) -> Any:
            return np.real(program(w, x, y))

        accurate = 1e-4 if dtype is np.float32 else 1e-11
        for f in (loss, func.grad(loss)):
            np.testing.assert_allclose(func.jit(f)(w), f(w), rtol=accurate, atol=accurate)


def test_these_programs_run_in_blocks(blocked: list[Any]) -> None:
    x, w, y = RNG.normal(size=(3000, 33)), RNG.normal(size=33), RNG.normal(size=3000)
    for program in (logistic, two_sums, normalised, powers, branches, picked):
        before = len(blocked)
        func.jit(func.grad(program))(w, x, y)
        assert len(blocked) > before, program.__name__


def test_results_do_not_depend_on_threads(blocked: list[Any]) -> None:
    x, w, y = RNG.normal(size=(20_011, 30)), RNG.normal(size=30), RNG.normal(size=20_011)
    gradient = func.jit(func.grad(logistic))
    results = []
    for threads in (1, 2, 3):
        with func.config.override(num_threads=threads):
            results.append(gradient(w, x, y))
    assert blocked
    assert all([np.array_equal(results[0], other) for other in results[1:]])


def test_results_do_not_depend_on_other_rows(blocked: list[Any]) -> None:
    """A row has the same value at every place in a block, next to any numbers."""

    @func.jit
    def rows(x: Any) -> Any:
        return np.exp(np.sum(x * x, axis=1)) + np.sin(np.sum(x, axis=1))

    x = RNG.normal(size=(37, 11))
    whole = rows(x)
    spoilt = x.copy()
    spoilt[::2] = np.nan
    np.testing.assert_array_equal(rows(spoilt)[1::2], whole[1::2])
    assert np.isnan(rows(spoilt)[::2]).all()


def test_each_row_of_a_block_has_scratch_of_its_own(blocked: list[Any]) -> None:
    @func.jit
    def softmax(x: Any) -> Any:
        exponentials = np.exp(x - np.max(x, axis=1, keepdims=True))
        return exponentials / np.exp(np.log(np.sum(exponentials, axis=1, keepdims=True)))

    for shape in [(53, 3), (53, 17), (40, 700)]:
        x = RNG.normal(size=shape)
        expected = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
        np.testing.assert_allclose(softmax(x), expected, rtol=1e-13)
    assert blocked


def test_integers_divide_in_lanes_without_a_row(blocked: list[Any]) -> None:
    @func.jit
    def f(x: Any, k: Any) -> Any:
        total = np.sum(x, axis=1)
        return np.exp(total) * (1000 // k)

    for rows in (2, 3, 17):
        x, k = RNG.normal(size=(rows, 8)), RNG.integers(1, 9, size=rows)
        np.testing.assert_allclose(f(x, k), np.exp(x.sum(axis=1)) * (1000 // k), rtol=1e-13)
