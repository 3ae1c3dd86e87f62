"""Discrete cosine and sine transforms of types 1 to 4, by complex or real Fourier transforms of twice the length.

All are linear with real matrices. So derivatives are the transforms of tangents, and complex numbers are transformed by
their real and imaginary parts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft as _scipy

from func import numpy as fnp
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

helper = private_module("scipy.fft._pocketfft.helper")
NORMS = {"backward": 0, "ortho": 1, "forward": 2}
"""The scaled part for each norm: the inverse, both by the root, the forward transform."""


def array_of(x: Any) -> Array:
    """The argument as an array of floating-point numbers; half precision becomes single."""
    x = fnp.asarray(x)
    if x.dtype.kind in "fc" and x.dtype.char != "e":
        return x
    return fnp.astype(x, np.dtype(np.float32 if x.dtype.char == "e" else np.float64))


def resized(x: Array, n: int, axis: int) -> Array:
    """x with the axis cut off or padded with zeros to length n."""
    if n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    length = x.shape[axis]
    if n <= length:
        return x[(slice(None),) * (axis % x.ndim) + (slice(n),)] if n < length else x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, n - length)
    return fnp.pad(x, widths)


def _alternating(n: int) -> Any:
    """1, -1, 1, … of length n."""
    signs = np.ones(n)
    signs[1::2] = -1
    return signs


def _turns(numerators: Any, denominator: int) -> Any:
    """e^(-π i numerator / denominator)."""
    return np.exp(-1j * np.pi * (np.asarray(numerators, np.float64) / denominator))


def _first_cosine(x: Array) -> Array:
    """x_0 + (-1)^k x_(N-1) + 2 Σ x_n cos(π k n / (N - 1))."""
    if x.shape[-1] < 2:
        raise RuntimeError("zero-length FFT requested: the transform of type 1 takes two elements or more")
    return fnp.real(fnp.fft.rfft(fnp.concatenate([x, x[..., -2:0:-1]], -1)))


def _second_cosine(x: Array) -> Array:
    """2 Σ x_n cos(π k (2n + 1) / (2N))."""
    n = x.shape[-1]
    spectrum = fnp.fft.rfft(fnp.concatenate([x, x[..., ::-1]], -1))[..., :n]
    return fnp.real(spectrum * _turns(np.arange(n), 2 * n))


def _third_cosine(x: Array) -> Array:
    """x_0 + 2 Σ_(n > 0) x_n cos(π n (2k + 1) / (2N))."""
    n = x.shape[-1]
    weights = np.where(np.arange(n) == 0, 1, 2) * _turns(np.arange(n), 2 * n)
    return fnp.real(fnp.fft.fft(x * weights, 2 * n)[..., :n])


def _fourth_cosine(x: Array) -> Array:
    """2 Σ x_n cos(π (2k + 1) (2n + 1) / (4N))."""
    n = x.shape[-1]
    spectrum = fnp.fft.fft(x * _turns(np.arange(n), 2 * n), 2 * n)[..., :n]
    return fnp.real(spectrum * (2 * _turns(2 * np.arange(n) + 1, 4 * n)))


def _first_sine(x: Array) -> Array:
    """2 Σ x_n sin(π (k + 1) (n + 1) / (N + 1))."""
    nothing = fnp.zeros_like(x[..., :1])
    odd = fnp.concatenate([nothing, x, nothing, -x[..., ::-1]], -1)
    return -fnp.imag(fnp.fft.rfft(odd))[..., 1 : x.shape[-1] + 1]


def _second_sine(x: Array) -> Array:
    """2 Σ x_n sin(π (k + 1) (2n + 1) / (2N)), as the cosine transform of alternating signs, reversed."""
    return _second_cosine(x * _alternating(x.shape[-1]))[..., ::-1]


def _third_sine(x: Array) -> Array:
    """(-1)^k x_(N-1) + 2 Σ_(n < N - 1) x_n sin(π (2k + 1) (n + 1) / (2N)), as the cosine transform of the reversed."""
    return _third_cosine(x[..., ::-1]) * _alternating(x.shape[-1])


def _fourth_sine(x: Array) -> Array:
    """2 Σ x_n sin(π (2k + 1) (2n + 1) / (4N)), as the cosine transform of the reversed."""
    return _fourth_cosine(x[..., ::-1]) * _alternating(x.shape[-1])


_COSINES = {1: _first_cosine, 2: _second_cosine, 3: _third_cosine, 4: _fourth_cosine}
_SINES = {1: _first_sine, 2: _second_sine, 3: _third_sine, 4: _fourth_sine}
_ENDS = {
    ("dct", 1): ((0, -1), math.sqrt(2)), ("dct", 2): ((0,), 1.0), ("dct", 3): ((0,), math.sqrt(2)),
    ("dst", 2): ((-1,), 1.0), ("dst", 3): ((-1,), math.sqrt(2)),
}  # fmt: skip
"""The input elements that orthogonal transforms scale, with the factors; for type 2, the output elements."""


def _ends(n: int, places: tuple[int, ...], factor: float) -> Any:
    weights = np.ones(n)
    weights[list(places)] *= factor
    return weights


def _one_axis(x: Array, kind: str, type: int, norm: int, orthogonal: bool) -> Array:
    """The transform of the last axis of a real array, in its dtype; `norm` selects the scaling, as in `NORMS`."""
    dtype = x.dtype
    n = x.shape[-1]
    places, factor = _ENDS.get((kind, type), ((), 1.0)) if orthogonal else ((), 1.0)
    if places and type != 2:
        x = x * _ends(n, places, factor)
    y = (_COSINES if kind == "dct" else _SINES)[type](x)
    if places and type == 1:
        y = y * _ends(n, places, 1 / factor)
    if places and type == 2:
        y = y * _ends(n, places, math.sqrt(0.5))
    if norm:
        length = 2 * (n - 1) if (kind, type) == ("dct", 1) else 2 * (n + 1) if type == 1 else 2 * n
        y = y * (1 / length if norm == 2 else 1 / math.sqrt(length))
    return fnp.astype(y, dtype, copy=False)


def _transformed(x: Any, axes: list[int], name: str, type: int, norm: str | None, orthogonalize: bool | None) -> Array:
    """The transform of a kind over axes."""
    kind, forward = name.removeprefix("i"), not name.startswith("i")
    if type not in (1, 2, 3, 4):
        raise ValueError("invalid type specified")
    if norm is not None and norm not in NORMS:
        raise ValueError(f"Invalid norm value {norm!r}, should be 'backward', 'ortho' or 'forward'")
    scaling = NORMS[norm or "backward"]
    if not forward:
        type, scaling = {2: 3, 3: 2}.get(type, type), 2 - scaling
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)

    def run(x: Array, orthogonal: bool) -> Array:
        for axis in axes:
            last = fnp.moveaxis(x, axis, -1)
            x = fnp.moveaxis(_one_axis(last, kind, type, scaling, orthogonal), -1, axis)
        return x

    if x.dtype.kind == "c":
        return run(fnp.real(x), norm == "ortho") + 1j * run(fnp.imag(x), norm == "ortho")
    return run(x, orthogonal)


def _of_one_axis(name: str) -> Callable[..., Any]:
    original = getattr(_scipy, name)

    def transform(
        x: Array,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Array:
        if not holds_traced(x):
            return original(x, type, n, axis, norm, overwrite_x, workers, orthogonalize=orthogonalize)
        x = array_of(x)
        place = operator.index(axis)
        if not -x.ndim <= place < x.ndim:
            raise np.exceptions.AxisError(place, x.ndim)
        x = resized(x, x.shape[place] if n is None else operator.index(n), place)
        return _transformed(x, [place], name, type, norm, orthogonalize)

    return _named(transform, name)


def _of_axes(name: str) -> Callable[..., Any]:
    original = getattr(_scipy, name)

    def transform(
        x: Array,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Array:
        if not holds_traced(x):
            return original(x, type, s, axes, norm, overwrite_x, workers, orthogonalize=orthogonalize)
        x = array_of(x)
        lengths, places = helper._init_nd_shape_and_axes(x, s, axes)
        for length, place in zip(lengths, places, strict=True):
            x = resized(x, length, place)
        return _transformed(x, places, name.removesuffix("n"), type, norm, orthogonalize)

    return _named(transform, name)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.fft.{name} on traced and plain arrays, in its arguments and conventions."
    return function


dct, idct, dst, idst = [_of_one_axis(name) for name in ("dct", "idct", "dst", "idst")]
dctn, idctn, dstn, idstn = [_of_axes(name) for name in ("dctn", "idctn", "dstn", "idstn")]
