"""
Give every SciPy optimiser exact derivatives
============================================

The minimum is at the end of a long curved valley (Rosenbrock, 1960). Every method of ``scipy.optimize.minimize`` that
accepts derivatives gets them from func: a gradient, and a Hessian if the method can use it.
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
# SciPy calls ``gradient`` and ``hessian`` like hand-written functions. The method of Nelder and Mead, which needs no
# derivative, is there for comparison.

FIRST_ORDER = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")
SECOND_ORDER = ("Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr")
paths, visited = {}, []
for method in ("Nelder-Mead", *FIRST_ORDER, *SECOND_ORDER):
    visited.clear()
    derivatives = {} if method == "Nelder-Mead" else {"jac": gradient}
    if method in SECOND_ORDER:
        derivatives["hess"] = hessian
    result = minimize(rosenbrock, start, method=method, callback=lambda x, *_: visited.append(x.copy()), **derivatives)
    paths[method] = np.array([start, *visited]), result.nit
    print(f"{method:13} {result.nit:3} steps, {result.nfev:3} values, distance {np.linalg.norm(result.x - 1):.0e}")
    assert np.linalg.norm(result.x - 1) < 1e-2

x, y = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-0.7, 1.7, 200))
valley = np.log(1e-2 + 100 * (y - x**2) ** 2 + (1 - x) ** 2)
figure, axes = plt.subplots(4, 3, figsize=(6.4, 7.2), layout="constrained")
for panel, (method, (path, steps)) in zip(axes.flat, paths.items(), strict=True):
    panel.contourf(x, y, valley, levels=14, cmap="Greys", alpha=0.4)
    panel.plot(*path.T, "C3.-", markersize=5, linewidth=1)
    panel.plot(1, 1, "C0*", markersize=9)
    panel.set(title=f"{method}: {steps}", xlim=(-1.6, 1.6), ylim=(-0.7, 1.7), xticks=[], yticks=[])
figure.suptitle("Ways to the minimum, and their numbers of steps")
plt.show()
