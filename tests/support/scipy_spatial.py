"""Rows of scipy.spatial."""

from __future__ import annotations

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
T = np.array([0.2, 0.5])


def _unit(x):
    return x / (x @ x) ** 0.5


ROWS: dict[str, Row] = {
    "distance_matrix": Row(lambda m, x: m.distance_matrix(x, Y, 3), X),
    "geometric_slerp": Row(lambda m, x: m.geometric_slerp(_unit(x[0]), _unit(x[1]), T), X[:2]),
    "minkowski_distance": Row(lambda m, x: m.minkowski_distance(x, Y[:4]), X),
    "minkowski_distance_p": Row(lambda m, x: m.minkowski_distance_p(x, Y[:4], 1.5), X),
    "procrustes": Row(lambda m, x: m.procrustes(x, Y[:4])[1], X),
}

PLAIN = "made of plain points; its indices have no derivative"
WITHOUT = {
    "ConvexHull": PLAIN,
    "Delaunay": PLAIN,
    "HalfspaceIntersection": PLAIN,
    "KDTree": PLAIN,
    "QhullError": "an exception",
    "Rectangle": "bounds of plain points",
    "SphericalVoronoi": PLAIN,
    "Voronoi": PLAIN,
    "cKDTree": PLAIN,
    "ckdtree": "a deprecated module",
    "convex_hull_plot_2d": "draws",
    "delaunay_plot_2d": "draws",
    "distance": "a module",
    "kdtree": "a deprecated module",
    "qhull": "a deprecated module",
    "transform": "a module",
    "tsearch": "indices",
    "voronoi_plot_2d": "draws",
}
"""Public names that have no row, with the reason."""

if __name__ == "__main__":
    main("spatial", ROWS)
