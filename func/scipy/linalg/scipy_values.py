"""Values from SciPy, derivatives from equations, for one matrix or a batch of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy.linalg as _scipy

from func.host.scipy_hooks import original
from func.interpreters.core import Array, Aval, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line
from func.transforms.custom import custom_jvp
from func.transforms.outside import pure_callback
from func.transforms.vmapping import vmap

Derivative: TypeAlias = Callable[[Sequence[Array], Sequence[Array], Sequence[Array]], Sequence[Array]]
"""From arrays, their tangents and the values of a function to the tangents of the values."""


def scipy_function(name: str) -> Callable[..., Any]:
    """A function of scipy.linalg without its hook."""
    return original(getattr(_scipy, name))


def by_equation(
    function: Callable[..., Any], outs: Sequence[Aval], derivative: Derivative, arrays: Sequence[Array]
) -> list[Array]:
    """function(*arrays), a sequence of plain arrays like `outs`, with a derivative that is linear in the tangents."""

    def untraced_call(*plain: Any) -> list[Any]:
        return [np.asarray(x, out.dtype) for x, out in zip(function(*plain), outs, strict=True)]

    @custom_jvp
    def values(*arrays: Array) -> list[Array]:
        found: list[Array] = pure_callback(untraced_call, list(outs), *arrays, vmap_method="sequential")
        return found

    @values.defjvp
    def values_jvp(primals: Any, tangents: Any) -> Any:
        found = values(*primals)
        return found, list(derivative(primals, tangents, found))

    result: list[Array] = values(*arrays)
    return result


def over_batch(function: Callable[..., Any], arrays: Sequence[Any], cores: Sequence[int], name: str) -> Any:
    """function(*arrays) of arrays with these numbers of axes, called for each element of their common batch axes.

    None represents a missing argument.
    """
    given = [i for i, x in enumerate(arrays) if x is not None]
    batches = [shape_of(arrays[i])[: len(shape_of(arrays[i])) - cores[i]] for i in given]
    if not any(batches):
        return function(*arrays)
    batch = np.broadcast_shapes(*batches)
    size = math.prod(batch)
    if size == 0:
        raise ValueError(f"`{name}` does not support zero-size batches.")
    rows = []
    for i in given:
        core = shape_of(arrays[i])[len(shape_of(arrays[i])) - cores[i] :]
        rows.append(np.reshape(np.broadcast_to(arrays[i], (*batch, *core)), (size, *core)))

    def of_one(*elements: Array) -> Any:
        filled: list[Any] = [None] * len(arrays)
        for i, element in zip(given, elements, strict=True):
            filled[i] = element
        return function(*filled)

    out = vmap(of_one)(*rows)
    if isinstance(out, (tuple, list)):
        return tuple([np.reshape(x, (*batch, *shape_of(x)[1:])) for x in out])
    return np.reshape(out, (*batch, *shape_of(out)[1:]))


def refuse_derivative(name: str, why: str, instead: str) -> NoReturn:
    """Raise the error for a result that has no derivative."""
    raise NotDifferentiableError(f"scipy.linalg.{name}: {why}{at_line()}\n{instead}")


def adjoint(a: Array) -> Array:
    """The conjugate transpose of a matrix."""
    return np.conjugate(np.swapaxes(a, -1, -2))
