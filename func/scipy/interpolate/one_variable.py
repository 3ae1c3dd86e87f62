"""interp1d with traced data: SciPy's object, evaluated by gathered neighbours.

Points outside the nodes raise an error with `bounds_error`. In traced code, where they are unknown, they get the fill
value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, dtype_of, shape_of
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.bsplines import BSpline___call__
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    holds,
    is_never,
    is_traced,
    shaped,
)
from func.scipy.interpolate.fits import make_interp_spline
from func.scipy.kinds.traces import in_original, numpy_with, traces


def _spline_of(x: Array, y: Array, k: int, check_finite: bool) -> Any:
    """The spline through data, whose coefficients are all NaN where a value is."""
    missing = fnp.any(fnp.isnan(y))
    if k < 2 or is_never(missing):
        return make_interp_spline(x, y, k=k, check_finite=check_finite)
    made = make_interp_spline(x, fnp.where(missing, 1.0, y), k=k, check_finite=check_finite)
    return _scipy.BSpline.construct_fast(made.t, fnp.where(missing, np.nan, made.c), k, made.extrapolate, made.axis)


interp1d___init__ = traces(
    _scipy.interp1d.__init__,
    make_interp_spline=_spline_of,
    np=numpy_with(
        take=fnp.take,
        isnan=lambda x: np.zeros(np.shape(x), bool) if is_traced(x) else np.isnan(x),
        nextafter=lambda x, toward: x if is_traced(x) else np.nextafter(x, toward),
    ),
)


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
        nodes = resolved(self.x)
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
    x, y, kind = resolved(self.x), resolved(self._y), self._kind
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
    """Evaluation at traced points of interp1d, and of the SciPy classes that inherit this method."""
    return _interp1d_values(self, x) if isinstance(self, _scipy.interp1d) else in_original(_CALL, self, x)


_CALL = _scipy.interp1d.__call__
