"""np.linalg, np.fft, scipy.linalg and scipy.special: values, dtypes and errors at the edges of their arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import func
from func import linalg, special

A = np.array([[4.0, 0.3], [-0.2, 3.0]])
BATCH = np.stack([A, A + np.eye(2)])

VALUES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "factorial of NaN": (lambda library: library.factorial(np.array([np.nan, 3.0, -1.0])), "special"),
    "diagsvd of an infinity": (lambda library: library.diagsvd(np.array([np.inf, np.nan]), 3, 2), "linalg"),
    "leslie of an infinity": (lambda library: library.leslie(np.ones(3), np.array([np.inf, 1.0])), "linalg"),
    "det in double precision": (lambda library: library.det(A.astype(np.float32)), "linalg"),
    "Toeplitz in double precision": (lambda library: library.matmul_toeplitz(np.float32([2, 1]), A), "linalg"),
    "residuals of complex systems": (lambda library: library.lstsq(A + 0j, A)[1], "linalg"),
    "residuals of batches": (lambda library: library.lstsq(A, BATCH)[1], "linalg"),
    "factors of batches": (lambda library: library.cho_solve((BATCH, np.array([True, True])), A), "linalg"),
    "exponential of a number": (lambda library: library.expm(np.array(2.0)), "linalg"),
    "softmax of small integers": (lambda library: library.softmax(np.array([1, 2], np.int8)), "special"),
    "half precision by the first loop": (lambda library: library.ellipk(np.float16([0.3])), "special"),
    "factor of a number": (lambda library: library.cho_factor(np.array(2.0))[0], "linalg"),
    "rows of one number": (lambda library: library.lu([[4.0]], p_indices=True)[0], "linalg"),
    "comb of numbers": (lambda library: library.comb(np.float64(5), 2), "special"),
    "perm of numbers": (lambda library: library.perm(np.float64(5), 2), "special"),
}


@pytest.mark.parametrize("name", VALUES)
def test_as_scipy(name: str) -> None:
    call, space = VALUES[name]
    with np.errstate(all="ignore"):
        expected = call({"linalg": scipy.linalg, "special": scipy.special}[space])
        got = call({"linalg": linalg, "special": special}[space])
    assert np.asarray(got).dtype == np.asarray(expected).dtype and np.shape(got) == np.shape(expected)
    assert isinstance(got, np.ndarray) == isinstance(expected, np.ndarray)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_loss_without_width_has_no_slope() -> None:
    """pseudo_huber(0, r) is zero for every r."""
    assert func.grad(lambda r: special.pseudo_huber(0.0, r))(0.3) == 0
    slopes = func.jvp(lambda r: special.pseudo_huber(np.array([0.0, 1.0]), r), (0.3,), (1.0,))[1]
    np.testing.assert_allclose(slopes, [0.0, 0.3 / np.sqrt(1.09)])


@pytest.mark.parametrize("name", ["bdtr", "bdtrc"])
def test_numbers_of_trials_are_rounded_down(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for n in (0.9, 2.7):
            function = lambda p, n=n: getattr(special, name)(0.0, n, p)  # noqa: E731
            difference = (function(0.3 + 1e-6) - function(0.3 - 1e-6)) / 2e-6
            np.testing.assert_allclose(func.grad(function)(0.3), difference, atol=1e-8)


@pytest.mark.parametrize("name", ["bdtr", "bdtrc"])
def test_slopes_of_binomial_distributions_where_they_are_constant(name: str) -> None:
    function = getattr(special, name)
    k, n, p = [
        np.array(x) for x in ([0.4, -0.5, 3.0, 4.0, 1.0, 1.0], [-0.12, 3, 3, 3, 3, 3], [0.7, 0.3, 0.3, 0.3, 1.5, 0.3])
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        slopes = func.jvp(lambda p: function(k, n, p), (p,), (np.ones(6),))[1]
        differences = (function(k, n, p + 1e-6) - function(k, n, p - 1e-6)) / 2e-6
    np.testing.assert_allclose(slopes, differences, atol=1e-8)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "fft into another shape": (lambda x: np.fft.fft(x, out=np.zeros((1, 2, 2), complex) + x * 0), ValueError),
    "irfft2 into another shape": (lambda x: np.fft.irfftn(x, out=np.zeros((3, 2)) * x[0, 0]), ValueError),
    "multi_dot into another dtype": (
        lambda x: np.linalg.multi_dot([x, x, x], out=(x * 0).astype(np.float32)),
        ValueError,
    ),
    "subsets by a driver for all": (lambda x: linalg.eigh(x, subset_by_index=(0, 0), driver="evd"), ValueError),
    "diagsvd of too many": (lambda x: linalg.diagsvd(x[0], 2, 1), ValueError),
    "infinities before transposed": (lambda x: linalg.solve(x + 0j, [1.0, np.inf], transposed=True), ValueError),
    "complex transposed": (lambda x: linalg.solve(x + 0j, [1.0, 2.0], transposed=True), NotImplementedError),
    "factors of different triangles": (lambda x: linalg.cho_solve((x, np.array([True, False])), x), ValueError),
}


@pytest.mark.parametrize("a", [BATCH[:, :1], BATCH[..., :1], BATCH, np.array([[[-3.0]], [[2.0]]])], ids=np.shape)
def test_one_driver_stands_for_both(a: Any) -> None:
    u, s, vh = linalg.svd(a, lapack_driver="gesvd", full_matrices=False)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=1e-12)
    for got, expected in zip((u, s, vh), scipy.linalg.svd(a, full_matrices=False), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    program, error = ERRORS[name]
    with pytest.raises(error):
        func.jvp(program, (A,), (A,))


def test_slopes_far_outside() -> None:
    """SciPy's series for them does not end there."""
    x = np.array([np.inf, 1e300, 900.0, -900.0, -1e300, -np.inf, np.nan, 0.5])
    slopes = func.jvp(special.exprel, (x,), (np.ones(8),))[1]
    near = (special.exprel(0.5 + 1e-6) - special.exprel(0.5 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slopes, [np.inf, np.inf, np.inf, 900.0**-2, 0, 0, np.nan, near], rtol=1e-8)


SYMMETRIC = np.array([[2.0, 0.3, -0.4, 0.1], [0.3, 1.0, 0.2, 0.5], [-0.4, 0.2, -1.5, 0.7], [0.1, 0.5, 0.7, 0.4]])
HERMITIAN = SYMMETRIC + 0.3j * np.triu(SYMMETRIC, 1) - 0.3j * np.tril(SYMMETRIC, -1)
METRIC = np.diag([2.0, 3.0, 2.5, 4.0]) + 0.1 * SYMMETRIC
PENCILS = [(SYMMETRIC,), (HERMITIAN,), (SYMMETRIC, METRIC), (HERMITIAN, METRIC + 0.05 * HERMITIAN)]
SUBSETS: list[dict[str, Any]] = [
    {},
    {"subset_by_index": (1, 2)},
    {"subset_by_index": (0, 3)},
    {"subset_by_value": (-np.inf, 0.5)},
    {"subset_by_value": (50.0, 60.0)},
]


def in_signs_of(near: Any, v: Any) -> Any:
    """Columns with the signs of others nearby; drivers of LAPACK choose new signs at each point."""
    return v * np.where(np.sum(abs(v - near) ** 2, 0) > np.sum(abs(v + near) ** 2, 0), -1, 1)


def check_vectors(reference: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = reference(*args)
    up, down = [
        reference(*[x + step * x @ x if x.ndim > 1 else x + step * x**2 for x in args]) for step in (1e-6, -1e-6)
    ]
    out, tangent = func.jvp(own, args, tuple([x @ x if x.ndim > 1 else x**2 for x in args]))
    for a, b in zip(out, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(tangent[0], (up[0] - down[0]) / 2e-6, atol=1e-6)
    v = expected[1]
    np.testing.assert_allclose(tangent[1], (in_signs_of(v, up[1]) - in_signs_of(v, down[1])) / 2e-6, atol=1e-6)


@pytest.mark.parametrize("subset", SUBSETS, ids=str)
@pytest.mark.parametrize("place", range(len(PENCILS)))
def test_vectors_of_subsets_are_those_of_scipy(place: int, subset: dict[str, Any]) -> None:
    args = PENCILS[place]
    for kind in (1, 2, 3) if len(args) == 2 else (1,):
        for driver in (None, "gvx" if len(args) == 2 else "evx"):
            options = {"type": kind, "driver": driver, "lower": kind == 2, **subset}
            check_vectors(
                lambda *xs, options=options: scipy.linalg.eigh(*xs, **options),
                lambda *xs, options=options: linalg.eigh(*xs, **options),
                args,
            )


@pytest.mark.parametrize("driver", ["auto", "stemr", "stebz"])
@pytest.mark.parametrize("chosen", [("a", None), ("i", (1, 2)), ("i", (0, 0)), ("v", (-1.0, 2.0))], ids=str)
def test_vectors_of_tridiagonal_subsets(driver: str, chosen: tuple[str, Any]) -> None:
    options: dict[str, Any] = {"select": chosen[0], "select_range": chosen[1], "lapack_driver": driver}
    check_vectors(
        lambda *xs: scipy.linalg.eigh_tridiagonal(*xs, **options),
        lambda *xs: linalg.eigh_tridiagonal(*xs, **options),
        (np.array([1.0, 2.5, -0.5, 0.7]), np.array([0.3, 0.8, -0.4])),
    )


def test_counts_of_batches_are_refused_by_name() -> None:
    with pytest.raises(func.errors.ArgumentError, match="counts may differ"):
        linalg.eigh(BATCH, subset_by_value=(0.0, 9.0))


def test_products_of_empty_vectors_in_other_orders() -> None:
    rows, square = np.zeros((1, 0, 2)), np.ones((4, 4))[::2, ::2]
    assert func.numpy.linalg.matmul(rows, square).shape == (1, 0, 2)
    empty = np.zeros((2, 0))
    out = func.jvp(lambda x: np.linalg.vecdot(x, np.zeros(0, bool)), (empty,), (empty,))[0]
    np.testing.assert_array_equal(out, np.zeros(2))


@pytest.mark.parametrize("driver", ["auto", "stebz", "stemr", "sterf", "stev"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_eigenvalues_of_tridiagonal_matrices_that_are_not_finite_are_nan_in_compiled_code(driver, bad):
    """With such numbers LAPACK's search would never end; eager calls raise, as SciPy."""
    d, e = np.array([1.0, bad, 2.0]), np.array([0.5, 0.25])
    with pytest.raises(ValueError, match="infs or NaNs"):
        func.linalg.eigvalsh_tridiagonal(d, e, lapack_driver=driver)
    assert np.isnan(func.jit(lambda d, e: func.linalg.eigvalsh_tridiagonal(d, e, lapack_driver=driver))(d, e)).all()
    if driver != "sterf":
        subset = {} if driver == "stev" else {"select": "i", "select_range": (0, 1)}
        w, v = func.jit(lambda d, e: func.linalg.eigh_tridiagonal(d, e, lapack_driver=driver, **subset))(d, e)
        assert np.isnan(w).all() and np.isnan(v).all()
