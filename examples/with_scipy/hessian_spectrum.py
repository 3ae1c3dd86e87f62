"""
Compute the spectrum of a network's Hessian
===========================================

The Hessian of a classifier has a bulk of eigenvalues near zero and few large ones, about as many as classes. You do not
need the matrix to see this. Lanczos' method from a few random vectors gives the density of all eigenvalues, and the
large ones one by one. ``func.linear_operator`` multiplies with the Hessian or the Gauss-Newton matrix. This network is
small enough to check the result against all eigenvalues.

Source: B. Ghorbani, S. Krishnan and Y. Xiao (2019), "An investigation into neural net optimization via Hessian
eigenvalue density".
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import optimize
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits

import func

rng = np.random.default_rng(0)
digits = load_digits()
x, y = digits.data[:500] / 16, digits.target[:500]


def model(params, x):
    """Returns the logits."""
    return np.tanh(x @ params["w"] + params["a"]) @ params["v"] + params["b"]


def cross_entropy(logits, y):
    """Returns the mean negative logarithm of the probability of the labels."""
    return np.mean(func.special.logsumexp(logits, axis=-1) - logits[np.arange(len(y)), y])


def loss(params):
    """Returns the loss on all data."""
    return cross_entropy(model(params, x), y)


start = {"w": rng.normal(size=(64, 10)) / 8, "a": np.zeros(10), "v": rng.normal(size=(10, 10)) / 3, "b": np.zeros(10)}
flat, tree_of = func.tree.ravel(start)
gradient = func.jit(func.value_and_grad(lambda w: loss(tree_of(w))))
trained = tree_of(optimize.minimize(gradient, flat, jac=True, method="L-BFGS-B", options={"maxiter": 30}).x)

# %%
# Densities from a few products
# -----------------------------
# Sixty steps from eight random vectors are 480 products of 760. At the start the Hessian has negative eigenvalues;
# the Gauss-Newton matrix has none. After training the two are close.

operators = {
    "Hessian at the start": func.linear_operator("hessian", loss, start),
    "Hessian after training": func.linear_operator("hessian", loss, trained),
    "Gauss-Newton after training": func.linear_operator("ggn", model, trained, x, loss=cross_entropy, targets=y),
}
spectra = {
    name: func.lanczos_quadrature(operator, func.random.key(0), steps=60, samples=8)
    for name, operator in operators.items()
}
exact = {name: np.linalg.eigvalsh(operator.toarray()) for name, operator in operators.items()}
for name, spectrum in spectra.items():
    estimate, error = spectrum.trace(np.abs, with_error=True)
    print(f"{name}: sum of sizes {estimate:.3f} ± {error:.3f}, exactly {np.sum(np.abs(exact[name])):.3f}")
    assert abs(estimate - np.sum(np.abs(exact[name]))) < 5 * error
assert exact["Gauss-Newton after training"][0] > -1e-8

# %%
# The eigenvalues that stand out
# ------------------------------
# Each Ritz value has a bound for its distance to the nearest eigenvalue. SciPy's ``eigsh`` takes the same operator.

hessian = operators["Hessian after training"]
found = func.lanczos(hessian, func.random.key(1), 60)
largest = eigsh(hessian, k=9, which="LA", return_eigenvectors=False)
print("largest eigenvalues:", largest[::-1].round(3))
print("bounds of the errors of the Ritz values:", found.error_bounds[-9:][::-1].max())
assert np.allclose(largest, exact["Hessian after training"][-9:])
assert np.allclose(found.ritz_values[-9:], largest, atol=1e-6)

# %%
# The picture
# -----------
# Lines are the densities from Lanczos' method, bars all eigenvalues.

figure, axes = plt.subplots(3, 1, figsize=(6.4, 6.4), layout="constrained")
for ax, (name, spectrum) in zip(axes, spectra.items(), strict=True):
    values = exact[name]
    width = 0.01 * (values[-1] - values[0])
    grid = np.linspace(values[0] - 5 * width, values[-1] + 5 * width, 400)
    ax.hist(values, bins=80, density=True, color="C1", alpha=0.6, label="all eigenvalues")
    ax.semilogy(grid, spectrum.density(grid, width) + 1e-12, label="by Lanczos")
    ax.set(title=name, ylim=(1e-4, None))
axes[0].legend()
axes[-1].set_xlabel("eigenvalue")
plt.show()
