"""
Fit a logistic regression by Newton's method
============================================

The data are points of two classes in the plane. The model (Cox, 1958) gives the probability that a point is in the
second class. Newton's method finds the weights that make the data most likely, without a hand-written gradient or
Hessian.
"""

import matplotlib.pyplot as plt
import numpy as np

import func

rng = np.random.default_rng(0)
labels = np.repeat([0.0, 1.0], 100)
points = rng.normal(size=(200, 2)) + np.where(labels[:, None] == 1, [1.0, 1.2], [-0.8, -0.6])


def loss(weights):
    """Returns the mean negative log-likelihood, with a small penalty that keeps the weights finite."""
    score = points @ weights[:2] + weights[2]
    return np.mean(np.logaddexp(0, score) - labels * score) + 1e-3 * weights @ weights


# %%
# The loss is convex: a handful of Newton steps reach the minimum to the last digit.

gradient, hessian = func.jit(func.grad(loss)), func.jit(func.hessian(loss))
weights = np.zeros(3)
for step in range(8):
    weights = weights - np.linalg.solve(hessian(weights), gradient(weights))
    print(f"step {step + 1}: loss {loss(weights):.8f}, norm of the gradient {np.linalg.norm(gradient(weights)):.1e}")

# %%
# The gradient is also known in closed form: :math:`X^T(p - y)/n` plus that of the penalty.

X = np.column_stack([points, np.ones(200)])
probability = 1 / (1 + np.exp(-X @ weights))
np.testing.assert_allclose(gradient(weights), X.T @ (probability - labels) / 200 + 2e-3 * weights, atol=1e-12)
assert np.linalg.norm(gradient(weights)) < 1e-12

grid_x, grid_y = np.meshgrid(np.linspace(-4, 4.5, 100), np.linspace(-4, 4.5, 100))
figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
surface = 1 / (1 + np.exp(-(weights[0] * grid_x + weights[1] * grid_y + weights[2])))
filled = axes.contourf(grid_x, grid_y, surface, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5)
for label, style in ((0, "C0o"), (1, "C3^")):
    axes.plot(*points[labels == label].T, style, markersize=5, markeredgecolor="white", markeredgewidth=0.5)
figure.colorbar(filled, label="probability of a triangle")
axes.set(title="Two classes, and what the model says", xlabel="$x_1$", ylabel="$x_2$")
plt.show()
