"""Calls without NumPy's warnings of floating point errors."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def quietly(function: Callable[..., T], *args: Any) -> T:
    """function(*args) without warnings, in a separate context, which disappears even after an error. An interrupt
    between two bytecodes of `np.errstate` would leave the warnings off.
    """
    return copy_context().run(_ignoring, function, args)


def _ignoring(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    errors_ignored().__enter__()
    return function(*args)


def errors_ignored() -> Any:
    """np.errstate(all="ignore"), whose Python code takes longer than an operation on small arrays."""
    if _STATE is not None:
        variable, at_first, ignoring = _STATE
        state = variable.get()
        if state is at_first or state is ignoring:
            return _Ignoring()
    return np.errstate(all="ignore")  # callbacks, sizes of buffers and the like stay as the user has set them


class _Ignoring:
    """np.errstate(all="ignore") unless the user has set something else."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        variable, _, ignoring = _STATE  # type: ignore[misc]
        self._token = variable.set(ignoring)

    def __exit__(self, *error: object) -> None:
        self._token.var.reset(self._token)


def _state_of_errors() -> tuple[ContextVar[Any], Any, Any] | None:
    """The context variable that np.errstate sets, its value at first, and the one that ignores all errors."""
    np.errstate(all="ignore").__enter__()
    variables = list(copy_context().items())
    if len(variables) != 1:
        return None
    ((variable, ignoring),) = variables
    return variable, Context().run(variable.get), ignoring


_STATE = Context().run(_state_of_errors)
