"""Second derivatives of networks, Jacobians, and derivatives of ever higher order."""

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC_JIT, HIPS, JAX_JET, JAX_JIT, TORCH
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload
from benchmarks.trees import as_type
from benchmarks.workload import BEST_PEER, Bar, Workload
from benchmarks.workloads import mlp

LAPLACIAN_SIZES = (64, 256, 256, 1)
HESSIAN_SIZES, HVP_SIZES = (20, 32, 10), (784, 1024, 200, 10)
SIZE, POINTS = 1000, 1000


def unpack(vector: Any, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The parameters that a vector holds one after the other."""
    parameters, start = {}, 0
    for layer, (rows, columns) in enumerate(pairwise(sizes)):
        for name, shape in ((f"w{layer}", (rows, columns)), (f"b{layer}", (columns,))):
            stop = start + rows * columns if name[0] == "w" else start + columns
            parameters[name] = vector[start:stop].reshape(shape)
            start = stop
    return parameters


def make_hessian(library: Library) -> Callable[..., Any]:
    """The Hessian of a network's loss by all parameters, in one vector."""
    loss = mlp.make_loss(library.np)

    def hessian(vector: Any, inputs: Any, targets: Any) -> Any:
        return library.hessian(lambda vector: loss(unpack(vector, HESSIAN_SIZES), inputs, targets))(vector)

    return hessian


def hessian_data() -> tuple[Any, ...]:
    """Parameters in one vector, a batch of 64."""
    parameters, *batch = mlp.data(HESSIAN_SIZES, 64)
    return np.concatenate([value.ravel() for value in parameters.values()]), *batch


def make_laplacian(library: Library) -> Callable[..., Any]:
    """The Laplacians of a network by its inputs, for a batch."""
    return lambda parameters, inputs: library.vmap(library.laplacian(lambda x: scalar(library, parameters, x)), (0,))(
        inputs
    )


def scalar(library: Library, parameters: Any, x: Any) -> Any:
    """A network with tanh layers and one output, of one row."""
    layers = len(LAPLACIAN_SIZES) - 1
    for layer in range(layers):
        x = x @ parameters[f"w{layer}"] + parameters[f"b{layer}"]
        x = library.np.tanh(x) if layer + 1 < layers else x
    return x[0]


def laplacian_data() -> tuple[Any, ...]:
    """Parameters, a batch of 256."""
    generator = np.random.default_rng(0)
    return mlp.initial(LAPLACIAN_SIZES, generator), generator.normal(size=(256, LAPLACIAN_SIZES[0]))


def make_hvp(library: Library) -> Callable[..., Any]:
    """The product of the Hessian of a network's loss with a vector, in dicts."""
    loss = mlp.make_loss(library.np)

    def product(parameters: Any, vector: Any, inputs: Any, targets: Any) -> Any:
        return library.hvp(lambda parameters: loss(parameters, inputs, targets))(parameters, vector)

    return product


def hvp_data() -> tuple[Any, ...]:
    """Parameters, a vector, a batch of 64, float32."""
    parameters, *batch = mlp.data(HVP_SIZES, 64)
    vector = mlp.initial(HVP_SIZES, np.random.default_rng(1))
    return as_type(np.float32, (parameters, vector, *batch))


def make_jacobian(transform: str) -> Callable[[Library], Callable[..., Any]]:
    """The Jacobian of a layer: its weights with scaled rows."""

    def make(library: Library) -> Callable[..., Any]:
        jacobian = getattr(library, transform)
        return lambda x, weights: jacobian(lambda x: library.np.tanh(weights @ x) * 2.0)(x)

    return make


def layer_data() -> tuple[Any, Any]:
    """A point and weights."""
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(SIZE, SIZE)) / SIZE**0.5
    return generator.normal(size=SIZE), weights


def jacobian_by_hand(x: Any, weights: Any) -> Any:
    """2 (1 - tanh²) for each row."""
    out = np.tanh(weights @ x)
    return (2.0 * (1 - out * out))[:, None] * weights


def bump(np: Any) -> Callable[[Any], Any]:
    """The function that is differentiated again and again."""
    return lambda x: np.sin(x) * np.exp(-x * x)


def make_nested(order: int) -> Callable[[Library], Callable[..., Any]]:
    """grad of grad of …"""
    return lambda library: library.nested(bump(library.np), order)


def make_taylor(order: int) -> Callable[[Library], Callable[..., Any]]:
    """The same by propagating Taylor polynomials. Source: J. Bettencourt, M. Johnson, D. Duvenaud (2019)."""

    def make(library: Library) -> Callable[..., Any]:
        jet = import_module("jax.experimental.jet").jet

        def derivative(x: Any) -> Any:
            zero = library.np.zeros_like(x)
            series = [zero + 1.0, *[zero] * (order - 1)]
            return jet(bump(library.np), (x,), (series,))[1][-1]

        return derivative

    return make


def nested_by_hand(x: Any) -> Any:
    """(cos x - 2 x sin x) exp(-x²)."""
    return (np.cos(x) - 2 * x * np.sin(x)) * np.exp(-x * x)


def of_order(order: int) -> Workload:
    """The workload of one order."""

    def data() -> tuple[Any, ...]:
        return (np.linspace(-2.0, 2.0, POINTS),)

    return workload(
        f"nested {order}",
        f"derivative of order {order} of sin(x) exp(-x²) by nested grad, {POINTS} points, float64",
        make_nested(order),
        data,
        compiled_bars(against_jax=1.5),
        nested_by_hand if order == 1 else None,
        others={JAX_JET: entry(JAX_JET, make_taylor(order), data)},
    )


HESSIAN = workload(
    "mlp hessian",
    f"Hessian of an MLP {'-'.join(map(str, HESSIAN_SIZES))} (1002 parameters), batch 64, float64",
    make_hessian,
    hessian_data,
    compiled_bars(against_jax=1.5, memory=True),
)
HVP = workload(
    "mlp hvp",
    f"Hessian-vector product of an MLP {'-'.join(map(str, HVP_SIZES))} (1.01 M parameters), batch 64, float32",
    make_hvp,
    hvp_data,
    compiled_bars(against_jax=1.1, memory=True),
)
LAPLACIAN = workload(
    "mlp laplacian",
    f"Laplacian by the inputs of an MLP {'-'.join(map(str, LAPLACIAN_SIZES))}, batch 256, float64",
    make_laplacian,
    laplacian_data,
    (Bar(JAX_JIT, 0.5, FUNC_JIT), Bar(BEST_PEER, 0.5, FUNC_JIT)),
    without=(HIPS, TORCH),
)
JACOBIANS = tuple(
    workload(
        f"jacobian {name}",
        f"{transform} of 2 tanh(W x), {SIZE} by {SIZE}, float64",
        make_jacobian(transform),
        layer_data,
        compiled_bars(against_jax=10, memory=True),
        jacobian_by_hand,
    )
    for name, transform in (("reverse", "jacrev"), ("forward", "jacfwd"))
)
NESTED = tuple(map(of_order, range(1, 7)))
