"""Parameters of a predator-prey model from noisy data, by the gradient through unmodified scipy.integrate.solve_ivp."""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import func

Array = np.ndarray[Any, Any]

TRUE = np.array([1.1, 0.4, 0.4, 0.1])
"""Growth of the prey, predation, death of the predators, growth of the predators (per unit of time)."""
TIMES = np.linspace(0, 8, 25)
START = np.array([6.0, 4.0])


def trajectory(rates: Array) -> Array:
    """Returns the two populations (2, len(TIMES)) by an adaptive Runge-Kutta method."""

    def populations(t: float, y: Array) -> Array:
        prey, predators = y
        return np.array([
            rates[0] * prey - rates[1] * prey * predators,
            rates[3] * prey * predators - rates[2] * predators,
        ])  # fmt: skip

    solution = solve_ivp(populations, (TIMES[0], TIMES[-1]), START, t_eval=TIMES, rtol=1e-6, atol=1e-8)
    return solution.y  # type: ignore[no-any-return]


def misfit(rates: Array, data: Array) -> Array:
    """Returns the mean squared distance from the data."""
    return np.mean((trajectory(rates) - data) ** 2)


def main() -> None:
    """Fits four rates to 25 noisy observations of both populations."""
    rng = np.random.default_rng(1)
    data = trajectory(TRUE) + 0.03 * rng.normal(size=(2, len(TIMES)))
    guess = TRUE * np.array([1.15, 0.9, 1.1, 0.9])

    result = minimize(func.value_and_grad(misfit), guess, args=(data,), jac=True, method="BFGS")
    gradient = func.grad(misfit)(guess, data)

    print(f"{result.nit} steps, misfit {misfit(guess, data):.3f} -> {result.fun:.5f} (noise 0.0009)")
    print("rates", np.round(result.x, 3), "true", TRUE)

    step = 1e-6
    numeric = [(misfit(guess + step * e, data) - misfit(guess - step * e, data)) / (2 * step) for e in np.eye(4)]
    assert np.allclose(gradient, numeric, rtol=1e-4)
    assert np.allclose(result.x, TRUE, rtol=0.05)


if __name__ == "__main__":
    main()
