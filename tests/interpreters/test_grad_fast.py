"""The fast path of reverse mode: when it is taken, and that it gives the gradients of the general form."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters import grad_fast
from func.interpreters.core import Interpreter
from func.interpreters.grad import PARENTS, RULE, Grad
from func.interpreters.primitives.elementwise.partials import Partial
from func.interpreters.primitives.elementwise.table import cos
from func.interpreters.primitives.special.bessel import struve
from func.interpreters.primitives.structural.shapes import where

X = np.linspace(0.2, 1.5, 6)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "unary and binary": lambda x: np.sum(np.sin(x) * x),
    "scalar operands": lambda x: np.sum((2 * x - 1) ** 3 / 0.7),
    "broadcast operands": lambda x: np.sum(x[:, None] * np.exp(x) + np.ones((6, 1))),
    "single precision": lambda x: np.sum(np.tanh(x.astype(np.float32)) * x),
    "complex values": lambda x: np.sum(np.real(np.exp(1j * x) * (x + 2j))),
    "products": lambda x: np.sum((np.outer(x, x) @ x) ** 2),
    "linear maps": lambda x: np.sum(np.cumsum(x.reshape(2, 3), axis=1).T[1:] * 2),
    "infinite partials": lambda x: np.sum(np.where(x > 0.5, x, np.sqrt(x - 0.2))),
    "zero-dimensional": lambda x: x[0] * np.log(x[1]) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = FUNCTIONS[name]
    transforms = (func.grad(f), func.jacrev(func.grad(f)), func.vmap(func.grad(f)), func.jit(func.grad(f)))
    points = (X, X, np.stack([X, X + 0.1]), X)
    fast = [transform(point) for transform, point in zip(transforms, points, strict=True)]
    monkeypatch.setattr(grad_fast, "ENABLED", False)
    transforms = (func.grad(f), func.jacrev(func.grad(f)), func.vmap(func.grad(f)), func.jit(func.grad(f)))
    for transform, point, expected in zip(transforms, points, fast, strict=True):
        got = transform(point)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-14)


def rules(f: Callable[[Any], Any]) -> list[Any]:
    """The rules of the nodes on the first path from an output to the leaf, and the interpreter's type in front."""
    interpreter = grad_fast.grad_interpreter("grad")
    node = f(interpreter.lift(X))._attached
    path: list[Any] = [type(interpreter)]
    while node is not None:
        path.append(node[RULE])
        node = next((parent for parent in node[PARENTS] if parent is not None), None)
    return path


def test_without_the_fast_path_primitives_are_their_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, total, product, *_ = rules(lambda x: np.sum(np.sin(x) * x))
    assert kind is grad_fast.FastGrad and isinstance(product, grad_fast.UncheckedBinary)
    monkeypatch.setattr(grad_fast, "ENABLED", False)
    kind, same_total, product, sine, leaf = rules(lambda x: np.sum(np.sin(x) * x))
    assert kind is Grad and same_total is total
    assert [rule.name for rule in (product, sine, leaf)] == ["multiply", "sin", "leaf"]
    assert not isinstance(product, (grad_fast.FastRule, grad_fast.UncheckedRule))
    assert Grad.apply1 is Interpreter.apply1 and Grad.apply2 is Interpreter.apply2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_partials_have_the_dtype_of_their_operands(dtype: Any) -> None:
    """Also where SciPy computes them in double precision."""
    x = X.astype(dtype)
    assert struve(0.0, x).dtype == np.float64
    for rule in (lambda x: struve(0.0, x), lambda x: where(x > 0.5, 1.0, 0.0), lambda x: cos(x) * 2):
        partial = grad_fast.UncheckedPartial(Partial(rule, 1))
        for _ in range(2):
            factor = partial.evaluate([x, None])
            assert factor.dtype == dtype
            np.testing.assert_array_equal(factor, np.asarray(rule(x)).astype(dtype))


@pytest.mark.parametrize("enabled", [True, False])
def test_pullbacks_are_pickled(enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grad_fast, "ENABLED", enabled)
    _, pullback = func.vjp(lambda x: np.sin(x) * x * 2.0, X)
    (expected,) = pullback(np.ones(6))
    (got,) = pickle.loads(pickle.dumps(pullback))(np.ones(6))
    np.testing.assert_array_equal(got, expected)
