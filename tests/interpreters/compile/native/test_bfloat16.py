"""Native code of bfloat16 against ml_dtypes: conversions and operations of all numbers, and whole programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import func
from func.backends.llvm import machine
from tests.interpreters.compile.native.test_rules import compiled, eager_outputs
from tests.support.bfloat16_programs import (
    BFLOAT16,
    BINARY,
    DTYPES,
    EVERY,
    OF_NAN,
    PROGRAMS,
    SINGLE,
    SOME,
    UNARY,
    assert_program,
    assert_same,
    numbers_of,
    representable,
)

pytestmark = [
    pytest.mark.skipif(not machine.available(), reason="no native code on this machine"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_of_every_number(dtype: Any) -> None:
    given = representable(dtype)
    assert_same(native(lambda x: x.astype(dtype), given), given.astype(dtype))
    wide = numbers_of(dtype)
    assert_same(native(lambda x: x.astype(BFLOAT16), wide), wide.astype(BFLOAT16))


def native(function: Any, *args: Any) -> Any:
    """The result of native code, which has to run the whole function."""
    jitted = func.jit(function, compiler="llvm")
    assert "generated source" not in str(jitted.lower(*args))
    return jitted(*args)


@pytest.mark.parametrize("name", UNARY)
def test_operations_on_every_number(name: str) -> None:
    run = compiled(name, (EVERY,), {})
    assert (run is None) == (name == "spacing")
    if run is not None:
        assert_same(run(EVERY)[0], eager_outputs(name, (EVERY,), {})[0])


@pytest.mark.parametrize("name", BINARY)
def test_operations_on_pairs(name: str) -> None:
    given = SOME[~np.isnan(SOME)] if name in OF_NAN else SOME
    args = given[:, None], given
    run = compiled(name, args, {})
    assert run is not None
    assert_same(run(*args)[0], eager_outputs(name, args, {})[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    computed = PROGRAMS[name]
    assert_program(computed, native(computed.function, *computed.args))


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 31, 64, 77])
def test_vectors_of_all_lengths(length: int) -> None:
    x = np.random.default_rng(length).normal(size=(3, 2 * length)).astype(BFLOAT16)

    def parts(x: Any) -> Any:
        return x[:, ::-2] * x[::-1, :length], np.where(x[:, length:] < x[0, 0], x[:, :length], x[:, ::2])

    for got, want in zip(native(parts, x), parts(x), strict=True):
        assert_same(got, want)


def test_sums_are_in_single_precision() -> None:
    """NumPy's own sum of ones ends at 256."""
    ones = np.ones(1000, BFLOAT16)
    for function in (np.sum, lambda x: np.sum(x, where=x > 0), lambda x: np.mean(x) * 1000):
        for out in (
            func.vjp(function, ones)[0],
            func.jit(lambda x, f=function: f(x), compiler="numpy")(ones),
            native(lambda x, f=function: f(x), ones),
        ):
            assert out.dtype == BFLOAT16 and float(out) == 1000
    bias = np.zeros(2, BFLOAT16)
    of_bias = func.grad(lambda b: np.sum((np.ones((1000, 2), BFLOAT16) + b).astype(SINGLE)))
    assert of_bias(bias).tolist() == native(of_bias, bias).tolist() == [1000, 1000]


def test_donated_memory_is_written() -> None:
    x = np.arange(6).astype(BFLOAT16)
    address = x.ctypes.data
    out = func.jit(lambda x: x * x + 1, donate_argnums=0, compiler="llvm")(x)
    assert out.ctypes.data == address
    assert out.tolist() == [1, 2, 5, 10, 17, 26]


def test_fast_math_keeps_nan() -> None:
    x = np.array([np.nan, np.inf, 1], BFLOAT16)
    assert_same(func.jit(lambda x: x * 2, fast_math=True, compiler="llvm")(x), x * 2)
