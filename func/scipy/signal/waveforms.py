"""Waveforms made of pieces, and splines evaluated piece by piece, which select pieces without known values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as _scipy

from func import numpy as fnp
from func.interpreters.core import Array
from func.interpreters.primitives.elementwise import table as ops
from func.scipy.kinds.versions import version_of


def _phase(t: Any, width: Any) -> tuple[Array, Array, Array, Array]:
    """The phase in 0 … 2π, the width, whether the width is valid, and whether the phase is in the first piece."""
    t, w = fnp.broadcast_arrays(fnp.asarray(t, dtype=float), fnp.asarray(width, dtype=float))
    phase = fnp.mod(t, 2 * np.pi)
    return phase, w, (w >= 0) & (w <= 1), phase < w * 2 * np.pi


@version_of(_scipy.sawtooth)
def sawtooth(t: Array, width: Any = 1) -> Array:
    """A sawtooth or triangle wave, as scipy.signal.sawtooth."""
    phase, w, is_valid, rises = _phase(t, width)
    up = phase / (np.pi * fnp.where(rises, w, 1.0)) - 1
    down = (np.pi * (w + 1) - phase) / (np.pi * (1 - fnp.where(rises, 0.0, w)))
    return fnp.where(is_valid, fnp.where(rises, up, down), np.nan)


def _mirrored(x: Array, n: int) -> Array:
    """Coordinates mapped into 0 … n - 1 by mirrors at both ends."""
    if n == 1:
        return fnp.zeros_like(x)
    period = 2.0 * (n - 1)
    inside = x - period * fnp.floor(x / period)
    return fnp.where(inside > n - 1, period - inside, inside)


def _evaluated(cj: Any, newx: Any, dx: Any, x0: Any, degree: int) -> Array:
    """Σ_j c_j β(x - j) with coefficients repeated beyond the ends."""
    c = fnp.asarray(cj)
    x = (fnp.asarray(newx) - x0) / dx
    if c.shape[0] == 0:
        raise ValueError("Spline coefficients 'cj' must not be empty.")
    x = _mirrored(x, c.shape[0])
    first = fnp.astype(fnp.floor(x - (degree + 1) / 2), np.dtype(int)) + 1
    total: Any = 0.0
    for tap in range(degree + 1):
        place = first + tap
        t = x - place
        distance = fnp.abs(t)
        if degree == 3:
            near = 2 / 3 - t**2 + ops.modulus_power(t, 3.0) / 2
            far = (2 - distance) ** 3 / 6  # no tap is further away
            weight = fnp.where(distance < 1, near, far)
        else:
            far = fnp.maximum(1.5 - distance, 0.0) ** 2 / 2
            weight = fnp.where(distance < 0.5, 0.75 - t**2, far)
        total = total + fnp.take(c, fnp.clip(place, 0, c.shape[0] - 1)) * weight
    return total


@version_of(_scipy.cspline1d_eval)
def cspline1d_eval(cj: Array, newx: Array, dx: Any = 1.0, x0: Any = 0) -> Array:
    """A cubic spline at points, as scipy.signal.cspline1d_eval; differentiable in coefficients and points."""
    return fnp.astype(_evaluated(cj, newx, dx, x0, 3), fnp.asarray(cj).dtype, copy=False)


@version_of(_scipy.qspline1d_eval)
def qspline1d_eval(cj: Array, newx: Array, dx: Any = 1.0, x0: Any = 0) -> Array:
    """A quadratic spline at points, as scipy.signal.qspline1d_eval; differentiable in coefficients and points."""
    return _evaluated(cj, newx, dx, x0, 2)
