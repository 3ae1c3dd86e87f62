"""scipy.spatial on traced and plain arrays.

Distances, Procrustes analysis and spherical interpolation differentiate. Trees, hulls, triangulations and diagrams are
made of plain points (`func.stop_gradient`); results that use their indices differentiate in the points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial as _scipy

from func.scipy.kinds.versions import version_of
from func import numpy as fnp
from func.interpreters.core import Array, is_plain_array, known_value
from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.scipy.kinds.public_modules import public_module as _public_module

__all__ = ["distance_matrix", "geometric_slerp", "minkowski_distance", "minkowski_distance_p"]


@version_of(_scipy.minkowski_distance_p)
def minkowski_distance_p(x: Array, y: Array, p: Any = 2.0) -> Array:
    """The p-th power of the distances of x and y, broadcast, along the last axis; for p = ∞ the distances."""
    x, y = _points(x, y)
    size = fnp.abs(y - x)
    if not holds_traced(p) and p == np.inf:
        return fnp.max(size, axis=-1)
    if not holds_traced(p) and p in (1, 2):
        return fnp.sum(size if p == 1 else size * size, axis=-1)
    nothing = fnp.equal(size, 0)
    return fnp.sum(fnp.where(nothing, 0.0, fnp.where(nothing, 1.0, size) ** p), axis=-1)


@version_of(_scipy.minkowski_distance)
def minkowski_distance(x: Array, y: Array, p: Any = 2.0) -> Array:
    """The distances of x and y, broadcast, along the last axis; their derivative at coinciding points is zero."""
    x, y = _points(x, y)
    power = minkowski_distance_p(x, y, p)
    if not holds_traced(p) and p in (1, np.inf):
        return power
    nothing = fnp.equal(power, 0)
    safe = fnp.where(nothing, 1.0, power)
    return fnp.where(nothing, 0.0, fnp.sqrt(safe) if not holds_traced(p) and p == 2 else safe ** (1.0 / p))


def _points(x: Any, y: Any) -> tuple[Array, Array]:
    """Both in double precision, or in a complex or wider dtype if they have one."""
    x, y = fnp.asarray(x), fnp.asarray(y)
    dtype = np.promote_types(np.promote_types(x.dtype, y.dtype), np.float64)
    return fnp.astype(x, dtype, copy=False), fnp.astype(y, dtype, copy=False)


@version_of(_scipy.distance_matrix)
def distance_matrix(x: Array, y: Array, p: Any = 2.0, threshold: int = 1000000) -> Array:
    """The distances (m, n) of the rows of x (m, k) and of y (n, k); `threshold` is ignored.

    >>> import numpy as np, func
    >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> func.grad(lambda x: np.sum(func.scipy.spatial.distance_matrix(x, x)))(x)
    array([[-1.2, -1.6],
           [ 1.2,  1.6]])
    """
    x, y = fnp.asarray(x), fnp.asarray(y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[1]}-dimensional vectors but y contains {y.shape[1]}-dimensional vectors")
    return minkowski_distance(x[:, None, :], y[None, :, :], p)


@version_of(_scipy.geometric_slerp)
def geometric_slerp(start: Array, end: Array, t: Array, tol: float = 1e-07) -> Array:
    """Points (…, d) of the great circle from start (d,) to end (d,), at the fractions t (…) of the way.

    The curve also depends on points off the sphere: through the plane of both, and the angle between them.
    """
    start, end, t = [fnp.astype(fnp.asarray(x), np.float64, copy=False) for x in (start, end, t)]
    # SciPy checks the numbers, or stand-ins of the same shapes if they are unknown.
    values = [known_value(x) for x in (start, end)]
    if not all([is_plain_array(value) and value.ndim == 1 for value in values]):
        values = [np.eye(x.shape[0])[0] if x.ndim == 1 and x.shape[0] else np.zeros(x.shape) for x in (start, end)]
    scipy_hooks.original(_scipy.geometric_slerp)(*values, np.zeros(t.shape), tol)
    return _arc(start, end, t)


def _arc(start: Array, end: Array, t: Array) -> Array:
    """e_1 cos(t ω) + e_2 sin(t ω) of the orthonormal basis of the plane, in terms regular at ω = 0.

    With e_1 = start / |start|, c and s the components of the end and ω = atan2(s |start|, c |start|), the second term
    is (end - c e_1) sin(t ω) / s.
    """
    length = fnp.linalg.norm(start)
    e = start / length
    c = fnp.dot(e, end)
    rest = end - c * e
    square = fnp.dot(rest, rest)
    equal = fnp.equal(square, 0)
    s = fnp.sqrt(fnp.where(equal, 1.0, square))
    angle = fnp.arctan2(s, c)
    turned = fnp.expand_dims(t * angle, -1)
    slope = fnp.where(equal, fnp.expand_dims(t, -1), fnp.sin(turned) / s)
    return e * fnp.where(equal, 1.0, fnp.cos(turned)) + rest * slope


__getattr__, __dir__ = _public_module(globals(), _scipy, modules=("distance", "transform"))
