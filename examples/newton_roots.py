"""Kepler's equation by Newton's method under `vmap`: every planet takes as many steps as it needs."""

from collections.abc import Callable
from typing import Any

import numpy as np

import func

Array = np.ndarray[Any, Any]


def kepler(anomaly: Array, mean_anomaly: Array, eccentricity: Array) -> Array:
    """Is zero at the eccentric anomaly, all angles in radians."""
    return anomaly - eccentricity * np.sin(anomaly) - mean_anomaly


def newton(residual: Callable[[Array], Array], start: Array) -> tuple[Array, int]:
    """The root of ONE equation and the number of Newton steps, of which a start at the root takes none."""
    slope = func.grad(residual)
    x, steps = start, 0
    while abs(residual(x)) > 1e-13 and steps < 50:
        x = x - residual(x) / slope(x)
        steps += 1
    return x, steps


eccentric_anomaly = func.custom_root(kepler, newton, has_aux=True)
"""(start, mean anomaly, eccentricity): the root, with its own derivative, and the number of steps."""


def main() -> None:
    """Solves 400 planets at once, and differentiates their positions by the eccentricity."""
    rng = np.random.default_rng(0)
    mean_anomaly = rng.uniform(0.05, np.pi, size=400)
    eccentricity = rng.uniform(0.0, 0.97, size=400)

    start = mean_anomaly + eccentricity
    anomaly, steps = func.vmap(eccentric_anomaly)(start, mean_anomaly, eccentricity)
    worst = np.max(np.abs(kepler(anomaly, mean_anomaly, eccentricity)))
    for count, planets in zip(*np.unique(steps, return_counts=True), strict=True):
        print(f"{planets:4d} planets took {count} steps")
    print(f"largest residual {worst:.1e}")
    assert worst <= 1e-13
    assert len(np.unique(steps)) >= 3

    slope = func.vmap(func.grad(eccentric_anomaly, argnums=2, has_aux=True))
    gradient, _ = slope(start, mean_anomaly, eccentricity)
    at_the_root, steps = slope(anomaly, mean_anomaly, eccentricity)
    assert not np.any(steps)
    implicit = np.sin(anomaly) / (1 - eccentricity * np.cos(anomaly))
    error = np.max(np.abs(gradient - implicit))
    print(f"derivative by the eccentricity: within {error:.1e} of the implicit one")
    np.testing.assert_allclose(gradient, implicit, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at_the_root, implicit, rtol=1e-8, atol=1e-10)


if __name__ == "__main__":
    main()
