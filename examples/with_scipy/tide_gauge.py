"""
Fit a Gaussian process written with scipy.stats
===============================================

A tide gauge measures the sea level at irregular times, with gaps. A Gaussian process estimates the level in between,
with its uncertainty. The model reads as on paper: ``cdist`` for the distances, ``stats.norm.logpdf`` for the priors,
``stats.multivariate_normal.logpdf`` for the likelihood. func computes the gradient of the log posterior for the fit,
and its Hessian for the uncertainty of the parameters.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

import func

NAMES = ("tidal amplitude [m]", "period [h]", "weather amplitude [m]", "weather time scale [h]", "noise [m]")
PERIOD = 12.42

rng = np.random.default_rng(6)
hours = np.sort(np.concatenate([rng.uniform(0, 45, 14), rng.uniform(80, 110, 8)]))[:, None]


def level(t):
    """The true level: the tide of the moon, and what the weather adds."""
    return np.cos(2 * np.pi * t / PERIOD) + 0.25 * np.sin(t / 13) + 0.15 * np.cos(t / 9)


measured = level(hours[:, 0]) + 0.05 * rng.normal(size=len(hours))


def covariance(s, t, theta):
    """Returns the covariances (m, n) of the levels at times s and t: a tide, and weather (Matérn 5/2).

    Source: C. Rasmussen and C. Williams (2006), Gaussian Processes for Machine Learning, equation 4.17.
    """
    tide, period, weather, scale, _ = np.exp(theta)
    r = np.sqrt(5) * cdist(s, t) / scale
    return tide**2 * np.cos(2 * np.pi * cdist(s, t) / period) + weather**2 * (1 + r + r**2 / 3) * np.exp(-r)


def log_posterior(theta):
    """Returns the log density of the parameters, which are logarithms, and the data together."""
    prior = stats.norm.logpdf(theta, loc=np.log([1.0, 12.0, 0.3, 10.0, 0.1]), scale=[1.0, 0.1, 1.0, 1.0, 1.0])
    cov = covariance(hours, hours, theta) + np.exp(2 * theta[4]) * np.eye(len(hours))
    return np.sum(prior) + stats.multivariate_normal.logpdf(measured, mean=np.zeros(len(hours)), cov=cov)


# %%
# The fit and its uncertainty
# ---------------------------
# At the mode the negative Hessian of the log posterior is the inverse covariance of the parameters (Laplace's
# approximation). ``func.hessian`` is exact; second differences of a function that factors an ill-conditioned matrix
# are not.

start = np.log([0.5, 12.2, 0.2, 8.0, 0.2])
objective = func.jit(func.value_and_grad(lambda theta: -log_posterior(theta)))
mode = minimize(objective, start, jac=True, method="BFGS").x

gradient = func.grad(log_posterior)(start)
h = 1e-5 * np.eye(5)
differences = [(log_posterior(start + e) - log_posterior(start - e)) / 2e-5 for e in h]
assert np.allclose(gradient, differences, rtol=1e-5)

spread = np.linalg.inv(-func.hessian(log_posterior)(mode))
deviation = np.sqrt(np.diagonal(spread))
for name, value, relative in zip(NAMES, np.exp(mode), deviation, strict=True):
    print(f"{name:23} {value:7.3f} ± {100 * relative:.1f} %")

assert abs(mode[1] - np.log(PERIOD)) < 3 * deviation[1]
assert abs(mode[4] - np.log(0.05)) < 3 * deviation[4]

# %%
# The estimated level
# -------------------
# The prediction also depends on the parameters. Its Jacobian carries their uncertainty into the band (the delta
# method). A band without it is too narrow.

times = np.linspace(0, 110, 221)[:, None]


def predict(theta):
    """Returns the posterior mean and variance of the level at `times`."""
    noise = np.exp(2 * theta[4]) * np.eye(len(hours))
    factor = cho_factor(covariance(hours, hours, theta) + noise, lower=True)
    cross = covariance(times, hours, theta)
    prior = np.exp(2 * theta[0]) + np.exp(2 * theta[2])
    return cross @ cho_solve(factor, measured), prior - np.sum(cross * cho_solve(factor, cross.T).T, axis=1)


mean, variance = predict(mode)
slopes = func.jacobian(lambda theta: predict(theta)[0])(mode)
total = variance + np.sum((slopes @ spread) * slopes, axis=1)
error = np.abs(mean - level(times[:, 0]))
inside = np.mean(error < 2 * np.sqrt(total))
print(f"{100 * inside:.0f} % of the true levels lie within two deviations; the largest error is {error.max():.2f} m")
wider = np.sqrt(np.max(total / variance))
print(f"uncertain parameters make the band up to {wider:.2f} times as wide")

assert inside > 0.9 and wider > 1.3

figure, axes = plt.subplots(figsize=(6.6, 4), layout="constrained")
wide, narrow = 2 * np.sqrt(total), 2 * np.sqrt(variance)
axes.fill_between(times[:, 0], mean - wide, mean + wide, color="C1", alpha=0.5, label="with uncertain parameters")
axes.fill_between(times[:, 0], mean - narrow, mean + narrow, color="C0", alpha=0.4, label="two deviations")
axes.plot(times, level(times), "k:", label="true level")
axes.plot(times, mean, "C0", label="posterior mean")
axes.plot(hours, measured, "k.", markersize=5)
axes.set(xlabel="time (h)", ylabel="level (m)", title="Sea level from 22 measurements, with a gap")
axes.set_ylim(-1.6, 2.4)
axes.legend(ncols=2, loc="upper center")
plt.show()
