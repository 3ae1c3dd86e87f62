"""Batch elements that take different paths: each gives what it gives alone, under any nesting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func import errors
from func.host import patching

V = np.array([3.0, 1.0, -2.0, 5.0])

Function = Callable[[Any], Any]


def early_return(x: Any) -> Any:
    for i in range(10):
        if x <= i * i:
            return x * i
        x = x - 1
    return x


def loop(x: Any) -> Any:
    while x < 10:
        x = x * 2 + 7
    return x


LANES: dict[str, Function] = {
    "branch": lambda x: x**3 if x > 0 else x**2,
    "early return": early_return,
    "while": loop,
    "integer": lambda x: x ** (int(np.abs(x)) + 1),
    "item of an integer": lambda x: x * np.floor(x).astype(int).item(),
    "mask": lambda x: np.sum((x * np.arange(4.0))[np.arange(4.0) > x]),
    "constant on one path": lambda x: x * x if x > 0 else 2.0,
    "nested branches": lambda x: (x**2 if x > 2 else x**3) if x > 0 else -x,
    "checkpoint": func.checkpoint(lambda x: x**3 if x > 0 else x**2),
}


@pytest.mark.parametrize("name", LANES)
def test_elements_agree_with_single_calls(name: str) -> None:
    f = LANES[name]
    for transform in (lambda g: g, func.grad, func.hessian):
        one = transform(lambda x: f(x) * 1.0)
        expected = [one(v) for v in V]
        np.testing.assert_allclose(func.vmap(one)(V), expected)
        np.testing.assert_allclose(func.vmap(one, chunk_size=3)(V), expected)


@pytest.mark.parametrize("name", LANES)
def test_derivatives_pass_through_split_batches(name: str) -> None:
    mapped = func.vmap(lambda x: LANES[name](x) * 1.0)
    slopes = np.array([func.grad(lambda x: LANES[name](x) * 1.0)(v) for v in V])
    np.testing.assert_allclose(func.grad(lambda v: np.sum(mapped(v)))(V), slopes)
    np.testing.assert_allclose(func.jvp(mapped, (V,), (np.ones(4),))[1], slopes)
    np.testing.assert_allclose(func.linearize(mapped, V)[1](np.ones(4)), slopes)


def test_elements_that_are_all_nan_agree() -> None:
    runs: list[Any] = []

    def f(x: Any) -> Any:
        runs.append(x)
        return 0.0 if x != x and np.isnan(float(x)) else x

    np.testing.assert_array_equal(func.vmap(f)(np.full(3, np.nan)), np.zeros(3))
    assert len(runs) == 1
    np.testing.assert_array_equal(func.vmap(f)(np.array([np.nan, 2.0, np.nan])), [0.0, 2.0, 0.0])


def test_nested_batches() -> None:
    def f(a: Any, b: Any) -> Any:
        return a * 10 if a > b else (b if b > 2 else -b)

    mapped = func.vmap(func.vmap(f, in_dims=(0, None)), in_dims=(None, 0))
    np.testing.assert_allclose(mapped(V, V), [[f(a, b) for a in V] for b in V])


def test_exceptions_of_one_element_pass() -> None:
    def f(x: Any) -> Any:
        if x > 4:
            raise KeyError("element")
        return x

    with pytest.raises(KeyError, match="element"):
        func.vmap(f)(V)
    assert not patching.is_tracing()


def test_elements_of_different_trees_are_refused() -> None:
    with pytest.raises(errors.MappedAxisError, match="different trees"):
        func.vmap(lambda x: (x,) if x > 0 else {"a": x})(V)
