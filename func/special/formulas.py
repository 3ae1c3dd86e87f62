"""Functions of scipy.special that are formulas of others, or have special options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core import Array, Tracer, dtype_of, operand
from func.interpreters.primitives.elementwise.table import (
    absolute,
    cos,
    equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    real,
    rint,
    sin,
)
from func.interpreters.primitives.special import derivative_families, integrals
from func.interpreters.primitives.special.error_functions import wofz
from func.interpreters.primitives.structural.shapes import convert, full_like, where
from func.numpy.argument_checks import scalar_of
from func.special.protocol import implements_scipy

__all__ = ["diric", "lambertw", "radian", "sinc", "voigt_profile"]


def sinc(x: Array) -> Array:
    """sin(πx) / (πx), as np.sinc."""
    return derivative_families.sinc(operand(x), order=0)


@implements_scipy("_lambertw")
def lambertw(z: Array, k: Any = 0, tol: float = 1e-8) -> Array:
    """Lambert's W(z) of the branch k, complex, with W exp(W) = z. DLMF 4.13.1.

    >>> import func
    >>> float(func.grad(lambda z: func.special.lambertw(z).real)(0.0))
    1.0
    """
    return integrals.lambertw(operand(z), operand(k), tol)


def _in_loop(name: str, *values: Any) -> list[Array]:
    """Operands in the dtypes of the loop of SciPy's ufunc of this name."""
    operands = [operand(value) for value in values]
    kinds = [float if type(x) in (int, float) else dtype_of(x) for x in operands]
    loop = getattr(scipy_of(np, "special"), name).resolve_dtypes((*kinds, None))
    return [convert(x, dtype=dtype) for x, dtype in zip(operands, loop, strict=False)]


@implements_scipy("radian")
def radian(d: Array, m: Array, s: Array) -> Array:
    """An angle of degrees, minutes and seconds in radians."""
    d, m, s = _in_loop("radian", d, m, s)
    return ((d * 60.0 + m) * 60.0 + s) * 4.84813681109535993589914e-6


@implements_scipy("voigt_profile")
def voigt_profile(x: Array, sigma: Array, gamma: Array) -> Array:
    """The density of the sum of a normal and a Cauchy variable, by the Faddeeva function. DLMF 7.19.1.

    For σ = 0 it is the Cauchy density, and for γ = 0 too, zero except at x = 0, as in SciPy. For infinite γ it is NaN
    without a density: σ or γ is negative, or σ is infinite too.
    """
    x, sigma, gamma = operand(x), operand(sigma), operand(gamma)
    if not any([type(value) is Tracer for value in (x, sigma, gamma)]):
        return scipy_of(np, "special").voigt_profile(x, sigma, gamma)
    x, sigma, gamma = _in_loop("voigt_profile", x, sigma, gamma)
    narrow = equal(sigma, 0)
    width = where(narrow, full_like(sigma, 1, ()), sigma)
    z = (x + 1j * gamma) / (width * math.sqrt(2))
    normal = real(wofz(z)) / (width * math.sqrt(2 * math.pi))
    is_far = logical_or(equal(absolute(x), math.inf), equal(absolute(gamma), math.inf))
    normal = where(is_far, full_like(normal, 0, ()), normal)
    is_density = logical_and(less(sigma, math.inf), logical_and(less_equal(0, sigma), less_equal(0, gamma)))
    is_open = logical_and(equal(absolute(gamma), math.inf), logical_not(is_density))
    for value in (absolute(x) / absolute(width), gamma):
        is_open = logical_or(is_open, isnan(value))
    normal = where(is_open, full_like(normal, math.nan, ()), normal)
    peak = where(narrow, x * x + gamma * gamma, full_like(normal, 1, ()))
    is_point = equal(peak, 0)
    cauchy = gamma / (math.pi * where(is_point, full_like(peak, 1, ()), peak))
    cauchy = where(is_point, full_like(cauchy, math.inf, ()), cauchy)
    return scalar_of(where(narrow, cauchy, normal))


def diric(x: Array, n: Any) -> Array:
    """The periodic sinc function sin(n x / 2) / (n sin(x / 2)) of an integer n ≥ 1, regular at multiples of 2π.

    >>> import numpy as np, func
    >>> round(float(func.hessian(lambda x: func.special.diric(x, 3))(0.0)), 12)
    -0.666666666667
    """
    x, n = operand(x), np.asarray(n)
    x = x if dtype_of(x).kind == "f" else convert(x, dtype=np.dtype(np.float64))
    valid = (n > 0) & (n == np.floor(n))
    n = np.where(valid, n, 1).astype(dtype_of(x))
    near = 2.0**-18 if dtype_of(x) == np.float32 else 2.0**-37
    sine = sin(x / 2)
    is_pole = less(absolute(sine), near)
    turns = rint(x / (2 * math.pi))
    gap = x - turns * (2 * math.pi)
    series = cos(math.pi * turns * (n - 1)) * (1 - (n * n - 1) / 24 * gap * gap)
    value = where(is_pole, series, sin(n * x / 2) / (n * where(is_pole, full_like(x, 1, ()), sine)))
    return convert(where(valid, value, full_like(value, math.nan, ())), dtype=dtype_of(x))
