"""scipy.ndimage on traced and plain arrays: filters, morphology, interpolation, Fourier filters and measurements.

SciPy's Python code runs on traced values; the compiled functions that it calls have versions here. They gather
elements, extended at the borders by the mode, and choose among them or sum them with weights. Derivatives are those of
SciPy's computation: in double precision, converted to the dtype of the output.

- Linear filters and Fourier filters differentiate in the input, the weights and the widths.
- Interpolation differentiates in the input and in the coordinates, matrices, offsets and shifts. At the knots of
  splines of order 1 the derivative is that of the interval to the right; with order 0 it is zero.
- Filters and measurements that choose (maximum, rank, median, grey morphology) pass the derivative to the chosen
  element; equal maxima share it.
- Labels and positions are integers without a derivative. Distances and binary morphology are SciPy's, of plain arrays.
"""

from __future__ import annotations

import scipy.ndimage as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.ndimage import compiled_filters as _compiled_filters
from func.scipy.ndimage import splines as _splines
from func.scipy.ndimage.linear_filters import gaussian_filter, gaussian_filter1d, generic_gradient_magnitude
from func.scipy.ndimage.measurements import extrema, label, maximum, maximum_position, median, minimum, minimum_position
from func.scipy.ndimage.splines import (
    affine_transform,
    geometric_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    uniform_filter1d,
    zoom,
)

__all__ = [
    "affine_transform", "extrema", "gaussian_filter", "gaussian_filter1d", "generic_gradient_magnitude",
    "geometric_transform", "label", "map_coordinates", "maximum", "maximum_position", "median", "minimum",
    "minimum_position", "rotate", "shift", "spline_filter", "spline_filter1d", "uniform_filter1d", "zoom",
]  # fmt: skip
_BEHIND = ("_nd_image_", "_filters_", "_rank_filter_1d_")
"""The beginnings of the names of versions of SciPy's compiled and private functions."""
for _module in (_compiled_filters, _splines):
    globals().update({name: value for name, value in vars(_module).items() if name.startswith(_BEHIND)})

__getattr__, __dir__ = _public_module(globals(), _scipy)
