"""The gradient of a Gaussian process's marginal likelihood: matrix factorisations under a derivative."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import JAX
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload
from benchmarks.workload import Workload


def make_job(library: Library) -> Callable[..., Any]:
    """The negative log marginal likelihood by the logarithms of length scale, amplitude and noise."""
    np = library.np

    def loss(logarithms: Any, squared_distances: Any, values: Any, identity: Any) -> Any:
        length, amplitude, noise = np.exp(logarithms[0]), np.exp(logarithms[1]), np.exp(logarithms[2])
        kernel = amplitude**2 * np.exp(-0.5 * squared_distances / length**2)
        factor = np.linalg.cholesky(kernel + noise**2 * identity)
        whitened = library.solve_triangular(factor, values)
        return 0.5 * np.sum(whitened * whitened) + np.sum(np.log(np.diag(factor)))

    return library.grad(loss)


def data(size: int) -> tuple[Any, ...]:
    """Hyper-parameters and a noisy function at random points of the plane."""
    generator = np.random.default_rng(0)
    points = generator.uniform(-2.0, 2.0, size=(size, 2))
    squared_distances = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=-1)
    values = np.sin(points[:, 0]) * np.cos(points[:, 1]) + 0.1 * generator.normal(size=size)
    return np.log(np.array([0.8, 1.2, 0.2])), squared_distances, values, np.eye(size)


def by_hand(logarithms: Any, squared_distances: Any, values: Any, identity: Any) -> Any:
    """½ tr((K⁻¹ - a aᵀ) dK) with a = K⁻¹y. Source: Rasmussen and Williams (2006), equation 5.9."""
    length, amplitude, noise = np.exp(logarithms)
    kernel = amplitude**2 * np.exp(-0.5 * squared_distances / length**2)
    inverse = np.linalg.inv(kernel + noise**2 * identity)
    alpha = inverse @ values
    weights = inverse - alpha[:, None] * alpha
    weighted = weights * kernel
    by_length = 0.5 * np.sum(weighted * squared_distances) / length**2
    return np.array([by_length, np.sum(weighted), noise**2 * np.trace(weights)])


def of_size(size: int) -> Workload:
    """The workload for this number of points."""
    return workload(
        f"gaussian process {size}",
        f"gradient of a GP's marginal likelihood, n = {size}, 3 hyper-parameters, float64",
        make_job,
        lambda: data(size),
        compiled_bars(against_jax=1.8, against_best=0.6, memory=size >= 1000),
        by_hand,
        others={JAX: entry(JAX, make_job, lambda: data(size))},
    )


WORKLOADS = (of_size(200), of_size(1000))
