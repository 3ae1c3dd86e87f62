"""Estimates by order and by roots: slopes of medians, expectiles, adjusted p-values, posterior distributions.

The order of the data is a constant: an estimate has the derivative of the formula that holds nearby.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import original
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.scipy.kinds.traces import TRACED_MATH, traces
from func.scipy.stats.policies import _axis_nan_policy__contains_nan as contains_nan
from func.scipy.stats.policies import in_wrapper

_stats_mstats_common = private_module("scipy.stats._stats_mstats_common")
_stats_py = private_module("scipy.stats._stats_py")

__all__ = [
    "describe",
    "expectile",
    "mvsdist",
    "siegelslopes",
    "theilslopes",
]


KEEPS_PRECISION = np.lib.NumpyVersion(scipy.__version__) >= "1.18.0"
"""Whether SciPy's lines through points have the precision of the points, rather than double precision."""


def known(condition: Any) -> bool:
    """Whether a condition holds somewhere, as far as known."""
    return not is_abstract_value(condition) and bool(np.any(func.stop_gradient(condition)))


def floats(x: Any) -> Any:
    """An array of floating point."""
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _points(y: Any, x: Any, dtype: Any = None) -> tuple[Any, Any]:
    y = np.ravel(floats(y))
    x = np.arange(len(y), dtype=y.dtype if KEEPS_PRECISION else float) if x is None else np.ravel(floats(x))
    if len(x) != len(y):
        raise ValueError("Array shapes are incompatible for broadcasting.")
    if len(x) < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    dtype = np.result_type(x, y, np.float32) if dtype is None else dtype
    return y.astype(dtype), x.astype(dtype)


def _slopes(y: Any, x: Any) -> tuple[Any, Any, Any]:
    """Slopes between all pairs of points, and whether x differs, and increases."""
    dx, dy = x[:, None] - x, y[:, None] - y
    apart = dx != 0
    return dy / np.where(apart, dx, 1.0), apart, dx > 0


def _nth(sorted_values: Any, place: Any) -> Any:
    """An element by its place, which may be a traced number; NaN without a place."""
    last = sorted_values.shape[0] - 1
    inside = (place >= 0) & (place <= last)
    return np.where(inside, sorted_values[np.clip(place, 0, last)], np.nan)


def _median_of(values: Any, chosen: Any) -> Any:
    """The median along the last axis of the selected values."""
    counts = np.sum(chosen, axis=-1, keepdims=True)
    order = np.sort(np.where(chosen, values, np.inf), axis=-1)
    low, high = [np.clip(place, 0, values.shape[-1] - 1) for place in ((counts - 1) // 2, counts // 2)]
    pair = [np.take_along_axis(order, place, axis=-1)[..., 0] for place in (low, high)]
    found = (counts[..., 0] > 0) & ~np.any(chosen & np.isnan(values), axis=-1)
    return np.where(found, 0.5 * (pair[0] + pair[1]), np.nan)


@in_wrapper("siegelslopes")
def siegelslopes(y: Any, x: Any = None, method: str = "hierarchical") -> Any:
    """The line by repeated medians of slopes."""
    if method not in ("hierarchical", "separate"):
        raise ValueError("method can only be 'hierarchical' or 'separate'")
    y, x = _points(y, x) if KEEPS_PRECISION else [v.astype(float) for v in _points(y, x)]
    slopes, apart, _ = _slopes(y, x)
    slope = _median_over_rows(slopes, apart)
    if method == "separate":
        intercepts = (y * x[:, None] - y[:, None] * x) / np.where(apart, x[:, None] - x, 1.0)
        return _stats_mstats_common.SiegelslopesResult(slope=slope, intercept=_median_over_rows(intercepts, apart))
    return _stats_mstats_common.SiegelslopesResult(slope=slope, intercept=np.median(y - slope * x))


def _median_over_rows(values: Any, chosen: Any) -> Any:
    """The median of the medians of rows, of those rows that have a median."""
    return _median_of(_median_of(values, chosen), np.any(chosen, axis=-1))


@in_wrapper("theilslopes")
def theilslopes(y: Any, x: Any = None, alpha: Any = 0.95, method: str = "separate") -> Any:
    """The line by the median of slopes, with an interval of the slope between two of the slopes."""
    if method not in ("joint", "separate"):
        raise ValueError(f"method must be either 'joint' or 'separate'.'{method}' is invalid.")
    y, x = _points(y, x, None if KEEPS_PRECISION else float)
    slopes, _, increasing = _slopes(y, x)
    slopes, increasing = np.reshape(slopes, (-1,)), np.reshape(increasing, (-1,))
    if not is_abstract_value(increasing) and not np.any(increasing):
        warnings.warn("All `x` coordinates are identical.", RuntimeWarning, stacklevel=2)
    slope = _median_of(slopes, increasing)
    intercept = np.median(y - slope * x) if method == "joint" else np.median(y) - slope * np.median(x)
    z = _scipy.norm.ppf((1.0 - alpha if alpha > 0.5 else alpha) / 2.0)
    n, pairs = len(y), np.sum(increasing)
    variance = (n * (n - 1) * (2 * n + 5) - _of_ties(x) - _of_ties(y)) / 18.0
    sigma = np.sqrt(np.maximum(variance, 0.0))
    high = np.minimum(np.round((pairs - z * sigma) / 2.0).astype(int), pairs - 1)
    low = np.maximum(np.round((pairs + z * sigma) / 2.0).astype(int) - 1, 0)
    order = np.sort(np.where(increasing, slopes, np.inf))
    within = ~np.isnan(slope) & (variance >= 0) & (pairs > 0) & (low < pairs)
    interval = [np.where(within, _nth(order, place), np.nan) for place in (low, np.where(high < 0, pairs + high, high))]
    return _stats_mstats_common.TheilslopesResult(
        slope=slope, intercept=intercept, low_slope=interval[0], high_slope=interval[1]
    )


def _of_ties(values: Any) -> Any:
    """Σ k (k - 1) (2k + 5) over groups of k equal values."""
    values = func.stop_gradient(values)
    counts = np.sum(values[:, None] == values, axis=-1)
    return np.sum((counts - 1) * (2 * counts + 5))


def expectile(a: Any, alpha: Any = 0.5, *, weights: Any = None) -> Any:
    """The expectile, by SciPy's root: the mean with weights α above itself and 1 - α below."""
    if known(alpha < 0) or known(alpha > 1):
        raise ValueError("The expectile level alpha must be in the range [0, 1].")
    a = np.ravel(floats(a))
    if a.size == 0:
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    weights = np.ones(a.shape) if weights is None else np.ravel(np.broadcast_to(weights, a.shape))
    plain, level, w = [func.stop_gradient(v) for v in (a, alpha, weights)]
    at = plain[:, None]  # the sign of the equation at each value tells which values are below the root
    equation = np.sum(w * np.where(plain <= at, 1 - level, level) * (plain - at), axis=-1)
    share = np.where(equation >= 0, 1 - alpha, alpha) * weights
    return np.sum(share * a) / np.sum(share)


mvsdist = traces(_scipy.mvsdist, math=TRACED_MATH)


def describe(a: Any, axis: Any = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """Several statistics of a sample; NaN is omitted from samples of one dimension."""
    a = np.asarray(a)
    if nan_policy == "omit" and contains_nan(a, nan_policy):
        if axis is not None and a.ndim > 1:
            raise UnsupportedFunctionError(
                f"scipy.stats.describe: nan_policy='omit' with traced values of several dimensions{at_line()}\n"
                "Call it for each slice: scipy.stats.describe(x[:, 0], nan_policy='omit')."
            )
        a, axis = np.ravel(a)[~np.ravel(func.stop_gradient(np.isnan(a)))], 0
    policy = "propagate" if nan_policy == "omit" else nan_policy
    return original(_stats_py.describe)(a, axis=axis, ddof=ddof, bias=bias, nan_policy=policy)
