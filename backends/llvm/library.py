"""Routines of libraries on whole buffers."""

from __future__ import annotations

from typing import Any

from func.backends.kernels import Library


def emit_library(printer: Any, item: Library) -> None:
    """The call of a routine."""
    raise NotImplementedError(item.routine)
