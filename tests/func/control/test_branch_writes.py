"""A branch that writes its operand writes the caller's array, as a branch of Python's does: in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func


def _doubled(v: Any) -> Any:
    v[0] = v[0] * v[1]
    return v * 2


def _written_whole(x: Any) -> Any:
    y = x * 1
    return func.cond(x[0] > 0, _doubled, lambda v: v, y) * y


def _written_through_a_view(x: Any) -> Any:
    y = np.outer(x, x)
    total = func.cond(x[0] > 0, lambda v: np.sum(_doubled(v[0])), np.sum, y[1:])
    return total * y


def _written_for_its_effect(x: Any) -> Any:
    y = x * 1

    def scaled(v: Any, factor: Any) -> None:
        v *= factor

    func.switch((x[0] > 0) * 1, [lambda v, factor: None, scaled], y, x[1])
    return y


MODES: dict[str, Callable[..., Any]] = {
    "jit": lambda f, x: func.jit(f)(x),
    "vmap": lambda f, x: func.vmap(f)(np.array([x, -x]))[0],
    "jit of vmap": lambda f, x: func.jit(func.vmap(f))(np.array([x, -x]))[0],
    "jvp": lambda f, x: func.jvp(f, (x,), (x,))[0],
    "jit of jvp": lambda f, x: func.jit(lambda x: func.jvp(f, (x,), (x,))[0])(x),
}


@pytest.mark.parametrize("x", [np.array([2.0, 3.0]), np.array([-2.0, 3.0])], ids=["taken", "not taken"])
@pytest.mark.parametrize("function", [_written_whole, _written_through_a_view, _written_for_its_effect])
def test_the_caller_sees_the_write(function: Callable[[Any], Any], x: Any) -> None:
    expected = function(x)
    for name, run in MODES.items():
        np.testing.assert_allclose(run(function, x), expected, err_msg=name)
    gradient = func.grad(lambda x: np.sum(function(x)))(x)
    np.testing.assert_allclose(func.jit(func.grad(lambda x: np.sum(function(x))))(x), gradient)
    np.testing.assert_allclose(func.grad(func.jit(lambda x: np.sum(function(x))))(x), gradient)
