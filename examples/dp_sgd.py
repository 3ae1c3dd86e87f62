"""
Train with clipped, noisy gradients: DP-SGD
===========================================

A network must not reveal anything about one person in its training data. Abadi et al. (2016) clip the gradient of
*each* image to a norm of at most C, sum the clipped gradients, and add noise of deviation σC. The noise hides the
contribution of one image. ``func.per_sample`` computes the clipped sum at about the cost of one ordinary gradient.
*Training with differential privacy*, a longer example, samples the batches as the theory requires, and computes the
guarantee.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import func

NORM, STEPS, BATCH = 1.0, 200, 250
rng = np.random.default_rng(0)
digits = load_digits()
images, labels = digits.data / 16, digits.target
test, training = np.split(rng.permutation(len(labels)), [297])


def logits(params, image):
    """Returns ten scores."""
    return np.tanh(image @ params["in"] + params["bias"]) @ params["out"]


def loss(params, image, label):
    """Returns the cross-entropy of ONE image (64,)."""
    scores = logits(params, image)
    return func.special.logsumexp(scores) - scores[label]


# %%
# One compiled call per step. It equals clipping one gradient after the other.

clipped_sum = func.jit(func.per_sample(loss).clipped_sum(NORM))
start = {"in": rng.normal(size=(64, 32)) / 8, "bias": np.zeros(32), "out": rng.normal(size=(32, 10)) / 6}
by_hand = {name: np.zeros(value.shape) for name, value in start.items()}
for image, label in zip(images[:20], labels[:20], strict=True):
    gradient = func.grad(loss)(start, image, label)
    length = np.sqrt(sum(np.sum(g**2) for g in gradient.values()))
    by_hand = {name: by_hand[name] + g * min(1, NORM / length) for name, g in gradient.items()}
for name, value in clipped_sum(start, images[:20], labels[:20]).items():
    np.testing.assert_allclose(value, by_hand[name], atol=1e-12)

# %%
# Training without noise, and with three amounts of it.

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for sigma in (0, 5, 10, 20):
    params, accuracies = start, []
    for _ in range(STEPS):
        batch = rng.choice(training, BATCH)
        total = clipped_sum(params, images[batch], labels[batch])
        noisy = {name: g + sigma * NORM * rng.normal(size=g.shape) for name, g in total.items()}
        params = {name: params[name] - g / BATCH for name, g in noisy.items()}
        accuracies.append(np.mean(np.argmax(logits(params, images[test]), axis=1) == labels[test]))
    print(f"σ = {sigma:2}: test accuracy {accuracies[-1]:.1%}")
    assert accuracies[-1] > (0.4 if sigma == 20 else 0.75)
    axes.plot(accuracies, color=plt.cm.viridis(sigma / 22), label=f"σ = {sigma}")
axes.set(xlabel="step", ylabel="test accuracy", title="The price of privacy", ylim=(0, 1))
axes.legend(loc="lower right")
plt.show()
