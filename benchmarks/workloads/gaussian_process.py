"""The gradient of a Gaussian process's marginal likelihood: matrix factorisations under a derivative."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND
from benchmarks.workload import Call, Workload
from benchmarks.workloads.scalar_gradient import gradient_entries

POINTS = 200


def make_loss(np: Any) -> Callable[..., Any]:
    """The negative log marginal likelihood by the logarithms of length scale, amplitude and noise."""

    def loss(logarithms: Any, squared_distances: Any, values: Any, identity: Any) -> Any:
        length, amplitude, noise = np.exp(logarithms[0]), np.exp(logarithms[1]), np.exp(logarithms[2])
        kernel = amplitude**2 * np.exp(-0.5 * squared_distances / length**2)
        factor = np.linalg.cholesky(kernel + noise**2 * identity)
        whitened = np.linalg.solve(factor, values)
        return 0.5 * np.sum(whitened * whitened) + np.sum(np.log(np.diag(factor)))

    return loss


def make_data() -> tuple[Any, ...]:
    """Hyper-parameters and a noisy function at random points of the plane."""
    generator = np.random.default_rng(0)
    points = generator.uniform(-2.0, 2.0, size=(POINTS, 2))
    squared_distances = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=-1)
    values = np.sin(points[:, 0]) * np.cos(points[:, 1]) + 0.1 * generator.normal(size=POINTS)
    return np.log(np.array([0.8, 1.2, 0.2])), squared_distances, values, np.eye(POINTS)


def by_hand(_: Any) -> Call:
    """½ tr((K⁻¹ - a aᵀ) dK) with a = K⁻¹y. Source: Rasmussen and Williams (2006), equation 5.9."""
    logarithms, squared_distances, values, identity = make_data()

    def gradient() -> Any:
        length, amplitude, noise = np.exp(logarithms)
        kernel = amplitude**2 * np.exp(-0.5 * squared_distances / length**2)
        inverse = np.linalg.inv(kernel + noise**2 * identity)
        alpha = inverse @ values
        weights = inverse - alpha[:, None] * alpha
        weighted = weights * kernel
        by_length = 0.5 * np.sum(weighted * squared_distances) / length**2
        return np.array([by_length, np.sum(weighted), noise**2 * np.trace(weights)])

    return gradient


WORKLOAD = Workload(
    "gaussian process",
    f"gradient of a GP's marginal likelihood, n = {POINTS}, 3 hyper-parameters, float64",
    {**gradient_entries(make_loss, make_data), BY_HAND: by_hand},
)
