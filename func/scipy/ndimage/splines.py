"""Spline interpolation of arrays at coordinates between their elements.

The coefficients of the splines come from a linear filter along each axis. A result is the sum of the coefficients at
order + 1 places along each axis, weighted by polynomials of the fractional part of the coordinate: differentiable in
the array and in the coordinates. The conventions at the borders are those of SciPy's kernels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func import special
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Tracer, known_value, operand
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.filters import spline_coefficients
from func.scipy.ndimage.borders import (
    DOUBLE,
    array_of,
    delivered,
    extended_axes,
    in_double,
    normalized_axis,
    output_dtype,
    places,
    refuse_complex,
    sequence_of,
    version_of,
    version_with_callback,
)

_BOUNDARIES = {
    "nearest": "reflect", "wrap": "mirror", "reflect": "reflect", "grid-mirror": "reflect", "mirror": "mirror",
    "constant": "mirror", "grid-wrap": "grid-wrap", "grid-constant": "mirror",
}  # fmt: skip
"""By the mode: how the coefficients continue at the borders."""
_TAPS = {**_BOUNDARIES, "nearest": "nearest", "grid-wrap": "wrap"}
"""By the mode: which coefficient stands for one outside."""
_PADDING = 12
"""So many elements are put around arrays whose mode has no splines of its own."""


def _check(mode: str, order: int) -> None:
    if order < 0 or order > 5:
        raise RuntimeError("spline order not supported")
    if mode not in _BOUNDARIES:
        raise RuntimeError("boundary mode not supported")


@version_of(_scipy.spline_filter1d)
def spline_filter1d(
    input: Array, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Array:
    """The coefficients of splines along an axis, as scipy.ndimage.spline_filter1d."""
    _check(mode, order)
    x = array_of(input)
    is_complex = x.dtype.kind == "c"
    if order < 2:
        return delivered(x, output, x, is_complex)
    axis = normalized_axis(axis, x.ndim)
    out = spline_coefficients(operand(in_double(x)), order=order, axis=axis, boundary=_BOUNDARIES[mode])
    return delivered(out, output, x, is_complex)


@version_of(_scipy.spline_filter)
def spline_filter(input: Array, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Array:
    """The coefficients of splines along all axes, as scipy.ndimage.spline_filter."""
    if order < 2:
        raise RuntimeError("spline order not supported")
    x = out = array_of(input)
    dtype = output_dtype(output, x, x.dtype.kind == "c")
    for axis in range(x.ndim):
        out = spline_filter1d(out, order, axis, dtype, mode) if holds_traced(out) else out
    return delivered(out, output, x, x.dtype.kind == "c")


class _Taps(NamedTuple):
    """Where along an axis, and with which weights, coefficients are read; the taps are the last axis."""

    places: Array
    weights: Array
    outside: Array | None
    """Taps whose place has the constant value (mode "grid-constant")."""
    inside: Array | None
    """Coordinates that have a value (None: all); the others have the constant one."""


def _mapped(c: Array, n: int, mode: str) -> Array:
    """Coordinates outside of 0 … n - 1 brought back by the mode; for "constant", -1."""
    if mode == "constant":
        return fnp.where((c < 0) | (c > n - 1), -1.0, c)
    below, above = c < 0, c > n - 1
    if n <= 1:
        return fnp.where(below | above, 0.0, c)
    if mode == "mirror":
        period = 2 * n - 2
        low = c + period * fnp.trunc(-c / period)
        low = fnp.where(low <= 1 - n, low + period, -low)
        high = c - period * fnp.trunc(c / period)
        high = fnp.where(high >= n, period - high, high)
    elif mode in ("reflect", "grid-mirror"):
        period = 2 * n
        low = fnp.where(c < -period, c + period * fnp.trunc(-c / period), c)
        low = fnp.where(low < -n, low + period, -low - 1)
        high = c - period * fnp.trunc(c / period)
        high = fnp.where(high >= n, period - high - 1, high)
    elif mode == "wrap":
        period = n - 1
        low = c + period * (fnp.trunc(-c / period) + 1)
        high = c - period * fnp.trunc(c / period)
    else:
        period = n
        low = c + period * (fnp.trunc((-1 - c) / period) + 1)
        high = c - period * fnp.trunc(c / period)
    return fnp.where(below, low, fnp.where(above, high, c))


def _taps(c: Array, n: int, order: int, mode: str, padding: int) -> _Taps:
    """The taps of coordinates along an axis of length n, which holds the padding."""
    c = fnp.astype(fnp.asarray(c), DOUBLE) + padding
    inside = None
    if mode not in ("grid-constant", "nearest"):
        c = _mapped(c, n, mode)
        inside = c > -1.0
        c = fnp.where(inside, c, 0.0)
    nearest = fnp.floor(c if order % 2 else c + 0.5)
    first = fnp.astype(fnp.where(fnp.isfinite(nearest), nearest, 0.0), np.dtype(np.int64)) - order // 2
    positions = first[..., None] + np.arange(order + 1)
    outside = None
    if mode == "grid-constant":
        outside = (positions < 0) | (positions >= n)
        positions = fnp.where(outside, 0, positions)
    else:
        positions = places(positions, n, _TAPS[mode])
    return _Taps(positions, _weights(c - nearest, order), outside, inside)


_POLYNOMIALS = {
    1: [[1.0, -1.0]],
    2: [[1 / 8, -1 / 2, 1 / 2], [3 / 4, 0.0, -1.0]],
    3: [[1 / 6, -1 / 2, 1 / 2, -1 / 6], [2 / 3, 0.0, -1.0, 1 / 2], [1 / 6, 1 / 2, 1 / 2, -1 / 2]],
    4: [
        [1 / 384, -1 / 48, 1 / 16, -1 / 12, 1 / 24],
        [19 / 96, -11 / 24, 1 / 4, 1 / 6, -1 / 6],
        [115 / 192, 0.0, -5 / 8, 0.0, 1 / 4],
        [19 / 96, 11 / 24, 1 / 4, -1 / 6, -1 / 6],
    ],
    5: [
        [1 / 120, -1 / 24, 1 / 12, -1 / 12, 1 / 24, -1 / 120],
        [13 / 60, -5 / 12, 1 / 6, 1 / 6, -1 / 6, 1 / 24],
        [11 / 20, 0.0, -1 / 2, 0.0, 1 / 4, -1 / 12],
        [13 / 60, 5 / 12, 1 / 6, -1 / 6, -1 / 6, 1 / 12],
        [1 / 120, 1 / 24, 1 / 12, 1 / 12, 1 / 24, -1 / 24],
    ],
}
"""B-splines by their order: the weight of each tap but the last as a polynomial of the distance t to the middle knot,
0 <= t < 1 for odd orders and -1/2 <= t < 1/2 for even ones. Source: Unser, Aldroubi, Eden (1993), equation 2.6."""


def _weights(t: Array, order: int) -> Array:
    """The weights of the taps, which add up to one."""
    if order == 0:
        return fnp.ones_like(t)[..., None]
    weights = []
    for coefficients in _POLYNOMIALS[order]:
        value: Any = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            value = value * t + coefficient
        weights.append(fnp.broadcast_to(value, np.shape(t)))
    return fnp.stack([*weights, 1.0 - sum(weights[1:], weights[0])], axis=-1)


def _sampled(coefficients: Array, taps: Sequence[_Taps], cval: Any) -> Array:
    """The splines over the first axes at points: the shape of the points, then the other axes."""
    rank = len(taps)
    lengths, rest = coefficients.shape[:rank], coefficients.shape[rank:]
    points = np.broadcast_shapes(*[t.places.shape[:-1] for t in taps])
    count = math.prod(points)
    flat: Any = np.zeros((1, 1), np.int64)
    weight: Any = np.ones((1, 1))
    outside: Any = None
    for tap, n in zip(taps, lengths, strict=True):
        k = tap.places.shape[-1]
        along = [fnp.reshape(fnp.broadcast_to(v, (*points, k)), (count, 1, k)) for v in (tap.places, tap.weights)]
        flat = fnp.reshape(flat[..., None] * n + along[0], (count, -1))
        weight = fnp.reshape(weight[..., None] * along[1], (count, -1))
        if tap.outside is not None:
            beyond = fnp.reshape(fnp.broadcast_to(tap.outside, (*points, k)), (count, 1, k))
            outside = beyond if outside is None else outside[..., None] | beyond
            outside = fnp.reshape(outside, (count, -1))
    values = fnp.take(fnp.reshape(coefficients, (math.prod(lengths), *rest)), flat, axis=0)
    spread: Any = (Ellipsis, *[None] * len(rest))
    if outside is not None:
        values = fnp.where(outside[spread], cval, values)
    out = fnp.reshape(fnp.sum(values * weight[spread], axis=1), (*points, *rest))
    for tap in taps:
        if tap.inside is not None:
            out = fnp.where(fnp.broadcast_to(tap.inside, points)[spread], out, cval)
    return out


def _sampled_axes(coefficients: Array, taps: Sequence[_Taps], cval: Any) -> Array:
    """The splines over the grid of the points of each axis, one axis after the other."""
    out = coefficients
    has_value = taps[0].outside is not None
    if has_value:
        out = out - cval
    for axis, tap in enumerate(taps):
        m, k = tap.places.shape
        trailing = (1,) * (out.ndim - 1 - axis)
        values = fnp.take(out, tap.places, axis=axis)
        if tap.outside is not None:
            values = fnp.where(fnp.reshape(tap.outside, (m, k, *trailing)), 0.0, values)
        out = fnp.sum(values * fnp.reshape(tap.weights, (m, k, *trailing)), axis=axis + 1)
    if has_value:
        return out + cval
    for axis, tap in enumerate(taps):
        if tap.inside is not None:
            out = fnp.where(fnp.reshape(tap.inside, (-1,) + (1,) * (out.ndim - 1 - axis)), out, cval)
    return out


def _prepared(
    x: Array, order: int, mode: str, cval: Any, prefilter: bool, rank: int | None = None
) -> tuple[Array, int]:
    """The coefficients over the first axes (None: all), and how many elements were put around them."""
    padding, wide = 0, x
    if not prefilter or order < 2:
        return in_double(x), padding
    count = int(x.ndim if rank is None else rank)
    if mode in ("nearest", "grid-constant"):
        padding = _PADDING
        widths = [(padding, padding) if axis < count else (0, 0) for axis in range(x.ndim)]
        wide = extended_axes(wide, widths, [mode] * x.ndim, cval)
    for axis in range(count):
        wide = spline_coefficients(operand(in_double(wide)), order=order, axis=axis, boundary=_BOUNDARIES[mode])
    return in_double(wide), padding


def _at_coordinates(x: Array, coordinates: Sequence[Any], order: int, mode: str, cval: Any, prefilter: bool) -> Array:
    wide, padding = _prepared(x, order, mode, cval, prefilter, len(coordinates))
    taps = [_taps(c, n, order, mode, padding) for c, n in zip(coordinates, wide.shape, strict=False)]
    return _sampled(wide, taps, cval)


def _on_grid(x: Array, coordinates: Sequence[Any], order: int, mode: str, cval: Any, prefilter: bool) -> Array:
    """The splines at the grid of the coordinates along each axis."""
    wide, padding = _prepared(x, order, mode, cval, prefilter)
    taps = [_taps(c, n, order, mode, padding) for c, n in zip(coordinates, wide.shape, strict=True)]
    return _sampled_axes(wide, taps, cval)


def _input(input: Any) -> Array:
    x = array_of(input)
    if x.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    return x


@version_of(_scipy.map_coordinates)
def map_coordinates(
    input: Array,
    coordinates: Array,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array at coordinates (ndim, …), as scipy.ndimage.map_coordinates.

    >>> import numpy as np, func
    >>> x = np.array([0.0, 1.0, 4.0, 9.0])
    >>> func.grad(lambda c: func.scipy.ndimage.map_coordinates(x, c, order=1)[0])(np.array([[1.5]]))
    array([[3.]])
    """
    _check(mode, order)
    x, c = array_of(input), fnp.asarray(coordinates)
    refuse_complex(c)
    if x.ndim < 1 or c.ndim < 2:
        raise RuntimeError("input and output rank must be > 0")
    if c.shape[0] != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    out = _at_coordinates(x, [c[axis] for axis in range(x.ndim)], order, mode, cval, prefilter)
    return delivered(out, output, x, x.dtype.kind == "c", rounds=True)


@version_with_callback(_scipy.geometric_transform)
def geometric_transform(
    input: Array,
    mapping: Any,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Array:
    """The array at the coordinates that `mapping` gives for each index, as scipy.ndimage.geometric_transform."""
    if not callable(mapping):
        if not holds_traced(input):
            return geometric_transform.original(  # type: ignore[attr-defined]
                input, mapping, output_shape, output, order, mode, cval, prefilter, extra_arguments, extra_keywords
            )
        raise UnsupportedFunctionError(
            f"scipy.ndimage.geometric_transform with a low-level callback has no derivative{at_line()}\n"
            "Give it a function of Python, which func can trace."
        )
    _check(mode, order)
    x = _input(input)
    shape: Any = x.shape if output_shape is None else tuple(output_shape)
    if len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    call: Any = mapping
    points = [tuple(call(index, *extra_arguments, **(extra_keywords or {}))) for index in np.ndindex(*shape)]
    coordinates = [
        fnp.reshape(fnp.stack([fnp.asarray(p[axis], dtype=float) for p in points]), shape)
        if points
        else np.zeros(shape)
        for axis in range(x.ndim)
    ]
    out = _at_coordinates(x, coordinates, order, mode, cval, prefilter)
    return delivered(out, output, x, x.dtype.kind == "c", rounds=True)


def _affine_parts(x: Array, matrix: Any, offset: Any, rank: int) -> tuple[Array, Array]:
    """The matrix and the offset, which a matrix in homogeneous coordinates holds."""
    matrix = fnp.asarray(matrix, dtype=float)
    n = x.ndim
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if matrix.ndim == 2 and matrix.shape[1] == n + 1 and matrix.shape[0] in (n, n + 1):
        last = [0] * n + [1]
        if matrix.shape[0] == n + 1 and known_value(matrix) is not None and not fnp.all(matrix[n] == np.array(last)):
            raise ValueError(
                f"Expected homogeneous transformation matrix with shape {matrix.shape} for image shape {x.shape}, "
                f"but bottom row was not equal to {last}"
            )
        offset, matrix = matrix[:n, n], matrix[:n, :n]
    if matrix.shape[0] != n:
        raise RuntimeError("affine matrix has wrong number of rows")
    if matrix.ndim == 2 and matrix.shape[1] != rank:
        raise RuntimeError("affine matrix has wrong number of columns")
    offsets = sequence_of(offset, n)
    return matrix, fnp.stack([fnp.asarray(o, dtype=float) for o in offsets])


@version_of(_scipy.affine_transform)
def affine_transform(
    input: Array,
    matrix: Array,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array at `matrix @ index + offset`, as scipy.ndimage.affine_transform."""
    _check(mode, order)
    x = _input(input)
    if output_shape is None:
        is_array = output is not None and not isinstance(output, (type, np.dtype, str))
        output_shape = fnp.asarray(output).shape if is_array else x.shape
    shape = tuple(output_shape)
    if len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    matrix, offset = _affine_parts(x, matrix, offset, len(shape))
    if matrix.ndim == 1:
        coordinates = [
            matrix[axis] * (np.arange(float(n)) + offset[axis] / matrix[axis]) for axis, n in enumerate(shape)
        ]
        out = _on_grid(x, coordinates, order, mode, cval, prefilter)
    else:
        out = _at_coordinates(x, _affine(matrix, offset, shape), order, mode, cval, prefilter)
    return delivered(out, output, x, x.dtype.kind == "c", rounds=True)


def _affine(matrix: Array, offset: Array, shape: tuple[int, ...]) -> list[Array]:
    """matrix @ index + offset for every index of a shape."""
    grids = np.ogrid[tuple([slice(0, n) for n in shape])]
    coordinates = []
    for row in range(matrix.shape[0]):
        value = offset[row]
        for column, grid in enumerate(grids):
            value = value + matrix[row, column] * grid
        coordinates.append(fnp.broadcast_to(value, shape))
    return coordinates


@version_of(_scipy.shift)
def shift(
    input: Array,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array shifted along each axis, as scipy.ndimage.shift."""
    _check(mode, order)
    x = _input(input)
    coordinates = [np.arange(float(n)) - by for n, by in zip(x.shape, sequence_of(shift, x.ndim), strict=True)]
    out = _on_grid(x, coordinates, order, mode, cval, prefilter)
    return delivered(out, output, x, x.dtype.kind == "c", rounds=True)


@version_of(_scipy.zoom)
def zoom(
    input: Array,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """The array on a finer or coarser grid, as scipy.ndimage.zoom.

    The grid depends on `zoom` through the rounded shape of the result alone, so there is no derivative in it.
    """
    _check(mode, order)
    x = _input(input)
    factors = sequence_of(zoom, x.ndim)
    if any([type(factor) is Tracer for factor in factors]):
        raise UnsupportedFunctionError(
            f"the zoom of scipy.ndimage.zoom is traced{at_line()}\n"
            "It decides the shape of the result: give it as a number. affine_transform with matrix=1 / zoom and an "
            "output_shape differentiates in the scale."
        )
    shape = tuple([round(n * factor) for n, factor in zip(x.shape, factors, strict=True)])
    is_complex = x.dtype.kind == "c"
    if all([factor == 1 for factor in factors]) and prefilter:
        return delivered(x, output, x, is_complex, rounds=True)
    if grid_mode and mode in ("constant", "wrap") and not is_complex:
        warnings.warn(
            f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True.", stacklevel=3
        )
    coordinates = []
    for n, m in zip(x.shape, shape, strict=True):
        if grid_mode and not is_complex:
            coordinates.append((np.arange(float(m)) + 0.5) * (n / m if m else 1.0) - 0.5)
        else:
            coordinates.append(np.arange(float(m)) * ((n - 1) / (m - 1) if m != 1 else 1.0))
    return delivered(_on_grid(x, coordinates, order, mode, cval, prefilter), output, x, is_complex, rounds=True)


@version_of(_scipy.rotate)
def rotate(
    input: Array,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array rotated in a plane, as scipy.ndimage.rotate; differentiable in the angle, in degrees.

    With `reshape` the shape of the result depends on the angle and counts as a constant.
    """
    _check(mode, order)
    x = array_of(input)
    plane = _plane(axes, x.ndim)
    c, s = special.cosdg(angle), special.sindg(angle)
    rows = (c, s), (-s, c)
    lengths = [x.shape[axis] for axis in plane]
    shape = lengths
    if reshape:
        corners = [(0, 0), (0, lengths[1]), (lengths[0], 0), (lengths[0], lengths[1])]
        bounds = [[row[0] * corner[0] + row[1] * corner[1] for corner in corners] for row in rows]
        shape = [int(fnp.astype(fnp.ptp(fnp.stack(values)) + 0.5, np.dtype(int))) for values in bounds]
    center = [(n - 1) / 2 for n in shape]
    offset = [(n - 1) / 2 - (row[0] * center[0] + row[1] * center[1]) for n, row in zip(lengths, rows, strict=True)]
    matrix = fnp.stack([fnp.stack([fnp.asarray(v, dtype=float) for v in row]) for row in rows])
    coordinates = _affine(matrix, fnp.stack([fnp.asarray(v, dtype=float) for v in offset]), tuple(shape))
    out = _at_coordinates(fnp.moveaxis(x, plane, (0, 1)), coordinates, order, mode, cval, prefilter)
    return delivered(fnp.moveaxis(out, (0, 1), plane), output, x, x.dtype.kind == "c", rounds=True)


def _plane(axes: Any, rank: int) -> tuple[int, int]:
    """The two axes of a rotation, sorted."""
    if rank < 2:
        raise ValueError("input array should be at least 2D")
    chosen = list(axes)
    if len(chosen) != 2:
        raise ValueError("axes should contain exactly two values")
    if not all([float(axis).is_integer() for axis in chosen]):
        raise ValueError("axes should contain only integer values")
    first, second = sorted([int(axis) + (rank if axis < 0 else 0) for axis in chosen])
    if first < 0 or second >= rank:
        raise ValueError("invalid rotation plane specified")
    return first, second
