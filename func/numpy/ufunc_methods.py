"""Ufunc methods on traced arrays: reduce, accumulate, outer, reduceat, at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.host.patching import holds_tracer
from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of, unboxed
from func.interpreters.core.errors import TracerConversionError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.interpreters.primitives.structural import cumulative as scans
from func.interpreters.primitives.structural import reductions as reduction_primitives
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.segment_sums import segment_bounds, segment_sum
from func.numpy import cumulative, reductions
from func.numpy.argument_checks import (
    NO_VALUE,
    arrayed,
    count,
    host_values,
    normalize_axis,
    rank_of,
    scalar_of,
    to_dtype,
    weak_kind,
)
from func.numpy.indexing import cut, entry, fit_value, read, write
from func.numpy.inplace import WRITE_HINT, rebind
from func.numpy.joining import joined
from func.numpy.memory import fresh, is_scalar
from func.numpy.protocol import DIRECT, METHODS, call_ufunc, rule_of

_REDUCTIONS: dict[Any, Callable[..., Array]] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
}
_LOGICAL = {np.logical_and: reductions.all, np.logical_or: reductions.any}
_RUNNING: dict[Any, Callable[[Array, int], Array]] = {
    np.add: cumulative.cumsum,
    np.multiply: cumulative.cumprod,
    np.maximum: lambda a, axis: scans.cummax(a, axis=axis),
    np.minimum: lambda a, axis: scans.cummin(a, axis=axis),
}
_ROUNDING_FREE = {np.fmax, np.fmin, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.gcd, np.lcm}
"""Ufuncs that are associative without rounding, so that an axis may be folded by halves."""


def _binary(ufunc: Any, method: str) -> Callable[..., Array]:
    """The traced version of a ufunc of two arguments."""
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(f"{method} only supported for binary functions")
    function = rule_of(ufunc)
    if function is None or ufunc.signature is not None:
        raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} has no traced version{at_line()}")
    return function


def _single(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Array:
    """ufunc.reduce, by the reduction of this ufunc or by folding the axis."""
    function, out = _binary(ufunc, "reduce"), _single(out)
    array = operand(array)
    if ufunc in (np.add, np.multiply):
        return _REDUCTIONS[ufunc](array, axis, dtype, out, keepdims, initial, where)
    axes = reductions.reduction_axes(axis, rank_of(array))
    array = _in_loop(ufunc, array, dtype, out)
    if ufunc in _REDUCTIONS:  # in this dtype, independent of that of out
        result = reductions.extremum(array, axes, ufunc.__name__, initial, where, out)
        return reductions.finish(result, shape_of(array), axes, keepdims, out)
    if ufunc in _LOGICAL and not reductions.is_given(initial):
        return _LOGICAL[ufunc](array, axes, out, keepdims, where=where)
    if len(axes) > 1 and ufunc.identity is None and ufunc not in _ROUNDING_FREE:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    result = _folded(ufunc, function, array, axes, initial, reductions.mask_for(array, where), out)
    return reductions.finish(scalar_of(result), shape_of(array), axes, keepdims, out)


def _in_loop(ufunc: Any, array: Array, dtype: Any, out: Any) -> Array:
    """An array in the dtype of NumPy's reduction loop."""
    loop = reductions.loop_dtype(ufunc, array, dtype, out)
    if loop is None:
        loop = ufunc.resolve_dtypes((None, dtype_of(array), None), reduction=True, casting="unsafe")[0]
    if loop.kind == "b" and dtype_of(array).kind != "b":
        return ops.not_equal(array, 0)
    return to_dtype(array, loop)


def _identity(ufunc: Any, dtype: np.dtype[Any]) -> Any:
    """The start of NumPy's reduction: for unsigned integers -1 is the largest one."""
    identity = ufunc.identity
    return np.asarray(identity).astype(dtype)[()] if dtype.kind == "u" and identity is not None else identity


def _in_front(array: Array, axes: tuple[int, ...]) -> Array:
    """The array with the reduced axes merged into one axis in front."""
    for place, axis in enumerate(axes):
        array = shapes.move_axis(array, axis, place)
    remaining = shape_of(array)[len(axes) :]
    return shapes.reshape(arrayed(array), shape=(count(shape_of(array)[: len(axes)]), *remaining))


def _folded(ufunc: Any, function: Any, array: Array, axes: Any, initial: Any, mask: Array | None, out: Any) -> Array:
    """The fold of the axes, from `initial` or the first element, which NumPy takes from `out`."""
    x = _in_front(array, axes)
    n, remaining = shape_of(x)[0], shape_of(x)[1:]
    start = initial if reductions.is_given(initial) else _identity(ufunc, dtype_of(array))
    if mask is None and not reductions.is_given(initial) and n and (n > 1 or start is None):
        if ufunc is np.logaddexp:
            return reduction_primitives.reduce_logaddexp(x, axes=(0,))
        if ufunc in _ROUNDING_FREE:
            return _halved(function, x)
        total, rest = entry(x, 0), range(1, n)
        total = total if out is None else reductions.through(out, total)
    else:
        if start is None:
            problem = "zero-size array to" if n == 0 else "masked"
            raise ValueError(f"{problem} reduction operation {ufunc.__name__} which has no identity")
        total, rest = shapes.broadcast(reductions.start_of(start, dtype_of(array), out), shape=remaining), range(n)
    masks = None if mask is None else _in_front(mask, axes)
    for place in rest:
        new = function(total, entry(x, place))
        total = new if masks is None else shapes.where(entry(masks, place), new, total)
    if ufunc is np.logaddexp2 and masks is None and out is None and not reductions.is_given(initial) and n > 1:
        natural = reduction_primitives.reduce_logaddexp(ops.multiply(x, math.log(2)), axes=(0,))
        return revalued(total, ops.divide(natural, math.log(2)))  # pairs lose digits of second derivatives
    return total


def _halved(function: Any, x: Array) -> Array:
    while shape_of(x)[0] > 1:
        half = shape_of(x)[0] // 2
        paired = function(cut(x, 0, 0, half), cut(x, 0, half, 2 * half))
        x = paired if shape_of(x)[0] == 2 * half else joined([paired, cut(x, 0, 2 * half)], 0)
    return entry(x, 0)


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    """ufunc.accumulate, by the cumulative primitive of this ufunc or by folding the axis."""
    function, out = _binary(ufunc, "accumulate"), _single(out)
    array = operand(array)
    if rank_of(array) == 0:
        raise TypeError("cannot accumulate on a scalar")
    place = normalize_axis(axis, rank_of(array))
    array = _in_loop(ufunc, array, dtype, out)
    if ufunc in _RUNNING:
        result = to_dtype(_RUNNING[ufunc](array, place), dtype_of(array))
    elif shape_of(array)[place] == 0:
        result = array
    else:
        parts = [cut(array, place, 0, 1)]
        for i in range(1, shape_of(array)[place]):
            parts.append(function(parts[-1], cut(array, place, i, i + 1)))
        result = joined(parts, place)
    return result if out is None else reductions.deliver(result, out)


def _of_own_dtype(x: Array) -> Array:
    """A number as an array: it does not adapt to the dtype of the other operand here."""
    return arrayed(x) if weak_kind(x) else x


def outer(ufunc: Any, A: Any, B: Any, /, **options: Any) -> Array:
    """ufunc.outer: the ufunc of all pairs of elements."""
    _binary(ufunc, "outer")
    a, b = [_of_own_dtype(operand(x)) for x in (A, B)]
    rank = rank_of(a)
    a = shapes.expand(arrayed(a), range(rank, rank + rank_of(b))) if rank_of(b) else a
    return call_ufunc(ufunc, DIRECT.get(ufunc), (a, b), options)


def reduceat(ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    """ufunc.reduceat: reductions of the segments that start at the indices."""
    _binary(ufunc, "reduceat")
    out = _single(out)
    array = operand(array)
    if rank_of(array) == 0:
        raise TypeError("cannot reduceat on a scalar")
    place = normalize_axis(axis, rank_of(array))
    length = shape_of(array)[place]
    starts = tuple(host_values(indices).ravel().tolist())
    for start in starts:
        if not 0 <= start < length:
            raise IndexError(f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {length})")
    array = _in_loop(ufunc, array, dtype, out)
    if ufunc is np.add:
        result = segment_sum(array, starts=starts, axis=place)
    else:
        parts = [cut(array, place, *bounds) for bounds in segment_bounds(starts, length)]
        result = joined([_segment(ufunc, part, place) for part in parts], place)
    return result if out is None else reductions.deliver(result, out)


def _segment(ufunc: Any, part: Array, axis: int) -> Array:
    """The reduction of a segment; of one element, the element itself."""
    return part if shape_of(part)[axis] == 1 else reduce(ufunc, part, axis, keepdims=True)


def _occurrences(places: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Positions in a list of places, split into groups in which no place occurs twice, in order."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered, side="left")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - first
    return [np.flatnonzero(rank == r) for r in range(int(rank.max()) + 1)] if len(rank) else []


def _repeated(function: Callable[..., Array], a: Tracer, indices: Any, operands: Sequence[Array]) -> None:
    """Apply a ufunc at places, once for each occurrence."""
    index = tuple([unboxed(i) for i in (indices if isinstance(indices, tuple) else (indices,))])
    grid = np.arange(count(a.shape)).reshape(a.shape)
    if holds_tracer(list(index)):
        rebind(a, _in_turn(function, a, read(grid, index)[0], operands))
        return
    places = grid[index]
    values = [shapes.reshape(shapes.broadcast(operand(b), shape=places.shape), shape=(places.size,)) for b in operands]
    flat = shapes.reshape(fresh(a), shape=(count(a.shape),))
    for positions in _occurrences(places.ravel()):
        where = places.ravel()[positions]
        new = function(gather(flat, where, axis=0), *[gather(v, positions, axis=0) for v in values])
        flat = write(flat, where, fit_value(new, where.shape, flat))
    rebind(a, shapes.reshape(flat, shape=a.shape))


def _in_turn(function: Callable[..., Array], a: Tracer, places: Array, operands: Sequence[Array]) -> Array:
    """A ufunc applied at one place after another: traced places may be equal."""
    shape = shape_of(places)
    size = count(shape)
    places = shapes.reshape(places, shape=(size,))
    values = [shapes.reshape(shapes.broadcast(operand(b), shape=shape), shape=(size,)) for b in operands]
    flat = shapes.reshape(fresh(a), shape=(count(a.shape),))
    for i in range(size):
        place = entry(places, i)
        new = function(read(flat, place)[0], *[entry(v, i) for v in values])
        flat = write(flat, place, fit_value(new, (), flat))
    return shapes.reshape(flat, shape=a.shape)


def at(ufunc: Any, a: Any, indices: Any, b: Any = NO_VALUE, /) -> None:
    """ufunc.at: an unbuffered in-place operation, which applies repeated indices each time."""
    if type(a) is not Tracer:
        raise TracerConversionError(
            f"np.{ufunc.__name__}.at cannot write traced values into a plain array{at_line()}\n{WRITE_HINT}"
        )
    if is_scalar(a):
        raise TypeError("first operand must be array")
    function = rule_of(ufunc)
    if function is None or ufunc.nout != 1:
        raise UnsupportedFunctionError(f"np.{ufunc.__name__}.at has no traced version{at_line()}")
    if (ufunc.nin == 2) != (b is not NO_VALUE):
        requirement = "needed for ufunc" if ufunc.nin == 2 else "provided when ufunc is unary"
        raise ValueError(f"second operand {requirement}")
    operands = [] if ufunc.nin == 1 else [_of_own_dtype(operand(b))]
    loop = ufunc.resolve_dtypes((dtype_of(a), *[dtype_of(x) for x in operands], None))
    own = dtype_of(a)
    if type(b) is int and own.kind in "iu":
        ufunc.at(np.ones(1, own), [0], b)  # raises where it does not fit
    if ufunc in (np.add, np.subtract) and own.kind in "fc" and (loop[0] == own or holds_tracer(indices)):
        change = operands[0] if ufunc is np.add else ops.negative(to_dtype(operands[0], loop[0]))
        rebind(a, to_dtype(write(to_dtype(fresh(a), loop[0]), indices, change, accumulate=True), own))
    else:
        _repeated(function, a, indices, operands)


METHODS.update({"reduce": reduce, "accumulate": accumulate, "outer": outer, "reduceat": reduceat, "at": at})
