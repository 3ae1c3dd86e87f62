"""Numbers and lists that are written into arrays: NumPy's values, and its errors where a number does not fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

INDICES = (0, slice(None, 2), np.array([0, 1]), np.array([True, False, True]), [0, 2], Ellipsis, (slice(None),), (1,))
VALUES = (
    *(300, -300, 2**70, np.nan, np.inf, True),
    *(np.int64(300), np.float64(1e30), np.float32(3.7), np.uint8(200), np.float64(np.nan)),
    *([300, 1, 2], [300, 1], (300,), range(299, 301), [[1, 300]], [True, False], [1.5, 2], [1.5, 2.5, 1]),
    *([np.int64(300), 1], [2**70, 1], [1e30, 1], [np.nan, 1], [np.array(300), 1], [np.array([300, 1])]),
    *(np.array(300), np.array([300, 1]), 1j, [1j, 2], "a"),
)


def written(y: Any, index: Any, value: Any) -> Any:
    y = y * 1
    y[index] = value
    return y


def outcome(run: Callable[[], Any]) -> Any:
    """The result; None for an error."""
    with np.errstate(all="ignore"):
        try:
            return run()
        except Exception:
            return None


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float32])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_writes_are_those_of_numpy(dtype: Any) -> None:
    for index in INDICES:
        for value in VALUES:
            expected = outcome(functools.partial(written, np.ones(3, dtype), index, value))
            compiled = func.jit(functools.partial(written, index=index, value=value))
            traced = outcome(functools.partial(compiled, np.ones(3, dtype)))
            if expected is None:
                assert traced is None, (index, value, traced)
            else:
                assert traced is not None and traced.dtype == expected.dtype, (index, value)
                np.testing.assert_array_equal(traced, expected, err_msg=f"{index} {value}")


def test_traced_values_beside_numbers_that_do_not_fit() -> None:
    with pytest.raises(OverflowError, match="out of bounds for int8"):
        func.jit(lambda y, v: written(y, slice(None, 2), [v, 300]))(np.ones(3, np.int8), np.int8(1))


@pytest.mark.parametrize("value", [300, (1, 300), [[1, -300]]])
def test_borders_that_do_not_fit(value: Any) -> None:
    x = np.ones(2, np.int8)
    with pytest.raises(OverflowError) as expected:
        np.pad(x, 1, constant_values=value)
    with pytest.raises(OverflowError) as raised:
        func.jit(lambda x: np.pad(x, 1, constant_values=value))(x)
    assert str(raised.value).startswith(str(expected.value))


def test_numbers_added_in_place_that_do_not_fit() -> None:
    def total(x: Any) -> Any:
        y = x * 1
        np.add.at(y, [0, 1], 2**70)
        return y

    with pytest.raises(OverflowError):
        total(np.arange(3))
    with pytest.raises(OverflowError):
        func.vmap(total)(np.arange(6).reshape(2, 3))
