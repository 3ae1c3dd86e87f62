"""SciPy's helpers on traced values: those that compute where a condition holds, and parts of its new distributions.

func computes both sides of a condition, and selects. The new distributions, `scipy.stats.Normal` and those of
`make_distribution`, are SciPy's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

import func
from func.special.protocol import implements_scipy

__all__ = ["_distribution_infrastructure_UnivariateDistribution__moment_transform_center"]


def held(condition: Any, args: Sequence[Any]) -> list[Any]:
    """Arguments that are constants where a condition does not hold."""
    return [np.where(condition, x, func.stop_gradient(x)) if np.asarray(x).dtype.kind in "fc" else x for x in args]


def apply_where(
    cond: Any,
    args: Any,
    f1: Callable[..., Any],
    f2: Callable[..., Any] | None = None,
    /,
    *,
    fill_value: Any = None,
    xp: Any = None,
) -> Any:
    """f1(*args) where a condition holds, elsewhere f2(*args) or the fill value."""
    if (f2 is None) == (fill_value is None):
        raise TypeError("Exactly one of `fill_value` or `f2` must be given.")
    args = list(args) if isinstance(args, tuple) else [args]
    cond, *args = np.broadcast_arrays(cond, *args)
    with np.errstate(all="ignore"):
        first = f1(*held(cond, args))
        second = fill_value if f2 is None else f2(*held(~cond, args))
        return np.where(cond, first, second)


def lazyselect(condlist: Sequence[Any], choicelist: Sequence[Any], arrays: Sequence[Any], default: Any = 0) -> Any:
    """The choice of the last condition that holds, else the default."""
    arrays = np.broadcast_arrays(*arrays)
    shape = np.shape(arrays[0])
    arrays = [np.reshape(x, (-1,)) for x in arrays]
    out: Any = np.full(np.shape(arrays[0]), default, np.result_type(*[a.dtype for a in arrays], np.float64))
    for condition, choice in zip(condlist, choicelist, strict=False):
        condition = np.reshape(np.broadcast_to(condition, shape), (-1,))
        with np.errstate(all="ignore"):
            out = np.where(condition, choice(*held(condition, arrays)), out)
    return np.reshape(out, shape)


def clip(x: Any, /, min: Any = None, max: Any = None, *, xp: Any = None, out: Any = None) -> Any:
    """The elements between bounds, in the dtype of x."""
    return np.clip(x, min, max).astype(x.dtype)


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
