"""SciPy's functions on every backend, with an error that suggests an alternative if a backend lacks a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line


def special(xp: Any, name: str) -> Any:
    """The function of scipy.special for arrays of a namespace."""
    module = scipy_of(xp, "special")
    try:
        return getattr(module, name)
    except AttributeError:
        raise UnsupportedFunctionError(
            f"{getattr(module, '__name__', 'scipy.special')} has no function {name} for these arrays{at_line()}\n"
            "Bring them to the host with .get(), or write it with functions that exist there."
        ) from None


def reporting_missing(function: Callable[..., Any], module: str = "linalg") -> Callable[..., Any]:
    """The function, raising UnsupportedFunctionError where the backend's part of SciPy lacks what it calls."""

    @functools.wraps(function)
    def checked(xp: Any, *args: Any, **params: Any) -> Any:
        try:
            return function(xp, *args, **params)
        except AttributeError as error:
            if error.obj is not scipy_of(xp, module):
                raise
            raise UnsupportedFunctionError(
                f"the backend {getattr(xp, '__name__', xp)!r} has no scipy.{module}.{error.name}{at_line()}\n"
                "Move the array to the host for this call, or write it with functions that the backend has."
            ) from None

    return checked
