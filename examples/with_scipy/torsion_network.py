"""
Solve a Poisson equation with a network
=======================================

A prismatic bar is twisted. Its stress function u obeys -∇²u = 2 in the cross-section and vanishes on the boundary. A
physics-informed network represents u, and its weights make the residual ∇²u + 2 small at a set of points. There is no
mesh and no matrix. Each step of the fit needs a Laplacian per point, and its gradient by all weights.
``func.laplacian`` propagates value, gradient and Laplacian through the network in one pass. ``func.grad``
differentiates that pass, and ``func.jit`` compiles both.

The cross-section is a square, for which a series gives the exact solution.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import func

SIZES = (2, 12, 12, 1)
POINTS = 300


def unpack(weights):
    """Returns the matrices and offsets of the layers, from one vector."""
    layers, start = [], 0
    for rows, columns in pairwise(SIZES):
        stop = start + rows * columns
        layers.append((weights[start:stop].reshape(rows, columns), weights[stop : stop + columns]))
        start = stop + columns
    return layers


def stress(weights, point):
    """Returns u at one point (x, y) of [-1, 1]²; it vanishes on the boundary whatever the weights."""
    *hidden, (last, offset) = unpack(weights)
    values = point
    for matrix, shift in hidden:
        values = np.tanh(values @ matrix + shift)
    return np.prod(1 - point**2) * (values @ last + offset)[0]


# %%
# The residual
# ------------
# The Laplacian is by the point, the second argument. The residuals of all points are one ``vmap``. Each depends on all
# weights, so the Jacobian needs one gradient per point.


def residual(weights, point):
    """Returns what is left of the equation at one point."""
    return func.laplacian(stress, argnums=1)(weights, point) + 2


residuals = func.jit(func.vmap(residual, in_dims=(None, 0)))
jacobian = func.jit(func.vmap(func.grad(residual), in_dims=(None, 0)))

# %%
# The fit
# -------
# With Jacobians the fit is a nonlinear least-squares problem. Gauss-Newton needs some dozens of steps where gradient
# descent needs many thousands.

rng = np.random.default_rng(0)
points = rng.uniform(-1, 1, size=(POINTS, 2))
start = np.concatenate(
    [
        part
        for rows, columns in pairwise(SIZES)
        for part in (rng.normal(size=rows * columns) / np.sqrt(rows), rng.normal(size=columns))
    ]
)
history = []


def jacobian_and_note(weights, points):
    """Returns the Jacobian, and notes the mean square of the residuals."""
    history.append(np.mean(residuals(weights, points) ** 2))
    return jacobian(weights, points)


fit = least_squares(residuals, start, jac=jacobian_and_note, args=(points,), method="lm", max_nfev=150)
print(f"{start.size} weights, {len(history)} Jacobians, root mean square residual {np.sqrt(np.mean(fit.fun**2)):.1e}")

# %%
# Against the series
# ------------------
# The exact solution is a Fourier series in one direction. The torsion constant of the bar, twice the integral of u, is
# known: 0.1406 times the fourth power of the side. In the corners the residual cannot vanish, because both second
# derivatives of u do, along the edges. The error is largest there.


def exact(x, y, terms=60):
    """Returns the stress function at arrays of points, by its series."""
    total = 1 - x**2
    for n in range(terms):
        k = (2 * n + 1) * np.pi / 2
        ratio = np.exp(k * (np.abs(y) - 1)) * (1 + np.exp(-2 * k * np.abs(y))) / (1 + np.exp(-2 * k))
        total = total - 4 * (-1) ** n / k**3 * np.cos(k * x) * ratio
    return total


grid = np.linspace(-1, 1, 81)
x, y = np.meshgrid(grid, grid, indexing="ij")
field = func.jit(func.vmap(stress, in_dims=(None, 0)))
u = field(fit.x, np.stack([x.ravel(), y.ravel()], axis=1)).reshape(x.shape)
error = np.abs(u - exact(x, y))

nodes, weights = np.polynomial.legendre.leggauss(24)
inside = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
constant = 2 * np.outer(weights, weights).ravel() @ field(fit.x, inside) / 2**4
print(f"largest error {error.max():.1e} of {u.max():.4f}; torsion constant {constant:.6f} a⁴ (0.140577 a⁴)")
assert error.max() < 3e-3
assert abs(constant - 0.140577) < 1e-4

figure, axes = plt.subplot_mosaic("LM;RR", figsize=(7, 5.6), layout="constrained", height_ratios=(3, 2))
left, middle, right = (axes[name] for name in "LMR")
contours = left.contourf(x, y, u, 15)
left.plot(*points.T, ".", color="white", markersize=1.5)
left.set(title="stress and points", aspect="equal")
figure.colorbar(contours, ax=left, shrink=0.8)
image = middle.pcolormesh(x, y, np.log10(error + 1e-12), vmin=-7)
middle.set(title="log₁₀ of the error", aspect="equal")
figure.colorbar(image, ax=middle, shrink=0.8)
right.semilogy(history)
right.set(title="mean square of the residuals", xlabel="step")
plt.show()
