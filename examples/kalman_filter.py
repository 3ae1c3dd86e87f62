"""
Learn the noise of a Kalman filter
==================================

A noisy position sensor observes a vehicle. The filter (Kalman, 1960) needs the variances of the acceleration and of the
sensor. Maximum likelihood estimates them, with the gradient through all steps of the filter.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

F = np.array([[1.0, 0.1], [0.0, 1.0]])  # position and velocity after 0.1 s
G = np.array([0.005, 0.1])  # what a unit acceleration adds to them
TRUE = np.log([2.0, 0.5])  # standard deviations of acceleration (m/s²) and sensor (m)

rng = np.random.default_rng(1)
states = [np.zeros(2)]
for push in np.exp(TRUE[0]) * rng.normal(size=300):
    states.append(F @ states[-1] + G * push)
truth = np.array(states[1:])
seen = truth[:, 0] + np.exp(TRUE[1]) * rng.normal(size=300)


def kalman(log_deviations):
    """Returns the negative log-likelihood, and the filtered means (300, 2) and variances of the position (300,)."""
    process, sensor = np.exp(2 * log_deviations)

    def step(carry, measurement):
        mean, covariance, total = carry
        mean, covariance = F @ mean, F @ covariance @ F.T + process * np.outer(G, G)
        variance, surprise = covariance[0, 0] + sensor, measurement - mean[0]
        gain = covariance[:, 0] / variance
        mean, covariance = mean + gain * surprise, covariance - np.outer(gain, covariance[0])
        total = total + (surprise**2 / variance + np.log(2 * np.pi * variance)) / 2
        return (mean, covariance, total), (mean, covariance[0, 0])

    (_, _, total), estimates = func.scan(step, (np.zeros(2), 0.01 * np.eye(2), 0.0), seen)
    return total, estimates


# %%
# ``func.scan`` is the loop of the filter: traced once, compiled by ``jit``, and differentiated backwards in time.

value_and_gradient = func.jit(func.value_and_grad(lambda p: kalman(p)[0]))
fit = minimize(value_and_gradient, np.zeros(2), jac=True, method="BFGS")
deviation = np.sqrt(np.diagonal(np.linalg.inv(func.hessian(lambda p: kalman(p)[0])(fit.x))))
print("log deviations", np.round(fit.x, 2), "±", np.round(deviation, 2), "true", np.round(TRUE, 2))
assert np.all(np.abs(fit.x - TRUE) < 3 * deviation)

means, variances = kalman(fit.x)[1]
error, band = means[:, 0] - truth[:, 0], 2 * np.sqrt(variances)
print(f"the truth is within two deviations of the filter {np.mean(np.abs(error) < band):.0%} of the time")
assert np.mean(np.abs(error) < band) > 0.85

some = slice(100, 160)
times = 0.1 * np.arange(300)[some]
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
axes.fill_between(
    times, (means[:, 0] - band)[some], (means[:, 0] + band)[some], alpha=0.3, label="± 2 standard deviations"
)
axes.plot(times, means[some, 0], label="filter")
axes.plot(times, truth[some, 0], "k:", label="truth")
axes.plot(times, seen[some], "C3.", markersize=5, label="sensor")
axes.set(xlabel="time (s)", ylabel="position (m)", title="The filter with the variances it learned")
axes.legend()
plt.show()
