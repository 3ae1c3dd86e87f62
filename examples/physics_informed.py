"""
Solve the heat equation with a network
======================================

A *physics-informed* network (Raissi et al., 2019) trains on the equation itself. For :math:`u_t = D u_{xx}` its
residual needs a second derivative by the place, and the training another one by the weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import func

WIDTH, DIFFUSIVITY = 10, 0.1


def temperature(weights, x, t):
    """Returns u at ONE point; it is sin(πx) at t = 0 and vanishes at x = 0 and x = 1 whatever the weights."""
    in_x, in_t, bias, out = weights.reshape(4, WIDTH)
    return np.sin(np.pi * x) + t * x * (1 - x) * (out @ np.tanh(in_x * x + in_t * t + bias))


def residual(weights, x, t):
    """Returns ∂u/∂t - D ∂²u/∂x² at ONE point."""
    u_t = func.grad(temperature, argnums=2)
    u_xx = func.grad(func.grad(temperature, argnums=1), argnums=1)
    return u_t(weights, x, t) - DIFFUSIVITY * u_xx(weights, x, t)


# %%
# ``vmap`` computes the residual at 200 points, ``jacrev`` gives Gauss-Newton its Jacobian (200, 40), and ``jit``
# compiles.

rng = np.random.default_rng(0)
x, t = rng.uniform(size=(2, 200))
residuals = func.vmap(residual, in_dims=(None, 0, 0))
start = rng.normal(size=4 * WIDTH)
result = least_squares(func.jit(residuals), start, jac=func.jit(func.jacrev(residuals)), args=(x, t), max_nfev=60)
print(f"{result.njev} Jacobians: largest residual {np.max(np.abs(result.fun)):.1e}")

# %%
# The exact solution decays: :math:`u = e^{-D \pi^2 t} \sin \pi x`.

grid_t, grid_x = np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 1, 60))
solved = func.vmap(temperature, in_dims=(None, 0, 0))(result.x, grid_x.ravel(), grid_t.ravel()).reshape(60, 60)
error = solved - np.exp(-DIFFUSIVITY * np.pi**2 * grid_t) * np.sin(np.pi * grid_x)
print(f"largest error on a grid of new points {np.max(np.abs(error)):.1e}")
assert np.max(np.abs(error)) < 1e-3

figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.2), layout="constrained", sharey=True)
limit = np.max(np.abs(error))
figure.colorbar(axes[0].pcolormesh(grid_t, grid_x, solved, cmap="inferno"), ax=axes[0])
figure.colorbar(axes[1].pcolormesh(grid_t, grid_x, error, cmap="RdBu", vmin=-limit, vmax=limit), ax=axes[1])
axes[0].plot(t, x, "w.", markersize=1.5)
axes[0].set(title="temperature, training points", xlabel="t", ylabel="x", xlim=(0, 1))
axes[1].set(title="error", xlabel="t")
plt.show()
