"""
Learn an equation of motion: a neural ODE
=========================================

A network learns the equation of motion of a damped pendulum from its swings. The gradient goes through a Runge-Kutta
integration of the network (Chen et al., 2018). Then the network predicts a swing four times as long.
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

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained", width_ratios=(4, 5))
angle, velocity = np.meshgrid(np.linspace(-1.5, 1.5, 30), np.linspace(-1.5, 1.5, 30))
field = network(fit.x, np.stack([angle, velocity], axis=-1))
left.streamplot(angle, velocity, field[..., 0], field[..., 1], color="0.75", density=0.7, linewidth=0.7)
left.plot(observed[..., 0], observed[..., 1], "k.", markersize=2)
left.set(xlabel="angle", ylabel="velocity", title="swings and learned flow")
times = STEP * np.arange(1, 101)
right.axvspan(0, 5, color="0.92")
right.text(2.5, 1.05, "watched", ha="center")
right.plot(times, truth[:, 0], "k.", markersize=4, label="pendulum")
right.plot(times, predicted[:, 0], label="network")
right.set(xlabel="time", title="angle of a new swing", xlim=(0, 20), ylim=(-1.1, 1.3))
right.legend()
plt.show()
