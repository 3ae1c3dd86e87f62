"""
Rosenbrock's valley with every optimiser of SciPy
=================================================

The minimum lies at the end of a long curved valley (Rosenbrock, 1960). Every method of ``scipy.optimize.minimize`` that
takes derivatives gets them from func: a gradient, and a Hessian where the method can use it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize, rosen_der, rosen_hess

import func


def rosenbrock(x):
    """Has its minimum 0 where every x is 1."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


gradient, hessian = func.jit(func.grad(rosenbrock)), func.jit(func.hessian(rosenbrock))
start = np.array([-1.2, 1.0])
np.testing.assert_allclose(gradient(start), rosen_der(start))
np.testing.assert_allclose(hessian(start), rosen_hess(start))

# %%
# SciPy calls ``gradient`` and ``hessian`` as it would call functions that were written by hand.

FIRST_ORDER = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")
SECOND_ORDER = ("Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr")
paths, visited = {}, []


def callback(x, *state):
    """Takes down where the optimiser is."""
    visited.append(x.copy())


for method in FIRST_ORDER + SECOND_ORDER:
    visited.clear()
    curvature = {"hess": hessian} if method in SECOND_ORDER else {}
    result = minimize(rosenbrock, start, method=method, jac=gradient, **curvature, callback=callback)
    paths[method] = np.array([start, *visited])
    print(f"{method:13} {result.nit:3} steps, {result.nfev:3} values, distance {np.linalg.norm(result.x - 1):.0e}")
    assert np.linalg.norm(result.x - 1) < 1e-2

x, y = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-0.7, 1.7, 200))
figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
axes.contour(x, y, np.log(1e-2 + 100 * (y - x**2) ** 2 + (1 - x) ** 2), levels=12, colors="grey", linewidths=0.5)
for method, path in paths.items():
    axes.plot(*path.T, ".-", markersize=4, linewidth=0.9, label=f"{method}: {len(path) - 1}")
axes.plot(1, 1, "k*", markersize=11)
axes.set(title="Ways to the minimum, and their numbers of steps", xlabel="$x_1$", ylabel="$x_2$")
axes.set(xlim=(-1.6, 1.6), ylim=(-0.7, 1.7))
axes.legend(frameon=False, fontsize=7, ncols=2)
plt.show()
