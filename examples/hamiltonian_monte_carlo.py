"""
Sample a density by Hamiltonian Monte Carlo
===========================================

To sample a probability density, let a ball roll on its negative logarithm. Positions and momenta follow Hamilton's
equations, which only need a gradient (Duane et al., 1987). The density is the banana of Rosenbrock: :math:`x \\sim N(0,
1)`, :math:`y \\sim N(x^2, 0.5^2)`.
"""

import matplotlib.pyplot as plt
import numpy as np

import func

CHAINS, DRAWS, STEPS, SIZE = 200, 150, 20, 0.12


def energy(q):
    """Returns -log p at ONE point (2,), up to a constant."""
    return q[0] ** 2 / 2 + (q[1] - q[0] ** 2) ** 2 / (2 * 0.5**2)


slope = func.vmap(func.grad(energy))

# %%
# All chains move together: ``vmap`` batches the gradient, ``fori_loop`` makes the steps, ``jit`` compiles the whole.


@func.jit
def leapfrog(q, p):
    """Returns positions and momenta (chains, 2) after 20 steps that conserve the energy nearly."""

    def step(_, state):
        q, p = state
        p = p - SIZE / 2 * slope(q)
        q = q + SIZE * p
        return q, p - SIZE / 2 * slope(q)

    return func.fori_loop(0, STEPS, step, (q, p))


rng = np.random.default_rng(0)
total = func.jit(lambda q, p: func.vmap(energy)(q) + np.sum(p**2, axis=1) / 2)
q, samples, accepted = np.zeros((CHAINS, 2)), [], 0.0
for _ in range(DRAWS):
    p = rng.normal(size=q.shape)
    proposal, momentum = leapfrog(q, p)
    accept = np.log(rng.uniform(size=CHAINS)) < total(q, p) - total(proposal, momentum)
    q, accepted = np.where(accept[:, None], proposal, q), accepted + np.mean(accept) / DRAWS
    samples.append(q)
x, y = np.concatenate(samples[20:]).T
print(f"{accepted:.0%} accepted; variance of x {np.var(x):.2f} (1), mean of y {np.mean(y):.2f} (1)")
assert abs(np.var(x) - 1) < 0.1 and abs(np.mean(y) - 1) < 0.1 and abs(np.var(y - x**2) - 0.25) < 0.03

figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
drawn = axes.hexbin(x, y, gridsize=60, extent=(-3.2, 3.2, -2, 8), bins="log", cmap="Blues", mincnt=1)
axes.plot(*np.array(samples)[20:45, 0].T, "C1.-", linewidth=0.8, label="25 draws of one chain")
figure.colorbar(drawn, label="draws")
axes.set(xlim=(-3.2, 3.2), ylim=(-2, 8), xlabel="x", ylabel="y", title=f"{len(x):,} draws of {CHAINS} chains")
axes.legend()
plt.show()
