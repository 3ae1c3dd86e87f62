"""Straight-line code computes what the loops compute that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.backends.loops import kernels
from func.backends.loops.buffer_assignment import assign_buffers
from func.backends.loops.scalar_expansion import expand_scalars, is_expandable
from func.interpreters.compile.inlining import prepare_call
from func.interpreters.compile.native.translate import translate
from tests.support.random_functions import Maker

pytest.importorskip("llvmlite")

from func.backends.llvm.call_stubs.native_executable import NativeExecutable

pytestmark = pytest.mark.filterwarnings("ignore")


def translated(function: Any, args: tuple[Any, ...]) -> kernels.NativeProgram:
    """The native program of a function."""
    entry = func.jit(function).cached_call(args, {})[3]
    return translate(prepare_call(entry.compiled))


def expanded(function: Any, args: tuple[Any, ...], finite: bool = False) -> kernels.NativeProgram:
    """Its expanded form, with places for memory."""
    program = translated(function, args)
    expand_scalars(program, finite)
    for item in program.items:
        if isinstance(item, kernels.LoopNest):
            item.chunkings = []
    program.arena = assign_buffers(program.items)
    return program


def run(program: kernels.NativeProgram, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs that native code computes."""

    def refused(*args: Any) -> Any:
        raise AssertionError("native code has refused its arguments")

    return NativeExecutable(program, refused).flat_stub()(*args)


def operations(program: kernels.NativeProgram) -> int:
    """The operations of all nests without loops."""
    nests = [item for item in program.items if isinstance(item, kernels.LoopNest) and item.domain == ()]
    return sum([isinstance(instruction, kernels.Apply) for nest in nests for instruction in nest.code])


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed: int) -> None:
    made = Maker(seed, False).make(seed % 14 + 1)
    args = tuple(made.args)
    wanted = func.tree.leaves(func.jit(made.function(), compiler="numpy")(*args))
    limit = 1e-3 if "float32" in str(made) else 1e-9
    for got, value in zip(run(expanded(made.function(), args), args), wanted, strict=True):
        expected = np.asarray(value)
        assert (np.asarray(got).dtype, np.shape(got)) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "fc":
            scale = max(1.0, np.max(np.abs(expected), initial=0))
            np.testing.assert_allclose(got, expected, rtol=0, atol=limit * scale)
        else:
            np.testing.assert_array_equal(got, expected)


def rotated(q: Any) -> Any:
    """A product of rotations about two axes, applied to a vector."""
    c, s = np.cos(q), np.sin(q)
    first = np.array([[c[0], -s[0], 0.0], [s[0], c[0], 0.0], [0.0, 0.0, 1.0]])
    second = np.array([[1.0, 0.0, 0.0], [0.0, c[1], -s[1]], [0.0, s[1], c[1]]])
    return first @ second @ np.array([0.0, 0.0, 1.0])


def test_one_nest_without_loops_is_left() -> None:
    program = expanded(rotated, (np.ones(2),), finite=True)
    assert [type(item).__name__ for item in program.items] == ["LoopNest"]
    # The vector is (s0 s1, -c0 s1, c1): four functions and three more operations.
    assert operations(program) <= 7
    np.testing.assert_allclose(run(program, (np.array([0.3, 0.4]),))[0], rotated(np.array([0.3, 0.4])))


def test_only_finite_numbers_let_zeros_drop_terms() -> None:
    plain, finite = [operations(expanded(rotated, (np.ones(2),), flag)) for flag in (False, True)]
    assert plain > 2 * finite
    program = expanded(rotated, (np.ones(2),))
    with np.errstate(all="ignore"):
        for q in ([np.inf, 0.0], [np.nan, 1.0], [0.5, -np.inf]):
            np.testing.assert_allclose(run(program, (np.array(q),))[0], rotated(np.array(q)), rtol=1e-15)


def test_signs_of_zeros_are_kept() -> None:
    def f(x: Any) -> Any:
        return np.stack([x[0] + 0.0, x[0] - 0.0, x[0] * -1.0, 0.0 - x[0], x[0] * x[1] + -0.0, -x[0] - x[1]])

    program = expanded(f, (np.ones(2),))
    for x in ([0.0, 0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]):
        got, wanted = run(program, (np.array(x),))[0], f(np.array(x))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_common_terms_are_computed_once() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.stack([x * y + 1.0, 2.0 - y * x, np.exp(x * y) * np.exp(y * x)])

    assert operations(expanded(f, (1.0, 2.0))) == 5


def test_items_that_stay_read_and_write_memory() -> None:
    def f(a: Any, b: Any) -> Any:
        u = np.sin(a[0]) + b
        x = np.linalg.solve(a + np.outer(u, u), u)
        y = np.linalg.solve(a, x * u)
        return x + y + u, np.cos(a[0]) * y

    a, b = np.diag([2.0, 3.0, 4.0]) + 0.1, np.arange(3.0)
    program = expanded(f, (a, b))
    names = [type(item).__name__ for item in program.items]
    assert names == ["LoopNest", "LibraryCall", "LoopNest", "LibraryCall", "LoopNest"]
    for got, wanted in zip(run(program, (a, b)), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_memory_that_an_item_overwrites_is_read_before() -> None:
    def f(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return carry * 0.5 + 1.0, carry[0]

        first = x * 2.0
        last, seen = func.scan(body, first, np.arange(40.0))
        return first + last, seen[:2] * first[1], first - x

    x = np.array([1.0, -2.0, 3.0])
    for got, wanted in zip(run(expanded(f, (x,)), (x,)), f(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_large_programs_stay_loops() -> None:
    assert not is_expandable(translated(lambda x: np.exp(x) * 2.0, (np.ones(5000),)))
    assert is_expandable(translated(rotated, (np.ones(2),)))
