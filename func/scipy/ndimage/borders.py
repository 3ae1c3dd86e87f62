"""What the functions of func.scipy.ndimage share: arguments, outputs, and the extension of arrays at their borders."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from func import numpy as fnp
from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import TRACED, Array

F = TypeVar("F", bound=Callable[..., Any])

MODES = {
    "nearest": "nearest", "wrap": "wrap", "reflect": "reflect", "grid-mirror": "reflect", "mirror": "mirror",
    "constant": "constant", "grid-wrap": "wrap", "grid-constant": "constant",
}  # fmt: skip
"""The modes of filters by the extension that they mean."""
DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def version_of(scipy_function: Callable[..., Any]) -> Callable[[F], F]:
    """The decorated function computes for traced arguments, SciPy's for all others."""

    def decorate(own: F) -> F:
        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not holds_traced(args) and not holds_traced(kwargs):
                return scipy_function(*args, **kwargs)
            return own(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def version_with_callback(scipy_function: Callable[..., Any]) -> Callable[[F], F]:
    """As `version_of`, for functions that take callbacks, which may bring traced values of their own."""

    def decorate(own: F) -> F:
        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (TRACED.run or TRACED.stay):
                return scipy_function(*args, **kwargs)
            return own(*args, **kwargs)

        call.original = scipy_hooks.original(scipy_function)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def array_of(input: Any) -> Array:
    """The input as an array of a dtype that SciPy's kernels take."""
    x = fnp.asarray(input)
    if x.dtype.kind not in "biufc" or x.dtype.char in "egG":
        raise RuntimeError("data type not supported")
    return x


def refuse_complex(x: Array) -> None:
    """Raise for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise TypeError("Complex type not supported")


def in_double(x: Array) -> Array:
    """In double precision, which the kernels compute in."""
    return fnp.astype(x, COMPLEX if x.dtype.kind == "c" else DOUBLE, copy=False)


def output_dtype(output: Any, x: Array, is_complex: bool = False) -> Any:
    """The dtype of the result, of what `output` says of it."""
    if output is None:
        return np.promote_types(x.dtype, np.complex64) if is_complex else np.dtype(x.dtype)
    if not isinstance(output, (type, np.dtype, str)):
        dtype = fnp.asarray(output).dtype
    else:
        dtype = np.dtype(output)
        if is_complex and dtype.kind != "c" and not isinstance(output, str):
            warnings.warn("promoting specified output dtype to complex", stacklevel=4)
            dtype = np.promote_types(dtype, np.complex64)
        if isinstance(output, str) and not issubclass(dtype.type, np.number):
            raise RuntimeError("output must have numeric dtype")
    if is_complex and dtype.kind != "c":
        raise RuntimeError("output must have complex dtype")
    return dtype


def delivered(result: Array, output: Any, x: Array, is_complex: bool = False, rounds: bool = False) -> Array:
    """The result in the output's dtype; written to `output` where that is an array.

    Integers are cut off as C does, or rounded and clipped where the kernel does (`rounds`).
    """
    dtype = output_dtype(output, x, is_complex)
    if rounds and dtype.kind in "iu" and result.dtype.kind == "f":
        bounds = np.iinfo(dtype)
        rounded = fnp.trunc(fnp.where(result > 0, result + 0.5, result - 0.5 if dtype.kind == "i" else 0.0))
        result = fnp.clip(rounded, float(bounds.min), float(bounds.max))
    if dtype.kind == "b" and result.dtype.kind == "f":
        result = fnp.trunc(result)
    result = fnp.astype(result, dtype, copy=False)
    if output is None or isinstance(output, (type, np.dtype, str)):
        return result
    if np.shape(output) != result.shape:
        raise RuntimeError("output shape not correct")
    output[...] = result
    return output


def refuse_real_output(output: Any, x: Array) -> None:
    """Raise for a real dtype of the output of complex numbers, where SciPy does not promote it."""
    if x.dtype.kind == "c" and isinstance(output, (type, np.dtype, str)) and np.dtype(output).kind != "c":
        raise RuntimeError("output must have complex dtype")


def sequence_of(value: Any, rank: int) -> list[Any]:
    """One value for each axis."""
    if not isinstance(value, str) and np.ndim(value) > 0:
        values = list(value)
        if len(values) != rank:
            raise RuntimeError("sequence argument must have length equal to input rank")
        return values
    return [value] * rank


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes (None: all) as non-negative numbers."""
    if axes is None:
        return tuple(range(rank))
    chosen: tuple[int, ...]
    if np.isscalar(axes):
        chosen = (operator.index(cast(int, axes)),)
    elif isinstance(axes, Iterable):
        chosen = tuple([operator.index(axis) for axis in axes])
        for axis in chosen:
            if not -rank <= axis < rank:
                raise ValueError(f"specified axis: {axis} is out of range")
        chosen = tuple([axis % rank for axis in chosen])
    else:
        raise ValueError("axes must be an integer, iterable of integers, or None")
    if len(set(chosen)) != len(chosen):
        raise ValueError("axes must be unique")
    return chosen


def normalized_axis(axis: Any, rank: int) -> int:
    """An axis as a non-negative number."""
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise np.exceptions.AxisError(number, rank)
    return number % rank


def extension_of(mode: str) -> str:
    """The extension that a mode of a filter means."""
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    return MODES[mode]


def places(positions: Array, n: int, extension: str) -> Array:
    """Which element lies at integer positions, outside of 0 … n - 1 by an extension other than "constant"."""
    if extension == "nearest":
        return fnp.clip(positions, 0, n - 1)
    if extension == "wrap":
        return positions % n
    period = max(2 * n if extension == "reflect" else 2 * n - 2, 1)
    inside = positions % period
    return fnp.where(inside < n, inside, period - inside - (1 if extension == "reflect" else 0))


def extended(x: Array, axis: int, before: int, after: int, extension: str, cval: Any) -> Array:
    """The array with so many elements more in front of and behind an axis."""
    n = x.shape[axis]
    if 0 in x.shape or (before == 0 and after == 0):
        return x
    parts = [x]
    for width, start in ((before, -before), (after, n)):
        if width <= 0:
            continue
        if extension == "constant":
            shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
            part = fnp.broadcast_to(fnp.astype(fnp.asarray(cval), x.dtype), shape)
        else:
            part = fnp.take(x, places(np.arange(start, start + width), n, extension), axis=axis)
        parts.insert(0 if start < 0 else len(parts), part)
    out = fnp.concatenate(parts, axis) if len(parts) > 1 else x
    if before < 0 or after < 0:
        index = [slice(None)] * x.ndim
        index[axis] = slice(max(-before, 0), out.shape[axis] - max(-after, 0))
        out = out[tuple(index)]
    return out


def extended_axes(x: Array, widths: Sequence[tuple[int, int]], modes: Sequence[str], cval: Any) -> Array:
    """The array extended along each axis, (before, after) its ends."""
    for axis, ((before, after), mode) in enumerate(zip(widths, modes, strict=True)):
        x = extended(x, axis, before, after, extension_of(mode), cval)
    return x
