"""Integrals of densities by rules with fixed nodes, which trace and differentiate as sums.

Both rules are double exponential: they converge geometrically for analytic integrands, also with algebraic
singularities at an end and with tails that decay as powers. The nodes move with the ends of the interval, so that the
derivative of the sum by an end is the value there.

Source: H. Takahasi, M. Mori (1974), Double exponential formulas for numerical integration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array

_STEP = 1 / 14
_REACH = 4.2


@functools.cache
def _nodes() -> tuple[Array, Array, Array, Array]:
    """Nodes and weights of (0, 1), small nodes exact, and those of (0, ∞)."""
    u = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    bent, slope = np.pi / 2 * np.sinh(u), _STEP * np.pi / 2 * np.cosh(u)
    unit = 1 / (1 + np.exp(-2 * bent))
    return unit, slope * 2 * unit / (1 + np.exp(2 * bent)), np.exp(bent), slope * np.exp(bent)


def towards(end: Array, start: Array, width: Array) -> tuple[Array, Array]:
    """Nodes and positive weights (…, n) between `start` and `end`, which may be infinite.

    `width` is the length on which the integrand changes, for an infinite end.
    """
    unit, unit_weights, half, half_weights = _nodes()
    end, start, width = [np.expand_dims(x, -1) for x in np.broadcast_arrays(end, start, width)]
    bounded = np.isfinite(end)
    safe = np.where(bounded, end, 0.0)
    sign = np.where(end > start, 1.0, -1.0)
    t = np.where(bounded, safe + (start - safe) * unit, start + sign * width * half)
    weights = np.where(bounded, np.abs(start - safe) * unit_weights, width * half_weights)
    return t, weights


def over(low: Array, high: Array, middle: Array, width: Array) -> tuple[Array, Array]:
    """Nodes and weights of the whole interval, densest at the ends and at `middle`."""
    left, right = towards(low, middle, width), towards(high, middle, width)
    return np.concatenate([left[0], right[0]], axis=-1), np.concatenate([left[1], right[1]], axis=-1)


def integral(f: Callable[[Any], Any], nodes: tuple[Array, Array]) -> Array:
    """The integral of a function by nodes and weights."""
    t, weights = nodes
    return np.sum(weights * f(t), axis=-1)


@functools.cache
def unit_logarithms() -> tuple[Array, Array, Array]:
    """The logarithms of nodes u in (0, 1), of 1 - u and of their weights, exact at both ends."""
    u = np.arange(-_REACH - 0.6, _REACH + 0.6 + _STEP / 2, _STEP)
    bent = np.pi * np.sinh(u)
    log_u, log_rest = -np.logaddexp(0, -bent), -np.logaddexp(0, bent)
    return log_u, log_rest, np.log(_STEP * np.pi * np.cosh(u)) + log_u + log_rest


@functools.cache
def half_line(step: float) -> tuple[Array, Array]:
    """Nodes and weights of (0, ∞) for integrands that decay as exponentials."""
    u = np.arange(-5.0, 5.0 + step / 2, step)
    t = np.exp(u - np.exp(-u))
    return t, step * t * (1 + np.exp(-u))


@functools.cache
def legendre(count: int) -> tuple[Array, Array]:
    """Gauss' nodes and weights of (0, 1)."""
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2
