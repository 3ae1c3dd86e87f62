"""scipy.signal.windows: SciPy's own code, which differentiates in the real parameters of windows."""

from __future__ import annotations

from typing import Any

import scipy.signal.windows as _scipy

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)
