"""What transforms return: functions that pickle and copy by what made them."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from func.interpreters.core.source import hide_engine_frames


class Transformed(functools.partial[Any]):
    """A function that a transform made of another one; it is called as fast as a function, and binds as one."""

    __slots__ = ("_options", "_transform")
    __wrapped__: Callable[..., Any]
    _options: dict[str, Any]
    _transform: Callable[..., Any]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        function = getattr(self.__wrapped__, "__qualname__", None) or repr(self.__wrapped__)
        return f"<func.{self._transform.__name__} of {function}>"

    def __reduce__(self) -> Any:
        return global_name(self) or (_remade, (self._transform, self.__wrapped__, self._options))

    def of(self, function: Callable[..., Any]) -> Any:
        """The same transform of another function."""
        return self._transform(function, **self._options)


def transformed(
    transform: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of (args, kwargs): what `transform(function, **options)` returns calls it.

    That has the name and the signature of `function`. Errors leave it without the engine's frames.
    """

    def decorate(call: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Callable[..., Any]:
        def call_and_hide(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(args, kwargs)
            except Exception as error:
                hide_engine_frames(error)
                raise

        made = Transformed(call_and_hide)
        made._transform = transform
        made._options = options
        return functools.update_wrapper(made, function)

    return decorate


def _remade(transform: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]) -> Any:
    return transform(function, **options)


def global_name(made: Any) -> str | None:
    """The name by which modules have an object that wraps a function, as one that was decorated; None if none has it.

    Pickles and copies of such an object are its name, as those of a plain function are.
    """
    found: Any = sys.modules.get(made.__module__) if isinstance(getattr(made, "__module__", None), str) else None
    name = getattr(made, "__qualname__", None)
    if found is None or not isinstance(name, str):
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is made else None
