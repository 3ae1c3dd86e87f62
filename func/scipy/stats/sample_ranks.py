"""Functions of ranks, counts and resamples: they have no derivative, but values under every other transform.

The call knows whether a transform differentiates it: then it raises an error with an alternative.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as _scipy

from func.host.scipy_hooks import holds_traced, original
from func.scipy.kinds.plain_values import on_the_host, without_derivative

_WITHOUT: dict[str, tuple[str, ...]] = {
    "func has no rule for this plot": (
        "boxcox_normplot", "ppcc_max", "ppcc_plot", "yeojohnson_normplot",
    ),
    "func has no rule for this test": (
        "anderson", "binomtest", "cramervonmises", "ks_1samp", "kstest", "shapiro", "tukey_hsd",
    ),
    "it computes with ranks": (
        "anderson_ksamp", "ansari", "brunnermunzel", "bws_test", "chatterjeexi", "cramervonmises_2samp", "fligner",
        "friedmanchisquare", "kendalltau", "kruskal", "ks_2samp", "logrank", "mannwhitneyu", "mood",
        "multiscale_graphcorr", "page_trend_test", "rankdata", "ranksums", "somersd", "spearmanr", "spearmanrho",
        "tiecorrect", "weightedtau", "wilcoxon",
    ),
    "it counts": (
        "barnard_exact", "boschloo_exact", "contingency.association", "contingency.crosstab",
        "contingency.odds_ratio", "cumfreq", "fisher_exact", "median_test", "mode", "percentileofscore",
        "quantile_test", "relfreq",
    ),
    "its p-values are integrals over random points": ("dunnett",),
}  # fmt: skip
"""Descriptions of functions without a derivative."""
_REASONS = {name: reason for reason, names in _WITHOUT.items() for name in names}

__all__ = [name.replace(".", "_") for name in _REASONS]
__all__ += ["goodness_of_fit", "monte_carlo_test", "permutation_test", "power"]


def _constant(name: str, reason: str) -> Callable[..., Any]:
    """SciPy's function, with a derivative that raises an error."""
    words = f"scipy.stats.{name} has no derivative: {reason}\nCall it on func.stop_gradient(x) for its value."

    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(operator.attrgetter(name)(_scipy))
        return on_the_host(plain, args, kwargs, words=words) if holds_traced((args, kwargs)) else plain(*args, **kwargs)

    function.__name__ = function.__qualname__ = name.replace(".", "_")
    function.__doc__ = f"scipy.stats.{name}, which has no derivative: {reason}."
    return function


globals().update({name.replace(".", "_"): _constant(name, reason) for name, reason in _REASONS.items()})


def _test(name: str, takes: int) -> Callable[..., Any]:
    """SciPy's test; `takes` is the place of the (first) callback among its arguments."""
    words = (
        f"scipy.stats.{name} has no derivative: it counts resamples\n"
        "Differentiate the statistic itself, and call it on func.stop_gradient(x)."
    )
    constant = without_derivative(words)

    def counted(call: Any) -> Any:
        """A callback whose traced results cannot be differentiated."""
        if not callable(call):
            return call

        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            value = getattr(result, "pvalue", result)
            return constant(np.asarray(value)) if holds_traced(value) else result

        return wrapper

    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(getattr(_scipy, name))
        if holds_traced((args, kwargs)):
            return on_the_host(plain, args, kwargs, words=words)
        args = tuple([counted(arg) if i >= takes else arg for i, arg in enumerate(args)])
        callbacks = {key: counted(value) for key, value in kwargs.items() if key in ("test", "statistic", "rvs")}
        return plain(*args, **(kwargs | callbacks))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.stats.{name}, which has no derivative: it counts resamples."
    return function


goodness_of_fit = _test("goodness_of_fit", 2)
power = _test("power", 0)
permutation_test = _test("permutation_test", 1)
monte_carlo_test = _test("monte_carlo_test", 1)
