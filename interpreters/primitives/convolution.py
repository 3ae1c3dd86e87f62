"""Windows over axes, their sums, and the correlation of vectors: what convolutions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, Array, Aval, Params, Shape, Shaped, dtype_of, shape_of
from func.interpreters.primitives.kinds import Bilinear, Linear, linear, materialize
from func.interpreters.primitives.pointwise import conjugate
from func.interpreters.primitives.structural import embed, fit_cotangent, getitem, result_dtype

# --- windows ----------------------------------------------------------------------------------------------------


class _Window:
    """Where windows lie: for each windowed axis the size, the step between windows and the gap between elements."""

    __slots__ = ("axes", "gaps", "sizes", "steps")

    def __init__(self, sizes: Shape, axes: tuple[int, ...], steps: Shape, gaps: Shape) -> None:
        self.sizes = sizes
        self.axes = axes
        self.steps = steps or (1,) * len(axes)
        self.gaps = gaps or (1,) * len(axes)

    def counts(self, shape: Shape) -> Shape:
        """How many windows there are along each axis of an array."""
        counts = list(shape)
        for size, axis, gap in zip(self.sizes, self.axes, self.gaps, strict=True):
            counts[axis] -= (size - 1) * gap
        for axis, step in zip(self.axes, self.steps, strict=True):
            counts[axis] = -(-counts[axis] // step)
        return tuple(counts)

    def region(self, offset: tuple[int, ...], counts: Shape) -> tuple[slice, ...]:
        """Where the elements at one place of all windows lie in the array."""
        starts, steps = [0] * len(counts), [1] * len(counts)
        for place, axis, step, gap in zip(offset, self.axes, self.steps, self.gaps, strict=True):
            starts[axis] += place * gap
            steps[axis] *= step
        return tuple([slice(a, a + (n - 1) * step + 1, step) for a, step, n in zip(starts, steps, counts, strict=True)])


def _windows_impl(
    xp: Any, x: Array, *, sizes: Shape, axes: tuple[int, ...], steps: Shape = (), gaps: Shape = ()
) -> Array:
    window = _Window(sizes, axes, steps, gaps)
    spans = tuple([(size - 1) * gap + 1 for size, gap in zip(sizes, window.gaps, strict=True)])
    out = xp.lib.stride_tricks.sliding_window_view(x, spans, axes)
    if not steps and not gaps:
        return out
    index = [slice(None)] * len(shape_of(x))
    for axis, step in zip(axes, window.steps, strict=True):
        index[axis] = slice(None, None, step)
    return out[(*index, *[slice(None, None, gap) for gap in window.gaps])]


def _overlap_add_impl(
    xp: Any, x: Array, *, sizes: Shape, axes: tuple[int, ...], shape: Shape, steps: Shape = (), gaps: Shape = ()
) -> Array:
    out = xp.zeros(shape, x.dtype)
    window = _Window(sizes, axes, steps, gaps)
    counts = x.shape[: len(shape)]
    if 0 in counts:
        return out
    for offset in np.ndindex(*sizes):
        out[window.region(offset, counts)] += x[(..., *offset)]
    return out


def _shifted_axes(params: Params) -> Params:
    """Parameters of windows with a batch axis in front."""
    return {**params, "axes": tuple([axis + 1 for axis in params["axes"]])}


windows: Linear = linear(
    "windows",
    _windows_impl,
    aval=lambda x, *, sizes, axes, steps=(), gaps=(): Aval(
        (*_Window(sizes, axes, steps, gaps).counts(x.shape), *sizes), x.dtype
    ),
    transpose=lambda ct, x, **params: (overlap_add(ct, shape=x.shape, **params),),
    batch=lambda x, **params: windows(x, **_shifted_axes(params)),
)
"""All windows of given sizes along axes, as trailing axes; with a contraction it is convolution. `steps` apart they
begin, and their elements lie `gaps` apart (one where not given; then an axis may occur twice)."""

overlap_add: Linear = linear(
    "overlap_add",
    _overlap_add_impl,
    aval=lambda x, *, shape, **params: Aval(shape, x.dtype),
    transpose=lambda ct, x, *, shape, **params: (windows(ct, **params),),
    batch=lambda x, *, shape, **params: overlap_add(x, shape=(x.shape[0], *shape), **_shifted_axes(params)),
)
"""The sum of windows at their places: the transpose of `windows`."""


# --- correlation of vectors -------------------------------------------------------------------------------------


def _valid_first(n: int, k: int, mode: str) -> tuple[int, int]:
    """The range (start, stop) of a mode's outputs among those of "full"."""
    if mode == "full":
        return 0, n + k - 1
    if mode == "valid":
        return min(n, k) - 1, max(n, k)
    start = k - 1 - k // 2 if n >= k else n // 2
    return start, start + max(n, k)


def _correlate_impl(xp: Any, x: Array, y: Array, *, mode: str) -> Array:
    y = xp.conjugate(y)
    if x.ndim == 1:
        return xp.correlate(x, y, mode)
    start, stop = _valid_first(x.shape[-1], y.shape[-1], mode)
    out = xp.empty((*x.shape[:-1], stop - start), xp.result_type(x, y))
    for place in np.ndindex(*x.shape[:-1]):
        out[place] = xp.correlate(x[place], y[place], mode)
    return out


def _correlate_aval(x: Aval, y: Aval, *, mode: str) -> Aval:
    start, stop = _valid_first(x.shape[-1], y.shape[-1], mode)
    return Aval((*x.shape[:-1], stop - start), result_dtype(x, y))


def _correlate_transpose(ct: Array, x: Any, y: Any, *, mode: str) -> tuple[Any, Any]:
    """Correlations again: of the cotangent of all lags with the other operand, conjugated."""
    n, k = x.shape[-1], y.shape[-1]
    other = y if isinstance(x, Shaped) else x
    other = conjugate(other) if dtype_of(other).kind == "c" else other
    if mode == "valid" and n >= k:
        if isinstance(x, Shaped):
            return fit_cotangent(correlate(ct, _reversed(other), mode="full"), x), ZERO
        return ZERO, fit_cotangent(correlate(other, ct, mode="valid"), y)
    start, stop = _valid_first(n, k, mode)
    if mode != "full":
        shape = (*shape_of(ct)[:-1], n + k - 1)
        ct = embed(ct, index=(*[(0, length, 1) for length in shape[:-1]], (start, stop, 1)), shape=shape)
    if isinstance(x, Shaped):
        return fit_cotangent(correlate(ct, _reversed(other), mode="valid"), x), ZERO
    return ZERO, fit_cotangent(_reversed(correlate(ct, other, mode="valid")), y)


def _reversed(x: Array) -> Array:
    """The last axis backwards."""
    shape = shape_of(x)
    return getitem(x, index=(*[(0, n, 1) for n in shape[:-1]], (shape[-1] - 1, -1, -1)))


def _correlate_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return correlate(*materialize(size, batched, args), **params)


correlate = Bilinear(
    "correlate",
    _correlate_impl,
    aval=_correlate_aval,
    batch=_correlate_batch,
    transpose=_correlate_transpose,
)
"""Σ_j x_(i+j) y_j over the last axis, at NumPy's lags for the modes full, same and valid; nothing is conjugated."""
