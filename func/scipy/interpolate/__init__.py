"""scipy.interpolate on traced and plain arrays: interpolators, splines and piecewise polynomials.

Interpolators are objects of SciPy's classes that store traced nodes and coefficients. SciPy's own Python code checks
data, makes objects and derives others from them. func has versions of the parts that are compiled or decide by values.

Values differentiate in the data, in the nodes or knots and in the query points. The interval of a point, the nearest
point and a triangulation depend on numbers alone, and have no derivative. At a breakpoint the derivative is that of the
piece that SciPy evaluates there.

>>> import numpy as np, func
>>> from scipy.interpolate import CubicSpline
>>> spline = CubicSpline(np.arange(5.0), np.arange(5.0) ** 2)
>>> func.grad(spline)(1.5).round(6)
np.float64(3.0)
"""

from __future__ import annotations

import scipy.interpolate as _scipy

from func.host.scipy_hooks import entries, target_names
from func.host.scipy_table import TABLE
from func.scipy.interpolate import (
    bsplines,
    cubic,
    fitpack_curves,
    fits,
    gridded,
    one_variable,
    piecewise,
    scattered,
    through_points,
)
from func.scipy.kinds.public_modules import public_module as _public_module

_MODULES = (bsplines, cubic, fitpack_curves, fits, gridded, one_variable, piecewise, scattered, through_points)
globals().update(
    {name: value for module in _MODULES for name, value in vars(module).items() if name in target_names(_scipy)}
)
"""Targets of hooks: `Class_method` for a method of a class of SciPy, `_module_function` for a private function."""

_HOOKED = {row.lstrip("~=").partition(".")[0] for row in entries(_scipy, TABLE["scipy.interpolate"])}
__all__ = [name for name in _scipy.__all__ if name in _HOOKED]

__getattr__, __dir__ = _public_module(globals(), _scipy)
