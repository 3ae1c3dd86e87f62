"""Statistics of values in bins: they differentiate by the values; the choice of bins is a constant."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.scipy.kinds.plain_values import on_the_host, without_derivative

__all__ = ["binned_statistic_dd"]

_KNOWN = ("mean", "median", "count", "sum", "std", "min", "max")
_NAMES = {np.mean: "mean", np.std: "std", np.sum: "sum", np.median: "median", np.min: "min", np.max: "max"}


_held = without_derivative(
    "scipy.stats.binned_statistic has no derivative by x alone: which bin it is in is a constant\n"
    "Write func.stop_gradient(x), or differentiate by the values."
)

_binned_statistic = private_module("scipy.stats._binned_statistic")


def binned_statistic_dd(
    sample: Any,
    values: Any,
    statistic: Any = "mean",
    bins: Any = 10,
    range: Any = None,
    expand_binnumbers: bool = False,
    binned_statistic_result: Any = None,
) -> Any:
    """A statistic of the values in each bin of several dimensions."""
    if callable(statistic):
        statistic = next((name for function, name in _NAMES.items() if statistic is function), statistic)
    elif statistic not in _KNOWN:
        raise ValueError(f"invalid statistic {statistic!r}")
    is_array = hasattr(sample, "shape") and len(sample.shape) == 2
    sample = np.asarray(sample) if is_array else np.transpose(np.atleast_2d(np.asarray(sample)))
    length, dimensions = sample.shape
    values = np.asarray(values)
    shape = values.shape
    values = np.atleast_2d(values)
    if statistic != "count" and values.shape[1] != length:
        raise AttributeError("The number of `values` elements must match the length of each `sample` dimension.")
    if not holds_traced((values, binned_statistic_result)) and not holds_traced(bins):
        sample = _held(sample)
    plain = func.stop_gradient(sample)

    if binned_statistic_result is not None:
        numbers, edges = binned_statistic_result.binnumber, list(binned_statistic_result.bin_edges)
    else:
        where = on_the_host(_placed, func.stop_gradient((plain, bins, range)), {})
        numbers, edges = where.binnumber, _edges(sample, bins, range, where.bin_edges)
    sizes = [len(edge) + 1 for edge in edges]
    rows = [_of_row(values[i], numbers, int(np.prod(sizes)), statistic) for i in builtins.range(values.shape[0])]
    out = np.reshape(np.stack(rows), (-1, *sizes))
    out = out[(slice(None), *[slice(1, -1)] * dimensions)]
    if expand_binnumbers and dimensions > 1:
        steps = [int(np.prod(sizes[i + 1 :])) for i in builtins.range(dimensions)]
        numbers = np.stack([numbers // step % size for step, size in zip(steps, sizes, strict=True)])
    out = np.reshape(out, (*shape[:-1], *[size - 2 for size in sizes]))
    return _binned_statistic.BinnedStatisticddResult(out, edges, numbers)


def _placed(sample: Any, bins: Any, limits: Any) -> Any:
    """SciPy's bins of a sample."""
    return original(_scipy.binned_statistic_dd)(sample, np.zeros(len(sample)), "count", bins, limits)


def _edges(sample: Any, bins: Any, limits: Any, found: Any) -> list[Any]:
    """The edges of the bins, which follow the extremes of the sample if they derive from these."""
    if not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0:
        bins = [bins] * sample.shape[1]
    if limits is not None and not holds_traced(bins):
        return list(found)
    edges = []
    for i, given in enumerate(bins):
        if np.ndim(given):
            edges.append(np.asarray(given, np.asarray(found[i]).dtype) if holds_traced(given) else found[i])
            continue
        low, high = (np.min(sample[:, i]), np.max(sample[:, i])) if limits is None else limits[i]
        same = low == high
        low, high = np.where(same, low - 0.5, low), np.where(same, high + 0.5, high)
        edges.append(np.linspace(low, high, int(given) + 1).astype(np.asarray(found[i]).dtype))
    return edges


def _sums(numbers: Any, weights: Any, count: int) -> Any:
    if np.asarray(weights).dtype.kind == "c":
        return _sums(numbers, weights.real, count) + 1j * _sums(numbers, weights.imag, count)
    if is_abstract_value(numbers):
        return np.sum(np.where(numbers == np.arange(count)[:, None], weights, 0), axis=-1)
    return np.bincount(numbers, weights=weights, minlength=count)


def _of_row(values: Any, numbers: Any, count: int, statistic: Any) -> Any:
    """The statistic of each bin, including those of outliers."""
    counts = _sums(numbers, np.ones(numbers.shape), count).astype(int)
    filled = counts > 0
    safe = np.where(filled, counts, 1)
    if statistic == "count":
        return counts.astype(float)
    if callable(statistic):
        return _called(values, numbers, count, statistic)
    values = values if values.dtype.kind in "fc" else values.astype(float)
    values = values.astype(np.result_type(values, np.float64))
    if statistic == "sum":
        return _sums(numbers, values, count)
    if statistic == "mean":
        return np.where(filled, _sums(numbers, values, count) / safe, np.nan)
    if statistic == "std":
        apart = values - (_sums(numbers, values, count) / safe)[numbers]
        squares = _sums(numbers, (apart * np.conj(apart)).real, count) / safe
        spread = squares > 0
        return np.where(filled, np.where(spread, np.sqrt(np.where(spread, squares, 1.0)), 0.0), np.nan)
    order = np.lexsort((func.stop_gradient(values), numbers))
    values = values[order]
    first = np.cumsum(counts) - counts
    if statistic == "median":
        places = [first + (counts - 1) // 2, first + counts // 2]
    else:
        places = [first if statistic == "min" else first + counts - 1] * 2
    low, high = [values[np.clip(place, 0, len(values) - 1)] for place in places]
    return np.where(filled, low if statistic != "median" else (low + high) / 2, np.nan)


def _called(values: Any, numbers: Any, count: int, statistic: Callable[..., Any]) -> Any:
    """The user's statistic of each bin with values; for other bins its result for an empty array, or NaN."""
    try:
        with np.errstate(all="ignore"):
            null = statistic([])
    except Exception:
        null = np.nan
    out = [null] * count
    for i in np.unique(numbers).tolist():
        out[i] = statistic(values[numbers == i])
    return np.stack([np.asarray(x) * 1.0 for x in out])
