"""Writes whose value or index is a view of the memory written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func


def shifted(y: Any) -> None:
    y[1:] = y[:-1]


def held_view(y: Any) -> None:
    part = y[:-1]
    y[1:] = part
    y *= part[0]


def flipped(y: Any) -> None:
    y[:] = y[::-1]


def swapped(y: Any) -> None:
    y[:2], y[2:4] = y[2:4], y[:2]


def exchanged(y: Any) -> None:
    y[0], y[1] = y[1], y[0]


def by_index_list(y: Any) -> None:
    y[[0, 1]] = y[3:]


def smeared(y: Any) -> None:
    y[1:] = y[:-1]
    y[:-2] += y[2:]


def through_reshape(y: Any) -> None:
    rows = y.reshape(1, 5)
    rows[0, 1:] = y[:4]


WRITES = [shifted, held_view, flipped, swapped, exchanged, by_index_list, smeared, through_reshape]
VALUES = np.array([3.0, 1.0, 4.0, 1.5, 9.0])


def copying(write: Callable[[Any], None]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x.copy()
        write(y)
        return y

    return f


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_values_are_read_before_the_write(write: Callable[[Any], None]) -> None:
    f = copying(write)
    np.testing.assert_array_equal(func.jit(f)(VALUES), f(VALUES))
    np.testing.assert_array_equal(func.vmap(f)(np.stack([VALUES, -VALUES])), [f(VALUES), f(-VALUES)])
    func.testing.check_grads(f, (VALUES,), order=2)


def test_an_index_is_read_before_the_write() -> None:
    def f(x: Any) -> Any:
        order = np.argsort(-x)
        order[order[:2]] = 0
        order[order[1:3],] += order[0]
        return order

    np.testing.assert_array_equal(func.jit(f)(VALUES), f(VALUES))
