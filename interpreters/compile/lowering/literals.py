"""Python literals of what parameters hold: numbers, dtypes, axes, indices, small arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.primitives.structural.slicing import Index

LONG_REAL: type[Any] = np.longdouble
LONG_COMPLEX: type[Any] = np.clongdouble


def literal(value: Any) -> str:
    """A number, a NumPy scalar, a dtype, a string, None, an array or a tuple of these as source text."""
    if isinstance(value, tuple):
        inner = ", ".join([literal(entry) for entry in value])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return dtype_text(value)
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
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    raise TypeError(f"{value!r} has no literal")


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


def index_text(index: Index) -> str:
    """A normalised basic index as it stands in brackets."""
    if not index:
        return "()"
    return ", ".join([_entry_text(entry) for entry in index])


def slices_text(index: Index) -> str:
    """A normalised basic index as a value: a tuple of slices and integers."""
    entries = [_slice_value(entry) if isinstance(entry, tuple) else repr(entry) for entry in index]
    return f"({entries[0]},)" if len(entries) == 1 else f"({', '.join(entries)})"


def _bounds(entry: tuple[int, int, int]) -> tuple[int, int | None, int]:
    """(start, stop, step) of a slice; a stop below zero is the end of a slice that runs backwards."""
    start, stop, step = entry
    return start, stop if stop >= 0 else None, step


def _slice_value(entry: tuple[int, int, int]) -> str:
    return f"slice{literal(_bounds(entry))}"


def _entry_text(entry: int | tuple[int, int, int] | None) -> str:
    if not isinstance(entry, tuple):
        return repr(entry)
    start, stop, step = _bounds(entry)
    head = f"{'' if start == 0 and step > 0 else start}:{'' if stop is None else stop}"
    return head if step == 1 else f"{head}:{step}"
