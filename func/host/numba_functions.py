"""Functions that Numba has compiled, called with traced values: the Python functions behind them run instead.

Numba compiles a function for the types of its arguments. A traced value has none, so Numba asks for another compiled
form of the function. The answer is the Python function, which Numba calls. Other calls do not get here.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from func.host.patching import holds_tracer


def install() -> None:
    """Hook into Numba, which has been imported."""
    dispatcher: Any = sys.modules["numba.core.dispatcher"]
    base = dispatcher._DispatcherBase
    if not hasattr(base.typeof_pyval, "__wrapped__"):
        base.typeof_pyval = _with_traced(base.typeof_pyval, dispatcher.types.pyobject)
        base._compile_for_args = _with_python(base._compile_for_args, dispatcher.OmittedArg)


def _with_traced(typeof: Callable[..., Any], no_number: Any) -> Callable[..., Any]:
    """The method that finds a value's type: traced ones are objects, also for functions with a list of signatures."""

    @functools.wraps(typeof)
    def typeof_value(self: Any, value: Any) -> Any:
        if not holds_tracer(value):
            return typeof(self, value)
        if not self._can_compile:
            self.func_opened = self._can_compile = True
        return no_number

    return typeof_value


def _with_python(compile_for_args: Callable[..., Any], omitted: type) -> Callable[..., Any]:
    """The method by which a function of Numba's gets compiled for arguments, whose result Numba calls."""

    @functools.wraps(compile_for_args)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        if vars(self).pop("func_opened", False):
            self._can_compile = False
        if not any([holds_tracer(x) for x in args]):
            return compile_for_args(self, *args, **kwargs)
        return functools.partial(_called, self.py_func, omitted)

    return compiled


def _called(function: Callable[..., Any], omitted: type, *args: Any) -> Any:
    """The result of a Python function of which Numba has put the arguments in order."""
    values = [x.value if isinstance(x, omitted) else x for x in args]  # type: ignore[attr-defined]
    if any([p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values()]):
        values[-1:] = values[-1]
    return function(*values)
