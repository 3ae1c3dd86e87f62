"""Sorting, quantiles, sets and histograms on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from tests.support import numpy_properties as check
from tests.support.numpy_properties import Function

RNG = np.random.default_rng(11)
V = RNG.normal(size=9)
M = RNG.normal(size=(5, 4))
T = RNG.normal(size=(3, 4, 2))
W = RNG.uniform(0.5, 1.5, (5, 4))
Q = np.array([0.13, 0.46, 0.81])
HOLES = M.copy()
HOLES[[0, 2, 2, 4], [0, 1, 3, 3]] = np.nan
C = M + 1j * RNG.normal(size=(5, 4))
METHODS = [
    *["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull"],
    *["linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"],
]


def with_method(name: str, q: Any, **options: Any) -> Function:
    """A quantile by one of the methods."""
    return lambda x: np.quantile(x, q, method=name, **options)


SMOOTH: dict[str, tuple[Function, Any]] = {
    "sort": (np.sort, M),
    "sort axis": (lambda x: np.sort(x, axis=0), T),
    "sort flat": (lambda x: np.sort(x, axis=None), M),
    "sort stable": (lambda x: np.sort(x, axis=1, stable=True), T),
    "sort kind": (lambda x: np.sort(x, kind="heapsort"), M),
    "sort complex": (np.sort, C),
    "sort_complex": (np.sort_complex, V),
    "partition": (lambda x: np.partition(x, 3), V),
    "partition axis": (lambda x: np.partition(x, (1, -2), axis=0), M),
    "partition flat": (lambda x: np.partition(x, 7, axis=None), M),
    "median": (np.median, M),
    "median axis": (lambda x: np.median(x, axis=1, keepdims=True), M),
    "median axes": (lambda x: np.median(x, axis=(0, 2)), T),
    "median odd": (lambda x: np.median(x, axis=0), M),
    "quantile": (lambda x: np.quantile(x, 0.3), M),
    "quantile axis": (lambda x: np.quantile(x, Q, axis=1), M),
    "quantile keepdims": (lambda x: np.quantile(x, [[0.2, 0.7]], axis=(0, 2), keepdims=True), T),
    "quantile of q": (lambda q: np.quantile(M, q, axis=0), Q),
    "quantile of scalar q": (lambda q: np.quantile(M, q[0]), Q),
    "percentile": (lambda x: np.percentile(x, [10, 55], axis=0), M),
    "percentile of q": (lambda q: np.percentile(M, 100 * q, axis=1, method="weibull"), Q),
    "weighted": (lambda x: np.quantile(x, Q, axis=0, weights=W, method="inverted_cdf"), M),
    "weighted row": (lambda x: np.quantile(x, 0.4, axis=1, weights=W[0], method="inverted_cdf"), M),
    "nanmedian": (lambda x: np.nanmedian(x, axis=1), HOLES),
    "nanmedian all": (np.nanmedian, HOLES),
    "nanquantile": (lambda x: np.nanquantile(x, Q, axis=0), HOLES),
    "nanquantile keepdims": (lambda x: np.nanquantile(x, 0.4, axis=1, keepdims=True), HOLES),
    "nanpercentile": (lambda x: np.nanpercentile(x, 30), HOLES),
    "nan weighted": (lambda x: np.nanquantile(x, 0.3, axis=1, weights=W, method="inverted_cdf"), HOLES),
    **{f"quantile {name}": (with_method(name, Q, axis=0), M) for name in METHODS},
    **{f"quantile scalar {name}": (with_method(name, 0.37), V) for name in METHODS},
    **{
        f"nanquantile {name}": (lambda x, name=name: np.nanquantile(x, Q, axis=0, method=name), HOLES)
        for name in METHODS
    },
    "unique": (np.unique, V),
    "unique rows": (lambda x: np.unique(x, axis=0), M),
    "unique inverse": (lambda x: np.unique(x, return_inverse=True)[0], M),
    "unique_values": (lambda x: np.sort(np.unique_values(x)), V),
    "unique_all": (lambda x: np.unique_all(x).values, V),
    "union1d": (lambda x: np.union1d(x, V[:3]), V[2:] + 0.01),
    "intersect1d": (lambda x: np.intersect1d(x, x[::-1]), V),
    "setdiff1d": (lambda x: np.setdiff1d(x, [7.0, 8.0]), V),
    "setxor1d": (lambda x: np.setxor1d(x, [7.0, 8.0]), V),
    "bincount": (lambda w: np.bincount([0, 2, 0, 5, 2], weights=w, minlength=8), V[:5]),
    "histogram weights": (lambda w: np.histogram(V, bins=4, weights=w)[0], np.abs(V)),
    "histogram uneven weights": (lambda w: np.histogram(V, bins=[-2.0, 0, 0.5, 2], weights=w)[0], np.abs(V)),
    "histogram density": (lambda w: np.histogram(V, 4, (-1, 1), True, w)[0], np.abs(V)),
    "histogram complex": (lambda w: np.histogram(V, bins=3, weights=w)[0], C[:3, :3].ravel()),
    "histogram2d": (lambda w: np.histogram2d(V, V[::-1], bins=(2, 3), weights=w)[0], np.abs(V)),
    "histogramdd": (lambda w: np.histogramdd(M[:, :3], bins=2, density=True, weights=w)[0], np.abs(V[:5])),
    "bin edges": (lambda x: np.histogram_bin_edges(x, 4), V),
}
OTHER_ORDER = {"nan weighted"}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_are_numpys_to_the_bit(name: str) -> None:
    check.check_value(SMOOTH[name], exact=name not in OTHER_ORDER)


@pytest.mark.parametrize("name", SMOOTH)
def test_both_modes_agree_with_differences(name: str) -> None:
    check.check_modes(SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_second_order(name: str) -> None:
    check.check_second_order(SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_mapped_is_the_stack_of_singles(name: str) -> None:
    check.check_mapped(SMOOTH[name])


CONSTANT: dict[str, Function] = {
    "argsort": lambda x: np.argsort(x, axis=0),
    "argsort flat": lambda x: np.argsort(x, axis=None, stable=True),
    "argpartition": lambda x: np.sort(np.argpartition(x, 2, axis=0)[:3], axis=0),
    "lexsort": lambda x: np.lexsort((x[0], x[1])),
    "lexsort array": np.lexsort,
    "searchsorted": lambda x: np.searchsorted([-1.0, 0.0, 1.0], x, side="right"),
    "searchsorted in": lambda x: np.searchsorted(np.sort(x[0]), [0.1, 0.5]),
    "searchsorted sorter": lambda x: np.searchsorted(x[0], 0.3, sorter=np.argsort(x[0])),
    "digitize": lambda x: np.digitize(x, [-1.0, 0.0, 1.0], right=True),
    "digitize falling": lambda x: np.digitize(x, [1.0, 0.0, -1.0]),
    "digitize in": lambda x: np.digitize([0.0, 0.2], np.sort(x[0])),
    "isin": lambda x: np.isin(x, M[0]),
    "isin inverted": lambda x: np.isin(x > 0, [True], invert=True),
    "histogram": lambda x: np.histogram(x, bins=6, range=(-1.5, 1.5))[0],
    "histogram auto": lambda x: np.histogram(x, bins="auto")[0],
    "histogram uneven": lambda x: np.histogram(x, bins=[-3.0, -1.0, 0.0, 0.1, 2.0])[0],
    "histogram2d": lambda x: np.histogram2d(x[0], x[1], bins=3)[0],
    "histogramdd": lambda x: np.histogramdd(x, bins=[2, 3, 2, 1], range=[(-1, 1)] * 4)[0],
    "bincount": lambda x: np.bincount((x > 0).ravel().astype(int)),
    "unique counts": lambda x: np.unique(np.round(x), return_counts=True)[1],
    "unique inverse": lambda x: np.unique(x, return_inverse=True, return_index=True)[1:],
}


@pytest.mark.parametrize("name", CONSTANT)
def test_functions_without_a_derivative(name: str) -> None:
    check.check_constant(CONSTANT[name], M)


REFUSED: dict[str, Function] = {
    "sort axis": lambda x: np.sort(x, axis=2),
    "sort kind": lambda x: np.sort(x, kind="fast"),
    "sort kind and stable": lambda x: np.sort(x, kind="stable", stable=True),
    "sort scalar": lambda x: np.sort(x[0, 0]),
    "argsort axis": lambda x: np.argsort(x, axis=-3),
    "kth": lambda x: np.partition(x, 4),
    "kth of floats": lambda x: np.partition(x, 1.5),
    "searchsorted side": lambda x: np.searchsorted(x[0], 1.0, side="middle"),
    "searchsorted axes": lambda x: np.searchsorted(x, 1.0),
    "digitize bins": lambda x: np.digitize(x, [0.0, 1.0, 0.5]),
    "bincount of floats": lambda x: np.bincount(x[0]),
    "bincount of complex weights": lambda x: np.bincount([0, 1], weights=x[0, :2] * 1j),
    "bincount lengths": lambda x: np.bincount([0, 1, 2], weights=x[0, :2]),
    "bincount negative": lambda x: np.bincount([0, -1], weights=x[0, :2]),
    "quantile range": lambda x: np.quantile(x, 1.5),
    "percentile range": lambda x: np.percentile(x, [50, -1]),
    "quantile method": lambda x: np.quantile(x, 0.5, method="other"),
    "quantile weights": lambda x: np.quantile(x, 0.5, weights=W),
    "quantile negative weights": lambda x: np.quantile(x, 0.5, weights=-W, method="inverted_cdf"),
    "quantile of complex": lambda x: np.quantile(x * 1j, 0.5),
    "quantile of nothing": lambda x: np.quantile(x[:0], 0.5),
    "median axis": lambda x: np.median(x, axis=2),
    "histogram bins": lambda x: np.histogram(x, bins=0),
    "histogram falling bins": lambda x: np.histogram(x, bins=[1.0, 0.0]),
    "histogram range": lambda x: np.histogram(x, range=(1, 0)),
    "histogram infinite": lambda x: np.histogram(x + np.inf),
    "histogram weights": lambda x: np.histogram(x, weights=x[0]),
    "histogram float bins": lambda x: np.histogram(x, bins=2.5),
    "unique axis": lambda x: np.unique(x, axis=2),
    "isin kind": lambda x: np.isin(x, [1.0], kind="table"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused(name: str) -> None:
    check.check_refusal(REFUSED[name], M)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "?"])
@pytest.mark.parametrize("q", [0.3, 1, [0, 1], [0.25, 0.5], np.float64(0.3), np.float32(0.25)], ids=repr)
def test_dtypes_of_quantiles_are_numpys(q: Any, dtype: str) -> None:
    x = (RNG.normal(size=(7, 3)) * 5).astype(dtype)
    if dtype == "?":
        x = x.astype("u1")
    for function in (np.quantile, np.percentile, np.nanquantile):
        check.assert_same(getattr(func.numpy, function.__name__)(x, q, axis=0), function(x, q, axis=0))


def test_nan_takes_over_the_quantiles_of_its_slice() -> None:
    for f in (np.median, lambda x, axis: np.quantile(x, Q, axis=axis)):
        check.assert_same(func.vjp(lambda x, f=f: f(x, axis=0), HOLES)[0], f(HOLES, axis=0))


def test_batch_elements_may_have_sets_of_different_sizes() -> None:
    x = np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [5.0, 4.0, 5.0]])
    sums = func.vmap(lambda row: np.sum(np.unique(row) ** 2))(x)
    np.testing.assert_array_equal(sums, [5.0, 9.0, 41.0])


def test_a_large_sample_is_counted_block_by_block() -> None:
    x = RNG.normal(size=150_000)
    w = RNG.uniform(size=150_000)
    for bins in (50, [-9.0, -1.0, 0.0, 0.3, 9.0]):
        expected = np.histogram(x, bins=bins, weights=w)
        check.assert_same(func.vjp(lambda w, bins=bins: np.histogram(x, bins=bins, weights=w)[0], w)[0], expected[0])
