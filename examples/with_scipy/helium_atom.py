"""
Compute the helium atom by variational Monte Carlo
==================================================

Two electrons around a nucleus of charge 2. For any trial wave function :math:`\\psi` the mean of the *local energy*

.. math::
    E_L(r) = \\frac{H \\psi}{\\psi} = -\\frac12 \\frac{\\nabla^2 \\psi}{\\psi}
    - \\frac{2}{|r_1|} - \\frac{2}{|r_2|} + \\frac{1}{|r_1 - r_2|}

over samples of :math:`|\\psi|^2` is at least the energy of the ground state, :math:`-2.903724` hartree. The best
parameters of :math:`\\psi` minimise it. The kinetic energy is a Laplacian in six dimensions. ``func.laplacian``
computes it in one forward pass, for a wave function of a few lines of NumPy.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve

import func

EXACT = -2.903724
WALKERS, STEPS = 1000, 40

rng = np.random.default_rng(0)


def log_psi(p, r):
    """Returns log ψ at the positions (2, 3).

    The first terms have the cusps that cancel the poles of the potential where particles meet.
    """
    s = np.sqrt(np.sum(r**2, axis=1))
    s1, s2 = s
    s12 = np.sqrt(np.sum((r[0] - r[1]) ** 2))
    orbitals = -np.sum((2 * s + p[0] * s**2) / (1 + s))
    jastrow = 0.5 * s12 / (1 + np.exp(p[1]) * s12)
    basis = [s1 * s2 / (1 + s1 * s2), (s1 - s2) ** 2 / (1 + (s1 - s2) ** 2), s12**2 / (4 + s12**2)]
    return orbitals + jastrow + p[2:] @ np.array(basis)


def local_energy(p, r):
    """Returns Hψ/ψ. Here ∇²ψ/ψ is ∇² log ψ + |∇ log ψ|²."""
    second, slope = func.laplacian(log_psi, argnums=1)(p, r), func.grad(log_psi, argnums=1)(p, r)
    kinetic = -0.5 * (second + np.sum(slope**2))
    s1, s2 = np.sqrt(np.sum(r**2, axis=1))
    return kinetic - 2 / s1 - 2 / s2 + 1 / np.sqrt(np.sum((r[0] - r[1]) ** 2))


energies = func.jit(func.vmap(local_energy, in_dims=(None, 0)))
log_densities = func.jit(func.vmap(lambda p, r: 2 * log_psi(p, r), in_dims=(None, 0)))
slopes = func.jit(func.vmap(func.grad(log_psi), in_dims=(None, 0)))

# %%
# One electron first
# ------------------
# For hydrogen :math:`\psi = e^{-|r|}` is exact, so the local energy is :math:`-\frac12` wherever the electron is.


def hydrogen(r):
    """Returns ψ at a position (3,)."""
    return np.exp(-np.sqrt(np.sum(r**2)))


r = rng.normal(size=3)
energy = -0.5 * func.laplacian(hydrogen)(r) / hydrogen(r) - 1 / np.sqrt(np.sum(r**2))
print(f"hydrogen: local energy {energy:.12f} at a random point")
assert np.isclose(energy, -0.5, rtol=1e-12)

# %%
# Walkers
# -------
# A random walk with the rule of Metropolis draws from :math:`|\psi|^2`.


def walk(p, r, steps):
    """Moves the walkers (n, 2, 3) by a number of Metropolis steps."""
    density = log_densities(p, r)
    for _ in range(steps):
        moved = r + rng.normal(scale=0.4, size=r.shape)
        proposed = log_densities(p, moved)
        is_taken = np.log(rng.uniform(size=len(r))) < proposed - density
        r = np.where(is_taken[:, None, None], moved, r)
        density = np.where(is_taken, proposed, density)
    return r


# %%
# Stochastic reconfiguration
# --------------------------
# The gradient of the energy is :math:`2 \operatorname{Cov}(E_L, \partial_p \log \psi)`. The covariance of the slopes is
# the metric of wave functions, and a step solves a small linear system with it.

parameters = np.array([1.5, 0.0, 0.0, 0.0, 0.0])
walkers = walk(parameters, rng.normal(size=(WALKERS, 2, 3)), 200)
means, spreads = [], []
for _ in range(STEPS):
    walkers = walk(parameters, walkers, 20)
    e, o = energies(parameters, walkers), slopes(parameters, walkers)
    means.append(np.mean(e))
    spreads.append(np.std(e))
    centred = o - np.mean(o, axis=0)
    force = centred.T @ (e - np.mean(e)) / WALKERS
    metric = centred.T @ centred / WALKERS + 3e-3 * np.eye(len(parameters))
    parameters = parameters - 0.3 * solve(metric, force, assume_a="pos")

samples = []
for _ in range(40):
    walkers = walk(parameters, walkers, 20)
    samples.append(energies(parameters, walkers))
energy, error = np.mean(samples), np.std(np.mean(samples, axis=1)) / np.sqrt(len(samples))
print(f"helium: {energy:.4f} ± {error:.4f} hartree, exact {EXACT}; the start was {means[0]:.3f}")
print(f"spread of the local energy: {spreads[0]:.3f} at the start, {np.std(samples):.3f} at the end")

assert abs(energy - EXACT) < 0.006 and np.std(samples) < 0.85 * spreads[0]

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
left.errorbar(range(STEPS), means, np.array(spreads) / np.sqrt(WALKERS), fmt="o", markersize=3)
left.axhline(EXACT, color="k", linestyle=":", label="exact")
left.legend()
left.set(xlabel="step", ylabel="energy in hartree", title="mean local energy")
right.hist(np.ravel(samples), bins=80, range=(-4, -2), density=True)
right.axvline(EXACT, color="k", linestyle=":")
right.set(xlabel="local energy in hartree", yticks=[], title="of the best function")
plt.show()
