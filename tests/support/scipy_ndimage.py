"""Rows of scipy.ndimage."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(14)
X = RNG.normal(size=(4, 6))
W1, W2 = RNG.normal(size=4), RNG.normal(size=(2, 3))
FOOTPRINT = np.array([[True, False, True], [False, True, True]])


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
}

if __name__ == "__main__":
    main("ndimage", ROWS)
