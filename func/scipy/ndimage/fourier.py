"""Filters of Fourier transforms: products with the transform of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func import special
from func.interpreters.core import Array
from func.scipy.ndimage.borders import array_of, in_double, normalized_axis, sequence_of, version_of


def _filtered(x: Array, response: Any, output: Any, kinds: str) -> Array:
    """The product, in the dtype of the input or of the output."""
    if output is None:
        keeps = x.dtype.char in ("F", "D", *(("f",) if "f" in kinds else ()))
        dtype = x.dtype if keeps else np.dtype(np.float64 if "f" in kinds else np.complex128)
    elif isinstance(output, type):
        if np.dtype(output).char not in ("fdFD" if "f" in kinds else "FD"):
            raise RuntimeError("output type not supported")
        dtype = np.dtype(output)
    else:
        if np.shape(output) != x.shape:
            raise RuntimeError("output shape not correct")
        dtype = np.dtype(fnp.asarray(output).dtype)
    result = fnp.astype(in_double(x) * response, dtype, copy=False)
    if output is None or isinstance(output, type):
        return result
    output[...] = result
    return output


def _frequencies(x: Array, n: int, axis: int) -> list[tuple[Any, int]]:
    """For each axis the integer frequencies, in a shape that broadcasts, and the length of the signal."""
    out = []
    axis = normalized_axis(axis, x.ndim)
    for k, length in enumerate(x.shape):
        if k == axis and n >= 0:
            frequencies, signal = np.arange(length), n
        else:
            frequencies, signal = np.arange(length) - length * (np.arange(length) >= (length + 1) // 2), length
        out.append((frequencies.reshape((length,) + (1,) * (x.ndim - 1 - k)).astype(float), signal))
    return out


@version_of(_scipy.fourier_gaussian)
def fourier_gaussian(input: Array, sigma: Any, n: int = -1, axis: int = -1, output: Any = None) -> Array:
    """A Gaussian filter of a Fourier transform, as scipy.ndimage.fourier_gaussian."""
    x = array_of(input)
    response: Any = 1.0
    for (k, length), width in zip(_frequencies(x, n, axis), sequence_of(sigma, x.ndim), strict=True):
        if k.size > 1:
            exponent = -2.0 * (width * np.pi / length) ** 2 * k**2
            small = fnp.abs(exponent) > 50.0
            response = response * fnp.where(small, 0.0, fnp.exp(fnp.where(small, 0.0, exponent)))
    return _filtered(x, response, output, "f")


@version_of(_scipy.fourier_uniform)
def fourier_uniform(input: Array, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Array:
    """A box filter of a Fourier transform, as scipy.ndimage.fourier_uniform."""
    x = array_of(input)
    response: Any = 1.0
    for (k, length), width in zip(_frequencies(x, n, axis), sequence_of(size, x.ndim), strict=True):
        if k.size > 1:
            ratio = fnp.where(fnp.asarray(width) > 0, fnp.sinc(k * (width / length)), 0.0)
            response = response * fnp.where(k == 0, 1.0, ratio)
    return _filtered(x, response, output, "f")


def _ellipsoid_of_square(square: Array, rank: int) -> Array:
    """The transform of a unit disc or ball, of the squared frequency."""
    is_zero = square == 0
    r = fnp.sqrt(fnp.where(is_zero, 1.0, square))
    value = 2.0 * special.j1(r) / r if rank == 2 else 3.0 * (fnp.sin(r) - r * fnp.cos(r)) / (r * r * r)
    curvature = 0.125 if rank == 2 else 0.1
    return fnp.where(is_zero, 1.0 - curvature * square, value)


@version_of(_scipy.fourier_ellipsoid)
def fourier_ellipsoid(input: Array, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Array:
    """An ellipsoid filter of a Fourier transform, as scipy.ndimage.fourier_ellipsoid."""
    x = array_of(input)
    if x.ndim > 3:
        raise NotImplementedError("Only 1d, 2d and 3d inputs are supported")
    if x.size == 0:
        return _filtered(x, 1.0, output, "f")
    entries = list(zip(_frequencies(x, n, axis), sequence_of(size, x.ndim), strict=True))
    arguments = [k * (np.pi * width / length) for (k, length), width in entries]
    if x.ndim == 1:
        response = fnp.sinc(arguments[0] / np.pi)
    else:
        response = _ellipsoid_of_square(sum([a * a for a in arguments[1:]], arguments[0] * arguments[0]), x.ndim)
    return _filtered(x, response, output, "f")


@version_of(_scipy.fourier_shift)
def fourier_shift(input: Array, shift: Any, n: int = -1, axis: int = -1, output: Any = None) -> Array:
    """A shift of a Fourier transform, as scipy.ndimage.fourier_shift."""
    x = array_of(input)
    phase: Any = 0.0
    for (k, length), by in zip(_frequencies(x, n, axis), sequence_of(shift, x.ndim), strict=True):
        if k.size > 1:
            phase = phase + (-2.0 * np.pi * by / length) * k
    return _filtered(x, fnp.exp(1j * fnp.asarray(phase)), output, "c")
