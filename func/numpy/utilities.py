"""Utilities: functions applied along axes, flat indices, bits, dtypes, shared memory, printing."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import order_letter
from func.interpreters.core import Array, Tracer, concrete, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.shapes import convert
from func.numpy import creation, memory
from func.numpy.argument_checks import normalize_axes, normalize_axis, rank_of, weak_kind
from func.numpy.joining import stack
from func.numpy.protocol import implements
from func.numpy.shaping import expand_dims, moveaxis, reshape
from func.numpy.sizes import zeros_at_end


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Array, *args: Any, **kwargs: Any) -> Array:
    """The results of a function of the one-dimensional slices along an axis, as numpy.apply_along_axis."""
    arr = operand(arr)
    place = normalize_axis(axis, rank_of(arr))
    slices = moveaxis(arr, place, -1)
    shape = shape_of(slices)
    if 0 in shape[:-1]:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [_as_result(func1d(slices[index], *args, **kwargs)) for index in np.ndindex(*shape[:-1])]
    result_shape = shape_of(results[0])
    out = reshape(stack(results), (*shape[:-1], *result_shape))
    rank = len(shape) - 1
    for k in range(len(result_shape)):
        out = moveaxis(out, rank + k, place + k)
    return out


def _as_result(value: Any) -> Array:
    """The result of a user's function, possibly a sequence of traced numbers."""
    return creation.asarray(list(value)) if isinstance(value, (list, tuple)) else operand(value)


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Array, axes: Any) -> Array:
    """The result of a function (x, axis) applied over several axes in turn, as numpy.apply_over_axes."""
    out = operand(a)
    rank = rank_of(out)
    for axis in [axes] if np.ndim(axes) == 0 else axes:
        place = normalize_axis(axis, rank)
        result = func(out, place)
        if rank_of(result) != rank:
            result = expand_dims(result, place)
            if rank_of(result) != rank:
                raise ValueError("function is not returning an array of the correct shape")
        out = result
    return out


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """An array without the zeros at the ends of its axes, as numpy.trim_zeros; its shape depends on the values.

    Returns a list for a list of numbers.
    """
    original, filt = filt, operand(filt)
    if _is_for_poly1d():
        return filt
    letters = trim.lower()
    if letters not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    rank = rank_of(filt)
    axes = normalize_axes(axis, rank)
    held = ops.not_equal(filt, 0)
    index = [slice(None)] * rank
    for k in axes:
        along = reduce_any(held, axes=tuple([other for other in range(rank) if other != k]))
        front, back = [
            zeros_at_end(along, is_front, "np.trim_zeros(x)", "Slice with known indices, x[i:j].")
            for is_front in (True, False)
        ]
        n = shape_of(filt)[k]
        index[k] = slice(front if "f" in letters else 0, n - back if "b" in letters and front < n else n)
        if front == n:
            index[k] = slice(0, 0)
    return original[index[0]] if isinstance(original, (list, tuple)) and rank == 1 else filt[tuple(index)]


def _is_for_poly1d() -> bool:
    """Whether the constructor of np.poly1d calls: leading coefficients that are zero have derivatives too."""
    frame: Any = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code is _POLY1D:
            return True
        frame = frame.f_back
    return False


_POLY1D = np.poly1d.__init__.__code__
_FRAMES = 8
"""The most calls between NumPy's and func's function."""


def _known(x: Any) -> Any:
    """Indices as plain arrays, from their values."""
    if isinstance(x, (tuple, list)):
        return type(x)([_known(part) for part in x])
    return np.asarray(concrete(x)) if type(x) is Tracer else x


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """The index for each axis of flat indices, as numpy.unravel_index."""
    if type(indices) is not Tracer or order_letter(order, "C") != "C":
        return np.unravel_index(_known(indices), shape, order)  # type: ignore[call-overload, no-any-return]
    if indices.dtype.kind not in "iub":
        raise TypeError("only int indices permitted")
    indices = convert(indices, dtype=np.dtype(np.intp))
    parts = []
    for n in reversed(shape if isinstance(shape, tuple) else (shape,)):
        parts.append(ops.remainder(indices, n))
        indices = ops.floor_divide(indices, n)
    return tuple(parts[::-1])


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """The flat indices of an index for each axis, as numpy.ravel_multi_index."""
    return np.ravel_multi_index(tuple(_known(tuple(multi_index))), dims, mode, order)  # type: ignore[call-overload]


@implements(np.packbits)
def packbits(a: Array, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """The bits of a boolean or integer array packed into bytes, as numpy.packbits; from plain values."""
    return np.packbits(_known(operand(a)), axis, bitorder)  # type: ignore[call-overload]


@implements(np.unpackbits)
def unpackbits(a: Array, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of an array of bytes, as numpy.unpackbits; from plain values."""
    return np.unpackbits(_known(operand(a)), axis, count, bitorder)  # type: ignore[call-overload]


def _stand_in(x: Any) -> Any:
    """A value of the same dtype: an empty array for a traced one."""
    return np.empty(0, dtype_of(x)) if type(x) is Tracer else x


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that results from NumPy's promotion, as numpy.result_type."""
    kinds = [weak_kind(x) if type(x) is Tracer else None for x in arrays_and_dtypes]  # traced numbers of Python adapt
    return np.result_type(
        *[kind(1) if kind else _stand_in(x) for x, kind in zip(arrays_and_dtypes, kinds, strict=True)]
    )


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype can be cast to another, as numpy.can_cast."""
    return np.can_cast(dtype_of(from_) if type(from_) is Tracer else from_, to, casting)  # type: ignore[arg-type]


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    """The floating-point type that arrays have in common, as numpy.common_type."""
    return np.common_type(*[_stand_in(x) for x in arrays])


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    """The smallest dtype that holds a value, as numpy.min_scalar_type; of an array its dtype."""
    return dtype_of(a) if type(a) is Tracer and a.shape else np.min_scalar_type(_known(a))


@implements(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether a write to one array may change the other, as numpy.shares_memory."""
    if type(a) is not Tracer and type(b) is not Tracer:
        return bool(np.shares_memory(a, b, max_work))
    return memory.shares_memory(operand(a), operand(b))


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether a write to one array may change the other, as numpy.may_share_memory."""
    return shares_memory(a, b)


def _printer(show: Callable[..., str]) -> Callable[..., str]:
    @implements(show)
    @functools.wraps(show)
    def text(a: Any, *args: Any, **kwargs: Any) -> str:
        return repr(a) if type(a) is Tracer else show(a, *args, **kwargs)

    return text


array_repr = _printer(np.array_repr)
array_str = _printer(np.array_str)
array2string = _printer(np.array2string)
"""A traced array prints as its repr: dtype, shape, transform, level, and the value if known."""
