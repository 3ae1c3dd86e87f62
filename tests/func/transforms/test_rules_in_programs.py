"""Functions with rules in Programs: their derivatives, and arguments that Programs must not take for numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.array([1.0, 2.0, 3.0])


def by_loop(x: Any) -> Any:
    """Numbers by a loop whose body selects."""
    step = lambda carry, row: (np.where(row > 1.0, np.sqrt(row - 1.0) + carry, carry), carry * row)  # noqa: E731
    last, rows = func.scan(step, 0.0, x)
    return rows + last


def by_branch(x: Any) -> Any:
    """Numbers by a branch that selects."""
    return func.cond(x[1] > 0, lambda x: np.where(x > 1, np.sqrt(x - 1), x), lambda x: x, x) * x


def with_rule(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function with its own derivative as a rule."""

    @func.custom_jvp
    def function(x: Any) -> Any:
        return inner(x)

    @function.defjvp
    def function_jvp(primals: Any, tangents: Any) -> Any:
        return func.jvp(inner, primals, tangents)

    return lambda x: np.sum(function(x.T[::-1] * 1.0) * np.arange(1.0, 4.0))


@pytest.mark.parametrize("inner", [by_loop, by_branch, np.sin])
def test_programs_of_derivatives_by_rules(inner: Callable[[Any], Any]) -> None:
    f = with_rule(inner)
    expected = func.grad(lambda x: np.sum(inner(x[::-1]) * np.arange(1.0, 4.0)))(X)
    assert np.all(np.isfinite(expected))
    for gradient in (
        func.grad(f),
        func.jit(func.grad(f)),
        lambda x: func.make_program(func.grad(f))(x)(x)[0],
        lambda x: func.grad(lambda x: func.make_program(f)(x)(x)[0])(x),
        lambda x: func.grad(lambda y: func.make_program(f)(x)(y)[0])(x),
    ):
        np.testing.assert_allclose(gradient(X), expected, rtol=1e-12)
    value, slope = func.jvp(lambda x: func.make_program(f)(x)(x)[0], (X,), (X,))
    np.testing.assert_allclose([value, slope], [f(X), expected @ X], rtol=1e-12)
