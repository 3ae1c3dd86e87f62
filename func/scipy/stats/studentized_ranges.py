"""The range of k normal numbers over an independent estimate of their deviation, whose values are SciPy's.

Both integrands are smooth and fall fast on either side. So the trapezoidal rule is accurate to rounding, over the
logarithm of the estimate s and over the place of the range.
Source: H. Lund and J. Lund (1983), Algorithm AS 190, for the two integrals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core import Array
from func.scipy.stats.host_values import along

ESTIMATES, PLACES, LIMIT = 160, 96, 1e5
"""The number of nodes, and the degrees of freedom from which on the estimate counts as exact, as in SciPy."""


def _estimates(df: Array) -> tuple[Array, Array]:
    """Values of the estimate (…, n) and their probabilities."""
    is_exact = df >= LIMIT
    df = np.where(is_exact, LIMIT, df)
    at = func.stop_gradient(df)
    width = np.sqrt(40 / at)
    low = np.where(at < 29, 40 / (at + 1) + 0.5, np.minimum(40 / at + 0.5, 1.6 * width))
    high = np.minimum(width, 0.5 * np.log(1 + 100 / at) + 0.5)
    steps = np.arange(ESTIMATES + 0.0) / (ESTIMATES - 1)
    t = -low[..., None] + (low + high)[..., None] * steps
    t = np.where(is_exact[..., None], 0.0, t)
    weights = np.exp(df[..., None] * (t - np.expm1(2 * t) / 2))
    few = np.where(at < 29, df, 1.0)  # their long tail, where the range is small as well, is not among the nodes
    constant = np.exp(few / 2 * (np.log(few / 2) - 1) - sc.gammaln(few / 2)) * 2 * (low + high) / (ESTIMATES - 1)
    total = np.where(at < 29, 1 / constant, np.sum(weights, axis=-1))
    return np.exp(t), weights / total[..., None]


def density(x: Array, k: Array, df: Array) -> Array:
    """Two of the numbers are at the ends of the range, the others between them."""
    x, k, df = np.broadcast_arrays(x, k, df)
    s, chances = _estimates(df)
    half = (x[..., None] * s / 2)[..., None]
    step = 6.5 / PLACES
    y = -step * (np.arange(PLACES + 0.0) + 0.5)  # the integrand is even
    between = sc.ndtr(y + half) - sc.ndtr(y - half)
    ends = np.exp(-(half**2) - y * y) / np.pi
    inner = step * np.sum(ends * between ** (k - 2.0)[..., None, None], axis=-1)
    return k * (k - 1) * np.sum(chances * s * inner, axis=-1)


def _distribution(x: Array, k: Array, df: Array) -> Array:
    """One of the numbers is the largest, the others are closer to it than the range."""
    x, k, df = np.broadcast_arrays(x, k, df)
    s, chances = _estimates(df)
    step = 18.0 / (2 * PLACES)
    z = step * (np.arange(2 * PLACES + 0.0) - PLACES + 0.5)
    near = sc.ndtr(z) - sc.ndtr(z - (x[..., None] * s)[..., None])
    inner = step * np.sum(np.exp(-z * z / 2) * near ** (k - 1.0)[..., None, None], axis=-1) / np.sqrt(2 * np.pi)
    return k * np.sum(chances * inner, axis=-1)


def slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """The derivative of the distribution function by the number of values and the degrees of freedom."""
    is_outside = x <= 0
    safe = np.where(is_outside, 1.0, x)
    change = along(lambda k, df: _distribution(safe, k, df), shapes, dots)
    return np.where(is_outside, 0.0, change)
