"""Systems of B-splines at nodes: knots for boundary conditions, and coefficients as solutions of banded systems."""

from __future__ import annotations

import numpy as np

import func.numpy as fnp
from func.interpreters.core import Array, shape_of
from func.linalg import solve, solve_banded, solveh_banded
from func.scipy.interpolate.basis import basis, knot_intervals
from func.scipy.interpolate.data_arguments import common, holds
from func.transforms.custom import stop_gradient


def not_a_knot(x: Array, k: int) -> Array:
    """The knots of a spline of degree k whose first and last polynomial pieces span more than one interval."""
    n = shape_of(x)[0]
    inner = x[(k + 1) // 2 : n - (k + 1) // 2] if k % 2 else ((x[1:] + x[:-1]) / 2)[k // 2 : n - 1 - k // 2]
    return fnp.concatenate([*[x[:1]] * (k + 1), inner, *[x[n - 1 :]] * (k + 1)])


def periodic_knots(x: Array, k: int) -> Array:
    """The knots of a periodic spline: the nodes, or their midpoints for even degrees, repeated by the period."""
    n = shape_of(x)[0]
    if k % 2 == 0:
        x = fnp.concatenate([x[:1], x[1 : n - 1] - fnp.diff(x)[: n - 2] / 2, x[n - 1 :]])
    dx = fnp.diff(x)
    before, after = [x[0]], [x[n - 1]]
    for i in range(k):
        before.append(before[-1] - dx[(-(i % (n - 1)) - 1) % (n - 1)])
        after.append(after[-1] + dx[i % (n - 1)])
    inner = [x[1 : n - 1]] if n > 2 else []
    return fnp.concatenate([fnp.stack(before[::-1]), *inner, fnp.stack(after)])


def band(rows: Array, first: Array, width: tuple[int, int], n: int, offset: int = 0) -> Array:
    """Rows (m, k + 1) of a matrix, row i + offset from column first[i] on, as its diagonals (l + u + 1, n)."""
    lower, upper = width
    count, terms = shape_of(rows)
    i = np.arange(lower + upper + 1)[:, None] - upper + np.arange(n) - offset
    inside = np.clip(i, 0, count - 1)
    place = np.arange(n) - fnp.take(first, inside)
    valid = (i >= 0) & (i < count) & (place >= 0) & (place < terms)
    flat = fnp.reshape(rows, (-1,))
    return fnp.where(valid, fnp.take(flat, inside * terms + fnp.clip(place, 0, terms - 1)), 0.0)


def coefficients(x: Array, y: Array, t: Array, k: int) -> Array:
    """The coefficients of the spline through values (n, …), with as many knots as determine it."""
    n, rest = shape_of(x)[0], shape_of(y)[1:]
    if 0 in shape_of(y):
        return fnp.zeros_like(y)
    m = knot_intervals(t, k, x)
    start, i = m - k, np.arange(n)
    if not holds((start <= i) & (start >= i - k)):
        raise np.linalg.LinAlgError("Colocation matrix is singular.")
    ab = band(basis(t, k, x, m), start, (k, k), n)
    return fnp.reshape(solve_banded((k, k), ab, fnp.reshape(y, (n, -1)), check_finite=False), (n, *rest))


def periodic_coefficients(x: Array, y: Array, t: Array, k: int) -> Array:
    """The coefficients of the periodic spline: a cyclic system, by a banded one and Woodbury's formula."""
    n, rest = shape_of(x)[0] - 1, shape_of(y)[1:]
    m = knot_intervals(t, k, x[:n])
    rows = basis(t, k, x[:n], m)
    if 0 in shape_of(y):
        return fnp.zeros_like(y, shape=(n + k, *rest))
    b = fnp.reshape(y[:n], (n, -1))
    half = k // 2
    columns = (m[:, None] - k + np.arange(k + 1)) % n
    if n <= 2 * k + 1:
        matrix = fnp.sum(fnp.where(columns[:, :, None] == np.arange(n), rows[:, :, None], 0.0), axis=1)
        c = solve(matrix, b, check_finite=False)
    else:
        # Columns are renumbered so that the band is around the diagonal; two corners remain.
        shift = half
        first = m - k - shift
        ab = band(rows, first, (k, k), n)
        corner_rows = np.concatenate([np.arange(k), np.arange(n - k, n)])
        picked, at = fnp.take(rows, corner_rows, axis=0), fnp.take(first, corner_rows)[:, None] + np.arange(k + 1)
        outside = (at < 0) | (at >= n)
        place = at % n
        corners = fnp.sum(
            fnp.where((place[:, :, None] == corner_rows) & outside[:, :, None], picked[:, :, None], 0.0), axis=1
        )
        unit = np.zeros((n, 2 * k))
        unit[corner_rows, np.arange(2 * k)] = 1.0
        solved = solve_banded((k, k), ab, fnp.concatenate(common(fnp.asarray(unit), b), axis=1), check_finite=False)
        z, v = solved[:, : 2 * k], solved[:, 2 * k :]
        z_rows, v_rows = fnp.take(z, corner_rows, axis=0), fnp.take(v, corner_rows, axis=0)
        middle = np.eye(2 * k) + corners @ z_rows
        c = v - z @ solve(middle, corners @ v_rows, check_finite=False)
        c = fnp.roll(c, shift, axis=0)
    return fnp.reshape(fnp.take(c, np.arange(n + k) % n, axis=0), (n + k, *rest))


def gram(rows: Array, first: Array, n: int) -> Array:
    """The lower diagonals (k + 1, n) of AᵀA for the rows (m, k + 1) of A, row i from column first[i] on."""
    terms = shape_of(rows)[1]
    products, places = [], []
    for d in range(terms):
        products.append(fnp.reshape(rows[:, : terms - d] * rows[:, d:], (-1,)))
        places.append(fnp.reshape(first[:, None] + np.arange(terms - d) + d * n, (-1,)))
    return fnp.reshape(summed_at(fnp.concatenate(products), fnp.concatenate(places), terms * n), (terms, n))


def summed_at(values: Array, places: Array, length: int) -> Array:
    """Sums (length, …) of the values (n, …) by their places."""
    out = fnp.zeros_like(values, shape=(length, *shape_of(values)[1:]))
    np.add.at(out, places, values)
    return out


def least_squares(rows: Array, first: Array, y: Array, n: int) -> Array:
    """The coefficients (n, …) that minimize |A c - y| for the rows of A, by banded normal equations.

    A refinement step recovers the accuracy that the normal equations lose; it changes no derivative.
    """
    terms = shape_of(rows)[1]
    ab = gram(rows, first, n)
    places = first[:, None] + np.arange(terms)
    flat = fnp.reshape(y, (shape_of(y)[0], -1))

    def adjoint(v: Array) -> Array:
        parts = rows[:, :, None] * v[:, None, :]
        return summed_at(fnp.reshape(parts, (-1, shape_of(v)[1])), fnp.reshape(places, (-1,)), n)

    c = solveh_banded(ab, adjoint(flat), lower=True, check_finite=False)
    rest = flat - fnp.sum(rows[:, :, None] * fnp.take(c, places, axis=0), axis=1)
    step = solveh_banded(stop_gradient(ab), stop_gradient(adjoint(rest)), lower=True, check_finite=False)
    return fnp.reshape(c + stop_gradient(step), (n, *shape_of(y)[1:]))
