"""Per-sample gradients of a two-layer network: vmap of grad, bound by memory."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC, HIPS, JAX, JAX_JIT, TORCH, TORCH_FUNC
from benchmarks.trees import convert
from benchmarks.workload import Bar, Call, Workload

PIXELS, HIDDEN, CLASSES, BATCH = 784, 128, 10, 256


def make_loss(np: Any) -> Callable[..., Any]:
    """The cross-entropy of one image; `target` is one-hot."""

    def loss(parameters: Any, image: Any, target: Any) -> Any:
        hidden = np.tanh(image @ parameters["w1"] + parameters["b1"])
        logits = hidden @ parameters["w2"] + parameters["b2"]
        shifted = logits - np.max(logits)
        return np.log(np.sum(np.exp(shifted))) - np.sum(target * shifted)

    return loss


def make_data() -> tuple[Any, ...]:
    """Parameters, a batch of random images and their one-hot classes, float32."""
    generator = np.random.default_rng(0)
    parameters = {
        "w1": generator.normal(size=(PIXELS, HIDDEN)) / PIXELS**0.5,
        "b1": generator.normal(size=HIDDEN),
        "w2": generator.normal(size=(HIDDEN, CLASSES)) / HIDDEN**0.5,
        "b2": generator.normal(size=CLASSES),
    }
    images = generator.uniform(size=(BATCH, PIXELS))
    targets = np.eye(CLASSES)[generator.integers(CLASSES, size=BATCH)]
    data = (parameters, images, targets)
    return tuple(convert(lambda array: array.astype(np.float32), item) for item in data)


def with_func(func: Any) -> Call:
    """vmap of grad."""
    gradients, data = func.vmap(func.grad(make_loss(np)), in_dims=(None, 0, 0)), make_data()
    return lambda: gradients(*data)


def with_hips(autograd: Any) -> Call:
    """A loop over the images: the library has no vmap."""
    gradient = autograd.grad(make_loss(autograd.numpy))
    parameters, images, targets = make_data()

    def gradients() -> Any:
        rows = [gradient(parameters, image, target) for image, target in zip(images, targets, strict=True)]
        return {name: np.stack([row[name] for row in rows]) for name in parameters}

    return gradients


def with_torch_func(torch: Any) -> Call:
    """vmap of grad."""
    gradients = torch.func.vmap(torch.func.grad(make_loss(torch)), in_dims=(None, 0, 0))
    data = tuple(convert(torch.from_numpy, item) for item in make_data())
    return lambda: gradients(*data)


def with_torch(torch: Any) -> Call:
    """A loop over the images: backward sums over a batch."""
    loss = make_loss(torch)
    parameters, images, targets = (convert(torch.from_numpy, item) for item in make_data())
    leaves = [leaf.requires_grad_(True) for leaf in parameters.values()]

    def gradients() -> Any:
        rows = [
            torch.autograd.grad(loss(parameters, image, target), leaves)
            for image, target in zip(images, targets, strict=True)
        ]
        return dict(zip(parameters, map(torch.stack, zip(*rows, strict=True)), strict=True))

    return gradients


def with_jax(jax: Any) -> Call:
    """vmap of grad."""
    gradients = jax.vmap(jax.grad(make_loss(jax.numpy)), in_axes=(None, 0, 0))
    data = tuple(convert(jax.numpy.asarray, item) for item in make_data())
    return lambda: jax.block_until_ready(gradients(*data))


def with_jax_jit(jax: Any) -> Call:
    """jit of vmap of grad."""
    gradients = jax.jit(jax.vmap(jax.grad(make_loss(jax.numpy)), in_axes=(None, 0, 0)))
    data = tuple(convert(jax.numpy.asarray, item) for item in make_data())
    return lambda: jax.block_until_ready(gradients(*data))


def by_hand(_: Any) -> Call:
    """The whole batch forward and backward; a weight's gradients are outer products, sample by sample."""
    parameters, images, targets = make_data()

    def gradients() -> Any:
        hidden = np.tanh(images @ parameters["w1"] + parameters["b1"])
        logits = hidden @ parameters["w2"] + parameters["b2"]
        exponentials = np.exp(logits - np.max(logits, axis=1, keepdims=True))
        ct_logits = exponentials / np.sum(exponentials, axis=1, keepdims=True) - targets
        ct_hidden = (ct_logits @ parameters["w2"].T) * (1 - hidden * hidden)
        return {
            "w1": images[:, :, None] * ct_hidden[:, None, :],
            "b1": ct_hidden,
            "w2": hidden[:, :, None] * ct_logits[:, None, :],
            "b2": ct_logits,
        }

    return gradients


WORKLOAD = Workload(
    "per-sample",
    f"per-sample gradients of an MLP {PIXELS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32",
    {
        FUNC: with_func,
        HIPS: with_hips,
        TORCH_FUNC: with_torch_func,
        TORCH: with_torch,
        JAX: with_jax,
        JAX_JIT: with_jax_jit,
        BY_HAND: by_hand,
    },
    bars=(Bar(TORCH_FUNC, 1.1),),
)
