"""Checkpoints hold in traced loops, plans meet every possible limit, and calls need the planned memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.compilation import planned_memory
from func.errors import MemoryLimitError
from tools.enumerate.promises import Levels, check_levels, measured

SIZE = 3000
ARRAY = 8 * SIZE
X = np.linspace(0.1, 0.9, SIZE)
INNER, STEPS = 10, 24
RESIDUALS, OTHERS = INNER, 10
"""Arrays that a step keeps for its pullback, and those other than carries and residuals."""


def body(c: Any) -> Any:
    for _ in range(INNER):
        c = np.sin(c) * 1.1
    return c


def scanned(step: Any, x: Any, **options: Any) -> Any:
    return func.scan(lambda c, _: (step(c), None), x, None, length=STEPS, **options)[0]


def looped(step: Any, x: Any) -> Any:
    for _ in range(STEPS):
        x = step(x)
    return x


def bounded(step: Any, x: Any) -> Any:
    return func.while_loop(lambda c: c[0] < STEPS, lambda c: (c[0] + 1, step(c[1])), (0, x), max_steps=STEPS)[1]


LOOPS: dict[str, Callable[..., Any]] = {
    "scan": scanned,
    "fori_loop": lambda step, x: func.fori_loop(0, STEPS, lambda i, c: step(c), x),
    "while_loop": bounded,
    "Python": looped,
    "scan in cond": lambda step, x: func.cond(x[0] < 2.0, lambda: scanned(step, x), lambda: x * 2.0),
}
GRADIENTS: dict[str, Callable[..., Any]] = {
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.jit(func.grad(func.jit(f))),
    "jit of vjp": lambda f: func.jit(lambda x: func.vjp(f, x)[1](1.0)[0]),
}


def planned(call: Any) -> float:
    """The planned peak, in arrays."""
    return float(func.memory(call)(X).peak / ARRAY)


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("loop", LOOPS)
def test_checkpointed_bodies(loop: str, gradient: str) -> None:
    def loss(step: Any) -> Any:
        return lambda x: np.sum(LOOPS[loop](step, x))

    call = GRADIENTS[gradient](loss(func.checkpoint(body)))
    carries = STEPS if loop in ("scan", "fori_loop") else 2 * STEPS  # others pass them on as copies
    assert planned(call) <= carries + RESIDUALS + OTHERS
    assert planned(GRADIENTS[gradient](loss(body))) > 0.8 * STEPS * RESIDUALS
    np.testing.assert_allclose(call(X), func.grad(lambda x: np.sum(looped(body, x)))(X), rtol=1e-11)


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("interval", [1, 2, 3, 5, 7, 12, 23])
def test_intervals_of_every_length(interval: int, gradient: str) -> None:
    call = GRADIENTS[gradient](lambda x: np.sum(scanned(body, x, checkpoint=interval)))
    assert planned(call) <= -(-STEPS // interval) + interval * RESIDUALS + 2 * OTHERS
    np.testing.assert_allclose(call(X), func.grad(lambda x: np.sum(looped(body, x)))(X), rtol=1e-11)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("interval", [1, 2, 3, 4, 5, 8])
def test_values_of_intervals(interval: int, reverse: bool) -> None:
    def f(x: Any, checkpoint: int) -> Any:
        step = lambda c, row: (np.sin(c) + row, c * row)  # noqa: E731
        c, ys = func.scan(step, x, np.linspace(0.1, 1.0, 7), reverse=reverse, checkpoint=checkpoint)
        return np.sum(c) + np.sum(ys * np.arange(7.0)[:, None])

    x = X[:3]
    expected = func.value_and_grad(lambda x: f(x, 0))(x)
    for call in (
        func.value_and_grad(lambda x: f(x, interval)),
        func.jit(func.value_and_grad(lambda x: f(x, interval))),
    ):
        for mine, other in zip(call(x), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-13)
    second = func.hessian(lambda x: f(x, 0))(x)
    np.testing.assert_allclose(func.jit(func.hessian(lambda x: f(x, interval)))(x), second, rtol=1e-12, atol=1e-14)


def test_the_body_of_a_scan_in_blocks_is_traced_once() -> None:
    count = 0

    def step(c: Any, _: Any) -> Any:
        nonlocal count
        count += 1
        return np.sin(c), None

    func.jit(func.grad(lambda x: np.sum(func.scan(step, x, None, length=7, checkpoint=2)[0])))(X)
    assert count == 1


def test_constants_of_a_checkpoint_are_kept_once() -> None:
    factor = np.linspace(0.9, 1.1, 40_000)
    step = func.checkpoint(lambda c: np.sin(c) * factor)
    x = np.linspace(0.1, 0.9, 40_000)
    timeline = func.memory(func.grad(lambda x: np.sum(looped(step, x))))(x)
    with_arrays = timeline.peak / factor.nbytes
    assert with_arrays < STEPS + OTHERS + 2
    assert measured(lambda: func.grad(lambda x: np.sum(looped(step, x)))(x)) < timeline.peak + 300_000


def test_compiled_derivatives_do_not_copy_their_arguments() -> None:
    step = func.jit(func.checkpoint(body))
    x = np.linspace(0.1, 0.9, 40_000)
    call = func.grad(lambda x: np.sum(looped(step, x)))
    assert measured(lambda: call(x)) < (STEPS + OTHERS) * x.nbytes + 300_000


MODELS: dict[str, Callable[..., Any]] = {
    "one scan": lambda x, k: scanned(np.sin, x, checkpoint=k),
    "two scans": lambda x, k: scanned(np.sin, scanned(lambda c: np.tanh(c) * 1.1, x, checkpoint=k), checkpoint=k),
    "a jitted scan": func.jit(lambda x, k: scanned(np.sin, x, checkpoint=k), static_argnums=1),
    "a scan in a branch": lambda x, k: func.cond(x[0] < 2, lambda: scanned(np.sin, x, checkpoint=k), lambda: x),
}


@pytest.mark.parametrize("share", [1.0, 1.3])
@pytest.mark.parametrize("model", MODELS)
def test_limits_that_an_interval_meets(model: str, share: float) -> None:
    def loss(x: Any, interval: int = 0) -> Any:
        return np.sum(MODELS[model](x, interval))

    peaks = [func.memory(func.jit(func.grad(lambda x, k=k: loss(x, k))))(X).peak for k in (1, 2, 3, 4, 5, 6, 8, 12)]
    limit = int(share * min(peaks))
    limited = func.jit(func.grad(loss), memory_limit=limit)
    assert func.memory(limited)(X).peak <= limit
    np.testing.assert_allclose(limited(X), func.grad(loss)(X), rtol=1e-11)


def test_limits_that_no_interval_meets() -> None:
    with pytest.raises(MemoryLimitError, match="cannot be met"):
        func.jit(func.grad(lambda x: np.sum(scanned(np.sin, x))), memory_limit=4 * ARRAY)(X)


@pytest.mark.parametrize("length", [2, 3, 10, 24, 200])
def test_the_valley_of_intervals_is_found(length: int) -> None:
    for best in range(1, length):
        depth = {k: abs(np.log(k / best)) for k in range(1, length + 1)}
        least = min([depth[k] for k in planned_memory.intervals(length)])
        found = planned_memory.interval_within(int(1e6 * least), length, lambda k, depth=depth: int(1e6 * depth[k]))
        assert found is not None and int(1e6 * depth[found]) <= int(1e6 * least)


def test_limited_maps_compile_no_backward_pass() -> None:
    rows = np.linspace(0.1, 0.9, 400 * 100).reshape(400, 100)
    mapped = func.vmap(func.grad(lambda x: np.sum(np.exp(np.sin(np.outer(x, x[:30]))))), memory_limit="1.2 MB")
    mapped(rows)
    tracemalloc.start()
    try:
        for _ in range(8):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            mapped(rows)
            assert tracemalloc.get_traced_memory()[1] - before + rows.nbytes <= 1_400_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("levels", "inner", "length"), [(2, 1, 200), (3, 1, 200), (3, 4, 200), (3, 4, 50)])
def test_limits_that_levels_of_blocks_meet(levels: int, inner: int, length: int) -> None:
    assert check_levels(Levels(levels, inner, length)) is None


EAGER: dict[str, Callable[..., Any]] = {
    "scan": lambda step, x: func.scan(lambda c, _: (step(c), None), x, None, length=6)[0],
    "scan in blocks": lambda step, x: func.scan(lambda c, _: (body(c), None), x, None, length=6, checkpoint=2)[0],
    "fori_loop": lambda step, x: func.fori_loop(0, 6, lambda i, c: step(c), x),
    "map": lambda step, x: func.map(step, x.reshape(4, -1)),
}


STEPS_OF_LOOPS: dict[str, Any] = {
    "plain": body,
    "checkpoint": func.checkpoint(body),
    "checkpoint of a checkpoint": func.checkpoint(func.checkpoint(body)),
    "jit of a checkpoint": func.jit(func.checkpoint(body)),
    "cond": lambda x: func.cond(x[0] < 2.0, body, lambda x: x * 2.0, x),
    "switch": lambda x: func.switch((x[0] < 2.0).astype(int), [lambda x: x * 2.0, func.checkpoint(body)], x),
}


@pytest.mark.parametrize("step", STEPS_OF_LOOPS.values(), ids=STEPS_OF_LOOPS)
@pytest.mark.parametrize("loop", EAGER)
def test_plans_of_eager_loops_are_what_they_take(loop: str, step: Any) -> None:
    x = np.linspace(0.1, 0.9, 40_000)
    call = func.grad(lambda x: np.sum(EAGER[loop](step, x)))
    timeline = func.memory(call)(x)
    peak = measured(lambda: call(x))
    assert peak <= 1.05 * (timeline.peak - timeline.arguments) + 200_000
    assert timeline.peak <= 1.25 * peak + 2 * x.nbytes


@pytest.mark.parametrize("interval", [1, 2, 5])
def test_plans_of_calls_in_eager_code_are_what_they_take(interval: int) -> None:
    """The code of the forward run keeps its scratch memory while that of the backward run works."""
    x = np.linspace(0.1, 0.9, 40_000)
    call = func.grad(func.jit(lambda x: np.sum(scanned(np.sin, x, checkpoint=interval))))
    timeline = func.memory(call)(x)
    peak = measured(lambda: call(x))
    assert peak <= 1.05 * (timeline.peak - timeline.arguments) + 200_000
    assert timeline.peak - timeline.arguments <= 1.05 * peak + 200_000
