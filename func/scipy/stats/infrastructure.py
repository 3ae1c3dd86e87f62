"""SciPy's new distributions, `scipy.stats.Normal` and those of `make_distribution`, on traced parameters.

Their code runs on traced values. Here are the parts of it that NumPy cannot hand over: compiled functions and lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy
from scipy.stats import _hypotests

from func.interpreters.core import is_plain_array, known_value, shape_of
from func.scipy.doors import original
from func.special.protocol import implements_scipy

__all__ = ["_distribution_infrastructure_UnivariateDistribution__moment_transform_center", "_hypotests__tukey_hsd_iv"]


def _hypotests__tukey_hsd_iv(args: Any, *options: Any) -> list[Any]:
    """The samples of scipy.stats.tukey_hsd, checked as far as their values are known."""
    known = [known_value(np.asarray(arg)) for arg in args]
    known = [
        k if is_plain_array(k) and k.shape == shape_of(arg) else np.zeros(shape_of(arg))
        for k, arg in zip(known, args, strict=True)
    ]
    original(_hypotests._tukey_hsd_iv)(known, *options)
    return [np.asarray(arg) for arg in args]


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
