"""Python literals of what parameters hold: numbers, dtypes, axes, indices, small arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LONG_REAL: type[Any] = np.longdouble
LONG_COMPLEX: type[Any] = np.clongdouble


def literal(value: Any) -> str:
    """A number, a NumPy scalar, a dtype, a slice, a string, None, an array or a tuple of these as source text."""
    if isinstance(value, tuple):
        return tuple_text([literal(entry) for entry in value])
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, slice):
        return f"slice{literal((value.start, value.stop, value.step))}"
    if isinstance(value, np.ndarray):
        return f"np.array({_nested(value.tolist())}, {dtype_text(value.dtype)})"
    if isinstance(value, LONG_REAL):
        return f"{dtype_text(value.dtype)}('{value!s}')"
    if isinstance(value, LONG_COMPLEX):
        parts = f"[{literal(value.real)}, {literal(value.imag)}]"
        return f"np.array({parts}, {dtype_text(value.real.dtype)}).view({dtype_text(value.dtype)})[0]"
    if isinstance(value, np.generic):
        return f"{dtype_text(value.dtype)}({literal(value.item())})"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str)):
        return "..." if value is Ellipsis else repr(value)
    raise TypeError(f"{value!r} has no literal")


def tuple_text(words: Sequence[str]) -> str:
    """A tuple of texts."""
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"


def _nested(value: Any) -> str:
    return f"[{', '.join([_nested(entry) for entry in value])}]" if isinstance(value, list) else literal(value)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as a scalar type: np.float32, np.bool_, ml_dtypes.bfloat16."""
    if dtype.kind == "V":
        return f"ml_dtypes.{dtype.name}"
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def parameter_text(value: Any) -> str:
    """A parameter of a support function, which takes dtypes themselves."""
    return f"np.dtype({dtype_text(value)})" if isinstance(value, np.dtype) else literal(value)


def axes_text(axes: Sequence[int]) -> str:
    """Axes of a reduction: a number where there is one, which NumPy parses faster."""
    return str(axes[0]) if len(axes) == 1 else literal(tuple(axes))


def slice_text(entry: slice) -> str:
    """A slice as it stands in brackets."""
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    head = f"{'' if start is None or (start == 0 and step > 0) else start}:{'' if stop is None else stop}"
    return head if step == 1 else f"{head}:{step}"
