"""Common parts of func.scipy.ndimage: arguments, outputs, and the extension of arrays at their borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func import numpy as fnp
from func.host.intercepted_arrays import resolved
from func.host.private_names import private_module
from func.interpreters.core import Array

ni_support = private_module("scipy.ndimage._ni_support")
DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def plain_of(x: Any) -> Array:
    """An argument of a compiled function as an array, with the traced values in it."""
    return fnp.asarray(resolved(x))


def array_of(input: Any) -> Array:
    """The input as an array of a dtype that SciPy's kernels take."""
    x = plain_of(input)
    if x.dtype.kind not in "biufc" or x.dtype.char in "egG":
        raise RuntimeError("data type not supported")
    return x


def in_double(x: Array) -> Array:
    """In double precision, in which the kernels compute."""
    return fnp.astype(x, COMPLEX if x.dtype.kind == "c" else DOUBLE, copy=False)


def output_dtype(output: Any, x: Array, is_complex: bool = False) -> Any:
    """The dtype of the result for the argument `output`."""
    if output is not None and not isinstance(output, (type, np.dtype, str)):
        output = np.empty(0, fnp.asarray(output).dtype)
    return ni_support._get_output(output, np.empty(0, x.dtype), complex_output=is_complex).dtype


def converted(result: Array, dtype: Any, rounds: bool = False) -> Array:
    """The result in another dtype: integers are truncated as in C, or rounded and clipped as in some kernels."""
    if rounds and dtype.kind in "iu" and result.dtype.kind == "f":
        bounds = np.iinfo(dtype)
        rounded = fnp.trunc(fnp.where(result > 0, result + 0.5, result - 0.5 if dtype.kind == "i" else 0.0))
        result = fnp.clip(rounded, float(bounds.min), float(bounds.max))
    if dtype.kind == "b" and result.dtype.kind == "f":
        result = fnp.trunc(result)
    return fnp.astype(result, dtype, copy=False)


def write(output: Any, result: Array, rounds: bool = False) -> None:
    """Write the result into an array in its dtype."""
    output[...] = converted(result, output.dtype, rounds)


def delivered(result: Array, output: Any, x: Array, is_complex: bool = False, rounds: bool = False) -> Array:
    """The result in the output's dtype; written to `output` if that is an array."""
    result = converted(result, output_dtype(output, x, is_complex), rounds)
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


def places(positions: Array, n: int, extension: str) -> Array:
    """The places of the elements at integer positions, extended outside of 0 … n - 1 unless the mode is "constant"."""
    if extension == "nearest":
        return fnp.clip(positions, 0, n - 1)
    if extension == "wrap":
        return positions % n
    period = max(2 * n if extension == "reflect" else 2 * n - 2, 1)
    inside = positions % period
    return fnp.where(inside < n, inside, period - inside - (1 if extension == "reflect" else 0))


def extended(x: Array, axis: int, before: int, after: int, extension: str, cval: Any) -> Array:
    """The array with these numbers of further elements before and after an axis."""
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


def extended_axes(x: Array, widths: Sequence[tuple[int, int]], extension: str, cval: Any) -> Array:
    """The array extended along each axis, (before, after) its ends."""
    for axis, (before, after) in enumerate(widths):
        x = extended(x, axis, before, after, extension, cval)
    return x
