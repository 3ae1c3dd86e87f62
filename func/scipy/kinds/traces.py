"""SciPy's own Python code on traced values, with substitutes for objects that take no traced values."""

from __future__ import annotations

import cmath
import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from func.host import scipy_hooks
from func.host.interception import intercepted_call
from func.host.patching import forwards_calls
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import known_value, operand
from func.scipy.kinds.versions import version_of, version_with_callback


def in_original(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """SciPy's own code, run on traced values."""
    return intercepted_call(scipy_hooks.original(function))(*args, **kwargs)


def rewired(function: Any, **names: Any) -> Callable[..., Any]:
    """SciPy's own code for traced values, with substitutes behind some of its names.

    Such names are `float` and `math`, which take no traced values, and compiled helpers.
    """
    own = scipy_hooks.original(function)
    namespace = {**own.__globals__, **names}
    copy = types.FunctionType(own.__code__, namespace, own.__name__, own.__defaults__, own.__closure__)
    copy.__kwdefaults__ = own.__kwdefaults__
    return intercepted_call(copy)


def as_float(x: Any) -> Any:
    """float(x), or x if it is traced."""
    return x * 1.0 if holds_traced(x) else float(x)


def _either(name: str, ufunc: Any) -> Callable[[Any], Any]:
    plain = getattr(math, name)
    return lambda x: ufunc(x) if holds_traced(x) else plain(x)


TRACED_MATH = types.SimpleNamespace(
    **{name: value for name, value in vars(math).items() if not name.startswith("_")}
    | {
        name: _either(name, getattr(np, other))
        for name, other in {
            "acos": "arccos", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "cos": "cos", "cosh": "cosh",
            "exp": "exp", "expm1": "expm1", "log": "log", "log10": "log10", "log1p": "log1p", "sin": "sin",
            "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
        }.items()
    }
    | {"hypot": lambda x, y: np.hypot(x, y) if holds_traced([x, y]) else math.hypot(x, y)}
)  # fmt: skip
"""The module `math`, whose functions also take traced values."""
TRACED_CMATH = types.SimpleNamespace(exp=lambda z: np.exp(z) if holds_traced(z) else cmath.exp(z))
"""The part of the module `cmath` that scipy.signal uses."""


class _Double(np.float64):
    """np.float64, as a dtype and as a function that also takes traced values."""

    def __new__(cls, x: Any) -> Any:
        return x.astype(float) if holds_traced(x) else np.float64(x)


class _NumPy(types.ModuleType):
    """The module `numpy` with substitutes behind some names."""

    @forwards_calls
    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def numpy_with(**names: Any) -> types.ModuleType:
    """The module `numpy` with substitutes behind some names."""
    namespace = _NumPy("numpy")
    vars(namespace).update(names)
    return namespace


NUMBERS: dict[str, Any] = {"float": as_float, "math": TRACED_MATH, "cmath": TRACED_CMATH}
"""Substitutes for the names by which SciPy's code makes Python numbers."""
TRACED_NUMPY = numpy_with(float64=_Double)
"""The module `numpy` whose float64 takes traced values."""


def part(function: Any, **names: Any) -> Callable[..., Any]:
    """SciPy's function with substitutes behind some names; made at its first call, after the hooks."""
    made: list[Callable[..., Any]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not made:
            made.append(rewired(function, **names))
        return made[0](*args, **kwargs)

    return call


def traces(function: Any, **names: Any) -> Callable[..., Any]:
    """The kind of functions of SciPy that run on traced values with substitutes behind some names."""
    return version_of(function)(_named(part(function, **names), function))


def traces_callbacks(function: Any, **names: Any) -> Callable[..., Any]:
    """As `traces`, for functions that take callbacks, which may bring further traced values."""
    call = _named(part(function, **names), function)
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return functools.wraps(call)(version_with_callback(function)(call))


def _named(call: Callable[..., Any], function: Any) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = f"{function.__name__} on traced and plain arrays: SciPy's own code."
    return call


def is_known(*values: Any) -> bool:
    """Whether the numbers are known, so that a check can use them."""
    return all([known_value(operand(value)) is not None for value in values])
