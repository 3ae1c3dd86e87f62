"""Functions of ranks and counts: they have no derivative, and values under every transform that does not ask for one.

SciPy's own function runs on the plain values, where the call stands or on the host when compiled code runs. Whether it
is differentiated is known where it is called: there it says that it cannot be, and what to write.
"""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import scipy.stats as _scipy

import func
from func.host.scipy_hooks import MAX_DEPTH, holds_traced, original
from func.interpreters.core import dtype_of, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line

_RANKS = "it computes with ranks"
_COUNTS = "it counts"
_TESTS = "func has no rule for this test"
_PLOTS = "func has no rule for this plot"
_PLACES: dict[str, str] = {
    "anderson": _TESTS,
    "anderson_ksamp": _RANKS,
    "ansari": _RANKS,
    "barnard_exact": _COUNTS,
    "binomtest": _TESTS,
    "boschloo_exact": _COUNTS,
    "boxcox_normplot": _PLOTS,
    "brunnermunzel": _RANKS,
    "bws_test": _RANKS,
    "chatterjeexi": _RANKS,
    "contingency.association": _COUNTS,
    "contingency.crosstab": _COUNTS,
    "contingency.odds_ratio": _COUNTS,
    "cramervonmises": _TESTS,
    "cramervonmises_2samp": _RANKS,
    "cumfreq": _COUNTS,
    "dunnett": "its p-values are integrals over random points",
    "fisher_exact": _COUNTS,
    "fligner": _RANKS,
    "friedmanchisquare": _RANKS,
    "kendalltau": _RANKS,
    "kruskal": _RANKS,
    "ks_1samp": _TESTS,
    "ks_2samp": _RANKS,
    "kstest": _TESTS,
    "logrank": _RANKS,
    "mannwhitneyu": _RANKS,
    "median_test": _COUNTS,
    "mode": _COUNTS,
    "mood": _RANKS,
    "multiscale_graphcorr": _RANKS,
    "page_trend_test": _RANKS,
    "percentileofscore": _COUNTS,
    "ppcc_max": _PLOTS,
    "ppcc_plot": _PLOTS,
    "quantile_test": _COUNTS,
    "rankdata": _RANKS,
    "ranksums": _RANKS,
    "relfreq": _COUNTS,
    "shapiro": _TESTS,
    "somersd": _RANKS,
    "spearmanr": _RANKS,
    "spearmanrho": _RANKS,
    "tiecorrect": _RANKS,
    "tukey_hsd": _TESTS,
    "weightedtau": _RANKS,
    "wilcoxon": _RANKS,
    "yeojohnson_normplot": _PLOTS,
}
"""The functions, and what they do that has no derivative."""

__all__ = [name.replace(".", "_") for name in _PLACES]


class Parts:
    """The traced values among arguments, and the arguments with others in their places."""

    def __init__(self, value: Any) -> None:
        self.traced: list[Any] = []
        self.value = self._marked(value, 0)

    def _marked(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in (list, tuple) and depth < MAX_DEPTH:
            return kind([self._marked(item, depth + 1) for item in value])
        if kind is dict:
            return {key: self._marked(item, depth + 1) for key, item in value.items()}
        if not holds_traced(value):
            return value
        self.traced.append(np.asarray(value))
        return _Place(len(self.traced) - 1)

    def filled(self, arrays: Any) -> Any:
        """The arguments with arrays in the place of the traced ones; other objects are copied."""
        return _filled(self.value, arrays)


class _Place(int):
    """Where a traced value stood."""


def _filled(value: Any, arrays: Any) -> Any:
    kind = type(value)
    if kind is _Place:
        return arrays[value]
    if kind in (list, tuple):
        return kind([_filled(item, arrays) for item in value])
    if kind is dict:
        return {key: _filled(item, arrays) for key, item in value.items()}
    draws = isinstance(value, (np.random.Generator, np.random.RandomState)) or hasattr(value, "n_resamples")
    return copy.deepcopy(value) if draws else value


def numbers(result: Any) -> list[Any]:
    """The arrays and numbers of a result, which may be an object."""
    kind = type(result)
    if isinstance(result, tuple):
        extra = [getattr(result, name) for name in getattr(kind, "_extra_fields", ())]
        return [x for item in (*result, *extra) for x in numbers(item)]
    if isinstance(result, (np.ndarray, np.generic, float, int)) and not isinstance(result, bool):
        return [result] if np.asarray(result).dtype.kind in "biufc" else []
    if hasattr(result, "__dict__") and not callable(result) and not isinstance(result, ModuleType):
        return [x for item in vars(result).values() for x in numbers(item)]
    return []


def with_numbers(result: Any, values: Any) -> Any:
    """A result like another one, with the next of other arrays and numbers."""
    kind: Any = type(result)
    if isinstance(result, tuple):
        items = [with_numbers(item, values) for item in result]
        extra = {name: with_numbers(getattr(result, name), values) for name in getattr(kind, "_extra_fields", ())}
        return kind(items) if kind is tuple else kind(*items, **extra)
    if not numbers(result):
        return result
    if isinstance(result, (np.ndarray, np.generic, float, int)):
        return next(values)
    other = copy.copy(result)
    vars(other).update({name: with_numbers(item, values) for name, item in vars(result).items()})
    return other


def _example(x: Any, with_nan: bool) -> Any:
    """An array of plain values with the shape and dtype of a traced one."""
    size = int(np.prod(shape_of(x)))
    values: Any = (np.random.default_rng(0).permutation(size) + 0.5) / max(size, 1)
    if dtype_of(x).kind not in "fc":
        values = 1 + np.arange(size) % 7
    elif with_nan:
        values[:1] = np.nan
    return np.reshape(values, shape_of(x)).astype(dtype_of(x))


def answer_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function of SciPy's returns for plain stand-ins of traced values.

    So SciPy checks arguments and options itself, and says which shapes and dtypes a result has.
    """
    parts = Parts((args, kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = parts.filled([_example(x, kwargs.get("nan_policy") == "omit") for x in parts.traced])
        return function(*args, **kwargs)


def on_the_host(
    function: Callable[..., Any], refuse: Callable[..., NoReturn], args: Any, kwargs: Any, example: Any = None
) -> Any:
    """What a function returns for plain values, also of code that is compiled; `refuse` is its derivative.

    `example` is a result of the same shapes, where the function cannot be asked with any values for one.
    """
    parts = Parts((args, kwargs))
    if not parts.traced:
        return function(*args, **kwargs)

    def call(arrays: Any) -> Any:
        plain_args, plain_kwargs = parts.filled(arrays)
        return function(*plain_args, **plain_kwargs)

    if example is None:
        example = answer_of(function, *args, **kwargs)
    outs = [np.asarray(x) for x in numbers(example)]
    outs = [x.astype(float) if x.dtype == np.int8 else x for x in outs]  # signs, which SciPy makes NaN with the rest

    def outside(*arrays: Any) -> list[Any]:
        return numbers(call(arrays))

    outside.__name__ = getattr(function, "__name__", "function")

    @func.custom_jvp
    def values(*arrays: Any) -> Any:
        return func.pure_callback(outside, outs, *arrays, vmap_method="sequential")

    values.defjvp(refuse)
    return with_numbers(example, iter(values(*parts.traced)))


def without_derivative(name: str, reason: str, instead: str) -> Callable[..., Any]:
    """SciPy's function, whose derivative is refused with a reason and what to write."""

    def refuse(primals: Any, tangents: Any) -> NoReturn:
        raise NotDifferentiableError(f"scipy.stats.{name} has no derivative: {reason}{at_line()}\n{instead}")

    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(operator.attrgetter(name)(_scipy))
        if not holds_traced((args, kwargs)):
            return plain(*args, **kwargs)
        return on_the_host(plain, refuse, args, kwargs)

    function.__name__ = function.__qualname__ = name.replace(".", "_")
    function.__doc__ = f"scipy.stats.{name}, whose derivative is refused: {reason}."
    return function


_STOP = "Call it on func.stop_gradient(x) for its value."
globals().update({name.replace(".", "_"): without_derivative(name, reason, _STOP) for name, reason in _PLACES.items()})
