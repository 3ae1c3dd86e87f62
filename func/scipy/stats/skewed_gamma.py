"""Pearson's distribution of type III, a gamma distribution by its skewness, whose limit is a normal distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core import Array
from func.interpreters.primitives.special.logistic import log1prel
from func.scipy.stats.host_values import along


def _near_normal(x: Array, skew: Array) -> Array:
    """The logarithm of the density without the terms of size 4 / skew² that cancel, by Stirling's series.

    With u = x skew / 2 it is -log(2π) / 2 - r - log(1 + u) - x² (1/(1 + u) + d/du (log(1 + u) / u)), where r is the
    remainder of log Γ(4 / skew²) after Stirling's leading terms. DLMF 5.11.1.
    """
    u = x * skew / 2
    u = np.where((u > -1) & (np.abs(skew) < 0.05), u, 0.0)
    rest = skew**2 / 48 - skew**6 / 23040
    return -0.5 * np.log(2 * np.pi) - rest - np.log1p(u) - x * x * (1 / (1 + u) + log1prel(u, order=1))


def _parts(x: Array, skew: Array) -> tuple[Array, Array, Array, Array, Array]:
    """SciPy's choice: whether it is a normal distribution, else the gamma distribution's scale, shape and place.

    A negative skewness mirrors it. Instead of the step between both, the derivatives at small skewness are those of the
    gamma distribution's series.
    """
    normal = np.abs(skew) < 0.000016
    beta = 2 / np.where(normal, 1.0, skew)
    z = beta * (x + beta)
    inside = z > 0
    return normal, beta, beta * beta, inside, np.where(inside, z, 1.0)


def _log_normal(x: Array) -> Array:
    return -(x * x) / 2 - 0.5 * np.log(2 * np.pi)


def _logpdf(x: Array, skew: Array) -> Array:
    normal, beta, alpha, inside, z = _parts(x, skew)
    near = _near_normal(x, skew)
    gamma = np.log(np.abs(beta)) + sc.xlogy(alpha - 1, z) - z - sc.gammaln(alpha)
    gamma = np.where((np.abs(skew) < 0.05) & inside, near, np.where(inside, gamma, -np.inf))
    return np.where(normal, _log_normal(x) + _without_value(near), gamma)


def _pdf(x: Array, skew: Array) -> Array:
    return np.exp(_logpdf(x, skew))


def _cdf(x: Array, skew: Array) -> Array:
    normal, beta, alpha, inside, z = _parts(x, skew)
    upward = beta > 0
    value = np.where(upward, sc.gammainc(alpha, z), sc.gammaincc(alpha, z))
    value = np.where(inside, value, np.where(upward, 0.0, 1.0))
    series = skew * (1 - x * x) / 6 * np.exp(_log_normal(x))
    return np.where(normal, sc.ndtr(x) + _without_value(series), value)


def _edgeworth_rows(count: int) -> list[list[float]]:
    """The polynomials G_k of ∂F/∂skew = f Σ_k skew^k G_k(x), the lowest degrees first.

    ∂f/∂skew = ∂(f Σ skew^k G_k)/∂x, and by u = x skew / 2 the series of the logarithm of the density, see
    `_near_normal`, are those of log(1 + u) and of Σ (-u)^m / (m + 2). So G_k' - x G_k is known from G_k-1.
    """

    def slope(k: int) -> list[Fraction]:
        """The coefficient polynomial of skew^k in the logarithm's derivative by the skewness."""
        m = k + 1
        power = [Fraction(0)] * m + [Fraction(-1, 2) ** m, Fraction(0), -m * Fraction(-1, 2) ** m / (m + 2)]
        if k in _STIRLING:
            power[0] -= _STIRLING[k]
        return power

    rows: list[list[Fraction]] = []
    for k in range(count):
        right = [*slope(k), Fraction(0)]
        if k:
            for j, c in enumerate(slope(k - 1)):
                right[j + 1] += c / 2
            for j, c in enumerate(rows[-1]):
                right[j] += c * (1 - j) / 2
        row = [Fraction(0)] * (k + 5)
        for j in range(k + 3, 0, -1):
            row[j - 1] = (j + 1) * row[j + 1] - right[j]
        rows.append(row[: k + 3])
    return [[float(c) for c in row] for row in rows]


_STIRLING = {1: Fraction(1, 24), 5: Fraction(-1, 3840), 9: Fraction(1, 129024)}
"""The derivative of skew² / 48 - skew⁶ / 23040 + skew¹⁰ / 1290240, by powers. DLMF 5.11.1."""


def slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂skew, for small skewness by its series: the terms of the gamma distribution grow as 1 / skew³ there."""
    (skew,), (dot,) = shapes, dots
    near = np.abs(skew) < 0.05
    small, large = np.where(near, skew, 0.0), np.where(near, 1.0, skew)
    series: Any = 0.0
    for row in reversed(_edgeworth_rows(14)):
        polynomial: Any = 0.0
        for c in reversed(row):
            polynomial = polynomial * x + c
        series = series * small + polynomial
    far = along(lambda skew: _cdf(x, skew), [large], [dot * np.ones(np.shape(large))])
    return np.where(near, _pdf(x, small) * series * dot, far)


def _without_value(x: Array) -> Array:
    """Zero, with the derivatives of x."""
    return x - func.stop_gradient(x)


DENSITIES: dict[str, Callable[..., Any]] = {"logpdf": _logpdf, "pdf": _pdf}
