"""The Hessian of the Rosenbrock function: second derivatives, many small vectors at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import JAX, TORCH_FUNC
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload
from benchmarks.workload import Bar, Workload


def make_job(library: Library) -> Callable[[Any], Any]:
    """The Hessian of the chained Rosenbrock function."""
    np = library.np

    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return library.hessian(rosenbrock)


def by_hand(x: Any) -> Any:
    """Three diagonals."""
    result = np.zeros((x.size, x.size))
    diagonal = np.einsum("ii->i", result)
    diagonal[:-1] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    off_diagonal = -400.0 * x[:-1]
    np.einsum("ii->i", result[:-1, 1:])[:] = off_diagonal
    np.einsum("ii->i", result[1:, :-1])[:] = off_diagonal
    return result


def of_size(size: int) -> Workload:
    """The workload in this number of dimensions, at a point off the valley."""

    def data() -> tuple[Any, ...]:
        return (np.linspace(-1.5, 1.5, size),)

    return workload(
        f"rosenbrock {size}",
        f"Hessian of the Rosenbrock function, n = {size}, float64",
        make_job,
        data,
        (*compiled_bars(against_jax=8, against_hand=1.0), Bar(TORCH_FUNC, 0.5)),
        by_hand,
        others={JAX: entry(JAX, make_job, data)},
    )


WORKLOADS = (of_size(10), of_size(100))
