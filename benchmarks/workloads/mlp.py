"""Multilayer perceptrons: the network that several workloads differentiate, and the workloads of its training."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC, FUNC_JIT, HIPS, JAX_JIT, TORCH, TORCH_COMPILE, TORCH_FUNC
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.trees import as_type
from benchmarks.workload import Bar, Workload

RATE = 0.1


def make_loss(np: Any) -> Callable[..., Any]:
    """The mean squared error of a network with tanh between its layers; parameters w0, b0, w1, …"""

    def loss(parameters: dict[str, Any], inputs: Any, targets: Any) -> Any:
        x, depth = inputs, len(parameters) // 2
        for layer in range(depth):
            x = x @ parameters[f"w{layer}"] + parameters[f"b{layer}"]
            if layer < depth - 1:
                x = np.tanh(x)
        return np.mean((x - targets) ** 2)

    return loss


def initial(sizes: Sequence[int], generator: np.random.Generator) -> dict[str, Any]:
    """Random parameters of layers of these sizes."""
    parameters = {}
    for layer, (rows, columns) in enumerate(pairwise(sizes)):
        parameters[f"w{layer}"] = generator.normal(size=(rows, columns)) / rows**0.5
        parameters[f"b{layer}"] = 0.1 * generator.normal(size=columns)
    return parameters


def data(sizes: Sequence[int], batch: int, dtype: type = np.float64) -> tuple[Any, ...]:
    """Parameters, inputs and one-hot targets."""
    generator = np.random.default_rng(0)
    parameters = initial(sizes, generator)
    inputs = generator.normal(size=(batch, sizes[0]))
    targets = np.eye(sizes[-1])[generator.integers(sizes[-1], size=batch)]
    return as_type(dtype, (parameters, inputs, targets))


def by_hand(parameters: dict[str, Any], inputs: Any, targets: Any) -> tuple[Any, dict[str, Any]]:
    """Backpropagation."""
    depth = len(parameters) // 2
    kept = [inputs]
    for layer in range(depth):
        x = kept[-1] @ parameters[f"w{layer}"]
        x += parameters[f"b{layer}"]
        kept.append(np.tanh(x, out=x) if layer < depth - 1 else x)
    error = kept.pop() - targets
    value = np.mean(error * error)
    ct = error * error.dtype.type(2 / error.size)
    gradients = {}
    for layer in reversed(range(depth)):
        gradients[f"w{layer}"] = kept[layer].T @ ct
        gradients[f"b{layer}"] = ct.sum(axis=0)
        if layer:
            ct = ct @ parameters[f"w{layer}"].T
            ct *= 1 - kept[layer] * kept[layer]
    return value, {name: gradients[name] for name in parameters}


def make_value_and_grad(library: Library) -> Callable[..., Any]:
    """The loss and its gradient."""
    return library.value_and_grad(make_loss(library.np))


def make_step(library: Library) -> Callable[..., Any]:
    """One step of gradient descent: the loss and the new parameters."""
    value_and_grad = make_value_and_grad(library)

    def step(parameters: dict[str, Any], inputs: Any, targets: Any) -> Any:
        value, gradients = value_and_grad(parameters, inputs, targets)
        return value, library.update(parameters, gradients, RATE)

    return step


def step_by_hand(parameters: dict[str, Any], inputs: Any, targets: Any) -> Any:
    """The same, written out."""
    value, gradients = by_hand(parameters, inputs, targets)
    return value, {name: parameters[name] - RATE * gradients[name] for name in parameters}


def of_batch(batch: int) -> Workload:
    """value_and_grad of a network for images."""
    sizes = (784, 512, 512, 10)
    return workload(
        f"mlp {batch}",
        f"value_and_grad of an MLP {'-'.join(map(str, sizes))}, batch {batch}, float32",
        make_value_and_grad,
        lambda: data(sizes, batch, np.float32),
        compiled_bars(against_jax=1.0, against_best=1 / 0.97, memory=batch > 100),
        by_hand,
    )


TRAINING_STEP = workload(
    "functional step",
    "training step of an MLP 64-32-10, batch 16: value_and_grad and update, parameters in a dict, float64",
    make_step,
    lambda: data((64, 32, 10), 16),
    compiled_bars(against_jax=8, against_hand=1.0),
    step_by_hand,
)
MEMORY = workload(
    "mlp memory",
    "value_and_grad of an MLP 784-2048-2048-10, batch 4096, float32: the memory of a call",
    make_value_and_grad,
    lambda: data((784, 2048, 2048, 10), 4096, np.float32),
    (Bar(FUNC, 1.0, FUNC_JIT, "peak memory"), Bar(JAX_JIT, 1.0, FUNC_JIT, "peak memory")),
    without=(HIPS, TORCH, TORCH_FUNC, TORCH_COMPILE),
)
WORKLOADS = (of_batch(32), of_batch(1024), MEMORY)
