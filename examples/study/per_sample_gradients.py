"""
Find the images that teach a network most
=========================================

A step of training follows the *mean* of the gradients of many images. This study computes the gradient of every image,
for two classifiers of handwritten digits in plain NumPy: a multilayer perceptron and a convolutional network. The data
are 1,797 real images of 8 by 8 pixels (scikit-learn). The norms show which images pull hardest, and the noise scale how
many images a step should average. Products with the Hessian show how sharp the minimum is, without the matrix.

``python examples/study/per_sample_gradients.py`` runs it, with ``--quick`` in its shortest form.
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_digits

import func

BATCH_SIZE, CHUNK_SIZE, MOMENTUM, TEST_IMAGES = 32, 256, 0.9, 360
EIGENVALUE_TOLERANCE = 0.01

# %%
# Two networks
# ------------
# Each takes images of any batch shape; the weights start with the deviation √(2/inputs) of He et al. (2015), equation
# 10.


def random_weights(rng, *shape):
    """Draws weights (…, out)."""
    return rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))


def perceptron(params, images):
    """Maps images (…, 8, 8) to logits (…, 10) through one hidden layer."""
    pixels = images.reshape(*images.shape[:-2], 64)
    hidden = np.maximum(pixels @ params["hidden"] + params["hidden_bias"], 0)
    return hidden @ params["output"] + params["output_bias"]


def initial_perceptron(rng, width=64):
    """Returns the parameters to start from."""
    hidden, output = random_weights(rng, 64, width), random_weights(rng, width, 10)
    return {"hidden": hidden, "hidden_bias": np.zeros(width), "output": output, "output_bias": np.zeros(10)}


def convolve(x, kernel, bias):
    """Correlates x (…, h, w, c) with an odd kernel (c, k, k, out); zero padding keeps h and w."""
    margin = (kernel.shape[1] // 2,) * 2
    padded = np.pad(x, [(0, 0)] * (x.ndim - 3) + [margin, margin, (0, 0)])
    windows = sliding_window_view(padded, kernel.shape[1:3], axis=(-3, -2))
    return np.tensordot(windows, kernel, axes=3) + bias


def mean_pool(x):
    """Halves h and w of x (…, h, w, c) by the mean of each 2 by 2 block; the maximum ties where an image is blank."""
    *batch, height, width, channels = x.shape
    return np.mean(x.reshape(*batch, height // 2, 2, width // 2, 2, channels), axis=(-4, -2))


def convnet(params, images):
    """Maps images (…, 8, 8) to logits (…, 10) through two convolutions with pooling and one dense layer."""
    x = mean_pool(np.maximum(convolve(images[..., np.newaxis], params["first"], params["first_bias"]), 0))
    x = mean_pool(np.maximum(convolve(x, params["second"], params["second_bias"]), 0))
    return x.reshape(*x.shape[:-3], -1) @ params["output"] + params["output_bias"]


def initial_convnet(rng, first=16, second=32):
    """Returns the parameters to start from."""
    kernels = {"first": random_weights(rng, 1, 3, 3, first), "second": random_weights(rng, first, 3, 3, second)}
    biases = {"first_bias": np.zeros(first), "second_bias": np.zeros(second), "output_bias": np.zeros(10)}
    return kernels | biases | {"output": random_weights(rng, 4 * second, 10)}


# %%
# One loss for one image, and for many
# ------------------------------------


def log_softmax(logits):
    """Returns the logarithms of the class probabilities along the last axis."""
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def losses(model):
    """Returns the loss of ONE image with ONE label, and the mean loss of many."""

    def of_one(params, image, label):
        return -log_softmax(model(params, image))[label]

    def of_many(params, images, labels):
        return -np.mean(log_softmax(model(params, images))[np.arange(len(labels)), labels])

    return of_one, of_many


# %%
# Training
# --------
# Gradient descent with momentum, and a rate that falls linearly to zero. The compiled function returns the loss and its
# gradient.


def train(model, params, training, test, epochs, rate, rng):
    """Returns the trained parameters, and the mean loss and the test accuracy of each epoch."""
    loss_and_gradient = func.jit(func.value_and_grad(losses(model)[1]))
    velocity = {name: np.zeros_like(value) for name, value in params.items()}
    history = []
    images, labels = training
    for epoch in range(epochs):
        batches, total = np.array_split(rng.permutation(len(labels)), len(labels) // BATCH_SIZE), 0.0
        for number, batch in enumerate(batches):
            loss, gradient = loss_and_gradient(params, images[batch], labels[batch])
            now = rate * (1 - (epoch + number / len(batches)) / epochs)
            velocity = {name: MOMENTUM * velocity[name] - now * gradient[name] for name in params}
            params = {name: params[name] + velocity[name] for name in params}
            total += loss / len(batches)
        accuracy = np.mean(np.argmax(model(params, test[0]), axis=-1) == test[1])
        history.append((total, accuracy))
        if epoch == 0 or (epoch + 1) % max(1, epochs // 4) == 0:
            print(f"    epoch {epoch + 1:3d}: loss {total:.4f}, test accuracy {accuracy:.1%}")
    return params, np.array(history)


# %%
# The gradient of each image
# --------------------------
# ``vmap`` of ``grad``, for 256 images at a time, with a progress bar. The noise scale is tr(Σ) / \|G\|², where G is the
# mean of the gradients of all images and Σ their covariance (McCandlish et al., 2018, arXiv:1812.06162, equation 2.9).
# Its unit is images: the gradient of a much smaller batch is mostly noise.


def require(holds, statement):
    """Prints a statement that holds, and ends the program at one that does not."""
    if not holds:
        raise SystemExit(f"FAILED: {statement}")
    print(f"    ok: {statement}")


def gradients_of_each(model, params, images, labels):
    """Returns, for every parameter of shape s, the gradients of all n images as one array (n, *s)."""
    gradient = func.grad(losses(model)[0])
    mapped = func.vmap(gradient, in_dims=(None, 0, 0), chunk_size=CHUNK_SIZE, progress=True)
    return mapped(params, images, labels)


def norms_of(gradients):
    """Returns the Euclidean norm of every image's gradient, all parameters taken together."""
    return np.sqrt(sum(np.sum(g**2, axis=tuple(range(1, g.ndim))) for g in gradients.values()))


def noise_scale(gradients):
    """Returns tr(Σ) / |G|², for the images as the whole population."""
    squared_mean = sum(np.sum(np.mean(g, axis=0) ** 2) for g in gradients.values())
    return (np.mean(norms_of(gradients) ** 2) - squared_mean) / squared_mean


def largest_difference(a, b):
    """Returns the largest difference of two dicts of arrays."""
    return max(np.max(np.abs(a[name] - b[name])) for name in a)


def check(model, params, images, labels, gradients, count=16):
    """Compares the gradients with one call of ``grad`` for each image, and their mean with the gradient of the mean."""
    of_one, of_many = losses(model)
    loop = [func.grad(of_one)(params, images[i], labels[i]) for i in range(count)]
    worst = max(largest_difference(one, {n: g[i] for n, g in gradients.items()}) for i, one in enumerate(loop))
    require(worst <= 1e-10, f"a loop over {count} images gives the same (largest difference {worst:.1e})")
    mean = {name: np.mean(g, axis=0) for name, g in gradients.items()}
    worst = largest_difference(func.grad(of_many)(params, images, labels), mean)
    require(worst <= 1e-10, f"their mean is the gradient of the mean loss (largest difference {worst:.1e})")


# %%
# The sharpest direction
# ----------------------
# Power iteration needs products of the Hessian H with vectors, which ``func.hvp`` computes without H. H is symmetric,
# so some eigenvalue is within the residual \|Hv - λv\| of λ.


def top_eigenvalue(loss, params, rng, most_steps=500):
    """Returns the eigenvalue λ of largest magnitude, the residual of its unit vector, and the number of products."""
    flat, tree_of = func.tree.ravel(params)
    product_with = func.jit(lambda v: func.tree.ravel(func.hvp(loss, (params,), (tree_of(v),)))[0])
    product, steps, residual, eigenvalue = rng.normal(size=flat.shape), 0, np.inf, 0.0
    while steps < most_steps and residual > EIGENVALUE_TOLERANCE * abs(eigenvalue):
        vector = product / np.linalg.norm(product)
        product = product_with(vector)
        eigenvalue = vector @ product
        residual = np.linalg.norm(product - eigenvalue * vector)
        steps += 1
    return eigenvalue, residual, steps


# %%
# The study
# ---------


def study(name, model, params, training, test, epochs, rate, target, rng):
    """Trains a network and reports on the gradients of its training images; returns what the figure shows."""
    images, labels = training
    size = sum(value.size for value in params.values())
    print(f"\n{name}: {size:,} parameters, {epochs} epochs of batches of {BATCH_SIZE}")
    noise_at_start = noise_scale(gradients_of_each(model, params, images, labels))
    params, history = train(model, params, training, test, epochs, rate, rng)
    require(history[-1, 1] >= target, f"test accuracy {history[-1, 1]:.1%}, at least {target:.0%} wanted")

    print(f"  the gradient of each of the {len(labels):,} training images, {CHUNK_SIZE} at a time")
    gradients = gradients_of_each(model, params, images, labels)
    check(model, params, images, labels, gradients)
    norms = norms_of(gradients)
    probabilities = np.exp(log_softmax(model(params, images))[np.arange(len(labels)), labels])
    print(f"  the median norm is {np.median(norms):.3f}; these images pull hardest:")
    for i in np.argsort(norms)[:-6:-1]:
        print(f"    image {i:4d}: norm {norms[i]:6.2f}, a {labels[i]} given probability {probabilities[i]:.2f}")
    noise = noise_scale(gradients)
    print(f"  gradient noise scale tr(Σ)/|G|²: {noise_at_start:.1f} images at the start, now {noise:,.0f}")
    require(noise > noise_at_start, "the closer to the minimum, the noisier a batch's gradient")

    print("  the top eigenvalue of the Hessian of the training loss, by power iteration")
    eigenvalue, residual, steps = top_eigenvalue(lambda params: losses(model)[1](params, *training), params, rng)
    converged = residual <= EIGENVALUE_TOLERANCE * abs(eigenvalue)
    require(converged, f"{eigenvalue:.3f} ± {residual:.3f} after {steps} Hessian-vector products")
    return name, history, norms, probabilities


def draw(reports, training, hardest=6):
    """Returns a figure of the accuracies, the distributions of norms and the hardest images."""
    figure = plt.figure(figsize=(7.5, 6.8), layout="constrained")
    curves, grid = figure.subfigures(2, 1, height_ratios=(5, 6))
    left, right = curves.subplots(1, 2)
    bins = np.geomspace(min(report[2].min() for report in reports), max(report[2].max() for report in reports), 40)
    for name, history, norms, _ in reports:
        left.plot(np.arange(1, len(history) + 1), history[:, 1], label=name)
        right.hist(norms, bins=bins, alpha=0.6, label=name)
    left.set(title="test accuracy", xlabel="epoch")
    left.legend(loc="lower right")
    right.set(title="norms of the images' gradients", xlabel="norm", ylabel="images", xscale="log")
    for (name, _, norms, probabilities), row in zip(reports, grid.subplots(len(reports), hardest), strict=True):
        for panel, i in zip(row, np.argsort(norms)[::-1], strict=False):
            panel.imshow(training[0][i], cmap="gray_r")
            panel.set(xticks=[], yticks=[])
            panel.set_title(f"P({training[1][i]}) = {probabilities[i]:.2f}", fontsize="small")
        row[0].set_ylabel(name)
    return figure


# %%
# The options, the run and the figure. A quick run trains less and requires less accuracy.

parser = argparse.ArgumentParser(description="The gradients of all images of two digit classifiers.")
parser.add_argument("--quick", action="store_true", help="train less and ask for less accuracy")
parser.add_argument("--seed", type=int, default=0, help="of the split, the start and the batches")
parser.add_argument("--output", type=Path, help="a file for the figure, instead of a window")
options = parser.parse_args([] if "ipykernel" in sys.modules else None)  # a notebook has options of its own

begin = time.perf_counter()
rng = np.random.default_rng(options.seed)
digits = load_digits()
test_rows, rows = np.split(rng.permutation(len(digits.target)), [TEST_IMAGES])
training, test = [(digits.images[chosen] / 16, digits.target[chosen]) for chosen in (rows, test_rows)]
print(f"handwritten digits: {len(rows):,} images to train on, {len(test_rows)} to test on")

epochs, target = (6, 0.90) if options.quick else (40, 0.95)
reports = [study("perceptron", perceptron, initial_perceptron(rng), training, test, epochs, 0.1, target, rng)]
epochs, target = (3, 0.80) if options.quick else (20, 0.96)
reports.append(study("convnet", convnet, initial_convnet(rng), training, test, epochs, 0.05, target, rng))
print(f"\nall checks hold; {time.perf_counter() - begin:.0f} seconds")

figure = draw(reports, training)
if options.output:
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=120)
    print(f"figure: {options.output}")
else:
    plt.show()
