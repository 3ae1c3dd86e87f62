"""scipy.interpolate on traced and plain arrays."""

from __future__ import annotations

from typing import Any

import scipy.interpolate as _scipy

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)
