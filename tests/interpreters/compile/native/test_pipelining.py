"""Loops whose steps have a part ahead: the results are those of one step after the other, and errors are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from func.backends.loops import pipelining
from func.backends.loops.kernels import CountedLoop, Item
from func.backends.loops.traversal import bodies_of
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.native.translate import translate
from tests.support.threads import in_threads

N = 6
MATRIX = np.random.default_rng(0).normal(size=(N, N)) / 3
START = np.linspace(0.1, 1.0, N)
PARTS = np.random.default_rng(1).normal(size=(9, N))


def passes(x: Any, steps: int) -> Any:
    """The last value and the rows of a loop."""
    return func.scan(lambda c, _: (np.tanh(MATRIX @ c), c), x, None, length=steps)


def simple(start: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        last, _ = passes(x, 4)
        c, _ = passes(c + last, 3)
        return c, c * 2

    return func.scan(step, start, xs)


def stacks(start: Any, xs: Any) -> Any:
    """Backwards, with rows that go from one part to the other and out of the loop."""

    def step(c: Any, x: Any) -> Any:
        last, rows = passes(x, 4)
        c, more = func.scan(lambda c, row: (np.sin(c + row), c), c, rows)
        return c, (last, more, x)

    return func.scan(step, start, xs, reverse=True)


def nested(start: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        _, ys = simple(x, PARTS[:4])
        c, _ = simple(c, ys)
        return c / 9, np.sum(ys)

    return func.scan(step, start, xs)


def several(start: Any, xs: Any) -> Any:
    """A while_loop ahead, and branches in the rest."""

    def step(c: Any, x: Any) -> Any:
        i, d = func.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] @ MATRIX), (0, x))
        e, f = passes(d, 2)
        c, _ = func.scan(lambda c, row: (func.cond(c[0] > 0, np.cos, np.sin, c * row) + e, None), c, f)
        return c, (i, x[1:])

    return func.scan(step, start, xs)


def unused(start: Any, xs: Any) -> Any:
    """The part that runs ahead is only an output."""

    def step(c: Any, x: Any) -> Any:
        last, _ = passes(x, 3)
        c, _ = passes(c + 1, 3)
        return c, last

    return func.scan(step, start, xs)


def twice(start: Any, xs: Any) -> Any:
    """Several loops read the part that runs ahead, in several ways."""

    def step(c: Any, x: Any) -> Any:
        last, rows = passes(x, 2)
        c, _ = passes(c + last, 2)
        again, _ = passes(c[::-1] + rows[::-1, ::-1][0], 2)
        return c, again + rows.T[:, 1]

    return func.scan(step, start, xs)


PROGRAMS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (simple, stacks, nested, several, unused, twice)}


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every loop that may be pipelined is."""
    monkeypatch.setattr(pipelining, "_is_worth", lambda loop, shared: True)
    before = func.config.num_threads
    func.config.num_threads = request.param
    yield
    func.config.num_threads = before


def pipelined(items: Sequence[Item]) -> int:
    """The number of pipelined loops."""
    inside = sum([pipelined(body) for item in items for body in bodies_of(item)])
    return inside + len([item for item in items if isinstance(item, CountedLoop) and item.ahead])


def loops_of(f: Callable[..., Any], *args: Any) -> int:
    """The number of pipelined loops in a function's native code."""
    return pipelined(translate(prepare_program(func.make_program(f)(*args))).items)


def assert_same(got: Any, expected: Any) -> None:
    for x, y in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 9])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_one_step_after_the_other(name: str, length: int, always: None) -> None:
    f, xs = PROGRAMS[name], PARTS[:length]
    assert length < 3 or loops_of(f, START, xs) >= 1
    assert_same(func.jit(f)(START, xs), func.jit(f, compiler="numpy")(START, xs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_pipelined_loops(name: str, always: None) -> None:
    def loss(start: Any, xs: Any) -> Any:
        return sum([np.sum(np.sin(leaf)) for leaf in func.tree.leaves(PROGRAMS[name](start, xs))])

    if name == "several":  # a while_loop has no pullback

        def tangent(*primals: Any) -> Any:
            return func.jvp(loss, primals, (START, PARTS))

        assert_same(func.jit(tangent)(START, PARTS), tangent(START, PARTS))
        return
    gradient = func.grad(loss, argnums=(0, 1))
    assert_same(func.jit(gradient)(START, PARTS), gradient(START, PARTS))


@pytest.mark.parametrize("steps", [7, 50, 64])
def test_gradients_of_scans_in_blocks(steps: int, always: None) -> None:
    """The backward pass computes a block again while it pulls back the one after it."""

    def loss(matrix: Any, start: Any) -> Any:
        h, _ = func.scan(lambda h, _: (np.tanh(matrix @ h), None), start, None, length=steps)
        return np.sum(h**2)

    gradient = func.grad(loss, argnums=(0, 1))
    limited = func.jit(gradient, memory_limit=8000)
    assert_same(limited(MATRIX, START), gradient(MATRIX, START))


def test_loops_of_recurrent_networks_are_worth_two_threads_and_small_ones_are_not() -> None:
    def loss(matrix: Any, start: Any) -> Any:
        h, _ = func.scan(lambda h, _: (np.tanh(matrix @ h), None), start, None, length=10**6)
        return np.sum(h**2)

    def light(vector: Any, start: Any) -> Any:
        h, _ = func.scan(lambda h, _: (np.tanh(vector * h), None), start, None, length=10**7)
        return np.sum(h**2)

    heavy = np.eye(100)
    assert loops_of(func.grad(loss), heavy, heavy[0]) == 1
    assert loops_of(func.grad(light), heavy[0], heavy[0]) == 0
    assert loops_of(simple, START, PARTS) == 0


@pytest.mark.parametrize("part", ["ahead", "body"])
@pytest.mark.parametrize("place", [0, 4, 8])
def test_errors_of_both_parts_are_reported(part: str, place: int, always: None) -> None:
    table = np.arange(5.0)

    def f(start: Any, xs: Any, indices: Any) -> Any:
        def look_up(c: Any, i: Any) -> Any:
            return func.scan(lambda c, _: (c + func.numpy.take(table, i, axis=0), None), c, None, length=3)[0]

        def step(c: Any, row: Any) -> Any:
            x, i = row
            c = passes(c, 2)[0] + (look_up(x, i) if part == "ahead" else passes(x, 2)[0])
            return c if part == "ahead" else look_up(c, i), None

        return func.scan(step, start, (xs, indices))[0]

    indices = np.zeros(9, int)
    assert loops_of(f, START, PARTS, indices) >= 1
    assert_same(func.jit(f)(START, PARTS, indices), func.jit(f, compiler="numpy")(START, PARTS, indices))
    indices[place] = 7
    with pytest.raises(IndexError):
        func.jit(f)(START, PARTS, indices)


def test_many_threads_call_pipelined_loops_at_once(always: None) -> None:
    f = func.jit(stacks)
    expected = [f(START * k, PARTS) for k in range(4)]

    def work(k: int) -> None:
        for _ in range(50):
            assert_same(f(START * k, PARTS), expected[k])

    in_threads(work, 4)


def test_listings_and_profiles_tell_of_both_parts(always: None) -> None:
    f = func.jit(stacks)
    listing = f.lower(START, PARTS).kernels
    assert "ahead, at the same time as the step before" in listing and "(t mod 2)" in listing
    assert "a0" in str(f.profile(START, PARTS))
