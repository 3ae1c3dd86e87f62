"""Rows of scipy.spatial.distance."""

from __future__ import annotations

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
P = RNG.random((2, 3)) + 0.2
W = np.array([0.5, 2.0, 1.0])
OTHER = RNG.normal(size=(2, 3))

ROWS: dict[str, Row] = {
    "braycurtis": Row(lambda m, x: m.braycurtis(x[0], x[1], W), P),
    "canberra": Row(lambda m, x: m.canberra(x[0], x[1]), OTHER),
    "cdist": Row(lambda m, x: m.cdist(x, Y), X),
    "chebyshev": Row(lambda m, x: m.chebyshev(x[0], x[1], W), OTHER),
    "cityblock": Row(lambda m, x: m.cityblock(x[0], x[1], W), OTHER),
    "correlation": Row(lambda m, x: m.correlation(x[0], x[1], W), OTHER),
    "cosine": Row(lambda m, x: m.cosine(x[0], x[1]), OTHER),
    "dice": Row(lambda m, x: m.dice(x[0], x[1], W), P),
    "directed_hausdorff": Row(lambda m, x: m.directed_hausdorff(x, Y)[0], X),
    "euclidean": Row(lambda m, x: m.euclidean(x[0], x[1], W), OTHER),
    "hamming": Row(lambda m, x: m.hamming([1, 0, 1], [1, 1, 0], x), W),
    "jaccard": Row(lambda m, x: m.jaccard([1, 0, 1], [1, 1, 0], x), W),
    "jensenshannon": Row(lambda m, x: m.jensenshannon(x[0], x[1], 2.0), P),
    "mahalanobis": Row(lambda m, x: m.mahalanobis(x[0], x[1], np.eye(3) + 0.1 * x[0, 0] ** 2), OTHER),
    "minkowski": Row(lambda m, x: m.minkowski(x[0], x[1], 3, W), OTHER),
    "pdist": Row(lambda m, x: m.pdist(x, "seuclidean"), X),
    "rogerstanimoto": Row(lambda m, x: m.rogerstanimoto(x[0], x[1]), P),
    "russellrao": Row(lambda m, x: m.russellrao(x[0], x[1]), P),
    "seuclidean": Row(lambda m, x: m.seuclidean(x[0], x[1], x[0] ** 2 + 1.0), OTHER),
    "sokalsneath": Row(lambda m, x: m.sokalsneath(x[0], x[1]), P),
    "sqeuclidean": Row(lambda m, x: m.sqeuclidean(x[0], x[1]), OTHER),
    "squareform": Row(lambda m, x: m.squareform(x**2), RNG.random(6)),
    "yule": Row(lambda m, x: m.yule(x[0], x[1], W), P),
}

WITHOUT = {
    "is_valid_dm": "a truth value",
    "is_valid_y": "a truth value",
    "num_obs_dm": "an integer",
    "num_obs_y": "an integer",
}
"""Public names that have no row, with the reason."""

if __name__ == "__main__":
    main("spatial.distance", ROWS)
