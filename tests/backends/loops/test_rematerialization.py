"""Cheap values that another nest needs are computed again from what lies in memory, where that is no more to read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from func.backends.loops.kernels import Apply, Load, LoopNest, NestStage, Register, Store, StridedRef
from func.backends.loops.kernels import Buffer as Memory
from func.backends.loops.nest_cleanup import eliminate_dead_code

RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(3, 60, 60))


def arena_of(f: Any, *args: Any) -> int:
    """The bytes of scratch memory of a compiled function."""
    (line,) = [line for line in str(func.jit(f).lower(*args).kernels).splitlines() if line.startswith("arena: ")]
    return int(line.split()[1])


def check(f: Any, *args: Any) -> None:
    """The same as by NumPy, up to the order of sums."""
    for made, expected in zip(func.tree.leaves(func.jit(f)(*args)), func.tree.leaves(f(*args)), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


def slope_of_tanh(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    return h @ w, (w @ h) * (1 - h**2)


def row_values(x: Any, w: Any) -> Any:
    shifted = x - np.max(x, axis=1, keepdims=True)
    return shifted @ w, shifted * 2 + (w @ x)


def views(x: Any, w: Any) -> Any:
    y = 2 * x + 1
    return (x @ w)[1:, :-1] * y[:-1, 1:] + y.T[1:, 1:] - y[::-1, ::-1][:-1, :-1], (w @ x) * y[:, :1] + y[3]


def masks(x: Any, w: Any) -> Any:
    positive = np.maximum(x @ w, 0)
    return positive @ w, np.where(positive > 0, w @ x, 0)


def several_leaves(x: Any, w: Any) -> Any:
    y = x * w + x - w
    return y @ y, (x @ w) * y


def written_since(x: Any, w: Any) -> Any:
    buffer = np.zeros_like(x)
    buffer[:] = x
    y = 2 * buffer
    buffer[5:20] = w[5:20] * 3
    z = buffer @ w
    buffer[0] = 7
    return z * y, z + buffer, y @ z


def loops(x: Any, w: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        total, _ = carry
        half = total * 0.5
        mixed = half @ w + row
        return (mixed * half, half), mixed - half

    return func.scan(step, (x[0], x[1]), x)


@pytest.mark.parametrize("f", [slope_of_tanh, row_values, views, masks, several_leaves, written_since, loops])
def test_results(f: Any) -> None:
    x, w = A / 8, B / 8
    check(f, x, w)

    def loss(x: Any, w: Any) -> Any:
        return sum([np.sum(np.sin(out)) for out in func.tree.leaves(f(x, w))])

    if f is not loops:
        check(func.grad(loss, (0, 1)), x, w)
    check(lambda x, w: func.jvp(loss, (x, w), (w, x)), x, w)


def test_slopes_are_not_stored() -> None:
    """Of h, x @ w, w @ h and h @ w only those are in scratch memory that are read again."""
    size = A.nbytes
    assert arena_of(slope_of_tanh, A, B) <= 3 * size + 1024
    program = str(func.jit(slope_of_tanh).lower(A, B).kernels)
    assert program.count("square(") == 1


def test_what_reads_more_is_stored() -> None:
    listing = str(func.jit(several_leaves).lower(A, B).kernels)
    assert listing.count("subtract(") == 1


def test_expensive_values_are_stored() -> None:
    listing = str(func.jit(lambda x, w: (np.exp(x) @ w, (x @ w) * np.exp(x))).lower(A, B).kernels)
    assert listing.count("exp(") == 1


def test_large_results_are_written_over_operands() -> None:
    """Chains of large products and elementwise code need two matrices in addition to the operand."""
    x = RNG.normal(size=(400, 400))

    def chain(x: Any) -> Any:
        y = x
        for step in range(4):
            y = np.exp(-((y @ x) ** 2)) + y * step
        return np.sum(y)

    check(chain, x / 20)
    assert arena_of(chain, x) <= 3 * x.nbytes + 4096
    half = arena_of(lambda x: np.sum(np.tanh(x @ x) @ x), x)
    assert half <= 2 * x.nbytes + 4096


@pytest.mark.parametrize("size", [370, 371, 401])
def test_results_written_over_operands(size: int) -> None:
    """Rows, reductions that come first, transposed and shifted reads, odd sizes, several threads."""
    x = RNG.normal(size=(size, size)) / size

    def mixed(x: Any) -> Any:
        a = x @ x
        shifted = np.exp(a - a.max(axis=1, keepdims=True))
        share = shifted / shifted.sum(axis=1, keepdims=True)
        b = share @ x
        c = b + b.T
        d = (c @ c)[::-1]
        e = d * d[::-1] + 1
        f = (e @ x) * 2 + 3
        return f[1:] - f[:-1], e @ f

    for number in (1, 3):
        with func.config.override(num_threads=number):
            check(mixed, x)


def test_unused_instructions_go() -> None:
    kind = np.dtype(np.float64)
    source, target = Memory(3, kind, "input", 0), Memory(3, kind, "output", 0)
    x, y, z = Register(kind), Register(kind), Register(kind)
    code = [
        Load(x, StridedRef(source, 0, (1,))),
        Apply(y, "sin", (x,)),
        Apply(z, "cos", (y,)),
        Store(StridedRef(target, 0, (1,)), y),
    ]
    items: list[Any] = [
        LoopNest((3,), None, [NestStage(True, code)]),
        LoopNest((3,), None, [NestStage(True, code[:3])]),
    ]
    eliminate_dead_code(items)
    assert len(items) == 1
    assert [type(one) for one in items[0].stages[0].code] == [Load, Apply, Store]
