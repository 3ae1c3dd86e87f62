"""Arguments checked as NumPy checks them: axes, shapes, dtypes, and keywords that traced arrays do not support."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, aval_of, concrete, dtype_of, innermost, operand, shape_of
from func.interpreters.core.errors import TracerConversionError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import broadcast, convert, reshape
from func.interpreters.primitives.structural.slicing import getitem

NO_VALUE: Any = np._NoValue


def normalize_axis(axis: Any, rank: int, name: str = "axis") -> int:
    """An axis as a non-negative number; raises NumPy's AxisError."""
    if type(axis) is str:
        raise TypeError(f"axis {axis!r} is not a number; pass pandas and xarray objects as arrays, without labels")
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise np.exceptions.AxisError(number, rank, None if name == "axis" else name)
    return number % rank


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes (None: all), sorted and non-negative; duplicates raise ValueError."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis if axis >= 0 else axis + rank,)
    entries = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalize_axis(a, rank) for a in entries]
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple([operator.index(n) for n in shape])


def count(shape: Sequence[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def check_unsupported(function: str, **keywords: tuple[Any, Any]) -> None:
    """Raise for each keyword, a pair (value, supported value), whose value is not the supported one."""
    for name, (value, supported) in keywords.items():
        if value is not supported and value != supported:
            raise UnsupportedFunctionError(
                f"np.{function} of a traced array does not support {name}={value!r}; leave it at {supported!r}"
                f"{at_line()}"
            )


def common(arrays: Sequence[Any]) -> list[Array]:
    """Array-likes as arrays of their common dtype, by NumPy's promotion."""
    values = [operand(a) for a in arrays]
    kinds = [kind(1) if (kind := weak_kind(v)) else dtype_of(v) for v in values]
    dtype = np.result_type(*kinds)
    return [
        v if hasattr(v, "dtype") and dtype_of(v) == dtype else convert(arrayed(v) if weak_kind(v) else v, dtype=dtype)
        for v in values
    ]


def to_dtype(x: Array, dtype: Any) -> Array:
    """x converted to a dtype (None: unchanged)."""
    if dtype is None or (hasattr(x, "dtype") and dtype_of(x) == np.dtype(dtype)):
        return x
    dtype = np.dtype(dtype)
    if type(x) is Tracer and dtype.kind in "OSUMm":
        raise TracerConversionError(
            f"a traced value of dtype {x.dtype} was converted to {dtype}, which would lose its derivative or its batch "
            f"axis{at_line()}\nKeep it an array of numbers; x.tolist() and texts like f'{{x}}' read the values."
        )
    return convert(x, dtype=dtype)


def to_host(value: Any) -> Any:
    """A concrete value as a NumPy array; a device array is copied to the host."""
    return np.asarray(value.get() if hasattr(value, "get") else value)


def host_values(x: Any) -> Any:
    """The concrete values of an argument, the same for all batch elements, as a NumPy array."""
    return to_host(concrete(operand(x)))


def arrayed(x: Any) -> Array:
    """A Python number, traced or not, as an array with a fixed dtype; an array unchanged."""
    if type(x) is Tracer:
        return convert(x, dtype=dtype_of(x)) if shape_of(x) == () and aval_of(x).weak else x
    return x if hasattr(x, "dtype") else np.asarray(x)


def weak_kind(x: Any) -> Any:
    """The Python type of a number that adapts to the dtypes of other operands; None for any other operand."""
    if type(x) in (int, float, complex):
        return type(x)
    if type(x) is Tracer and aval_of(x).weak:
        return {"i": int, "f": float, "c": complex}.get(dtype_of(x).kind)
    return None


def scalar_of(x: Array) -> Array:
    """A 0-d array as the NumPy scalar that reductions and ufuncs return; anything else unchanged."""
    if type(x) is np.ndarray:
        return x if x.shape else x[()]
    if type(x) is Tracer and type(bottom := innermost(x)) is np.ndarray and bottom.shape == ():
        return getitem(x, index=())
    return x


def as_array(x: Array) -> Array:
    """A NumPy scalar or a number as a 0-d array; anything else unchanged."""
    if type(x) is Tracer:
        return broadcast(x, shape=()) if isinstance(innermost(x), (np.generic, int, float, complex)) else x
    return np.asarray(x) if isinstance(x, (np.generic, int, float, complex)) else x


def flattened(x: Array) -> Array:
    """The elements of an array along one axis, in C order."""
    return reshape(arrayed(x), shape=(count(shape_of(x)),))


def rank_of(x: Array) -> int:
    """The number of axes."""
    return len(shape_of(x))


def floating(x: Array) -> Array:
    """An array of floating-point numbers, by SciPy's conversion: integers become float64."""
    x = operand(x)
    if not hasattr(x, "dtype"):
        return np.asarray(x) if type(x) in (float, complex) else np.asarray(x, np.float64)
    return x if dtype_of(x).kind in "fc" else convert(x, dtype=np.dtype(np.float64))
