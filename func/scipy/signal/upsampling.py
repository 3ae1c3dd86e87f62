"""Upsample, filter, downsample: the polyphase form, which computes only the outputs that remain."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as _scipy
from numpy.lib.array_utils import normalize_axis_index

from func import numpy as fnp
from func.interpreters.core import Array
from func.scipy.kinds.versions import version_of
from func.scipy.ndimage.borders import places

_GATHERED = {"symmetric": "reflect", "edge": "nearest", "reflect": "mirror", "wrap": "wrap"}
_MODES = (*_GATHERED, "constant", "smooth", "antisymmetric", "antireflect", "line")


def _extended(x: Array, positions: Any, mode: str, cval: Any) -> Array:
    """The signal over the last axis at integer positions, also outside of it."""
    n = x.shape[-1]
    below, above = positions < 0, positions >= n
    if mode in _GATHERED:
        return fnp.take(x, places(positions, n, _GATHERED[mode]), axis=-1)
    inside = fnp.take(x, np.clip(positions, 0, n - 1), axis=-1)
    if mode == "constant":
        return fnp.where(below | above, fnp.astype(fnp.asarray(cval), x.dtype), inside)
    first, last = x[..., :1], x[..., -1:]
    if mode == "antisymmetric":
        sign = np.where((positions // n) % 2 == 0, 1.0, -1.0).astype(x.dtype)
        return fnp.take(x, places(positions, n, "reflect"), axis=-1) * sign
    if mode == "antireflect":
        turns, rest = np.divmod(positions, n - 1)
        is_odd = turns % 2 == 1
        gathered = fnp.take(x, np.where(is_odd, n - 1 - rest, rest), axis=-1)
        whole = (turns - is_odd).astype(x.real.dtype) * (last - first)
        return fnp.where(is_odd, 2 * last - gathered, gathered) + whole
    slope = (last - first) / max(n - 1, 1)
    slopes = (slope, slope) if mode == "line" else (x[..., 1:2] - first, last - x[..., -2:-1])
    real = x.real.dtype
    left = first + positions.astype(real) * slopes[0]
    right = last + (positions - (n - 1)).astype(real) * slopes[1]
    return fnp.where(below, left, fnp.where(above, right, inside))


@version_of(_scipy.upfirdn)
def upfirdn(
    h: Array, x: Array, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0
) -> Array:
    """Upsample, filter, downsample along an axis, as scipy.signal.upfirdn."""
    h, x = fnp.asarray(h), fnp.asarray(x)
    if h.ndim != 1 or h.shape[0] == 0:
        raise ValueError("h must be 1-D with non-zero length")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    if mode.lower() not in _MODES:
        raise ValueError(f"Unknown mode: {mode}. Must be one of {_MODES}.")
    axis = normalize_axis_index(axis, x.ndim)
    dtype = np.result_type(h.dtype, x.dtype, np.float32)
    h, x = [fnp.astype(v, dtype, copy=False) for v in (h, fnp.moveaxis(x, axis, -1))]
    n, size = x.shape[-1], h.shape[0]
    count = ((n - 1) * up + size - 1) // down + 1
    places_of_outputs = np.arange(count) * down
    taps = -(-size // up)
    element = places_of_outputs[:, None] // up - np.arange(taps)
    tap = places_of_outputs[:, None] % up + np.arange(taps) * up
    weights = fnp.where(tap < size, fnp.take(h, np.minimum(tap, size - 1)), fnp.zeros((), dtype))
    low, high = int(element.min()), int(element.max())
    wide = _extended(x, np.arange(low, high + 1), mode.lower(), cval)
    out = fnp.sum(fnp.take(wide, element - low, axis=-1) * weights, axis=-1)
    return fnp.moveaxis(out, -1, axis)
