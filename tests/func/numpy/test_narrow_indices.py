"""Indices of types that do not hold the number of elements, as int8 for 300 rows, read and write the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

TABLE = np.random.default_rng(0).normal(size=(300, 3))


def written(t: Any, i: Any) -> Any:
    out = t * 1
    out[i] = 2 * t[: len(i)]
    return out


def added(t: Any, i: Any) -> Any:
    out = t * 1
    np.add.at(out, i, t[: len(i)])
    return out


USES: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda t, i: t[i],
    "columns": lambda t, i: t.T[:, i],
    "pairs": lambda t, i: t[i, i % 3],
    "flat": lambda t, i: t.flat[i],
    "take": lambda t, i: np.take(t, i, axis=0),
    "wrap": lambda t, i: np.take(t, i, axis=0, mode="wrap"),
    "take_along_axis": lambda t, i: np.take_along_axis(t, i[:, None], 0),
    "unravel_index": lambda t, i: t[np.unravel_index(abs(i), (300, 3))],
    "written": written,
    "added": added,
}
INDICES = {
    "int8": np.array([1, -100, 5], np.int8),
    "uint8": np.array([5, 250, 1], np.uint8),
    "uint64": np.array([1, 250, 5], np.uint64),
}


@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("use", USES)
def test_gradients(use: str, dtype: str) -> None:
    index = INDICES[dtype]
    wide = index.astype(np.intp)

    def total(t: Any, i: Any) -> Any:
        return np.sum(USES[use](t, i) ** 3)

    expected = func.grad(total)(TABLE, wide)
    np.testing.assert_array_equal(func.grad(total)(TABLE, index), expected)
    np.testing.assert_allclose(func.jit(func.grad(lambda t: total(t, index)))(TABLE), expected)
    np.testing.assert_allclose(func.jit(func.grad(total))(TABLE, index), expected)


@pytest.mark.parametrize("dtype", INDICES)
def test_gradients_of_samples(dtype: str) -> None:
    index = INDICES[dtype].reshape(1, 3)
    rows = func.per_sample(lambda t, i: np.sum(t[i] ** 2))
    (wide,) = index.astype(np.intp)
    norm = np.linalg.norm(func.grad(lambda t: np.sum(t[wide] ** 2))(TABLE))
    np.testing.assert_allclose(rows.norms(TABLE, index), [norm])


def test_unravelled_indices_are_those_of_numpy() -> None:
    index = np.array([1, 100], np.int8)
    for found, expected in zip(
        func.jit(lambda i: np.unravel_index(i, (300, 3)))(index), np.unravel_index(index, (300, 3)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    with pytest.raises(TypeError, match="only int indices permitted"):
        func.jit(lambda i: np.unravel_index(i, (300, 3)))(index * 1.0)
