"""The functions of Python's `cmath` for traced numbers: those of NumPy on complex numbers, with the errors of `cmath`.

`func.numpy.scalar_math` is its counterpart for `math`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from func.host.patching import original_complex
from func.interpreters.core import Tracer, shape_of
from func.numpy import scalar_math

_SAME = "acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh"
FUNCTIONS: dict[str, Callable[..., Any]] = {name: scalar_math.FUNCTIONS[name] for name in _SAME.split()}
"""NumPy's function for each of `cmath` from complex numbers to complex numbers."""
ANSWERS: dict[str, Callable[..., Any]] = {
    **{name: scalar_math.ANSWERS[name] for name in ("isclose", "isfinite", "isinf", "isnan")},
    "phase": np.angle,
    "polar": lambda z: (np.abs(z), np.angle(z)),
    "rect": lambda r, phi: r.real * (np.cos(phi.real) + 1j * np.sin(phi.real)),
}
"""Functions whose results are truth values or real numbers, or which take real numbers."""


def __getattr__(name: str) -> Any:
    """The function that substitutes for one of `cmath`."""
    if name not in FUNCTIONS and name not in ANSWERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    traced = FUNCTIONS.get(name) or ANSWERS[name]
    value = globals()[name] = scalar_math.standing_in(original_complex(name), traced, _number, name in FUNCTIONS)
    return value


def _number(x: Any) -> Any:
    """An argument as `complex()` takes it, without losing its derivative."""
    if type(x) is not Tracer:
        return np.complex128(complex(x))
    if math.prod(shape_of(x)) != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    value: Any = x
    return (value.reshape(()) if shape_of(x) else value).astype(np.complex128)
