"""
Compute the gradient of each sample
===================================

A gradient step averages the gradients of many images. func computes the gradient of *each* image in one call: write the
loss of ONE image, and ``vmap`` its ``grad``. The images with the largest gradients are the hardest for the model.
``make demo`` runs the long study, with a convolutional network.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import func

digits = load_digits()
images, labels = digits.images.reshape(-1, 64) / 16, digits.target
rng = np.random.default_rng(0)
params = {"w": rng.normal(size=(64, 32)) / 6, "b": np.zeros(32), "out": rng.normal(size=(32, 10)) / 4}


def loss(params, image, label):
    """Returns the cross-entropy of ONE image (64,)."""
    logits = np.maximum(image @ params["w"] + params["b"], 0) @ params["out"]
    return np.log(np.sum(np.exp(logits - np.max(logits)))) + np.max(logits) - logits[label]


def mean_loss(params):
    """Returns the mean over all images."""
    return np.mean(func.vmap(loss, in_dims=(None, 0, 0))(params, images, labels))


# %%
# Training, then the gradients of all 1,797 images; their mean is the gradient of the mean.

gradient = func.jit(func.grad(mean_loss))
for _ in range(150):
    params = {name: params[name] - 0.5 * g for name, g in gradient(params).items()}
per_sample = func.jit(func.vmap(func.grad(loss), in_dims=(None, 0, 0)))(params, images, labels)
for name, g in gradient(params).items():
    np.testing.assert_allclose(np.mean(per_sample[name], axis=0), g, atol=1e-10)

norms = np.sqrt(sum(np.sum(g**2, axis=tuple(range(1, g.ndim))) for g in per_sample.values()))
order = np.argsort(norms)
print(f"median norm {np.median(norms):.2f}, largest {norms[order[-1]]:.1f}")
figure, axes = plt.subplots(2, 5, figsize=(6.4, 3.6), layout="constrained")
for column in range(5):
    for row, index in enumerate((order[-1 - column], order[column])):
        axes[row, column].imshow(digits.images[index], cmap="gray_r")
        axes[row, column].axis("off")
        axes[row, column].set_title(f"{labels[index]}: {norms[index]:.2g}")
figure.suptitle("Labels, and norms of gradients: the largest, the smallest")
plt.show()
