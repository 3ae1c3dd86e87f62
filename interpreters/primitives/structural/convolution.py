"""Windows over axes, their sums, and the correlation of vectors, of which convolutions consist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.backends.array_helpers import windows as support_windows
from func.backends.array_helpers.windows import lags_of
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Bilinear, Linear, Params, Shape, Shaped
from func.interpreters.core.parameters import SHAPE, Kind, is_shape, one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import fit_cotangent, result_dtype
from func.interpreters.primitives.structural.slicing import embed, getitem


def _counts(shape: Shape, sizes: Shape, axes: tuple[int, ...], steps: Shape, gaps: Shape) -> Shape:
    """The numbers of windows along each axis of an array."""
    counts = list(shape)
    for size, axis, gap in zip(sizes, axes, gaps or (1,) * len(axes), strict=True):
        counts[axis] -= (size - 1) * gap
    for axis, step in zip(axes, steps or (1,) * len(axes), strict=True):
        counts[axis] = -(-counts[axis] // step)
    return tuple(counts)


def _shifted_axes(params: Params) -> Params:
    """Parameters of windows with a batch axis in front."""
    return {**params, "axes": tuple([axis + 1 for axis in params["axes"]])}


def _are_steps(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    """Nothing, or one positive integer for each axis."""
    return is_shape(value) and 0 not in value and len(value) in (0, len(params["axes"]))


def _axes_of_shape(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return _may_repeat(value, len(params["shape"]), params)


def _may_repeat(value: Any, rank: int, params: Params) -> bool:
    """Axes, which differ where the elements of windows lie side by side."""
    if not is_shape(value) or any([axis >= rank for axis in value]):
        return False
    return len(set(value)) == len(value) or bool(params.get("gaps"))


STEPS = Kind("a positive integer for each axis", _are_steps, optional=True)
WINDOWS = {
    "sizes": Kind(
        "a length for each axis",
        lambda value, avals, params: is_shape(value) and 0 not in value and len(value) == len(params["axes"]),
    ),
    "axes": Kind(
        "axes of the first operand", lambda value, avals, params: _may_repeat(value, len(avals[0].shape), params)
    ),
    "steps": STEPS,
    "gaps": STEPS,
}


def _have_room(x: Aval, *, sizes: Shape, axes: Shape, steps: Shape = (), gaps: Shape = ()) -> bool:
    """Whether an axis is long enough for its windows."""
    return all([length >= 0 for length in _counts(x.shape, sizes, axes, (), gaps)])


def _come_from_windows(x: Aval, *, shape: Shape, sizes: Shape, **params: Any) -> bool:
    """Whether windows of an array of the shape have the shape of the summands."""
    inner = Aval(shape, x.dtype)
    return _have_room(inner, sizes=sizes, **params) and x.shape == windows.aval(inner, sizes=sizes, **params).shape


windows: Linear = core.linear(
    "windows",
    support_windows.windows,
    aval=lambda x, *, sizes, axes, steps=(), gaps=(): Aval(
        (*_counts(x.shape, sizes, axes, steps, gaps), *sizes), x.dtype
    ),
    parameters=WINDOWS,
    fits=_have_room,
    transpose=lambda ct, x, **params: (overlap_add(ct, shape=x.shape, **params),),
    batch=lambda x, **params: windows(x, **_shifted_axes(params)),
    cost=0,
    view=True,
    mask="covered",
)
"""All windows of given sizes along axes, as trailing axes; with a contraction it is convolution. Windows begin `steps`
apart, and their elements are `gaps` apart (by default one; otherwise an axis may occur twice)."""

overlap_add: Linear = core.linear(
    "overlap_add",
    support_windows.overlap_add,
    aval=lambda x, *, shape, **params: Aval(shape, x.dtype),
    parameters={**WINDOWS, "axes": Kind("axes of the shape", _axes_of_shape), "shape": SHAPE},
    fits=_come_from_windows,
    transpose=lambda ct, x, *, shape, **params: (windows(ct, **params),),
    batch=lambda x, *, shape, **params: overlap_add(x, shape=(x.shape[0], *shape), **_shifted_axes(params)),
    cost=costs.per_input(1),
    mask="padded",
    covers=True,
)
"""The sum of windows at their places: the transpose of `windows`."""


def _correlate_aval(x: Aval, y: Aval, *, mode: str) -> Aval:
    start, stop = lags_of(x.shape[-1], y.shape[-1], mode)
    return Aval((*x.shape[:-1], stop - start), result_dtype(x, y))


def _correlate_transpose(ct: Array, x: Any, y: Any, *, mode: str) -> tuple[Any, Any]:
    """Correlations again: of the cotangent of all lags with the known operand, conjugated."""
    n, k = x.shape[-1], y.shape[-1]
    known = y if isinstance(x, Shaped) else x
    known = conjugate(known) if core.dtype_of(known).kind == "c" else known
    if mode == "valid" and n >= k:
        if isinstance(x, Shaped):
            return fit_cotangent(correlate(ct, _reversed(known), mode="full"), x), ZERO
        return ZERO, fit_cotangent(correlate(known, ct, mode="valid"), y)
    start, stop = lags_of(n, k, mode)
    if mode != "full":
        shape = (*core.shape_of(ct)[:-1], n + k - 1)
        ct = embed(ct, index=(*[(0, length, 1) for length in shape[:-1]], (start, stop, 1)), shape=shape)
    if isinstance(x, Shaped):
        return fit_cotangent(correlate(ct, _reversed(known), mode="valid"), x), ZERO
    return ZERO, fit_cotangent(_reversed(correlate(ct, known, mode="valid")), y)


def _reversed(x: Array) -> Array:
    """The last axis backwards."""
    shape = core.shape_of(x)
    return getitem(x, index=(*[(0, n, 1) for n in shape[:-1]], (shape[-1] - 1, -1, -1)))


def _correlate_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return correlate(*core.materialize(size, batched, args), **params)


correlate = Bilinear(
    "correlate",
    support_windows.correlate,
    aval=_correlate_aval,
    parameters={"mode": one_of("full", "same", "valid")},
    fits=lambda x, y, *, mode: min(len(x.shape), len(y.shape)) > 0 and x.shape[:-1] == y.shape[:-1],
    batch=_correlate_batch,
    cost=lambda ins, outs, params: 2 * ins[0].size * ins[1].size,
    transpose=_correlate_transpose,
    covers=True,
)
"""Σ_j x_(i+j) y_j over the last axis, at NumPy's lags for the modes full, same and valid; nothing is conjugated."""
