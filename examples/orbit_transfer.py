"""
Optimise a transfer between two orbits
======================================

A spacecraft on a circular orbit gets a first push, coasts, and gets a second push into a circle of twice the radius.
Which two pushes need the least fuel? A constrained optimiser gets the derivatives through the flight. Hohmann (1925)
knew the answer: half an ellipse, with both pushes along the path.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

STEPS, RADIUS = 200, 2.0


def acceleration(position):
    """Returns the gravity of the planet, in units where the first orbit has radius and speed 1."""
    return -position / np.sum(position**2) ** 1.5


def flight(plan):
    """Returns the path (steps, 2) and the last state, for plan = first push (2,), second push (2,), duration."""
    dt = plan[4] / STEPS

    def step(state, _):
        position, velocity = state
        velocity = velocity + dt / 2 * acceleration(position)
        position = position + dt * velocity
        velocity = velocity + dt / 2 * acceleration(position)
        return (position, velocity), position

    start = (np.array([1.0, 0.0]), np.array([0.0, 1.0]) + plan[:2])
    (position, velocity), path = func.scan(step, start, length=STEPS)
    return path, position, velocity + plan[2:4]


def fuel(plan):
    """Returns the sum of the changes of speed."""
    return np.sqrt(np.sum(plan[:2] ** 2)) + np.sqrt(np.sum(plan[2:4] ** 2))


def miss(plan):
    """Vanishes on the circle of twice the radius, with the speed of a circular orbit along it."""
    _, position, velocity = flight(plan)
    return np.stack([position @ position / RADIUS**2 - 1, position @ velocity, RADIUS * velocity @ velocity - 1])


# %%
# ``jit`` compiles flight and derivatives together.

arrive = {"type": "eq", "fun": func.jit(miss), "jac": func.jit(func.jacrev(miss))}
guess = np.array([0.05, 0.25, 0.05, -0.1, 4.5])
best = minimize(func.jit(fuel), guess, jac=func.jit(func.grad(fuel)), constraints=arrive, method="SLSQP", tol=1e-9)
hohmann = np.sqrt(2 * RADIUS / (1 + RADIUS)) - 1 + np.sqrt(1 / RADIUS) * (1 - np.sqrt(2 / (1 + RADIUS)))
print(f"{best.nit} steps: fuel {best.fun:.5f}, Hohmann {hohmann:.5f}; duration {best.x[4]:.3f}")
assert abs(best.fun / hohmann - 1) < 1e-3

figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
angle = np.linspace(0, 2 * np.pi, 200)
for radius in (1, RADIUS):
    axes.plot(radius * np.cos(angle), radius * np.sin(angle), ":", color="0.5")
axes.plot(0, 0, "o", color="C0", markersize=22)
axes.plot(*flight(guess)[0].T, color="0.7", label="first guess")
path = flight(best.x)[0]
axes.plot(*path.T, color="C3", label="best transfer")
axes.quiver(*path[[0, -1]].T, *best.x[:4].reshape(2, 2).T, scale=1.2, zorder=3, label="pushes")
axes.set(aspect="equal", title="From one circular orbit to another", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
