"""All derivatives of a function of one variable up to an order: Taylor mode of func against that of JAX."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC, FUNC_JIT, JAX_JET
from benchmarks.libraries import Library
from benchmarks.suite import entry
from benchmarks.workload import Bar, Workload

ORDER, POINTS = 10, 1000


def curve(np: Any) -> Callable[[Any], Any]:
    """The function that is differentiated."""
    return lambda x: np.tanh(np.sin(x) + x * x / 2)


def make_derivatives(library: Library) -> Callable[..., Any]:
    """The derivatives of order 1 … ORDER, in a list."""
    return lambda x: list(library.module.derivatives(curve(library.np), ORDER)(x)[1:])


def make_jet(library: Library) -> Callable[..., Any]:
    """The same by JAX's jet."""
    jet = import_module("jax.experimental.jet").jet

    def derivatives(x: Any) -> Any:
        zero = library.np.zeros_like(x)
        return jet(curve(library.np), (x,), ([zero + 1.0, *[zero] * (ORDER - 1)],))[1]

    return derivatives


def data() -> tuple[Any, ...]:
    """Points around zero."""
    return (np.linspace(-2.0, 2.0, POINTS),)


WORKLOAD = Workload(
    f"derivatives 1 to {ORDER}",
    f"derivatives of order 1 … {ORDER} of tanh(sin x + x²/2), {POINTS} points, float64",
    {
        FUNC: entry(FUNC, make_derivatives, data),
        FUNC_JIT: entry(FUNC_JIT, make_derivatives, data),
        JAX_JET: entry(JAX_JET, make_jet, data),
    },
    (Bar(JAX_JET, 0.25, FUNC_JIT),),
)
