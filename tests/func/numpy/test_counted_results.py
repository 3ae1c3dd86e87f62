"""Functions whose results have a length that depends on values, under jit: all small arrays."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

OTHER = np.array([0.0, 2.0])
CALLS: dict[str, Callable[[Any], Any]] = {
    "unique": np.unique,
    "unique with all": lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True),
    "unique of NaN": lambda x: np.unique(np.where(x == 1, np.nan, x), equal_nan=False, return_counts=True),
    "unique of one NaN": lambda x: np.unique(np.where(x == 1, np.nan, x), return_counts=True),
    "unique rows": lambda x: np.unique(np.stack([x, x * 0 + 1], 1), axis=0, return_inverse=True, return_index=True),
    "unique columns": lambda x: np.unique(np.stack([x, x[::-1]]), axis=1, return_counts=True),
    "unique_all": lambda x: tuple(np.unique_all(x)),
    "union1d": lambda x: np.union1d(x, OTHER),
    "intersect1d": lambda x: np.intersect1d(x, OTHER, return_indices=True),
    "setdiff1d": lambda x: np.setdiff1d(x, OTHER),
    "setxor1d": lambda x: np.setxor1d(x, OTHER),
    "isin": lambda x: np.isin(x, OTHER, invert=True),
    "trim_zeros": np.trim_zeros,
    "trim_zeros in front": lambda x: np.trim_zeros(x, "f"),
    "trim_zeros of rows": lambda x: np.trim_zeros(np.outer(x, [0.0, 1.0])),
    "polymul": lambda x: np.trim_zeros(np.polymul(x, OTHER), "f"),  # of traced factors leading zeros stay
    "polydiv": lambda x: np.polydiv(np.append(x, 1.0), [1.0, 2.0]),
    "poly1d": lambda x: np.trim_zeros(np.poly1d(x).coeffs, "f"),
    "roots": lambda x: np.sort(np.abs(np.roots(x))),
    "piecewise": lambda x: np.piecewise(x, [x < 1, x > 1], [lambda t: -t - 1, lambda t: t**2, 7.0]),
    "piecewise of sums": lambda x: np.piecewise(x, [x < 1], [lambda t: t + np.sum(t) + len(t), 2.0]),
    "arange": lambda x: np.arange(np.sum(x > 0)) * 1.0,
    "arange by two": lambda x: np.arange(1, 2 * np.argmax(np.append(x, 1.0)) + 3, 2) * 1.0,
    "extract": lambda x: np.extract(x > 0, x),
}
SMALL = [np.array(x, float) for n in range(4) for x in itertools.product((0, 1, 2), repeat=n)]


@pytest.mark.parametrize("name", CALLS)
def test_of_small_arrays(name: str) -> None:
    call = CALLS[name]
    compiled = func.jit(call, max_paths=64)
    gradient = func.jit(func.grad(lambda x: loss(call(x))), max_paths=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in SMALL:
            try:
                expected = call(x.copy())
            except (ValueError, IndexError, ZeroDivisionError):
                continue
            assert_same(compiled(x), expected)
            if len(x) and x.tolist() != [1, 2, 1]:  # a polynomial with a double root
                np.testing.assert_allclose(gradient(x), func.grad(lambda x: loss(call(x)))(x), atol=1e-12)


def loss(out: Any) -> Any:
    parts = out if isinstance(out, tuple) else (out,)
    return sum([np.sum(np.sin(part)) for part in parts if part.dtype.kind == "f"]) + 0.0


def assert_same(got: Any, expected: Any) -> None:
    for one, want in zip(*[out if isinstance(out, tuple) else (out,) for out in (got, expected)], strict=True):
        assert np.shape(one) == np.shape(want) and one.dtype == want.dtype
        np.testing.assert_allclose(one, want, atol=1e-12)


def test_pieces_of_plain_arrays_bring_traced_values() -> None:
    at = np.array([0.5, 1.5, 2.5])

    def f(p: Any) -> Any:
        pieces = np.piecewise(at, [at < 1, at > 2], [lambda t: p * t, lambda t: np.sin(p) + 0 * t, p**2])
        along = np.apply_along_axis(lambda row: p * row, 0, at)
        return np.sum(pieces * along) + np.sum(np.vectorize(lambda t: p * t, otypes=[float])(at))

    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    for g in (func.grad(f), func.jit(func.grad(f)), lambda p: func.vmap(func.grad(f))(np.array([p]))[0]):
        np.testing.assert_allclose(g(0.7), slope, rtol=1e-8)


def test_without_guards_the_length_is_named() -> None:
    for call, cure in ((np.unique, "size=n"), (np.trim_zeros, "Slice"), (np.roots, "eigvals")):
        with pytest.raises(func.errors.StagingError, match=cure):
            func.jit(call, guards=False)(np.array([1.0, 2.0, 0.0]))


def test_substitutes_are_numpys_elsewhere() -> None:
    names = ("full", "fromiter", "asarray_chkfinite", "apply_along_axis", "piecewise")
    outside = [getattr(np, name) for name in names]

    def f(x: Any) -> Any:
        assert [getattr(np, name).__name__ for name in names] == list(names)
        np.testing.assert_array_equal(np.full((2, 1), 3), [[3], [3]])
        np.testing.assert_array_equal(np.fromiter(range(3), int, 2), [0, 1])
        return np.sum(np.full(3, x)) + np.sum(np.full((2, 3), [x, 1.0, x])) + np.sum(np.asarray_chkfinite([x, x]))

    assert func.grad(f)(2.0) == func.jit(func.grad(f))(2.0) == 9.0
    with func.intercept():
        assert func.grad(f)(2.0) == 9.0
    assert [getattr(np, name) for name in names] == outside
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="infs or NaNs"):
        func.grad(lambda x: np.sum(np.asarray_chkfinite(x / 0.0)))(X)
    with pytest.raises(ValueError, match="too short"):
        func.grad(lambda x: np.sum(np.fromiter((v for v in x), float, 5)))(X)


X = np.array([1.0, 2.0])
