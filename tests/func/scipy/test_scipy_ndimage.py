"""scipy.ndimage: the laws of the rows, and options, dtypes and borders against SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.ndimage

import func
from func.errors import UnsupportedFunctionError
from func.scipy import ndimage
from tests.support.scipy_ndimage import ROWS, WITHOUT
from tests.support.scipy_rows import check, parameters

RNG = np.random.default_rng(5)
MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap", "grid-constant")
ARRAYS = {
    "line": RNG.normal(size=7),
    "image": RNG.normal(size=(4, 5)),
    "single": RNG.normal(size=(4, 5)).astype(np.float32),
    "complex": RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)),
    "complex64": (RNG.normal(size=(3, 4)) + 1j).astype(np.complex64),
    "flat": RNG.normal(size=(1, 3)),
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(RNG.normal(size=(4, 5))),
}
FOOTPRINT = np.array([[True, False, True], [False, True, True]])


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_ndimage_rows(name, column):
    check(ROWS[name], "ndimage", column)


def test_every_function_has_a_row_or_a_reason():
    assert {name.split()[0] for name in ROWS} | set(WITHOUT) == set(scipy.ndimage.__all__)
    assert not {name.split()[0] for name in ROWS} & set(WITHOUT)


def same(call, x):
    """The value of func's function under a transform against SciPy's, or both raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = call(scipy.ndimage, x)
        except Exception as error:
            with pytest.raises((type(error), TypeError)):
                func.vjp(lambda x: call(ndimage, x), x)
            return
        got = func.vjp(lambda x: call(ndimage, x), x)[0]
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-5 if expected.dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


LINEAR = {
    "correlate1d": lambda m, x, mode: m.correlate1d(x, [1.0, -2.0, 0.5, 3.0], 0, mode=mode, cval=0.4, origin=1),
    "convolve1d wide": lambda m, x, mode: m.convolve1d(x, np.arange(1.0, 13.0), mode=mode, cval=0.4, origin=-6),
    "complex weights": lambda m, x, mode: m.correlate1d(x, [1.0, 2j, 0.5], mode=mode),
    "convolve complex weights": lambda m, x, mode: m.convolve1d(x, [1.0, 2j, 0.5], mode=mode),
    "convolve": lambda m, x, mode: m.convolve(x, [[1.0, 2.0, 0.0], [0.5, 0.0, -1.0]], mode=mode, cval=0.4),
    "one axis": lambda m, x, mode: m.convolve(x, [1.0, 2.0], mode=mode, axes=(0,)),
    "gaussian": lambda m, x, mode: m.gaussian_filter(x, 1.3, order=1, mode=mode),
    "gaussian to float32": lambda m, x, mode: m.gaussian_filter(x, (1.3, 0), order=(3, 0), output=np.float32),
    "uniform": lambda m, x, mode: m.uniform_filter(x, 4, mode=mode, cval=0.4, origin=-1),
    "gaussian_laplace": lambda m, x, mode: m.gaussian_laplace(x, 1.1, mode=mode),
    "bad origin": lambda m, x, mode: m.correlate1d(x, [1.0, 2.0], origin=1),
    "bad mode": lambda m, x, mode: m.correlate1d(x, [1.0, 2.0], mode="periodic"),
    "bad weights": lambda m, x, mode: m.correlate1d(x, [[1.0, 2.0]]),
    "sequence of modes": lambda m, x, mode: m.sobel(x, 0, mode=[mode, "wrap"]),
}
CHOOSING = {
    "maximum_filter1d": lambda m, x, mode: m.maximum_filter1d(x, 4, 0, mode=mode, cval=0.3, origin=-2),
    "minimum_filter": lambda m, x, mode: m.minimum_filter(x, footprint=FOOTPRINT, mode=mode, origin=(-1, 1)),
    "median_filter": lambda m, x, mode: m.median_filter(x, 3, mode=mode, cval=0.3),
    "median of four": lambda m, x, mode: m.median_filter(x, 2, mode=mode, cval=0.3),
    "percentile_filter": lambda m, x, mode: m.percentile_filter(x, -20, footprint=FOOTPRINT, mode=mode),
    "rank_filter": lambda m, x, mode: m.rank_filter(x, -1, 3, mode=mode),
    "white_tophat": lambda m, x, mode: m.white_tophat(x, 2, mode=mode),
    "grey_erosion": lambda m, x, mode: m.grey_erosion(x, structure=np.arange(6.0).reshape(2, 3), mode=mode),
    "bad rank": lambda m, x, mode: m.rank_filter(x, 30, 3),
    "no size": lambda m, x, mode: m.maximum_filter(x),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*LINEAR, *CHOOSING])
def test_filters_at_borders(name, mode):
    for x in ARRAYS.values():
        same(lambda m, x: {**LINEAR, **CHOOSING}[name](m, x, mode), x)


POINTS = [-30.3, -0.5, 0, 1.5, 3, 3.7, 22]
INTERPOLATING = {
    "map_coordinates": lambda m, x, o: m.map_coordinates(x, np.tile(POINTS, (x.ndim, 1)), **o),
    "shift": lambda m, x, o: m.shift(x, 1.3, **o),
    "zoom": lambda m, x, o: m.zoom(x, 1.6, **o),
    "zoom of a grid": lambda m, x, o: m.zoom(x, 0.6, grid_mode=True, **o),
    "rotate": lambda m, x, o: m.rotate(x, 33, **o),
    "affine_transform": lambda m, x, o: m.affine_transform(x, np.eye(x.ndim) * 1.2 + 0.1, 0.3, **o),
    "scaling": lambda m, x, o: m.affine_transform(x, [0.7] * x.ndim, 0.3, **o),
    "spline_filter": lambda m, x, o: m.spline_filter(x, o["order"], mode=o["mode"]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_splines_at_borders(order, mode):
    for x in (ARRAYS["line"], ARRAYS["image"], ARRAYS["single"], ARRAYS["complex"], ARRAYS["flat"]):
        for call in INTERPOLATING.values():
            same(lambda m, x, call=call: call(m, x, {"order": order, "mode": mode, "cval": 0.3}), x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_in_coordinates(order, mode):
    x, c = ARRAYS["line"], np.array([[-9.3, -1.2, 0.4, 2.3, 3.8, 5.9, 8.4, 17.7]])
    options = {"order": order, "mode": mode, "cval": 0.3}
    _, dot = func.jvp(lambda c: ndimage.map_coordinates(x, c, **options), (c,), (np.ones_like(c),))
    ahead, behind = [scipy.ndimage.map_coordinates(x, c + h, **options) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(dot, (ahead - behind) / 2e-6, atol=1e-7)


def test_integers_under_jit():
    x = RNG.integers(0, 9, (4, 5))
    for call in (
        lambda m, x: m.correlate1d(x, [0.5, 0.7]),
        lambda m, x: m.shift(x, 0.6),
        lambda m, x: m.median_filter(x, 3),
        lambda m, x: m.gaussian_filter(x, 1.0, output=float),
    ):
        got = func.jit(lambda x, call=call: call(ndimage, x))(x)
        expected = call(scipy.ndimage, x)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected)


def test_lists_and_numbers_of_traced_values():
    def loss(v):
        smooth = scipy.ndimage.gaussian_filter1d([v[0], v[1] * v[0], 1.0, v[1]], v[1])
        return np.sum(smooth**2)

    v = np.array([0.7, 1.1])
    differences = [(loss(v + h) - loss(v - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(func.grad(loss)(v), differences, rtol=1e-7)


def test_the_radius_follows_sigma_in_every_batch_element():
    sigmas = np.array([0.5, 1.0, 2.0])
    x = ARRAYS["line"]
    got = func.vmap(func.grad(lambda s: ndimage.gaussian_filter1d(x, s)[3]))(sigmas)
    expected = [func.grad(lambda s: ndimage.gaussian_filter1d(x, s)[3])(s) for s in sigmas]
    np.testing.assert_allclose(got, expected)


def test_output_arrays():
    x = ARRAYS["image"]

    def loss(x):
        out = np.zeros_like(x)
        result = scipy.ndimage.gaussian_filter(x, 1.0, output=out)
        assert result is out
        return np.sum(out**2)

    np.testing.assert_allclose(func.grad(loss)(x), func.grad(lambda x: np.sum(ndimage.gaussian_filter(x, 1.0) ** 2))(x))
    with pytest.raises(Exception, match="plain NumPy array"):
        func.grad(lambda x: np.sum(scipy.ndimage.sobel(x, output=np.zeros((4, 5)))))(x)
    with pytest.raises(RuntimeError, match="output shape"):
        func.grad(lambda x: np.sum(ndimage.sobel(x, output=np.zeros_like(x[1:]))))(x)


def test_equal_maxima_share_the_derivative():
    gradient = func.grad(lambda x: ndimage.maximum_filter(x, 3)[1])(np.ones(3))
    np.testing.assert_allclose(gradient, [1 / 3, 1 / 3, 1 / 3])


OWN_TIES = {
    "maximum_filter": (lambda x: scipy.ndimage.maximum_filter(x, 3), [0, 54, 12, 0, 3]),
    "constant border": (lambda x: scipy.ndimage.maximum_filter(x, 3, mode="constant", cval=10.0), [0, 36, 12, 0, 0]),
    "median_filter": (lambda x: scipy.ndimage.median_filter(x, 3), [6, 0, 24, 0, 6]),
    "grey_opening": (lambda x: scipy.ndimage.grey_opening(x, 3), [18, 0, 0, 0, 0]),
    "between other writes": (lambda x: scipy.ndimage.grey_dilation(_written(x), 3), [12, 0, 0, np.nan, 0]),
}
"""Filters, and second derivatives of the sum of their cubes."""


def _written(x):
    eroded = scipy.ndimage.grey_erosion(x, 3)
    eroded[1] = 2 * x[3]
    return eroded


@pytest.mark.parametrize("name", OWN_TIES)
def test_an_element_has_no_ties_with_itself(name):
    """Beyond borders, and in windows of windows, one element occurs several times; ties of two are undetermined."""
    f, expected = OWN_TIES[name]
    x = np.array([1.0, 3.0, 2.0, 0.0, 0.5])
    for hessian in (func.hessian, lambda g: func.jit(func.hessian(g)), lambda g: func.jacfwd(func.jacfwd(g))):
        np.testing.assert_allclose(np.diag(hessian(lambda x: np.sum(f(x) ** 3))(x)), expected)
    tied = np.array([1.0, 3.0, 3.0, 0.0, 0.5])
    second = np.diag(func.hessian(lambda x: np.sum(scipy.ndimage.maximum_filter(x, 3) ** 3))(tied))
    np.testing.assert_allclose(second, [0, np.nan, np.nan, 0, 3])


def test_what_has_no_derivative_says_so():
    x = ARRAYS["image"]
    with pytest.raises(UnsupportedFunctionError, match="affine_transform"):
        func.grad(lambda z: np.sum(ndimage.zoom(x, z)))(1.5)
    with pytest.raises(UnsupportedFunctionError, match="labels"):
        func.jit(lambda labels: ndimage.maximum(x, labels, [1, 2]))(np.ones((4, 5), int))
    assert func.grad(lambda x: x[ndimage.maximum_position(x)])(x).sum() == 1


def test_measurements_of_single_regions():
    x = ARRAYS["image"]
    labels = np.arange(20).reshape(4, 5) % 3
    for name in ("sum", "mean", "variance", "standard_deviation", "minimum", "maximum", "median", "center_of_mass"):
        for arguments in ((), (labels,), (labels, 2), (labels, [2, 0]), (labels, np.array([[1], [2]]))):
            if name == "center_of_mass" and np.ndim(arguments[-1:] and arguments[-1]) == 2 and len(arguments) == 2:
                continue
            expected = getattr(scipy.ndimage, name)(x, *arguments)
            got = func.vjp(
                lambda x, name=name, arguments=arguments: np.asarray(getattr(scipy.ndimage, name)(x, *arguments)), x
            )[0]
            np.testing.assert_allclose(got, expected)


def test_the_length_of_a_gradient_of_zero_has_derivative_zero():
    flat = np.ones((4, 5))
    np.testing.assert_array_equal(
        func.grad(lambda x: np.sum(scipy.ndimage.gaussian_gradient_magnitude(x, 1.0)))(flat), 0
    )
    x = func.tensor(ARRAYS["image"], requires_grad=True)
    np.sum(scipy.ndimage.sum_labels(x**2)).backward()
    np.testing.assert_allclose(x.grad, 2 * ARRAYS["image"])


def test_plain_arrays_are_scipys_inside_transforms():
    x, points = ARRAYS["image"], np.array([[0.3, 2.2], [1.4, 3.1]])
    calls = {
        "map_coordinates": lambda: scipy.ndimage.map_coordinates(x, points),
        "affine_transform": lambda: scipy.ndimage.affine_transform(x, np.eye(2) * 1.1, 0.2),
        "shift": lambda: scipy.ndimage.shift(x, 0.3, mode="nearest"),
        "gaussian_filter": lambda: scipy.ndimage.gaussian_filter(x, 1.3),
        "median_filter": lambda: scipy.ndimage.median_filter(x[0], 3),
    }
    expected = {name: call() for name, call in calls.items()}

    def f(t):
        for name, call in calls.items():
            np.testing.assert_array_equal(call(), expected[name])
        return t * t

    assert func.grad(f)(1.5) == 3.0
    with func.intercept():
        assert func.grad(f)(1.5) == 3.0


def test_mappings_by_name_may_hold_traced_values():
    def f(a):
        return np.sum(scipy.ndimage.geometric_transform(ARRAYS["line"], mapping=lambda i: (a * i[0],), order=1))

    difference = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(func.grad(f)(0.7), difference, rtol=1e-6)
