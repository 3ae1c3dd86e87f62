"""The functions of Python's `math` for traced numbers: those of NumPy, with the errors of `math`.

Code that a transform runs gets these functions where it writes `math.sin(x)`. Numbers that are not traced go to `math`
itself. Results are arrays of no axes, of float64 unless the argument is a Python number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from func.host.patching import holds_tracer, is_traced, original_math
from func.interpreters.core import Tracer, aval_of, concrete, is_readable, known_value, shape_of
from func.interpreters.core.errors import StagingError
from func.interpreters.primitives.special import error_functions
from func.interpreters.primitives.special import gamma as gamma_functions

_SAME = "cbrt cos cosh degrees exp exp2 expm1 fabs fmod log10 log1p log2 radians sin sinh sqrt tan tanh"
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME.split() if hasattr(math, name)},
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "copysign": np.copysign,
    "dist": lambda p, q: np.linalg.norm(np.asarray(p) - np.asarray(q)),
    "erf": error_functions.erf,
    "erfc": error_functions.erfc,
    "fsum": lambda numbers: np.sum(np.asarray(list(numbers))),
    "gamma": gamma_functions.gamma,
    "hypot": lambda *xs: np.linalg.norm(np.asarray(xs)) if len(xs) != 2 else np.hypot(*xs),
    "lgamma": lambda x: np.where(x == -np.inf, np.inf, gamma_functions.gammaln(x)),
    "log": lambda x, *base: np.log(x) / np.log(base[0]) if base else np.log(x),
    "modf": lambda x: (x - np.trunc(x), np.trunc(x)),
    "pow": np.power,
    "prod": lambda numbers, start=1: np.prod(np.asarray(list(numbers))) * start,
    "sumprod": lambda p, q: np.dot(np.asarray(p), np.asarray(q)),
}
"""NumPy's function for each of `math` that has derivatives."""
ANSWERS: dict[str, Callable[..., Any]] = {
    "ceil": lambda x: int(np.ceil(x)),
    "floor": lambda x: int(np.floor(x)),
    "isclose": lambda a, b, *, rel_tol=1e-9, abs_tol=0.0: bool(
        (a == b) | (abs(a - b) <= np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol))
    ),
    "isfinite": lambda x: bool(np.isfinite(x)),
    "isinf": lambda x: bool(np.isinf(x)),
    "isnan": lambda x: bool(np.isnan(x)),
    "trunc": lambda x: int(x),
}
"""Functions whose results are truth values and integers of Python."""
_OVERFLOWING = {"cosh", "exp", "exp2", "expm1", "gamma", "lgamma", "pow", "sinh"}
_OF_SEQUENCES = {"dist", "fsum", "prod", "sumprod"}
_WITHOUT_ERRORS = _OF_SEQUENCES | {
    "modf", "atan", "atan2", "asinh", "copysign", "degrees", "erf", "erfc", "fabs", "radians", "tanh", "cbrt",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The function that substitutes for one of `math`."""
    if name not in FUNCTIONS and name not in ANSWERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _function(name)
    return value


def _function(name: str) -> Callable[..., Any]:
    """The substitute for the function of `math` with this name."""
    traced = FUNCTIONS.get(name) or ANSWERS[name]
    number = None if name in _OF_SEQUENCES else _number
    return standing_in(original_math(name), traced, number, name not in ANSWERS and name not in _WITHOUT_ERRORS)


def standing_in(
    plain: Callable[..., Any], traced: Callable[..., Any], number: Callable[[Any], Any] | None, raises: bool
) -> Callable[..., Any]:
    """A function for traced numbers, and the plain one for others; `number` converts arguments."""
    name = plain.__name__

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any([holds_tracer(x) and is_traced(x) for x in args]):
            return plain(*args, **kwargs)
        numbers = args if number is None else [number(x) for x in args]
        with np.errstate(all="ignore"):
            out = traced(*numbers, **kwargs)
        if raises:
            _raise_as_math(plain, name, numbers, out)
        return out

    return call


def _number(x: Any) -> Any:
    """An argument as `float()` takes it, without losing its derivative."""
    if type(x) is not Tracer:
        return x
    if math.prod(shape_of(x)) != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    if x.dtype.kind == "c":
        raise TypeError("must be real number, not complex")
    value: Any = x
    number: Any = value.reshape(()) if shape_of(x) else value
    return number if aval_of(number).weak else number.astype(np.float64)


def _raise_as_math(plain: Callable[..., Any], name: str, numbers: Any, out: Any) -> None:
    """Raise the error that `math` raises for these numbers; known values decide, or a question answers."""
    if all([type(x) is not Tracer or is_readable(x) or known_value(x) is not None for x in numbers]):
        columns = np.broadcast_arrays(*[np.asarray(known_value(x)) for x in numbers])
        for values in zip(*[column.ravel().tolist() for column in columns], strict=True):
            plain(*values)
        return
    is_nan = functools.reduce(np.logical_or, [np.isnan(x) for x in numbers])
    is_finite = functools.reduce(np.logical_and, [np.isfinite(x) for x in numbers])
    fails = np.where(np.isnan(out), np.logical_not(is_nan), np.logical_and(np.isinf(out), is_finite))
    try:
        if not concrete(fails):
            return
        is_overflow = name in _OVERFLOWING and bool(concrete(np.isinf(out)))
    except StagingError:  # a body that asks nothing computes infinity or NaN
        return
    raise OverflowError("math range error") if is_overflow else ValueError("math domain error")
