"""Routines run as the Python functions that they are: against SciPy and NumPy, without any compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from func.backends.routines import dense_factors, dense_spectra, matrix_parts, small_lu, thin_product
from func.backends.routines.special_families import ROUTINES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(5)
ARGUMENTS: dict[str, tuple[tuple[float, ...], ...]] = {
    "digamma": ((0.3, 2.5, -1.5, 40.0, 0.0, -1.0, np.inf),),
    "gammainc": ((0.2, 3.0, 20.0), (0.1, 2.5, 30.0)),
    "betainc": ((0.5, 4.0), (2.0, 0.3), (0.2, 0.9)),
    "ndtri": ((1e-9, 0.3, 0.5, 0.999, 0.0, 2.0),),
    "zeta": ((1.5, 3.0), (0.4, 7.0)),
    "i0e": ((0.5, 9.0, -3.0),),
    "ellipk": ((0.3, -5.0, 0.99),),
    "jv": ((0.0, 3.0, -2.0), (0.7, 12.0)),
    "erfcx": ((0.1, 3.0, -1.0),),
    "gdtr": ((1.5,), (2.0,), (0.3, 4.0)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_special_functions_are_those_of_scipy(name: str) -> None:
    routine = ROUTINES[{"zeta": "hurwitz_zeta"}.get(name, name)]
    for args in np.array(np.meshgrid(*ARGUMENTS[name])).reshape(len(ARGUMENTS[name]), -1).T:
        np.testing.assert_allclose(routine(*args), getattr(scipy.special, name)(*args), rtol=1e-12)


@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3), (70, 66)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_lu_factors(shape: tuple[int, int], order: Any) -> None:
    a = np.asarray(RNG.normal(size=shape), order=order)
    factors, pivots = a.copy(order="K"), np.zeros(min(shape), np.int32)
    assert not dense_factors.lu(*shape, factors, pivots)
    expected, exchanges = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(factors, expected, atol=1e-12)
    np.testing.assert_array_equal(pivots, exchanges)


@pytest.mark.parametrize("n", [24, 27])
def test_small_lu_factors(n: int) -> None:
    a = RNG.normal(size=(n, n))
    factors, pivots = a.T.copy().ravel(), np.zeros(n, np.int32)
    small_lu.small_lu(n, factors, pivots)
    expected, exchanges = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(factors.reshape(n, n).T, expected, atol=1e-12)
    np.testing.assert_array_equal(pivots, exchanges)


@pytest.mark.parametrize("n", [1, 5, 8, 20])
def test_factors_of_positive_matrices(n: int) -> None:
    a = RNG.normal(size=(n, n))
    a = a @ a.T + np.eye(n)
    for lower in (True, False):
        factor = a.copy()
        assert not dense_factors.cholesky(n, factor, lower)
        np.testing.assert_allclose(factor, scipy.linalg.cholesky(a, lower=lower), atol=1e-12)
    inverse = scipy.linalg.cholesky(a, lower=True)
    assert not dense_factors.cholesky_inverse(n, inverse)
    np.testing.assert_allclose(inverse @ a, np.eye(n), atol=1e-9)
    assert dense_factors.cholesky(n, -a, True)


@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (3, 7)])
def test_orthogonal_factors(shape: tuple[int, int]) -> None:
    (m, n), count = shape, min(shape)
    a, tau = RNG.normal(size=shape), np.zeros(count)
    rows = np.concatenate([a.T, np.zeros((max(0, m - n), m))])
    dense_factors.qr(m, n, rows, tau)
    upper = np.zeros((count, n))
    matrix_parts.upper(count, n, rows.T, upper)
    dense_factors.qr_basis(m, count, count, rows, tau)
    np.testing.assert_allclose(rows[:count].T @ upper, a, atol=1e-12)
    np.testing.assert_allclose(rows[:count] @ rows[:count].T, np.eye(count), atol=1e-12)


def test_eigenvalues_and_singular_values() -> None:
    n = 6
    a = RNG.normal(size=(n, n))
    a = a + a.T
    w, v = np.zeros(n), np.zeros((n, n))
    assert not dense_spectra.eigh(n, a.copy().ravel(), w, v, np.zeros(n), np.zeros(n), np.zeros(3 * n))
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-12)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-12)
    m = 8
    b, s = RNG.normal(size=(m, n)), np.zeros(n)
    left, right = np.zeros((n, m)), np.zeros((n, n))
    assert not dense_spectra.singular(m, n, b.copy().ravel(), n, left, right, s, np.zeros(3 * m + 7 * n))
    np.testing.assert_allclose(s, np.linalg.svd(b)[1], atol=1e-12)
    np.testing.assert_allclose((left.T * s) @ right, b, atol=1e-12)


def solved(solve: Callable[..., Any], n: int, *args: Any) -> Any:
    """The solution that a routine writes."""
    x = np.zeros((n, 2))
    failed = solve(n, 2, *args, x, np.zeros((n, n)), np.zeros(n, np.int32))
    return None if failed else x


def test_solutions() -> None:
    a, b = RNG.normal(size=(5, 5)), RNG.normal(size=(5, 2))
    np.testing.assert_allclose(solved(dense_factors.solve, 5, a, b), np.linalg.solve(a, b), atol=1e-12)
    assert solved(dense_factors.solve, 5, np.ones((5, 5)), b) is None
    sign, logarithm, pivots = np.zeros(1), np.zeros(1), np.zeros(5, np.int32)
    factors = a.copy()
    dense_factors.lu(5, 5, factors, pivots)
    matrix_parts.determinant(5, np.diag(factors), 0, pivots, sign, logarithm)
    np.testing.assert_allclose((sign[0], logarithm[0]), np.linalg.slogdet(a), rtol=1e-12)


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_thin_products(orders: str) -> None:
    x = np.asarray(RNG.normal(size=(9, 7)), order=orders[0])  # type: ignore[call-overload]
    y = np.asarray(RNG.normal(size=(7, 19)), order=orders[1])  # type: ignore[call-overload]
    steps = [stride // 8 for array in (x, y) for stride in array.strides]
    out = np.full(9 * 19, np.nan)
    flat = x.ravel(order="K"), *steps[:2], y.ravel(order="K"), *steps[2:]
    thin_product.thin_product(4, 4, 8, 5, 64, 9, 19, 7, *flat, out, 19)
    np.testing.assert_allclose(out.reshape(9, 19), x @ y, atol=1e-12)
