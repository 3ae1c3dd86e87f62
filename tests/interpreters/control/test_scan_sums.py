"""Cotangents of what all steps of a loop share, summed behind the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.compile.inlining import inline
from func.interpreters.control import scan_sums

RNG = np.random.default_rng(11)
HIDDEN, INPUTS = 5, 3


def real(*shape: int) -> Any:
    return RNG.normal(size=shape) / 2


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rnn(p: Any, h: Any, x: Any) -> Any:
    h = np.tanh(h @ p["w"] + x @ p["u"] + p["b"])
    return h, h @ p["v"]


def lstm(p: Any, carry: Any, x: Any) -> Any:
    h, c = carry
    i, f, o, g = np.split(h @ p["w"] + x @ p["u"] + p["b"], 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h, c), h


def gru(p: Any, h: Any, x: Any) -> Any:
    z = sigmoid(x @ p["uz"] + h @ p["wz"] + p["bz"])
    r = sigmoid(x @ p["ur"] + h @ p["wr"])
    h = (1 - z) * h + z * np.tanh(x @ p["uh"] + (r * h) @ p["wh"])
    return h, h[..., :2]


def ode(p: Any, y: Any, t: Any) -> Any:
    """A step of the rule of the midpoint of y' = scale · tanh(A y) + t."""

    def slope(y: Any) -> Any:
        return p["scale"] * np.tanh(p["a"] @ y) + t[0]

    y = y + 0.1 * slope(y + 0.05 * slope(y))
    return y, p["scale"] * np.sum(y**2)


def filtered(p: Any, h: Any, x: Any) -> Any:
    """Products elementwise, transposes, sums of several terms, a value that does not change."""
    mixed = p["gain"] * h + p["gain"] * np.sin(h) - p["w"].T @ h + p["w"] @ np.cos(h) + np.sum(p["gain"]) * x[0]
    return np.tanh(mixed), np.sum(p["w"]) * h[0] + p["gain"][1]


def nested(p: Any, h: Any, x: Any) -> Any:
    def inner(g: Any, value: Any) -> Any:
        g = np.tanh(g @ p["w"] + value)
        return g, g * p["b"]

    h, ys = func.scan(inner, h, x)
    return h @ p["u"], np.sum(ys)


H = real(HIDDEN)
CASES: dict[str, tuple[Callable[..., Any], Any, Any, Any]] = {
    "rnn": (
        rnn,
        {"w": real(HIDDEN, HIDDEN), "u": real(INPUTS, HIDDEN), "b": real(HIDDEN), "v": real(HIDDEN, 2)},
        H,
        real(6, INPUTS),
    ),
    "rnn of a batch": (
        rnn,
        {"w": real(HIDDEN, HIDDEN), "u": real(INPUTS, HIDDEN), "b": real(HIDDEN), "v": real(HIDDEN, 2)},
        real(4, HIDDEN),
        real(6, 4, INPUTS),
    ),
    "lstm": (
        lstm,
        {"w": real(HIDDEN, 4 * HIDDEN), "u": real(INPUTS, 4 * HIDDEN), "b": real(4 * HIDDEN)},
        (H, real(HIDDEN)),
        real(6, INPUTS),
    ),
    "gru": (
        gru,
        {
            f"{kind}{gate}": real(*shape)
            for kind, shape in (("u", (INPUTS, HIDDEN)), ("w", (HIDDEN, HIDDEN)))
            for gate in "zrh"
        }
        | {"bz": real(HIDDEN)},
        H,
        real(6, INPUTS),
    ),
    "ode": (ode, {"a": real(HIDDEN, HIDDEN), "scale": np.array(0.7)}, H, real(6, 1)),
    "filtered": (filtered, {"w": real(HIDDEN, HIDDEN), "gain": real(HIDDEN)}, H, real(6, 1)),
    "nested": (
        nested,
        {"w": real(HIDDEN, HIDDEN), "b": real(HIDDEN), "u": real(HIDDEN, HIDDEN)},
        H,
        real(4, 3, HIDDEN),
    ),
    "complex": (
        rnn,
        {
            name: real(*shape) + 1j * real(*shape)
            for name, shape in (("w", (5, 5)), ("u", (3, 5)), ("b", (5,)), ("v", (5, 2)))
        },
        H + 1j * real(HIDDEN),
        real(6, INPUTS),
    ),
}


def squares(tree: Any) -> Any:
    return sum([np.sum(np.real(leaf * np.conj(leaf))) for leaf in func.tree.leaves(tree)])


def by_scan(name: str, reverse: bool = False) -> Callable[..., Any]:
    def loss(p: Any, carry: Any, xs: Any) -> Any:
        return squares(func.scan(lambda carry, x: CASES[name][0](p, carry, x), carry, xs, reverse=reverse))

    return loss


def by_loop(name: str, reverse: bool = False) -> Callable[..., Any]:
    def loss(p: Any, carry: Any, xs: Any) -> Any:
        total = 0.0
        for x in xs[::-1] if reverse else xs:
            carry, y = CASES[name][0](p, carry, x)
            total = total + squares(y)
        return total + squares(carry)

    return loss


def assert_close(found: Any, expected: Any) -> None:
    for one, other in zip(func.tree.leaves(found), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_loop(name: str, reverse: bool) -> None:
    _, *args = CASES[name]
    expected = func.grad(by_loop(name, reverse), argnums=(0, 1, 2))(*args)
    gradient = func.grad(by_scan(name, reverse), argnums=(0, 1, 2))
    assert_close(gradient(*args), expected)
    assert_close(func.jit(gradient)(*args), expected)


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_short_loops(name: str, length: int) -> None:
    _, p, carry, xs = CASES[name]
    args = p, carry, xs[:length]
    expected = func.grad(by_loop(name), argnums=(0, 1))(*args)
    assert_close(func.grad(by_scan(name), argnums=(0, 1))(*args), expected)
    assert_close(func.jit(func.grad(by_scan(name), argnums=(0, 1)))(*args), expected)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_mapped(name: str) -> None:
    _, p, carry, xs = CASES[name]
    stack = np.stack([xs, 2 * xs, -xs])
    scanned = func.vmap(func.grad(by_scan(name)), in_dims=(None, None, 0))
    expected = [func.grad(by_loop(name))(p, carry, x) for x in stack]
    for found in (scanned(p, carry, stack), func.jit(scanned)(p, carry, stack)):
        for i, one in enumerate(expected):
            assert_close(func.tree.map(lambda leaf, i=i: leaf[i], found), one)


@pytest.mark.parametrize("name", [name for name in CASES if name != "complex"])
def test_gradients_are_differentiated(name: str) -> None:
    _, p, carry, xs = CASES[name]
    tangent = func.tree.map(np.cos, p)

    def twice(loss: Any) -> Any:
        return func.jvp(lambda p: func.grad(loss)(p, carry, xs), (p,), (tangent,))[1]

    def thrice(loss: Any) -> Any:
        return func.grad(lambda p: squares(func.grad(loss)(p, carry, xs)))(p)

    for transform in (twice, thrice):
        expected = transform(by_loop(name))
        assert_close(transform(by_scan(name)), expected)
        assert_close(func.jit(lambda transform=transform: transform(by_scan(name)))(), expected)


def backward_loops(loss: Any, *args: Any) -> list[Any]:
    program = inline(func.make_program(func.grad(loss))(*args))
    scans = [equation for equation in program.equations if equation.primitive.name == "scan_call"]
    return [equation for equation in scans if equation.params["loop"].reverse]


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_the_loop_carries_no_sums_of_matrices(name: str) -> None:
    _, *args = CASES[name]
    (loop,) = backward_loops(by_scan(name), *args)
    carry = func.tree.leaves(args[1])
    assert loop.params["loop"].carries == len(carry)
    body = loop.params["body"].program
    assert max([equation.outputs[0].size for equation in body.equations]) <= 4 * HIDDEN


def test_little_room_keeps_sums_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    _, *args = CASES["lstm"]
    expected = func.grad(by_scan("lstm"))(*args)
    monkeypatch.setattr(scan_sums, "MOST_BYTES", 0)
    few = [*args[:2], np.zeros((0, INPUTS))]
    assert_close(func.grad(by_scan("lstm"))(*few), func.grad(by_loop("lstm"))(*few))
    assert_close(func.grad(by_scan("lstm"))(*args), expected)


def test_sums_of_long_values_stay_in_the_loop() -> None:
    """The derivative of a · (b · x) by a scale is one number per step: func does not store the vectors behind it."""
    b = real(50)

    def loss(scale: Any, h: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            return np.sin(scale * h) + b, None

        return np.sum(func.scan(step, h, None, length=20)[0])

    scale = np.array(0.3)
    (loop,) = backward_loops(loss, scale, b)
    stacked = [out for out in loop.outputs if out.shape[:1] == (20,)]
    assert sum([out.size for out in stacked]) <= 20

    def by_steps(scale: Any, h: Any) -> Any:
        for _ in range(20):
            h = np.sin(scale * h) + b
        return np.sum(h)

    assert_close(func.grad(loss)(scale, b), func.grad(by_steps)(scale, b))
