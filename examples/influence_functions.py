"""
Find the points that pull a fit: influence functions
====================================================

How does a fit change if you leave one measurement out? Fitting again for each of them is expensive. A derivative is
cheap (Cook and Weisberg, 1982). Leaving point i out moves the parameters by :math:`H^{-1} g_i`, where H is the Hessian
of the loss and g the gradient of that point's share.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

rng = np.random.default_rng(0)
x = rng.uniform(0, 4, size=60)
y = 2.0 * np.exp(-0.8 * x) + 0.3 + 0.1 * rng.normal(size=60)
y[7] += 0.9  # one measurement went wrong


def share(params, x, y):
    """Returns the loss of ONE point, quadratic near the curve and linear far from it."""
    distance = params[0] * np.exp(-params[1] * x) + params[2] - y
    return 0.04 * (np.sqrt(1 + (distance / 0.2) ** 2) - 1)


def loss(params, weights):
    """Returns the weighted sum of all shares."""
    return np.sum(weights * func.vmap(share, in_dims=(None, 0, 0))(params, x, y))


solve = func.jit(func.value_and_grad(loss)), func.jit(func.hessian(loss))


def fit(weights, start):
    """Returns the parameters with the least loss."""
    return minimize(solve[0], start, args=(weights,), jac=True, hess=solve[1], method="trust-exact", tol=1e-10).x


# %%
# The gradient of every point's share is one call of ``vmap``; a linear solve with the Hessian gives all influences.

best = fit(np.ones(60), np.array([1.5, 1.0, 0.0]))
per_point = func.jit(func.vmap(func.grad(share), in_dims=(None, 0, 0)))(best, x, y)
influence = np.linalg.solve(solve[1](best, np.ones(60)), per_point.T).T

refit = np.array([fit(np.where(np.arange(60) == i, 0.0, 1.0), best) - best for i in range(60)])
agreement = np.corrcoef(influence[:, 1], refit[:, 1])[0, 1]
print(f"decay {best[1]:.3f}; most influential: point {np.argmax(np.abs(influence[:, 1]))}; correlation {agreement:.4f}")
assert agreement > 0.99

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained", width_ratios=(5, 4))
grid, limit = np.linspace(0, 4, 100), np.max(np.abs(influence[:, 1]))
left.plot(grid, best[0] * np.exp(-best[1] * grid) + best[2], "k", linewidth=1)
dots = left.scatter(x, y, c=influence[:, 1], cmap="RdBu_r", vmin=-limit, vmax=limit, edgecolor="black", linewidth=0.4)
figure.colorbar(dots, format="%.2f")
left.set(title="influence on the decay", xlabel="x", ylabel="y")
right.plot(refit[:, 1], influence[:, 1], ".")
right.axline((0, 0), slope=1, color="0.7", linewidth=1)
right.set(title="against fitting again", xlabel="change of the decay", xticks=[-0.02, 0, 0.02])
plt.show()
