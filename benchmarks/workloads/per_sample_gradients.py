"""Per-sample gradients of two small networks, and the norms of them: vmap of grad."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC_JIT, JAX, PLAIN_GRADIENT, TORCH_FUNC
from benchmarks.libraries import LIBRARIES, Library
from benchmarks.suite import compiled_bars, entry, workload
from benchmarks.trees import as_type
from benchmarks.workload import Bar, Call

PIXELS, HIDDEN, CLASSES, BATCH = 784, 128, 10, 256
SIDE, CNN_BATCH = 28, 64
MAX_NORM = 12.9


def cross_entropy(np: Any, logits: Any, target: Any) -> Any:
    """Of the logits of one image; `target` is one-hot."""
    shifted = logits - np.max(logits)
    return np.log(np.sum(np.exp(shifted))) - np.sum(target * shifted)


def mlp_loss(library: Library) -> Callable[..., Any]:
    """The cross-entropy of one image under a two-layer network."""
    np = library.np

    def loss(parameters: Any, image: Any, target: Any) -> Any:
        hidden = np.tanh(image @ parameters["w1"] + parameters["b1"])
        return cross_entropy(np, hidden @ parameters["w2"] + parameters["b2"], target)

    return loss


def cnn_loss(library: Library) -> Callable[..., Any]:
    """The cross-entropy of one image under two convolutions and a dense layer."""
    np = library.np

    def loss(parameters: Any, image: Any, target: Any) -> Any:
        x = np.tanh(library.convolve(image[None], parameters["k1"], 2) + parameters["b1"][:, None, None])
        x = np.tanh(library.convolve(x, parameters["k2"], 2) + parameters["b2"][:, None, None])
        return cross_entropy(np, x.reshape(-1) @ parameters["w3"] + parameters["b3"], target)

    return loss


def norm_of(library: Library, loss: Callable[..., Any]) -> Callable[..., Any]:
    """The norm of the gradient of one image's loss by all parameters."""
    gradient = library.grad(loss)

    def norm(parameters: Any, image: Any, target: Any) -> Any:
        gradients = gradient(parameters, image, target)
        return library.np.sqrt(sum([library.np.sum(array**2) for array in gradients.values()]))

    return norm


def normal(shapes: dict[str, tuple[int, ...]], images: tuple[int, ...]) -> tuple[Any, ...]:
    """Random parameters of these shapes (the first letter b is a bias), images, one-hot classes, float32."""
    generator = np.random.default_rng(0)
    parameters = {}
    for name, shape in shapes.items():
        inputs = np.prod(shape[1:]) if name[0] == "k" else shape[0]
        parameters[name] = generator.normal(size=shape) / (1.0 if name[0] == "b" else inputs**0.5)
    targets = np.eye(CLASSES)[generator.integers(CLASSES, size=images[0])]
    return as_type(np.float32, (parameters, generator.uniform(size=images), targets))


def mlp_data() -> tuple[Any, ...]:
    """Parameters, a batch of random images and their one-hot classes."""
    shapes = {"w1": (PIXELS, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}
    return normal(shapes, (BATCH, PIXELS))


def cnn_data() -> tuple[Any, ...]:
    """The same for the convolutions."""
    shapes = {"k1": (8, 1, 5, 5), "b1": (8,), "k2": (16, 8, 3, 3), "b2": (16,), "w3": (400, CLASSES), "b3": (CLASSES,)}
    return normal(shapes, (CNN_BATCH, 1, SIDE, SIDE))


def backward(parameters: Any, images: Any, targets: Any) -> tuple[Any, Any, Any]:
    """The hidden layer, its cotangent and that of the logits, for the whole batch."""
    hidden = np.tanh(images @ parameters["w1"] + parameters["b1"])
    logits = hidden @ parameters["w2"] + parameters["b2"]
    exponentials = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    ct_logits = exponentials / np.sum(exponentials, axis=1, keepdims=True) - targets
    return hidden, (ct_logits @ parameters["w2"].T) * (1 - hidden * hidden), ct_logits


def gradients_by_hand(parameters: Any, images: Any, targets: Any) -> Any:
    """A weight's gradients are outer products, sample by sample."""
    hidden, ct_hidden, ct_logits = backward(parameters, images, targets)
    return {
        "w1": images[:, :, None] * ct_hidden[:, None, :],
        "b1": ct_hidden,
        "w2": hidden[:, :, None] * ct_logits[:, None, :],
        "b2": ct_logits,
    }


def norms_by_hand(parameters: Any, images: Any, targets: Any) -> Any:
    """An outer product's norm is the product of the norms."""
    hidden, ct_hidden, ct_logits = backward(parameters, images, targets)
    squares = [np.sum(array * array, axis=1) for array in (images, hidden, ct_hidden, ct_logits)]
    return np.sqrt((squares[0] + 1) * squares[2] + (squares[1] + 1) * squares[3])


def make_gradients(library: Library) -> Callable[..., Any]:
    """vmap of grad."""
    return library.per_sample(library.grad(mlp_loss(library)), 2)


def scales_by_hand(parameters: Any, images: Any, targets: Any) -> Any:
    """The factor that scales each sample's gradient to a norm of at most MAX_NORM."""
    return np.minimum(1, MAX_NORM / norms_by_hand(parameters, images, targets)).astype(np.float32)


def clipped_by_hand(parameters: Any, images: Any, targets: Any) -> Any:
    """The scales multiply the cotangents; then a weight's gradient is one product."""
    scales = scales_by_hand(parameters, images, targets)[:, None]
    hidden, ct_hidden, ct_logits = backward(parameters, images, targets)
    ct_hidden, ct_logits = ct_hidden * scales, ct_logits * scales
    return {
        "w1": images.T @ ct_hidden,
        "b1": np.sum(ct_hidden, axis=0),
        "w2": hidden.T @ ct_logits,
        "b2": np.sum(ct_logits, axis=0),
    }


def make_clipped(library: Library) -> Callable[..., Any]:
    """The sum of gradients that are scaled down to a norm."""
    return library.clipped_sum(mlp_loss(library), MAX_NORM, 2)


def plain_gradient(module: Any) -> Call:
    """The same numbers as the gradient of a weighted sum of losses, with the weights known beforehand."""
    library = LIBRARIES[FUNC_JIT](module)
    losses = library.per_sample(mlp_loss(library), 2)
    data = mlp_data()

    def total(parameters: Any, images: Any, targets: Any, scales: Any) -> Any:
        return library.np.sum(scales * losses(parameters, images, targets))

    return library.call(library.grad(total), (*data, scales_by_hand(*data)))


WORKLOAD = workload(
    "per-sample",
    f"per-sample gradients of an MLP {PIXELS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32",
    make_gradients,
    mlp_data,
    (*compiled_bars(against_jax=1.5, memory=True), Bar(TORCH_FUNC, 1.1)),
    gradients_by_hand,
    others={JAX: entry(JAX, make_gradients, mlp_data)},
)
MLP_NORMS = workload(
    "norms mlp",
    f"norms of per-sample gradients of an MLP {PIXELS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32",
    lambda library: library.per_sample(norm_of(library, mlp_loss(library)), 2),
    mlp_data,
    compiled_bars(against_jax=20, memory=True),
    norms_by_hand,
)
CNN_NORMS = workload(
    "norms cnn",
    f"norms of per-sample gradients of a CNN of 2 convolutions, {SIDE} by {SIDE}, batch {CNN_BATCH}, float32",
    lambda library: library.per_sample(norm_of(library, cnn_loss(library)), 2),
    cnn_data,
    compiled_bars(against_jax=2),
)
CLIPPED_SUM = workload(
    "clipped sum",
    f"sum of clipped per-sample gradients of an MLP {PIXELS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32",
    make_clipped,
    mlp_data,
    (
        Bar(PLAIN_GRADIENT, 2.2, FUNC_JIT),
        Bar(PLAIN_GRADIENT, 1.3, FUNC_JIT, "peak memory"),
        *compiled_bars(against_jax=2, memory=True),
    ),
    clipped_by_hand,
    others={PLAIN_GRADIENT: plain_gradient},
)
