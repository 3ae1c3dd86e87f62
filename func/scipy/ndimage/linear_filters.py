"""Gaussian filters, whose `sigma` may be traced, and lengths of gradients.

The number of elements of a kernel is a constant.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, known_value, operand
from func.scipy.kinds.versions import version_of, version_with_callback
from func.scipy.ndimage.borders import array_of, delivered, ni_support, output_dtype, refuse_real_output


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

    A `sigma` that `jit` traces needs a `radius`, as the shape of the kernel depends on it.
    """
    sigma = fnp.asarray(sigma)[()] if not isinstance(sigma, (int, float)) else sigma
    weights = fnp.flip(_gaussian(sigma, order, _radius(sigma, truncate, radius)))
    return _scipy.correlate1d(input, weights, axis, output, mode, cval, 0)


def _is_wide(sigma: Any) -> bool:
    """Whether a filter has an effect: SciPy skips those of width zero."""
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
    chosen = ni_support._check_axes(axes, x.ndim)
    rank = len(chosen)
    entries = zip(
        chosen,
        ni_support._normalize_sequence(sigma, rank),
        ni_support._normalize_sequence(order, rank),
        ni_support._normalize_sequence(mode, rank),
        ni_support._normalize_sequence(radius, rank),
        strict=True,
    )
    is_complex = x.dtype.kind == "c"
    for axis, width, degree, border, reach in entries:
        if _is_wide(width):
            x = delivered(x, output if isinstance(output, (type, np.dtype, str)) else None, x, is_complex)
            x = gaussian_filter1d(x, width, axis, degree, None, border, cval, truncate, radius=reach)
    return delivered(x, output, array_of(input), is_complex)


@version_with_callback(_scipy.generic_gradient_magnitude)
def generic_gradient_magnitude(
    input: Array, derivative: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    extra_arguments: Any = (), extra_keywords: Any = None, *, axes: Any = None,
) -> Array:  # fmt: skip
    """The length of the gradient by a function of the caller, as scipy.ndimage.generic_gradient_magnitude.

    Where the gradient is zero, its length has derivative zero.
    """
    x = array_of(input)
    chosen = ni_support._check_axes(axes, x.ndim)
    modes, dtype = ni_support._normalize_sequence(mode, len(chosen)), output_dtype(output, x)
    terms: list[Any] = [
        resolved(derivative(x, axis, dtype, border, cval, *extra_arguments, **(extra_keywords or {})))
        for axis, border in zip(chosen, modes, strict=True)
    ]
    if not terms:
        return delivered(x, output, x)
    square: Any = sum([t * t for t in terms[1:]], terms[0] * terms[0])
    is_zero = square == 0
    length = fnp.where(is_zero, 0.0, fnp.sqrt(fnp.where(is_zero, 1.0, square)))
    return delivered(fnp.astype(length, square.dtype), output, x)
