"""SciPy's new distributions, `scipy.stats.Normal` and those of `make_distribution`, on traced parameters.

Their code runs on traced values. Here are the parts of it that are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

from func.special.protocol import implements_scipy

__all__ = ["_distribution_infrastructure_UnivariateDistribution__moment_transform_center"]


def _distribution_infrastructure_UnivariateDistribution__moment_transform_center(
    self: Any, order: Any, moment_as: Any, a: Any, b: Any
) -> Any:
    """The moment about b of moments about a."""
    a, b, *moments = np.broadcast_arrays(a, b, *moment_as)
    order = int(order)
    terms = [sc.binom(order, i) * moments[i] * (a - b) ** (order - i) for i in range(order + 1)]
    return np.sum(np.stack(terms), axis=0)


def _binomial(method: str) -> Any:
    def function(k: Any, n: Any, p: Any) -> Any:
        return getattr(_scipy.binom, method)(k, n, p)

    return function


for _name in ("pmf", "cdf", "sf", "ppf", "isf"):
    implements_scipy(f"_binom_{_name}")(_binomial(_name))
