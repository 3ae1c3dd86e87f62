"""
A neural differential equation
==============================

A network learns the equation of motion of a damped pendulum by watching it swing: the gradient goes through a
Runge-Kutta integration of the network (Chen et al., 2018). Then it predicts a swing four times as long.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

WIDTH, STEP = 12, 0.2


def pendulum(state):
    """Returns d(angle, velocity)/dt in units where g/length = 1."""
    angle, velocity = state[..., 0], state[..., 1]
    return np.stack([velocity, -np.sin(angle) - 0.1 * velocity], axis=-1)


def network(weights, state):
    """Returns d(angle, velocity)/dt with the acceleration from a network of one hidden layer."""
    inner, out = weights[: 3 * WIDTH].reshape(3, WIDTH), weights[3 * WIDTH :]
    return np.stack([state[..., 1], np.tanh(state @ inner[:2] + inner[2]) @ out], axis=-1)


def trajectory(derivative, state, steps):
    """Integrates by the classical Runge-Kutta method; returns the states (steps, …, 2)."""

    def advance(state, _):
        k1 = derivative(state)
        k2 = derivative(state + STEP / 2 * k1)
        k3 = derivative(state + STEP / 2 * k2)
        k4 = derivative(state + STEP * k3)
        state = state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state

    return func.scan(advance, state, length=steps)[1]


# %%
# Eight swings of five time units are the data; ``jit`` compiles the integration and its gradient.

rng = np.random.default_rng(0)
starts = rng.uniform(-1.2, 1.2, size=(8, 2))
observed = trajectory(pendulum, starts, 25)


@func.jit
@func.value_and_grad
def misfit(weights):
    """Returns the mean squared distance from the data, and its gradient."""
    return np.mean((trajectory(lambda state: network(weights, state), starts, 25) - observed) ** 2)


fit = minimize(misfit, 0.2 * rng.normal(size=4 * WIDTH), jac=True, method="L-BFGS-B", options={"maxiter": 200})

start = np.array([1.0, 0.0])
truth = trajectory(pendulum, start, 100)
predicted = trajectory(lambda state: network(fit.x, state), start, 100)
print(f"{fit.nit} steps: misfit {fit.fun:.1e}; largest error of a new swing {np.max(np.abs(predicted - truth)):.3f}")
assert np.max(np.abs(predicted - truth)) < 0.05

figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
times = STEP * np.arange(1, 101)
axes.axvspan(0, 5, color="0.92", label="length of the swings watched")
axes.plot(times, truth[:, 0], "k.", markersize=4, label="pendulum")
axes.plot(times, predicted[:, 0], label="network")
axes.set(xlabel="time", ylabel="angle")
axes.legend(frameon=False)
plt.show()
