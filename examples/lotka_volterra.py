"""
Fit an ODE of predators and prey
================================

Lotka (1925) and Volterra (1926) described how two populations chase each other. The fit estimates four rates from noisy
counts. The gradient goes through SciPy's unmodified ``solve_ivp``, with its adaptive steps.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import func

TRUE, NOISE = np.array([1.1, 0.4, 0.4, 0.1]), 0.3
TIMES, START = np.linspace(0, 14, 40), np.array([6.0, 4.0])


def populations(rates, times=TIMES):
    """Returns prey and predators (2, len(times)) for the rates of growth, predation, death and feeding."""

    def change(t, y):
        prey, predators = y
        meetings = prey * predators
        return np.array([rates[0] * prey - rates[1] * meetings, rates[3] * meetings - rates[2] * predators])

    return solve_ivp(change, (0, times[-1]), START, t_eval=times, rtol=1e-6, atol=1e-8).y


rng = np.random.default_rng(1)
data = populations(TRUE) + NOISE * rng.normal(size=(2, len(TIMES)))


def residuals(rates):
    """Returns the distances from the data in standard deviations, (80,)."""
    return np.ravel(populations(rates) - data) / NOISE


# %%
# ``least_squares`` needs a Jacobian; at the minimum it also gives the uncertainty of the rates.

guess = TRUE * np.array([1.15, 0.9, 1.1, 0.9])
fit = least_squares(residuals, guess, jac=func.jit(func.jacobian(residuals)))
deviation = np.sqrt(np.diagonal(np.linalg.inv(fit.jac.T @ fit.jac)))
print("rates", np.round(fit.x, 3), "±", np.round(deviation, 3), "true", TRUE)
assert np.all(np.abs(fit.x - TRUE) < 3 * deviation)

fine = np.linspace(0, 14, 300)
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for row, label in enumerate(("prey", "predators")):
    axes.plot(TIMES, data[row], ".", color=f"C{row}")
    axes.plot(fine, populations(guess, fine)[row], ":", color=f"C{row}")
    axes.plot(fine, populations(fit.x, fine)[row], color=f"C{row}", label=label)
axes.set(xlabel="time", title="Counted (dots), first guess (dotted), fitted (lines)")
axes.legend()
plt.show()
