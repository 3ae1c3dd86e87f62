"""Least squares with a fixed matrix: trends, and the polynomials at the ends of smoothed signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as _scipy

from func import linalg
from func import numpy as fnp
from func.host.interception import resolved
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array
from func.scipy.ndimage.borders import normalized_axis, version_of


def least_squares(a: Any, b: Any, xp: Any = None, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """The solution of a least-squares problem; for a plain matrix a product with its pseudoinverse."""
    a = resolved(a)
    if holds_traced(a):
        return linalg.lstsq(a, b)
    matrix = np.asarray(a)
    return fnp.matmul(np.linalg.pinv(matrix), b), None, np.linalg.matrix_rank(matrix), None


@version_of(_scipy.detrend)
def detrend(data: Array, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Array:
    """The data without their linear or constant trend, as scipy.signal.detrend."""
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = fnp.asarray(data)
    if type in ("constant", "c"):
        return x - fnp.mean(x, axis, keepdims=True)
    axis = normalized_axis(axis, x.ndim)
    n = x.shape[axis]
    breaks = np.unique(np.concatenate([np.atleast_1d(np.asarray(bp)), [0, n]]))
    if np.any(breaks > n):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    if x.dtype.char not in "dfDF":
        x = fnp.astype(x, np.dtype(np.float64))
    moved = fnp.moveaxis(x, axis, 0)
    parts = []
    for start, stop in zip(breaks[:-1].tolist(), breaks[1:].tolist(), strict=True):
        line = np.stack([np.arange(1, stop - start + 1) / (stop - start), np.ones(stop - start)], 1)
        basis = np.linalg.svd(line, full_matrices=False)[0][:, : min(stop - start, 2)].astype(x.dtype)
        part = fnp.reshape(moved[start:stop], (stop - start, -1))
        parts.append(part - fnp.matmul(basis, fnp.matmul(basis.T, part)))
    return fnp.moveaxis(fnp.reshape(fnp.concatenate(parts), moved.shape), 0, axis)
