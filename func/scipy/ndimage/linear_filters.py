"""Linear filters: the input, extended at its borders, correlated with weights.

A result is linear in the input and in the weights, and differentiable in both. `sigma` of the Gaussian filters may be
traced too; how many elements a kernel has does not depend on it smoothly, and counts as a constant.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func.interpreters.core import Array, known_value, operand
from func.interpreters.primitives.structural.filters import correlate_windows
from func.scipy.ndimage.borders import (
    array_of,
    axes_of,
    delivered,
    extended,
    extended_axes,
    extension_of,
    in_double,
    normalized_axis,
    refuse_real_output,
    sequence_of,
    version_of,
)


def _weights(weights: Any) -> Array:
    return in_double(fnp.asarray(weights))


def _refuse_complex_value(cval: Any, x: Array) -> None:
    if x.dtype.kind != "c" and np.iscomplexobj(cval):
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")


def _line(x: Array, w: Array, axis: int, mode: str, cval: Any, origin: int) -> Array:
    """Correlation along an axis, in double precision."""
    size = w.shape[0]
    before = size // 2 + origin
    wide = extended(in_double(x), axis, before, size - 1 - before, extension_of(mode), cval)
    if 0 in x.shape:
        return wide
    return correlate_windows(operand(wide), operand(w), axes=(axis,), stack=0)


def _is_origin(origin: int, size: int) -> bool:
    return -(size // 2) <= origin <= (size - 1) // 2


@version_of(_scipy.correlate1d)
def correlate1d(
    input: Array,
    weights: Array,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """Correlation along an axis, as scipy.ndimage.correlate1d; complex weights are conjugated.

    >>> import numpy as np, func
    >>> func.grad(lambda x: func.scipy.ndimage.correlate1d(x, [1.0, 2.0, 4.0])[1])(np.ones(4))
    array([1., 2., 4., 0.])
    """
    x, w = array_of(input), fnp.conj(_weights(weights))
    if w.ndim != 1 or w.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    axis = normalized_axis(axis, x.ndim)
    if not _is_origin(origin, w.shape[0]):
        raise ValueError("Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= (len(weights)-1) // 2")
    is_complex = "c" in (x.dtype.kind, w.dtype.kind)
    _refuse_complex_value(cval, x)
    return delivered(_line(x, w, axis, mode, cval, origin), output, x, is_complex)


@version_of(_scipy.convolve1d)
def convolve1d(
    input: Array,
    weights: Array,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """Convolution along an axis, as scipy.ndimage.convolve1d."""
    w = fnp.conj(fnp.flip(fnp.asarray(weights), 0))
    return correlate1d(input, w, axis, output, mode, cval, -origin - (1 if w.shape[0] % 2 == 0 else 0))


def _grid(
    input: Any, weights: Any, output: Any, mode: str, cval: Any, origin: Any, convolves: bool, axes: Any
) -> Array:
    """Correlation or convolution over several axes."""
    x, w = array_of(input), _weights(weights)
    is_complex = "c" in (x.dtype.kind, w.dtype.kind)
    _refuse_complex_value(cval, x)
    chosen = axes_of(axes, x.ndim)
    if len(chosen) < x.ndim and w.ndim != len(chosen):
        raise RuntimeError(f"weights.ndim ({w.ndim}) must match len(axes) ({len(chosen)})")
    if len([n for n in w.shape if n > 0]) != len(chosen):
        raise RuntimeError(f"weights.ndim ({w.ndim}) must match len(axes) ({len(chosen)})")
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported")
    # weights of fewer axes than the input lie on the chosen ones in the order of the input's axes
    places = sorted(chosen)
    origins = sequence_of(origin, len(chosen))
    origin_of = dict(zip(chosen if len(chosen) < x.ndim else places, origins, strict=True))
    w = fnp.flip(w) if convolves else fnp.conj(w)
    widths = [(0, 0)] * x.ndim
    for axis, size in zip(places, w.shape, strict=True):
        start = -origin_of[axis] - (1 if size % 2 == 0 else 0) if convolves else origin_of[axis]
        if not _is_origin(start, size):
            raise ValueError(
                "Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= (weights.shape[k]-1) // 2"
            )
        widths[axis] = (size // 2 + start, size - 1 - size // 2 - start)
    wide = extended_axes(in_double(x), widths, [mode] * x.ndim, cval)
    out = wide if 0 in x.shape else correlate_windows(operand(wide), operand(w), axes=tuple(places), stack=0)
    return delivered(out, output, x, is_complex)


@version_of(_scipy.correlate)
def correlate(
    input: Array,
    weights: Array,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """Correlation over axes, as scipy.ndimage.correlate."""
    return _grid(input, weights, output, mode, cval, origin, False, axes)


@version_of(_scipy.convolve)
def convolve(
    input: Array,
    weights: Array,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """Convolution over axes, as scipy.ndimage.convolve."""
    return _grid(input, weights, output, mode, cval, origin, True, axes)


def _gaussian(sigma: Any, order: int, radius: int) -> Array:
    """A Gaussian on -radius … radius whose sum is one, or its derivative of an order.

    The derivatives are q(x) exp(-x² / 2σ²), and q' - q x / σ² is the polynomial of the next one.
    """
    if order < 0:
        raise ValueError("order must be non-negative")
    x = np.arange(-radius, radius + 1)
    variance = sigma * sigma
    phi = fnp.exp(-0.5 / variance * x**2)
    phi = phi / fnp.sum(phi)
    polynomial: list[Any] = [1.0]
    for _ in range(order):
        derivative = [*[k * q for k, q in enumerate(polynomial)][1:], 0.0, 0.0]
        product = [0.0, *[q / -variance for q in polynomial]]
        polynomial = [a + b for a, b in zip(derivative, product, strict=True)]
    if order == 0:
        return phi
    return sum([q * x.astype(float) ** k for k, q in enumerate(polynomial)], np.zeros(1)) * phi


def _radius(sigma: Any, truncate: Any, radius: Any) -> int:
    count = int(fnp.astype(fnp.asarray(truncate * sigma + 0.5), np.dtype(int))) if radius is None else radius
    if not isinstance(count, numbers.Integral) or count < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    return int(count)


@version_of(_scipy.gaussian_filter1d)
def gaussian_filter1d(
    input: Array,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """A Gaussian filter along an axis, as scipy.ndimage.gaussian_filter1d.

    Where `sigma` is traced by `jit` it must come with a `radius`, which the shape of the kernel depends on.
    """
    sigma = fnp.asarray(sigma)[()] if not isinstance(sigma, (int, float)) else sigma
    weights = fnp.flip(_gaussian(sigma, order, _radius(sigma, truncate, radius)))
    return correlate1d(input, weights, axis, output, mode, cval, 0)


def _is_wide(sigma: Any) -> bool:
    """Whether a filter does something: SciPy leaves out those of a width of zero."""
    return known_value(operand(sigma)) is None or bool(sigma > 1e-15)


@version_of(_scipy.gaussian_filter)
def gaussian_filter(
    input: Array,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Array:
    """A Gaussian filter over axes, one after the other, as scipy.ndimage.gaussian_filter.

    >>> import numpy as np, func
    >>> x = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> func.grad(lambda sigma: func.scipy.ndimage.gaussian_filter(x, sigma)[2])(1.0).round(4)
    np.float64(-0.3989)
    """
    x = array_of(input)
    refuse_real_output(output, x)
    chosen = axes_of(axes, x.ndim)
    rank = len(chosen)
    entries = zip(
        chosen,
        sequence_of(sigma, rank),
        sequence_of(order, rank),
        sequence_of(mode, rank),
        sequence_of(radius, rank),
        strict=True,
    )
    is_complex = x.dtype.kind == "c"
    for axis, width, degree, border, reach in entries:
        if _is_wide(width):
            x = delivered(x, output if isinstance(output, (type, np.dtype, str)) else None, x, is_complex)
            x = gaussian_filter1d(x, width, axis, degree, None, border, cval, truncate, radius=reach)
    return delivered(x, output, array_of(input), is_complex)


@version_of(_scipy.uniform_filter1d)
def uniform_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The mean of neighbours along an axis, as scipy.ndimage.uniform_filter1d."""
    x = array_of(input)
    axis = normalized_axis(axis, x.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    if not 0 <= size // 2 + origin < size:
        raise ValueError("invalid origin")
    if x.dtype.kind != "c":
        cval = fnp.real(cval)
    out = _line(x, np.full(size, 1.0), axis, mode, cval, origin) / size
    return delivered(out, output, x, x.dtype.kind == "c")


@version_of(_scipy.uniform_filter)
def uniform_filter(
    input: Array,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The mean of neighbours over axes, as scipy.ndimage.uniform_filter."""
    x = array_of(input)
    chosen = axes_of(axes, x.ndim)
    rank = len(chosen)
    entries = [sequence_of(value, rank) for value in (size, origin, mode)]
    dtype = output if isinstance(output, (type, np.dtype, str)) else None
    for axis, length, start, border in zip(chosen, *entries, strict=True):
        if length > 1:
            x = uniform_filter1d(x, int(length), axis, dtype, border, cval, start)
    return delivered(x, output, array_of(input), x.dtype.kind == "c")


def _across(
    input: Any, center: Sequence[float], side: Sequence[float], axis: int, output: Any, mode: Any, cval: Any
) -> Array:
    """A derivative along an axis, smoothed along the others."""
    x = array_of(input)
    refuse_real_output(output, x)
    axis = normalized_axis(axis, x.ndim)
    modes = sequence_of(mode, x.ndim)
    dtype = output if isinstance(output, (type, np.dtype, str)) else None
    out = correlate1d(x, center, axis, dtype, modes[axis], cval, 0)
    for other in range(x.ndim):
        if other != axis:
            out = correlate1d(out, side, other, None, modes[other], cval, 0)
    return delivered(out, output, x, x.dtype.kind == "c")


@version_of(_scipy.prewitt)
def prewitt(input: Array, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Array:
    """The Prewitt filter, as scipy.ndimage.prewitt."""
    return _across(input, [-1, 0, 1], [1, 1, 1], axis, output, mode, cval)


@version_of(_scipy.sobel)
def sobel(input: Array, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Array:
    """The Sobel filter, as scipy.ndimage.sobel."""
    return _across(input, [-1, 0, 1], [1, 2, 1], axis, output, mode, cval)
