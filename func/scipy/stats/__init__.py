"""scipy.stats on traced and plain arrays."""

from __future__ import annotations

from typing import Any

import scipy.stats as _scipy
from scipy._lib import _util, array_api_extra

from func.scipy import doors as _doors
from func.scipy.stats import masking
from func.scipy.stats.methods import *

__all__: list[str] = []


def _install() -> None:
    """Doors of SciPy's helpers that its distributions call."""
    where: Any = array_api_extra.apply_where
    _doors.add_door(where, "func.scipy.stats.masking", "apply_where")
    _doors.add_door(_util._lazyselect, "func.scipy.stats.masking", "lazyselect")


_install()


def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)
