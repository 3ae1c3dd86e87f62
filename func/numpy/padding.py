"""np.pad in all of its modes: borders are computed and joined axis by axis."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.host.patching import holds_tracer
from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.primitives.structural.slicing import embed
from func.numpy.argument_checks import arrayed, as_array, rank_of, to_dtype, to_host
from func.numpy.elementary import round
from func.numpy.grids import linspace
from func.numpy.joining import concatenate
from func.numpy.memory import copied, fortran_or_c, in_order
from func.numpy.protocol import implements
from func.numpy.quantiles import median
from func.numpy.reductions import max, min
from func.numpy.selection import take
from func.numpy.shaping import broadcast_to, flip, moveaxis
from func.numpy.statistics import mean

Pair = tuple[int, int]
_STATISTICS: dict[str, Callable[..., Array]] = {"maximum": max, "minimum": min, "mean": mean, "median": median}
_KEYWORDS = {
    "constant": ("constant_values",),
    "empty": (),
    "edge": (),
    "wrap": (),
    "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}


@implements(np.pad)
def pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """An array with borders, in every mode, a function included, as numpy.pad; the mode `empty` gives zeros."""
    array = as_array(arrayed(operand(array)))
    rank = rank_of(array)
    widths = _widths(pad_width, rank)
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported")
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if not rank:
        return copied(array)
    order = fortran_or_c(array)
    if mode in ("constant", "empty") and _is_zero(kwargs.get("constant_values", 0)):
        return in_order(framed(array, widths), order)
    if mode == "constant" and dtype_of(array).kind in "iu" and not holds_tracer(kwargs["constant_values"]):
        np.pad(np.zeros((1,) * rank, dtype_of(array)), 1, **kwargs)  # raises where a constant does not fit
    extend = _extension(mode, rank, kwargs)
    padded = array
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        if shape_of(array)[axis] == 0 and mode != "constant":
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        padded = extend(padded, axis, width)
    return copied(array, order) if padded is array else in_order(padded, order)


def _pairs(value: Any, rank: int, name: str) -> list[tuple[Any, Any]]:
    """(before, after) for each axis, from any form that NumPy accepts; traced values stay traced."""
    value = operand(value)
    try:
        whole = broadcast_to(arrayed(value), (rank, 2))
    except ValueError:
        raise ValueError(f"{name} must be a number, a pair, or a pair per axis, got {value!r}") from None
    return [(whole[axis, 0], whole[axis, 1]) for axis in range(rank)]


def _widths(value: Any, rank: int) -> list[Pair]:
    if isinstance(value, dict):
        full: list[Any] = [(0, 0)] * rank
        for axis, pair in value.items():
            full[axis] = pair if isinstance(pair, (tuple, list)) else (pair, pair)
        value = full
    numbers = to_host(value)
    if numbers.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    widths = [(operator.index(low), operator.index(high)) for low, high in _pairs(numbers, rank, "pad_width")]
    if any([side < 0 for pair in widths for side in pair]):
        raise ValueError("index can't contain negative values")
    return widths


def _is_zero(value: Any) -> bool:
    return type(value) in (int, float) and value == 0


def framed(array: Array, widths: Sequence[Pair]) -> Array:
    """The array with borders of zeros: (before, after) for each axis."""
    shape = shape_of(array)
    index = tuple([(low, low + n, 1) for (low, _), n in zip(widths, shape, strict=True)])
    return embed(
        array, index=index, shape=tuple([low + n + high for (low, high), n in zip(widths, shape, strict=True)])
    )


def _extension(mode: str, rank: int, options: dict[str, Any]) -> Callable[[Array, int, Pair], Array]:
    """The function (array, axis, width) that extends an array along one axis."""
    if mode == "constant":
        values = _pairs(options["constant_values"], rank, "constant_values")
        return lambda x, axis, width: _joined(
            x, axis, [_filled(x, axis, n, v) for n, v in zip(width, values[axis], strict=True)]
        )
    if mode == "linear_ramp":
        ends = _pairs(options.get("end_values", 0), rank, "end_values")
        return lambda x, axis, width: _joined(x, axis, _ramps(x, axis, width, ends[axis]))
    if mode in _STATISTICS:
        lengths = _lengths(options.get("stat_length"), rank)
        return lambda x, axis, width: _joined(x, axis, _statistics(x, axis, width, lengths[axis], mode))
    if mode in ("reflect", "symmetric") and options.get("reflect_type", "even") == "odd":
        return lambda x, axis, width: _reflected(x, axis, width, mode == "symmetric")
    return lambda x, axis, width: take(x, np.pad(np.arange(shape_of(x)[axis]), width, mode), axis=axis)  # type: ignore[call-overload]


def _joined(x: Array, axis: int, borders: list[Array]) -> Array:
    """The array between its borders, in the array's dtype."""
    left, right = [to_dtype(border, dtype_of(x)) for border in borders]
    return concatenate([left, x, right], axis=axis)


def _part(x: Array, axis: int, start: int, stop: int) -> Array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _filled(x: Array, axis: int, width: int, value: Array) -> Array:
    shape = list(shape_of(x))
    shape[axis] = width
    return broadcast(value, shape=tuple(shape))


def _ramps(x: Array, axis: int, width: Pair, ends: tuple[Any, Any]) -> list[Array]:
    n = shape_of(x)[axis]
    borders = []
    for count, end, place in ((width[0], ends[0], 0), (width[1], ends[1], n - 1)):
        edge = x[(slice(None),) * axis + (place,)]
        borders.append(linspace(end, edge, count, endpoint=False, dtype=dtype_of(x), axis=axis))
    return [borders[0], flip(borders[1], axis)]


def _lengths(value: Any, rank: int) -> list[tuple[int | None, int | None]]:
    if value is None:
        return [(None, None)] * rank
    return [(operator.index(low), operator.index(high)) for low, high in _pairs(value, rank, "stat_length")]


def _statistics(x: Array, axis: int, width: Pair, lengths: tuple[int | None, int | None], mode: str) -> list[Array]:
    n = shape_of(x)[axis]
    borders = []
    for side, (count, length) in enumerate(zip(width, lengths, strict=True)):
        used = n if length is None or length > n else length
        if used < 0:
            raise ValueError("index can't contain negative values")
        if used == 0 and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        part = _part(x, axis, 0, used) if side == 0 else _part(x, axis, n - used, n)
        value = _STATISTICS[mode](part, axis=axis, keepdims=True)
        value = round(value) if dtype_of(x).kind in "iu" and mode in ("mean", "median") else value
        borders.append(_filled(x, axis, count, value))
    return borders


def _reflected(x: Array, axis: int, width: Pair, with_edge: bool) -> Array:
    """The array extended by point reflections at its ends, repeated as the widths require."""
    left, right = width
    period = shape_of(x)[axis]
    if period == 1:
        return take(x, np.zeros(1 + left + right, int), axis=axis)
    edge = 1 if with_edge else 0
    while left or right:
        length = shape_of(x)[axis]
        usable = length // period * period if with_edge else (length - 1) // (period - 1) * (period - 1)
        if left:
            count = np.minimum(usable, left).item()
            chunk = flip(_part(x, axis, 1 - edge, count + 1 - edge), axis)
            x = concatenate([ops.subtract(ops.multiply(_part(x, axis, 0, 1), 2), chunk), x], axis=axis)
            left -= count
        if right:
            count, n = np.minimum(usable, right).item(), shape_of(x)[axis]
            chunk = flip(_part(x, axis, n - 1 + edge - count, n - 1 + edge), axis)
            x = concatenate([x, ops.subtract(ops.multiply(_part(x, axis, n - 1, n), 2), chunk)], axis=axis)
            right -= count
    return x


def _by_function(array: Array, widths: list[Pair], function: Callable[..., Any], options: dict[str, Any]) -> Array:
    """NumPy's protocol for a mode that is a function: function(vector, width, axis, options) writes the borders."""
    padded = framed(array, widths)
    if type(padded) is not Tracer:
        return np.pad(array, widths, function, **options)
    for axis, width in enumerate(widths):
        view = moveaxis(padded, axis, -1)
        for place in np.ndindex(*shape_of(view)[:-1]):
            function(view[place], width, axis, options)
    return padded
