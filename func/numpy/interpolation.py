"""Functions of neighbouring samples: differences, gradients, integrals, interpolation, phase unwrapping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import cumulative, shapes, slicing
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import argsort
from func.interpreters.primitives.structural.sorting import reorder, search
from func.numpy.argument_checks import arrayed, flattened, normalize_axis, rank_of, scalar_of, to_dtype
from func.numpy.indexing import cut
from func.numpy.joining import joined
from func.numpy.memory import in_order_of
from func.numpy.protocol import implements
from func.numpy.reductions import is_given

_FLOAT = np.dtype(np.float64)


@implements(np.diff)
def diff(a: Array, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Array:
    """The n-th differences of neighbours along an axis, as numpy.diff."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = operand(a)
    if rank_of(a) == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    place = normalize_axis(axis, rank_of(a))
    edge = tuple([1 if i == place else m for i, m in enumerate(shape_of(a))])
    ends = [[operand(end)] if is_given(end) else [] for end in (prepend, append)]
    before, after = [[end if rank_of(end) else shapes.broadcast(end, shape=edge) for end in part] for part in ends]
    a = joined([*before, a, *after], place) if before or after else a
    subtract = ops.not_equal if dtype_of(a).kind == "b" else ops.subtract
    for _ in range(n):
        a = subtract(cut(a, place, 1), cut(a, place, 0, -1))
    return a


@implements(np.ediff1d)
def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours of the flattened array, with optional values at both ends, as numpy.ediff1d."""
    ary = flattened(operand(ary))
    dtype = dtype_of(ary)
    steps = ops.subtract(cut(ary, 0, 1), cut(ary, 0, 0, -1))
    ends: list[list[Array]] = []
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is None:
            ends.append([])
            continue
        end = flattened(operand(end))
        if not np.can_cast(dtype_of(end), dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        ends.append([to_dtype(end, dtype)])
    return joined([*ends[0], steps, *ends[1]], 0)


@implements(np.trapezoid)
def trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule, as numpy.trapezoid."""
    y = operand(y)
    rank = rank_of(y)
    place = normalize_axis(axis, rank)
    if x is None:
        step: Array = operand(dx)
    else:
        x = operand(x)
        if rank_of(x) == 1:
            step = diff(x)
            step = shapes.reshape(step, shape=tuple([shape_of(step)[0] if i == place else 1 for i in range(rank)]))
        else:
            step = diff(x, axis=axis)
    both = ops.add(cut(y, place, 1), cut(y, place, 0, -1))
    return shapes.reduce_sum(ops.divide(ops.multiply(step, both), 2.0), axes=(place,))


def _spacings(f: Array, varargs: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """A number, or the distances between neighbours, for each axis."""
    if not varargs:
        return [1.0] * len(axes)
    arguments = [operand(v) for v in varargs]
    if len(arguments) == 1 and rank_of(arguments[0]) == 0:
        return arguments * len(axes)
    if len(arguments) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for distances, axis in zip(arguments, axes, strict=True):
        if rank_of(distances) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if rank_of(distances) == 1:
            if shape_of(distances)[0] != shape_of(f)[axis]:
                raise ValueError("when 1d, distances must match the length of the corresponding dimension")
            distances = diff(to_dtype(distances, _FLOAT) if dtype_of(distances).kind in "iu" else distances)
            if type(distances) is np.ndarray and (distances == distances[0]).all():
                distances = distances[0]
        spacings.append(distances)
    return spacings


def _weigh(f: Array, axis: int, start: int, weights: Sequence[Array], stop: int | None = None) -> Array:
    """The weighted sum of shifted samples: weight k applies to the samples from start + k on."""
    n = shape_of(f)[axis]
    length = 1 if stop is None else stop
    total: Any = None
    for shift, weight in enumerate(weights):
        first = start % n + shift
        term = ops.multiply(weight, cut(f, axis, first, first + length))
        total = term if total is None else ops.add(total, term)
    return total


def _uneven(f: Array, d: Array, axis: int, edge_order: int) -> tuple[Array, Array, Array]:
    """First, inner and last derivatives for distances d between neighbours."""
    n = shape_of(f)[axis]
    shape = tuple([-1 if i == axis else 1 for i in range(rank_of(f))])

    def fitted(x: Array) -> Array:
        return shapes.reshape(x, shape=tuple([shape_of(x)[0] if m == -1 else 1 for m in shape]))

    d1, d2 = cut(d, 0, 0, -1), cut(d, 0, 1)
    weights = (-(d2) / (d1 * (d1 + d2)), (d2 - d1) / (d1 * d2), d1 / (d2 * (d1 + d2)))
    interior = _weigh(f, axis, 0, [fitted(w) for w in weights], n - 2)
    first, last = d[0], d[n - 2]
    if edge_order == 1:
        return _slope(f, axis, 0, first), interior, _slope(f, axis, n - 2, last)
    d1, d2 = d[0], d[1]
    start = (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2)))
    d1, d2 = d[n - 3], d[n - 2]
    end = (d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2), (2.0 * d2 + d1) / (d2 * (d1 + d2)))
    return _weigh(f, axis, 0, start), interior, _weigh(f, axis, n - 3, end)


def _slope(f: Array, axis: int, start: int, distance: Array) -> Array:
    return ops.divide(ops.subtract(cut(f, axis, start + 1, start + 2), cut(f, axis, start, start + 1)), distance)


def _even(f: Array, h: Array, axis: int, edge_order: int) -> tuple[Array, Array, Array]:
    """First, inner and last derivatives for one distance h."""
    n = shape_of(f)[axis]
    interior = ops.divide(ops.subtract(cut(f, axis, 2), cut(f, axis, 0, -2)), ops.multiply(2.0, h))
    if edge_order == 1:
        return _slope(f, axis, 0, h), interior, _slope(f, axis, n - 2, h)
    first = _weigh(f, axis, 0, [ops.divide(w, h) for w in (-1.5, 2.0, -0.5)])
    return first, interior, _weigh(f, axis, n - 3, [ops.divide(w, h) for w in (0.5, -2.0, 1.5)])


@implements(np.gradient)
def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The gradient by second-order differences in the interior and one-sided ones at the edges, as numpy.gradient."""
    f = operand(f)
    rank = rank_of(f)
    entries = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [normalize_axis(i, rank) for i in entries]
    if len(set(axes)) != len(axes):
        raise ValueError("repeated axis")
    spacings = _spacings(f, varargs, axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if dtype_of(f).kind in "iu":
        f = to_dtype(f, _FLOAT)
    dtype = dtype_of(f) if dtype_of(f).kind in "fc" else _FLOAT
    out = []
    for place, spacing in zip(axes, spacings, strict=True):
        if shape_of(f)[place] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
                "required."
            )
        parts = (_uneven if rank_of(spacing) else _even)(f, spacing, place, edge_order)
        out.append(in_order_of(slicing.concatenate(*[to_dtype(part, dtype) for part in parts], axis=place), f))
    return out[0] if len(axes) == 1 else tuple(out)


def _segments(x: Array, xp: Array, fp: Array, place: Array, inverse: bool) -> Array:
    """Values on the line through the two samples around each x; `inverse` multiplies by 1 / run, as NumPy does."""
    n = shape_of(xp)[0]
    base = ops.maximum(ops.minimum(place, n - 1), 0)
    low = ops.minimum(base, n - 2)
    x0, x1, f0, f1 = [gather(v, ops.add(low, k), axis=0) for v in (xp, fp) for k in (0, 1)]
    rise, run = ops.subtract(f1, f0), ops.subtract(x1, x0)
    slope = ops.multiply(rise, ops.divide(1.0, run)) if inverse else ops.divide(rise, run)
    start, value = gather(xp, base, axis=0), gather(fp, base, axis=0)
    out = ops.add(ops.nan_safe_multiply(slope, ops.subtract(x, start)), value)
    known = known_value(fp)
    if known is not None and np.isfinite(known).all():
        return out
    from_right = ops.add(ops.multiply(slope, ops.subtract(x, x1)), f1)
    from_right = shapes.where(ops.logical_and(ops.isnan(from_right), ops.equal(f0, f1)), f0, from_right)
    lost = ops.logical_and(
        ops.isnan(out),
        ops.logical_not(ops.logical_or(ops.isnan(x), ops.equal(x, start))),
    )
    return shapes.where(lost, from_right, out)


def _interpolated(x: Array, xp: Array, fp: Array, left: Any, right: Any) -> Array:
    n = shape_of(xp)[0]
    place = ops.subtract(search(xp, x, side="right", batch_rank=0), 1)
    if n == 1:
        inside = ops.add(ops.multiply(x, 0), fp[0])
        inside = shapes.where(ops.isnan(x), fp[0], inside)
    elif dtype_of(fp).kind == "c":
        parts = [_segments(x, xp, part, place, True) for part in (ops.real(fp), ops.imag(fp))]
        inside = ops.make_complex(*parts)
    else:
        inside = _segments(x, xp, fp, place, False)
    dtype = dtype_of(fp)
    lower = fp[0] if left is None else to_dtype(operand(left), dtype)
    upper = fp[n - 1] if right is None else to_dtype(operand(right), dtype)
    inside = shapes.where(ops.less(x, xp[0]), lower, inside)
    return shapes.where(ops.greater(x, xp[n - 1]), upper, inside)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Linear interpolation, as numpy.interp; at a sample the derivative is the slope to its right."""
    x, xp, fp = [arrayed(operand(v)) for v in (x, xp, fp)]
    if dtype_of(x).kind == "c" or dtype_of(xp).kind == "c":
        raise TypeError("x, xp: cannot cast from complex128 to float64 according to the rule 'safe'")
    if rank_of(xp) != 1 or rank_of(fp) != 1:
        raise ValueError("object too deep for desired array" if period is None else "Data points must be 1-D sequences")
    x, xp = to_dtype(x, _FLOAT), to_dtype(xp, _FLOAT)
    fp = to_dtype(fp, np.complex128 if dtype_of(fp).kind == "c" else _FLOAT)
    if shape_of(xp)[0] == 0:
        raise ValueError("array of sample points is empty")
    if shape_of(xp) != shape_of(fp):
        raise ValueError("fp and xp are not of the same length.")
    if period is None:
        return scalar_of(_interpolated(x, xp, fp, left, right))
    if period == 0:
        raise ValueError("period must be a non-zero value")
    period = ops.absolute(operand(period))
    x, xp = ops.remainder(x, period), ops.remainder(xp, period)
    order = argsort(xp, axis=0, kind=None)
    xp, fp = reorder(xp, order, axis=0), reorder(fp, order, axis=0)
    ends = ops.subtract(cut(xp, 0, -1), period), ops.add(cut(xp, 0, 0, 1), period)
    xp = slicing.concatenate(ends[0], xp, ends[1], axis=0)
    fp = slicing.concatenate(cut(fp, 0, -1), fp, cut(fp, 0, 0, 1), axis=0)
    return scalar_of(_interpolated(x, xp, fp, None, None))


@implements(np.unwrap)
def unwrap(p: Array, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """Phases with jumps of more than half a period removed, as numpy.unwrap."""
    p = operand(p)
    place = normalize_axis(axis, rank_of(p))
    steps = diff(p, axis=place)
    dtype = np.result_type(dtype_of(steps), period if type(period) in (int, float) else dtype_of(operand(period)))
    half, ambiguous = (period // 2, period % 2 == 0) if dtype.kind in "iu" else (ops.divide(period, 2), True)
    low = ops.negative(half)
    wrapped = ops.add(ops.remainder(ops.subtract(steps, low), period), low)
    if ambiguous:
        edge = ops.logical_and(ops.equal(wrapped, low), ops.greater(steps, 0))
        wrapped = shapes.where(edge, to_dtype(half, dtype_of(wrapped)), wrapped)
    change = ops.subtract(wrapped, steps)
    small = ops.less(ops.absolute(steps), ops.divide(period, 2) if discont is None else discont)
    change = shapes.where(small, shapes.full_like(change, 0, ()), change)
    rest = ops.add(cut(p, place, 1), cumulative.cumsum(change, axis=place, reverse=False))
    return in_order_of(joined([to_dtype(cut(p, place, 0, 1), dtype), to_dtype(rest, dtype)], place), p)
