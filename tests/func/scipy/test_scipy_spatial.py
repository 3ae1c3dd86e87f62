"""The laws of the rows of scipy.spatial and scipy.spatial.distance, and metrics and options against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.spatial
from scipy.spatial import distance

import func
from func.errors import TracerConversionError
from tests.support import scipy_spatial, scipy_spatial_distance
from tests.support.scipy_rows import DEPRECATED, check, parameters

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
BITS = np.array([[1.0, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 1]])
W = np.array([0.5, 2.0, 1.0])
VI = np.eye(3) + 0.1
METRICS = [
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming",
    "jaccard", "jensenshannon", "mahalanobis", "minkowski", "rogerstanimoto", "russellrao", "seuclidean",
    "sokalsneath", "sqeuclidean", "yule", "no such metric",
]  # fmt: skip


@pytest.mark.parametrize(("name", "column"), parameters(scipy_spatial_distance.ROWS))
def test_distance_rows(name, column):
    check(scipy_spatial_distance.ROWS[name], "spatial.distance", column)


@pytest.mark.parametrize(("name", "column"), parameters(scipy_spatial.ROWS))
@pytest.mark.filterwarnings(DEPRECATED)
def test_spatial_rows(name, column):
    check(scipy_spatial.ROWS[name], "spatial", column)


@pytest.mark.parametrize("rows", [scipy_spatial, scipy_spatial_distance])
def test_every_public_name_has_a_row_or_a_reason(rows):
    module = scipy.spatial if rows is scipy_spatial else distance
    assert set(module.__all__) <= set(rows.ROWS) | set(rows.WITHOUT)


def same(function, x):
    """Whether traced and plain calls agree, in dtype, shape, value and kind of exception."""
    with np.errstate(all="ignore"):
        try:
            expected = function(x)
        except Exception as error:
            with pytest.raises(type(error)):
                func.jvp(function, (x,), (np.zeros_like(x),))
            return
        got = func.jvp(function, (x,), (np.zeros_like(x),))[0]
    assert np.asarray(got).dtype == np.asarray(expected).dtype and np.shape(got) == np.shape(expected)
    tolerance = 1e-5 if x.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "options", [{}, {"w": W}, {"p": 3}, {"V": W}, {"VI": VI}, {"other": 1}, {"w": W[:2]}, {"w": -W}]
)
def test_pairs_by_every_metric(metric, options):
    for x, y in ((abs(A), abs(B)), (BITS, BITS), (abs(A).astype(np.float32), abs(A))):
        same(lambda x, y=y: distance.cdist(x, y, metric, **options), x)
        same(lambda x: distance.pdist(x, metric, **options), x)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, 4, np.inf])
@pytest.mark.parametrize("w", [None, W])
@pytest.mark.filterwarnings(DEPRECATED)
def test_powers(p, w):
    weights = {} if w is None else {"w": w}
    same(lambda x: distance.cdist(x, B, "minkowski", p=p, **weights), A)
    for x in (A, A.astype(np.float32)):
        same(lambda x: distance.minkowski(x[0], B[0].astype(x.dtype), p, w), x)
    same(lambda x: scipy.spatial.minkowski_distance(x[:4], B, p), A)


def test_powers_of_none_or_less_raise():
    for p in (0, -1):
        same(lambda x, p=p: distance.minkowski(x[0], B[0], p), A)


def test_coinciding_points_have_derivative_zero():
    """By convention: the second derivative is undetermined there, as that of a modulus at zero."""
    for metric in ("euclidean", "minkowski", "seuclidean", "mahalanobis", "cityblock", "canberra", "jensenshannon"):
        options = {"V": W} if metric == "seuclidean" else {"VI": VI} if metric == "mahalanobis" else {}
        x = abs(A[:1])
        value, gradient = func.value_and_grad(lambda x, m=metric, o=options, y=x: distance.cdist(x, y, m, **o)[0, 0])(x)
        assert value == 0 and np.all(gradient == 0)
        second = func.hessian(lambda x, m=metric, o=options, y=x: distance.cdist(x, y, m, **o)[0, 0])(x)
        assert np.all(np.isnan(np.einsum("abcd->d", second))), metric


def test_cosine_has_curvature_where_rounding_clips():
    def f(x):
        return distance.cosine(x, 3 * A[0])

    direction = np.array([1.0, -0.3, 0.2])
    expected = (f(A[0] + 1e-4 * direction) - 2 * f(A[0]) + f(A[0] - 1e-4 * direction)) / 1e-8
    np.testing.assert_allclose(direction @ func.hessian(f)(A[0]) @ direction, expected, rtol=1e-5)


def test_callables():
    same(lambda x: distance.cdist(x, B, lambda u, v: abs(u - v).sum()), A)
    for metric in (distance.seuclidean, distance.mahalanobis, distance.euclidean):
        same(lambda x, m=metric: distance.pdist(x, m), A)
    gradient = func.grad(lambda s: distance.pdist(A, lambda u, v: s * abs(u - v).sum()).sum())(2.0)
    np.testing.assert_allclose(gradient, distance.pdist(A, "cityblock").sum())


def test_square_forms():
    condensed = distance.pdist(A)
    for x in (condensed, condensed[:0], condensed[:5], distance.squareform(condensed), A, A[:3]):
        same(distance.squareform, x)
    same(lambda x: distance.squareform(x, checks=False), A[:3])
    same(lambda x: distance.squareform(x, "tovector"), condensed)


def test_trees_and_hulls_take_plain_points():
    for make in (scipy.spatial.KDTree, scipy.spatial.ConvexHull, scipy.spatial.Delaunay, scipy.spatial.Voronoi):
        with pytest.raises(TracerConversionError):
            func.grad(lambda x, make=make: make(x) and x.sum())(A)


def test_slerp_refuses_points_off_the_sphere():
    with pytest.raises(ValueError, match="unit n-sphere"):
        func.grad(lambda x: scipy.spatial.geometric_slerp(x[0], x[1], 0.5).sum())(A)
