"""Sums of B-splines on traced knots: their values, derivatives and antiderivatives.

One function computes the nonzero basis functions at points, or their derivatives, by the recurrence of de Boor and Cox
on gathered knots. All other functions sum coefficients with it.

Source: C. de Boor (2001), A Practical Guide to Splines, chapter X.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import func.numpy as fnp
from func.interpreters.core import Array, shape_of
from func.scipy.interpolate.data_arguments import column, is_never, nan_where, picked, require


def knot_intervals(t: Array, k: int, x: Array, n: int | None = None) -> Array:
    """The numbers m with t[m] <= x < t[m + 1], within the base interval of n basis functions."""
    n = shape_of(t)[0] - k - 1 if n is None else n
    return fnp.clip(fnp.searchsorted(t, x, side="right") - 1, k, n - 1)


def basis(t: Array, k: int, x: Array, m: Array, nu: int = 0) -> Array:
    """The nu-th derivatives (n, k + 1) at x (n,) of the basis functions m - k to m, not zero in interval m."""
    if nu > k:
        return fnp.zeros_like(x, shape=(shape_of(x)[0], k + 1))
    knots = {j: fnp.take(t, m + j) for j in range(1 - k, k + 1)}
    rows: list[Array] = [fnp.ones_like(x)]
    for d in range(1, k + 1):
        terms: list[Array] = [fnp.zeros_like(x)] * (d + 1)
        for r in range(d):
            left, right = knots[r + 1 - d], knots[r + 1]
            width = right - left
            empty = width == 0
            part = fnp.where(empty, 0.0, rows[r] / fnp.where(empty, 1.0, width))
            if d <= k - nu:
                terms[r] = terms[r] + (right - x) * part
                terms[r + 1] = (x - left) * part
            else:
                terms[r] = terms[r] - d * part
                terms[r + 1] = d * part
        rows = terms
    return fnp.stack(rows, axis=-1)


def spline_values(t: Array, c: Array, k: int, x: Array, nu: int = 0) -> Array:
    """The nu-th derivative (n, …) at x (n,) of the spline with coefficients c (≥ len(t) - k - 1, …), extrapolated."""
    m = knot_intervals(t, k, x)
    weights = basis(t, k, x, m, nu)
    out: Any = None
    for a in range(k + 1):
        term = column(weights[:, a], len(shape_of(c))) * fnp.take(c, m - k + a, axis=0)
        out = term if out is None else out + term
    missing = fnp.isnan(x)
    return out if is_never(missing) else nan_where(missing, out)


def differentiated(t: Array, c: Array, k: int, nu: int) -> tuple[Array, Array, int]:
    """Knots, coefficients (len(t), …) and degree of a spline's nu-th derivative."""
    if nu > k:
        raise ValueError(f"Order of derivative (n = {nu!r}) must be <= order of spline (k = {k!r})")
    for _ in range(nu):
        n = shape_of(t)[0]
        width = t[k + 1 : n - 1] - t[1 : n - k - 1]
        require(width != 0, f"The spline has internal repeated knots and is not differentiable {nu} times")
        c = fnp.diff(c[: n - k - 1], axis=0) * k / column(width, len(shape_of(c)))
        c = fnp.concatenate([c, fnp.zeros_like(c, shape=(k, *shape_of(c)[1:]))])
        t = t[1 : n - 1]
        k -= 1
    return t, c, k


def integrated(t: Array, c: Array, k: int, nu: int) -> tuple[Array, Array, int]:
    """Knots, coefficients (len(t), …) and degree of a spline's nu-th antiderivative, zero at the first knot."""
    for _ in range(nu):
        n = shape_of(t)[0]
        width = column(t[k + 1 :] - t[: n - k - 1], len(shape_of(c)))
        sums = fnp.cumsum(c[: n - k - 1] * width, axis=0) / (k + 1)
        last = shape_of(sums)[0] - 1
        c = fnp.concatenate([fnp.zeros_like(sums[:1]), sums, *[sums[last:]] * (k + 2)])
        t = fnp.concatenate([t[:1], t, t[n - 1 :]])
        k += 1
    return t, c, k


def full(t: Array, c: Array) -> Array:
    """Coefficients with zeros up to the number of knots."""
    missing = shape_of(t)[0] - shape_of(c)[0]
    return fnp.concatenate([c, fnp.zeros_like(c, shape=(missing, *shape_of(c)[1:]))]) if missing > 0 else c


def tensor_values(
    knots: Sequence[Array], c: Array, degrees: Sequence[int], points: Sequence[Array], orders: Sequence[int]
) -> Array:
    """Values (n, …) of a tensor-product spline, or its derivatives of these orders, at n points."""
    places, weights = [], []
    for t, k, x, nu in zip(knots, degrees, points, orders, strict=True):
        m = knot_intervals(t, k, x)
        places.append(m[:, None] - k + np.arange(k + 1))
        weights.append(basis(t, k, x, m, nu))
    ndim = len(places)
    n = shape_of(points[0])[0]
    grid = []
    for d, place in enumerate(places):
        shape = [n] + [1] * ndim
        shape[d + 1] = shape_of(place)[1]
        grid.append(fnp.reshape(place, tuple(shape)))
    out = picked(c, *grid)
    for weight in reversed(weights):
        rank = len(shape_of(out))
        axis = ndim
        shape = [n] + [1] * (rank - 1)
        shape[axis] = shape_of(weight)[1]
        out = fnp.sum(out * fnp.reshape(weight, tuple(shape)), axis=axis)
        ndim -= 1
    return out
