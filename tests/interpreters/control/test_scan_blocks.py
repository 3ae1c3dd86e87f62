"""Recursive checkpointing of scans: the same derivatives in blocks of any number of levels, and less memory."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.calls.compiled_call import SCANS_KEEP
from func.interpreters.control.scan_blocks import WORTH, block_lengths
from func.interpreters.core import Aval

RNG = np.random.default_rng(0)
SIZE = 6
MATRIX = RNG.standard_normal((SIZE, SIZE)) / 3
START = RNG.standard_normal(SIZE)
F64 = np.dtype(np.float64)


def state(params: Any, h: Any, xs: Any, reverse: bool = False, length: int | None = None) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(params[0] @ h + params[1] * (1.0 if x is None else x))
        return h, np.sum(h * h)

    h, ys = func.scan(step, h, xs, length, reverse)
    return np.sum(h) + np.sum(np.sin(ys))


def in_place(params: Any, h: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h[0] = np.sin(h[1]) + x[0]
        h[1:] *= params[1][1:]
        return h, h[::2]

    h, ys = func.scan(step, h * 1.0, xs)
    return np.sum(h**2) + np.sum(ys**3)


def nested(params: Any, h: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h, _ = func.scan(lambda g, _: (np.tanh(params[0] @ g), None), h + x, None, length=9)
        return h, None

    return np.sum(func.scan(step, h, xs)[0] ** 2)


def whole_numbers(params: Any, h: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        h, count = carry
        return (np.sin(h * x) + count * params[1], count + 1), count

    (h, count), counts = func.scan(step, (h, 0), xs)
    return np.sum(h**2) * count + np.sum(counts)


def nothing_carried(params: Any, h: Any, xs: Any) -> Any:
    return np.sum(func.scan(lambda c, x: (c, np.sin(params[0] @ x) * h), None, xs)[1] ** 2)


MODELS: dict[str, Callable[..., Any]] = {
    "carry and ys": state,
    "backwards": lambda p, h, xs: state(p, h, xs, True),
    "without xs": lambda p, h, xs: state(p, h, None, length=len(xs)) + np.sum(xs),
    "writes in place": in_place,
    "a scan inside": nested,
    "whole numbers": whole_numbers,
    "nothing carried": nothing_carried,
}


def limited(function: Callable[..., Any], most: int, *args: Any) -> Any:
    token = SCANS_KEEP.set((most, None))
    try:
        return function(*args)
    finally:
        SCANS_KEEP.reset(token)


def agree(x: Any, y: Any, rtol: float = 1e-11) -> None:
    for a, b in zip(func.tree.leaves(x), func.tree.leaves(y), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
        assert a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize("length", [1, 2, 7, 60])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_in_blocks(name: str, length: int) -> None:
    args = (MATRIX, START), START, RNG.standard_normal((length, SIZE))
    gradient = lambda: func.jit(func.grad(MODELS[name], argnums=(0, 1, 2)), compiler="numpy")  # noqa: E731
    expected = gradient()(*args)
    for most in (3000, 400, 1):
        agree(limited(gradient(), most, *args), expected)


def test_native_code_gives_the_same() -> None:
    args = (MATRIX, START), START, RNG.standard_normal((97, SIZE))
    expected = func.jit(func.grad(state, argnums=(0, 1, 2)))(*args)
    for most in (9000, 1000):
        agree(limited(func.jit(func.grad(state, argnums=(0, 1, 2))), most, *args), expected)


UNDER: dict[str, Callable[[Any], Any]] = {
    "vmap of grad": lambda f: func.vmap(func.grad(f), in_dims=(None, 0, None)),
    "grad of vmap": lambda f: func.grad(lambda p, h, x: np.sum(func.vmap(lambda one: f(p, one, x))(h))),
    "hessian": lambda f: func.hessian(lambda p, h, x: f(p, h[0], x), argnums=1),
    "jvp of grad": lambda f: lambda p, h, x: func.jvp(func.grad(lambda g: f(p, g, x)), (h[0],), (h[1],)),
    "float32": lambda f: (
        lambda p, h, x: func.grad(f, argnums=1)(*func.tree.map(lambda a: a.astype(np.float32), (p, h[0], x)))
    ),
    "complex": lambda f: lambda p, h, x: func.grad(lambda g: np.abs(f(p, g + 0.1j, x)))(h[0]),
    "checkpoint": lambda f: lambda p, h, x: func.grad(func.checkpoint(f))(p, h[0], x),
}


@pytest.mark.parametrize("name", UNDER)
def test_blocks_under_other_transforms(name: str) -> None:
    args = (MATRIX, START), RNG.standard_normal((2, SIZE)), RNG.standard_normal((30, SIZE))
    compiled = lambda: func.jit(UNDER[name](state), compiler="numpy")  # noqa: E731
    agree(limited(compiled(), 500, *args), compiled()(*args), 1e-4 if name == "float32" else 1e-10)


def test_structural_zeros_stay() -> None:
    def loss(x: Any) -> Any:
        h, _ = func.scan(lambda h, _: (np.where(h > 0, np.sqrt(h), 0.0), None), x, None, length=40)
        return np.sum(h)

    x = np.array([0.0, 1.0, -1.0])
    for compiler in ("numpy", None):
        out = limited(func.jit(func.grad(loss), compiler=compiler), 100, x)
        np.testing.assert_array_equal(out, func.jit(func.grad(loss))(x))
        assert not np.isnan(out).any()


def test_the_lengths_of_blocks() -> None:
    carry, kept = [Aval((100,), F64)], [Aval((300,), F64)]
    assert block_lengths(1000, carry, kept, 1 << 30) == ()
    assert block_lengths(10**6, carry, kept, 1 << 30) == (218,)
    assert len(block_lengths(10**6, carry, kept, 10**6)) == 2
    for most in (10**7, 10**6, 10**5, 1):
        lengths = block_lengths(10**6, carry, kept, most)
        assert list(lengths) == sorted(set(lengths), reverse=True)
    for length in (50, 200, 365, 1000, 10**6):  # behind a block with a rest one more carry would be kept
        for most in (1, 50_000, 10**6):
            lengths = block_lengths(length, carry, kept, most)
            assert not any([outer % inner for outer, inner in itertools.pairwise(lengths)])
    assert block_lengths(1, carry, kept, 1) == () and block_lengths(2, carry, kept, 1) in ((), (1,))
    assert 0 < WORTH < 1


def test_a_million_steps_need_little_more_than_a_thousand() -> None:
    """The plan of the whole gradient: the snapshots and the residuals of one block."""

    def loss(weights: Any, x: Any, length: int) -> Any:
        h, _ = func.scan(lambda h, _: (np.tanh(weights @ h), None), x, None, length=length)
        return np.sum(h * h)

    args = RNG.standard_normal((100, 100)), RNG.standard_normal(100)
    short = func.memory(func.jit(func.grad(lambda w, x: loss(w, x, 10**3)), compiler=None))(*args)
    long = func.memory(func.jit(func.grad(lambda w, x: loss(w, x, 10**6)), compiler=None))(*args)
    assert long.peak <= 3 * short.peak
