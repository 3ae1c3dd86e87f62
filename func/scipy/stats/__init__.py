"""scipy.stats on traced and plain arrays."""

from __future__ import annotations

from typing import Any

import scipy.stats as _scipy
from scipy._lib import _util
from scipy._lib import array_api_extra as _array_api_extra

from func.scipy import doors as _doors
from func.scipy.stats.densities import log1mexp as _log1mexp
from func.scipy.stats.methods import (
    rv_continuous_cdf,
    rv_continuous_isf,
    rv_continuous_logcdf,
    rv_continuous_logpdf,
    rv_continuous_logsf,
    rv_continuous_pdf,
    rv_continuous_ppf,
    rv_continuous_sf,
    rv_discrete_cdf,
    rv_discrete_isf,
    rv_discrete_logcdf,
    rv_discrete_logpmf,
    rv_discrete_logsf,
    rv_discrete_pmf,
    rv_discrete_ppf,
    rv_discrete_sf,
)
from func.scipy.stats.methods import rv_generic_entropy as _distn_infrastructure_rv_generic_entropy
from func.scipy.stats.methods import rv_generic_interval as _distn_infrastructure_rv_generic_interval
from func.scipy.stats.methods import rv_generic_moment as _distn_infrastructure_rv_generic_moment
from func.scipy.stats.methods import rv_generic_stats as _distn_infrastructure_rv_generic_stats
from func.scipy.stats.methods import rv_generic_support as _distn_infrastructure_rv_generic_support
from func.special.protocol import implements_scipy as _implements_scipy

__all__: list[str] = []


def _install_helpers() -> None:
    """Doors of SciPy's helpers that its distributions call."""
    _doors.add_door(_array_api_extra.apply_where, "func.scipy.stats.masking", "apply_where")
    _doors.add_door(_util._lazyselect, "func.scipy.stats.masking", "lazyselect")
    _implements_scipy("_log1mexp")(_log1mexp)


_install_helpers()


def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)
