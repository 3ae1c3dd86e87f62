"""The compiled functions behind SciPy's piecewise polynomials, on traced values.

searchsorted finds the interval of a point, an integer without a derivative. Horner's scheme sums the gathered
coefficients of the interval. At a breakpoint the derivative is that of the piece to its right, as the value is in
SciPy. The last breakpoint belongs to the last piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, shape_of
from func.scipy.interpolate.data_arguments import (
    array_attribute,
    column,
    coordinates,
    is_never,
    nan_where,
    numbers,
    order_of,
    picked,
    queries,
    reals,
    shaped,
    stored,
    write,
)


def intervals(x: Array, points: Array) -> Array:
    """The interval of each point, in breakpoints that rise or fall."""
    n = shape_of(x)[0]
    sign = fnp.where(x[n - 1] >= x[0], 1.0, -1.0)
    return fnp.clip(fnp.searchsorted(sign * x, sign * points, side="right") - 1, 0, n - 2)


def is_outside(x: Array, points: Array) -> Array:
    """Whether points lie outside all intervals; NaN does."""
    first, last = x[0], x[shape_of(x)[0] - 1]
    inside = (fnp.minimum(first, last) <= points) & (points <= fnp.maximum(first, last))
    return fnp.logical_not(inside)


def falling(k: int, nu: int) -> float:
    """k (k - 1) … (k - nu + 1), the factor of a power's nu-th derivative."""
    out = 1.0
    for i in range(nu):
        out *= k - i
    return out


def horner(c: Array, s: Array, h: Array, nu: int) -> Array:
    """The nu-th derivative of polynomials with coefficients (k, n, …), the highest power first, at s (n,)."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    s = column(s, len(shape_of(c)) - 1)
    out: Array = c[0] * falling(k - 1, nu)
    for i in range(1, k - nu):
        out = out * s + c[i] * falling(k - 1 - i, nu)
    return out


def bernstein(c: Array, s: Array, h: Array, nu: int) -> Array:
    """The nu-th derivative of polynomials in the Bernstein basis (k, n, …) on intervals of length h, at s in [0, h]."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    rank = len(shape_of(c)) - 1
    s, h = column(s / h, rank), column(h, rank)
    rows = [c[i] for i in range(k)]
    for i in range(nu):
        rows = [(b - a) * ((k - 1 - i) / h) for a, b in itertools.pairwise(rows)]
    while len(rows) > 1:
        rows = [a * (1.0 - s) + b * s for a, b in itertools.pairwise(rows)]
    return rows[0]


def PPoly___call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Array:
    """The value, or a derivative, of an object of either basis."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    points, shape = queries(x)
    c, breaks = stored(self, "c"), stored(self, "x")
    if extrapolate == "periodic":
        start, end = breaks[0], breaks[shape_of(breaks)[0] - 1]
        points, extrapolate = start + fnp.remainder(points - start, end - start), False
    place = intervals(breaks, points)
    start = fnp.take(breaks, place)
    local = bernstein if isinstance(self, _scipy.BPoly) else horner
    pieces = fnp.take(c, place, axis=1)
    out = local(pieces, points - start, fnp.take(breaks, place + 1) - start, order_of(nu))
    lost = fnp.isnan(points) if extrapolate else is_outside(breaks, points)
    if not is_never(lost):
        out = nan_where(lost, out)
    return shaped(out, shape, self.axis)


BPoly___call__ = PPoly___call__
PPoly_c = BPoly_c = array_attribute("c")
PPoly_x = BPoly_x = array_attribute("x")


def _ppoly_fix_continuity(c: Any, x: Any, order: int) -> None:
    """Make derivatives up to an order continuous: pieces get the Taylor coefficients of those to their left."""
    rows = [resolved(c)[i] for i in range(shape_of(c)[0])]
    h = column(fnp.diff(resolved(x)), len(shape_of(rows[0])))
    k = len(rows) - 1
    for power in range(min(order, k), -1, -1):
        step: Any = sum([rows[k - j] * (comb(j, power) * h ** (j - power)) for j in range(power + 1, k + 1)], 0.0 * h)
        first = rows[k - power][:1]
        rows[k - power] = fnp.concatenate([first, first + fnp.cumsum(step[:-1], axis=0)])
    write(c, fnp.stack(rows))


def PPoly_integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Array:
    """The integral from a to b, differentiable in both; SciPy's code asks which limit is larger."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    a, b = reals(a), reals(b)
    if shape_of(a) or shape_of(b):
        raise ValueError(f"the limits of an integral must be numbers, got shapes {shape_of(a)} and {shape_of(b)}")
    primitive = self.antiderivative()
    primitive.axis = 0
    if extrapolate != "periodic":
        ends = primitive(fnp.stack([a, b]), extrapolate=bool(extrapolate))
        return ends[1] - ends[0]
    x = stored(self, "x")
    start, end = x[0], x[shape_of(x)[0] - 1]
    period = end - start
    points = fnp.stack([a, b, start, end])
    turns = fnp.floor((points[:2] - start) / period)
    ends = primitive(fnp.concatenate([points[:2] - turns * period, points[2:]]), extrapolate=True)
    return ends[1] - ends[0] + (turns[1] - turns[0]) * (ends[3] - ends[2])


BPoly_integrate = PPoly_integrate


def PPoly_solve(self: Any, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
    """The points where the value is y; they differentiate by the implicit function theorem.

    Where a jump crosses y, and where a whole piece equals y, the point is a breakpoint.
    """
    y = reals(y, "y")
    if extrapolate is None:
        extrapolate = self.extrapolate
    c, x = stored(self, "c"), stored(self, "x")
    what = "the number of roots of a piecewise polynomial"
    values = [numbers(v, what) for v in (c, x, y)]
    plain = _scipy.PPoly(values[0], values[1], extrapolate if extrapolate != "periodic" else True)
    found = scipy_hooks.original(_scipy.PPoly.solve)(plain, float(values[2]), discontinuity, bool(extrapolate))
    if len(shape_of(c)) == 2:
        return _refined(c, x, y, found, values)
    out = np.empty(found.shape, object)
    for index in np.ndindex(found.shape):
        out[index] = _refined(c[(..., *index)], x, y, found[index], [values[0][(..., *index)], *values[1:]])
    return out


def _refined(c: Array, x: Array, y: Array, found: Any, values: Sequence[Any]) -> Array:
    """Roots with the derivative of the implicit equation, or of the breakpoint at which they lie.

    Each Newton step from the root doubles the number of correct orders of the derivatives.
    """
    plain = _scipy.PPoly.construct_fast(values[0], values[1])
    breaks = values[1]
    rising = breaks[-1] >= breaks[0]
    roots = []
    for root in found.tolist():
        if np.isnan(root):
            roots.append(fnp.asarray(np.nan))
            continue
        at_break = np.flatnonzero(breaks == root)
        slope, scale = float(plain(root, 1)), float(np.max(np.abs(values[0]), initial=1.0))
        residual = abs(float(plain(root)) - float(values[2]))
        if at_break.size and (slope == 0.0 or residual > 1e-9 * scale):
            roots.append(x[int(at_break[0])])
            continue
        ordered = breaks if rising else -breaks
        place = int(np.clip(np.searchsorted(ordered, root if rising else -root, "right") - 1, 0, len(breaks) - 2))
        piece, r = c[:, place : place + 1], fnp.asarray(root)
        for _ in range(2):
            s = fnp.reshape(r - x[place], (1,))
            r = r - ((horner(piece, s, s, 0) - y) / horner(piece, s, s, 1))[0]
        roots.append(r)
    return fnp.stack(roots) if roots else found


def _ppoly_evaluate_nd(
    c: Any, breaks: Sequence[Any], sizes: Any, points: Any, orders: Any, extrapolate: bool, out: Any
) -> None:
    """Polynomials of several variables with coefficients (powers, intervals, n), each of all variables, at points."""
    breaks, points = [resolved(x) for x in breaks], resolved(points)
    if any([n < 0 for n in np.asarray(orders)]):
        raise ValueError("derivatives must be positive")
    ndim = len(breaks)
    c = fnp.reshape(resolved(c), (*np.asarray(sizes), *[shape_of(x)[0] - 1 for x in breaks], -1))
    places = [intervals(x, points[:, i]) for i, x in enumerate(breaks)]
    order = [*range(ndim, 2 * ndim), *range(ndim), 2 * ndim]
    values = fnp.moveaxis(picked(fnp.transpose(c, order), *places), 0, ndim)
    lost = fnp.isnan(points[:, 0])
    for i, x in enumerate(breaks):
        own = points[:, i]
        values = _horner_nd(values, own - fnp.take(x, places[i]), int(orders[i]), ndim - 1 - i)
        lost = lost | (fnp.isnan(own) if extrapolate else is_outside(x, own))
    write(out, nan_where(lost, values))


def _horner_nd(c: Array, s: Array, nu: int, inner: int) -> Array:
    """Horner's scheme along the first axis of coefficients whose points are the axis after `inner` others."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    s = fnp.reshape(s, (1,) * inner + (-1,) + (1,) * (len(shape_of(c)) - 2 - inner))
    out: Array = c[0] * falling(k - 1, nu)
    for i in range(1, k - nu):
        out = out * s + c[i] * falling(k - 1 - i, nu)
    return out


_interpolate__ndim_coords_from_arrays = _rgi__ndim_coords_from_arrays = _ndgriddata__ndim_coords_from_arrays = (
    coordinates
)
