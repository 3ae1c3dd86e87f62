"""The checks of func.testing pass what is right, and say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func import errors
from func.testing import check_batch, check_grads, check_jvp, check_vjp

X = np.linspace(0.2, 0.8, 4)
Z = X + 1j * X[::-1]


def tree_function(params: Any, x: Any, count: int) -> Any:
    hidden = np.tanh(x @ params["w"] + params["b"][0])
    return {"loss": np.sum(hidden**2) * count, "count": count, "hidden": (hidden, [np.argmax(hidden)])}


PARAMS = {"w": np.linspace(-1.0, 1.0, 12).reshape(4, 3), "b": [np.ones(3), 7]}

RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "number": (np.sin, (0.5,)),
    "array": (lambda x: np.sin(x) * x[::-1], (X,)),
    "two arguments": (lambda x, y: np.sum(x * y**2), (X, 2.0)),
    "trees with integers": (tree_function, (PARAMS, X, 3)),
    "complex": (lambda z: np.exp(z) * np.conj(z) + np.abs(z), (Z,)),
    "complex and real": (lambda z, x: np.real(z * x), (Z, X)),
    "single precision": (lambda x: np.cumsum(np.sin(x)), (X.astype(np.float32),)),
    "narrowing": (lambda x: np.sin(x).astype(np.float32), (X,)),
    "matrix": (lambda a: np.linalg.inv(a), (np.eye(3) + 0.1,)),
    "constant": (lambda x: np.ones(3), (X,)),
    "empty": (lambda x: x * 2, (np.zeros(0),)),
    "large numbers": (lambda x: 1e6 * np.sin(x), (X,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    function, args = RIGHT[name]
    check_grads(function, args, order=2)


def test_third_order_in_each_mode() -> None:
    check_grads(lambda x: np.sum(np.exp(x) * x), (X,), order=3, modes="fwd")
    check_grads(lambda x: np.sum(np.exp(x) * x), (X,), order=3, modes=["rev"])


def wrong_at_first_order() -> Callable[[Any], Any]:
    @func.custom_jvp
    def cube(x: Any) -> Any:
        return x**3

    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 2 * primals[0] ** 2 * tangents[0]))
    return cube


def wrong_at_second_order() -> Callable[[Any], Any]:
    @func.custom_jvp
    def cube(x: Any) -> Any:
        return x**3

    def rule(primals: Any, tangents: Any) -> Any:
        return primals[0] ** 3, 3 * func.stop_gradient(primals[0]) ** 2 * tangents[0]

    cube.defjvp(rule)
    return cube


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_derivative_is_named(mode: str) -> None:
    mark = {"fwd": "the jvp of cube", "rev": "the vjp of cube"}[mode]
    with pytest.raises(AssertionError, match=mark):
        check_grads(wrong_at_first_order(), (X,), order=1, modes=mode)
    check_grads(wrong_at_second_order(), (X,), order=1, modes=mode)
    with pytest.raises(AssertionError, match=f"of {mark}"):
        check_grads(wrong_at_second_order(), (X,), order=2, modes=mode)


def test_one_wrong_element_of_a_single_precision_gradient_is_found() -> None:
    @func.custom_vjp
    def identity(x: Any) -> Any:
        return x * 1

    identity.defvjp(lambda x: (x * 1, None), lambda _, ct: (ct * np.array([1, 1, 1.01, 1], np.float32),))
    with pytest.raises(AssertionError, match="differs from <ct, J v>"):
        check_grads(identity, (X.astype(np.float32),), order=1, modes="rev")


def test_a_derivative_that_is_not_a_number_fails() -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        check_grads(np.sqrt, (0.0,), order=1, modes="fwd")


@pytest.mark.parametrize(
    ("f_jvp", "words"),
    [
        (lambda primals, tangents: (np.sin(*primals), np.cos(*primals)), "the jvp of sin"),
        (lambda primals, tangents: (np.cos(*primals), np.cos(*primals) * tangents[0]), "the output of the jvp of sin"),
        (lambda primals, tangents: (np.sin(*primals), tangents[0][:2]), r"has shape \(2,\)"),
        (lambda primals, tangents: (np.sin(*primals), tangents[0].astype(np.float32)), "and dtype float32, expected"),
        (lambda primals, tangents: (np.sin(*primals), ()), "tangent's tree is not the output's"),
    ],
)
def test_wrong_jvp(f_jvp: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_jvp(np.sin, f_jvp, (X,))


@pytest.mark.parametrize(
    ("f_vjp", "words"),
    [
        (lambda x: (np.sin(x), lambda ct: (ct,)), "differs from <ct, J v>"),
        (lambda x: (np.cos(x), lambda ct: (np.cos(x) * ct,)), "the output of the vjp of sin"),
        (lambda x: (np.sin(x), lambda ct: np.cos(x) * ct), "returned a ndarray, not a tuple"),
        (lambda x: (np.sin(x), lambda ct: (ct, ct)), "returned 2 cotangents for 1 arguments"),
        (lambda x: (np.sin(x), lambda ct: (ct[:2],)), r"has shape \(2,\)"),
        (lambda x: (np.sin(x), lambda ct: ([ct, ct],)), "cotangents' tree is not the argument's"),
    ],
)
def test_wrong_vjp(f_vjp: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_vjp(np.sin, f_vjp, (X,))


def test_holomorphic_pullback_is_the_adjoint() -> None:
    check_vjp(np.exp, lambda z: (np.exp(z), lambda ct: (np.conj(np.exp(z)) * ct,)), (Z,))
    with pytest.raises(AssertionError, match="differs"):
        check_vjp(np.exp, lambda z: (np.exp(z), lambda ct: (np.exp(z) * ct,)), (Z,))


def test_right_batching_passes() -> None:
    a, b = np.arange(24.0).reshape(2, 3, 4), np.ones(4)
    check_batch(lambda x, y: {"p": x @ y, "q": (x, 3)}, (a, b), in_dims=(1, None), out_dims={"p": 0, "q": (1, 0)})
    check_batch(lambda p, y: p["x"] * y, ({"x": a}, np.ones(2)), out_dims=-1)
    check_batch(lambda x: 2.0 * b, (a,), out_dims=None)
    check_batch(lambda x: x[0] if x[0] > 0 else x.sum(), (a[0],))
    check_batch(np.argsort, (a,))


def test_wrong_batching_is_named() -> None:
    @func.custom_vmap
    def twice(x: Any) -> Any:
        return {"y": x + x}

    twice.def_vmap(lambda size, batched, x: ({"y": 2.0001 * x}, batched[0]))
    with pytest.raises(AssertionError, match=r"output\['y'\] of the mapped twice"):
        check_batch(twice, (X,))
    check_batch(twice, (X,), rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: check_grads(3, (1.0,), 1), TypeError, "takes a function first"),
        (lambda: check_grads(np.sin, 1.0, 1), TypeError, "args must be a tuple"),
        (lambda: check_grads(np.sin, (1,), 1), errors.ArgumentError, "no argument of sin is floating point"),
        (lambda: check_grads(np.sin, (1.0,), 0), errors.ArgumentError, "order must be a positive int, not 0"),
        (lambda: check_grads(np.sin, (1.0,), 1, modes="back"), errors.ArgumentError, "'fwd', 'rev' or both"),
        (lambda: check_grads(np.argmax, (X,), 1), AssertionError, "argmax returned no floating point output"),
        (lambda: check_batch(np.sin, (1.0,)), errors.MappedAxisError, "is a scalar"),
    ],
)
def test_bad_calls(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
