"""Numbers of several dtypes in compiled code: NumPy's results for them, to the dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
COMPILERS = ["llvm", "numpy"]
WHOLE = {dtype: np.array([np.iinfo(dtype).min, 0, 3, np.iinfo(dtype).max], dtype) for dtype in "bBhHiIqQ"}
NUMBERS = [0, 3, -3, 300, -(2**40), 2**40, 2**63 - 1]


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_whole_numbers_are_compared_as_such(compare: Callable[[Any, Any], Any], compiler: str) -> None:
    def all_pairs(arrays: Any) -> Any:
        return [compare(x[:, None], y) for x in arrays for y in arrays]

    arrays = list(WHOLE.values())
    for found, expected in zip(func.jit(all_pairs, compiler=compiler)(arrays), all_pairs(arrays), strict=True):
        same(found, expected)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_python_numbers_need_not_fit_the_dtype_they_are_compared_with(compiler: str) -> None:
    arrays = list(WHOLE.values())

    def with_known(arrays: Any) -> Any:
        return [compare(x, n) for compare in COMPARISONS for x in arrays for n in NUMBERS]

    def with_given(arrays: Any, numbers: Any) -> Any:
        return [compare(n, x) for compare in COMPARISONS for x in arrays for n in numbers]

    for found, expected in zip(func.jit(with_known, compiler=compiler)(arrays), with_known(arrays), strict=True):
        same(found, expected)
    jitted = func.jit(with_given, compiler=compiler)
    for found, expected in zip(jitted(arrays, NUMBERS), with_given(arrays, NUMBERS), strict=True):
        same(found, expected)


def numbers_around_zero(dtype: str) -> np.ndarray[Any, Any]:
    """Numbers of both signs, the ends of the range, and both zeros."""
    if dtype in "fd":
        return np.array([-1e30, -7.5, -6.0, -1.0, -0.3, -0.0, 0.0, 0.3, 1.0, 6.0, 7.5, 1e30], dtype)
    ends = np.iinfo(dtype)
    return np.array(
        sorted({max(n, ends.min) for n in (ends.min, ends.min + 1, -7, -6, -3, -1, 0, 1, 3, 6, 7, ends.max)}), dtype
    )


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", "bBhHiIqQfd")
def test_quotients_and_remainders_of_all_signs(dtype: str, compiler: str) -> None:
    def f(x: Any, y: Any) -> Any:
        return x // y, x % y, np.fmod(x, y)

    numbers = numbers_around_zero(dtype)
    with np.errstate(all="ignore"):
        expected = f(numbers[:, None], numbers)
    for found, wanted in zip(func.jit(f, compiler=compiler)(numbers[:, None], numbers), expected, strict=True):
        same(found, wanted)
        if dtype in "fd":
            np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(wanted)[found == 0])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", "bBhHiIqQ")
def test_shifts_by_up_to_more_than_the_width(dtype: str, compiler: str) -> None:
    def f(x: Any, n: Any) -> Any:
        return x << n, x >> n

    numbers, width = numbers_around_zero(dtype), 8 * np.dtype(dtype).itemsize
    counts = np.array([0, 1, 3, width - 1, width, width + 1, 100], dtype)
    for found, wanted in zip(
        func.jit(f, compiler=compiler)(numbers[:, None], counts), f(numbers[:, None], counts), strict=True
    ):
        same(found, wanted)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_arithmetic_of_python_numbers_stays_weak(compiler: str) -> None:
    def f(x: Any, n: Any) -> Any:
        return x << (n & 3), x + n // 2, x + (n | 1), x + (n ^ 3), x + (n >> 1), x + (n << 1), x | (3 & ~n), n // 2

    for dtype in "bBhHiI":
        x = np.arange(3, dtype=dtype)
        for found, expected in zip(func.jit(f, compiler=compiler)(x, 5), f(x, 5), strict=True):
            same(found, expected)


def test_arithmetic_of_python_floats_stays_weak() -> None:
    found = func.jit(lambda x, n: x * (n // 2))(np.ones(2, np.float32), 5.5)
    same(found, np.full(2, 2, np.float32))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_complex_powers_of_zero(compiler: str) -> None:
    exponents = np.array([0, 1, -1, 1 + 2j, -1 + 2j, 1j])

    def f(x: Any) -> Any:
        return np.zeros_like(x) ** x

    with np.errstate(all="ignore"):
        same(func.jit(f, compiler=compiler)(exponents), f(exponents))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("function", [np.modf, np.fabs], ids=lambda one: one.__name__)
def test_parts_of_special_and_whole_numbers(function: Callable[[Any], Any], compiler: str) -> None:
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 2.5, -1.5])
    for x in (special, special.astype(np.float32), *WHOLE.values(), np.array([True, False])):
        for found, expected in zip(func.jit(function, compiler=compiler)(x), function(x), strict=True):
            same(found, expected)


def test_long_doubles_as_constants() -> None:
    x = np.array([0.5, 2.0], np.longdouble)
    kept = np.longdouble("0.1")
    same(func.jit(lambda x: x * kept)(x), x * kept)
    same(func.jit(lambda x: x * (1 + 2j * kept))(x), x * (1 + 2j * kept))
    same(func.jit(func.grad(lambda x: np.sum(x * 2 + np.sin(x))))(x), 2 + np.cos(x))


OUT_OF_RANGE = {
    "add": lambda x: x + 300,
    "subtract": lambda x: -1 - x,
    "maximum": lambda x: np.maximum(x, -1),
    "and": lambda x: x & 256,
    "power": lambda x: x**-1,
    "write": lambda x: func.numpy.copy(x).__setitem__(0, 300),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_python_integers_that_do_not_fit_are_refused(name: str, compiler: str) -> None:
    jitted = func.jit(OUT_OF_RANGE[name], compiler=compiler)
    for _ in range(2):
        with pytest.raises(OverflowError):
            jitted(np.ones(3, np.uint8))


TRACED_INTEGERS: dict[str, Callable[..., Any]] = {
    "product": lambda x, s: x * s,
    "sum": lambda x, s: x + s,
    "reflected difference": lambda x, s: s - x,
    "maximum": lambda x, s: np.maximum(x, s),
    "power": lambda x, s: s**x,
    "shift": lambda x, s: x << s,
    "remainder": lambda x, s: x % (s - 1),
    "computed": lambda x, s: x * (s + 1),
    "full": lambda x, s: np.full_like(x, s),
    "write": lambda x, s: func.numpy.at(x)[0].set(s),
    "clip below": lambda x, s: np.clip(x, s, None),
    "clip above": lambda x, s: np.clip(x, 0, s),
    "clip": lambda x, s: x.clip(s, 200),
    "insert": lambda x, s: np.insert(x, 1, s),
    "select": lambda x, s: np.select([x > 1], [x], s),
    "isclose": lambda x, s: np.isclose(x, s),
    "array": lambda x, s: np.array([x[0], s]),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", TRACED_INTEGERS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "u8"])
def test_python_integers_as_arguments_fit_or_are_refused(name: str, compiler: str, dtype: str) -> None:
    f, x = TRACED_INTEGERS[name], np.arange(3).astype(dtype)
    jitted = func.jit(f, compiler=compiler)
    ways = {"call": jitted, "scan": func.jit(lambda x, s: func.scan(lambda c, row: (c, f(row, s)), 0, x[None])[1][0])}
    for s in (3, 300, 100_000, -1, -(2**40), 7):
        for way, call in ways.items():
            try:
                with np.errstate(all="ignore"):
                    expected = f(x, s)
            except OverflowError:
                with pytest.raises(OverflowError):
                    call(x, s)
            else:
                np.testing.assert_array_equal(call(x, s), expected, way)
                assert np.asarray(call(x, s)).dtype == expected.dtype, way


@pytest.mark.parametrize("compiler", COMPILERS)
def test_arithmetic_of_python_integers_has_64_bits(compiler: str) -> None:
    for f in (lambda n: n + 1, lambda n: n * n, lambda n: -2 - n, lambda n: n // -1, lambda n: n**2):
        for n in (2**63 - 1, -(2**63), 2**40, -3):
            with np.errstate(all="ignore"):
                expected = f(np.int64(n))
            assert func.jit(f, compiler=compiler)(n) == expected


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "numbers",
    [(3, np.int64(3)), (np.int64(3), 3), (2.0, np.float64(2)), (True, np.int64(1)), (np.full(1, 3.0), np.full(2, 3.0))],
    ids=str,
)
def test_programs_for_python_numbers_are_not_those_for_scalars(numbers: Any, compiler: str) -> None:
    def by_dtype(x: Any, s: Any) -> Any:
        return np.size(s) * (x * s if (x * s).dtype == x.dtype else x - s)

    for f, x in (
        (lambda x, s: x * s, np.ones(2, np.int8)),
        (lambda x, s: np.add(s, x), np.ones(2, np.float32)),
        (by_dtype, np.ones(2, np.int8)),
        (by_dtype, np.ones(2, np.float32)),
    ):
        inner = func.jit(f, compiler=compiler)
        outer = func.jit(lambda x, *s, inner=inner: [inner(x, one) for one in s], compiler=compiler)
        for found in (outer(x, *numbers), [inner(x, s) for s in numbers]):
            for one, s in zip(found, numbers, strict=True):
                same(one, f(x, s))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_integers_beyond_64_bits_are_refused_by_every_call(compiler: str) -> None:
    jitted = func.jit(lambda x, s: x * s, compiler=compiler)
    for _ in range(3):
        same(jitted(np.ones(2), 3), np.full(2, 3.0))
        with pytest.raises(func.errors.ArgumentError, match="s is an integer of more than 64 bits"):
            jitted(np.ones(2), 2**63)


@pytest.mark.parametrize("exponent", [0, 1, 2, -1, 0.5, 2.0, True, 2 + 0j], ids=str)
def test_short_cuts_of_powers_keep_the_dtype(exponent: Any) -> None:
    for dtype in ("e", "f", "d", "F", "?"):
        x = np.ones(3, dtype)
        try:
            expected = x**exponent
        except (TypeError, ValueError):
            continue
        same(func.jit(lambda x: x**exponent)(x), expected)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "function",
    [np.max, np.nanmax, np.median, lambda x: np.einsum("ij,ij", x, x), lambda x: x[1, 2], lambda x: np.linalg.cond(x)],
)
def test_single_numbers_come_as_scalars(function: Callable[[Any], Any], compiler: str) -> None:
    x = np.arange(12.0).reshape(3, 4) ** 0.5
    found, expected = func.jit(function, compiler=compiler)(x), function(x)
    assert type(found) is type(expected) is np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_only_extrema_have_a_part_in_cotangents_that_are_nan(compiler: str) -> None:
    def f(x: Any) -> Any:
        value = np.log1p(np.min(x))
        return value * value

    x = np.array([-1.3, 0.5, -1.5, 0.7])
    with np.errstate(invalid="ignore"):
        expected = func.grad(f)(x)
    np.testing.assert_array_equal(expected, [0.0, 0.0, np.nan, 0.0])
    np.testing.assert_array_equal(func.jit(func.grad(f), compiler=compiler)(x), expected)
    np.testing.assert_array_equal(func.grad(func.jit(f, compiler=compiler))(x), expected)
