"""Code that imports NumPy's constructors and converters and the functions of math by name."""

from __future__ import annotations

from math import atan2, exp, gamma, log, pi, sqrt
from typing import Any

import numpy
from numpy import array, asarray, cos, float64, linspace, sin, vectorize, where, zeros

from tests.support.natural_code import Row


def lognormal_moments(mu: Any, sigma: Any) -> Any:
    return exp(mu + sigma**2 / 2), sqrt(exp(sigma**2) - 1) * exp(mu + sigma**2 / 2)


def weibull_mean(scale: Any, shape: Any) -> Any:
    if scale <= 0 or shape <= 0:
        raise ValueError(f"scale {scale} and shape {shape} must be positive")
    return scale * gamma(1 + 1 / shape)


def bearing(x: Any, y: Any) -> Any:
    return atan2(y, x) % (2 * pi)


def log_mean(a: Any, b: Any) -> Any:
    return a if a == b else (a - b) / log(a / b)


def stencil(x: Any) -> Any:
    out = zeros(len(x))
    for i in range(1, len(x) - 1):
        out[i] = x[i - 1] - 2 * x[i] + x[i + 1]
    return out


def rotated(angle: Any, x: Any) -> Any:
    return array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]]) @ asarray(x)


def cast_sum(x: Any) -> Any:
    return float64(x) * 2 + numpy.sum(x)


def clipped_ramp(x: Any) -> Any:
    return where(x < 0.5, 2 * x, 1.0) * linspace(0.0, 1.0, len(x))


def by_elements(x: Any) -> Any:
    return vectorize(lambda t: t * t if t > 1 else t)(x)


V = numpy.array([0.4, 1.3, 0.8, 2.2])
ROWS = [
    Row(lognormal_moments, 0.2, 0.5, intercept=__name__),
    Row(weibull_mean, 1.5, 2.2, intercept=__name__),
    Row(bearing, 0.8, -0.3, intercept=__name__),
    Row(log_mean, 2.0, 3.0, intercept=__name__),
    Row(stencil, V, intercept=__name__),
    Row(rotated, 0.3, V[:2], intercept=__name__),
    Row(cast_sum, V, intercept=__name__),
    Row(clipped_ramp, V),
    Row(by_elements, V),
]
