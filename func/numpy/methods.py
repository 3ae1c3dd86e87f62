"""The methods and attributes of ndarray on traced arrays."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Tracer


def _ndim(self: Tracer) -> int:
    return len(self.shape)


def method_table() -> dict[str, Any]:
    """Everything that an ndarray has as a method or attribute."""
    return {"ndim": property(_ndim)}
