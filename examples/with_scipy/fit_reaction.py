"""
Fit a stiff differential equation
=================================

Three substances react: A turns into B, two B make C and give one B back, B and C make A again.
The concentrations :math:`y` follow Robertson's equations (1966),

.. math::
    y_1' = -k_1 y_1 + k_3 y_2 y_3, \\qquad y_2' = k_1 y_1 - k_3 y_2 y_3 - k_2 y_2^2, \\qquad y_3' = k_2 y_2^2,

with rates that differ by nine orders of magnitude. The equation is *stiff*: only implicit methods can solve it. SciPy's
``solve_ivp`` and ``least_squares`` estimate the three rates from noisy measurements. func provides the Jacobian of the
fit, in one place; the rest is the program that you would write without func.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import func

TRUE = np.log([0.04, 3e7, 1e4])
TIMES = np.geomspace(1e-3, 1e4, 22)
SCALE = np.array([[1.0], [2e4], [1.0]])  # B is rare: 20,000 times its concentration is drawn and fitted
NOISE = 0.01


def concentrations(log_rates, times=TIMES, rtol=1e-6):
    """Returns A, B and C, scaled, (3, len(times)), for the logarithms of the three rates."""
    k1, k2, k3 = np.exp(log_rates)

    def reaction(t, y):
        decay, pairing, back = k1 * y[0], k2 * y[1] ** 2, k3 * y[1] * y[2]
        return np.array([back - decay, decay - back - pairing, pairing])

    tolerances = {"rtol": rtol, "atol": 1e-3 * rtol}
    solution = solve_ivp(reaction, (0, times[-1]), [1.0, 0.0, 0.0], method="LSODA", t_eval=times, **tolerances)
    return SCALE * solution.y


rng = np.random.default_rng(0)
data = concentrations(TRUE) + NOISE * rng.normal(size=(3, len(TIMES)))


def residuals(log_rates):
    """Returns the distances from the data in standard deviations of the noise, (66,)."""
    return np.ravel(concentrations(log_rates) - data) / NOISE


# %%
# The fit
# -------
# ``func.jacobian(residuals)`` is a function for ``least_squares``. LSODA chooses steps and orders from the errors; this
# choice counts as constant. The derivative :math:`s = \partial y / \partial \log k` solves the variational equation
# :math:`s' = (\partial f / \partial y)\, s + \partial f / \partial \log k`.

start = TRUE + np.log([3.0, 0.2, 4.0])
fit = least_squares(residuals, start, jac=func.jit(func.jacobian(residuals)))

# At the minimum JᵀJ is the inverse covariance of the estimate: the residuals have unit variance.
deviation = np.sqrt(np.diagonal(np.linalg.inv(fit.jac.T @ fit.jac)))
print(f"{fit.nfev} runs of the model, {fit.njev} Jacobians; chi squared {2 * fit.cost:.1f} of {data.size - 3} expected")
for name, found, error, true in zip(("k1", "k2", "k3"), fit.x, deviation, TRUE, strict=True):
    print(f"{name} = {np.exp(found):.3g} ± {100 * error:.1f} %   (true {np.exp(true):.3g})")

assert fit.success
assert np.all(np.abs(fit.x - TRUE) < 3 * deviation)

fine = np.geomspace(*TIMES[[0, -1]], 200)
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for row, label in enumerate(("A", "20,000 B", "C")):
    axes.semilogx(TIMES, data[row], "o", color=f"C{row}", markersize=4)
    axes.semilogx(fine, concentrations(start, fine)[row], ":", color=f"C{row}")
    axes.semilogx(fine, concentrations(fit.x, fine)[row], color=f"C{row}", label=label)
axes.set(xlabel="time", ylabel="concentration", title="Measured (dots), first guess (dotted), fitted (lines)")
axes.legend()

# %%
# Why not finite differences?
# ---------------------------
# A solver with adaptive steps is not a smooth function of its parameters. A small change of a rate changes the steps
# and their number. Differences divide the jumps of the error by h. The solver that func runs for :math:`s` controls the
# error of :math:`s`. The picture compares both with the derivative at a tolerance of 1e-10.

direction = np.array([1.0, -1.0, 0.5])
_, reference = func.jvp(lambda k: concentrations(k, rtol=1e-10), (TRUE,), (direction,))
_, derivative = func.jvp(concentrations, (TRUE,), (direction,))
exact_error = np.max(np.abs(derivative - reference))

steps = np.geomspace(1e-9, 1e-1, 17)
values = concentrations(TRUE)
differences = [(concentrations(TRUE + h * direction) - values) / h for h in steps]
difference_errors = np.max(np.abs(np.array(differences) - reference), axis=(1, 2))
print(f"error of func's derivative {exact_error:.0e}, of differences with the best step {difference_errors.min():.0e}")

assert exact_error < difference_errors.min() / 100

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.loglog(steps, difference_errors, "o-", color="C3", markersize=4, label="forward differences")
axes.axhline(exact_error, color="C0", label="func")
axes.set(xlabel="step h", ylabel="largest error", title="Error of the derivative in the rates, rtol = 1e-6")
axes.legend()
plt.show()
