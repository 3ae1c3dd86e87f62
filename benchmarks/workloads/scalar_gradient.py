"""The entries that workloads of one kind share: the gradient of a scalar function of an array or a dict."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC, FUNC_JIT, HIPS, JAX, JAX_JIT, TORCH, TORCH_FUNC
from benchmarks.trees import convert
from benchmarks.workload import Call

MakeLoss = Callable[[Any], Callable[..., Any]]
MakeData = Callable[[], tuple[Any, ...]]


def gradient_entries(make_loss: MakeLoss, make_data: MakeData) -> Mapping[str, Callable[[Any], Call]]:
    """How each library takes the gradient of `loss(parameters, *constants)` by its first argument.

    Parameters are an array or a dict of arrays, constants are arrays.
    """

    def with_func(func: Any) -> Call:
        gradient, data = func.grad(make_loss(np)), make_data()
        return lambda: gradient(*data)

    def with_func_jit(func: Any) -> Call:
        gradient, data = func.jit(func.grad(make_loss(np))), make_data()
        return lambda: gradient(*data)

    def with_hips(autograd: Any) -> Call:
        gradient, data = autograd.grad(make_loss(autograd.numpy)), make_data()
        return lambda: gradient(*data)

    def with_torch_func(torch: Any) -> Call:
        gradient = torch.func.grad(make_loss(torch))
        data = tuple(convert(torch.from_numpy, item) for item in make_data())
        return lambda: gradient(*data)

    def with_torch(torch: Any) -> Call:
        loss = make_loss(torch)
        parameters, *constants = (convert(torch.from_numpy, item) for item in make_data())
        leaves = list(parameters.values()) if isinstance(parameters, dict) else [parameters]
        for leaf in leaves:
            leaf.requires_grad_(True)

        def backward() -> Any:
            for leaf in leaves:
                leaf.grad = None
            loss(parameters, *constants).backward()
            return convert(lambda leaf: leaf.grad, parameters)

        return backward

    def with_jax(jax: Any) -> Call:
        gradient = jax.grad(make_loss(jax.numpy))
        data = tuple(convert(jax.numpy.asarray, item) for item in make_data())
        return lambda: jax.block_until_ready(gradient(*data))

    def with_jax_jit(jax: Any) -> Call:
        gradient = jax.jit(jax.grad(make_loss(jax.numpy)))
        data = tuple(convert(jax.numpy.asarray, item) for item in make_data())
        return lambda: jax.block_until_ready(gradient(*data))

    return {
        FUNC: with_func,
        FUNC_JIT: with_func_jit,
        HIPS: with_hips,
        TORCH_FUNC: with_torch_func,
        TORCH: with_torch,
        JAX: with_jax,
        JAX_JIT: with_jax_jit,
    }
