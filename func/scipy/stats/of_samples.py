"""func's versions of SciPy's functions of samples, from the modules that they are in."""

from __future__ import annotations

from typing import Any

from func.scipy.stats import (
    best_powers,
    binned,
    estimates,
    infrastructure,
    policies,
    quasi_random,
    resampled,
    sample_functions,
    sample_quantiles,
    sample_ranks,
)

MODULES = (
    best_powers,
    binned,
    estimates,
    infrastructure,
    policies,
    quasi_random,
    resampled,
    sample_functions,
    sample_quantiles,
    sample_ranks,
)
OWN: dict[str, Any] = {name: getattr(module, name) for module in MODULES for name in module.__all__}

policies.install()
