"""What primitives take: arrays as they are, lists as arrays, and the refusal of what cannot be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from func.backends import HOST_TYPES, namespace_of_type
from func.interpreters.avals import Array
from func.interpreters.errors import UnsupportedArrayError
from func.interpreters.tracers import Tracer


def operand(value: Any) -> Array:
    """An argument as primitives take it: lists become arrays, what cannot be traced is refused."""
    kind = type(value)
    if kind is Tracer:
        return value
    if kind is np.ndarray or kind in HOST_TYPES:
        dtype = getattr(value, "dtype", None)
        if dtype is not None and dtype.kind in "OSUVMm" and dtype.name != "bfloat16":
            refuse_array(value)
        return value
    if isinstance(value, (list, tuple)):
        return _from_sequence(value)
    if namespace_of_type(kind) is not None:
        return value
    if kind in CARRIERS:
        return CARRIERS[kind](value)
    if isinstance(value, np.ndarray):
        refuse_array(value)
    if hasattr(value, "__array__"):
        return operand(np.asarray(value))
    return refuse_array(value)


CARRIERS: dict[type, Callable[[Any], Array]] = {}
"""Classes from above whose objects stand for an array, with what gives that array."""

_sequence_converter: list[Callable[[Any], Array]] = []


def set_sequence_converter(convert: Callable[[Any], Array]) -> None:
    """Registration from above: how nested lists that may hold traced values become one array."""
    _sequence_converter[:] = [convert]


def _from_sequence(value: Any) -> Array:
    return _sequence_converter[0](value) if _sequence_converter else np.asarray(value)


def refuse_array(value: Any) -> NoReturn:
    """Raise for objects that func cannot trace, saying what to pass instead."""
    kind = type(value).__name__
    if isinstance(value, np.ma.MaskedArray):
        hint = "func does not trace masked arrays; use x.filled(...) and np.where(mask, ..., ...)"
    elif isinstance(value, np.matrix):
        hint = "func does not trace np.matrix; pass np.asarray(x) and write products with @"
    elif isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        hint = "func traces plain ndarrays only; pass np.asarray(x)"
    elif isinstance(value, (np.ndarray, np.generic)):
        hint = f"arrays of dtype {value.dtype} carry no numbers to trace; convert with x.astype(float)"
    else:
        hint = "pass an array, a number, or a nested list of numbers"
    raise UnsupportedArrayError(f"{kind} is not an array that func can compute on: {hint}")
