"""The gradient of a chain of 100 small operations: the cost of one operation."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC, FUNC_JIT, HIPS, TORCH, TORCH_FUNC
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.workload import Bar

STEPS = 50
BARS_OF_TEN = (
    *compiled_bars(against_jax=4),
    Bar(HIPS, 0.3),
    Bar(TORCH_FUNC, 0.2),
    Bar(TORCH, 0.4),
    Bar(FUNC, 0.35, FUNC_JIT),
    Bar(BY_HAND, 1.3, FUNC_JIT),
)
BARS = {10: BARS_OF_TEN, 1_000: compiled_bars(against_jax=4), 100_000: compiled_bars(against_jax=2, memory=True)}


def make_job(library: Library) -> Callable[[Any], Any]:
    """A hundred operations, one after the other."""
    np = library.np

    def loss(x: Any) -> Any:
        for _ in range(STEPS):
            x = np.sin(x) * x
        return np.sum(x)

    return library.grad(loss)


def data(size: int) -> tuple[Any, ...]:
    """Points which the map draws towards π/2, where its slope is 1; smaller ones would fall to zero."""
    return (np.linspace(1.6, 2.4, size),)


def by_hand(start: Any) -> Any:
    """Forward with the intermediate values kept, then backward."""
    x, kept = start, []
    for _ in range(STEPS):
        sine = np.sin(x)
        kept.append((x, sine))
        x = sine * x
    ct = np.ones_like(x)
    for x, sine in reversed(kept):
        ct = ct * (np.cos(x) * x + sine)
    return ct


WORKLOADS = tuple(
    workload(
        f"chain {size}",
        f"gradient of a chain of 100 operations (50 times x = sin(x) * x), {size:,} elements, float64",
        make_job,
        partial(data, size),
        bars,
        by_hand,
    )
    for size, bars in BARS.items()
)
