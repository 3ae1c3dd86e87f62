"""Per-sample gradients of two digit classifiers written in plain NumPy.

The data are scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels. A multilayer perceptron
and a convolutional network are trained by minibatch gradient descent. Then one call gives the gradient of the
loss of each training image, which shows which images have the largest gradients and how noisy a minibatch
gradient is. Hessian-vector products find the sharpest direction of the loss.

    python examples/per_sample_gradients.py            # draws examples/output/per_sample_gradients.png
    python examples/per_sample_gradients.py --quick    # the same steps with little training
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_digits

import func

Array = np.ndarray[Any, Any]
Params = dict[str, Array]
Model = Callable[[Params, Array], Array]

BATCH_SIZE = 32
CHUNK_SIZE = 256
MOMENTUM = 0.9
TEST_IMAGES = 360
EIGENVALUE_TOLERANCE = 0.01
FIGURE = Path(__file__).parent / "output" / "per_sample_gradients.png"


class Data(NamedTuple):
    """Images of shape (n, 8, 8) with values in [0, 1], and their labels 0 to 9."""

    images: Array
    labels: Array


class Recipe(NamedTuple):
    """A network, its initialisation and training, and the test accuracy that it has to reach."""

    name: str
    model: Model
    initialise: Callable[[np.random.Generator], Params]
    learning_rate: float
    epochs: int
    accuracy: float
    quick_epochs: int
    quick_accuracy: float


class Report(NamedTuple):
    """The results of one network that the figure shows."""

    name: str
    losses: list[float]
    accuracies: list[float]
    norms: Array
    probabilities: Array


def mlp(params: Params, images: Array) -> Array:
    """Maps images (…, 8, 8) to logits (…, 10) through one hidden layer."""
    pixels = images.reshape(*images.shape[:-2], 64)
    hidden = np.maximum(pixels @ params["hidden"] + params["hidden_bias"], 0)
    return hidden @ params["output"] + params["output_bias"]


def initial_weights(rng: np.random.Generator, *shape: int) -> Array:
    """Draws weights (…, out) with standard deviation √(2/inputs).

    Source: K. He et al. (2015), arXiv:1502.01852, equation 10.
    """
    return rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))


def initial_mlp(rng: np.random.Generator, width: int = 64) -> Params:
    """Returns parameters to start the perceptron from."""
    return {
        "hidden": initial_weights(rng, 64, width),
        "hidden_bias": np.zeros(width),
        "output": initial_weights(rng, width, 10),
        "output_bias": np.zeros(10),
    }


def convolve(x: Array, kernel: Array, bias: Array) -> Array:
    """Correlates x (…, h, w, c) with an odd kernel (c, k, k, out); zero padding keeps h and w."""
    margin = (kernel.shape[1] // 2,) * 2
    padded = np.pad(x, [(0, 0)] * (x.ndim - 3) + [margin, margin, (0, 0)])
    windows = sliding_window_view(padded, kernel.shape[1:3], axis=(-3, -2))
    return np.tensordot(windows, kernel, axes=3) + bias


def max_pool(x: Array) -> Array:
    """Halves h and w of x (…, h, w, c) by the largest of every 2 by 2 block."""
    *batch, height, width, channels = x.shape
    return np.max(x.reshape(*batch, height // 2, 2, width // 2, 2, channels), axis=(-4, -2))


def convnet(params: Params, images: Array) -> Array:
    """Maps images (…, 8, 8) to logits (…, 10) through two convolutions with pooling and one dense layer."""
    x = images[..., np.newaxis]
    x = max_pool(np.maximum(convolve(x, params["first"], params["first_bias"]), 0))
    x = max_pool(np.maximum(convolve(x, params["second"], params["second_bias"]), 0))
    features = x.reshape(*x.shape[:-3], -1)
    return features @ params["output"] + params["output_bias"]


def initial_convnet(rng: np.random.Generator, first: int = 16, second: int = 32) -> Params:
    """Returns parameters to start the convolutional network from."""
    return {
        "first": initial_weights(rng, 1, 3, 3, first),
        "first_bias": np.zeros(first),
        "second": initial_weights(rng, first, 3, 3, second),
        "second_bias": np.zeros(second),
        "output": initial_weights(rng, 4 * second, 10),
        "output_bias": np.zeros(10),
    }


RECIPES = (
    Recipe("MLP", mlp, initial_mlp, 0.1, 40, 0.95, 6, 0.90),
    Recipe("convnet", convnet, initial_convnet, 0.05, 20, 0.96, 3, 0.80),
)


def log_softmax(logits: Array) -> Array:
    """Returns the logarithms of the class probabilities along the last axis."""
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def sample_loss(model: Model, params: Params, image: Array, label: Array) -> Array:
    """Returns the cross-entropy of ONE image (8, 8) with ONE integer label."""
    return -log_softmax(model(params, image))[label]


def batch_loss(model: Model, params: Params, images: Array, labels: Array) -> Array:
    """Returns the mean cross-entropy of many images."""
    return -np.mean(log_softmax(model(params, images))[np.arange(len(labels)), labels])


def accuracy(model: Model, params: Params, data: Data) -> float:
    """Returns the fraction of images whose largest logit is at their label."""
    return float(np.mean(np.argmax(model(params, data.images), axis=-1) == data.labels))


def split_digits(rng: np.random.Generator) -> tuple[Data, Data]:
    """Returns a training and a test set, disjoint and drawn at random."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    test, training = order[:TEST_IMAGES], order[TEST_IMAGES:]
    images, labels = digits.images / 16.0, digits.target
    return Data(images[training], labels[training]), Data(images[test], labels[test])


def train(
    recipe: Recipe, params: Params, training: Data, test: Data, epochs: int, rng: np.random.Generator
) -> tuple[Params, list[float], list[float]]:
    """Descends with momentum and a learning rate that falls linearly to zero.

    Returns the parameters, and the mean training loss and the test accuracy of every epoch.
    """
    loss_and_gradient = func.value_and_grad(partial(batch_loss, recipe.model))
    velocity = {name: np.zeros_like(value) for name, value in params.items()}
    losses: list[float] = []
    accuracies: list[float] = []
    for epoch in range(epochs):
        batches = np.array_split(rng.permutation(len(training.labels)), len(training.labels) // BATCH_SIZE)
        batch_losses = []
        for number, batch in enumerate(batches):
            loss, gradient = loss_and_gradient(params, training.images[batch], training.labels[batch])
            rate = recipe.learning_rate * (1 - (epoch + number / len(batches)) / epochs)
            velocity = {name: MOMENTUM * velocity[name] - rate * gradient[name] for name in params}
            params = {name: params[name] + velocity[name] for name in params}
            batch_losses.append(float(loss))
        losses.append(float(np.mean(batch_losses)))
        accuracies.append(accuracy(recipe.model, params, test))
        if epoch == 0 or (epoch + 1) % max(1, epochs // 4) == 0:
            print(f"    epoch {epoch + 1:3d}: loss {losses[-1]:.4f}, test accuracy {accuracies[-1]:.1%}")
    return params, losses, accuracies


def dot(a: Params, b: Params) -> float:
    """Returns the inner product of two dicts of arrays."""
    return float(sum(np.sum(a[name] * b[name]) for name in a))


def per_sample_gradients(model: Model, params: Params, data: Data) -> Params:
    """Returns, for every parameter of shape s, the gradients of all n images as one array (n, *s)."""
    gradients_of = func.vmap(
        func.grad(partial(sample_loss, model)), in_dims=(None, 0, 0), chunk_size=CHUNK_SIZE, progress=True
    )
    return gradients_of(params, data.images, data.labels)


def gradient_norms(gradients: Params) -> Array:
    """Returns the Euclidean norm of every image's gradient, all parameters taken together."""
    return np.sqrt(sum(np.sum(g**2, axis=tuple(range(1, g.ndim))) for g in gradients.values()))


def gradient_noise_scale(gradients: Params) -> float:
    """Returns tr(Σ) / |G|², G the mean of the per-sample gradients and Σ their covariance.

    Its unit is images: the gradient of a much smaller minibatch is mostly noise. The n images are taken as the
    whole population, so that G and Σ are exact.

    Source: S. McCandlish et al. (2018), arXiv:1812.06162, the simple noise scale of equation 2.9.
    """
    mean = {name: np.mean(g, axis=0) for name, g in gradients.items()}
    squared_mean = dot(mean, mean)
    trace = float(np.mean(gradient_norms(gradients) ** 2)) - squared_mean
    return trace / squared_mean


def top_hessian_eigenvalue(
    loss: Callable[[Params], Array], params: Params, rng: np.random.Generator, most_steps: int = 500
) -> tuple[float, float, int]:
    """Finds the eigenvalue of largest magnitude by power iteration, without the matrix.

    Returns the eigenvalue λ, the residual |Hv - λv| of its unit vector v, and the number of products. H is
    symmetric, so some eigenvalue lies within the residual of λ.
    """
    product = {name: rng.normal(size=value.shape) for name, value in params.items()}
    steps = 0
    while steps < most_steps:
        steps += 1
        length = np.sqrt(dot(product, product))
        vector = {name: value / length for name, value in product.items()}
        product = func.hvp(loss, (params,), (vector,))
        eigenvalue = dot(vector, product)
        residual = np.sqrt(max(dot(product, product) - eigenvalue**2, 0.0))
        if residual <= EIGENVALUE_TOLERANCE * abs(eigenvalue):
            break
    return eigenvalue, residual, steps


def require(holds: bool, statement: str) -> None:
    """Prints a statement that holds, and ends the program at one that does not."""
    if not holds:
        raise SystemExit(f"FAILED: {statement}")
    print(f"    ok: {statement}")


def check_against_loop(model: Model, params: Params, data: Data, gradients: Params, count: int = 16) -> None:
    """Compares the first per-sample gradients with one call of `grad` each."""
    gradient_of = func.grad(partial(sample_loss, model))
    worst = 0.0
    for index in range(count):
        single = gradient_of(params, data.images[index], data.labels[index])
        worst = max(worst, *(float(np.max(np.abs(single[name] - gradients[name][index]))) for name in params))
    require(worst <= 1e-10, f"a loop over {count} images gives the same (largest difference {worst:.1e})")


def check_mean(model: Model, params: Params, data: Data, gradients: Params) -> None:
    """Compares the mean of the per-sample gradients with the gradient of the mean loss."""
    whole = func.grad(partial(batch_loss, model))(params, data.images, data.labels)
    worst = max(float(np.max(np.abs(whole[name] - np.mean(gradients[name], axis=0)))) for name in params)
    require(worst <= 1e-10, f"their mean is the gradient of the mean loss (largest difference {worst:.1e})")


def report_gradients(recipe: Recipe, params: Params, data: Data, first_noise: float) -> tuple[Array, Array]:
    """Checks the per-sample gradients of a trained network and prints what they show.

    Returns their norms, and the probability that the network gives to the label of each image.
    """
    print(f"  the gradient of each of the {len(data.labels):,} training images, {CHUNK_SIZE} at a time")
    gradients = per_sample_gradients(recipe.model, params, data)
    check_against_loop(recipe.model, params, data, gradients)
    check_mean(recipe.model, params, data, gradients)

    norms = gradient_norms(gradients)
    every = np.arange(len(norms))
    probabilities = np.exp(log_softmax(recipe.model(params, data.images))[every, data.labels])
    print(f"  the median norm is {np.median(norms):.3f}; these images pull hardest:")
    for index in np.argsort(norms)[:-6:-1]:
        digit, probability = data.labels[index], probabilities[index]
        norm = norms[index]
        print(f"    image {index:4d}: norm {norm:6.2f}, a {digit} given probability {probability:.2f}")

    noise = gradient_noise_scale(gradients)
    print(f"  gradient noise scale tr(Σ)/|G|²: {first_noise:.1f} images at the start, now {noise:,.0f}")
    require(noise > first_noise, "the closer to the minimum, the noisier a minibatch gradient")
    return norms, probabilities


def report_curvature(recipe: Recipe, params: Params, training: Data, rng: np.random.Generator) -> None:
    """Prints how sharp the minimum is."""
    print("  the top eigenvalue of the Hessian of the training loss, by power iteration")
    loss = partial(batch_loss, recipe.model, images=training.images, labels=training.labels)
    eigenvalue, residual, steps = top_hessian_eigenvalue(loss, params, rng)
    converged = residual <= EIGENVALUE_TOLERANCE * abs(eigenvalue)
    require(converged, f"{eigenvalue:.3f} ± {residual:.3f} after {steps} Hessian-vector products")


def study(recipe: Recipe, training: Data, test: Data, quick: bool, rng: np.random.Generator) -> Report:
    """Trains one network and reports on the gradients of its training images."""
    epochs = recipe.quick_epochs if quick else recipe.epochs
    target = recipe.quick_accuracy if quick else recipe.accuracy
    params = recipe.initialise(rng)
    size = sum(value.size for value in params.values())
    print(f"\n{recipe.name}: {size:,} parameters, {epochs} epochs of batches of {BATCH_SIZE}")
    noise_at_start = gradient_noise_scale(per_sample_gradients(recipe.model, params, training))
    params, losses, accuracies = train(recipe, params, training, test, epochs, rng)
    require(accuracies[-1] >= target, f"test accuracy {accuracies[-1]:.1%}, at least {target:.0%} wanted")
    norms, probabilities = report_gradients(recipe, params, training, noise_at_start)
    report_curvature(recipe, params, training, rng)
    return Report(recipe.name, losses, accuracies, norms, probabilities)


def draw(reports: list[Report], training: Data, path: Path, hardest: int = 8) -> None:
    """Writes the training curves, the distributions of gradient norms and the hardest images as a PNG."""
    figure = Figure(figsize=(12, 4 + 1.7 * len(reports)), layout="constrained")
    curves, images = figure.subfigures(2, 1, height_ratios=(4, 1.7 * len(reports)))
    loss_axes, accuracy_axes, norm_axes = curves.subplots(1, 3)
    norms = np.concatenate([report.norms for report in reports])
    bins = np.geomspace(max(norms.min(), 1e-8), norms.max(), 50)
    for report in reports:
        epochs = np.arange(1, len(report.losses) + 1)
        loss_axes.semilogy(epochs, report.losses, label=report.name)
        accuracy_axes.plot(epochs, report.accuracies, label=report.name)
        norm_axes.hist(report.norms, bins=bins, alpha=0.6, label=report.name)
    loss_axes.set(title="training curve", xlabel="epoch", ylabel="mean training loss")
    accuracy_axes.set(title="test accuracy", xlabel="epoch", ylabel="fraction right")
    norm_axes.set(title="per-sample gradients", xlabel="norm", ylabel="training images", xscale="log")
    for axes in (loss_axes, accuracy_axes, norm_axes):
        axes.legend()
    grid = images.subplots(len(reports), hardest, squeeze=False)
    for report, row in zip(reports, grid, strict=True):
        for axes, index in zip(row, np.argsort(report.norms)[::-1], strict=False):
            axes.imshow(training.images[index], cmap="gray_r")
            axes.set(xticks=[], yticks=[])
            digit, probability = training.labels[index], report.probabilities[index]
            axes.set_title(f"P({digit}) = {probability:.2f}\nnorm {report.norms[index]:.2g}", fontsize=8)
        row[0].set_ylabel(f"{report.name}: hardest")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Runs the whole study and prints how long it took."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="train less and ask for less accuracy")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the start and the batches")
    parser.add_argument("--output", type=Path, default=FIGURE, help="where the figure goes")
    options = parser.parse_args()

    start = time.perf_counter()
    rng = np.random.default_rng(options.seed)
    training, test = split_digits(rng)
    print(f"handwritten digits: {len(training.labels):,} images to train on, {len(test.labels)} to test on")
    reports = [study(recipe, training, test, options.quick, rng) for recipe in RECIPES]
    draw(reports, training, options.output)
    print(f"\nfigure: {options.output}\nall checks hold; {time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
