"""Values that larger ones repeat are computed before the loop nests that would otherwise have to follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends.loops.kernels import LoopNest
from func.interpreters.compile.native.small_first import small_first
from func.interpreters.compile.native.translate import translate
from func.interpreters.program.program import Program, Var

ROWS, COLUMNS = 64, 40
X, CT = np.ones((ROWS, COLUMNS)), np.ones((ROWS, COLUMNS))
COLUMN = np.full((ROWS, 1), 2.0)


def softmax_pullback(ct: Any, e: Any, total: Any, x: Any, top: Any) -> Any:
    """As a backward pass computes it from what is saved: the inverse of a column comes in the middle."""
    slope = np.sum(-(e / total / total) * ct, axis=1, keepdims=True)
    inner = e * ((1 / total) * ct + slope)
    chosen = (x == top).astype(float)
    return inner - chosen / np.sum(chosen, axis=1, keepdims=True) * np.sum(inner, axis=1, keepdims=True)


def nests(program: Program) -> list[tuple[int, ...]]:
    return [item.domain for item in translate(program).items if isinstance(item, LoopNest)]


def test_a_pullback_of_rows_is_one_nest() -> None:
    program = func.make_program(softmax_pullback)(CT, X, COLUMN, X, COLUMN)
    assert nests(program).count((ROWS, COLUMNS)) == 1


def test_order_of_what_is_moved() -> None:
    program = func.make_program(lambda x, c: np.sin(x) + x * np.exp(c + 1) + np.exp(x[:1]))(X, COLUMN)
    names = [equation.primitive.name for equation in small_first(program)]
    assert names.index("exp") < names.index("sin")
    assert sorted(names) == sorted([equation.primitive.name for equation in program.equations])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, c: np.sin(x) + x * c,  # nothing small is computed
        lambda x, c: np.sin(x) * np.sum(x, axis=1, keepdims=True),  # what is small comes from what is large
        lambda x, c: (np.sin(x[:, :8]), np.cos(c) + x[:, :4]),  # it is repeated too few times
    ],
)
def test_what_stays(function: Any) -> None:
    program = func.make_program(function)(X, COLUMN)
    assert list(small_first(program)) == list(program.equations)


def test_no_more_is_moved_than_the_largest_value_holds() -> None:
    def f(x: Any, c: Any) -> Any:
        for number in range(3 * COLUMNS):
            x = x * np.cos(c + number)
        return x

    program = func.make_program(f)(X, COLUMN)
    order = small_first(program)
    moved = order[: [equation.outputs[0].size for equation in order].index(X.size)]
    assert ROWS * COLUMNS - 2 * ROWS <= sum([equation.outputs[0].size for equation in moved]) <= ROWS * COLUMNS
    jitted = func.jit(f)
    np.testing.assert_allclose(jitted(X, COLUMN), f(X, COLUMN), rtol=1e-12)


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: np.tanh(a * b),
    lambda a, b: np.cos(a),
    lambda a, b: a[:1] + b,
    lambda a, b: np.mean(a, axis=0, keepdims=True),
    lambda a, b: b.T.T,
]


def test_operands_come_before_their_use() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        steps = generator.integers(0, len(STEPS), size=(30, 3))

        def f(x: Any, c: Any, r: Any, steps: Any = steps) -> Any:
            values = [x, c, r]
            for kind, left, right in steps:
                values.append(STEPS[kind](values[-1 - left % len(values)], values[-1 - right % len(values)]))
            return [value for value in values if value is not x]

        args = X, COLUMN, np.arange(1.0, COLUMNS + 1)
        program = func.make_program(f)(*args)
        known: set[Any] = {*program.inputs, *program.constants}
        for equation in small_first(program):
            assert all([x in known for x in equation.inputs if type(x) is Var])
            known.update(equation.outputs)
        assert all([x in known for x in program.outputs if type(x) is Var])
        for found, expected in zip(func.jit(f)(*args), f(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
