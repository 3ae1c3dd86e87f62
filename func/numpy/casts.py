"""Substitutes for objects that NumPy does not dispatch: number classes as casts, np.require, np.full, np.piecewise, ...

Code that a transform runs gets these functions for `np.float64(...)`, which is then x.astype(np.float64). Elsewhere the
class is NumPy's own, so that `dtype=np.float64` and `isinstance(x, np.float64)` mean the same as ever.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.host.conversions import carries_derivative
from func.host.patching import SCALAR_CLASSES, holds_tracer, is_traced, original, substitute
from func.interpreters.core import Array, Tracer, aval_of, concrete, dtype_of, operand, shape_of
from func.interpreters.core.errors import StagingError
from func.interpreters.core.wiring import WIRING
from func.numpy import creation
from func.numpy.late_names import IN_MODULES


def _cast(name: str) -> Any:
    scalar_class: Any = original(name)
    dtype = np.dtype(scalar_class)

    def cast(bound: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and holds_tracer(args[0]) and is_traced(args[0]):
            return _converted(args[0], dtype)
        return scalar_class(*args, **kwargs)

    return substitute(cast, name)


def _converted(x: Any, dtype: np.dtype[Any]) -> Array:
    """The numbers of an array or of nested lists in another dtype, as an array of that dtype from here on."""
    return WIRING.convert_traced("array", x, dtype=dtype)


def __getattr__(name: str) -> Any:
    """The cast that substitutes for a number class of NumPy."""
    if name not in SCALAR_CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _cast(name)
    return value


def _require(bound: Any, a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """np.require of traced values: memory order and an own copy; all traced arrays are aligned and writeable."""
    if not (holds_tracer(a) and is_traced(a)):
        return original("require")(a, dtype, requirements, like=like)
    stand_in = original("require")(np.empty((2, 2)), None, requirements)  # NumPy checks the letters
    order = "C" if stand_in.flags.c_contiguous else "F"
    letters = {str(letter)[0].upper() for letter in requirements or ()}
    function = "array" if "O" in letters else "asanyarray"
    return WIRING.convert_traced(function, a, dtype=dtype, order=order if letters & {"C", "F"} else "K")


require = substitute(_require, "require")


def _arange(bound: Any, *args: Any, **kwargs: Any) -> Any:
    """np.arange of traced numbers: of their values, which are questions where a trace does not know them."""
    numbers = {name: value if name == "like" else _plain_number(value) for name, value in kwargs.items()}
    return original("arange")(*[_plain_number(value) for value in args], **numbers)


def _plain_number(value: Any) -> Any:
    """A traced number as a plain one of its dtype. `float` raises for one that has a derivative or is unknown."""
    if not (type(value) is Tracer and shape_of(value) == ()):
        return value
    number: Any = value
    if value.dtype.kind in "iub":
        plain: Any = int(number)
    else:
        plain = float(int(number)) if not carries_derivative(value, True) and _is_whole(number) else float(number)
    return plain if aval_of(value).weak else value.dtype.type(plain)


def _is_whole(number: Any) -> bool:
    try:
        return bool(concrete(number == np.ceil(number)))
    except StagingError:
        return False


arange = substitute(_arange, "arange")


def _full(bound: Any, shape: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    function = creation.full if holds_tracer(fill_value) else original("full")
    return function(shape, fill_value, *args, **kwargs)


def _fromiter(bound: Any, iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    """np.fromiter of an iterable that may yield traced numbers."""
    numbers = list(iter if count < 0 else itertools.islice(iter, count))
    if any([holds_tracer(number) for number in numbers]):
        if len(numbers) < count:
            raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(numbers)} items.")
        return WIRING.convert_traced("array", numbers, dtype=dtype)
    return original("fromiter")(numbers, dtype, count, **kwargs)


def _asarray_chkfinite(bound: Any, a: Any, dtype: Any = None, order: Any = None) -> Any:
    if not (holds_tracer(a) and is_traced(a)):
        return original("asarray_chkfinite")(a, dtype, order)
    out = WIRING.convert_traced("asarray", a, dtype=dtype, order=order)
    if dtype_of(out).kind in "fc" and not np.all(np.isfinite(out)):
        raise ValueError("array must not contain infs or NaNs")
    return out


def _with_callbacks(name: str) -> Any:
    """func's version for all arguments: the function that it calls may bring traced values."""

    def function(bound: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(IN_MODULES[name].partition(":")[0]), name)(*args, **kwargs)

    return substitute(function, name)


full = substitute(_full, "full")
fromiter = substitute(_fromiter, "fromiter")
asarray_chkfinite = substitute(_asarray_chkfinite, "asarray_chkfinite")
apply_along_axis = _with_callbacks("apply_along_axis")
piecewise = _with_callbacks("piecewise")


def vectorized_call(vectorized: np.vectorize, function: Any, args: Sequence[Any]) -> Any:
    """The call of an object of np.vectorize with traced arrays: the function of each element, as in NumPy.

    The first result decides the dtype, unless `otypes` does.
    """
    from func.numpy import shaping, vectorizing  # this module serves casts too

    if vectorized.signature is not None:
        return vectorizing.vectorize(function, signature=vectorized.signature)(*args)
    arrays = shaping.broadcast_arrays(*args)
    shape = shape_of(arrays[0]) if arrays else ()
    results = [function(*[array[place] for array in arrays]) for place in np.ndindex(shape)]
    if not results:
        return np.vectorize(function, otypes=vectorized.otypes)(*[np.empty(shape) for _ in arrays])
    is_single = not isinstance(results[0], tuple)
    columns = [results] if is_single else list(zip(*results, strict=True))
    kinds: Any = vectorized.otypes or [dtype_of(operand(column[0])) for column in columns]
    outs = [_filled(column, np.dtype(kind), shape) for column, kind in zip(columns, kinds, strict=True)]
    return outs[0] if is_single else tuple(outs)


def _filled(elements: Sequence[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array = WIRING.convert_traced("array", list(elements)).astype(dtype).reshape(shape)
    return array[()] if shape == () else array


def rule_of_compiled(ufunc: Any) -> Callable[..., Any] | None:
    """The traced version of a ufunc that Numba has made of a Python function of numbers; None for any other."""
    function = getattr(getattr(ufunc, "_dispatcher", None), "py_func", None)
    if function is None or not type(ufunc).__module__.startswith("numba."):
        return None
    vectorized = np.vectorize(function)
    return lambda *args: vectorized_call(vectorized, function, args)
