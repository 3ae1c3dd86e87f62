"""Logistic regression: two products with a tall matrix and an elementwise function between."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.workload import Workload

FEATURES = 100
SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}


def make_job(library: Library) -> Callable[..., Any]:
    """The mean of log(1 + exp(-label · margin)), without overflow, and its gradient."""
    np = library.np

    def loss(weights: Any, rows: Any, labels: Any) -> Any:
        margins = labels * (rows @ weights)
        return np.mean(np.log1p(np.exp(-np.abs(margins))) + np.where(margins < 0, -margins, 0.0))

    return library.value_and_grad(loss)


def data(size: int) -> tuple[Any, ...]:
    """Weights, rows, and labels of ±1."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(size, FEATURES))
    labels = np.where(rows[:, 0] + 0.5 * generator.normal(size=size) > 0, 1.0, -1.0)
    return 0.1 * generator.normal(size=FEATURES), rows, labels


def by_hand(weights: Any, rows: Any, labels: Any) -> Any:
    """-label σ(-margin) weighs each row."""
    margins = labels * (rows @ weights)
    small = np.exp(-np.abs(margins))
    negative = margins < 0
    value = np.mean(np.log1p(small) - np.where(negative, margins, 0.0))
    share = np.where(negative, 1.0, small) / (1.0 + small)
    return value, (labels * share) @ rows / -labels.size


def of_size(name: str, size: int) -> Workload:
    """The workload for this number of rows."""
    return workload(
        f"logistic {name}",
        f"value_and_grad of logistic regression, {size:,} rows of {FEATURES}, float64",
        make_job,
        lambda: data(size),
        compiled_bars(against_jax=1.2, memory=size > 50_000),
        by_hand,
    )


WORKLOADS = tuple(of_size(name, size) for name, size in SIZES.items())
