"""CuPy's share of NumPy's and SciPy's names: the parameters of its functions, the loops of its ufuncs, its methods.

`cupy_surface.json` was read from the CuPy that it names, which imports without a device. `python -m
tests.support.cupy_surface` reads it again. The double of a device has exactly its names, and binds every call to the
parameters.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from func.backends.number_types import kind_of

FILE = Path(__file__).with_name("cupy_surface.json")

MODULES = {
    "numpy": "cupy",
    "numpy.fft": "cupy.fft",
    "numpy.lib.stride_tricks": "cupy.lib.stride_tricks",
    "numpy.linalg": "cupy.linalg",
    "scipy.linalg": "cupyx.scipy.linalg",
    "scipy.ndimage": "cupyx.scipy.ndimage",
    "scipy.signal": "cupyx.scipy.signal",
    "scipy.special": "cupyx.scipy.special",
}
"""The modules that implementations name, and CuPy's of the same functions."""
ARRAY = "numpy.ndarray"

AT = {
    **dict.fromkeys(("add",), "ilefdILqQ"),
    **dict.fromkeys(("maximum", "minimum"), "ilfdILqQ"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), "ilILqQ"),
    "subtract": "iI",
}
"""The dtypes on which a ufunc's `at` works, as the TypeErrors of CuPy 14.2 name them; others have no `at`."""
REDUCING = {"reduce": ("add", "multiply"), "accumulate": ("add", "multiply"), "reduceat": ("add",)}
"""The ufuncs that have a method; CuPy raises NotImplementedError for others."""
ONE_MATRIX = {"numpy.linalg.lstsq", "scipy.linalg.expm", "scipy.linalg.lu_factor"}
"""Functions that take no stacks of matrices; CuPy checks the rank of their first argument, or takes it for granted."""

OF_ONE_DTYPE = {"scipy.linalg.lu_solve", "scipy.linalg.solve_triangular"}
"""Functions that convert the right-hand side to the dtype of the matrix, where SciPy takes that of both."""


def installed() -> dict[str, dict[str, str]]:
    """The surface of the CuPy that is installed, by module and name."""
    surface = {}
    for own, theirs in MODULES.items():
        module, host = importlib.import_module(theirs), importlib.import_module(own)
        names = [name for name in dir(host) if not name.startswith("_") and getattr(module, name, None) is not None]
        surface[own] = {name: described(getattr(module, name)) for name in names}
    array = importlib.import_module("cupy").ndarray
    names = [name for name in dir(np.ndarray) if not name.startswith("__") and hasattr(array, name)]
    surface[ARRAY] = {name: described(getattr(array, name)) for name in names}
    return surface


def described(value: Any) -> str:
    """A function by its parameters, a ufunc by its loops, everything else by what it is."""
    if not isinstance(value, type) and hasattr(value, "nin") and hasattr(value, "types"):
        return f"ufunc {value.nin} {value.nout} {' '.join(value.types)}"
    if inspect.ismodule(value):
        return "module"
    if isinstance(value, type) or not callable(value):
        return "value"
    text = parameters_of(value)
    return "function" if text is None else f"function ({text})"


def parameters_of(function: Callable[..., Any]) -> str | None:
    """The parameters, by the signature or, for compiled methods, by the first line of the docstring."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        line = re.match(r"\w+\.\w+\((.*?)\)( ->|$)", (function.__doc__ or "").partition("\n")[0])
        if line is None:
            return None
        words = [re.sub(r"^\w+ (?=\w)", "", word.strip()) for word in line[1].split(",")]
        return ", ".join([re.sub("=.*", "=None", word) for word in words])
    words, positional_only = [], False
    for parameter in parameters:
        if positional_only and parameter.kind is not parameter.POSITIONAL_ONLY:
            words.append("/")
        positional_only = parameter.kind is parameter.POSITIONAL_ONLY
        if parameter.kind is parameter.KEYWORD_ONLY and not any([word.startswith("*") for word in words]):
            words.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        words.append(f"{stars}{parameter.name}" + ("" if parameter.default is parameter.empty else "=None"))
    return ", ".join([*words, "/"] if positional_only else words)


@functools.cache
def stored() -> dict[str, dict[str, str]]:
    """The surface that the file holds."""
    return json.loads(FILE.read_text(encoding="utf-8"))["surface"]  # type: ignore[no-any-return]


@functools.cache
def signature_of(path: str) -> inspect.Signature | None:
    """The arguments to which a function's call binds; None where CuPy does not tell."""
    module, _, name = path.rpartition(".")
    text = stored()[module][name]
    if not text.startswith("function ("):
        return None
    return inspect.signature(eval(f"lambda {text[len('function (') : -1]}: None"))


def loops_of(path: str) -> tuple[int, int, list[str]] | None:
    """The operands, results and loops of a ufunc; None for other functions."""
    module, _, name = path.rpartition(".")
    kind, *words = stored()[module][name].split()
    return (int(words[0]), int(words[1]), words[2:]) if kind == "ufunc" else None


def has(module: str, name: str) -> bool:
    """Whether CuPy has what NumPy or SciPy has under this name."""
    return name in stored().get(module, {})


Loop: TypeAlias = tuple[str, str] | None
"""The letters of the dtypes that a loop of a ufunc takes and gives."""


def check_call(path: str, dtype_of: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Loop:
    """The loop that a call takes, None without a ufunc; raises as CuPy does where the call does not fit.

    `dtype_of(argument)` is the dtype of an array of the device, None for everything else. CuPy takes the first loop to
    which the operands can be cast; Python scalars adapt.
    """
    loops = loops_of(path)
    if loops is not None:
        return _check_ufunc(path, loops, dtype_of, args, kwargs)
    signature = signature_of(path)
    if signature is not None:
        try:
            signature.bind(*((None,) if path.startswith(ARRAY) else ()), *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"CuPy's {path}{signature}: {error}") from None
        kind = signature.bind_partial(*((None,) if path.startswith(ARRAY) else ()), *args, **kwargs).arguments.get(
            "kind"
        )
        if path.endswith((".argsort", ".sort")) and kind not in (None, "stable"):
            raise ValueError(f"CuPy's {path} sorts by no other kind than 'stable', not {kind!r}")
    if path in OF_ONE_DTYPE:
        arrays = [args[0] if path.endswith("triangular") else args[0][0], args[1]]
        assert len({dtype_of(array) for array in arrays}) == 1, f"CuPy's {path} converts to the dtype of the matrix"
    for argument in args[:1] if path in ONE_MATRIX else ():
        assert argument.ndim == 2, f"CuPy's {path} takes one matrix, not an array of shape {argument.shape}"
    return None


def _check_ufunc(path: str, loops: Any, dtype_of: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Loop:
    nin, nout, types = loops
    if not nin <= len(args) <= nin + nout:
        raise TypeError(f"CuPy's {path} takes {nin} to {nin + nout} arguments, not {len(args)}")
    if unknown := set(kwargs) - {"out", "dtype", "casting"}:
        raise TypeError(f"CuPy's {path} has no arguments {sorted(unknown)}")
    dtypes = [dtype_of(arg) if dtype_of(arg) is not None else getattr(arg, "dtype", None) for arg in args[:nin]]
    highest = max([_rank(dtype) for dtype in dtypes if dtype is not None], default=-1)
    if kwargs.get("dtype") is not None:
        return None
    for operands, results in [loop.split("->") for loop in types]:
        fits = [
            np.can_cast(own, dtype_of_letter(letter))
            if own is not None
            else _adapts(scalar, dtype_of_letter(letter), highest)
            for own, scalar, letter in zip(dtypes, args, operands, strict=False)
        ]
        if all(fits):
            return operands, results
    raise TypeError(f"CuPy's {path} has no loop for {[str(dtype) for dtype in dtypes]}")


def dtype_of_letter(letter: str) -> np.dtype[Any]:
    """The dtype of a letter in a loop; E is bfloat16."""
    narrow: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return narrow if letter == "E" else np.dtype(letter)


def _rank(dtype: Any) -> int:
    return "biufc".index(kind_of(np.dtype(dtype)))


def _adapts(scalar: Any, dtype: np.dtype[Any], highest: int) -> bool:
    """Whether a Python scalar goes into a dtype: it adapts to arrays of its kind or above."""
    if _rank(type(scalar)) > highest:
        return np.can_cast(np.dtype(type(scalar)), dtype)
    return np.result_type(type(scalar)(0), dtype) == dtype


def check_method(path: str, method: str, dtype: Any) -> None:
    """Raise as CuPy does where a ufunc has no such method, or not for arrays of this dtype."""
    name = path.rpartition(".")[2]
    if method == "at" and name in AT:
        if dtype not in [np.dtype(letter) for letter in AT[name]]:
            raise TypeError(f"CuPy's {path}.at does not work on {dtype}")
    elif method != "outer" and name not in REDUCING.get(method, ()):
        raise NotImplementedError(f"CuPy's {path}.{method} is not supported")


def main() -> None:
    """Read the surface of the installed CuPy into the file."""
    version = importlib.import_module("cupy").__version__
    text = json.dumps({"cupy": version, "surface": installed()}, indent=1, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
