"""SciPy's wrapper of its functions of samples, which takes `axis`, `nan_policy` and `keepdims`, on traced values.

The wrapper asks whether a sample contains NaN. In compiled code, where the values are unknown, a slice with NaN becomes
NaN altogether, and so does its result. The other policies ask for the values and raise an error.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats as _scipy
from scipy._lib import _util

from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value

_DIFFERENTIABLE = (
    "alexandergovern", "bartlett", "chisquare", "circmean", "circstd", "circvar", "combine_pvalues",
    "differential_entropy", "entropy", "f_oneway", "gmean", "iqr", "jarque_bera", "kstat", "kstatvar", "kurtosis",
    "kurtosistest", "levene", "lmoment", "median_abs_deviation", "normaltest", "pearsonr", "pointbiserialr", "sem",
    "skew", "skewtest", "tmax", "tmean", "tmin", "trim_mean", "tsem", "tstd", "ttest_1samp", "ttest_ind",
    "ttest_rel", "tvar", "variation",
)  # fmt: skip
"""The functions whose code runs on traced values."""

__all__ = ["_axis_nan_policy__contains_nan", "moment", *_DIFFERENTIABLE]


def _axis_nan_policy__contains_nan(a: Any, nan_policy: str = "propagate", **options: Any) -> Any:
    """Whether an array contains NaN, for SciPy; assumes that it does not if the values are unknown."""
    if not is_abstract_value(a) or (options.get("xp_omit_okay") and nan_policy == "omit"):
        return original(_util._contains_nan)(a, nan_policy, **options)
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}.")
    if nan_policy != "propagate" and a.size:
        raise UnsupportedFunctionError(
            f"scipy.stats with nan_policy={nan_policy!r} asks for the values, which are not known while the code is "
            f"staged{at_line()}\n"
            "Select the values before, or write np.nanmean and the like."
        )
    return original(_util._contains_nan)(np.zeros(1), nan_policy, **options)


def spread(x: Any, axis: Any) -> Any:
    """A sample whose slices along axes, counted from the last, are NaN altogether if they contain NaN."""
    axes = tuple(range(x.ndim)) if axis is None else tuple([a for a in np.atleast_1d(axis).tolist() if a >= -x.ndim])
    return np.where(np.any(np.isnan(x), axis=axes, keepdims=True), np.nan, x) if axes and x.size else x


def _from_the_last(axis: Any, ndim: int) -> Any:
    if axis is None:
        return None
    return [a if a < 0 else a - ndim for a in np.atleast_1d(axis).tolist()]


def closure_of(function: Any) -> dict[str, Any]:
    """The free variables of a function."""
    cells = function.__closure__ or ()
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells, strict=True)}


def _samples(plain: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments of a call of SciPy's wrapper, with NaN spread over the slices of unknown samples."""
    free = closure_of(plain)
    if "hypotest_fun_in" not in free:
        return list(args), kwargs
    count: Any = free["n_samples"]
    names = list(inspect.signature(free["hypotest_fun_in"]).parameters)
    options = kwargs | dict(zip(names, args, strict=False)) if count is not None else kwargs
    if callable(count):
        count = count(dict(options))
    axis = options.get("axis", free.get("default_axis", 0))
    known = set(names[: count or 0]) | set(free.get("kwd_samples", ()))
    values = [*args] if count is None else [*args, *kwargs.values()]
    ndim = max([np.ndim(x) for x in values if x is not None and not isinstance(x, (str, bool))], default=1)
    axis = _from_the_last(axis, max(ndim, 1))

    def spread_out(name: str, x: Any) -> Any:
        if (count is None or name in known) and holds_traced(x):
            x = np.asarray(x)
            if is_abstract_value(x) and x.dtype.kind in "fc":
                return spread(x, axis)
        return x

    labels = [*names, *[""] * len(args)]
    given = [spread_out(label, x) for label, x in zip(labels, args, strict=False)]
    return given, {name: spread_out(name, x) if name in known else x for name, x in kwargs.items()}


def wrapped(name: str) -> Callable[..., Any]:
    """SciPy's function on traced values."""

    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(getattr(_scipy, name))
        args, kwargs = _samples(plain, args, kwargs)
        return plain(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.stats.{name}, on traced values too."
    return function


def in_wrapper(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a function of func in SciPy's wrapper, in the place of SciPy's own.

    The version has SciPy's names of parameters, and reduces the last axis of samples.
    """

    def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
        plain: Any = original(getattr(_scipy, name))
        free = closure_of(plain)
        if "hypotest_fun_in" not in free:  # other versions of SciPy do not wrap all of these functions
            return inner
        free["hypotest_fun_in"] = inner
        cells = tuple([types.CellType(free[variable]) for variable in plain.__code__.co_freevars])
        call = types.FunctionType(plain.__code__, plain.__globals__, name, plain.__defaults__, cells)
        call.__kwdefaults__ = plain.__kwdefaults__

        @functools.wraps(inner)
        def function(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _samples(call, args, kwargs)
            return call(*args, **kwargs)

        return function

    return decorate


globals().update({name: wrapped(name) for name in _DIFFERENTIABLE})


def moment(a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *args: Any, **kwargs: Any) -> Any:
    """SciPy's moment; the first one is 0 even if the values are unknown, and NaN where they contain NaN."""
    plain = original(_scipy.moment)
    a = np.asarray(a)
    out = plain(a, order, axis, nan_policy, *args, **kwargs)
    if is_abstract_value(a) and a.size and a.dtype.kind in "fc":
        axes = tuple(range(a.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
        holds = np.any(np.isnan(a), axis=axes, keepdims=bool(kwargs.get("keepdims")))
        orders = np.ndim(order)
        return np.where(np.reshape(holds, (1,) * orders + np.shape(holds)) if orders else holds, np.nan, out)
    return out


def install() -> None:
    """Lets the wrapper take traced values as arrays with possibly unknown values."""
    wrapper = getattr(_scipy, "_axis_nan_policy", None)
    lazy = getattr(wrapper, "is_lazy_array", None)
    if wrapper is not None and lazy is not None:
        wrapper.is_lazy_array = lambda x: not holds_traced(x) and lazy(x)
