"""
Fit a Gaussian process with its posterior band
==============================================

The fit chooses the hyper-parameters that make the data most likely (Rasmussen and Williams, 2006, algorithm 2.1). The
derivative of the likelihood goes through a Cholesky factorization and a triangular solve.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

TRUE_NOISE = 0.2
rng = np.random.default_rng(0)
x = np.sort(np.concatenate([rng.uniform(-4, 0, 25), rng.uniform(1.5, 4, 15)]))
y = np.sin(2 * x) + x / 3 + TRUE_NOISE * rng.normal(size=x.shape)


def kernel(a, b, amplitude, length):
    """Returns the squared-exponential covariances (len(a), len(b))."""
    return amplitude**2 * np.exp(-(((a[:, None] - b) / length) ** 2) / 2)


def negative_log_likelihood(log_params):
    """Returns -log p(y | x) for the logarithms of amplitude, length scale and noise."""
    amplitude, length, noise = np.exp(log_params)
    factor = np.linalg.cholesky(kernel(x, x, amplitude, length) + noise**2 * np.eye(len(x)))
    whitened = np.linalg.solve(factor, y)
    return whitened @ whitened / 2 + np.sum(np.log(np.diagonal(factor))) + len(x) * np.log(2 * np.pi) / 2


# %%
# One compiled function returns the value and the gradient, the pair that L-BFGS needs.

result = minimize(func.jit(func.value_and_grad(negative_log_likelihood)), np.zeros(3), jac=True, method="L-BFGS-B")
amplitude, length, noise = np.exp(result.x)
print(f"{result.nit} steps: amplitude {amplitude:.2f}, length scale {length:.2f}, noise {noise:.2f} ({TRUE_NOISE})")
assert np.linalg.norm(func.grad(negative_log_likelihood)(result.x)) < 1e-2
assert abs(noise / TRUE_NOISE - 1) < 0.35

# %%
# Without data the band opens to the prior.

where = np.linspace(-5, 5, 300)
cross = kernel(where, x, amplitude, length)
solved = np.linalg.solve(kernel(x, x, amplitude, length) + noise**2 * np.eye(len(x)), np.column_stack([y, cross.T]))
mean, deviation = cross @ solved[:, 0], np.sqrt(amplitude**2 - np.sum(cross * solved[:, 1:].T, axis=1))

figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
axes.fill_between(where, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, label="± 2 standard deviations")
axes.plot(where, mean, label="posterior mean")
axes.plot(where, np.sin(2 * where) + where / 3, "k:", label="truth")
axes.plot(x, y, "k.", label="data")
axes.set(xlabel="x", title="Gaussian process with fitted hyper-parameters")
axes.legend()
plt.show()
