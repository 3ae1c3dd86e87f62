"""Splines in the B-spline basis with traced coefficients, knots and arguments, of one and of several variables."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.interpreters.core import Array, known_value, operand, shape_of
from func.scipy.interpolate.basis import full, integrated, spline_values, tensor_values
from func.scipy.interpolate.data_arguments import (
    array_attribute,
    floats,
    nan_where,
    numbers,
    order_of,
    queries,
    reals,
    refuse,
    shaped,
    stored,
)
from func.scipy.kinds.traces import as_float, numpy_with, traces

_MODULE: Any = sys.modules[inspect.unwrap(_scipy.make_interp_spline).__module__]
_ND_MODULE: Any = sys.modules[_scipy.NdBSpline.__module__]


def _different(x: Any) -> Any:
    """The distinct numbers of an array, or all of them if they are unknown."""
    known = known_value(operand(x))
    return x if known is None else np.unique(known)


_LENIENT = numpy_with(unique=_different)
"""For SciPy's check that a spline has two different knots."""

BSpline___init__ = traces(_scipy.BSpline.__init__, np=_LENIENT)
_bsplines__BSpline___init__ = traces(getattr(_MODULE, "_BSpline", _scipy.BSpline).__init__, np=_LENIENT)
BSpline_t, BSpline_c = array_attribute("t"), array_attribute("c")


def BSpline___call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
    """The value, or a derivative, at points."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    points, shape = queries(x)
    t, c, k = stored(self, "t"), stored(self, "c"), self.k
    n = shape_of(t)[0] - k - 1
    if extrapolate == "periodic":
        points, extrapolate = t[k] + fnp.remainder(points - t[k], t[n] - t[k]), True
    out = spline_values(t, c, k, points, order_of(nu))
    if not extrapolate:
        out = nan_where(fnp.logical_not((t[k] <= points) & (points <= t[n])), out)
    return shaped(out, shape, self.axis)


def BSpline_integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """The integral from a to b, differentiable in both; SciPy's code asks which limit is larger."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    a, b = reals(a), reals(b)
    if shape_of(a) or shape_of(b):
        raise ValueError(f"the limits of an integral must be numbers, got shapes {shape_of(a)} and {shape_of(b)}")
    t, c, k = stored(self, "t"), stored(self, "c"), self.k
    n = shape_of(t)[0] - k - 1
    made = integrated(t, full(t, c), k, 1)
    start, end = t[k], t[n]
    limits = fnp.stack([a, b])
    if extrapolate == "periodic":
        turns = fnp.floor((limits - start) / (end - start))
        points = fnp.concatenate([limits - turns * (end - start), fnp.stack([start, end])])
        values = spline_values(*made, points)
        return values[1] - values[0] + (turns[1] - turns[0]) * (values[3] - values[2])
    if not extrapolate:
        limits = fnp.where(limits >= start, limits, start)
        limits = fnp.where(limits <= end, limits, end)
    values = spline_values(*made, limits)
    return values[1] - values[0]


BSpline_insert_knot = traces(_scipy.BSpline.insert_knot, float=as_float)
_bsplines__insert = traces(_MODULE._insert, float=as_float)
_bsplines__BSpline_insert_knot = traces(getattr(_MODULE, "_BSpline", _scipy.BSpline).insert_knot, float=as_float)


def _dierckx_find_interval(t: Any, k: int, x: Any, last: int, extrapolate: bool) -> int:
    """The number of the interval that gets another knot."""
    what = "the place of a new knot"
    knots, place = numbers(t, what), float(numbers(x, what))
    n = len(knots) - k - 1
    if not extrapolate and not knots[k] <= place <= knots[n]:
        return -1
    return int(np.clip(np.searchsorted(knots, place, "right") - 1, k, n - 1))


def BSpline_from_power_basis(cls: Any, pp: Any, bc_type: str = "not-a-knot") -> Any:
    """The spline that equals a traced CubicSpline.

    It has the same values at the nodes, and satisfies the boundary condition at the ends.
    """
    if not isinstance(pp, _scipy.CubicSpline):
        raise NotImplementedError(f"Only CubicSpline objects are accepted for now. Got {type(pp)} instead.")
    if bc_type not in ("not-a-knot", "natural", "clamped", "periodic"):
        raise TypeError(f"Unknown boundary condition: {bc_type}")
    if len(shape_of(pp.c)) > 2:
        raise refuse("BSpline.from_power_basis of several curves", "Call it for each of them.")
    x = pp.x
    y = pp(x)
    condition: Any = bc_type
    if bc_type in ("natural", "clamped"):
        condition = ([(1, pp(x[0], 1))], [(1, pp(x[shape_of(x)[0] - 1], 1))])
    made = _scipy.make_interp_spline(x, y, 3, bc_type=condition)
    return _scipy.BSpline.construct_fast(made.t, made.c, 3, pp.extrapolate, pp.axis)


def BSpline_design_matrix(cls: Any, x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
    """Raises an error: a sparse matrix holds plain numbers."""
    raise refuse(
        "scipy.interpolate.BSpline.design_matrix",
        "Write BSpline(t, np.eye(len(t) - k - 1), k)(x), which is the matrix as an array.",
    )


_ndbspline__preprocess_inputs = traces(_ND_MODULE._preprocess_inputs, np=_LENIENT)


def NdBSpline__bspline_derivative_along_axis(
    self: Any, c: Array, t: Array, k: int, axis: int, nu: int = 1
) -> tuple[Array, Array]:
    """Coefficients and knots of a derivative in one variable; SciPy's makes a spline of each line."""
    inner = fnp.moveaxis(c, axis, 0)
    if nu > k:
        return fnp.moveaxis(fnp.zeros_like(inner, shape=(shape_of(t)[0] - 1, *shape_of(inner)[1:])), 0, axis), t
    made = _scipy.BSpline.construct_fast(t, inner, k).derivative(nu)
    return fnp.moveaxis(made.c[: shape_of(made.t)[0] - made.k - 1], 0, axis), made.t


def NdBSpline_design_matrix(cls: Any, xvals: Any, t: Any, k: Any, extrapolate: Any = True) -> Any:
    """Raises an error: a sparse matrix holds plain numbers."""
    raise refuse("scipy.interpolate.NdBSpline.design_matrix", "Evaluate an NdBSpline of unit coefficients.")


def _orders(nu: Any, ndim: int) -> list[int]:
    orders = np.asarray(nu, np.int64)
    if orders.ndim != 1 or len(orders) != ndim:
        raise ValueError(f"invalid number of derivative orders nu = {nu!r} for ndim = {ndim}.")
    if (orders < 0).any():
        raise ValueError(f"derivatives must be positive, got nu = {nu!r}")
    return [int(order) for order in orders]


def NdBSpline___call__(self: Any, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
    """The value, or a derivative, at points."""
    extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
    knots, degrees, c = [reals(t) for t in self.t], [int(k) for k in self.k], floats(self.c)
    ndim = len(knots)
    orders = [0] * ndim if nu is None else _orders(nu, ndim)
    xi = reals(xi, "xi")
    shape = shape_of(xi)
    if shape[-1] != ndim:
        raise ValueError(f"Shapes: xi.shape={shape} and ndim={ndim}")
    points = fnp.reshape(xi, (-1, ndim))
    out = tensor_values(knots, c, degrees, [points[:, d] for d in range(ndim)], orders)
    lost = fnp.any(fnp.isnan(points), axis=1)
    if not extrapolate:
        for d, (t, k) in enumerate(zip(knots, degrees, strict=True)):
            x, n = points[:, d], shape_of(t)[0] - k - 1
            lost = lost | fnp.logical_not((t[k] <= x) & (x <= t[n]))
    return fnp.reshape(nan_where(lost, out), (*shape[:-1], *shape_of(c)[ndim:]))
