"""Calls without NumPy's warnings of floating point errors."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def quietly(function: Callable[..., T], *args: Any) -> T:
    """function(*args) without warnings: in a context of its own, which is gone whatever ends the call.

    An interrupt between two bytecodes of `np.errstate` would leave the warnings off.
    """
    return copy_context().run(_ignoring, function, args)


def _ignoring(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    np.errstate(all="ignore").__enter__()
    return function(*args)
