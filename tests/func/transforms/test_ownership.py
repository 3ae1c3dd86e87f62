"""Writes of user code, and the arrays that it may write to: results, arguments, buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.linspace(0.1, 1.0, 5)
C = np.linspace(2.0, 3.0, 5)

RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda x, c: func.vmap(lambda t: (c, c, t, t), out_dims=(None, 0, 0, 0))(x),
    "aux": lambda x, c: func.value_and_grad(lambda t: (np.sum(t), (t, t[1:], c)), has_aux=True)(x),
    "jvp": lambda x, c: func.jvp(lambda t: (t, t[1:], c), (x,), (c,)),
    "vjp": lambda x, c: func.vjp(lambda t: (t, t), x)[1]((c, c)),
    "linearize": lambda x, c: func.linearize(lambda t: (t, c), x)[1](c),
    "jacobian": lambda x, c: func.jacobian(lambda a, b: a + b, argnums=(0, 1))(x, c),
    "program": lambda x, c: func.make_program(lambda t: (t, t[1:], c))(x)(x),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_share_no_memory(name: str) -> None:
    x, c = X.copy(), C.copy()
    arrays = [leaf for leaf in func.tree.leaves(RESULTS[name](x, c)) if isinstance(leaf, np.ndarray)]
    assert arrays and all([array.flags.writeable for array in arrays])
    everything = [*arrays, x, c]
    for i, one in enumerate(everything):
        assert not any([np.shares_memory(one, other) for other in everything[:i]])


def writing(t: Any) -> Any:
    t[0] = 5.0
    t *= 2
    return np.sum(t**2)


WRITERS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: func.grad(writing)(x),
    "hessian": lambda x: func.hessian(writing)(x),
    "linearize": lambda x: func.linearize(writing, x)[1](x),
    "vmap of grad": lambda x: func.vmap(func.grad(writing))(np.stack([x, x]))[0],
    "checkpoint": lambda x: func.grad(func.checkpoint(writing))(x),
    "checkpoint with a policy": lambda x: func.grad(
        func.checkpoint(writing, policy=func.checkpoint_policies.everything_saveable)
    )(x),
    "program": lambda x: func.make_program(writing)(x)(x),
}


@pytest.mark.parametrize("name", WRITERS)
def test_functions_may_write_to_their_arguments(name: str) -> None:
    x = X.copy()
    result = WRITERS[name](x)
    np.testing.assert_array_equal(x, X)
    if "grad" in name or "checkpoint" in name:
        np.testing.assert_allclose(result, [0, *8 * X[1:]])


def test_custom_rules_may_write_to_what_they_are_given() -> None:
    @func.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    def backward(x: Any, ct: Any) -> Any:
        ct *= 2 * x
        x[:] = 0
        return (ct,)

    square.defvjp(lambda x: (x * x, x), backward)
    _, pullback = func.vjp(lambda x: square(x) + x, X)
    for _ in range(2):
        np.testing.assert_allclose(pullback(np.ones(5))[0], 2 * X + 1)


def test_long_chains_of_views_are_written() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        for _ in range(3000):
            y = y[::-1]
        y[0] = 7.0
        return np.sum(y * y)

    np.testing.assert_allclose(func.grad(f)(X), [0, *2 * X[1:]])


@dataclasses.dataclass
class Scaled:
    value: Any
    scale: Any


func.tree.register_node(Scaled, lambda s: ((s.value, s.scale), None), lambda _, parts: Scaled(*parts))


def test_axes_in_registered_classes() -> None:
    mapped = func.vmap(lambda s: s.value * s.scale, in_dims=(Scaled(0, None),))
    np.testing.assert_allclose(mapped(Scaled(X, 2.0)), 2 * X)
    with pytest.raises(func.errors.MappedAxisError, match="does not fit"):
        func.vmap(lambda p: p, in_dims=(Scaled(0, None),))((X, 2.0))


USES: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, c: x * c,
    "product from the left": lambda x, c: c * x,
    "quotient": lambda x, c: x / c,
    "quotient from the left": lambda x, c: c / x,
    "choice": lambda x, c: np.where(c > 2.0, x, c),
    "dot": lambda x, c: x @ c,
    "dot from the left": lambda x, c: c @ x,
    "outer": lambda x, c: np.outer(x, c),
    "gather": lambda x, c: x[c.astype(int)],
    "sum": lambda x, c: x**2 + c,
    "hypot": lambda x, c: np.hypot(c, x),
    "convolution": lambda x, c: np.convolve(x, c),
}
REUSERS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "grad": lambda f, x: func.grad(f)(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](2.0)[0],
    "linearize": lambda f, x: func.linearize(f, x)[1](x),
    "hessian": lambda f, x: func.hessian(f)(x),
    "program": lambda f, x: func.make_program(f)(x)(x)[0],
    "jit": lambda f, x: func.jit(f)(x),
    "grad of jit": lambda f, x: func.grad(func.jit(f))(x),
    "checkpoint": lambda f, x: func.grad(func.checkpoint(f))(x),
}


@pytest.mark.parametrize("name", REUSERS)
@pytest.mark.parametrize("use", USES)
def test_arrays_count_as_they_were_when_they_were_used(use: str, name: str) -> None:
    """A function may write to an outer array between two uses: a buffer that holds one row after the other."""
    buffer = np.empty(5)

    def total(x: Any, rows: Callable[[float], Any]) -> Any:
        result: Any = 0.0
        for scale in (1.0, 1.5, 0.7):
            result = result + np.sum(np.sin(USES[use](x, rows(scale))))
        return result

    def refilled(scale: float) -> Any:
        buffer[:] = scale * C
        return buffer

    expected = REUSERS[name](lambda x: total(x, lambda scale: scale * C), X)
    result = REUSERS[name](lambda x: total(x, refilled), X)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("use", USES)
def test_maps_do_not_see_later_writes(use: str) -> None:
    x, c = X.copy(), C.copy()

    def f(t: Any) -> Any:
        return np.sum(np.sin(USES[use](t, c)))

    program = func.make_program(f)(x)
    maps = [func.vjp(f, x)[1], func.linearize(f, x)[1], program]
    before = [np.array(maps[0](2.0)[0]), np.array(maps[1](X)), np.array(program(X)[0])]
    c[:] = 0.5
    x[:] = 0.25
    np.testing.assert_array_equal(maps[0](2.0)[0], before[0])
    np.testing.assert_array_equal(maps[1](X), before[1])
    np.testing.assert_array_equal(program(X)[0], before[2])
