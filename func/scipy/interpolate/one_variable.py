"""interp1d with traced data, and the hook of the method that calls it and the polynomials through points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, dtype_of, shape_of
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.bsplines import BSpline___call__
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    holds,
    is_made_of_traced,
    is_never,
    shaped,
)
from func.scipy.interpolate.fits import make_interp_spline
from func.scipy.interpolate.through_points import krogh_values
from func.scipy.kinds.versions import version_of

_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("linear", "nearest", "nearest-up", "previous", "next")


class interp1d(_scipy.interp1d):  # type: ignore[misc]
    """Interpolation along an axis, as scipy.interpolate.interp1d; differentiable in nodes, values and points.

    Points outside the nodes raise an error with `bounds_error`; where they are not known, in staged code, they get the
    fill value.
    """

    @version_of(_scipy.interp1d.__init__)
    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: Any = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        order = kind if isinstance(kind, int) else _ORDERS.get(kind)
        if order is None and kind not in _STEPS:
            raise NotImplementedError(f"{kind} is unsupported: Use fitpack routines for other types.")
        x, y = array_of(x), array_of(y)
        if len(shape_of(x)) != 1:
            raise ValueError("the x array must have exactly one dimension.")
        rank = len(shape_of(y))
        if rank == 0:
            raise ValueError("the y array must have at least one dimension.")
        if not -rank <= axis < rank:
            raise np.exceptions.AxisError(axis, rank)
        axis %= rank
        n = shape_of(x)[0]
        if shape_of(y)[axis] != n:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        if n < (1 if order is None else order + 1):
            raise ValueError(f"x and y arrays must have at least {1 if order is None else order + 1} entries")
        if not assume_sorted:
            place = fnp.argsort(x, kind="stable")
            x, y = fnp.take(x, place), fnp.take(y, place, axis=axis)
        if dtype_of(y).kind not in "fc":
            y = to_dtype(y, DOUBLE)
        self._y_axis, self._y_extra_shape = axis, shape_of(y)[:axis] + shape_of(y)[axis + 1 :]
        self.dtype = np.complex128 if dtype_of(y).kind == "c" else np.float64
        self.axis, self.copy, self.bounds_error = axis, copy, bounds_error
        self.x, self.y, self._kind = x, y, "spline" if order is not None else kind
        self._y = fnp.reshape(fnp.moveaxis(y, axis, 0), (n, -1))
        self._set_fill(fill_value)
        if order is not None:
            self._spline = self._made_spline(order)

    def _made_spline(self, order: int) -> Any:
        missing = fnp.any(fnp.isnan(self._y))
        if order < 2 or is_never(missing):
            return make_interp_spline(self.x, self._y, k=order, check_finite=False)
        made = make_interp_spline(self.x, fnp.where(missing, 1.0, self._y), k=order, check_finite=False)
        made._fill(made.t, fnp.where(missing, np.nan, made.c), made.k, made.extrapolate, made.axis)
        return made

    def _set_fill(self, fill_value: Any) -> None:
        extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        self._fill_value_orig = fill_value
        if extrapolates:
            if self.bounds_error:
                raise ValueError("Cannot extrapolate and raise at the same time.")
            self.bounds_error = False
            if self._kind not in ("previous", "next"):
                self._extrapolate = True
                return
            last = shape_of(self._y)[0] - 1
            fill_value = (np.nan, self._y[last]) if self._kind == "previous" else (self._y[0], np.nan)
            self._fill_value_below, self._fill_value_above = fill_value
            self._extrapolate = False
            return
        shape = self._y_extra_shape or (1,)
        pair = fill_value if isinstance(fill_value, tuple) and len(fill_value) == 2 else (fill_value, fill_value)
        names = ("fill_value (below)", "fill_value (above)") if pair is fill_value else ("fill_value",) * 2
        fills = []
        for value, name in zip(pair, names, strict=True):
            value = array_of(value)
            try:
                fits = np.broadcast_shapes(shape_of(value), shape) == shape
            except ValueError:
                fits = False
            if not fits:
                raise ValueError(
                    f"{name} argument must be able to broadcast up to shape {shape} but had shape {shape_of(value)}"
                )
            fills.append(fnp.reshape(fnp.broadcast_to(value, shape), (-1,)))
        self._fill_value_below, self._fill_value_above = fills
        self._extrapolate = False
        if self.bounds_error is None:
            self.bounds_error = True

    def __func_holds_traced__(self) -> bool:
        return is_made_of_traced(self, "x", "y", "_fill_value_below", "_fill_value_above")

    @version_of(_scipy.interp1d.__call__)
    def __call__(self, x: Any) -> Any:
        """Evaluate at points."""
        return _interp1d_values(self, x)


def _interp1d_values(self: Any, x: Any) -> Array:
    """Evaluation of SciPy's and func's interp1d at traced points."""
    x = array_of(x)
    if dtype_of(x).kind not in "fc":
        x = to_dtype(x, DOUBLE)
    if dtype_of(x).kind == "c":
        raise ValueError("`x` must contain real values.")
    shape, points = shape_of(x), fnp.reshape(x, (-1,))
    out = _inner_values(self, points)
    if not self._extrapolate:
        nodes = self.x
        below, above = points < nodes[0], points > nodes[shape_of(nodes)[0] - 1]
        for side, name, end in ((below, "below", "minimum"), (above, "above", "maximum")):
            if self.bounds_error and not holds(fnp.logical_not(side)):
                raise ValueError(f"A value in x_new is {name} the interpolation range's {end} value.")
        if not (is_never(below) and is_never(above)):
            dtype = dtype_of(out)
            below_fill, above_fill = [
                to_dtype(array_of(fill), dtype) for fill in (self._fill_value_below, self._fill_value_above)
            ]
            out = fnp.where(below[:, None], below_fill, out)
            out = fnp.where(above[:, None], above_fill, out)
    return shaped(fnp.reshape(out, (shape_of(out)[0], *self._y_extra_shape)), shape, self._y_axis)


def _inner_values(self: Any, points: Array) -> Array:
    x, y, kind = self.x, self._y, self._kind
    n = shape_of(x)[0]
    if kind == "spline":
        return BSpline___call__(self._spline, points)
    if kind == "linear":
        place = fnp.clip(fnp.searchsorted(x, points), 1, max(n - 1, 1))
        low, high = place - 1, fnp.minimum(place, n - 1)
        x_low, y_low = fnp.take(x, low), fnp.take(y, low, axis=0)
        width = fnp.take(x, high) - x_low
        if n == 1:
            return y_low + (points * 0.0)[:, None]
        slope = (fnp.take(y, high, axis=0) - y_low) / width[:, None]
        return slope * (points - x_low)[:, None] + y_low
    if kind in ("nearest", "nearest-up"):
        half = x / 2.0
        place = fnp.searchsorted(half[1:] + half[:-1], points, side="left" if kind == "nearest" else "right")
        return fnp.take(y, fnp.clip(place, 0, n - 1), axis=0)
    if kind == "previous":
        return fnp.take(y, fnp.clip(fnp.searchsorted(x, points, side="right"), 1, n) - 1, axis=0)
    return fnp.take(y, fnp.clip(fnp.searchsorted(x, points, side="left"), 0, n - 1), axis=0)


def interp1d___call__(self: Any, x: Any) -> Any:
    """Evaluation at traced points of the SciPy classes that inherit this method."""
    if isinstance(self, _scipy.interp1d):
        return _interp1d_values(self, x)
    if isinstance(self, _scipy.KroghInterpolator):
        return krogh_values(self, x)
    return scipy_hooks.original(_scipy.interp1d.__call__)(self, x)
