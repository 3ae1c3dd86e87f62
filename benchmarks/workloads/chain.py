"""The gradient of a chain of 100 small operations: what one operation costs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC, FUNC_JIT, HIPS, JAX_JIT, TORCH, TORCH_FUNC
from benchmarks.workload import Bar, Call, Workload
from benchmarks.workloads.scalar_gradient import gradient_entries

STEPS = 50


def make_loss(np: Any) -> Callable[[Any], Any]:
    """A hundred operations, one after the other."""

    def loss(x: Any) -> Any:
        for _ in range(STEPS):
            x = np.sin(x) * x
        return np.sum(x)

    return loss


def make_data() -> tuple[Any, ...]:
    """Ten points which the map draws towards π/2, where its slope is 1; smaller ones would fall to zero."""
    return (np.linspace(1.6, 2.4, 10),)


def by_hand(_: Any) -> Call:
    """Forward with the intermediate values kept, then backward."""
    (start,) = make_data()

    def gradient() -> Any:
        x, kept = start, []
        for _ in range(STEPS):
            sine = np.sin(x)
            kept.append((x, sine))
            x = sine * x
        ct = np.ones_like(x)
        for x, sine in reversed(kept):
            ct = ct * (np.cos(x) * x + sine)
        return ct

    return gradient


WORKLOAD = Workload(
    "chain",
    "gradient of a chain of 100 operations (50 times x = sin(x) * x), 10 elements, float64",
    {**gradient_entries(make_loss, make_data), BY_HAND: by_hand},
    bars=(
        Bar(HIPS, 0.3),
        Bar(TORCH_FUNC, 0.2),
        Bar(TORCH, 0.4),
        Bar(FUNC, 0.35, FUNC_JIT),
        Bar(BY_HAND, 1.3, FUNC_JIT),
        Bar(JAX_JIT, 0.25, FUNC_JIT, "first call"),
    ),
)
