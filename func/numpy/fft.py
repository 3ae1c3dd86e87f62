"""numpy.fft for traced arrays, with all of its names. Transforms are linear: their derivatives are transforms too."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, is_inexact, operand, shape_of
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary
from func.interpreters.primitives.elementwise.table import positive
from func.interpreters.primitives.structural import fft as ops
from func.interpreters.primitives.structural import slicing
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.argument_checks import as_shape, normalize_axis, rank_of
from func.numpy.inplace import with_out
from func.numpy.memory import in_order_of
from func.numpy.protocol import F, implements, member
from func.numpy.shaping import roll
from func.numpy.ufuncs import conjugated

# fmt: off
__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]
# fmt: on

fftfreq = np.fft.fftfreq
rfftfreq = np.fft.rfftfreq


def _norm(norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in ops.SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return norm


def _length(n: Any, default: int) -> int:
    length = default if n is None else operator.index(n)
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    return length


def _delivered(result: Array, out: Any, axes: Sequence[int]) -> Array:
    """A transform written to `out`, which must have as many axes, and the length of the transformed ones."""
    if out is not None and hasattr(out, "shape"):
        shape, own = shape_of(out), shape_of(result)
        if len(shape) != len(own) or any([shape[axis] != own[axis] for axis in axes]):
            raise ValueError("output array has wrong shape.")
    return with_out(result, out)


def resized(x: Array, axis: int, length: int) -> Array:
    """x with an axis truncated or padded with zeros to a length."""
    shape = shape_of(x)
    if shape[axis] == length:
        return x
    shorter = min(shape[axis], length)
    index = tuple([(0, shorter if i == axis else n, 1) for i, n in enumerate(shape)])
    if length < shape[axis]:
        return slicing.getitem(x, index=index)
    longer = slicing.embed(x, index=index, shape=tuple([length if i == axis else n for i, n in enumerate(shape)]))
    return in_order_of(longer, x)


def _array(a: Any) -> Array:
    """An argument as an array of floating-point numbers."""
    a = operand(a)
    dtype = dtype_of(a)
    return a if dtype.kind in "fc" else convert(a, dtype=np.dtype(np.float32 if is_inexact(dtype) else np.float64))


def _transform(original: F, inverse: bool, doc: str) -> F:
    @member(original, doc)
    def transform(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
        a = _array(a)
        place = normalize_axis(axis, rank_of(a))
        length = _length(n, shape_of(a)[place])
        result = ops.fft(resized(a, place, length), axis=place, norm=_norm(norm), inverse=inverse)
        return _delivered(in_order_of(result, a), out, (axis,))

    return transform


fft = _transform(
    np.fft.fft,
    False,
    "The discrete Fourier transform of an axis, truncated or padded with zeros to length n, as numpy.fft.fft.",
)
ifft = _transform(np.fft.ifft, True, "The inverse discrete Fourier transform of an axis, as numpy.fft.ifft.")


@implements(np.fft.rfft)
def rfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The discrete Fourier transform of a real axis, as numpy.fft.rfft: its non-negative frequencies."""
    a = _array(a)
    if dtype_of(a).kind == "c":
        raise TypeError("rfft takes real arrays; use np.fft.fft for complex ones")
    place = normalize_axis(axis, rank_of(a))
    length = _length(n, shape_of(a)[place])
    result = ops.rfft(resized(a, place, length), axis=place, norm=_norm(norm))
    return _delivered(in_order_of(result, a), out, (place,))


@implements(np.fft.irfft)
def irfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of rfft, as numpy.fft.irfft: a real axis of length n (2 (m - 1) for m frequencies by default)."""
    a = _array(a)
    place = normalize_axis(axis, rank_of(a))
    length = _length(n, 2 * (shape_of(a)[place] - 1))
    halved = resized(a, place, length // 2 + 1)
    result = ops.irfft(halved, axis=place, length=length, norm=_norm(norm))
    return _delivered(in_order_of(result, a), out, (place,))


def _conjugate(a: Any) -> Array:
    """The conjugate as a new array, even of real numbers: its layout determines that of the transform."""
    a = _array(a)
    return conjugated(a) if dtype_of(a).kind == "c" else positive(a)


@implements(np.fft.hfft)
def hfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The real spectrum of a signal with Hermitian symmetry, as numpy.fft.hfft."""
    return irfft(_conjugate(a), n, axis, ops.SWAPPED[_norm(norm)], out)


@implements(np.fft.ihfft)
def ihfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of hfft, as numpy.fft.ihfft."""
    return _delivered(conjugated(rfft(a, n, axis, ops.SWAPPED[_norm(norm)])), out, (axis,))


def _lengths_and_axes(
    a: Array, s: Sequence[int] | None, axes: Sequence[int] | None, half: bool = False
) -> tuple[list[int | None], list[int]]:
    """Lengths (None: the default of the transform of one axis) and axes, paired by NumPy's rules."""
    shape = shape_of(a)
    if axes is None:
        entries = list(range(-len(shape if s is None else s), 0))
    else:
        entries = [operator.index(axis) for axis in axes]
    places = [normalize_axis(axis, len(shape)) for axis in entries]
    if s is None:
        lengths: list[int | None] = [shape[place] for place in places]
        if half and lengths:
            lengths[-1] = None
        return lengths, places
    sizes = list(s)
    if len(sizes) != len(places):
        raise ValueError("Shape and axes have different lengths.")
    return [shape[place] if n == -1 else n for n, place in zip(sizes, places, strict=True)], places


def _over_axes(original: F, transform: Callable[..., Array], doc: str) -> F:
    """The transform of one axis after the other; as in NumPy, each writes to `out`."""

    @member(original, doc)
    def over_axes(a: Array, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Array:
        a = operand(a)
        lengths, places = _lengths_and_axes(a, s, axes)
        for length, place in zip(reversed(lengths), reversed(places), strict=True):
            a = transform(a, length, place, norm, out)
        return a

    return over_axes


fftn = _over_axes(
    np.fft.fftn, fft, "The discrete Fourier transform of several axes (all by default), as numpy.fft.fftn."
)
ifftn = _over_axes(
    np.fft.ifftn, ifft, "The inverse discrete Fourier transform of several axes (all by default), as numpy.fft.ifftn."
)


@implements(np.fft.rfftn)
def rfftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Array:
    """rfft of the last of several axes, fft of the others, as numpy.fft.rfftn."""
    a = _array(a)
    lengths, places = _lengths_and_axes(a, s, axes)
    a = rfft(a, lengths[-1], places[-1], norm, out)
    for length, place in zip(reversed(lengths[:-1]), reversed(places[:-1]), strict=True):
        a = fft(a, length, place, norm, out)
    return a


@implements(np.fft.irfftn)
def irfftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Array:
    """The inverse of rfftn, as numpy.fft.irfftn."""
    a = _array(a)
    lengths, places = _lengths_and_axes(a, s, axes, half=True)
    for length, place in zip(lengths[:-1], places[:-1], strict=True):
        a = ifft(a, length, place, norm)
    return irfft(a, lengths[-1], places[-1], norm, out)


def _of_two_axes(original: F, transform: Callable[..., Array], doc: str) -> F:
    @member(original, doc)
    def of_two_axes(a: Array, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Array:
        return transform(a, s, axes, norm, out)

    return of_two_axes


fft2 = _of_two_axes(np.fft.fft2, fftn, "The discrete Fourier transform of two axes, as numpy.fft.fft2.")
ifft2 = _of_two_axes(np.fft.ifft2, ifftn, "The inverse discrete Fourier transform of two axes, as numpy.fft.ifft2.")
rfft2 = _of_two_axes(
    np.fft.rfft2, rfftn, "The discrete Fourier transform of two axes of a real array, as numpy.fft.rfft2."
)
irfft2 = _of_two_axes(np.fft.irfft2, irfftn, "The inverse of rfft2, as numpy.fft.irfft2.")


def _shifted(x: Any, axes: Any, sign: int) -> Array:
    """x rolled along axes by half of their lengths, rounded down, times the sign."""
    x = operand(x)
    places = tuple(range(rank_of(x))) if axes is None else as_shape(axes)
    return roll(x, tuple([sign * (shape_of(x)[axis] // 2) for axis in places]), places)


@implements(np.fft.fftshift)
def fftshift(x: Array, axes: Any = None) -> Array:
    """x with frequency zero moved to the middle of axes (all by default), as numpy.fft.fftshift."""
    return _shifted(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Array, axes: Any = None) -> Array:
    """The inverse of fftshift, as numpy.fft.ifftshift."""
    return _shifted(x, axes, -1)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals())
