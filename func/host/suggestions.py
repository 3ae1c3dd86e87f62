"""Suggestions at the end of errors: what to write instead of the call or the line that asked for a plain value.

The frames and the bytecode of the user's code tell what was called, and which module imported it by name.
"""

from __future__ import annotations

import importlib
import sys
import types
from types import FunctionType
from typing import Any

import numpy as np

from func.host.bytecode import operation
from func.host.patching import CREATORS, is_replaced
from func.interpreters.host.source import called_object, innermost_frame, library_calls, user_frame
from func.interpreters.host.swallowed_errors import is_indexing, is_writing
from func.numpy.inplace import WRITE_HINT

_OUTSIDE_HINT = (
    "This array cannot store traced values: it was made before `func.intercept()`, or by an operator or method of such "
    "an array. Write into np.array(a) or np.copy(a), which func makes, or collect the values in a list and np.stack it."
)
_NAMESPACES = {
    "numpy.linalg": "func.numpy.linalg",
    "numpy.fft": "func.numpy.fft",
    "numpy": "func.numpy",
}
"""The modules with the traced versions of a package's functions; the longer names come first."""
_SCIPY = frozenset(
    [
        f"scipy.{name}"
        for name in (
            "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "sparse.linalg",
            "spatial", "spatial.distance", "spatial.transform", "special", "stats",
        )
    ]
)  # fmt: skip
"""Modules of SciPy that func.scipy has under the same name."""


def suggestion(otherwise: str, of_index: str) -> str:
    """The suggestion: the traced version of the called library function, else one by the instruction."""
    frame = user_frame(2)
    if imported := _suggestion_for_imported_name():
        return imported
    calls = library_calls(2)
    if not calls and not otherwise.startswith("np.") and (instead := suggestion_for_call(called_object(frame))):
        return instead
    hint = library_hint(calls, otherwise) if calls else library_hint(_compiled_call(frame), otherwise, looks=False)
    if hint is not None:
        return hint
    if is_writing(frame):
        return (
            _OUTSIDE_HINT if importlib.import_module("func.host.intercepted_arrays").is_intercepting() else WRITE_HINT
        )
    return of_index if is_indexing(frame) else otherwise


def _suggestion_for_imported_name() -> str:
    """The suggestion for an object of NumPy or math that the innermost module imported by name; empty without one.

    Its line calls it, or writes into an array while the module has imported a function that makes arrays.
    """
    frame = innermost_frame()
    if frame is None or _is_of_numpy(frame):
        return ""
    called, module = operation(frame, np, ()), str(frame.f_globals.get("__name__", "__main__"))
    imported = {name: value for name in frame.f_code.co_names if is_replaced(value := frame.f_globals.get(name))}
    name = next((name for name, value in imported.items() if value is called), "")
    if name:
        otherwise = suggestion_for_call(called) or f"Or write np.{called.__name__}(x), which takes them."
        return (
            f"The module {module} imported {name} by name. Inside `with func.intercept(modules=[{module!r}]):` it "
            f"takes traced values. {otherwise}"
        )
    makers = [name for name, value in imported.items() if getattr(value, "__name__", "") in CREATORS]
    if makers and is_writing(frame):
        return (
            f"The module {module} imported {' and '.join(makers)} by name. Inside "
            f"`with func.intercept(modules=[{module!r}]):` the arrays that it makes can store traced values."
        )
    return ""


def _is_of_numpy(frame: types.FrameType) -> bool:
    """Whether code of NumPy or SciPy itself runs, which cannot use suggestions."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("numpy", "scipy")


def suggestion_for_call(called: Any) -> str:
    """The suggestion for a call of a builtin function or method; empty if there is none."""
    if isinstance(getattr(called, "__self__", None), np.ndarray):
        return WRITE_HINT if called.__name__ in _WRITING_METHODS else ""
    name = str(getattr(called, "__name__", ""))
    module = getattr(called, "__module__", "")
    if module == "math":
        return f"math.{name} takes numbers of Python: write {_INSTEAD_OF_MATH.get(name, f'np.{name}(x)')}."
    if module == "cmath":
        instead = _INSTEAD_OF_CMATH.get(name) or _INSTEAD_OF_MATH.get(name, f"np.{name}(x)")
        return f"cmath.{name} takes numbers of Python: write {instead.replace('(x)', '(x + 0j)')}."
    if called is vars(np.dtype)["type"]:
        return "The class of a dtype makes a plain number: write x.astype(dtype), or x as it is if it has this dtype."
    if isinstance(getattr(called, "__self__", None), (np.random.Generator, np.random.RandomState)):
        return (
            f"NumPy's {name} takes plain numbers: draw without parameters and compute with the sample, mean + scale * "
            "rng.normal(size=n), x[rng.permutation(n)], or use func.random."
        )
    if module == "numpy" and name in _OF_PLAIN_NUMBERS:
        return f"np.{name} takes plain numbers: write {_OF_PLAIN_NUMBERS[name]}."
    if isinstance(called, type) and issubclass(called, np.generic):
        return f"np.{name} makes a plain number: write x.astype(np.{name}); x.dtype says what it is already."
    if name and called in (max, min):
        return f"Python's {name} compares one by one: write np.{name}imum(a, b), or np.{name}(x) of an array."
    return ""


_OF_PLAIN_NUMBERS = {
    "arange": "start + step * np.arange(n), with a number of steps n that is not traced, or np.linspace(start, stop, n)"
}
"""Suggestions for functions of NumPy whose arrays depend on the values of their arguments."""
_WRITING_METHODS = ("fill", "put", "itemset", "partition", "sort")
_INSTEAD_OF_MATH = {
    "acos": "np.arccos(x)",
    "acosh": "np.arccosh(x)",
    "asin": "np.arcsin(x)",
    "asinh": "np.arcsinh(x)",
    "atan": "np.arctan(x)",
    "atan2": "np.arctan2(y, x)",
    "atanh": "np.arctanh(x)",
    "comb": "func.special.binom(n, k)",
    "dist": "np.linalg.norm(x - y)",
    "erf": "func.special.erf(x)",
    "erfc": "func.special.erfc(x)",
    "factorial": "func.special.factorial(x)",
    "fma": "x * y + z",
    "fsum": "np.sum(x)",
    "gamma": "func.special.gamma(x)",
    "isqrt": "np.floor(np.sqrt(x))",
    "lgamma": "func.special.gammaln(x)",
    "log": "np.log(x), and np.log(x) / np.log(base) for another base",
    "perm": "func.special.perm(n, k)",
    "pow": "x**y",
    "prod": "np.prod(x)",
    "remainder": "x - y * np.rint(x / y)",
    "sumprod": "np.sum(x * y)",
    "ulp": "np.spacing(np.abs(x))",
}
"""Suggestions for functions of math that NumPy has under another name, or not."""
_INSTEAD_OF_CMATH = {"phase": "np.angle(z)", "polar": "np.abs(z), np.angle(z)", "rect": "r * np.exp(1j * phi)"}


def _compiled_call(frame: types.FrameType | None) -> list[tuple[str, str]]:
    """The compiled function of SciPy that the user's line calls; it has no frame."""
    called = called_object(frame)
    module = str(getattr(called, "__module__", ""))
    is_compiled = module.startswith("scipy.") and not isinstance(called, FunctionType)
    return [(module, called.__name__)] if is_compiled and hasattr(called, "__name__") else []


def traced_hint(otherwise: str, argument: str = "") -> str:
    """The suggestion for a request of an unknown value during a trace; in a library, its function.

    `argument` names the argument with that value, if it is one.
    """
    public = _public_calls(library_calls(2))
    if public:
        otherwise = (
            f"{public[0]} decides by values, which compiled code does not have. Call it outside of compiled code, "
            "or on static arguments, func.jit(..., static_argnums=...); func.pure_callback calls it with numbers."
        )
    else:
        otherwise = suggestion(otherwise, otherwise)
    if argument.isidentifier():
        otherwise = otherwise.replace("static_argnums=...", f"static_argnames={argument!r}")
    return otherwise


def _public_calls(functions: list[tuple[str, str]]) -> list[str]:
    """The users' names of functions of a library, without the functions that users do not know."""
    calls = [_public_name(module, function.split(".")[0]) for module, function in functions]
    return [name for name in calls if "._" not in name]


def library_hint(functions: list[tuple[str, str]], otherwise: str, looks: bool = True) -> str | None:
    """The suggestion for a call of these functions of a library, outermost first.

    `looks` is false for compiled functions, which have no hooks.
    """
    calls = [_public_name(module, function.split(".")[0]) for module, function in functions]
    for name in calls:
        package, _, function = name.rpartition(".")
        namespace = _NAMESPACES.get(package) or (f"func.{package}" if package in _SCIPY else None)
        if looks and isinstance(getattr(sys.modules.get(package), function, None), FunctionType) and package in _SCIPY:
            continue  # it has looked for traced values itself, and cannot use these
        if namespace is not None and function in importlib.import_module(namespace).__all__:
            return f"{name} takes plain arrays only; {namespace}.{function} takes traced ones."
    public = _public_calls(functions)
    if public:
        if not public[0].startswith(("numpy.", "scipy.")):
            return f"{public[0]} takes plain arrays only. {otherwise}"
        way = "`with func.intercept():` lets its arrays hold them. " if public[0].startswith("numpy.") else ""
        return (
            f"{public[0]} takes plain arrays only, and func has no version of it for these traced ones. {way}"
            "func.custom_jvp gives it a derivative; func.stop_gradient(x) gives the numbers where none is needed, "
            "and func.pure_callback calls it with numbers in compiled code."
        )
    return None


def _public_name(module: str, function: str) -> str:
    """The users' name of a function of a package: numpy.norm in numpy.linalg._linalg is numpy.linalg.norm."""
    parts = module.split(".")
    for length in range(1, len(parts)):
        package = ".".join(parts[:length])
        public = getattr(sys.modules.get(package), function, None)
        if public is not None and getattr(sys.modules.get(module), function, None) is public:
            return f"{package}.{function}"
    return f"{module}.{function}"
