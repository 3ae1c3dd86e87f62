"""The Hessian of the Rosenbrock function: second derivatives, many small vectors at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC, HIPS, JAX, JAX_JIT, TORCH, TORCH_FUNC
from benchmarks.workload import Bar, Call, Workload

SIZE = 100


def make_loss(np: Any) -> Callable[[Any], Any]:
    """The chained Rosenbrock function."""

    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return rosenbrock


def make_point() -> Any:
    """A point off the valley."""
    return np.linspace(-1.5, 1.5, SIZE)


def with_func(func: Any) -> Call:
    """The library's hessian."""
    hessian, x = func.hessian(make_loss(np)), make_point()
    return lambda: hessian(x)


def with_hips(autograd: Any) -> Call:
    """The library's hessian."""
    hessian, x = autograd.hessian(make_loss(autograd.numpy)), make_point()
    return lambda: hessian(x)


def with_torch_func(torch: Any) -> Call:
    """The library's hessian."""
    hessian, x = torch.func.hessian(make_loss(torch)), torch.from_numpy(make_point())
    return lambda: hessian(x)


def with_torch(torch: Any) -> Call:
    """The hessian of the imperative API, with all rows in one batched backward."""
    loss, x = make_loss(torch), torch.from_numpy(make_point())
    return lambda: torch.autograd.functional.hessian(loss, x, vectorize=True)


def with_jax(jax: Any) -> Call:
    """The library's hessian."""
    hessian, x = jax.hessian(make_loss(jax.numpy)), jax.numpy.asarray(make_point())
    return lambda: jax.block_until_ready(hessian(x))


def with_jax_jit(jax: Any) -> Call:
    """The library's hessian, compiled."""
    hessian, x = jax.jit(jax.hessian(make_loss(jax.numpy))), jax.numpy.asarray(make_point())
    return lambda: jax.block_until_ready(hessian(x))


def by_hand(_: Any) -> Call:
    """Three diagonals."""
    x = make_point()

    def hessian() -> Any:
        result = np.zeros((SIZE, SIZE))
        diagonal = np.einsum("ii->i", result)
        diagonal[:-1] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
        diagonal[1:] += 200.0
        off_diagonal = -400.0 * x[:-1]
        np.einsum("ii->i", result[:-1, 1:])[:] = off_diagonal
        np.einsum("ii->i", result[1:, :-1])[:] = off_diagonal
        return result

    return hessian


WORKLOAD = Workload(
    "rosenbrock",
    f"Hessian of the Rosenbrock function, n = {SIZE}, float64",
    {
        FUNC: with_func,
        HIPS: with_hips,
        TORCH_FUNC: with_torch_func,
        TORCH: with_torch,
        JAX: with_jax,
        JAX_JIT: with_jax_jit,
        BY_HAND: by_hand,
    },
    bars=(Bar(TORCH_FUNC, 0.5),),
)
