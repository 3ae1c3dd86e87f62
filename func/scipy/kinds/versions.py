"""Versions of SciPy's functions that func writes: they compute for traced arguments, SciPy's for all others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import TRACED
from func.interpreters.host.swallowed_errors import hide_outside

F = TypeVar("F", bound=Callable[..., Any])


def version_of(scipy_function: Any) -> Callable[[F], F]:
    """The decorated function computes for traced arguments, SciPy's for all others."""

    def decorate(own: F) -> F:
        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return (own if holds_traced(args) or holds_traced(kwargs) else scipy_function)(*args, **kwargs)
            except Exception as error:
                hide_outside(error)
                raise

        return call  # type: ignore[return-value]

    return decorate


def version_with_callback(scipy_function: Callable[..., Any]) -> Callable[[F], F]:
    """As `version_of`, for functions that take callbacks, which may bring further traced values."""

    def decorate(own: F) -> F:
        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (TRACED.run or TRACED.stay):
                return scipy_function(*args, **kwargs)
            return own(*args, **kwargs)

        call.original = scipy_hooks.original(scipy_function)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
