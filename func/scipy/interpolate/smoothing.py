"""Smoothing splines: the least jumps of the k-th derivative at given knots, at a given distance from the data.

FITPACK chooses the knots among the data's arguments, and stops when the distance is close to the requested s. func
takes both from it. With these knots, the spline is c(q) = argmin |W (y - B c)|² + q |D c|² for the q at which the
distance is FITPACK's. This equation makes q and the coefficients functions of the data.

Source: P. Dierckx, Curve and Surface Fitting with Splines (1993), 5.2 and 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

import func.numpy as fnp
from func.interpreters.core import Array, shape_of
from func.linalg import solve_triangular
from func.scipy.interpolate.basis import basis, full, knot_intervals
from func.scipy.interpolate.data_arguments import numbers
from func.transforms.custom import stop_gradient
from func.transforms.implicit import custom_root

FAR = 120.0
"""The largest distance of log q from where both terms are alike."""


def knots_at_data(t: Any, plain_x: Any, x: Array, ends: tuple[Array, Array], k: int) -> Array:
    """Plain knots as the data's arguments, or as midpoints of two of them."""
    n = len(t)
    inner = t[k + 1 : n - k - 1]
    at = np.clip(np.searchsorted(plain_x, inner), 0, len(plain_x) - 1)
    before = np.maximum(at - 1, 0)
    is_node = np.abs(plain_x[at] - inner) <= np.abs((plain_x[at] + plain_x[before]) / 2 - inner)
    before = np.where(is_node, at, before)
    middle = (fnp.take(x, at) + fnp.take(x, before)) / 2
    first, last = [fnp.reshape(end, (1,)) for end in ends]
    return fnp.concatenate([*[first] * (k + 1), middle, *[last] * (k + 1)])


def dense_basis(t: Array, k: int, x: Array) -> Array:
    """All B-splines (n, len(t) - k - 1) at points."""
    place = knot_intervals(t, k, x)
    columns = place[:, None] - k + np.arange(k + 1)
    unit = columns[:, :, None] == np.arange(shape_of(t)[0] - k - 1)
    return fnp.sum(fnp.where(unit, basis(t, k, x, place)[:, :, None], 0.0), axis=1)


def jumps(t: Array, k: int) -> Array:
    """The jumps of the k-th derivatives of all B-splines at the inner knots, but for a factor.

    That of B_i at t_j is (t_{i+k+1} - t_i) / Π_{l ≠ j} (t_j - t_l), with l from i to i + k + 1.
    """
    n = shape_of(t)[0]
    j = np.arange(k + 1, n - k - 1)[:, None]
    i = j - k - 1 + np.arange(k + 2)
    mean = (t[n - k - 1] - t[k]) / (n - 2 * k - 1)
    others = i[:, :, None] + np.arange(k + 2)
    gaps = fnp.where(others == j[:, :, None], mean, fnp.take(t, j)[:, :, None] - fnp.take(t, others)) / mean
    values = (fnp.take(t, i + k + 1) - fnp.take(t, i)) / mean / fnp.prod(gaps, axis=2)
    unit = i[:, :, None] == np.arange(n - k - 1)
    return fnp.sum(fnp.where(unit, values[:, :, None], 0.0), axis=1)


def smoothed(x: Array, y: Array, w: Array, t: Array, k: int, distance: float, s: Any) -> Array:
    """The coefficients (len(t), …) for data (m,) or (m, d) at this distance, which follows s."""
    plain = [numbers(v, "what smoothing chooses") for v in (x, y, w, t)]
    start = _parameter(plain[0], plain[1], plain[2], plain[3], k, distance)
    system = _system(x, y, w, t, k, _scale(plain[0], plain[2], plain[3], k))
    target = distance * (s / stop_gradient(s))

    def gap(z: Array) -> Array:
        return _distance(*system, _fitted(*system, z)) - target

    z = custom_root(gap, lambda _, start: start)(start)
    c = _fitted(*system, z)
    return full(t, c if len(shape_of(y)) > 1 else c[:, 0])


def _scale(x: Any, w: Any, t: Any, k: int) -> float:
    """The log q at which both terms are alike."""
    rows, bends = dense_basis(t, k, x) * w[:, None], jumps(t, k)
    return float(np.sqrt(np.sum(rows**2) / np.sum(bends**2)))


def _system(x: Array, y: Array, w: Array, t: Array, k: int, scale: float) -> tuple[Array, Array, Array]:
    rows = dense_basis(t, k, x) * w[:, None]
    return rows, jumps(t, k) * scale, fnp.reshape(y, (shape_of(y)[0], -1)) * w[:, None]


def _fitted(rows: Array, bends: Array, right: Array, z: Array) -> Array:
    """The coefficients for q = exp z."""
    q, r = fnp.linalg.qr(fnp.concatenate([rows, bends * fnp.exp(z / 2)]))
    return solve_triangular(r, fnp.transpose(q[: shape_of(right)[0]]) @ right, check_finite=False)


def _distance(rows: Array, bends: Array, right: Array, c: Array) -> Array:
    return fnp.sum((right - rows @ c) ** 2)


def _parameter(x: Any, y: Any, w: Any, t: Any, k: int, distance: float) -> float:
    """The log q at which the distance is the requested one; the distance grows with q."""
    system = _system(x, y, w, t, k, _scale(x, w, t, k))

    def gap(z: float) -> float:
        return float(_distance(*system, _fitted(*system, np.float64(z)))) - distance

    return _root(gap)


def _root(gap: Callable[[float], float]) -> float:
    """The root of an increasing function."""
    low, high = -1.0, 1.0
    while gap(low) > 0 and low > -FAR:
        low *= 2
    while gap(high) < 0 and high < FAR:
        high *= 2
    if gap(low) > 0 or gap(high) < 0:
        raise np.linalg.LinAlgError("the smoothing condition has no solution with the knots that were chosen")
    return float(brentq(gap, low, high, xtol=1e-14, rtol=1e-14))


def smoothed_grid(
    x: Array, y: Array, z: Array, t: tuple[Array, Array], k: tuple[int, int], distance: float, s: Any
) -> Array:
    """The coefficients (…, …) of a surface for data (m, n) on a grid, with one q for the jumps in both directions."""
    bases = [dense_basis(knots, degree, v) for knots, degree, v in zip(t, k, (x, y), strict=True)]
    bends = [jumps(knots, degree) for knots, degree in zip(t, k, strict=True)]

    def fitted(z_q: Array, parts: list[Array]) -> Array:
        one = _fitted(parts[0], parts[2], parts[4], z_q)
        return fnp.transpose(_fitted(parts[1], parts[3], fnp.transpose(one), z_q))

    def gap(z_q: Array, parts: list[Array], target: Any) -> Array:
        return fnp.sum((parts[4] - parts[0] @ fitted(z_q, parts) @ fnp.transpose(parts[1])) ** 2) - target

    parts = [*bases, *bends, z]
    if not any([len(bend) for bend in bends]):
        return fitted(np.float64(0.0), parts)
    plain = [numbers(v, "what smoothing chooses") for v in parts]
    start = _root(lambda z_q: float(gap(np.float64(z_q), plain, distance)))
    target = distance * (s / stop_gradient(s))
    q = custom_root(lambda z_q: gap(z_q, parts, target), lambda _, start: start)(start)
    return fitted(q, parts)
