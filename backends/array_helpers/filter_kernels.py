"""SciPy's kernels of filters, which generated source calls by name: correlation, recurrences, spline coefficients."""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of


def _in_parts(x: Any, call: Any) -> Any:
    """A linear call on the real and the imaginary part."""
    return call(x) if x.dtype.kind != "c" else call(x.real) + 1j * call(x.imag)


def correlate_windows(xp: Any, x: Any, w: Any, *, axes: Any, stack: Any) -> Any:
    """Σ_j x_(i+j) w_j over axes, for windows that lie inside; the first `stack` axes of both go together."""
    dtype = numpy.result_type(x.dtype, w.dtype)
    counts = list(x.shape)
    for axis, size in zip(axes, w.shape[stack:], strict=True):
        counts[axis] -= size - 1
    if 0 in counts or stack:
        out = xp.zeros(tuple(counts), dtype)
        axes = tuple([axis - stack for axis in axes])
        for index in numpy.ndindex(*counts[:stack]) if 0 not in counts else ():
            out[index] = correlate_windows(xp, x[index], w[index], axes=axes, stack=0)
        return out
    double = xp.promote_types(numpy.float64, dtype)
    x, w = x.astype(xp.promote_types(x.dtype, numpy.float64)), w.astype(xp.promote_types(w.dtype, numpy.float64))
    if not axes:
        return (x * w).astype(dtype)
    ndimage = scipy_of(xp, "ndimage")
    sizes = [1] * x.ndim
    for axis, size in zip(axes, w.shape, strict=True):
        sizes[axis] = size

    def one(x: Any, w: Any) -> Any:
        if len(axes) == 1:
            return ndimage.correlate1d(x, w, axes[0], mode="constant")
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        return ndimage.correlate(x, xp.transpose(w, order).reshape(tuple(sizes)), mode="constant")

    out = _in_parts(w, lambda w: _in_parts(x, lambda x: one(x, w))).astype(double)
    inside = tuple([slice(size // 2, size // 2 + count) for size, count in zip(sizes, counts, strict=True)])
    return out[inside].astype(dtype)


def window_products(xp: Any, x: Any, c: Any, *, axes: Any, stack: Any) -> Any:
    """Σ_i x_(i+j) c_i over all axes but the first `stack`, for each offset j along axes."""
    sizes = tuple([x.shape[axis] - c.shape[axis] + 1 for axis in axes])
    out = xp.zeros((*x.shape[:stack], *sizes), numpy.result_type(x.dtype, c.dtype))
    summed = tuple(range(stack, x.ndim))
    index = [slice(None)] * x.ndim
    for offset in numpy.ndindex(*sizes):
        for axis, start in zip(axes, offset, strict=True):
            index[axis] = slice(start, start + c.shape[axis])
        part = x[tuple(index)]
        out[(..., *offset)] = xp.sum(part * c, summed) if stack else xp.tensordot(part, c, len(summed))
    return out


def recurrence(xp: Any, x: Any, a: Any) -> Any:
    """y_n = x_n - Σ_k a_k y_(n-k) over the last axis; the leading axes of the coefficients a (…, K) are those of x."""
    dtype = numpy.result_type(x.dtype, a.dtype)
    if x.size == 0:
        return xp.zeros(x.shape, dtype)
    if a.ndim == 1:
        lfilter = scipy_of(xp, "signal").lfilter
        wide_dtype = dtype if dtype.char in "fdgFDG" else numpy.promote_types(dtype, numpy.float32)
        unit = xp.ones(1, wide_dtype)
        out = lfilter(unit, xp.concatenate([unit, a.astype(wide_dtype)]), x.astype(wide_dtype), axis=-1)
        return out.astype(dtype, copy=False)
    out = xp.empty(x.shape, dtype)
    for index in numpy.ndindex(*a.shape[:-1]):
        out[index] = recurrence(xp, x[index], a[index])
    return out


def spline_coefficients(xp: Any, x: Any, *, order: Any, axis: Any, boundary: Any) -> Any:
    """The coefficients of the splines through the elements along an axis."""
    if x.size == 0:
        return x
    dtype = xp.promote_types(x.dtype, numpy.float64)
    return scipy_of(xp, "ndimage").spline_filter1d(
        x.astype(dtype, copy=False), order, axis, output=dtype, mode=boundary
    )
