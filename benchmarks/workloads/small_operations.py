"""Gradients made of many slices, choices or reductions of small arrays: the cost of one such operation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import HIPS
from benchmarks.workload import Bar, Workload
from benchmarks.workloads.scalar_gradient import gradient_entries

STEPS = 30


def slicing_loss(np: Any) -> Callable[[Any], Any]:
    """Differences of neighbours, taken again and again."""

    def loss(x: Any) -> Any:
        for _ in range(STEPS):
            x = x[1:] - 0.5 * x[:-1]
        return np.sum(x)

    return loss


def where_loss(np: Any) -> Callable[[Any], Any]:
    """Choices between two branches."""

    def loss(x: Any) -> Any:
        for _ in range(STEPS):
            x = np.where(x > 0.5, x * x, 1.5 * x)
        return np.sum(x)

    return loss


def reductions_loss(np: Any) -> Callable[[Any], Any]:
    """Sums, means and extrema of rows."""

    def loss(x: Any) -> Any:
        for _ in range(STEPS):
            x = 0.9 * x + 0.1 * np.mean(x) + 0.001 * np.sum(x) - 0.02 * np.max(x)
        return np.sum(x)

    return loss


def vector() -> tuple[Any, ...]:
    """Forty numbers."""
    return (np.linspace(0.1, 0.9, 40),)


BARS = (Bar(HIPS, 0.5),)
SLICING = Workload(
    "slicing",
    f"gradient of {2 * STEPS} slices of a vector of 40 elements, float64",
    gradient_entries(slicing_loss, vector),
    bars=BARS,
)
WHERE = Workload(
    "where",
    f"gradient of {STEPS} times np.where(x > 0.5, x * x, 1.5 * x), 40 elements, float64",
    gradient_entries(where_loss, vector),
    bars=BARS,
)
REDUCTIONS = Workload(
    "reductions",
    f"gradient of {3 * STEPS} reductions (mean, sum, max) of 40 elements, float64",
    gradient_entries(reductions_loss, vector),
    bars=BARS,
)
