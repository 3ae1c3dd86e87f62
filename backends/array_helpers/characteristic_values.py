"""Derivatives of characteristic values of Mathieu's and spheroidal equations, and of Smirnov's distribution.

A characteristic value is an eigenvalue λ of a symmetric matrix D + q S, so that λ' = vᵀ S v, and
λ'' = 2 Σⱼ (vⱼᵀ S v)² / (λ - λⱼ). They are NumPy code, for arrays of any shapes, which broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from func.backends.array_helpers.arrays import on_host
from func.backends.array_helpers.special import result_of


def eigenvalue_slope(diagonal: Any, part: Any, index: int, q: float, order: int) -> float:
    """The first or second derivative by q of the eigenvalue of D + q S that is counted from below."""
    values, vectors = numpy.linalg.eigh(numpy.diag(diagonal) + q * part)
    couplings = vectors.T @ (part @ vectors[:, index])
    if order == 1:
        return float(couplings[index])
    others = numpy.arange(values.size) != index
    return float(2 * numpy.sum(couplings[others] ** 2 / (values[index] - values[others])))


def mathieu_matrices(m: int, q: float, even: bool) -> tuple[Any, Any, int]:
    """D and S of the Fourier coefficients of ce_m or se_m, and the place of the eigenvalue. DLMF 28.4."""
    size = 24 + m + int(2 * math.sqrt(abs(q)))
    odd = m % 2
    orders = 2.0 * numpy.arange(size) + (odd if odd or even else 2)
    part = numpy.diag(numpy.ones(size - 1), 1)
    if even and not odd:
        part[0, 1] = math.sqrt(2)
    part = part + part.T
    if odd:
        part[0, 0] = 1.0 if even else -1.0
    return orders**2, part, m // 2 if even or odd else m // 2 - 1


def _is_small(order: float, parameter: float) -> bool:
    """Whether the matrix of a characteristic value has a supported size; SciPy gives up earlier."""
    return order < 1000 and abs(parameter) < 1e6


def spheroidal_matrices(m: int, n: int, gamma: float) -> tuple[Any, Any, int]:
    """D and S of the expansion in normalised Legendre functions, where S is that of x². DLMF 30.8."""
    size = 24 + (n - m) // 2 + int(math.sqrt(abs(gamma)))
    degrees = m + (n - m) % 2 + 2.0 * numpy.arange(size)

    def step(degree: Any) -> Any:
        return numpy.sqrt((degree**2 - m * m) / (4 * degree**2 - 1))

    aside = (step(degrees + 1) * step(degrees + 2))[:-1]
    part = numpy.diag(step(degrees) ** 2 + step(degrees + 1) ** 2) + numpy.diag(aside, 1) + numpy.diag(aside, -1)
    return degrees * (degrees + 1), part, (n - m) // 2


def of_elements(xp: Any, function: Callable[..., float], *args: Any) -> Any:
    """The function of the numbers of arrays, which broadcast; NaN where one of them is not a finite number."""

    def computed(xp: Any, *arrays: Any) -> Any:
        return of_elements(xp, function, *arrays)

    if xp is not numpy:
        return on_host(xp, "the derivative of a characteristic value", computed, *args)
    dtype = result_of(numpy.result_type(*[x if type(x) in (bool, int, float) else x.dtype for x in args]))
    arrays = numpy.broadcast_arrays(*args)
    out = numpy.empty(arrays[0].shape)
    for place in numpy.ndindex(out.shape):
        numbers = [float(array[place]) for array in arrays]
        out[place] = function(*numbers) if all(map(math.isfinite, numbers)) else math.nan
    return out.astype(dtype)[()]


def mathieu_slope(xp: Any, m: Any, q: Any, even: bool, order: int) -> Any:
    """A derivative of a_m(q) or b_m(q) by q."""

    def of_numbers(m: float, q: float) -> float:
        if m < (0 if even else 1) or m != int(m) or not _is_small(m, q):
            return math.nan
        diagonal, part, index = mathieu_matrices(int(m), q, even)
        return eigenvalue_slope(diagonal, part, index, q, order)

    return of_elements(xp, of_numbers, m, q)


def mathieu_a_slope(xp: Any, m: Any, q: Any) -> Any:
    """∂a_m/∂q."""
    return mathieu_slope(xp, m, q, True, 1)


def mathieu_a_bend(xp: Any, m: Any, q: Any) -> Any:
    """∂²a_m/∂q²."""
    return mathieu_slope(xp, m, q, True, 2)


def mathieu_b_slope(xp: Any, m: Any, q: Any) -> Any:
    """∂b_m/∂q."""
    return mathieu_slope(xp, m, q, False, 1)


def mathieu_b_bend(xp: Any, m: Any, q: Any) -> Any:
    """∂²b_m/∂q²."""
    return mathieu_slope(xp, m, q, False, 2)


def spheroidal_slope(xp: Any, m: Any, n: Any, c: Any, sign: int, order: int) -> Any:
    """A derivative by c of the characteristic value, a function of ± c²; that of SciPy is constant below c = 0."""

    def of_numbers(m: float, n: float, c: float) -> float:
        if m < 0 or n < m or m != int(m) or n != int(n) or not _is_small(n, c * c):
            return math.nan
        if c < 0:
            return 0.0
        gamma = sign * c * c
        diagonal, part, index = spheroidal_matrices(int(m), int(n), gamma)
        slope = 2 * sign * eigenvalue_slope(diagonal, part, index, gamma, 1)
        if order == 1:
            return c * slope
        return slope + 4 * c * c * eigenvalue_slope(diagonal, part, index, gamma, 2)

    return of_elements(xp, of_numbers, m, n, c)


def pro_cv_slope(xp: Any, m: Any, n: Any, c: Any) -> Any:
    """∂λ/∂c of a prolate spheroid."""
    return spheroidal_slope(xp, m, n, c, 1, 1)


def pro_cv_bend(xp: Any, m: Any, n: Any, c: Any) -> Any:
    """∂²λ/∂c² of a prolate spheroid."""
    return spheroidal_slope(xp, m, n, c, 1, 2)


def obl_cv_slope(xp: Any, m: Any, n: Any, c: Any) -> Any:
    """∂λ/∂c of an oblate spheroid."""
    return spheroidal_slope(xp, m, n, c, -1, 1)


def obl_cv_bend(xp: Any, m: Any, n: Any, c: Any) -> Any:
    """∂²λ/∂c² of an oblate spheroid."""
    return spheroidal_slope(xp, m, n, c, -1, 2)


def smirnov_derivative(xp: Any, n: Any, d: Any, order: int) -> Any:
    """A derivative by d of (1 - d)ⁿ + d Σⱼ C(n, j) (d + j/n)^(j - 1) (1 - d - j/n)^(n - j), 1 <= j <= n (1 - d);
    NaN for more than ten million terms."""

    def of_numbers(n: float, d: float) -> float:
        n = math.floor(n) if math.isfinite(n) else 0
        if not 1 <= n <= 10_000_000 or not 0 <= d <= 1:
            return math.nan
        j = numpy.arange(1.0, n)
        j = j[j < n * (1 - d)]
        u, v = d + j / n, 1 - d - j / n
        count = numpy.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in j.tolist()])
        terms = numpy.exp(count + (j - 1) * numpy.log(u) + (n - j) * numpy.log(v))
        grade = (j - 1) / u - (n - j) / v
        if order == 1:
            return float(-n * (1 - d) ** (n - 1) + numpy.sum(terms * (1 + d * grade)))
        bend = grade**2 - (j - 1) / u**2 - (n - j) / v**2
        first = n * (n - 1) * (1 - d) ** (n - 2) if n > 1 else 0.0
        return float(first + numpy.sum(terms * (2 * grade + d * bend)))

    return of_elements(xp, of_numbers, n, d)


def smirnov_slope(xp: Any, n: Any, d: Any) -> Any:
    """The density of Smirnov's distribution, negative."""
    return smirnov_derivative(xp, n, d, 1)


def smirnov_bend(xp: Any, n: Any, d: Any) -> Any:
    """The derivative of `smirnov_slope` by d."""
    return smirnov_derivative(xp, n, d, 2)
