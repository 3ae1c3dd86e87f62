"""Calls that users of NumPy, JAX, PyTorch and autograd get wrong at first: each error says what to write."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.array([1.0, 2.0, 3.0])


def squares(x: Any) -> Any:
    return np.sum(x**2)


def product(x: Any, y: Any = 1.0) -> Any:
    return np.sum(x * y)


def tensor() -> Any:
    return func.tensor([1.0, 2.0], requires_grad=True)


def absolute(x: Any) -> Any:
    return x if x > 0 else -x


def attribute(name: str, module: Any = func) -> Callable[[], Any]:
    return lambda: getattr(module, name)


def method(name: str) -> Callable[[], Any]:
    return lambda: getattr(tensor(), name)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "func.Tensor": (lambda: func.Tensor([1.0]), r"make one with func\.tensor\(data\)"),  # type: ignore[call-arg, arg-type]
    "a default by name": (
        lambda: func.grad(lambda x, y=1.0, /: x * y, argnames="y")(X),
        r"was not called with it; pass it, y=1\.0",
    ),
    "all further arguments": (lambda: func.grad(lambda *xs: sum(xs), argnames="xs")(1.0, 2.0), r"choose one of them"),
    "map with both spellings": (lambda: func.map(np.sin, X, chunk_size=1, batch_size=1), r"give one of them"),
    "grad with its argument": (lambda: func.grad(squares, X), r"did you mean func\.grad\(squares\)"),
    "make_program with its argument": (
        lambda: func.make_program(squares, X),  # type: ignore[arg-type]
        r"did you mean func\.make_program\(squares\)",
    ),
    "elementwise_grad of another shape": (lambda: func.elementwise_grad(lambda x: x[:1])(X), r"take func\.jacobian"),
    "elementwise_grad of two outputs": (lambda: func.elementwise_grad(lambda x: (x, x))(X), r"one array as output"),
    "a name in argnums": (lambda: func.grad(product, argnums="y")(X), r"select arguments by name with argnames='y'"),  # type: ignore[arg-type]
    "names in argnums": (lambda: func.grad(product, argnums=("x", "y"))(X), r"argnames=\('x', 'y'\)"),  # type: ignore[arg-type]
    "vmap of a list": (lambda: func.vmap(np.sin)([1.0, 2.0]), r"x is a tree of numbers: pass np\.array\(x\)"),
    "save of a dict": (lambda: func.save({"w": X}, "w.func"), r"func\.tree\.save\(x, path\)"),  # type: ignore[arg-type]
    "PRNGKey": (attribute("PRNGKey", func.random), r"func\.random\.key\(seed\)"),
    "ravel_pytree": (attribute("ravel_pytree"), r"func\.tree\.ravel"),
    "jac": (attribute("jac"), r"func\.jacobian"),
    "hess": (attribute("hess"), r"func\.hessian"),
    "relu": (attribute("relu"), r"np\.maximum\(x, 0\)"),
    "manual_seed": (attribute("manual_seed"), r"func\.random\.key\(seed\)"),
    "zeros of func": (attribute("zeros"), r"func\.intercept\(\)"),
    "no such name": (lambda: func.grad(product, argnames="z")(X), r"its parameters are x, y"),
    "jvp without tuples": (lambda: func.jvp(squares, X, X), r"write \(x,\) for a single argument"),
    "a cotangent in a tuple": (lambda: func.vjp(squares, X)[1]((1.0,)), r"not wrapped in a tuple"),
    "a list of numbers": (lambda: func.grad(squares)([1.0, 2.0]), r"pass np\.array"),
    "no_grad of a number": (lambda: func.no_grad(3), r"write `with func\.no_grad\(\):`"),  # type: ignore[call-arg, arg-type]
    "dim": (lambda: func.grad(lambda x: np.sum(x, dim=0))(X), r"axis="),  # type: ignore[call-overload]
    "keepdim": (lambda: func.grad(lambda x: x.mean(0, keepdim=True).sum())(X), r"keepdims="),
    "json": (lambda: func.grad(lambda x: json.dumps({"x": x}))(1.0), r"return it, and write it outside"),
    "hvp of a vector": (lambda: func.hvp(np.sin, (X,), (X,)), r"^func\.hvp needs a scalar output"),
    "vhp of a vector": (lambda: func.vhp(np.sin, (X,), (X,)), r"^func\.vhp needs a scalar output"),
    "a branch on no element": (lambda: func.vmap(absolute)(np.zeros(0)), r"mapped axis is empty[^$]*absolute"),
    "view": (lambda: tensor().view(-1), r"x\.reshape\(-1\)"),
    "arange": (lambda: func.jit(lambda n: np.arange(n), guards=False)(3), r"static_argnums"),
    "cpu": (method("cpu"), r"where its data are"),
    "cuda": (method("cuda"), r"cupy\.asarray"),
    "sigmoid": (method("sigmoid"), r"func\.special\.expit"),
    "norm": (method("norm"), r"np\.linalg\.norm\(x\)"),
    "matmul": (lambda: tensor().matmul(X), r"x @ y"),
    "masked_fill": (method("masked_fill"), r"np\.where"),
    "gather": (method("gather"), r"np\.take_along_axis"),
    "cat": (method("cat"), r"np\.concatenate"),
    "maximum": (lambda: tensor().maximum(X), r"np\.maximum\(x, y\)"),
    "add_": (method("add_"), r"x \+= y"),
    "copy_": (method("copy_"), r"x\[\.\.\.\] = y"),
    "concatenate": (method("concatenate"), r"np\.concatenate\(x\)"),
    "strides": (method("strides"), r"sliding_window_view"),
    "setting strides": (lambda: setattr(tensor(), "strides", (8,)), r"sliding_window_view"),
    "data": (lambda: func.grad(lambda x: np.sum(x.data))(X), r"func\.stop_gradient\(x\)"),
    "nothing like it": (lambda: func.grad(lambda x: x.nothing_like_it())(X), r"the attributes of NumPy's arrays"),
    "hesian": (attribute("hesian"), r"did you mean func\.hessian\?"),
    "from_numpy": (attribute("from_numpy"), r"func\.tensor\(array\)"),
    "zeros": (attribute("zeros"), r"np\.zeros"),
    "sin": (attribute("sin"), r"np\.sin"),
    "randn": (attribute("randn"), r"func\.random\.normal\(key, shape\)"),
    "pmap": (attribute("pmap"), r"func\.vmap"),
    "lax": (attribute("lax"), r"func\.scan"),
    "compile": (attribute("compile"), r"func\.jit"),
    "make_jaxpr": (attribute("make_jaxpr"), r"func\.make_program"),
    "tree_map": (attribute("tree_map"), r"func\.tree\.map"),
    "make_hvp": (attribute("make_hvp"), r"func\.hvp"),
    "Variable": (attribute("Variable"), r"requires_grad=True"),
    "functional_call": (attribute("functional_call"), r"trees of arrays"),
    "numpy.random": (attribute("random", func.numpy), r"func\.random"),
    "tree.tree_map": (attribute("tree_map", func.tree), r"func\.tree\.map"),
    "tree.flaten": (attribute("flaten", func.tree), r"did you mean func\.tree\.flatten\?"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_says_what_to_write(name: str) -> None:
    call, pattern = CALLS[name]
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert re.search(pattern, text), text


def test_names_that_are_missing_stay_attribute_errors() -> None:
    assert not hasattr(func, "pmap") and getattr(func, "nothing_like_it", 3) == 3
    assert not hasattr(func.numpy, "__wrapped__") and not hasattr(func.tree, "_private")
    for name in ("cuda", "concatenate", "add_", "strides", "data_ptr", "__array_interface__"):
        assert not hasattr(tensor(), name) and not hasattr(type(tensor()), name)
    assert not hasattr(type(tensor()), "__getattr__"), "it makes all attributes of traced arrays slow"


def _wrong_shape(x: Any) -> Any:
    return np.ones(3) @ x


RAISING: dict[str, Callable[[], Any]] = {
    "grad": lambda: func.grad(_wrong_shape)(np.ones(2)),
    "value_and_grad": lambda: func.value_and_grad(_wrong_shape)(np.ones(2)),
    "jacrev": lambda: func.jacrev(_wrong_shape)(np.ones(2)),
    "hessian": lambda: func.hessian(_wrong_shape)(np.ones(2)),
    "jvp": lambda: func.jvp(_wrong_shape, (np.ones(2),), (np.ones(2),)),
    "vjp": lambda: func.vjp(_wrong_shape, np.ones(2)),
    "linearize": lambda: func.linearize(_wrong_shape, np.ones(2)),
    "vmap": lambda: func.vmap(_wrong_shape)(np.ones((2, 2))),
    "jit": lambda: func.jit(_wrong_shape)(np.ones(2)),
    "grad of jit": lambda: func.grad(func.jit(_wrong_shape))(np.ones(2)),
    "jit of grad": lambda: func.jit(func.grad(_wrong_shape))(np.ones(2)),
    "checkpoint": lambda: func.grad(func.checkpoint(_wrong_shape))(np.ones(2)),
    "make_program": lambda: func.make_program(_wrong_shape)(np.ones(2)),
}


@pytest.mark.parametrize("name", RAISING)
def test_tracebacks_have_the_users_lines_alone(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        RAISING[name]()
    files = {entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_the_gradient_of_a_result_is_asked_for() -> None:
    x = func.tensor(X, requires_grad=True)
    y = x * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match=r"call retain_grad\(\) on it before backward") as seen:
        assert y.grad is None
    assert seen[0].filename == __file__
    y = x * 2
    y.retain_grad()
    assert y.grad is None  # no backward pass has come, and one will fill it
    y.sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), np.ones(3))
    assert func.tensor(X, requires_grad=True).grad is None and func.tensor(X).grad is None


def test_elementwise_grad_of_a_branch_names_vmap() -> None:
    with pytest.raises(ValueError, match="ambiguous") as caught:
        func.elementwise_grad(absolute)(X)
    assert caught.value.__notes__ == ["For a function of one number write func.vmap(func.grad(f))(x)."]


def test_spy_of_a_function_is_the_picture_of_its_jacobian() -> None:
    assert func.spy(lambda x: x[1:] - x[:-1])(X) == func.spy(np.array([[1, 1, 0], [0, 1, 1]]))
