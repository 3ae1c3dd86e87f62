"""The memory plan: random programs give the same numbers whatever counts as large, call after call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import func
from func.backends.source import numpy_source
from func.interpreters.compile import planning

UNARY = [np.sin, np.negative, np.square, np.tanh, lambda x: x.T, lambda x: x[::-1], lambda x: x + 0.5, np.abs]
BINARY = [np.add, np.multiply, np.subtract, np.maximum, lambda x, y: x @ y, lambda x, y: np.where(x > y, x, y)]


def program(steps: list[tuple[int, int, int]], outputs: list[int]) -> Any:
    """A function of two square matrices: steps, each on values computed before."""

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for which, i, j in steps:
            a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
            if which < len(UNARY):
                values.append(UNARY[which](a))
            else:
                out = BINARY[which - len(UNARY)](a, b)
                values.append(out / (1 + np.sum(np.abs(out))))
        return [values[-1 - i % len(values)] for i in outputs]

    return function


STEPS = st.lists(
    st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 5), st.integers(0, 5)), max_size=12
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.lists(st.integers(0, 6), min_size=1, max_size=3), st.booleans())
@pytest.mark.parametrize("large", [False, True])
def test_random_programs(
    large: bool, monkeypatch: pytest.MonkeyPatch, steps: Any, outputs: Any, gradient: bool
) -> None:
    with monkeypatch.context() as patch:
        if large:
            for name, value in (("WORTH_DROPPING", 0), ("LARGE", 0), ("BLOCKED", 1)):
                patch.setattr(planning, name, value)
            patch.setattr(numpy_source, "BLOCK", 5)
        f = program(steps, outputs)
        if gradient:
            f = func.grad(lambda x, y, f=f: sum([np.sum(np.sin(out)) for out in f(x, y)]), argnums=(0, 1))
        rng = np.random.default_rng(len(steps))
        jitted = func.jit(f, compiler="numpy")
        earlier = []
        for _ in range(3):
            x, y = rng.normal(size=(2, 4, 4))
            before = x.copy(), y.copy()
            got, expected = jitted(x, y), f(x, y)
            np.testing.assert_array_equal((x, y), before)
            earlier.append((got, expected))
        for got, expected in earlier:
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
        results = [a for got, _ in earlier for a in got]
        for i, a in enumerate(results):
            assert not any([np.shares_memory(a, b) for b in results[i + 1 :]])


def test_slots_hold_what_is_written_into_them() -> None:
    def function(x: Any, y: Any) -> Any:
        small = np.sin(np.cos(x))
        large = np.exp(np.cos(np.sin(np.sum(small) + y)))
        return np.sum(np.tanh(large * large)) + np.sum(np.sqrt(np.exp(np.sin(x))))

    x, y = np.linspace(0, 1, 3), np.linspace(0, 1, 500)
    jitted = func.jit(function, compiler="numpy")
    for _ in range(2):
        np.testing.assert_allclose(jitted(x, y), function(x, y))


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
def test_outputs_share_no_memory(compiler: str) -> None:
    def f(x: Any) -> Any:
        y = x * x + 1
        return y, y.T, y[1:], y.reshape(-1), y, np.broadcast_to(y[0], y.shape), x.T, x[:, 0]

    for n in (2, 40, 400):
        x = np.linspace(0.0, 1.0, n * n).reshape(n, n)
        outs = func.jit(f, compiler=compiler)(x)
        for i, out in enumerate(outs):
            np.testing.assert_array_equal(out, f(x)[i])
            assert out.flags.writeable
            assert not any([np.shares_memory(out, other) for other in (x, *outs[:i])])
