"""Transformed functions pickle and copy: by their name where a module has them, else by what made them."""

from __future__ import annotations

import copy
import functools
import inspect
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.arange(3.0)


def square_sum(x: Any) -> Any:
    return np.sum(x * x)


def product(x: Any, y: Any) -> Any:
    return x * y


@func.jit
def jitted(x: Any) -> Any:
    return np.sum(x * x)


@func.jit(static_argnames="n")
def jitted_with_options(x: Any, n: int = 2) -> Any:
    return np.sum(x) * n


@func.grad
def gradient(x: Any) -> Any:
    return np.sum(x**3)


@func.jit
@func.vmap
def compiled_map(x: Any) -> Any:
    return x * x


@func.custom_jvp
def with_jvp(x: Any) -> Any:
    return x * 2


@with_jvp.defjvp
def with_jvp_rule(primals: Any, tangents: Any) -> Any:
    return primals[0] * 2, tangents[0] * 3


@func.custom_vjp
def with_vjp(x: Any) -> Any:
    return x * 2


def forward(x: Any) -> Any:
    return x * 2, None


def backward(residuals: Any, ct: Any) -> Any:
    return (ct * 3,)


with_vjp.defvjp(forward, backward)


@func.custom_gradient
def with_gradient(x: Any) -> Any:
    return x * x, lambda ct: ct * 3 * x


def unnamed_rule() -> Any:
    rule = func.custom_vjp(square_sum)
    rule.defvjp(forward, backward)
    return rule


class Model:
    def __init__(self, weight: float) -> None:
        self.weight = weight

    def loss(self, x: Any) -> Any:
        return np.sum(x * x) * self.weight

    @func.vmap(in_dims=(None, 0))
    def each(self, x: Any) -> Any:
        return x * self.weight

    @func.jit(static_argnums=0)
    def compiled(self, x: Any) -> Any:
        return x * self.weight


NAMED: dict[str, Any] = {
    "jit": jitted,
    "jit with options": jitted_with_options,
    "grad": gradient,
    "jit of vmap": compiled_map,
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "custom_gradient": with_gradient,
    "method": Model.each,
}
KEEP = func.checkpoint_policies.save_only_these_names("hidden")
MADE: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "grad": (func.grad(square_sum), (X,)),
    "grad with options": (func.grad(product, argnums=1), (2.0, 3.0)),
    "grad of jit": (func.grad(jitted), (X,)),
    "grad of a partial": (func.grad(functools.partial(product, 2.0)), (3.0,)),
    "grad of a custom rule": (func.grad(with_vjp), (3.0,)),
    "grad of a method": (func.grad(Model(3.0).loss), (X,)),
    "value_and_grad": (func.value_and_grad(square_sum), (X,)),
    "grad_and_value": (func.grad_and_value(square_sum), (X,)),
    "jacrev": (func.jacrev(np.sin), (X,)),
    "jacfwd": (func.jacfwd(np.sin), (X,)),
    "jacobian": (func.jacobian(np.sin), (X,)),
    "hessian": (func.hessian(square_sum), (X,)),
    "vmap": (func.vmap(square_sum), (np.eye(3),)),
    "vmap with axes": (func.vmap(product, in_axes=(0, None)), (X, 2.0)),
    "jit": (func.jit(square_sum), (X,)),
    "jit of grad": (func.jit(func.grad(square_sum)), (X,)),
    "checkpoint": (func.checkpoint(square_sum, policy=KEEP), (X,)),
    "make_program": (func.make_program(square_sum), (X,)),
    "to_source": (func.to_source(square_sum), (X,)),
    "explain": (func.debug.explain(square_sum), (X,)),
    "custom_vjp": (func.grad(unnamed_rule()), (2.0,)),
    "bound vmap": (Model(3.0).each, (X,)),
    "bound jit": (Model(3.0).compiled, (X,)),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "old pickle": lambda f: pickle.loads(pickle.dumps(f, 2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", MADE)
def test_a_transformed_function_computes_the_same_in_a_copy(name: str, how: str) -> None:
    function, args = MADE[name]
    again = COPIES[how](function)
    assert str(again(*args)) == str(function(*args))
    assert getattr(again, "__name__", None) == getattr(function, "__name__", None)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", NAMED)
def test_a_decorated_function_of_a_module_is_its_own_copy(name: str, how: str) -> None:
    assert COPIES[how](NAMED[name]) is NAMED[name]


@pytest.mark.parametrize("transform", [func.grad, func.vmap, func.jit, func.hessian, func.checkpoint, func.custom_vjp])
def test_what_cannot_be_pickled_is_named_by_python(transform: Any) -> None:
    def local_function(x: Any) -> Any:
        return x

    with pytest.raises((pickle.PicklingError, AttributeError), match="local_function"):
        pickle.dumps(transform(local_function))


def test_a_deep_copy_of_a_model_has_transforms_of_its_own_methods() -> None:
    model = Model(2.0)
    model.slope = func.grad(model.loss)  # type: ignore[attr-defined]
    twin = copy.deepcopy(model)
    model.weight = 7.0
    np.testing.assert_array_equal(twin.slope(X), 4 * X)  # type: ignore[attr-defined]


def test_processes_take_transformed_functions() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(func.grad(square_sum), [2.0, 3.0]) == [4.0, 6.0]


def test_a_transformed_function_looks_like_the_one_that_it_wraps() -> None:
    transformed = func.grad(product, argnums=1)
    assert str(inspect.signature(transformed)) == str(inspect.signature(product))
    assert transformed.__name__ == "product" and transformed.__module__ == __name__
    assert repr(transformed) == "func.grad(product, argnums=1)"
    assert repr(func.vmap(transformed, (0, None))) == "func.vmap(func.grad(product, argnums=1), in_dims=(0, None))"


def test_traced_values_reach_a_checkpointed_gradient() -> None:
    def outer(a: Any) -> Any:
        return func.checkpoint(func.grad(lambda y: y * y * a))(3.0)

    assert func.grad(outer)(2.0) == 6.0
