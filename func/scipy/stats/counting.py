"""Sums over the outcomes of discrete distributions: many terms one by one, and the rest as an integral.

Between the summed terms, a sum of smooth terms is an integral from half a step before to half a step after. Each end
has one correction.
Source: DLMF 2.10.1 (the Euler-Maclaurin formula), with midpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core import Array
from func.scipy.stats import double_exponential

EXACT, AT_THE_END = 256, 64
"""The number of terms to sum one by one, at the start and at a finite end."""


def one_sided(f: Callable[[Any], Any], start: Array, end: Array, upward: Array) -> Array:
    """The sum of f(j) for j from start to end, in steps of 1 up or down; f takes outcomes (…, n) and broadcasts."""
    start, end, upward = np.broadcast_arrays(func.stop_gradient(start), func.stop_gradient(end), upward)
    sign: Any = np.where(upward, 1.0, -1.0)
    steps = np.arange(EXACT + 0.0)
    j: Any = np.expand_dims(start, -1) + sign[..., None] * steps
    inside = sign[..., None] * (np.expand_dims(end, -1) - j) >= 0
    terms = np.where(inside, f(np.where(inside, j, np.expand_dims(np.where(np.isfinite(end), end, start), -1))), 0.0)
    first, last = start + sign * (EXACT - 0.5), end - sign * (AT_THE_END - 0.5)
    bounded = np.isfinite(end)
    more = sign * (end - first) > 0
    safe: Any = np.where(bounded, end, start)
    at_end = safe[..., None] - sign[..., None] * np.arange(AT_THE_END + 0.0)
    closing = more[..., None] & bounded[..., None] & (sign[..., None] * (at_end - first[..., None]) > 0)
    safe = safe[..., None]
    total = np.sum(terms, axis=-1) + np.sum(np.where(closing, f(np.where(closing, at_end, safe)), 0.0), axis=-1)
    between = more & (sign * (last - first) > 0)
    t, weights = double_exponential.towards(
        np.where(between, last, 0.75), np.where(between, first, 0.5), np.full(np.shape(start), float(EXACT))
    )
    middle = between[..., None]
    rest = np.sum(np.where(middle, weights * f(np.where(middle, t, safe)), 0.0), axis=-1)
    for edge, side in ((first, 1.0), (last, -1.0)):
        known = between & np.isfinite(edge)
        pair = np.where(known, edge, start)[..., None] + np.where(known, sign, 0.0)[..., None] * np.array([0.5, -0.5])
        values = f(pair)
        rest = rest + np.where(known, side * (values[..., 0] - values[..., 1]) / 24, 0.0)
    return total + rest


def everywhere(f: Callable[[Any], Any], middle: Array, low: Array, high: Array) -> Array:
    """The sum of f over all outcomes, from the middle in both directions."""
    return one_sided(f, middle, low, np.asarray(False)) + one_sided(f, middle + 1, high, np.asarray(True))


def log_sum(exponents: Array, weight: Array) -> Array:
    """The logarithm of weight Σ e^exponent over the last axis."""
    top = func.stop_gradient(np.max(exponents, axis=-1, keepdims=True))
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.sum(np.exp(exponents - top), axis=-1) * weight) + top[..., 0]


def mixture(exponent: Callable[[Any], Any], centre: Array) -> Array:
    """The logarithm of a sum of e^exponent(j) over j = 0, 1, ..., whose largest terms are near a centre.

    The terms are as wide as those of a Poisson distribution. Beyond 200 of them, it takes every h-th one h times: for
    many smooth terms both sums are close to the integral.
    """
    centre = func.stop_gradient(centre)
    deviation = np.sqrt(centre + 1)
    step = np.maximum(1.0, np.ceil(deviation * 18 / 200))
    low = np.maximum(0.0, np.floor(centre - 100 * step))
    j = low[..., None] + step[..., None] * np.arange(200.0)
    return log_sum(exponent(j), step)


def positive_root(b: Array, c: Array) -> Array:
    """The positive root of y² + b y = c, c >= 0."""
    return np.maximum(0.0, (-b + np.sqrt(b * b + 4 * np.maximum(c, 0.0))) / 2)


def log_poisson(j: Array, mean: Array) -> Array:
    """The logarithm of a probability of Poisson's distribution."""
    return sc.xlogy(j, mean) - mean - sc.gammaln(j + 1)
