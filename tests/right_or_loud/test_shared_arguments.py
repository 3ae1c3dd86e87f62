"""Arguments that share memory: a write to one of them is seen by the others, as in NumPy, or is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

A = np.arange(1.0, 5.0)
M = np.arange(1.0, 10.0).reshape(3, 3)


def fresh(array: Any) -> Any:
    return array.copy()


def written_first(x: Any, y: Any) -> Any:
    x[0] = 5.0
    return np.sum(y * y) + np.sum(x)


def written_second(x: Any, y: Any) -> Any:
    y *= 2.0
    return np.sum(x * x)


def written_by_view(x: Any, y: Any) -> Any:
    x.ravel()[:2] += 1.0
    return np.sum(y.T * 3.0)


def view_used(x: Any, y: Any) -> Any:
    view = y[1:]
    x[...] = 0.0
    return np.sum(view)


def both_written(x: Any, y: Any) -> Any:
    x += 1.0
    y += 1.0
    return np.sum(x)


def only_read(x: Any, y: Any) -> Any:
    return np.sum(x * y)


def read_before(x: Any, y: Any) -> Any:
    total = np.sum(y * y)
    x[0] = 5.0
    return total + np.sum(x)


def copied(x: Any, y: Any) -> Any:
    x = x.copy()
    x[0] = 5.0
    return np.sum(x * y)


def on_tree(p: Any) -> Any:
    p["x"][0] = 5.0
    return np.sum(p["y"] * 2.0)


ALIASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "the same array": lambda a: (a, a),
    "a view": lambda a: (a, a[:]),
    "overlapping parts": lambda a: (a[:3], a[1:]),
    "reversed": lambda a: (a, a[::-1]),
    "memory of a buffer": lambda a: (np.frombuffer(a.data, float), np.frombuffer(a.data, float)),
}
ROADS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "grad": lambda f: func.grad(f, argnums=(0, 1)),
    "grad by one": func.grad,
    "grad by the other": lambda f: func.grad(f, argnums=1),
    "value_and_grad": lambda f: func.value_and_grad(f, argnums=(0, 1)),
    "vjp": lambda f: lambda x, y: func.vjp(f, x, y)[0],
    "jvp": lambda f: lambda x, y: func.jvp(f, (x, y), (np.ones_like(x), np.ones_like(y))),
    "linearize": lambda f: lambda x, y: func.linearize(f, x, y)[0],
    "jacfwd": lambda f: func.jacfwd(f, argnums=(0, 1)),
    "jacrev": lambda f: func.jacrev(f, argnums=(0, 1)),
    "jacobian": lambda f: func.jacobian(f),
    "hessian": lambda f: func.hessian(f, argnums=(0, 1)),
    "hvp": lambda f: lambda x, y: func.hvp(f, (x, y), (x, y)),
    "jit": func.jit,
    "jit with numpy": lambda f: func.jit(f, compiler="numpy"),
    "make_program": func.make_program,
    "eval_shape": lambda f: lambda x, y: func.eval_shape(f, x, y),
    "checkpoint": lambda f: func.grad(func.checkpoint(f), argnums=(0, 1)),
    "custom_vjp": lambda f: func.grad(_with_rule(f), argnums=(0, 1)),
    "grad of jit": lambda f: func.grad(func.jit(f), argnums=(0, 1)),
    "grad of grad": lambda f: func.grad(lambda x, y: np.sum(func.grad(f)(x, y)), argnums=(0, 1)),
    "vmap of grad": lambda f: lambda x, y: func.vmap(func.grad(f, argnums=(0, 1)))(x[None], y[None]),
    "vmap": lambda f: lambda x, y: func.vmap(f)(x[None], y[None]),
    "vmap of one": lambda f: lambda x, y: func.vmap(f, in_dims=(0, None))(x[None], y),
    "vmap of jit": lambda f: lambda x, y: func.vmap(func.jit(f))(x[None], y[None]),
}


def _with_rule(f: Any) -> Any:
    ruled = func.custom_vjp(f)
    ruled.defvjp(lambda x, y: (f(x, y), np.shape(x)), lambda shape, ct: (np.full(shape, ct), np.full(shape, ct)))
    return ruled


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("f", [written_first, written_second, written_by_view, view_used, both_written])
def test_writes_to_arguments_that_share_memory_are_errors(f: Any, road: str, alias: str) -> None:
    x, y = ALIASES[alias](A.copy())
    before = x.copy()
    with pytest.raises((func.errors.SharedMemoryError, ValueError), match=r"share|read-only") as caught:
        ROADS[road](f)(x, y)
    notes = "".join(getattr(caught.value, "__notes__", ()))
    assert "copy" in str(caught.value) + notes
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("f", [only_read, copied])
def test_arguments_that_share_memory_may_be_read(f: Any, road: str, alias: str) -> None:
    x, y = ALIASES[alias](A.copy())
    got = ROADS[road](f)(x, y)
    expected = ROADS[road](f)(x.copy(), y.copy())
    for one, other in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        if isinstance(other, np.ndarray | np.generic):
            np.testing.assert_array_equal(one, other)
