"""np.pad: zeros by the embed row, other modes by gathering the elements that NumPy repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.errors import UnsupportedFunctionError
from func.interpreters.primitives.structural import embed
from func.interpreters.source import at_line
from func.numpy.arguments import rank_of
from func.numpy.protocol import implements

__all__ = ["pad"]

_GATHERED = ("edge", "reflect", "symmetric", "wrap")


@implements(np.pad)
def pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """An array with borders, in NumPy's modes constant, edge, reflect, symmetric, wrap, and empty (as zeros)."""
    array = operand(array)
    widths = _pairs(pad_width, rank_of(array), "pad_width")
    if any([w < 0 for pair in widths for w in pair]):
        raise ValueError("index can't contain negative values")
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0)
        _no_more(kwargs, mode)
        return _constant(array, widths, values)
    if mode not in _GATHERED:
        raise UnsupportedFunctionError(
            f"np.pad of a traced array does not support mode={mode!r}{at_line()}\n"
            f"Supported are constant, empty, {', '.join(_GATHERED)}."
        )
    if kwargs.pop("reflect_type", "even") != "even":
        raise UnsupportedFunctionError(f"np.pad of a traced array supports reflect_type='even' only{at_line()}")
    _no_more(kwargs, mode)
    from func.numpy.selection import take

    for axis, (low, high) in enumerate(widths):
        if low or high:
            places = np.pad(np.arange(shape_of(array)[axis]), (low, high), mode)
            array = take(array, places, axis=axis)
    return array


def _no_more(kwargs: dict[str, Any], mode: str) -> None:
    if kwargs:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {set(kwargs)}")


def _pairs(value: Any, rank: int, name: str) -> list[tuple[Any, Any]]:
    """(low, high) per axis, in the forms that NumPy takes."""
    if isinstance(value, dict):
        full: list[Any] = [(0, 0)] * rank
        for axis, pair in value.items():
            full[axis] = pair if isinstance(pair, (tuple, list)) else (pair, pair)
        value = full
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (rank, 2)).tolist()]
    except ValueError:
        raise ValueError(f"{name} must be a number, a pair, or a pair per axis, got {value!r}") from None


def _constant(array: Array, widths: list[tuple[int, int]], values: Any) -> Array:
    from func.numpy.selection import where

    shape = shape_of(array)
    index = tuple([(low, low + n, 1) for (low, _), n in zip(widths, shape, strict=True)])
    full = tuple([low + n + high for (low, high), n in zip(widths, shape, strict=True)])
    out = embed(array, index=index, shape=full)
    fill = operand(values)
    if rank_of(fill) == 0 and type(fill) in (int, float) and fill == 0:
        return out
    if rank_of(fill) == 0:
        inside = np.zeros(full, bool)
        inside[tuple([slice(low, low + n) for (low, _), n in zip(widths, shape, strict=True)])] = True
        return where(inside, out, fill.astype(out.dtype) if hasattr(fill, "astype") else np.asarray(fill, out.dtype))
    pairs = _pairs(values, len(shape), "constant_values")
    for axis, (low, high) in enumerate(widths):
        places = np.arange(full[axis]).reshape([-1 if i == axis else 1 for i in range(len(full))])
        out = where(places < low, np.asarray(pairs[axis][0], out.dtype), out)
        out = where(places >= full[axis] - high, np.asarray(pairs[axis][1], out.dtype), out)
    return out
