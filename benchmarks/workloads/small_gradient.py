"""The gradient of a function of 10 elements: what one small call costs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND
from benchmarks.workload import Call, Workload
from benchmarks.workloads.scalar_gradient import gradient_entries


def make_loss(np: Any) -> Callable[[Any], Any]:
    """A sum over a product of two functions."""

    def loss(x: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(-x * x))

    return loss


def make_data() -> tuple[Any, ...]:
    """Ten points."""
    return (np.linspace(-1.0, 1.0, 10),)


def by_hand(_: Any) -> Call:
    """(cos x - 2 x sin x) exp(-x²)."""
    (x,) = make_data()
    return lambda: (np.cos(x) - 2 * x * np.sin(x)) * np.exp(-x * x)


WORKLOAD = Workload(
    "small gradient",
    "gradient of sum(sin(x) exp(-x²)), 10 elements, float64",
    {**gradient_entries(make_loss, make_data), BY_HAND: by_hand},
)
