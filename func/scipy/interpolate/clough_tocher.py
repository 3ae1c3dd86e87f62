"""The cubic interpolant of scattered points in the plane that is smooth across triangles.

Its gradients at the points minimise the total bending of the curves along all edges, which is a linear system. func
solves it exactly; SciPy iterates to a tolerance, by which the values differ.

Sources: R. W. Clough and J. L. Tocher (1965); P. Alfeld (1984), Comput. Aided Geom. Design 1, 169; G. Nielson (1983),
Math. Comp. 40, 253, for the gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import func.numpy as fnp
from func.interpreters.core import Array, shape_of
from func.linalg import solve
from func.scipy.interpolate.collocation import summed_at

DENSE = 1000
"""The most points for which the system of gradients is a dense matrix."""


def edges_of(tri: Any) -> tuple[Any, Any]:
    """The ends of all edges of a triangulation, each edge in both directions."""
    starts, ends = tri.vertex_neighbor_vertices
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), np.asarray(ends)


def gradients(tri: Any, points: Array, values: Array) -> Array:
    """Gradients (n, m, 2) at points (n, 2) of values (n, m).

    With e = p_j - p_i, the equations of point i are Σ_j e (4 e·g_i + 2 e·g_j + 6 (y_i - y_j)) / |e|³ = 0.
    """
    i, j = edges_of(tri)
    n = shape_of(points)[0]
    e = fnp.take(points, j, axis=0) - fnp.take(points, i, axis=0)
    cube = fnp.sum(e * e, axis=1)[:, None, None] ** 1.5
    outer = e[:, :, None] * e[:, None, :] / cube
    diagonal = summed_at(4 * outer, i, n)
    gaps = fnp.take(values, j, axis=0) - fnp.take(values, i, axis=0)
    right = summed_at(6 * e[:, :, None] * gaps[:, None, :] / cube, i, n)
    # A point outside all triangles has no neighbours; its gradient is zero, as in SciPy.
    alone = np.bincount(i, minlength=n) == 0
    diagonal = diagonal + np.where(alone[:, None, None], np.eye(2), 0.0)
    blocks = fnp.concatenate([diagonal, 2 * outer])
    rows, columns = np.concatenate([np.arange(n), i]), np.concatenate([np.arange(n), j])
    place = [np.broadcast_to(a, (len(rows), 2, 2)) for a in (
        2 * rows[:, None, None] + np.arange(2)[:, None], 2 * columns[:, None, None] + np.arange(2)
    )]  # fmt: skip
    entries, right = fnp.reshape(blocks, (-1,)), fnp.reshape(right, (2 * n, -1))
    if n <= DENSE:
        flat = summed_at(entries, np.ravel(place[0] * 2 * n + place[1]), 4 * n * n)
        out = solve(fnp.reshape(flat, (2 * n, 2 * n)), right, assume_a="sym", check_finite=False)
    else:
        from func.scipy.sparse import coo_array
        from func.scipy.sparse.linalg import spsolve

        matrix = coo_array((entries, tuple([a.ravel() for a in place])), shape=(2 * n, 2 * n)).tocsc()
        out = fnp.stack([spsolve(matrix, right[:, k]) for k in range(shape_of(right)[1])], axis=1)
    return fnp.swapaxes(fnp.reshape(out, (n, 2, -1)), 1, 2)


def cubic_values(tri: Any, points: Array, values: Array, slopes: Array, found: Array, weights: Array) -> Array:
    """Values (q, m) at barycentric coordinates (q, 3) of the triangles `found` (q,)."""
    corners = fnp.take(tri.simplices, found, axis=0)
    p = [fnp.take(points, corners[:, k], axis=0) for k in range(3)]
    f = [fnp.take(values, corners[:, k], axis=0) for k in range(3)]
    g = [fnp.take(slopes, corners[:, k], axis=0) for k in range(3)]

    def toward(a: int, b: int) -> Array:
        """The control value a third of the way from corner a to corner b."""
        return f[a] + fnp.sum(g[a] * (p[b] - p[a])[:, None, :], axis=2) / 3.0

    near = {(a, b): toward(a, b) for a in range(3) for b in range(3) if a != b}
    # The control values next to a corner, on the inner edge to the centre.
    inner = [(near[a, (a + 1) % 3] + near[a, (a + 2) % 3] + f[a]) / 3.0 for a in range(3)]
    across = []
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        slope = _direction(tri, points, found, p, k)[:, None]
        bend = slope * (f[b] - 3 * near[b, a] + 3 * near[a, b] - f[a])
        across.append((bend - f[a] + 2 * near[a, b] - near[b, a] + inner[a] + inner[b]) / 2.0)
    middle = [(across[(a + 1) % 3] + across[(a + 2) % 3] + inner[a]) / 3.0 for a in range(3)]
    centre = (middle[0] + middle[1] + middle[2]) / 3.0
    least = fnp.min(weights, axis=1)
    b4 = 3.0 * least[:, None]
    rest = [(weights[:, a] - least)[:, None] for a in range(3)]
    out = b4**3 * centre
    for a in range(3):
        x, y = (a + 1) % 3, (a + 2) % 3
        near_corner = rest[x] * near[a, x] + rest[y] * near[a, y] + b4 * inner[a]
        out = out + rest[a] ** 3 * f[a] + 3 * rest[a] ** 2 * near_corner
        out = out + 3 * rest[a] * b4**2 * middle[a] + 6 * rest[x] * rest[y] * b4 * across[a]
    return out


def _direction(tri: Any, points: Array, found: Array, corners: list[Array], k: int) -> Array:
    """The place along the k-th edge to which the line from the centroid of the neighbour across this edge goes.

    The derivative of the interpolant in this direction is linear along the edge, which makes it smooth. The direction
    is invariant under affine maps. At the rim it goes to the middle of the edge.
    """
    neighbour = fnp.take(tri.neighbors[:, k], found)
    is_rim = neighbour < 0
    others = fnp.take(tri.simplices, fnp.where(is_rim, found, neighbour), axis=0)
    centroid = fnp.mean(fnp.take(points, others, axis=0), axis=1)
    (ax, ay), (bx, by), (cx, cy) = [
        ((q - corners[2])[:, 0], (q - corners[2])[:, 1]) for q in (corners[0], corners[1], centroid)
    ]
    determinant = ax * by - ay * bx
    first, second = (cx * by - cy * bx) / determinant, (ax * cy - ay * cx) / determinant
    local = [first, second, 1.0 - first - second]
    c1, c2 = local[(k + 1) % 3], local[(k + 2) % 3]
    bottom = fnp.where(is_rim, 1.0, 2 - 3 * c2 - 3 * c1)
    return fnp.where(is_rim, -0.5, (2 * c2 + c1 - 1) / bottom)
