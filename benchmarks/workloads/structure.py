"""Compiled work whose structure a library can see: norms of per-sample gradients, Jacobians of nearly diagonal maps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC, FUNC_JIT, JAX_JIT
from benchmarks.trees import convert
from benchmarks.workload import Bar, Call, Workload
from benchmarks.workloads.per_sample_gradients import BATCH, CLASSES, HIDDEN, PIXELS, make_data, make_loss

SIZE = 1000


def make_norm(np: Any, grad: Callable[..., Any]) -> Callable[..., Any]:
    """The norm of the gradient of one image's loss by all parameters."""

    def norm(parameters: Any, image: Any, target: Any) -> Any:
        gradients = grad(make_loss(np))(parameters, image, target)
        return np.sqrt(sum([np.sum(gradient**2) for gradient in gradients.values()]))

    return norm


def norms_func(func: Any) -> Call:
    """vmap of the norm, eagerly."""
    norms, data = func.vmap(make_norm(np, func.grad), in_dims=(None, 0, 0)), make_data()
    return lambda: norms(*data)


def norms_func_jit(func: Any) -> Call:
    """The same, compiled."""
    norms, data = func.jit(func.vmap(make_norm(np, func.grad), in_dims=(None, 0, 0))), make_data()
    return lambda: norms(*data)


def norms_jax(jax: Any) -> Call:
    """The same in JAX."""
    norms = jax.jit(jax.vmap(make_norm(jax.numpy, jax.grad), in_axes=(None, 0, 0)))
    data = tuple(convert(jax.numpy.asarray, item) for item in make_data())
    return lambda: jax.block_until_ready(norms(*data))


def norms_by_hand(_: Any) -> Call:
    """An outer product's norm is the product of the norms."""
    parameters, images, targets = make_data()

    def norms() -> Any:
        hidden = np.tanh(images @ parameters["w1"] + parameters["b1"])
        logits = hidden @ parameters["w2"] + parameters["b2"]
        exponentials = np.exp(logits - np.max(logits, axis=1, keepdims=True))
        ct_logits = exponentials / np.sum(exponentials, axis=1, keepdims=True) - targets
        ct_hidden = (ct_logits @ parameters["w2"].T) * (1 - hidden * hidden)
        squares = [np.sum(array * array, axis=1) for array in (images, hidden, ct_hidden, ct_logits)]
        return np.sqrt((squares[0] + 1) * squares[2] + (squares[1] + 1) * squares[3])

    return norms


def make_map(np: Any, weights: Any) -> Callable[[Any], Any]:
    """A layer: its Jacobian is the weights with scaled rows."""
    return lambda x: np.tanh(weights @ x) * 2.0


def layer_data() -> tuple[Any, Any]:
    """Weights and a point."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(SIZE, SIZE)) / SIZE**0.5, rng.normal(size=SIZE)


def jacobian_func_jit(func: Any) -> Call:
    """jit of jacrev."""
    weights, x = layer_data()
    jacobian = func.jit(func.jacrev(make_map(np, weights)))
    return lambda: jacobian(x)


def jacobian_func(func: Any) -> Call:
    """jacrev, eagerly."""
    weights, x = layer_data()
    jacobian = func.jacrev(make_map(np, weights))
    return lambda: jacobian(x)


def jacobian_jax(jax: Any) -> Call:
    """The same in JAX."""
    weights, x = map(jax.numpy.asarray, layer_data())
    jacobian = jax.jit(jax.jacrev(make_map(jax.numpy, weights)))
    return lambda: jax.block_until_ready(jacobian(x))


def jacobian_by_hand(_: Any) -> Call:
    """The weights with scaled rows."""
    weights, x = layer_data()

    def jacobian() -> Any:
        out = np.tanh(weights @ x)
        return (2.0 * (1 - out * out))[:, None] * weights

    return jacobian


NORMS = Workload(
    "norms",
    f"norms of per-sample gradients of an MLP {PIXELS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32",
    {FUNC: norms_func, FUNC_JIT: norms_func_jit, JAX_JIT: norms_jax, BY_HAND: norms_by_hand},
    bars=(Bar(JAX_JIT, 0.5, FUNC_JIT),),
)
JACOBIAN = Workload(
    "jacobian",
    f"Jacobian (reverse mode) of 2 tanh(W x), {SIZE} by {SIZE}, float64",
    {FUNC: jacobian_func, FUNC_JIT: jacobian_func_jit, JAX_JIT: jacobian_jax, BY_HAND: jacobian_by_hand},
    bars=(Bar(JAX_JIT, 0.5, FUNC_JIT),),
)
