"""A network that solves the heat equation: its residual takes second derivatives by nested `grad`."""

from typing import Any

import numpy as np
from scipy.optimize import least_squares

import func

Array = np.ndarray[Any, Any]

WIDTH = 10
DIFFUSIVITY = 0.1


def temperature(weights: Array, x: Array, t: Array) -> Array:
    """Returns u at ONE point; it is sin(πx) at t = 0 and vanishes at x = 0 and x = 1 whatever the weights."""
    in_x, in_t, bias, out = weights.reshape(4, WIDTH)
    network = out @ np.tanh(in_x * x + in_t * t + bias)
    return np.sin(np.pi * x) + t * x * (1 - x) * network


def residual(weights: Array, x: Array, t: Array) -> Array:
    """Returns ∂u/∂t - D ∂²u/∂x² at ONE point."""
    u_t = func.grad(temperature, argnums=2)
    u_xx = func.grad(func.grad(temperature, argnums=1), argnums=1)
    return u_t(weights, x, t) - DIFFUSIVITY * u_xx(weights, x, t)


def main() -> None:
    """Fits the weights by Gauss-Newton steps and compares with the exact solution."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(size=(2, 200))
    residuals = func.vmap(residual, in_dims=(None, 0, 0))
    weights = rng.normal(size=4 * WIDTH)

    result = least_squares(residuals, weights, jac=func.jacrev(residuals), args=(x, t), max_nfev=60)
    print(f"{result.njev} Jacobians: largest residual {np.max(np.abs(result.fun)):.1e}")

    x, t = rng.uniform(size=(2, 500))
    exact = np.exp(-DIFFUSIVITY * np.pi**2 * t) * np.sin(np.pi * x)
    error = np.max(np.abs(func.vmap(temperature, in_dims=(None, 0, 0))(result.x, x, t) - exact))
    print(f"largest error at 500 new points {error:.1e}")
    assert error < 1e-3


if __name__ == "__main__":
    main()
