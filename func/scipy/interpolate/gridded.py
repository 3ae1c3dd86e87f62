"""Interpolation of data on rectangular grids, in any number of variables, and FITPACK's surfaces.

Splines on grids are tensor products: their coefficients solve a banded system along each axis. SciPy solves one sparse
system of all axes by an iteration to a tolerance, and its values differ by this tolerance.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.interpreters.core import Array, dtype_of, shape_of
from func.linalg import solve_triangular
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.basis import basis, differentiated, full, integrated, knot_intervals, tensor_values
from func.scipy.interpolate.collocation import coefficients, not_a_knot
from func.scipy.interpolate.cubic import pchip_slopes
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    coordinates,
    floats,
    holds,
    is_never,
    is_traced,
    nan_where,
    numbers,
    picked,
    reals,
    refuse,
    require,
    stored,
)
from func.scipy.interpolate.fitpack_curves import through_data
from func.scipy.interpolate.smoothing import knots_at_data, smoothed_grid
from func.scipy.kinds.traces import in_original
from func.scipy.kinds.versions import version_of

_DEGREES: dict[str, int] = _scipy.RegularGridInterpolator._SPLINE_DEGREE_MAP
_METHODS: list[str] = _scipy.RegularGridInterpolator._ALL_METHODS
_TENSOR: set[str] = _scipy.RegularGridInterpolator._SPLINE_METHODS_ndbspl


def _rgi__check_points(points: Any) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """Rising grid vectors, and the axes along which they were falling; unknown vectors count as rising."""
    grid, falling = [], []
    for i, p in enumerate(points):
        p = reals(p, "points")
        if not holds(fnp.diff(p) > 0):
            if not holds(fnp.diff(p) < 0):
                raise ValueError(f"The points in dimension {i} must be strictly ascending or descending")
            falling.append(i)
            p = fnp.flip(p)
        grid.append(p)
    return tuple(grid), tuple(falling)


def RegularGridInterpolator__construct_spline(self: Any, method: str, solver: Any = None, **options: Any) -> None:
    """Not a spline: evaluation solves banded systems, one axis after another."""


def RegularGridInterpolator___call__(self: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""
    method = self.method if method is None else method
    if method not in _METHODS:
        raise ValueError(f"Method '{method}' is not defined")
    if nu is not None and method not in _TENSOR:
        raise ValueError(f"Can only compute derivatives for methods {_TENSOR}, got method ={method!r}.")
    grid, values = stored(self, "grid"), array_of(stored(self, "values"))
    if method in _DEGREES:
        self._validate_grid_dimensions(grid, method)
    ndim = len(grid)
    xi = coordinates(xi, ndim)
    shape = shape_of(xi)
    if shape[-1] != ndim:
        raise ValueError(
            f"The requested sample points xi have dimension {shape[-1]} but this RegularGridInterpolator has dimension "
            f"{ndim}"
        )
    points = fnp.reshape(xi, (-1, ndim))
    outside = fnp.zeros_like(points[:, 0], dtype=bool)
    for i, p in enumerate(grid):
        x = points[:, i]
        own = (x < p[0]) | (x > p[shape_of(p)[0] - 1])
        if self.bounds_error and not holds(fnp.logical_not(own | fnp.isnan(x))):
            raise ValueError(f"One of the requested xi is out of bounds in dimension {i}")
        outside = outside | own
    out = _grid_values(grid, values, points, method, nu)
    fill = np.nan if self.bounds_error else self.fill_value
    if fill is not None and not is_never(outside):
        fill = to_dtype(array_of(fill), dtype_of(out))
        out = fnp.where(fnp.reshape(outside, (-1,) + (1,) * (len(shape_of(out)) - 1)), fill, out)
    missing = fnp.any(fnp.isnan(points), axis=1)
    if not is_never(missing):
        out = nan_where(missing, out)
    return fnp.reshape(out, (*shape[:-1], *shape_of(values)[ndim:]))


def _grid_values(grid: Sequence[Array], values: Array, points: Array, method: str, nu: Any) -> Array:
    ndim = len(grid)
    columns = [points[:, i] for i in range(ndim)]
    if method in ("linear", "nearest"):
        places, parts = [], []
        for p, x in zip(grid, columns, strict=True):
            n = shape_of(p)[0]
            place = fnp.clip(fnp.searchsorted(p, x, side="right") - 1, 0, max(n - 2, 0))
            low, high = fnp.take(p, place), fnp.take(p, fnp.minimum(place + 1, n - 1))
            places.append(place)
            parts.append((x - low) / (high - low) if n > 1 else (x - low) * 0.0)
        if method == "nearest":
            return picked(values, *[fnp.where(part <= 0.5, i, i + 1) for part, i in zip(parts, places, strict=True)])
        return _multilinear(values, places, parts)
    if method in _TENSOR:
        k = _DEGREES[method]
        knots, c = _tensor_spline(grid, floats(values), [k] * ndim)
        orders = [0] * ndim if nu is None else [int(n) for n in nu]
        if len(orders) != ndim:
            raise ValueError(f"invalid number of derivative orders nu = {nu!r} for ndim = {ndim}.")
        return tensor_values(knots, c, [k] * ndim, columns, orders)
    out = _one_axis(grid[ndim - 1], fnp.moveaxis(values, ndim - 1, 0), columns[ndim - 1], method, False)
    for i in range(ndim - 2, -1, -1):
        out = _one_axis(grid[i], fnp.moveaxis(out, i + 1, 0), columns[i], method, True)
    return to_dtype(out, dtype_of(values))


def _multilinear(values: Array, places: Sequence[Array], parts: Sequence[Array]) -> Array:
    """Sums over the corners of cells, one axis after the other."""
    ndim = len(places)
    n = shape_of(places[0])[0]
    index = []
    for i, place in enumerate(places):
        shape = [n] + [1] * ndim
        shape[i + 1] = 2
        limit = shape_of(values)[i] - 1
        index.append(fnp.reshape(fnp.minimum(place[:, None] + np.arange(2), limit), tuple(shape)))
    out = picked(values, *index)
    for part in parts:
        weight = fnp.reshape(part, (-1,) + (1,) * (len(shape_of(out)) - 2))
        out = out[:, 0] * (1.0 - weight) + out[:, 1] * weight
    return out


def _tensor_spline(grid: Sequence[Array], c: Array, degrees: Sequence[int]) -> tuple[list[Array], Array]:
    """The knots and coefficients of the not-a-knot spline through values on a grid."""
    knots = []
    for axis, (p, k) in enumerate(zip(grid, degrees, strict=True)):
        if k == 1:
            n = shape_of(p)[0]
            knots.append(fnp.concatenate([p[:1], p, p[n - 1 :]]))
            continue
        t = not_a_knot(p, k)
        c = fnp.moveaxis(coefficients(p, fnp.moveaxis(c, axis, 0), t, k), 0, axis)
        knots.append(t)
    return knots, c


def _one_axis(p: Array, y: Array, x: Array, method: str, paired: bool) -> Array:
    """Values (m, …) at m points of the interpolant of y (n, …) along its first axis.

    With `paired` the next axis of y is that of the points, and each point has its own values.
    """
    m = shape_of(x)[0]
    own = (np.arange(m),) if paired else ()
    rank = len(shape_of(y)) - len(own)
    if method == "pchip":
        dx = fnp.diff(p)
        slopes = pchip_slopes(dx, y)
        i = fnp.clip(fnp.searchsorted(p, x, side="right") - 1, 0, shape_of(p)[0] - 2)

        def wide(v: Array) -> Array:
            return fnp.reshape(v, (-1,) + (1,) * (rank - 1))

        h, s = wide(fnp.take(dx, i)), wide(x - fnp.take(p, i))
        y0, y1, d0, d1 = [picked(v, i + j, *own) for v in (y, slopes) for j in (0, 1)]
        chord = (y1 - y0) / h
        bend = (d0 + d1 - 2.0 * chord) / h
        return ((bend / h * s + ((chord - d0) / h - bend)) * s + d0) * s + y0
    k = _DEGREES[method]
    (t,), c = _tensor_spline([p], floats(y), [k])
    place = knot_intervals(t, k, x)
    weights = basis(t, k, x, place)
    out: Any = None
    for a in range(k + 1):
        term = fnp.reshape(weights[:, a], (-1,) + (1,) * (rank - 1)) * picked(c, place - k + a, *own)
        out = term if out is None else out + term
    return out


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """Interpolation on a rectangular grid, as scipy.interpolate.interpn; func itself evaluates FITPACK's surfaces."""
    if method != "splinef2d":
        return in_original(_scipy.interpn, points, values, xi, method, bounds_error, fill_value)
    values = floats(values)
    if len(shape_of(values)) > 2:
        raise ValueError("The method splinef2d can only be used for 2-dimensional input data")
    if not bounds_error and fill_value is None:
        raise ValueError("The method splinef2d does not support extrapolation.")
    if len(points) != len(shape_of(values)):
        raise ValueError("The method splinef2d can only be used for scalar data with one point per coordinate")
    spline = _scipy.RectBivariateSpline(points[0], points[1], values)
    x = coordinates(xi, 2)
    flat = fnp.reshape(x, (-1, 2))
    outside = fnp.zeros_like(flat[:, 0], dtype=bool)
    for i in (0, 1):
        p = reals(points[i])
        inside = (p[0] <= flat[:, i]) & (flat[:, i] <= p[shape_of(p)[0] - 1])
        if bounds_error and not holds(inside):
            raise ValueError(f"One of the requested xi is out of bounds in dimension {i}")
        outside = outside | fnp.logical_not(inside)
    out = BivariateSpline_ev(spline, flat[:, 0], flat[:, 1])
    if not is_never(outside):
        out = fnp.where(outside, np.nan if bounds_error else fill_value, out)
    return fnp.reshape(out, shape_of(x)[:-1])


def _ends(bbox: Any, x: Array, y: Array) -> list[Any]:
    box = list(np.ravel(bbox)) if not is_traced(bbox) else [bbox[i] for i in range(4)]
    if len(box) != 4:
        raise ValueError("bbox shape should be (4,)")
    least = [fnp.min(x), fnp.max(x), fnp.min(y), fnp.max(y)]
    return [end if given is None else given for given, end in zip(box, least, strict=True)]


def BivariateSpline_partial_derivative(self: Any, dx: int, dy: int) -> Any:
    """The surface of a derivative."""
    if dx == 0 and dy == 0:
        return self
    (kx, ky), (tx, ty, c) = self.degrees, self.tck
    if not (dx >= 0 and dy >= 0):
        raise ValueError("order of derivative must be positive or zero")
    if not (dx < kx and dy < ky):
        raise ValueError("order of derivative must be less than degree of spline")
    c = fnp.reshape(c, (shape_of(tx)[0] - kx - 1, shape_of(ty)[0] - ky - 1))
    tx, c, kx = differentiated(tx, full(tx, c), kx, dx)
    ty, c, ky = differentiated(ty, full(ty, fnp.transpose(c[: shape_of(tx)[0] - kx - 1])), ky, dy)
    c = fnp.reshape(fnp.transpose(c[: shape_of(ty)[0] - ky - 1]), (-1,))
    return _DERIVED._from_tck((tx, ty, c, kx, ky))


_DERIVED: Any = inspect.unwrap(_scipy.BivariateSpline.partial_derivative).__globals__["_DerivedBivariateSpline"]
"""SciPy's class of surfaces of derivatives."""


def _surface_values(tck: Any, degrees: Any, x: Array, y: Array, dx: int, dy: int, grid: bool) -> Array:
    """Values at points, on the grid of two vectors or one by one; points outside are moved to the edge."""
    (tx, ty, c), (kx, ky) = tck, degrees
    if not (0 <= dx < max(kx, 1) and 0 <= dy < max(ky, 1)) and (dx or dy):
        raise ValueError("Error code returned by parder: 10")
    rows = []
    for t, k, v, nu in ((reals(tx), kx, x, dx), (reals(ty), ky, y, dy)):
        first, last = t[k], t[shape_of(t)[0] - k - 1]
        v = fnp.where(v < first, first, fnp.where(v > last, last, v))
        place = knot_intervals(t, k, v)
        rows.append((place[:, None] - k + np.arange(k + 1), basis(t, k, v, place, nu)))
    (px, wx), (py, wy) = rows
    c = fnp.reshape(floats(c), (shape_of(tx)[0] - kx - 1, shape_of(ty)[0] - ky - 1))
    if not grid:
        corners = picked(c, px[:, :, None], py[:, None, :])
        return fnp.sum(corners * wx[:, :, None] * wy[:, None, :], axis=(1, 2))
    lines = fnp.sum(fnp.take(c, px, axis=0) * wx[:, :, None], axis=1)
    return fnp.sum(fnp.take(lines, py, axis=1) * wy, axis=2)


def BivariateSpline___call__(self: Any, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Array:
    """Evaluation of SciPy's and func's surfaces at traced points."""
    x, y = reals(x), reals(y, "y")
    if grid:
        for name, v in (("x", x), ("y", y)):
            if len(shape_of(v)) and shape_of(v)[0] >= 2:
                require(fnp.diff(v) >= 0, f"{name} must be strictly increasing when `grid` is True")
        return _surface_values(self.tck, self.degrees, fnp.reshape(x, (-1,)), fnp.reshape(y, (-1,)), dx, dy, True)
    x, y = fnp.broadcast_arrays(x, y)
    shape = shape_of(x)
    out = _surface_values(self.tck, self.degrees, fnp.reshape(x, (-1,)), fnp.reshape(y, (-1,)), dx, dy, False)
    return fnp.reshape(out, shape)


def BivariateSpline_ev(self: Any, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Array:
    """Evaluation of SciPy's and func's surfaces at traced points, one by one."""
    return BivariateSpline___call__(self, xi, yi, dx, dy, False)


def BivariateSpline_integral(self: Any, xa: Any, xb: Any, ya: Any, yb: Any) -> Array:
    """The integral of SciPy's and func's surfaces over a rectangle with traced sides; they are zero outside."""
    (tx, ty, c), (kx, ky) = self.tck, self.degrees
    tx, ty = reals(tx), reals(ty)
    c = fnp.reshape(floats(c), (shape_of(tx)[0] - kx - 1, shape_of(ty)[0] - ky - 1))
    for t, k, limits in ((tx, kx, (xa, xb)), (ty, ky, (ya, yb))):
        first, last = t[k], t[shape_of(t)[0] - k - 1]
        ends = fnp.stack([reals(limit) for limit in limits])
        ends = fnp.where(ends < first, first, fnp.where(ends > last, last, ends))
        made, summed, degree = integrated(t, full(t, c), k, 1)
        place = knot_intervals(made, degree, ends)
        weights = basis(made, degree, ends, place)
        values = fnp.sum(
            fnp.take(summed, place[:, None] - degree + np.arange(degree + 1), axis=0) * weights[:, :, None], axis=1
        )
        c = fnp.transpose((values[1] - values[0])[None])
    return c[0, 0]


def RectBivariateSpline___init__(
    self: Any, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0, maxit: int = 20
) -> None:
    """FITPACK's surface through or near data on a grid."""
    x, y, z = fnp.reshape(reals(x), (-1,)), fnp.reshape(reals(y, "y"), (-1,)), reals(z, "z")
    require(fnp.diff(x) > 0, "x must be strictly increasing")
    require(fnp.diff(y) > 0, "y must be strictly increasing")
    if shape_of(x)[0] != shape_of(z)[0]:
        raise ValueError("x dimension of z must have same number of elements as x")
    if shape_of(y)[0] != shape_of(z)[1]:
        raise ValueError("y dimension of z must have same number of elements as y")
    xb, xe, yb, ye = _ends(bbox, x, y)
    nx, ny = shape_of(z)
    if nx <= kx or ny <= ky:
        raise ValueError(f"at least {kx + 1} and {ky + 1} points are needed, got {nx} and {ny}")
    if is_traced(s) or s:
        _smooth(self, x, y, z, [to_dtype(array_of(end), DOUBLE) for end in (xb, xe, yb, ye)], (kx, ky), s, maxit)
        return
    tx, c = through_data(x, z, kx, (xb, xe))
    ty, c = through_data(y, fnp.transpose(c[:nx]), ky, (yb, ye))
    self.tck = (tx, ty, fnp.reshape(fnp.transpose(c[:ny]), (-1,)))
    self.degrees, self.fp = (kx, ky), 0.0


def _smooth(
    self: Any, x: Array, y: Array, z: Array, ends: list[Array], degrees: tuple[int, int], s: Any, maxit: int
) -> None:
    """The surface for a smoothing condition; its knots are some of the numbers of x and y."""
    px, py, pz, *box, ps = [numbers(v, "what smoothing chooses") for v in (x, y, z, *ends, s)]
    options = {"maxit": maxit} if maxit != 20 else {}
    plain = _scipy.RectBivariateSpline(px, py, pz, [float(e) for e in box], *degrees, s=float(ps), **options)
    distance, (tx, ty) = float(plain.get_residual()), plain.get_knots()
    if abs(distance - ps) > 0.0011 * ps and len(tx) + len(ty) > 2 * sum(degrees) + 4:
        raise refuse(
            "scipy.interpolate.RectBivariateSpline, where FITPACK does not attain s,", "Use s=0, or another s."
        )
    knots = (
        knots_at_data(tx, px, x, (ends[0], ends[1]), degrees[0]),
        knots_at_data(ty, py, y, (ends[2], ends[3]), degrees[1]),
    )
    c = smoothed_grid(x, y, z, knots, degrees, distance, s)
    self.tck, self.degrees = (*knots, fnp.reshape(c, (-1,))), degrees
    self.fp = fnp.sum((z - BivariateSpline___call__(self, x, y)) ** 2)


def LSQBivariateSpline___init__(
    self: Any, x: Any, y: Any, z: Any, tx: Any, ty: Any, w: Any = None, bbox: Any = (None,) * 4, kx: int = 3,
    ky: int = 3, eps: Any = None,
) -> None:  # fmt: skip
    """FITPACK's least-squares surface with given inner knots."""
    x, y, z, w = _scipy.LSQBivariateSpline._validate_input(x, y, z, w, kx, ky, eps)
    x, y, z = [fnp.reshape(reals(v), (-1,)) for v in (x, y, z)]
    w = fnp.ones_like(x) if w is None else reals(w, "w")
    xb, xe, yb, ye = [fnp.reshape(to_dtype(array_of(end), DOUBLE), (1,)) for end in _ends(bbox, x, y)]
    tx = fnp.concatenate([*[xb] * (kx + 1), reals(tx), *[xe] * (kx + 1)])
    ty = fnp.concatenate([*[yb] * (ky + 1), reals(ty), *[ye] * (ky + 1)])
    matrices = []
    for t, k, v in ((tx, kx, x), (ty, ky, y)):
        place = knot_intervals(t, k, v)
        columns = place[:, None] - k + np.arange(k + 1)
        unit = columns[:, :, None] == np.arange(shape_of(t)[0] - k - 1)
        matrices.append(fnp.sum(fnp.where(unit, basis(t, k, v, place)[:, :, None], 0.0), axis=1))
    rows = fnp.reshape(matrices[0][:, :, None] * matrices[1][:, None, :], (shape_of(x)[0], -1))
    q, r = fnp.linalg.qr(rows * w[:, None])
    size = fnp.abs(fnp.diagonal(r))
    if not holds(size > 1e-14 * fnp.max(size)):
        raise refuse(
            "scipy.interpolate.LSQBivariateSpline of a rank deficient system", "Take fewer knots, or more points."
        )
    c = solve_triangular(r, fnp.transpose(q) @ (z * w), check_finite=False)
    self.tck, self.degrees = (tx, ty, c), (kx, ky)
    self.fp = fnp.sum((w * (z - rows @ c)) ** 2)


@version_of(_scipy.bisplev)
def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """A surface (tx, ty, c, kx, ky) or its derivative on the grid of two vectors, as scipy.interpolate.bisplev."""
    tx, ty, c, kx, ky = tck
    for name, d, k in (("dx", dx, kx), ("dy", dy, ky)):
        if not 0 <= d < k:
            raise ValueError(f"0 <= {name} = {d} < k{name[1]} = {k} must hold")
    x, y = fnp.atleast_1d(reals(x)), fnp.atleast_1d(reals(y, "y"))
    if len(shape_of(x)) != 1 or len(shape_of(y)) != 1:
        raise ValueError("First two entries should be rank-1 arrays.")
    require(fnp.diff(x) >= 0, "Invalid input data")
    require(fnp.diff(y) >= 0, "Invalid input data")
    out = _surface_values((reals(tx), reals(ty), c), (kx, ky), x, y, dx, dy, True)
    if shape_of(out)[0] > 1:
        return out
    return out[0] if shape_of(out)[1] > 1 else out[0, 0]


_SURFACE_INSTEAD = "It chooses knots to a tolerance. Use RectBivariateSpline (s=0) or LSQBivariateSpline."


@version_of(_scipy.bisplrep)
def bisplrep(
    x: Any, y: Any, z: Any, w: Any = None, xb: Any = None, xe: Any = None, yb: Any = None, ye: Any = None, kx: int = 3,
    ky: int = 3, task: int = 0, s: Any = None, eps: float = 1e-16, tx: Any = None, ty: Any = None, full_output: int = 0,
    nxest: Any = None, nyest: Any = None, quiet: int = 1,
) -> Any:  # fmt: skip
    """The least-squares surface with given knots (task=-1), as scipy.interpolate.bisplrep; does not smooth."""
    if task != -1:
        raise refuse("scipy.interpolate.bisplrep with task=0 or 1", _SURFACE_INSTEAD)
    if tx is None:
        raise TypeError("Knots_x must be given for task=-1")
    tx, ty = reals(tx), reals(ty)
    inner = tx[kx + 1 : shape_of(tx)[0] - kx - 1], ty[ky + 1 : shape_of(ty)[0] - ky - 1]
    made = _scipy.LSQBivariateSpline(x, y, z, *inner, w=w, bbox=[xb, xe, yb, ye], kx=kx, ky=ky)
    tck = [*made.tck, kx, ky]
    return (tck, made.fp, 0, "") if full_output else tck


def SmoothBivariateSpline___init__(self: Any, *args: Any, **kwargs: Any) -> None:
    """Raises an error for traced data."""
    raise refuse("scipy.interpolate.SmoothBivariateSpline", _SURFACE_INSTEAD)
