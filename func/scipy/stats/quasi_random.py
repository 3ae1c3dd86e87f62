"""Points of quasi-random sequences: measures of their uniformity in the unit cube, and maps to other domains."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line
from func.scipy.kinds.plain_values import answer_of, on_the_host
from func.scipy.stats.estimates import known

_qmc = private_module("scipy.stats._qmc")

__all__ = [
    "qmc_MultinomialQMC___init__",
    "qmc_discrepancy",
    "qmc_geometric_discrepancy",
    "qmc_update_discrepancy",
]


def qmc_discrepancy(sample: Any, *, iterative: bool = False, method: str = "CD", workers: int = 1) -> Any:
    """A discrepancy of points (n, d). Sources: K.-T. Fang and others (2006); Y. Zhou and others (2013)."""
    answer_of(original(_scipy.qmc.discrepancy), sample, iterative=iterative, method=method, workers=workers)
    x = _qmc._ensure_in_unit_hypercube(sample)
    n, d = x.shape
    n = n + 1 if iterative else n
    own = np.abs(x - 0.5)
    pairs = np.abs(x[:, None] - x)
    first, second = own[:, None], own[None]
    if method == "CD":
        singles = 1 + 0.5 * own - 0.5 * own**2
        products = 1 + 0.5 * first + 0.5 * second - 0.5 * pairs
        start, factor = (13.0 / 12.0) ** d, 2.0
    elif method == "WD":
        singles, factor, start = np.zeros(own.shape), 0.0, -((4.0 / 3.0) ** d)
        products = 1.5 - pairs * (1 - pairs)
    elif method == "MD":
        singles = 5.0 / 3.0 - 0.25 * own - 0.25 * own**2
        products = 15.0 / 8.0 - 0.25 * first - 0.25 * second - 0.75 * pairs + 0.5 * pairs**2
        start, factor = (19.0 / 12.0) ** d, 2.0
    else:
        singles, products = 1 - x**2, 1 - np.maximum(x[:, None], x)
        start, factor = 3.0**-d, 2.0 ** (1 - d)
    total = start - factor / n * np.sum(np.prod(singles, axis=-1)) + np.sum(np.prod(products, axis=-1)) / n**2
    return np.sqrt(total) if method == "L2-star" else total


def qmc_update_discrepancy(x_new: Any, sample: Any, initial_disc: Any) -> Any:
    """The centred discrepancy with one more point, from the iterative one without it."""
    answer_of(original(_scipy.qmc.update_discrepancy), x_new, sample, initial_disc)
    x, new = [_qmc._ensure_in_unit_hypercube(np.atleast_2d(points)) for points in (sample, x_new)]
    n = len(x) + 1
    new = new[0]
    own, others = np.abs(new - 0.5), np.abs(x - 0.5)
    single = -2.0 / n * np.prod(1 + 0.5 * own - 0.5 * own**2)
    pairs = 2.0 / n**2 * np.sum(np.prod(1 + 0.5 * own + 0.5 * others - 0.5 * np.abs(new - x), axis=-1))
    return initial_disc + single + pairs + np.prod(1 + own) / n**2


def qmc_geometric_discrepancy(sample: Any, method: str = "mindist", metric: str = "euclidean") -> Any:
    """The least distance of points, or the mean distance along their minimum spanning tree, a constant choice."""
    answer_of(original(_scipy.qmc.geometric_discrepancy), sample, method, metric)
    x = _qmc._ensure_in_unit_hypercube(sample)
    distances = _qmc.distance.pdist(x, metric=metric)
    if known(distances == 0.0):
        warnings.warn("Sample contains duplicate points.", stacklevel=2)
    if method == "mindist":
        return np.min(np.where(distances == 0, np.inf, distances))
    chosen = on_the_host(_tree, (func.stop_gradient(distances), len(x)), {}, np.zeros(distances.shape))
    return np.sum(distances * chosen) / np.sum(chosen)


def _tree(distances: Any, count: int) -> Any:
    """Whether each distance is an edge of the minimum spanning tree."""
    rows, columns = np.triu_indices(count, 1)
    full = np.zeros((count, count))
    full[rows, columns] = distances
    tree = _qmc.minimum_spanning_tree(full).toarray() != 0
    return (tree | tree.T)[rows, columns].astype(float)


def qmc_MultinomialQMC___init__(self: Any, pvals: Any, *args: Any, **kwargs: Any) -> None:
    """Raises an error for traced probabilities: the samples are counts."""
    if holds_traced(pvals):
        raise NotDifferentiableError(
            f"scipy.stats.qmc.MultinomialQMC draws counts, which have no derivative{at_line()}\n"
            "Call it on func.stop_gradient(pvals)."
        )
    original(_scipy.qmc.MultinomialQMC.__init__)(self, pvals, *args, **kwargs)
