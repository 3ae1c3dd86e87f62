"""scipy.stats.mstats, whose functions compute with masked arrays, which hold plain numbers: traced ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.stats as _scipy

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.source import at_line
from func.scipy.doors import holds_traced, original

_NAMES = (
    "argstoarray", "brunnermunzel", "compare_medians_ms", "count_tied_groups", "describe", "f_oneway", "find_repeats",
    "friedmanchisquare", "hdmedian", "hdquantiles", "hdquantiles_sd", "idealfourths", "kendalltau",
    "kendalltau_seasonal", "kruskal", "ks_1samp", "ks_2samp", "kstest", "kurtosis", "kurtosistest", "linregress",
    "mannwhitneyu", "median_cihs", "meppf", "mjci", "mode", "moment", "mquantiles", "mquantiles_cimj", "msign",
    "normaltest", "obrientransform", "pearsonr", "pointbiserialr", "rankdata", "rsh", "scoreatpercentile", "sem",
    "sen_seasonal_slopes", "siegelslopes", "skew", "skewtest", "spearmanr", "theilslopes", "tmax", "tmean", "tmin",
    "trim", "trima", "trimboth", "trimmed_mean", "trimmed_mean_ci", "trimmed_std", "trimmed_stde", "trimmed_var",
    "trimr", "trimtail", "tsem", "ttest_1samp", "ttest_ind", "ttest_rel", "tvar", "variation", "winsorize",
)  # fmt: skip
"""The functions of the module that are not those of scipy.stats."""

__all__ = [f"mstats_{name}" for name in _NAMES]


def _of_masked_arrays(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if not holds_traced((args, kwargs)):
            return original(getattr(_scipy.mstats, name))(*args, **kwargs)
        instead = f"Write scipy.stats.{name}, with NaN for what is left out and nan_policy='omit'."
        raise UnsupportedFunctionError(
            f"scipy.stats.mstats.{name} computes with masked arrays, which hold plain numbers{at_line()}\n"
            + (instead if hasattr(_scipy, name) else "Call it on func.stop_gradient(x).")
        )

    function.__name__ = function.__qualname__ = f"mstats_{name}"
    function.__doc__ = f"scipy.stats.mstats.{name} of plain arrays; traced ones are refused with what to write."
    return function


globals().update({f"mstats_{name}": _of_masked_arrays(name) for name in _NAMES})
