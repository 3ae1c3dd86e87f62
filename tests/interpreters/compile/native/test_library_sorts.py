"""Sorts in native code: the bits of NumPy's results for every dtype, kind and axis, and no order that nothing needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import symbols
from func.backends.llvm.call_stubs import capi, numpy_sorts
from func.backends.llvm.linalg import sorts
from func.interpreters.compile.passes import optimize

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not capi.available(), reason="NumPy's functions are not read here")

SHAPES = ((0,), (1,), (300,), (4, 17, 3), (3, 0))
SPECIAL = (np.nan, -0.0, 0.0, -np.inf, complex(1, np.nan), complex(np.nan, 2), -0.0, 1.0)


def elements(char: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers with ties, and the special ones that the dtype has."""
    rng = np.random.default_rng(len(shape))
    x = np.round(rng.normal(size=shape) * 4) + (1j * np.round(rng.normal(size=shape)) if char in "FD" else 0)
    if char in "efdFD" and x.size:
        places = rng.integers(x.size, size=x.size // 2)
        x.reshape(-1)[places] = np.resize(np.array(SPECIAL if char in "FD" else SPECIAL[:4], x.dtype), places.shape)
    return (x if char in "bhilqefdFD" else abs(x)).astype(char)


@pytest.mark.parametrize("function", [np.sort, np.argsort])
@pytest.mark.parametrize("char", "?bBhHiIlLqQefdFD")
def test_results_have_the_bits_of_numpy(char: str, function: Callable[..., Any]) -> None:
    for shape in SHAPES:
        x = elements(char, shape)[::-1]
        places = [*itertools.product(range(len(shape)), (None, "stable", "heapsort")), (None, None)]

        def results(x: Any, places: list[Any] = places) -> list[Any]:
            return [function(x, *place) for place in places]

        for got, want in zip(func.jit(results, compiler="llvm")(x), results(x), strict=True):
            assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes()), shape


def primitives_of(f: Callable[..., Any], *args: Any) -> list[str]:
    return [equation.primitive.name for equation in optimize(func.make_program(f)(*args)).equations]


X = np.array([0.3, -1.0, 2.0, 0.5])
PROGRAMS: dict[str, tuple[Callable[..., Any], list[str] | None]] = {
    "values alone": (np.sort, ["sort"]),
    "values and order": (lambda x: (np.sort(x), np.argsort(x)), ["argsort", "reorder"]),
    "another array's order": (lambda x: np.take_along_axis(x * 2, np.argsort(x), 0), None),
    "selection": (lambda x: np.partition(x, 2), ["partition"]),
    "median": (lambda x: np.quantile(x, 0.5), None),
    "pullback": (lambda x: func.vjp(np.sort, x)[1](x), ["argsort", "inverse_order", "reorder"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_order_is_found_once_and_only_where_it_is_needed(name: str) -> None:
    f, wanted = PROGRAMS[name]
    names = primitives_of(f, X)
    assert sum([names.count(sort) for sort in ("sort", "argsort", "partition", "partition_order")]) == 1
    assert wanted is None or names == wanted
    eager, compiled = (np.concatenate([np.ravel(part) for part in np.atleast_1d(g(X))]) for g in (f, func.jit(f)))
    np.testing.assert_array_equal(compiled, eager)


def test_derivatives_follow_the_elements() -> None:
    x = elements("d", (4, 17, 3))
    x = np.nan_to_num(x, posinf=7, neginf=-7) + np.arange(x.size).reshape(x.shape) / 1000

    def loss(x: Any) -> Any:
        return (np.sort(x, 1, "stable") * np.arange(17)[:, None]).sum() + (np.partition(x, 3, 0)[3] ** 2).sum()

    np.testing.assert_allclose(func.jit(func.grad(loss))(x), func.grad(loss)(x))
    cubes = func.jit(func.hessian(lambda v: (np.sort(v) ** 3).sum()))(x[0, :, 0])
    np.testing.assert_allclose(cubes, np.diag(6 * x[0, :, 0]))


def test_a_number_that_is_no_place_stops_the_inverse() -> None:
    from func.interpreters.primitives.structural.sorting import inverse_order

    inverse = func.jit(lambda order: inverse_order(order, axis=0))
    np.testing.assert_array_equal(inverse(np.array([2, 0, 1])), [1, 2, 0])
    np.testing.assert_array_equal(inverse(np.array([-1, 0, 1])), [1, 2, 0])
    with pytest.raises(IndexError):
        inverse(np.array([2, 0, 3]))


def test_rows_of_loops_are_sorted() -> None:
    rows = elements("d", (4, 17, 3))[0]
    sums = func.jit(lambda rows: func.scan(lambda total, row: (total + np.sort(row), np.argsort(row)), rows[0], rows))(
        rows
    )
    np.testing.assert_array_equal(sums[0], rows[0] + np.sort(rows).sum(0))
    np.testing.assert_array_equal(sums[1], np.argsort(rows))


@pytest.mark.parametrize("wrong", ["place", "interpreter"])
def test_numpy_sorts_where_its_functions_are_not_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "place":  # heap sorts in the place of quick ones give another order of ties
        monkeypatch.setattr(numpy_sorts, "KINDS", {"quicksort": 1, "stable": 1})
    else:
        monkeypatch.setattr(capi, "available", lambda: False)
    numpy_sorts._checked.cache_clear()
    symbols.find.cache_clear()
    try:
        assert not sorts.is_available("argsort", np.float64, "stable")
        x = elements("d", (300,))
        np.testing.assert_array_equal(func.jit(lambda x: np.argsort(x, kind="stable"))(x), np.argsort(x, kind="stable"))
    finally:
        numpy_sorts._checked.cache_clear()
        symbols.find.cache_clear()
