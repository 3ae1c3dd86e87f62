"""Spline interpolation of arrays at coordinates between their elements.

The coefficients of the splines come from a linear filter along each axis. A result is the sum of the coefficients at
order + 1 places along each axis, weighted by polynomials of the fractional part of the coordinate. It differentiates
in the array and in the coordinates. The conventions at the borders are those of SciPy's kernels.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func import special
from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, operand
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.filters import spline_coefficients
from func.scipy.kinds.versions import version_of
from func.scipy.ndimage.borders import DOUBLE, array_of, delivered, extended_axes, in_double, places, plain_of, write
from func.scipy.ndimage.compiled_filters import check_callback, parts

MODES = ("nearest", "wrap", "reflect", "mirror", "constant", "grid-wrap", "grid-constant")
"""The modes by SciPy's numbers."""
_BOUNDARIES = dict(
    zip(MODES, ("reflect", "mirror", "reflect", "mirror", "mirror", "grid-wrap", "mirror"), strict=True),
    **{"grid-mirror": "reflect"},
)
"""By the mode: the extension of the coefficients at the borders."""
_TAPS = {**_BOUNDARIES, "nearest": "nearest", "grid-wrap": "wrap"}
"""By the mode: the coefficient for a place outside."""


class _Taps(NamedTuple):
    """The places and weights at which coefficients are read along an axis; the taps are the last axis."""

    places: Array
    weights: Array
    outside: Array | None
    """Taps whose place has the constant value (mode "grid-constant")."""
    inside: Array | None
    """Coordinates that have a value (None: all); the others get the constant."""


def _mapped(c: Array, n: int, mode: str) -> Array:
    """Coordinates outside of 0 … n - 1 mapped into the range by the mode; for "constant", -1."""
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
    """The taps of coordinates along an axis of length n, which includes the padding."""
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
"""B-splines by their order: the weights of all taps but the last, as polynomials of the distance t to the middle knot.

0 <= t < 1 for odd orders, -1/2 <= t < 1/2 for even ones. Source: Unser, Aldroubi, Eden (1993), equation 2.6."""


def _weights(t: Array, order: int) -> Array:
    """The weights of the taps, whose sum is one."""
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
    """The splines over the grid of the points of each axis, one axis after another."""
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


def _nd_image_spline_filter1d(input: Any, order: int, axis: int, output: Any, mode: int) -> None:
    x = operand(in_double(array_of(input)))
    write(output, spline_coefficients(x, order=order, axis=axis, boundary=_BOUNDARIES[MODES[mode]]))


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


def _nd_image_geometric_transform(
    input: Any, mapping: Any, coordinates: Any, matrix: Any, offset: Any, output: Any, order: int, mode: int, cval: Any,
    padding: int, args: Any, named: Any,
) -> None:  # fmt: skip
    """The splines at coordinates, at those that `mapping` gives for each index, or at matrix @ index + offset."""
    if mapping is None and not holds_traced((input, coordinates, matrix, offset)):  # its hook is for the callback
        compiled = original(vars(_scipy)["_nd_image"].geometric_transform)
        compiled(input, None, coordinates, matrix, offset, output, order, mode, cval, padding, args, named)
        return
    x = in_double(array_of(input))
    if mapping is not None:
        check_callback(mapping, "geometric_transform")
        points = [mapping(index, *args, **named) for index in np.ndindex(*output.shape)]
        rows = [fnp.stack([fnp.asarray(p[axis], dtype=float) for p in points]) for axis in range(x.ndim)]
        coordinates = [fnp.reshape(row, output.shape) for row in rows]
    elif coordinates is not None:
        coordinates = plain_of(coordinates)
    else:
        coordinates = _affine(plain_of(matrix), plain_of(offset), output.shape)
    taps = [_taps(coordinates[axis], n, order, MODES[mode], padding) for axis, n in enumerate(x.shape)]
    write(output, _sampled(x, taps, cval), rounds=True)


def _nd_image_zoom_shift(
    input: Any, zoom: Any, shift: Any, output: Any, order: int, mode: int, cval: Any, padding: int, grid_mode: bool
) -> None:
    """The splines at the grid of coordinates, which are first shifted and then scaled."""
    x, taps = in_double(array_of(input)), []
    zooms, shifts = [None if v is None else plain_of(v) for v in (zoom, shift)]
    for axis, (n, m) in enumerate(zip(x.shape, output.shape, strict=True)):
        c: Any = np.arange(float(m)) + (0.5 if grid_mode else 0.0)
        c = c if shifts is None else c + shifts[axis]
        c = c if zooms is None else c * zooms[axis]
        taps.append(_taps(c - (0.5 if grid_mode else 0.0), n, order, MODES[mode], padding))
    write(output, _sampled_axes(x, taps, cval), rounds=True)


def by_parts(name: str) -> Callable[..., Any]:
    """SciPy's function of real numbers, for the parts of complex ones."""
    scipy_function = getattr(_scipy, name)

    @functools.wraps(scipy_function)
    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(scipy_function)
        if not holds_traced((args, kwargs)) and not callable(args[1] if len(args) > 1 else kwargs.get("mapping")):
            return plain(*args, **kwargs)
        call = intercepted_call(plain)
        bound = inspect.signature(plain).bind(*args, **kwargs)
        bound.apply_defaults()
        options = bound.arguments
        x, output = fnp.asarray(options.pop("input")), options.pop("output")
        if x.dtype.kind != "c":
            return call(*args, **kwargs)
        if options.get("output_shape", ()) is None and name == "affine_transform":
            options["output_shape"] = getattr(output, "shape", x.shape)
        options.pop("grid_mode", None)  # as SciPy does
        total: Any = 0
        for part, value, unit in parts(x, options.get("cval", 0.0)):
            options |= {"cval": value} if "cval" in options else {}
            total = total + unit * call(part, output=np.dtype(float), **options)
        return delivered(total, output, x, is_complex=True)

    function.__doc__ = f"scipy.ndimage.{name} on traced and plain arrays: SciPy's own code, by real parts."
    return function


spline_filter1d, spline_filter, map_coordinates, geometric_transform, affine_transform, shift, uniform_filter1d = [
    by_parts(name)
    for name in (
        "spline_filter1d", "spline_filter", "map_coordinates", "geometric_transform", "affine_transform", "shift",
        "uniform_filter1d",
    )
]  # fmt: skip
_zoom = by_parts("zoom")


@functools.wraps(_scipy.zoom, ("__module__", "__name__", "__qualname__"))
def zoom(input: Array, zoom: Any, *args: Any, **kwargs: Any) -> Array:
    """SciPy's zoom, without a derivative in `zoom`: the result depends on it through its rounded shape alone."""
    if holds_traced(zoom):
        raise UnsupportedFunctionError(
            f"the zoom of scipy.ndimage.zoom is traced{at_line()}\n"
            "It decides the shape of the result: pass a number. affine_transform with matrix=1 / zoom and an "
            "output_shape differentiates in the scale."
        )
    return _zoom(input, zoom, *args, **kwargs)


@version_of(_scipy.rotate)
def rotate(
    input: Array, angle: Any, axes: Any = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """The array rotated in a plane, as scipy.ndimage.rotate; differentiable in the angle, in degrees.

    With `reshape` the shape of the result depends on the angle, and is a constant. SciPy rotates plane by plane; here
    all planes are one array.
    """
    x = array_of(input)
    original(_scipy.rotate)(np.zeros((1,) * x.ndim), 0.0, axes, False, order=order, mode=mode)  # what SciPy refuses
    plane = sorted([int(axis) % x.ndim for axis in axes])
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
    wide, padding = fnp.moveaxis(in_double(x), plane, (0, 1)), 0
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            padding = 12
            widths = [(padding, padding)] * 2 + [(0, 0)] * (x.ndim - 2)
            wide = extended_axes(wide, widths, "nearest" if mode == "nearest" else "constant", cval)
        for axis in (0, 1):
            wide = spline_coefficients(operand(wide), order=order, axis=axis, boundary=_BOUNDARIES[mode])
    taps = [_taps(c, n, order, mode, padding) for c, n in zip(coordinates, wide.shape, strict=False)]
    out = fnp.moveaxis(_sampled(wide, taps, cval), (0, 1), plane)
    return delivered(out, output, x, x.dtype.kind == "c", rounds=True)
