"""Windows over axes and the correlation of vectors, which generated source calls by name."""

from __future__ import annotations

from typing import Any

import numpy


def windows(xp: Any, x: Any, *, sizes: Any, axes: Any, steps: Any = (), gaps: Any = ()) -> Any:
    """All windows of given sizes along axes, as trailing axes: a view."""
    spacing = gaps or (1,) * len(axes)
    spans = tuple([(size - 1) * gap + 1 for size, gap in zip(sizes, spacing, strict=True)])
    out = xp.lib.stride_tricks.sliding_window_view(x, spans, axes)
    if not steps and not gaps:
        return out
    index = [slice(None)] * x.ndim
    for axis, step in zip(axes, steps or (1,) * len(axes), strict=True):
        index[axis] = slice(None, None, step)
    return out[(*index, *[slice(None, None, gap) for gap in spacing])]


def overlap_add(xp: Any, x: Any, *, sizes: Any, axes: Any, shape: Any, steps: Any = (), gaps: Any = ()) -> Any:
    """The sum of windows at their places: the transpose of `windows`."""
    out = xp.zeros(shape, x.dtype)
    counts = x.shape[: len(shape)]
    if 0 in counts:
        return out
    for offset in numpy.ndindex(*sizes):
        out[window_region(offset, counts, axes, steps, gaps)] += x[(..., *offset)]
    return out


def window_region(offset: Any, counts: Any, axes: Any, steps: Any, gaps: Any) -> tuple[slice, ...]:
    """The index of the elements at one offset in all windows."""
    starts, strides = [0] * len(counts), [1] * len(counts)
    ones = (1,) * len(axes)
    for position, axis, step, gap in zip(offset, axes, steps or ones, gaps or ones, strict=True):
        starts[axis] += position * gap
        strides[axis] *= step
    return tuple([slice(a, a + (n - 1) * step + 1, step) for a, step, n in zip(starts, strides, counts, strict=True)])


def lags_of(n: int, k: int, mode: str) -> tuple[int, int]:
    """The range (start, stop) of a mode's outputs among those of "full"."""
    if mode == "full":
        return 0, n + k - 1
    if mode == "valid":
        return min(n, k) - 1, max(n, k)
    start = k - 1 - k // 2 if n >= k else n // 2
    return start, start + max(n, k)


def correlate(xp: Any, x: Any, y: Any, *, mode: Any) -> Any:
    """Σ_j x_(i+j) y_j over the last axis, at NumPy's lags for the modes full, same and valid; nothing is conjugated."""
    if y.dtype.kind == "c":
        y = xp.conjugate(y)
    if x.ndim == 1:
        return xp.correlate(x, y, mode)
    start, stop = lags_of(x.shape[-1], y.shape[-1], mode)
    out = xp.empty((*x.shape[:-1], stop - start), xp.result_type(x, y))
    for place in numpy.ndindex(*x.shape[:-1]):
        out[place] = xp.correlate(x[place], y[place], mode)
    return out
