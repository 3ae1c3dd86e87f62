"""
Optimise a trajectory: a cart swings up its pole
================================================

A pole hangs from a cart. Which force on the cart makes the pole stand upright after two seconds, a metre further on,
with the least effort? Direct collocation turns this into many variables and constraints. The states at all times and
the forces are unknown, and the trapezoidal rule must hold between neighbouring times. Each constraint only depends on
two neighbouring times, so Jacobian and Hessian are bands. ``func.sparse_jacobian`` and ``func.sparse_hessian`` detect
these bands in the NumPy code, and ``trust-constr`` accepts both.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import BFGS, NonlinearConstraint, minimize

import func

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kg, kg, m, m/s²
DURATION = 2.0  # s
START, END = np.zeros(4), np.array([1.0, np.pi, 0.0, 0.0])  # position, angle (0 hangs), and their rates


def rates(states, force):
    """Returns the time derivatives of the states (4, times)."""
    _, angle, speed, spin = states
    sine, cosine = np.sin(angle), np.cos(angle)
    mass = CART + POLE * sine**2
    push = force + LENGTH * POLE * sine * spin**2
    acceleration = (push + POLE * GRAVITY * cosine * sine) / mass
    turn = -(push * cosine + (CART + POLE) * GRAVITY * sine) / (LENGTH * mass)
    return np.stack([speed, spin, acceleration, turn])


def parts(unknowns):
    """Returns the states (4, times) and the forces (times)."""
    table = unknowns.reshape(5, -1)
    return table[:4], table[4]


def defects(unknowns):
    """Returns by how much the trapezoidal rule, the start and the end are missed."""
    states, force = parts(unknowns)
    slopes = rates(states, force)
    step = DURATION / (force.size - 1)
    rule = states[:, 1:] - states[:, :-1] - step / 2 * (slopes[:, 1:] + slopes[:, :-1])
    return np.concatenate([rule.ravel(), states[:, 0] - START, states[:, -1] - END])


def effort(unknowns):
    """Returns the integral of the squared force."""
    _, force = parts(unknowns)
    return DURATION / (force.size - 1) * np.sum(force[1:] ** 2 + force[:-1] ** 2) / 2


def straight(intervals):
    """Returns the guess: everything moves evenly, without a force."""
    share = np.linspace(0, 1, intervals + 1)
    steady = np.ones(intervals + 1)
    return np.concatenate([share, np.pi * share, steady / DURATION, np.pi * steady / DURATION, 0 * steady])


# %%
# The Hessian of the Lagrangian includes that of the multipliers times the constraints. The multipliers are an ordinary
# argument, so one pattern and one compiled function serve all iterations.

weighted = func.sparse_hessian(lambda unknowns, multipliers: multipliers @ defects(unknowns))
jacobian = func.sparse_jacobian(defects)
guess = straight(40)
print(func.spy(jacobian(guess), width=52))

calls = 0


def counted(unknowns):
    """Returns the defects, and counts."""
    global calls
    calls += 1
    return defects(unknowns)


begin = time.perf_counter()
found = minimize(
    effort,
    guess,
    jac=func.grad(effort),
    hess=func.sparse_hessian(effort),
    constraints=NonlinearConstraint(counted, 0, 0, jac=jacobian, hess=weighted),
    method="trust-constr",
    options={"gtol": 1e-5, "initial_tr_radius": 3.0, "maxiter": 200},
)
seconds, sparse_calls = time.perf_counter() - begin, calls
print(
    f"{found.nit} iterations, {sparse_calls} calls of the constraints, {seconds:.1f} s: effort {found.fun:.2f} N² s, "
    f"defects below {found.constr_violation:.0e}"
)
assert found.constr_violation < 1e-8
assert found.optimality < 1e-5

# %%
# For comparison, SciPy without derivatives: it uses differences of dense columns, and estimates Hessians by BFGS. It
# runs the same number of iterations on half as many intervals.

calls = 0
begin = time.perf_counter()
without = minimize(
    effort,
    straight(20),
    jac="2-point",
    hess=BFGS(),
    constraints=NonlinearConstraint(counted, 0, 0, jac="2-point", hess=BFGS()),
    method="trust-constr",
    options={"gtol": 1e-5, "initial_tr_radius": 3.0, "maxiter": found.nit},
)
print(
    f"without derivatives, after {without.nit} iterations: {calls} calls, {time.perf_counter() - begin:.1f} s, "
    f"optimality {without.optimality:.0e} instead of {found.optimality:.0e}"
)
assert calls > 20 * sparse_calls

# %%
# The cart runs beyond its place and brakes, and so the pole comes up.

states, force = parts(found.x)
times = np.linspace(0, DURATION, force.size)
figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 6.4), layout="constrained")
tips = states[0] + LENGTH * np.sin(states[1]), -LENGTH * np.cos(states[1])
for k in range(force.size):
    color = plt.get_cmap("viridis")(k / force.size)
    top.plot([states[0, k], tips[0][k]], [0, tips[1][k]], color=color, alpha=0.7)
    top.plot(states[0, k], 0, "s", color=color)
top.set(title="the cart and its pole, dark to light", xlabel="position (m)", aspect="equal")
bottom.plot(times, force, label="force (N)")
bottom.plot(times, states[1], label="angle (rad)")
bottom.plot(times, states[0], label="position (m)")
bottom.set(xlabel="time (s)")
bottom.legend()
plt.show()
