"""A neural network learns the equation of motion of a pendulum from its trajectories."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

import func

Array = np.ndarray[Any, Any]

WIDTH = 12
TIME_STEP = 0.2


def pendulum(state: Array) -> Array:
    """Returns d(angle, velocity)/dt of a damped pendulum, in units where g/length = 1."""
    angle, velocity = state[..., 0], state[..., 1]
    return np.stack([velocity, -np.sin(angle) - 0.1 * velocity], axis=-1)


def network(weights: Array, state: Array) -> Array:
    """Returns d(angle, velocity)/dt with the acceleration from a network of one hidden layer."""
    inner = weights[: 3 * WIDTH].reshape(3, WIDTH)
    hidden = np.tanh(state @ inner[:2] + inner[2])
    acceleration = hidden @ weights[3 * WIDTH :]
    return np.stack([state[..., 1], acceleration], axis=-1)


def trajectory(derivative: Callable[[Array], Array], state: Array, steps: int) -> Array:
    """Integrates by the classical Runge-Kutta method; returns the states (steps, …, 2) after each step."""
    states = []
    for _ in range(steps):
        k1 = derivative(state)
        k2 = derivative(state + TIME_STEP / 2 * k1)
        k3 = derivative(state + TIME_STEP / 2 * k2)
        k4 = derivative(state + TIME_STEP * k3)
        state = state + TIME_STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    return np.stack(states)


def misfit(weights: Array, starts: Array, observed: Array) -> Array:
    """Returns the mean squared distance of the network's trajectories from the observed ones."""
    predicted = trajectory(lambda state: network(weights, state), starts, len(observed))
    return np.mean((predicted - observed) ** 2)


def main() -> None:
    """Trains on eight swings of five time units and predicts one of twenty."""
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1.2, 1.2, size=(8, 2))
    observed = trajectory(pendulum, starts, 25)
    weights = 0.2 * rng.normal(size=4 * WIDTH)

    loss_and_gradient = func.value_and_grad(misfit)
    result = minimize(
        loss_and_gradient, weights, (starts, observed), method="L-BFGS-B", jac=True, options={"maxiter": 150}
    )
    before = misfit(weights, starts, observed)
    print(f"{result.nit} steps: mean squared error {before:.2f} -> {result.fun:.1e}")

    start = np.array([1.0, 0.0])
    predicted = trajectory(lambda state: network(result.x, state), start, 100)
    error = np.max(np.abs(predicted - trajectory(pendulum, start, 100)))
    print(f"a new swing, four times as long: largest error {error:.3f}")
    assert result.fun < 1e-4
    assert error < 0.05


if __name__ == "__main__":
    main()
