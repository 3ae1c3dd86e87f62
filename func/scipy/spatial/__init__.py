"""scipy.spatial on traced and plain arrays."""

from __future__ import annotations

import importlib
from typing import Any

import scipy.spatial as _scipy

__all__: list[str] = []
_MODULES = (
    "distance",
    "transform",
)


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"func.scipy.spatial.{name}") if name in _MODULES else getattr(_scipy, name)
