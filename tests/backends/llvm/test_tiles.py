"""Loops over memory that lies across them run in tiles, and compute the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import func
from func.backends.llvm.codegen.stage_plans import StagePlan, Tile
from func.backends.loops.kernels import Buffer, Load, LoopNest, NestStage, Reduce, Register, Store, StridedRef
from tests.interpreters.compile.native.test_native import check, numbers

SHAPES = [(16, 16), (33, 70), (70, 33), (129, 17), (250, 300)]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T * 2,
    "both ways": lambda x: (x.T[: min(x.shape), : min(x.shape)] + x[: min(x.shape), : min(x.shape)], np.exp(x.T)),
    "reversed": lambda x: x[::-1, ::-1].T - x[:, 0],
    "every third": lambda x: x[::3].T * x[0, 0],
    "reduced as well": lambda x: (x.T * 3, np.max(x.T * x[:, 0]), np.any(x.T > 4), np.sum(np.sin(x.T), axis=0)),
    "gradient": func.grad(lambda x: np.sum(np.tanh(x.T @ x) * (x.T @ x).T)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_across(name: str, shape: tuple[int, int]) -> None:
    check(FUNCTIONS[name], numbers(*shape))


@pytest.mark.parametrize("dtype", ["f4", "c8", "i2", "?", "f2"])
def test_elements_of_any_size(dtype: str) -> None:
    check(lambda x: np.stack([x.T, x.T], axis=1), (numbers(150, 140) * 5).astype(dtype))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_any_order_of_axes(order: tuple[int, ...]) -> None:
    check(lambda x: np.sin(np.transpose(x, order)) + 1, numbers(17, 40, 21))


X, Y = (Buffer(10_000, np.dtype(float), "input", place) for place in range(2))
BY_ROWS, BY_COLUMNS = (100, 1), (1, 100)


@pytest.mark.parametrize(
    ("target", "source", "reduced", "tile"),
    [
        (StridedRef(Y, 0, BY_ROWS), StridedRef(X, 0, BY_COLUMNS), None, Tile(0, 8)),
        (StridedRef(Y, 0, BY_COLUMNS), StridedRef(X, 0, BY_ROWS), None, Tile(0, 8)),
        (StridedRef(Y, 0, BY_ROWS), StridedRef(X, 0, BY_ROWS), None, None),
        (StridedRef(X, 0, BY_ROWS), StridedRef(X, 0, BY_COLUMNS), None, None),
        (StridedRef(Y, 0, (0, 1)), StridedRef(X, 0, BY_COLUMNS), None, None),
        (StridedRef(Y, 0, BY_ROWS), StridedRef(X, 0, BY_COLUMNS), "add", None),
        (StridedRef(Y, 0, BY_ROWS), StridedRef(X, 0, BY_COLUMNS), "maximum", Tile(0, 8)),
    ],
)
def test_only_what_may_be_done_in_any_order(
    target: StridedRef, source: StridedRef, reduced: str | None, tile: Tile | None
) -> None:
    value = Register(np.dtype(float))
    stage = NestStage(True, [Load(value, source), Store(target, value)])
    if reduced is not None:
        stage.code.append(Reduce(Register(np.dtype(float)), reduced, value))
    assert StagePlan(LoopNest((100, 100), 0, [stage]), stage, None, 256).tile == tile
