"""What transforms return: functions that pickle and copy by what made them."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from func.interpreters.core.source import hide_engine_frames

WHAT = {
    "grad": "Gradient of {}",
    "value_and_grad": "Value and gradient of {}",
    "grad_and_value": "Gradient and value of {}",
    "elementwise_grad": "Derivative at each element of {}",
    "jacobian": "Jacobian of {}",
    "jacrev": "Jacobian, by reverse mode, of {}",
    "jacfwd": "Jacobian, by forward mode, of {}",
    "hessian": "Hessian of {}",
    "laplacian": "Laplacian of {}",
    "divergence": "Divergence of {}",
    "vmap": "Vectorised {}",
}
"""How the documentation of what a transform returns begins; {} is the function's name."""
_ASSIGNED = tuple([name for name in functools.WRAPPER_ASSIGNMENTS if name != "__doc__"])


class Transformed(functools.partial[Any]):
    """A function that a transform made of another one; it is called as fast as a function, and binds as one."""

    __slots__ = ("_options", "_transform")
    __wrapped__: Callable[..., Any]
    _options: dict[str, Any]
    _transform: Callable[..., Any]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __doc__(self) -> str:
        """What the transform computes, and of which function, with that one's signature and documentation after it."""
        if "__doc__" in self.__dict__:
            return str(self.__dict__["__doc__"])
        function = self.__wrapped__
        name = getattr(function, "__name__", None) or type(function).__name__
        try:
            signature = str(inspect.signature(function))
        except (TypeError, ValueError):
            signature = "(...)"
        what = WHAT.get(self._transform.__name__, f"func.{self._transform.__name__} of {{}}").format(name)
        documented = inspect.getdoc(function)
        return f"{what}{self._chosen()}.\n\n{name}{signature}" + (f"\n\n{documented}" if documented else "")

    @__doc__.setter
    def __doc__(self, text: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.__dict__["__doc__"] = text

    def _chosen(self) -> str:
        """With respect to which arguments, where the transform has a choice."""
        if "argnums" not in self._options:
            return ""
        argnums, argnames = self._options["argnums"], self._options.get("argnames")
        names = [] if argnames is None else [argnames] if isinstance(argnames, str) else [*argnames]
        if argnames is None or isinstance(argnums, (tuple, list)):
            numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
            names = [*[self._name_of_argument(number) for number in numbers], *names]
        return f" with respect to {', '.join(names)}"

    def _name_of_argument(self, number: int) -> str:
        try:
            parameters = inspect.signature(self.__wrapped__).parameters.values()
        except (TypeError, ValueError):
            return f"argument {number}"
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return positional[number] if 0 <= number < len(positional) else f"argument {number}"

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
        return functools.update_wrapper(made, function, _ASSIGNED)

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
