"""
Differentiate a root, and avoid the trap of its solver
======================================================

Where is a planet at a given time? The answer is the root of Kepler's equation :math:`E - e \\sin E = M`, and Newton's
method computes it. The root depends smoothly on the eccentricity :math:`e`; the *steps* of a solver need not. A solver
that starts at the root makes no step, and its derivative is zero. The implicit function theorem takes the derivative of
the root from the equation instead, from any start.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import func


def kepler(anomaly, mean_anomaly, eccentricity):
    """Is zero at the eccentric anomaly, all angles in radians."""
    return anomaly - eccentricity * np.sin(anomaly) - mean_anomaly


def newton(residual, start):
    """Returns the root of ONE equation, and the number of Newton's steps to it."""
    x, steps = start, 0
    while abs(residual(x)) > 1e-13 and steps < 50:
        x = x - residual(x) / func.grad(residual)(x)
        steps += 1
    return x, steps


# %%
# Three functions have the same values. The first is the plain solver. ``func.custom_root`` gives the second one the
# derivative of the root. The third one, SciPy's solver, has it already.


def unrolled(start, mean_anomaly, eccentricity):
    """Returns the root, and the number of steps."""
    return newton(lambda x: kepler(x, mean_anomaly, eccentricity), start)


implicit = func.custom_root(kepler, newton, has_aux=True)


def by_scipy(mean_anomaly, eccentricity):
    """Returns the root."""
    return brentq(kepler, 0, np.pi, args=(mean_anomaly, eccentricity), xtol=1e-14)


# %%
# Their derivatives by the eccentricity. ``vmap`` lets every planet take as many steps as it needs.

mean_anomaly, eccentricity = np.linspace(0.02, 3.12, 63), 0.7
root, _ = func.vmap(implicit, in_dims=(0, 0, None))(mean_anomaly + eccentricity, mean_anomaly, eccentricity)
truth = np.sin(root) / (1 - eccentricity * np.cos(root))
slopes = {}
for name, solver in (("solver, started at the root", unrolled), ("func.custom_root", implicit)):
    slope = func.vmap(func.grad(solver, argnums=2, has_aux=True), in_dims=(0, 0, None))
    slopes[name], steps = slope(root, mean_anomaly, eccentricity)
    assert not np.any(steps), "the start is the root"
slopes["scipy.optimize.brentq"] = func.vmap(func.grad(by_scipy, argnums=1), in_dims=(0, None))(mean_anomaly, 0.7)
for name, slope in slopes.items():
    print(f"{name}: largest error of the derivative {np.max(np.abs(slope - truth)):.0e}")
np.testing.assert_allclose(slopes["func.custom_root"], truth, rtol=1e-10)
np.testing.assert_allclose(slopes["scipy.optimize.brentq"], truth, rtol=1e-8)
assert not np.any(slopes["solver, started at the root"]), "the trap"

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.plot(mean_anomaly, truth, "k", linewidth=1, label=r"$\sin E / (1 - e \cos E)$")
for (name, slope), style in zip(slopes.items(), ("rx", "C0o", "C1."), strict=True):
    axes.plot(mean_anomaly, slope, style, markersize=6, label=name)
axes.set(xlabel="mean anomaly M", ylabel="dE/de", title="Derivative of the root, for e = 0.7")
axes.legend()
plt.show()
