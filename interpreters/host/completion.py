"""What completion shows of a public module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def public_names(namespace: dict[str, Any], more: Iterable[str] = ()) -> list[str]:
    """The names of `__all__`, some more, and those that Python gives to every module: for `__dir__`."""
    return sorted({*namespace["__all__"], *more, *[name for name in namespace if name.startswith("__")]})
