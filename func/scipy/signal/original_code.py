"""SciPy's own code on traced values, with small parts replaced, and questions about values that may be unknown."""

from __future__ import annotations

import cmath
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from func.host import scipy_hooks
from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, known_value, operand


def in_original(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """SciPy's own code, run on traced values."""
    return intercepted_call(scipy_hooks.original(function))(*args, **kwargs)


def rewired(function: Any, **names: Any) -> Callable[..., Any]:
    """SciPy's own code for traced values, with other objects behind some names that it uses.

    Such names are `float` and `math`, which take no traced values, and helpers that are compiled.
    """
    own = scipy_hooks.original(function)
    namespace = {**own.__globals__, **names}
    copy = types.FunctionType(own.__code__, namespace, own.__name__, own.__defaults__, own.__closure__)
    copy.__kwdefaults__ = own.__kwdefaults__
    return intercepted_call(copy)


def as_float(x: Any) -> Any:
    """float(x), or x where it is traced."""
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
"""The module `math`, whose functions take traced values too."""
TRACED_CMATH = types.SimpleNamespace(exp=lambda z: np.exp(z) if holds_traced(z) else cmath.exp(z))
"""As much of the module `cmath` as scipy.signal uses."""


def inexact_dtype(*arrays: Array) -> Any:
    """The common dtype of arrays, at least single precision."""
    dtype = np.result_type(*[x.dtype for x in arrays])
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def is_known(*values: Any) -> bool:
    """Whether the numbers are there, so that a check can look at them."""
    return all([known_value(operand(value)) is not None for value in values])
