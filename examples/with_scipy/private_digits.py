"""
Train with differential privacy
===============================

A network may reveal something about one person in its training data. Differentially private gradient descent bounds
that. It scales the gradient of every image down to a norm of at most :math:`C`, so nobody moves the sum by more.
Gaussian noise of deviation :math:`\\sigma C` hides the participants. An accountant turns :math:`\\sigma`, the sampling
rate and the number of steps into a guarantee :math:`(\\varepsilon, \\delta)`.

The clipped sum takes the gradient of each image. ``func.per_sample`` computes it at about the cost of one gradient of
the whole batch, without an array of the gradients. The data are 1,797 digits of 8 by 8 pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import func

try:
    import dp_accounting
except ImportError:  # all but the guarantee
    dp_accounting = None

TEST_IMAGES = 297
STEPS, EXPECTED_BATCH, ROWS = 300, 250, 350
MAX_NORM = 1.0
DELTA = 1e-4
RATE = 1.0


def loss(params, image, label, weight=1.0):
    """Returns the cross-entropy of ONE image, times a weight."""
    hidden = np.tanh(image @ params["hidden"] + params["hidden_bias"])
    logits = hidden @ params["output"] + params["output_bias"]
    shifted = logits - np.max(logits)
    return weight * (np.log(np.sum(np.exp(shifted))) - shifted[label])


def accuracy(params, images, labels):
    """Returns the fraction of images with the right label."""
    logits = np.tanh(images @ params["hidden"] + params["hidden_bias"]) @ params["output"] + params["output_bias"]
    return np.mean(np.argmax(logits, axis=1) == labels)


def initial(rng):
    """Returns the parameters to start from."""
    return {
        "hidden": rng.normal(size=(64, 32)) / 8,
        "hidden_bias": np.zeros(32),
        "output": rng.normal(size=(32, 10)) / 32**0.5,
        "output_bias": np.zeros(10),
    }


# %%
# A step
# ------
# The guarantee assumes that each image takes part in a step by chance, independently of the others (Poisson sampling).
# The number of images then varies, but a compiled function needs one shape. Empty rows therefore have weight zero.
# Their gradient is zero, and they add nothing. The same function with an infinite norm is plain gradient descent.

statistics = func.per_sample(loss)
private_sum = func.jit(statistics.clipped_sum(MAX_NORM))
plain_sum = func.jit(statistics.clipped_sum(np.inf))
norms = func.jit(statistics.norms)


def sampled(rng, images, labels):
    """Returns a batch with each image taken with probability EXPECTED_BATCH / len(labels), and the weights."""
    chosen = np.flatnonzero(rng.random(len(labels)) < EXPECTED_BATCH / len(labels))
    if len(chosen) > ROWS:  # once in 10¹⁰ steps; to cut the batch would void the guarantee
        raise RuntimeError("the batch is too large")
    rows = np.zeros(ROWS, int)
    rows[: len(chosen)] = chosen
    return images[rows], labels[rows], (np.arange(ROWS) < len(chosen)).astype(float)


def train(gradient_sum, noise, data, seed=0):
    """Returns the parameters and the test accuracy of every step; `noise` is a deviation."""
    rng = np.random.default_rng(seed)
    params = initial(rng)
    images, labels = data["images"][TEST_IMAGES:], data["labels"][TEST_IMAGES:]
    curve = []
    for _ in range(STEPS):
        gradient = gradient_sum(params, *sampled(rng, images, labels))
        for name, value in params.items():
            private = gradient[name] + noise * rng.normal(size=value.shape)
            params[name] = value - RATE * private / EXPECTED_BATCH
        curve.append(accuracy(params, data["images"][:TEST_IMAGES], data["labels"][:TEST_IMAGES]))
    return params, curve


def epsilon(multiplier):
    """Returns the ε of all steps at DELTA, to add or remove one image, for the noise multiplier σ."""
    accountant = dp_accounting.rdp.RdpAccountant(orders=range(2, 256))  # of the Rényi divergences
    rate = EXPECTED_BATCH / (len(digits["labels"]) - TEST_IMAGES)
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    return accountant.compose(step, STEPS).get_epsilon(DELTA)


# %%
# The cost of privacy
# -------------------
# Plain descent, then three amounts of noise.
bunch = load_digits()
order = np.random.default_rng(0).permutation(len(bunch.target))
digits = {"images": bunch.images.reshape(-1, 64)[order] / 16, "labels": bunch.target[order]}
if dp_accounting is None:
    print("The guarantees need an accountant: pip install dp-accounting")

plain_params, plain_curve = train(plain_sum, 0.0, digits)
print(f"plain descent: test accuracy {plain_curve[-1]:.1%}, no guarantee")
curves = {}
for multiplier in (1.5, 3.0, 6.0):
    guarantee = f"ε = {epsilon(multiplier):.2f} at δ = {DELTA:g}" if dp_accounting else "ε unknown"
    label = f"σ = {multiplier:g}, {guarantee}"
    _, curves[label] = train(private_sum, multiplier * MAX_NORM, digits)
    print(f"{label}: test accuracy {curves[label][-1]:.1%}")

# %%
# The sum equals that of single gradients, scaled one by one.
batch = digits["images"][:40], digits["labels"][:40]
gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(plain_params, *batch)
lengths = np.sqrt(sum(np.sum(g.reshape(40, -1) ** 2, axis=1) for g in gradients.values()))
np.testing.assert_allclose(norms(plain_params, *batch), lengths)
scales = np.minimum(1, MAX_NORM / lengths)
for name, value in private_sum(plain_params, *batch).items():
    np.testing.assert_allclose(value, np.einsum("b,b...->...", scales, gradients[name]), atol=1e-12)
assert plain_curve[-1] > 0.93
assert all(plain_curve[-1] > curve[-1] > 0.8 for curve in curves.values())
assert dp_accounting is None or epsilon(1.5) > epsilon(3.0) > epsilon(6.0) > 0

figure, (left, right) = plt.subplots(2, 1, figsize=(6.4, 6.4), layout="constrained")
left.plot(plain_curve, "k", label="plain descent")
for label, curve in curves.items():
    left.plot(curve, label=label)
left.set(xlabel="step", ylabel="test accuracy", ylim=(0.4, 1))
left.legend()
start = norms(initial(np.random.default_rng(0)), digits["images"], digits["labels"])
right.hist([start, norms(plain_params, digits["images"], digits["labels"])], 30, label=["at the start", "trained"])
right.axvline(MAX_NORM, color="k", linestyle=":")
right.set(xlabel="norm of an image's gradient", ylabel="images", yscale="log")
right.legend()
plt.show()
