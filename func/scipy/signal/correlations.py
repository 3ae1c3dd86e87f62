"""Convolutions and correlations in the time domain, in one and more axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal as _scipy

from func import numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, operand
from func.interpreters.primitives.structural.filters import correlate_windows
from func.scipy.kinds.traces import in_original
from func.scipy.kinds.versions import version_of
from func.scipy.ndimage.borders import extended


def inexact_dtype(*arrays: Array) -> Any:
    """The common dtype of arrays, at least single precision."""
    dtype = np.result_type(*[x.dtype for x in arrays])
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _direct(x: Array, h: Array, mode: str, extension: str = "constant", fill: Any = 0, skipped: Any = None) -> Array:
    """Σ_k x_(i-k) h_k over all axes; for mode "same", `skipped` is the number of outputs of "full" before the first."""
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


def _reversed(x: Array) -> Array:
    return fnp.conj(fnp.flip(x)) if x.dtype.kind == "c" else fnp.flip(x)


@version_of(_scipy.choose_conv_method)
def choose_conv_method(in1: Array, in2: Array, mode: str = "full", measure: bool = False) -> Any:
    """The faster method for arrays of these shapes; integers, whose sums are exact, take no transforms."""
    like = [np.empty(v.shape, v.dtype) for v in (fnp.asarray(in1), fnp.asarray(in2))]
    is_float = any([v.dtype.kind in "fc" for v in like])
    return scipy_hooks.original(_scipy.choose_conv_method)(*like, mode, measure) if is_float else "direct"


@version_of(_scipy.correlate)
def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Array:
    """The correlation of two arrays, the second conjugated: by SciPy, except for sums of products."""
    x, h = fnp.asarray(in1), _reversed(fnp.asarray(in2))
    pairs = list(zip(x.shape, h.shape, strict=False))
    swaps = mode == "valid" and any([n < k for n, k in pairs])
    is_refused = mode not in ("full", "same", "valid") or (swaps and any([n > k for n, k in pairs]))
    if method != "direct" or is_refused or x.ndim != h.ndim or x.ndim == 0 or 0 in (*x.shape, *h.shape):
        return in_original(_scipy.correlate, in1, in2, mode, method)
    return _direct(h, x, mode) if swaps else _direct(x, h, mode)


def _sigtools__convolve2d(x: Any, h: Any, flips: int, mode: int, boundary: int, fill: Any) -> Array:
    """The compiled function behind convolve2d and, where it does not flip, correlate2d."""
    x, h, extension = fnp.asarray(x), fnp.asarray(h), ("constant", "reflect", "wrap")[boundary >> 2]
    skipped = None if flips else lambda k: k // 2
    return _direct(x, h if flips else fnp.flip(h), ("valid", "same", "full")[mode], extension, fill, skipped)


def _sigtools__medfilt2d(x: Any, sizes: Any) -> Array:
    """The compiled function behind medfilt2d."""
    out: Array = scipy.ndimage.median_filter(x, tuple(np.asarray(sizes).tolist()), mode="constant")
    return out


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
