"""Quantiles of samples and distances between them: the choice of elements is constant, elements differentiate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import original
from func.scipy.kinds.plain_values import answer_of, on_the_host
from func.scipy.stats.estimates import known
from func.scipy.stats.policies import _axis_nan_policy__contains_nan as contains_nan
from func.scipy.stats.policies import spread

_stats_py = private_module("scipy.stats._stats_py")

__all__ = ["_stats_py__cdf_distance", "quantile", "wasserstein_distance_nd"]

_OFFSETS: dict[str, Callable[[Any], Any]] = {
    "inverted_cdf": lambda p: 0.0,
    "averaged_inverted_cdf": lambda p: 0.0,
    "closest_observation": lambda p: -0.5,
    "interpolated_inverted_cdf": lambda p: 0.0,
    "hazen": lambda p: 0.5,
    "weibull": lambda p: p,
    "linear": lambda p: 1 - p,
    "median_unbiased": lambda p: p / 3 + 1 / 3,
    "normal_unbiased": lambda p: p / 4 + 3 / 8,
}
"""The methods of R. J. Hyndman, Y. Fan (1996), by m: the quantile is at the place p n + m."""
_AT_ONE: dict[str, Any] = {
    "_lower": np.floor,
    "_higher": np.ceil,
    "_nearest": np.round,
    "round_outward": (np.floor, np.ceil),
    "round_inward": (np.ceil, np.floor),
    "round_nearest": (np.round, np.round),
}


def quantile(
    x: Any, p: Any, *, axis: int | None = 0, nan_policy: str = "propagate", weights: Any = None, **options: Any
) -> Any:
    """Quantiles, differentiable by the elements, the probabilities and, where a method interpolates, the weights."""
    if nan_policy == "raise":
        contains_nan(x, nan_policy)
    options |= {} if weights is None else {"weights": weights}
    example = answer_of(original(_scipy.quantile), x, p, axis=axis, nan_policy=nan_policy, **options)
    arrays = [np.asarray(a).astype(example.dtype) for a in (x, p, weights) if a is not None]
    rank = max(1, *[a.ndim for a in arrays[:2]])
    if axis is None:
        arrays, axis, rank = [np.reshape(a, (-1,)) for a in arrays], 0, 1
    arrays = [np.moveaxis(np.reshape(a, (1,) * (rank - a.ndim) + a.shape), int(axis), -1) for a in arrays]
    lead = np.broadcast_shapes(*[a.shape[:-1] for a in arrays])
    x, p, *rest = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
    if x.shape[-1] == 0:
        x = np.full((*lead, 1), np.nan, example.dtype)
    weights = np.broadcast_to(rest[0], x.shape) if rest else None
    out = _sorted_quantile(x, p, weights, options.get("method", "linear"), nan_policy)
    return np.reshape(np.moveaxis(out, -1, int(axis)), example.shape)


def _sorted_quantile(x: Any, p: Any, weights: Any, method: str, nan_policy: str) -> Any:
    """Quantiles along the last axis."""
    if nan_policy == "propagate":
        x = spread(x, -1)
    if weights is not None:
        order = np.argsort(func.stop_gradient(np.where(weights == 0, np.inf, x)), axis=-1)
        y, weights = np.take_along_axis(x, order, axis=-1), np.take_along_axis(weights, order, axis=-1)
        left_out = np.isnan(y) | (weights == 0)
    else:
        y = np.sort(x, axis=-1)
        left_out = np.isnan(y)
    n = np.sum(~left_out, axis=-1, keepdims=True)
    empty = n == 0
    n = np.where(empty, 1, n).astype(y.dtype)
    y = np.where(np.isnan(y), 0.0, y)
    bad = ~((p >= 0) & (p <= 1))
    p = np.where(bad, 0.5, p)
    if method == "harrell-davis":
        out = _harrell_davis(y, p, n)
    elif method in _OFFSETS:
        out = _interpolated(y, p, n, method, weights)
    else:
        out = _at_one(y, p, n, method)
    return np.where(bad | empty, np.nan, out)


def _taken(y: Any, place: Any) -> Any:
    return np.take_along_axis(y, func.stop_gradient(place).astype(int), axis=-1)


def _interpolated(y: Any, p: Any, n: Any, method: str, weights: Any) -> Any:
    offset = _OFFSETS[method](p)
    if weights is None:
        at = p * n + offset
        above = np.floor(func.stop_gradient(at))
        below = above - 1
    else:
        sums = np.cumsum(weights, axis=-1)
        at = p * _taken(sums, n - 1) + offset
        plain, held = func.stop_gradient(sums)[..., None, :], func.stop_gradient(at)[..., None]
        above = np.sum(plain <= held, axis=-1).astype(y.dtype)
        below = np.sum(plain <= held - 1, axis=-1).astype(y.dtype)
    share = at - np.floor(func.stop_gradient(at))
    if method == "inverted_cdf":
        share = np.where(share > 0, 1.0, 0.0)
    elif method == "averaged_inverted_cdf":
        share = np.where(share > 0, 1.0, 0.5)
    elif method == "closest_observation":
        share = np.where((share == 0) & (below % 2 == 1), 0.0, 1.0)
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        share = np.where(at < 0, 0.0, share)
    share = np.where(below < 0, 0.0, share).astype(y.dtype)
    low, high = [_taken(y, np.clip(place, 0.0, n - 1)) for place in (below, above)]
    return (1 - share) * low + share * high


def _harrell_davis(y: Any, p: Any, n: Any) -> Any:
    """Sums of all elements with weights of a beta distribution. Source: F. Harrell, C. Davis (1982)."""
    p, n = p[..., None], n[..., None]
    steps = np.arange(y.shape[-1] + 1, dtype=y.dtype) / n
    weights = np.diff(sc.betainc(p * (n + 1), (1 - p) * (n + 1), np.minimum(steps, 1.0)), axis=-1)
    at_end = (p == 0) | (p == 1)
    ends = np.where(p == 0, steps[..., :-1] == 0, np.abs(steps[..., 1:] - 1) < 1e-9)
    weights = np.where(at_end, ends, np.where(np.isnan(weights), 0.0, weights))
    return np.sum(weights * y[..., None, :], axis=-1)


def _at_one(y: Any, p: Any, n: Any, method: str) -> Any:
    if method.startswith("round"):
        left, right = _AT_ONE[method]
        return _taken(y, np.clip(np.where(p < 0.5, left(p * n), right(n * p - 1)), 0, n - 1))
    place = func.stop_gradient(p * (n - 1))
    if method == "_midpoint":
        return (_taken(y, np.floor(place)) + _taken(y, np.ceil(place))) / 2
    return _taken(y, _AT_ONE[method](place))


def _distribution_function(values: Any, weights: Any, at: Any) -> Any:
    order = np.argsort(func.stop_gradient(values))
    counts = np.searchsorted(func.stop_gradient(values)[order], func.stop_gradient(at), side="right")
    if weights is None:
        return counts / values.size
    sums = np.concatenate([np.zeros(1), np.cumsum(func.numpy.take(weights, order))])
    return func.numpy.take(sums, counts) / sums[-1]


def _stats_py__cdf_distance(p: Any, u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """The distance of two distribution functions: ∫ |U - V|ᵖ to the power of 1/p."""
    u_values, u_weights = _stats_py._validate_distribution(u_values, u_weights)
    v_values, v_weights = _stats_py._validate_distribution(v_values, v_weights)
    every = np.sort(np.concatenate([u_values, v_values]))
    gaps, places = np.diff(every), every[:-1]
    apart = _distribution_function(u_values, u_weights, places) - _distribution_function(v_values, v_weights, places)
    if p == 1:
        return np.sum(np.abs(apart) * gaps)
    if p == 2:
        return np.sqrt(np.sum(apart * apart * gaps))
    return np.power(np.sum(np.abs(apart) ** p * gaps), 1 / p)


def wasserstein_distance_nd(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """The least mean distance of a transport, the solution of a linear program; its pairs are constant."""
    answer_of(original(_scipy.wasserstein_distance_nd), u_values, v_values, u_weights, v_weights)
    if np.ndim(u_values) == 1:
        return _stats_py__cdf_distance(1, u_values, v_values, u_weights, v_weights)
    u_values, u_weights = _stats_py._validate_distribution(u_values, u_weights)
    v_values, v_weights = _stats_py._validate_distribution(v_values, v_weights)
    infinite = [known(np.isinf(values)) for values in (u_values, v_values)]
    if any(infinite):
        return np.nan if all(infinite) else np.inf
    m, n = len(u_values), len(v_values)
    squares = np.sum((u_values[:, None, :] - v_values) ** 2, axis=-1)
    apart = squares > 0
    costs = np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), 0.0)
    shares = [
        np.full(size, 1 / size) if weights is None else weights / np.sum(weights)
        for size, weights in ((m, u_weights), (n, v_weights))
    ]
    plan, prices, response = _transport(costs, *shares)
    plain, constant = np.concatenate(shares), func.stop_gradient(np.ravel(costs))
    change = plain - func.stop_gradient(plain)
    if u_weights is None and v_weights is None:
        return np.sum(plan * costs)
    moved = response @ change  # the change of the plan with the weights; the prices give its cost
    return np.sum(plan * costs) + np.sum(prices * change) + np.sum((np.ravel(costs) - constant) * moved)


def _transport(costs: Any, left: Any, right: Any) -> Any:
    """The best plan, the prices of both marginals, and the plan's dependence on the marginals, as constants."""
    linprog = original(importlib.import_module("scipy.optimize").linprog)
    m, n = costs.shape

    def solve(costs: Any, left: Any, right: Any) -> Any:
        sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
        found = linprog(np.ravel(costs), A_eq=sums, b_eq=np.concatenate([left, right]), method="highs")
        response = np.linalg.pinv(sums * (found.x > 1e-12))
        return np.reshape(found.x, (m, n)), found.eqlin.marginals, response

    example = np.zeros((m, n)), np.zeros(m + n), np.zeros((m * n, m + n))
    return on_the_host(solve, func.stop_gradient((costs, left, right)), {}, example)
