"""Convolutions and correlations in the time domain, in one and more axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal as _scipy

from func import numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, operand
from func.interpreters.primitives.structural.filters import correlate_windows
from func.scipy import fft
from func.scipy.ndimage.borders import extended, normalized_axis, version_of
from func.scipy.signal.original_code import in_original, inexact_dtype

_BOUNDARIES = {
    "fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "reflect",
    "symmetric": "reflect",
}  # fmt: skip


def _check_mode(mode: str) -> None:
    if mode not in ("full", "same", "valid"):
        raise ValueError("Acceptable mode flags are 'valid', 'same', or 'full'.")


def _are_swapped(mode: str, n: Sequence[int], k: Sequence[int]) -> bool:
    """Whether the second operand is the longer one, where all windows have to fit into one of them."""
    if mode != "valid" or all([a >= b for a, b in zip(n, k, strict=True)]):
        return False
    if not all([b >= a for a, b in zip(n, k, strict=True)]):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    return True


def _direct(x: Array, h: Array, mode: str, extension: str = "constant", fill: Any = 0, skipped: Any = None) -> Array:
    """Σ_k x_(i-k) h_k over all axes; `skipped` of mode "same" is how many outputs of "full" lie before the first."""
    dtype = np.result_type(x.dtype, h.dtype)
    wide = fnp.astype(x, dtype, copy=False)
    for axis, k in enumerate(h.shape):
        before, after = (k - 1, k - 1) if mode == "full" else (0, 0)
        if mode == "same":
            start = (k - 1) // 2 if skipped is None else skipped(k)
            before, after = k - 1 - start, start
        wide = extended(wide, axis, before, after, extension, fill)
    flipped = fnp.flip(fnp.astype(h, dtype, copy=False))
    return correlate_windows(operand(wide), operand(flipped), axes=tuple(range(x.ndim)), stack=0)


def _operands(in1: Any, in2: Any, words: str) -> tuple[Array, Array]:
    x, h = fnp.asarray(in1), fnp.asarray(in2)
    if x.ndim != h.ndim:
        raise ValueError(f"{words} should have the same dimensionality")
    return x, h


@version_of(_scipy.convolve)
def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Array:
    """The convolution of two arrays, as scipy.signal.convolve.

    >>> import numpy as np, func
    >>> func.grad(lambda h: func.scipy.signal.convolve(np.array([1.0, 2.0, 4.0]), h, "same")[0])(np.ones(3))
    array([2., 1., 0.])
    """
    x, h = _operands(in1, in2, "volume and kernel")
    if x.ndim == 0:
        return x * h
    if _are_swapped(mode, x.shape, h.shape):
        x, h = h, x
    if method == "auto":
        _check_mode(mode)
        is_float = "f" in (kinds := {x.dtype.kind, h.dtype.kind}) or "c" in kinds
        like = [np.empty(v.shape, v.dtype) for v in (x, h)]
        method = scipy_hooks.original(_scipy.choose_conv_method)(*like, mode=mode) if is_float else "direct"
    if method == "fft":
        out = fftconvolve(x, h, mode)
        dtype = np.result_type(x.dtype, h.dtype)
        return fnp.astype(fnp.round(out) if dtype.kind in "iu" else out, dtype)
    if method != "direct":
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    _check_mode(mode)
    if 0 in (*x.shape, *h.shape):
        raise ValueError("convolution of arrays without elements")
    return _direct(x, h, mode)


def _fft_axes(x: Array, h: Array, axes: Any) -> list[int]:
    """The axes to convolve over; those of length one broadcast."""
    if axes is None:
        chosen = list(range(x.ndim))
    else:
        chosen = [normalized_axis(axis, x.ndim) for axis in np.atleast_1d(np.asarray(axes)).tolist()]
        if not chosen:
            raise ValueError("when provided, axes cannot be empty")
        if len(set(chosen)) != len(chosen):
            raise ValueError("all axes must be unique")
    chosen = [axis for axis in chosen if x.shape[axis] != 1 and h.shape[axis] != 1]
    for axis, (n, k) in enumerate(zip(x.shape, h.shape, strict=True)):
        if axis not in chosen and n != k and n != 1 and k != 1:
            raise ValueError(f"incompatible shapes for in1 and in2: {x.shape} and {h.shape}")
    return chosen


@version_of(_scipy.fftconvolve)
def fftconvolve(in1: Array, in2: Array, mode: str = "full", axes: Any = None) -> Array:
    """The convolution of two arrays as a product of Fourier transforms, as scipy.signal.fftconvolve."""
    x, h = _operands(in1, in2, "in1 and in2")
    if x.ndim == 0:
        return x * h
    if 0 in (*x.shape, *h.shape):
        return np.asarray([])
    chosen = _fft_axes(x, h, axes)
    if mode == "valid" and _are_swapped(mode, [x.shape[a] for a in chosen], [h.shape[a] for a in chosen]):
        x, h = h, x
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    lengths = {axis: x.shape[axis] + h.shape[axis] - 1 for axis in chosen}
    if not chosen:
        out = x * h
    else:
        is_complex = "c" in (x.dtype.kind, h.dtype.kind)
        sizes = [scipy.fft.next_fast_len(lengths[axis], not is_complex) for axis in chosen]
        forward, backward = (fft.fftn, fft.ifftn) if is_complex else (fft.rfftn, fft.irfftn)
        x, h = [fnp.astype(v, inexact_dtype(v), copy=False) for v in (x, h)]
        out = backward(forward(x, sizes, axes=chosen) * forward(h, sizes, axes=chosen), sizes, axes=chosen)
    whole = [lengths.get(axis, n) for axis, n in enumerate(out.shape)]
    kept = list(whole)
    if mode == "same":
        kept = list(x.shape)
    elif mode == "valid":
        kept = [x.shape[a] - h.shape[a] + 1 if a in chosen else n for a, n in enumerate(whole)]
    starts = [(n - m) // 2 for n, m in zip(whole, kept, strict=True)]
    return out[tuple([slice(start, start + m) for start, m in zip(starts, kept, strict=True)])]


@version_of(_scipy.oaconvolve)
def oaconvolve(in1: Array, in2: Array, mode: str = "full", axes: Any = None) -> Array:
    """The convolution of two arrays, as scipy.signal.oaconvolve; computed by transforms of the whole arrays."""
    return fftconvolve(in1, in2, mode, axes)


def _reversed(x: Array) -> Array:
    return fnp.conj(fnp.flip(x)) if x.dtype.kind == "c" else fnp.flip(x)


@version_of(_scipy.correlate)
def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Array:
    """The correlation of two arrays, the second conjugated, as scipy.signal.correlate."""
    x, y = _operands(in1, in2, "in1 and in2")
    if x.ndim == 0:
        return x * fnp.conj(y)
    _check_mode(mode)
    if method not in ("auto", "fft", "direct"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    return convolve(x, _reversed(y), mode, method)


def _planes(in1: Any, in2: Any, name: str, boundary: str) -> tuple[Array, Array, str]:
    x, h = fnp.asarray(in1), fnp.asarray(in2)
    if not x.ndim == h.ndim == 2:
        raise ValueError(f"{name} inputs must both be 2-D arrays")
    if boundary not in _BOUNDARIES:
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    return x, h, _BOUNDARIES[boundary]


@version_of(_scipy.convolve2d)
def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Array:
    """The convolution of two matrices with a choice of borders, as scipy.signal.convolve2d."""
    x, h, extension = _planes(in1, in2, "convolve2d", boundary)
    _check_mode(mode)
    if _are_swapped(mode, x.shape, h.shape):
        x, h = h, x
    return _direct(x, h, mode, extension, fillvalue)


@version_of(_scipy.correlate2d)
def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Array:
    """The correlation of two matrices with a choice of borders, as scipy.signal.correlate2d."""
    x, h, extension = _planes(in1, in2, "correlate2d", boundary)
    _check_mode(mode)
    is_swapped = _are_swapped(mode, x.shape, h.shape)
    if is_swapped:
        x, h = h, x
    out = _direct(x, _reversed(h), mode, extension, fillvalue, skipped=lambda k: k // 2)
    return fnp.flip(out) if is_swapped else out


@version_of(_scipy.sepfir2d)
def sepfir2d(input: Array, hrow: Array, hcol: Array) -> Array:
    """Correlation with a filter for the rows and one for the columns, as scipy.signal.sepfir2d."""
    x, row, column = fnp.asarray(input), fnp.asarray(hrow), fnp.asarray(hcol)
    if x.ndim != 2 or row.ndim != 1 or column.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if row.shape[0] % 2 == 0 or column.shape[0] % 2 == 0:
        raise ValueError("hrow and hcol must be odd length")
    dtype = inexact_dtype(x, row, column)
    out = fnp.astype(x, dtype, copy=False)
    for axis, h in ((1, row), (0, column)):
        half = h.shape[0] // 2
        wide = extended(out, axis, half, half, "reflect", 0.0)
        taps = fnp.flip(fnp.astype(h, dtype, copy=False))
        out = correlate_windows(operand(wide), operand(taps), axes=(axis,), stack=0)
    return out


@version_of(_scipy.medfilt2d)
def medfilt2d(input: Array, kernel_size: Any = 3) -> Array:
    """The median of neighbours in two axes, as scipy.signal.medfilt2d."""
    x = fnp.asarray(input)
    if x.ndim != 2:
        raise ValueError("object too deep for desired array")
    if x.dtype.char not in "Bfd":
        return in_original(_scipy.medfilt, x, kernel_size)
    sizes = np.broadcast_to(np.asarray(3 if kernel_size is None else kernel_size), 2)
    if any([size % 2 != 1 for size in sizes.tolist()]):
        raise ValueError("Each element of kernel_size should be odd.")
    from func.scipy.ndimage import median_filter

    return median_filter(x, tuple(sizes.tolist()), mode="constant")
