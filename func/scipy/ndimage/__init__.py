"""scipy.ndimage on traced and plain arrays: filters, morphology, interpolation, Fourier filters and measurements.

Every function gathers elements, extended at the borders by the mode, and adds them up with weights, or chooses among
them. Derivatives are those of what SciPy computes: in double precision, converted to the dtype of the output.

- Linear filters and Fourier filters differentiate in the input, the weights and the widths.
- Interpolation differentiates in the input and in the coordinates, matrices, offsets and shifts. At the knots of
  splines of order 1 the derivative is that of the interval to the right; with order 0 it is zero.
- Filters and measurements that choose (maximum, rank, median, grey morphology) hand the derivative to the element that
  was chosen; equal maxima share it.
- Labels and positions are integers without a derivative. Distances and binary morphology are SciPy's, of plain arrays.
"""

from __future__ import annotations

from typing import Any

import scipy.ndimage as _scipy

from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.scipy.ndimage.linear_filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from func.scipy.ndimage.fourier import fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform
from func.scipy.ndimage.splines import (
    affine_transform,
    geometric_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from func.scipy.ndimage.measurements import extrema, label, maximum, maximum_position, median, minimum, minimum_position
from func.scipy.ndimage.ranks import (
    generic_filter,
    generic_filter1d,
    generic_gradient_magnitude,
    generic_laplace,
    grey_dilation,
    grey_erosion,
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "extrema", "fourier_ellipsoid",
    "fourier_gaussian", "fourier_shift", "fourier_uniform", "gaussian_filter", "gaussian_filter1d", "generic_filter",
    "generic_filter1d", "generic_gradient_magnitude", "generic_laplace", "geometric_transform", "grey_dilation",
    "grey_erosion", "label", "map_coordinates", "maximum", "maximum_filter", "maximum_filter1d", "maximum_position",
    "median", "median_filter", "minimum", "minimum_filter", "minimum_filter1d", "minimum_position", "percentile_filter",
    "prewitt", "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d", "uniform_filter",
    "uniform_filter1d", "zoom",
]  # fmt: skip


@_without_engine_frames
def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals(), _scipy.__all__)
