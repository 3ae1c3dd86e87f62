"""
Simulate a double pendulum from its Lagrangian
==============================================

Write down kinetic minus potential energy, :math:`L(q, \\dot q)`; the equations of motion follow from it by
differentiation:

.. math::
    \\frac{\\partial^2 L}{\\partial \\dot q^2} \\, \\ddot q
    = \\frac{\\partial L}{\\partial q} - \\frac{\\partial^2 L}{\\partial q \\, \\partial \\dot q} \\, \\dot q.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import func

GRAVITY = 9.81


def energies(q, v):
    """Returns kinetic and potential energy of two unit masses on unit rods, for angles q (2,) and their speeds v."""
    steps = np.stack([np.cos(q) * v, np.sin(q) * v], axis=1)
    velocities = np.cumsum(steps, axis=0)
    return np.sum(velocities**2) / 2, -GRAVITY * np.sum(np.cumsum(np.cos(q)))


def lagrangian(q, v):
    """Returns kinetic minus potential energy."""
    kinetic, potential = energies(q, v)
    return kinetic - potential


# %%
# The code is the formula above. ``jit`` compiles all derivatives into one function, which ``solve_ivp`` calls some
# thousand times.


@func.jit
def motion(t, state):
    """Returns d(q, v)/dt."""
    q, v = state[:2], state[2:]
    _, mixed = func.jvp(lambda q: func.grad(lagrangian, argnums=1)(q, v), (q,), (v,))
    force = func.grad(lagrangian)(q, v) - mixed
    return np.concatenate([v, np.linalg.solve(func.hessian(lagrangian, argnums=1)(q, v), force)])


start = np.array([2.0, 2.5, 0.0, 0.0])
times = np.linspace(0, 12, 6000)
solution = solve_ivp(motion, (0, 12), start, method="DOP853", t_eval=times, rtol=1e-10, atol=1e-10).y
total = np.array([sum(energies(state[:2], state[2:])) for state in solution.T])
print(f"energy {total[0]:.4f}, drift {np.max(np.abs(total - total[0])):.0e}")
assert np.max(np.abs(total - total[0])) < 1e-6, "the motion conserves the energy"

x, y = np.cumsum(np.sin(solution[:2]), axis=0), -np.cumsum(np.cos(solution[:2]), axis=0)
figure, axes = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
path = axes.scatter(x[1], y[1], c=times, s=3, cmap="plasma")
for moment, color in ((0, "0.7"), (-1, "k")):
    axes.plot([0, *x[:, moment]], [0, *y[:, moment]], "o-", color=color, markersize=9)
figure.colorbar(path, label="time (s)")
axes.set(aspect="equal", title="Path of the outer mass", xlabel="x (m)", ylabel="y (m)")
plt.show()
