"""Hyper-parameters of a Gaussian process by the gradient of its marginal likelihood."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

import func

Array = np.ndarray[Any, Any]

TRUE_NOISE = 0.1


def kernel(x: Array, y: Array, amplitude: Array, length: Array) -> Array:
    """Returns the squared-exponential covariances (len(x), len(y))."""
    return amplitude**2 * np.exp(-(((x[:, None] - y[None, :]) / length) ** 2) / 2)


def negative_log_likelihood(log_params: Array, x: Array, y: Array) -> Array:
    """Returns -log p(y | x) for log_params = the logarithms of amplitude, length scale and noise.

    Source: C. Rasmussen and C. Williams (2006), Gaussian Processes for Machine Learning, algorithm 2.1.
    """
    amplitude, length, noise = np.exp(log_params)
    covariance = kernel(x, x, amplitude, length) + noise**2 * np.eye(len(x))
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, y)
    return whitened @ whitened / 2 + np.sum(np.log(np.diagonal(factor))) + len(x) * np.log(2 * np.pi) / 2


def predict(log_params: Array, x: Array, y: Array, where: Array) -> Array:
    """Returns the posterior mean at the points `where`."""
    amplitude, length, noise = np.exp(log_params)
    covariance = kernel(x, x, amplitude, length) + noise**2 * np.eye(len(x))
    return kernel(where, x, amplitude, length) @ np.linalg.solve(covariance, y)


def main() -> None:
    """Fits noisy samples of a smooth function and recovers the noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-4, 4, size=100))
    y = np.sin(2 * x) + x / 3 + TRUE_NOISE * rng.normal(size=x.shape)

    value_and_gradient = func.value_and_grad(negative_log_likelihood)
    start = np.log([1.0, 1.0, 1.0])
    result = minimize(value_and_gradient, start, args=(x, y), jac=True, method="L-BFGS-B")
    amplitude, length, noise = np.exp(result.x)
    print(f"{result.nit} steps: amplitude {amplitude:.2f}, length scale {length:.2f}, noise {noise:.3f}")

    where = np.linspace(-3.5, 3.5, 50)
    error = np.sqrt(np.mean((predict(result.x, x, y, where) - (np.sin(2 * where) + where / 3)) ** 2))
    print(f"error of the posterior mean {error:.3f}; the noise was {TRUE_NOISE}")
    assert np.linalg.norm(func.grad(negative_log_likelihood)(result.x, x, y)) < 1e-2
    assert abs(noise / TRUE_NOISE - 1) < 0.25
    assert error < TRUE_NOISE / 2


if __name__ == "__main__":
    main()
