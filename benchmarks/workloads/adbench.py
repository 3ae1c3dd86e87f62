"""Two objectives of ADBench: the likelihood of a Gaussian mixture, and the residuals of bundle adjustment.

Source: F. Šrajer, Z. Kukelova, A. Fitzgibbon (2018), Optimization Methods and Software 33, sections 4.1 and 4.2.
"""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.workload import Workload

POINTS, GAMMA, WISHART = 1000, 1.0, 0
MIXTURES = {"small": (2, 5), "medium": (10, 25), "large": (32, 50)}
OBSERVATIONS = {"1k": 1_000, "10k": 10_000, "100k": 100_000}


def make_mixture(library: Library) -> Callable[..., Any]:
    """value_and_grad of the log-likelihood by weights, means and factors of the inverse covariances.

    A factor is lower triangular, with the exponentials of `diagonals` on its diagonal and `lowers` below it.
    """
    np = library.np

    def log_sum_exp(x: Any) -> Any:
        largest = np.amax(x, axis=-1, keepdims=True)
        return np.log(np.sum(np.exp(x - largest), axis=-1)) + largest[..., 0]

    def likelihood(parameters: dict[str, Any], points: Any, identity: Any, places: Any, below: Any) -> Any:
        weights, diagonals, lowers = parameters["weights"], parameters["diagonals"], parameters["lowers"]
        exponentials = np.exp(diagonals)
        factors = lowers[:, places] * below + exponentials[:, :, None] * identity
        centred = points - parameters["means"][:, None, :]
        distances = np.sum((centred @ np.swapaxes(factors, 1, 2)) ** 2, axis=-1)
        sums = np.sum(diagonals, axis=-1)
        mixture = np.sum(log_sum_exp(np.swapaxes((weights + sums)[:, None] - 0.5 * distances, 0, 1)))
        prior = 0.5 * GAMMA**2 * (np.sum(exponentials**2) + np.sum(lowers**2)) - WISHART * np.sum(sums)
        constant = mixture_constant(points.shape[-1], weights.shape[0])
        return mixture - POINTS * log_sum_exp(weights) + prior + constant

    return library.value_and_grad(likelihood)


def mixture_constant(dimension: int, components: int) -> float:
    """The factors that do not depend on the parameters: the densities' and the Wishart prior's."""
    freedom = dimension + WISHART + 1
    log_gamma = 0.25 * dimension * (dimension - 1) * log(pi)
    log_gamma += sum(lgamma(0.5 * (freedom - axis)) for axis in range(dimension))
    prior = freedom * dimension * (log(GAMMA) - 0.5 * log(2)) - log_gamma
    return -0.5 * POINTS * dimension * log(2 * pi) - components * prior


def mixture_data(dimension: int, components: int) -> tuple[Any, ...]:
    """Parameters, points, and what places the numbers of a row into a triangle."""
    generator = np.random.default_rng(0)
    size = dimension * (dimension - 1) // 2
    rows, columns = np.tril_indices(dimension, -1)
    places = np.zeros((dimension, dimension), dtype=np.int64)
    places[rows, columns] = np.arange(size)
    below = np.zeros((dimension, dimension))
    below[rows, columns] = 1.0
    parameters = {
        "weights": generator.normal(size=components),
        "means": generator.uniform(size=(components, dimension)),
        "diagonals": 0.3 * generator.normal(size=(components, dimension)),
        "lowers": 0.3 * generator.normal(size=(components, size)),
    }
    return parameters, generator.normal(size=(POINTS, dimension)), np.eye(dimension), places, below


def make_residuals(np: Any) -> Callable[..., Any]:
    """The three residuals of an observation: weighted reprojection errors, and of the weight; rows come first.

    A camera is rotation (3), centre (3), focal length, principal point (2), radial distortion (2).
    """

    def rotate(rotation: Any, x: Any) -> Any:
        """By the formula of Rodrigues."""
        angle = np.sqrt(np.sum(rotation * rotation, axis=-1))[..., None]
        axis = rotation / angle
        cosine = np.cos(angle)
        a, b = [[array[..., i] for i in range(3)] for array in (axis, x)]
        cross = np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], axis=-1)
        return x * cosine + cross * np.sin(angle) + axis * np.sum(axis * x, axis=-1)[..., None] * (1.0 - cosine)

    def residuals(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        seen = rotate(camera[..., 0:3], point - camera[..., 3:6])
        flat = seen[..., 0:2] / seen[..., 2:3]
        square = np.sum(flat * flat, axis=-1)
        distortion = 1.0 + square * (camera[..., 9] + square * camera[..., 10])
        projected = flat * (distortion * camera[..., 6])[..., None] + camera[..., 7:9]
        errors = weight[..., None] * (projected - feature)
        return np.stack([errors[..., 0], errors[..., 1], 1.0 - weight * weight], axis=-1)

    return residuals


def make_adjustment(library: Library) -> Callable[..., Any]:
    """The Jacobian of every observation by its camera, point and weight."""
    return library.rows_jacobian(make_residuals(library.np), inputs=3, outputs=3)


def adjustment_data(observations: int) -> tuple[Any, ...]:
    """Cameras that look along the z axis from behind, points around the origin, weights, features."""
    generator = np.random.default_rng(0)
    scales = np.array([0.1] * 3 + [0.2] * 3 + [20.0, 5.0, 5.0, 0.01, 0.01])
    usual = np.array([0.1, 0.1, 0.1, 0.0, 0.0, -5.0, 500.0, 0.0, 0.0, 0.0, 0.0])
    cameras = usual + scales * generator.normal(size=(observations, 11))
    points, weights = generator.normal(size=(observations, 3)), generator.uniform(0.5, 1.5, observations)
    return cameras, points, weights, 50.0 * generator.normal(size=(observations, 2))


def mixture_of(name: str, dimension: int, components: int) -> Workload:
    """The mixture of a number of components in a number of dimensions."""
    return workload(
        f"gmm {name}",
        f"value_and_grad of ADBench's GMM, {POINTS} points, d = {dimension}, K = {components}, float64",
        make_mixture,
        lambda: mixture_data(dimension, components),
        compiled_bars(against_jax=1.3, memory=name == "large"),
    )


def adjustment_of(name: str, observations: int) -> Workload:
    """A number of observations."""
    return workload(
        f"bundle {name}",
        f"Jacobians of ADBench's bundle adjustment, {observations:,} observations, float64",
        make_adjustment,
        lambda: adjustment_data(observations),
        compiled_bars(against_jax=1.3, memory=observations >= 100_000),
    )


WORKLOADS = (
    *(mixture_of(name, *sizes) for name, sizes in MIXTURES.items()),
    *(adjustment_of(name, size) for name, size in OBSERVATIONS.items()),
)
