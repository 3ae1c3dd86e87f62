"""The gradient of a function of 10 elements: the cost of one small call."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import JAX
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload


def make_job(library: Library) -> Callable[[Any], Any]:
    """A sum over a product of two functions."""
    np = library.np
    return library.grad(lambda x: np.sum(np.sin(x) * np.exp(-x * x)))


def data() -> tuple[Any, ...]:
    """Ten points."""
    return (np.linspace(-1.0, 1.0, 10),)


def by_hand(x: Any) -> Any:
    """(cos x - 2 x sin x) exp(-x²)."""
    return (np.cos(x) - 2 * x * np.sin(x)) * np.exp(-x * x)


WORKLOAD = workload(
    "small gradient",
    "gradient of sum(sin(x) exp(-x²)), 10 elements, float64",
    make_job,
    data,
    compiled_bars(against_jax=8, against_hand=1.0),
    by_hand,
    others={JAX: entry(JAX, make_job, data)},
)
