"""Rows of scipy.ndimage."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(14)
X = RNG.normal(size=(4, 6))
W1, W2 = RNG.normal(size=4), RNG.normal(size=(2, 3))
FOOTPRINT = np.array([[True, False, True], [False, True, True]])

C = np.array([[0.2, 2.7, 1.4, -0.6], [3.3, -1.6, 5.4, 0.7]])
A, A23 = np.array([[0.812, 0.317], [-0.213, 1.087]]), np.array([[0.8, 0.3, 0.4], [-0.2, 1.1, 0.7]])
L = np.array([[0, 1, 1, 2, 0, 3], [3, 1, 2, 2, 0, 3], [1, 1, 0, 0, 3, 2], [0, 2, 2, 3, 1, 1]])
INDEX = [2, 7, 1, 3]
CUBE = RNG.normal(size=(3, 2, 4))


def warp(index, a):
    """For geometric_transform."""
    return a[0, 0] * index[0] + 0.3, a[1, 1] * index[1] + a[0, 1] * index[0] + 0.1


def cumulated(line, output):
    """For generic_filter1d: writes the output."""
    output[:] = np.sin(line[2:]) * line[:-2]


def second_difference(input, axis, output, mode, cval):
    """For generic_laplace: an n-dimensional correlation along one axis."""
    return scipy.ndimage.correlate1d(input, [1, -2, 1], axis, output, mode, cval)


ROWS: dict[str, Row] = {
    "correlate1d": Row(lambda m, x: m.correlate1d(x, W1, axis=0, mode="mirror", origin=-2), X),
    "correlate1d weights": Row(lambda m, w: m.correlate1d(X, w, mode="wrap"), W1),
    "convolve1d": Row(lambda m, x: m.convolve1d(x, W1 + x[0, :4], mode="constant", cval=0.3), X),
    "correlate": Row(lambda m, x: m.correlate(x, W2, mode="nearest", origin=(0, 1)), X),
    "correlate weights": Row(lambda m, w: m.correlate(X, w), W2),
    "convolve": Row(lambda m, x: m.convolve(x, x[:2, :3], mode="reflect"), X),
    "gaussian_filter1d": Row(lambda m, x: m.gaussian_filter1d(x, 0.7, order=1), X),
    "gaussian_filter": Row(lambda m, x: m.gaussian_filter(x, (0.7, 1.1), order=(2, 0), mode=("wrap", "mirror")), X),
    "gaussian_filter sigma": Row(lambda m, s: m.gaussian_filter(X, s, radius=(2, 3)), np.array([0.8, 1.2])),
    "gaussian_gradient_magnitude": Row(lambda m, x: m.gaussian_gradient_magnitude(x, 0.9), X),
    "gaussian_laplace": Row(lambda m, x: m.gaussian_laplace(x, (0.9, 0.6)), X),
    "laplace": Row(lambda m, x: m.laplace(x, mode="wrap"), X),
    "prewitt": Row(lambda m, x: m.prewitt(x, axis=0), X),
    "sobel": Row(lambda m, x: m.sobel(x, mode=("nearest", "mirror")), X),
    "uniform_filter1d": Row(lambda m, x: m.uniform_filter1d(x, 4, axis=0, origin=-1), X),
    "uniform_filter": Row(lambda m, x: m.uniform_filter(x, (2, 3), mode="constant", cval=1.5), X),
    "maximum_filter1d": Row(lambda m, x: m.maximum_filter1d(x, 3, axis=0, mode="wrap", origin=1), X),
    "minimum_filter1d": Row(lambda m, x: m.minimum_filter1d(x, 4, mode="constant", cval=-0.5), X),
    "maximum_filter": Row(lambda m, x: m.maximum_filter(x, size=(2, 3), mode=("wrap", "mirror")), X),
    "minimum_filter": Row(lambda m, x: m.minimum_filter(x, footprint=FOOTPRINT, mode="nearest"), X),
    "rank_filter": Row(lambda m, x: m.rank_filter(x, -2, size=(2, 3)), X),
    "median_filter": Row(lambda m, x: m.median_filter(x, footprint=FOOTPRINT, origin=(0, 1)), X),
    "median_filter line": Row(lambda m, x: m.median_filter(x[0], 3, mode="constant", cval=0.1), X),
    "percentile_filter": Row(lambda m, x: m.percentile_filter(x, 30, size=3, axes=(1,)), X),
    "generic_filter": Row(lambda m, x: m.generic_filter(x, lambda v: np.sum(np.sin(v)) + v[0], size=(2, 1)), X[:2, :3]),
    "generic_filter1d": Row(lambda m, x: m.generic_filter1d(x, cumulated, 3, axis=0), X[:3, :2]),
    "generic_laplace": Row(lambda m, x: m.generic_laplace(x, second_difference), X),
    "generic_gradient_magnitude": Row(lambda m, x: m.generic_gradient_magnitude(x, m.sobel), X),
    "vectorized_filter": Row(lambda m, x: m.vectorized_filter(x, np.std, size=(2, 3), mode="constant"), X),
    "grey_erosion": Row(lambda m, x: m.grey_erosion(x, structure=W2), X),
    "grey_dilation": Row(lambda m, x: m.grey_dilation(x, footprint=FOOTPRINT, structure=W2, origin=(0, -1)), X),
    "grey_dilation structure": Row(lambda m, s: m.grey_dilation(X, structure=s), W2),
    "grey_opening": Row(lambda m, x: m.grey_opening(x, size=(2, 3)), X),
    "grey_closing": Row(lambda m, x: m.grey_closing(x, size=3), X),
    "morphological_gradient": Row(lambda m, x: m.morphological_gradient(x, size=(2, 2)), X),
    "morphological_laplace": Row(lambda m, x: m.morphological_laplace(x, footprint=FOOTPRINT), X),
    "white_tophat": Row(lambda m, x: m.white_tophat(x, size=(2, 3)), X),
    "black_tophat": Row(lambda m, x: m.black_tophat(x, size=(2, 3)), X),
    "spline_filter": Row(lambda m, x: m.spline_filter(x, 4), X),
    "spline_filter1d": Row(lambda m, x: m.spline_filter1d(x, 5, axis=0, mode="reflect"), X),
    "map_coordinates": Row(lambda m, x: m.map_coordinates(x, C, order=3, mode="reflect"), X),
    "map_coordinates coordinates": Row(lambda m, c: m.map_coordinates(X, c, order=3, mode="mirror"), C),
    "map_coordinates nearest": Row(lambda m, c: m.map_coordinates(X, c, order=4, mode="nearest"), C),
    "map_coordinates grid": Row(lambda m, c: m.map_coordinates(X, c, order=2, mode="grid-constant", cval=0.7), C),
    "affine_transform": Row(lambda m, a: m.affine_transform(X, a, offset=a[0], mode="wrap", order=2), A),
    "affine_transform homogeneous": Row(lambda m, a: m.affine_transform(X, a, order=5, mode="grid-wrap"), A23),
    "affine_transform diagonal": Row(lambda m, x: m.affine_transform(x, x[0, :2] + 0.8, (0.3, -0.2), (3, 5)), 0.1 * X),
    "geometric_transform": Row(lambda m, a: m.geometric_transform(X, warp, extra_arguments=(a,)), A),
    "shift": Row(lambda m, s: m.shift(X, s, mode="nearest"), np.array([0.4, -1.3])),
    "shift input": Row(lambda m, x: m.shift(x, (0.4, -1.3), order=1, cval=0.2), X),
    "zoom": Row(lambda m, x: m.zoom(x, (1.5, 0.7), mode="mirror"), X),
    "rotate": Row(lambda m, x: m.rotate(x, 31.0, mode="reflect"), X),
    "rotate angle": Row(lambda m, a: m.rotate(CUBE, a[0], axes=(0, 2), reshape=False), np.array([31.0])),
    "fourier_gaussian": Row(lambda m, s: m.fourier_gaussian(X, s), np.array([0.6, 0.3])),
    "fourier_uniform": Row(lambda m, x: m.fourier_uniform(x, 1.0 + x[0, :2] ** 2), X),
    "fourier_ellipsoid": Row(lambda m, s: m.fourier_ellipsoid(X, s, n=11), np.array([1.6, 2.3])),
    "fourier_shift": Row(lambda m, s: m.fourier_shift(X, s, n=9, axis=0), np.array([0.6, 0.3])),
    "sum": Row(lambda m, x: m.sum(x, L), X),
    "sum_labels": Row(lambda m, x: m.sum_labels(x, L, INDEX), X),
    "mean": Row(lambda m, x: m.mean(x, L, [[2, 1], [0, 3]]), X),
    "variance": Row(lambda m, x: m.variance(x, L, [3, 1]), X),
    "standard_deviation": Row(lambda m, x: m.standard_deviation(x, L, [3, 1]), X),
    "minimum": Row(lambda m, x: m.minimum(x, L, INDEX), X),
    "maximum": Row(lambda m, x: m.maximum(x, L, INDEX), X),
    "median": Row(lambda m, x: m.median(x, L, INDEX), X),
    "extrema": Row(lambda m, x: m.extrema(x, L, INDEX), X),
    "center_of_mass": Row(lambda m, x: np.stack([np.stack(c) for c in m.center_of_mass(x, L, [1, 3])]), X**2 + 1),
    "labeled_comprehension": Row(
        lambda m, x: m.labeled_comprehension(x, L, INDEX, lambda v: np.sum(np.exp(v)), float, 0.5), X
    ),
}

WITHOUT: dict[str, str] = {
    **dict.fromkeys(
        ["binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_hit_or_miss",
         "binary_opening", "binary_propagation", "generate_binary_structure", "iterate_structure"],
        "returns booleans",
    ),
    **dict.fromkeys(
        ["distance_transform_bf", "distance_transform_cdt", "distance_transform_edt"], "a function of booleans"
    ),
    **dict.fromkeys(["find_objects", "label", "value_indices", "watershed_ift"], "a function of integers"),
    **dict.fromkeys(["maximum_position", "minimum_position"], "returns positions"),
    "histogram": "counts",
}  # fmt: skip

if __name__ == "__main__":
    main("ndimage", ROWS)
