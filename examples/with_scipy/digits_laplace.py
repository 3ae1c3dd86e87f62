"""
Measure how sure a network is: a Laplace approximation
======================================================

A network from a maximum-a-posteriori fit says 3 with probability 1 where it should say 3 or 8. The Laplace
approximation puts a normal distribution around the fit. Its precision is the Fisher matrix plus that of the prior. For
2,410 parameters that matrix has 6 million entries; its blocks in Kronecker factors are a few small matrices.
``func.kronecker_factors`` computes them from the model. They give three things: the evidence, which chooses the prior
without test data, honest probabilities, and the training images with wrong labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage, optimize
from sklearn.datasets import load_digits

import func

rng = np.random.default_rng(0)
digits = load_digits()
order = rng.permutation(len(digits.target))
images, labels = digits.images[order] / 16, digits.target[order]
train, test = np.arange(600), np.arange(600, 1000)
x, y = images[train].reshape(-1, 64), labels[train].copy()
wrong = rng.choice(len(y), 30, replace=False)
y[wrong] = (y[wrong] + rng.integers(1, 10, 30)) % 10  # one label of twenty


def model(params, x):
    """Returns the logits of one image or of several."""
    return np.tanh(x @ params["w"] + params["a"]) @ params["v"] + params["b"]


def cross_entropy(logits, y):
    """Returns the negative logarithm of the probability of a label."""
    return func.special.logsumexp(logits) - logits[y]


def loss(params, x, y):
    """Returns the loss of one image."""
    return cross_entropy(model(params, x), y)


start = {
    "w": rng.normal(size=(64, 32)) / 8,
    "a": np.zeros(32),
    "v": rng.normal(size=(32, 10)) / 6,
    "b": np.zeros(10),
}
flat_start, tree_of = func.tree.ravel(start)


@func.jit
@func.value_and_grad
def objective(flat, precision):
    """Returns the negative logarithm of the posterior, up to a constant."""
    return np.sum(func.vmap(loss, in_dims=(None, 0, 0))(tree_of(flat), x, y)) + precision * flat @ flat / 2


# %%
# The prior, by the evidence
# --------------------------
# The evidence is the probability of the data with the parameters integrated out. The log-determinant of the precision
# in it is a sum over products of eigenvalues of the factors.

factors_of = func.kronecker_factors(model, likelihood="categorical")
precisions = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
fits, evidences = [], []
flat = flat_start
for precision in precisions:
    found = optimize.minimize(objective, flat, precision, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    flat = found.x
    log_determinant = factors_of(tree_of(flat), x).log_determinant(precision)
    fits.append(flat)
    evidences.append(-found.fun + flat.size * np.log(precision) / 2 - log_determinant / 2)
best = int(np.argmax(evidences))
params, precision = tree_of(fits[best]), precisions[best]
factors = factors_of(params, x)
print(factors)
print(f"the evidence is largest at a precision of {precision:g}")

# %%
# Probabilities of rotated images
# -------------------------------
# The logits of the network are linearised around the fit; there they are normal with covariance J P⁻¹ Jᵀ. The probit
# approximation divides them by √(1 + π/8 variance). The network has never seen rotated images. Its probabilities stay
# certain, those of the Laplace approximation do not.


@func.jit
def columns_of_jacobian(image):
    """Returns the gradients of the ten logits of an image, (parameters, 10)."""
    return func.jacrev(lambda w: model(tree_of(w), image))(fits[best]).T


def log_loss(logits, labels):
    """Returns the mean negative logarithm of the probability of the labels."""
    return np.mean(func.vmap(cross_entropy)(logits, labels))


angles = np.array([0, 15, 30, 45, 60])
of_fit, of_laplace = [], []
for angle in angles:
    turned = ndimage.rotate(images[test[:100]], angle, axes=(1, 2), reshape=False, order=1).reshape(-1, 64)
    logits = model(params, turned)
    columns = np.concatenate([columns_of_jacobian(image) for image in turned], axis=1)
    variances = np.sum(columns * factors.solve(columns, precision), axis=0).reshape(-1, 10)
    of_fit.append(log_loss(logits, labels[test[:100]]))
    of_laplace.append(log_loss(logits / np.sqrt(1 + np.pi / 8 * variances), labels[test[:100]]))
print("log loss of the fit:                  ", np.round(of_fit, 2))
print("log loss of the Laplace approximation:", np.round(of_laplace, 2))
assert of_laplace[-1] < of_fit[-1]

# %%
# Wrong labels, by influence
# --------------------------
# To first order, leaving a sample out changes its own loss by gᵀ P⁻¹ g. If a label is wrong, the network only knows it
# from that sample.

operator = func.linear_operator("jacobian", func.vmap(loss, in_dims=(None, 0, 0)), params, x, y)
gradients = operator.T.toarray()
influence = np.sum(gradients * factors.solve(gradients, precision), axis=0)
suspects = np.argsort(influence)[::-1][:60]
share = np.mean(np.isin(wrong, suspects))
print(f"of the 30 wrong labels {share:.0%} are among the 60 most influential of {len(y)} images")
assert share > 0.7

# %%
# The pictures
# ------------

figure, axes = plt.subplot_mosaic("AB;CC", figsize=(6.6, 5.6), layout="constrained")
axes["A"].semilogx(precisions, evidences, "o-")
axes["A"].set(title="log evidence", xlabel="precision of the prior")
axes["B"].plot(angles, of_fit, "o-", label="fit")
axes["B"].plot(angles, of_laplace, "o-", label="Laplace")
axes["B"].set(title="log loss of turned images", xlabel="degrees")
axes["B"].legend()
first = np.pad(x[suspects[:20]].reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
axes["C"].imshow(first.reshape(2, 10, 10, 10).swapaxes(1, 2).reshape(20, 100), cmap="gray_r")
axes["C"].axis("off")
for i, label in enumerate(y[suspects[:20]]):
    axes["C"].text(10 * (i % 10) - 1, 10 * (i // 10) + 9, label, color="C3", weight="bold")
axes["C"].set_title("the most influential images, and their labels in red")
plt.show()
