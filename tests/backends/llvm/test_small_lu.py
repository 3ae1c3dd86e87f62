"""LU factors that are written out: those of LAPACK, for every remainder of rows and every kind of matrix."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func
from func.backends.routines.small_lu import LEAST_ROWS, MOST_ROWS, WIDTH
from func.interpreters.primitives.linalg.inverses import lu_factors

SIZES = (LEAST_ROWS - 1, LEAST_ROWS, 4 * WIDTH - 1, 4 * WIDTH, 41, 100)


def general(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, n))


MATRICES: dict[str, Any] = {
    "general": general,
    "dominated by the diagonal": lambda n: general(n) / n + 3 * np.eye(n),
    "a permutation": lambda n: np.eye(n)[np.random.default_rng(n).permutation(n)],
    "tiny": lambda n: general(n) * 1e-300,
    "graded": lambda n: general(n) * np.logspace(-8, 8, n)[:, None],
    "zeros": lambda n: np.zeros((n, n)),
    "a row of zeros": lambda n: general(n) * (np.arange(n) != n // 2)[:, None],
    "a column of zeros": lambda n: general(n) * (np.arange(n) != n // 3),
    "ones": lambda n: np.ones((n, n)),
}


@pytest.fixture(scope="module")
def factors() -> Any:
    return func.jit(lambda a: lu_factors(a))


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", SIZES)
def test_factors_are_those_of_lapack(factors: Any, n: int, name: str) -> None:
    for dtype in (np.float64, np.float32):
        a = MATRICES[name](n).astype(dtype)
        packed, pivots = factors(a)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, exchanges = scipy.linalg.lu_factor(a)
        np.testing.assert_array_equal(pivots, exchanges)
        assert packed.dtype == dtype and pivots.dtype == np.int32
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(packed, expected, rtol=0, atol=50 * n * np.finfo(dtype).eps * size)
        assert np.any(np.diag(packed) == 0) == np.any(np.diag(expected) == 0)


@pytest.mark.parametrize("n", [MOST_ROWS, MOST_ROWS + 1])
def test_both_sides_of_the_largest_size(factors: Any, n: int) -> None:
    a = general(n)
    packed, pivots = factors(a)
    order = np.arange(n)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    product = (np.tril(packed, -1) + np.eye(n)) @ np.triu(packed)
    np.testing.assert_allclose(product, a[order], atol=1e-12)


def test_subnormal_pivots_divide(factors: Any) -> None:
    a = np.eye(24)[::-1] * 1e-310
    packed, _ = factors(a + np.eye(24, k=1)[::-1] * 3e-310)
    assert np.all(np.isfinite(packed)) and np.all(np.diag(packed) != 0)
    np.testing.assert_array_equal(factors(a)[0], np.eye(24) * 1e-310)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_inside(factors: Any, value: float) -> None:
    a = general(24)
    a[5, 7] = value
    packed, pivots = factors(a)
    assert not np.all(np.isfinite(packed))
    assert np.all(np.arange(24) <= pivots) and np.all(pivots < 24)


def test_stacks_and_layouts(factors: Any) -> None:
    stack = np.random.default_rng(0).normal(size=(2, 3, 25, 25))
    packed, pivots = factors(stack)
    for place in np.ndindex(2, 3):
        expected, exchanges = scipy.linalg.lu_factor(stack[place])
        np.testing.assert_allclose(packed[place], expected, atol=1e-12)
        np.testing.assert_array_equal(pivots[place], exchanges)
    np.testing.assert_allclose(factors(stack[0, 0].T)[0], scipy.linalg.lu_factor(stack[0, 0].T)[0], atol=1e-12)
