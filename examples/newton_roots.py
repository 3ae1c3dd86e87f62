"""Kepler's equation by Newton's method under `vmap`: every planet takes as many steps as it needs."""

from typing import Any

import numpy as np

import func

Array = np.ndarray[Any, Any]


def kepler(anomaly: Array, mean_anomaly: Array, eccentricity: Array) -> Array:
    """Is zero at the eccentric anomaly, all angles in radians."""
    return anomaly - eccentricity * np.sin(anomaly) - mean_anomaly


def eccentric_anomaly(mean_anomaly: Array, eccentricity: Array) -> tuple[Array, int]:
    """Solves Kepler's equation for ONE planet; returns the root and the number of Newton steps."""
    slope = func.grad(kepler)
    anomaly = mean_anomaly + eccentricity
    steps, residual = 0, np.inf
    while abs(residual) > 1e-13 and steps < 50:
        residual = kepler(anomaly, mean_anomaly, eccentricity)
        # The step at the root hardly moves it, but has its derivative, even where the start was the root.
        anomaly = anomaly - residual / slope(anomaly, mean_anomaly, eccentricity)
        steps += 1
    return anomaly, steps


def main() -> None:
    """Solves 400 planets at once, and differentiates their positions by the eccentricity."""
    rng = np.random.default_rng(0)
    mean_anomaly = rng.uniform(0.05, np.pi, size=400)
    eccentricity = rng.uniform(0.0, 0.97, size=400)

    anomaly, steps = func.vmap(eccentric_anomaly)(mean_anomaly, eccentricity)
    worst = np.max(np.abs(kepler(anomaly, mean_anomaly, eccentricity)))
    for count, planets in zip(*np.unique(steps, return_counts=True), strict=True):
        print(f"{planets:4d} planets took {count} steps")
    print(f"largest residual {worst:.1e}")
    assert worst <= 1e-13
    assert len(np.unique(steps)) >= 3

    gradient, _ = func.vmap(func.grad(eccentric_anomaly, argnums=1, has_aux=True))(mean_anomaly, eccentricity)
    implicit = np.sin(anomaly) / (1 - eccentricity * np.cos(anomaly))
    error = np.max(np.abs(gradient - implicit))
    print(f"derivative by the eccentricity: within {error:.1e} of the implicit one")
    np.testing.assert_allclose(gradient, implicit, rtol=1e-8, atol=1e-10)


if __name__ == "__main__":
    main()
