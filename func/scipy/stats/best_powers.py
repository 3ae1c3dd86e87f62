"""Transforms to normality by their best parameter, which differentiates by the implicit function theorem.

SciPy searches the parameter. At the maximum the slope of the objective is 0, and this equation gives the derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import original
from func.scipy.kinds.plain_values import on_the_host
from func.scipy.stats.estimates import floats
from func.scipy.stats.sample_functions import boxcox_likelihood, yeojohnson_likelihood, yeojohnson_of

_morestats = private_module("scipy.stats._morestats")

__all__ = [
    "_morestats__boxcox_conf_interval",
    "_morestats__yeojohnson_transform",
    "boxcox_normmax",
    "yeojohnson_normmax",
]

Function = Callable[..., Any]


def _searched(name: str, example: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of SciPy's own function for plain values; `example` has its shapes."""
    plain = original(getattr(_morestats, name))

    def search(*args: Any, **kwargs: Any) -> Any:
        return np.asarray(plain(*args, **kwargs), dtype=float)

    return on_the_host(search, func.stop_gradient(args), func.stop_gradient(kwargs), example)


def _root(equation: Function, found: Any) -> Any:
    """A result as the root of an equation with traced values in its closure."""
    return func.custom_root(equation, lambda g, start: start)(func.stop_gradient(found))


def _misfit(quantiles: Any, order: Any) -> Any:
    """1 - r of a probability plot."""
    q, y = quantiles - np.mean(quantiles), order - np.mean(order)
    return 1 - np.sum(q * y) / np.sqrt(np.sum(q * q) * np.sum(y * y))


def boxcox_normmax(x: Any, brack: Any = None, method: str = "pearsonr", optimizer: Any = None, **limit: Any) -> Any:
    """The best λ of the Box-Cox transform."""
    x = floats(x)
    found = _searched("boxcox_normmax", np.zeros(2 if method == "all" else ()), x, brack, method, optimizer, **limit)
    if method == "all":
        return np.stack([_best_power(x, found[i], kind, limit) for i, kind in enumerate(("pearsonr", "mle"))])
    return _best_power(x, found, method, limit)


def _best_power(x: Any, found: Any, method: str, limit: dict[str, Any]) -> Any:
    plain = func.stop_gradient(x)
    top = limit.get("ymax")
    if top is None:
        top = np.finfo(x.dtype).max / 10000
    least, most = np.min(x), np.max(x)
    outside = np.where(func.stop_gradient(least) >= 1, most, least)
    outside = np.where((func.stop_gradient(least) < 1) & (func.stop_gradient(most) > 1), _farther(x, found), outside)
    reach = sc.boxcox(func.stop_gradient(outside), func.stop_gradient(found))
    bounded = np.abs(reach) >= top * (1 - 1e-9)
    safe = np.where(bounded, 1.0, found)

    def objective(power: Any) -> Any:
        if method == "mle":
            return boxcox_likelihood(x, power)
        return _misfit(
            sc.ndtri(_morestats._calc_uniform_order_statistic_medians(len(plain))), np.sort(sc.boxcox(x, power))
        )

    def equation(power: Any) -> Any:
        free = func.grad(objective)(np.where(bounded, safe, power))
        return np.where(bounded, sc.boxcox(outside, np.where(bounded, power, 0.5)) - np.sign(reach) * top, free)

    return _root(equation, found)


def _farther(x: Any, power: Any) -> Any:
    """The least or the largest value, whichever the transform takes farther from 0."""
    least, most = np.min(x), np.max(x)
    ends = [np.abs(sc.boxcox(func.stop_gradient(v), power)) for v in (most, least)]
    return np.where(ends[0] > ends[1], most, least)


def _morestats__boxcox_conf_interval(x: Any, lmax: Any, alpha: Any) -> tuple[Any, Any]:
    """The interval of λ in which the likelihood is less than the largest one by at most this much."""
    fall = 0.5 * _scipy.chi2.ppf(1 - alpha, 1)
    ends = _searched("_boxcox_conf_interval", np.zeros(2), x, lmax, alpha)
    first, last = [
        _root(lambda power: boxcox_likelihood(x, power) - boxcox_likelihood(x, lmax) + fall, end) for end in ends
    ]
    return first, last


_morestats__yeojohnson_transform = yeojohnson_of


def yeojohnson_normmax(x: Any, brack: Any = None) -> Any:
    """The best λ of the Yeo-Johnson transform."""
    x = floats(x)
    found = _searched("yeojohnson_normmax", np.zeros(()), x, brack)
    constant = np.all(func.stop_gradient(x) == 0)
    slope = func.grad(lambda power: yeojohnson_likelihood(np.where(constant, np.arange(1.0, x.size + 1), x), power))
    return _root(lambda power: np.where(constant, power - 1.0, slope(power)), found)
