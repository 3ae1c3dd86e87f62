"""Interpolation of scattered data: radial basis functions, triangulations, nearest neighbours.

Neighbours and triangulations depend on the numbers of the points, and have no derivative. The values differentiate in
points, data and queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate as _scipy
from scipy.interpolate import interp1d
from scipy.spatial import Delaunay, KDTree

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, dtype_of, shape_of
from func.linalg import solve
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.clough_tocher import cubic_values, gradients
from func.scipy.interpolate.data_arguments import (
    COMPLEX,
    DOUBLE,
    array_of,
    common,
    coordinates,
    floats,
    is_never,
    numbers,
    reals,
    refuse,
)
from func.scipy.kinds.traces import in_original
from func.scipy.kinds.versions import version_of
from func.transforms.custom import stop_gradient

_KERNELS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda q: -_root(q),
    "thin_plate_spline": lambda q: 0.5 * q * _logarithm(q),
    "cubic": lambda q: q * _root(q),
    "quintic": lambda q: -(q * q) * _root(q),
    "multiquadric": lambda q: -fnp.sqrt(q + 1.0),
    "inverse_multiquadric": lambda q: 1.0 / fnp.sqrt(q + 1.0),
    "inverse_quadratic": lambda q: 1.0 / (q + 1.0),
    "gaussian": lambda q: fnp.exp(-q),
}
"""The kernels as functions of the squared distance."""
DENSE = 1_000_000
"""The number of pairs of points to compare at once."""


LEAST = -1e150
"""A substitute for the logarithm of zero: times zero it is zero, and alone it is conspicuous."""


def _logarithm(q: Array) -> Array:
    """log q, such that q log q has the derivative 0 where points at the squared distance q meet.

    Its second derivative there, which is -∞, is a number of order `LEAST`.
    """
    is_zero = q == 0
    return fnp.where(is_zero, LEAST, fnp.log(fnp.where(is_zero, 1.0, q)))


def _root(q: Array) -> Array:
    """The square root, with derivative 0 at 0."""
    zero = q == 0
    return fnp.where(zero, 0.0, fnp.sqrt(fnp.where(zero, 1.0, q)))


def squared_distances(x: Array, y: Array) -> Array:
    """Squared Euclidean distances (n, m) of points (n, d) and (m, d)."""
    return fnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)


def _powers_of(x: Array, powers: Any) -> Array:
    columns = []
    for row in np.asarray(powers):
        column: Any = fnp.ones_like(x[:, 0])
        for d, power in enumerate(row):
            for _ in range(int(power)):
                column = column * x[:, d]
        columns.append(column)
    return fnp.stack(columns, axis=1) if columns else fnp.zeros_like(x, shape=(shape_of(x)[0], 0))


def _extent(y: Array) -> tuple[Array, Array]:
    """The middle of the points and half their extent, 1 where that is 0."""
    low, high = fnp.min(y, axis=0), fnp.max(y, axis=0)
    scale = (high - low) / 2
    return (high + low) / 2, fnp.where(scale == 0, 1.0, scale)


def RBFInterpolator___init__(
    self: Any, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
    epsilon: Any = None, degree: Any = None,
) -> None:  # fmt: skip
    """Sums of radial basis functions and a polynomial through points.

    Differentiable in points, data, smoothing, epsilon and queries.
    """
    y, d, smoothing = reals(y, "y"), floats(d), to_dtype(array_of(smoothing), DOUBLE)
    shape = shape_of(y)
    # SciPy checks stand-ins of the same shapes, without a system to solve.
    points, values = np.arange(float(np.prod(shape))).reshape(shape), np.zeros(shape_of(d), dtype_of(d))
    weights = np.zeros(shape_of(smoothing)) if shape_of(smoothing) else 0.0
    count, width = shape[0] if neighbors is None and shape else neighbors, None if epsilon is None else 1.0
    scipy_hooks.original(_scipy.RBFInterpolator.__init__)(self, points, values, count, weights, kernel, width, degree)
    self.y, self.d = y, fnp.reshape(d, (shape[0], -1))
    self.smoothing = fnp.broadcast_to(smoothing, shape[:1])
    self.epsilon = 1.0 if epsilon is None else reals(epsilon, "epsilon")
    if neighbors is None:
        self.neighbors = None
        solved = _rbf_solved(y, self.d, self.smoothing, self.kernel, self.epsilon, self.powers)
        self._shift, self._scale, self._coeffs = solved
    else:
        self._tree = KDTree(numbers(y, "which points are neighbours"))


def _rbf_solved(y: Array, d: Array, smoothing: Array, kernel: str, epsilon: Any, powers: Any) -> tuple[Array, ...]:
    """The shift and scale of the polynomial's variable, and all coefficients."""
    shift, scale = _extent(y)
    scaled = y * epsilon
    n, r = shape_of(y)[0], len(powers)
    k = _KERNELS[kernel](squared_distances(scaled, scaled)) + np.eye(n) * smoothing
    p = _powers_of((y - shift) / scale, powers)
    top = fnp.concatenate([k, p], axis=1)
    matrix = fnp.concatenate([top, fnp.concatenate([fnp.transpose(p), np.zeros((r, r))], axis=1)])
    right = fnp.concatenate([d, fnp.zeros_like(d, shape=(r, shape_of(d)[1]))])
    return shift, scale, solve(matrix, right, check_finite=False)


def _rbf_values(x: Array, y: Array, kernel: str, epsilon: Any, powers: Any, solved: tuple[Array, ...]) -> Array:
    shift, scale, weights = solved
    k = _KERNELS[kernel](squared_distances(x * epsilon, y * epsilon))
    rows = fnp.concatenate([k, _powers_of((x - shift) / scale, powers)], axis=1)
    return fnp.matmul(*common(rows, weights))


def RBFInterpolator___call__(self: Any, x: Any) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""
    x = reals(x)
    if len(shape_of(x)) != 2:
        raise ValueError("`x` must be a 2-dimensional array.")
    y, d, kernel, epsilon, powers = self.y, self.d, self.kernel, self.epsilon, self.powers
    if shape_of(x)[1] != shape_of(y)[1]:
        raise ValueError(f"Expected the second axis of `x` to have length {shape_of(y)[1]}.")
    if dtype_of(d).kind != "c" and np.dtype(self.d_dtype).kind == "c":
        d = d.view(complex)  # SciPy's object holds real and imaginary parts in turn
    n = shape_of(x)[0]
    if self.neighbors is None:
        solved = self._shift, self._scale, self._coeffs
        if dtype_of(solved[2]).kind != "c" and np.dtype(self.d_dtype).kind == "c":
            solved = (*solved[:2], solved[2].view(complex))
        out = _rbf_values(x, y, kernel, epsilon, powers, solved)
    else:
        found = self._tree.query(numbers(x, "which points are neighbours"), self.neighbors)[1]
        found = np.sort(found.reshape(n, -1), axis=1)
        groups, inverse = np.unique(found, return_inverse=True, axis=0)
        inverse = inverse.reshape(-1)
        parts, places = [], []
        for i, group in enumerate(groups):
            place = np.flatnonzero(inverse == i)
            near = y[group]
            solved = _rbf_solved(near, d[group], self.smoothing[group], kernel, epsilon, powers)
            parts.append(_rbf_values(x[place], near, kernel, epsilon, powers, solved))
            places.append(place)
        out = fnp.concatenate(parts)[np.argsort(np.concatenate(places))] if parts else fnp.zeros_like(d[:0])
    return fnp.reshape(out, (n, *self.d_shape))


_RBF: dict[str, Callable[[Array, Any], Array]] = {
    "multiquadric": lambda q, e: fnp.sqrt(q / e**2 + 1.0),
    "inverse_multiquadric": lambda q, e: 1.0 / fnp.sqrt(q / e**2 + 1.0),
    "gaussian": lambda q, e: fnp.exp(-q / e**2),
    "linear": lambda q, e: _root(q),
    "cubic": lambda q, e: q * _root(q),
    "quintic": lambda q, e: q * q * _root(q),
    "thin_plate": lambda q, e: 0.5 * q * _logarithm(q),
}
_RBF_NAMES = {
    "inverse": "inverse_multiquadric",
    "inverse multiquadric": "inverse_multiquadric",
    "thin-plate": "thin_plate",
}


def Rbf___init__(self: Any, *args: Any, **kwargs: Any) -> None:
    """Radial basis functions through points; norms are Euclidean or custom functions."""
    self.xi = fnp.stack([fnp.reshape(reals(a), (-1,)) for a in args[:-1]])
    self.N = shape_of(self.xi)[1]
    self.mode = kwargs.pop("mode", "1-D")
    if self.mode not in ("1-D", "N-D"):
        raise ValueError("Mode has to be 1-D or N-D.")
    d = floats(args[-1])
    self.di = fnp.reshape(d, (-1,)) if self.mode == "1-D" else d
    self._target_dim = 1 if self.mode == "1-D" else shape_of(self.di)[-1]
    if shape_of(self.di)[0] != self.N:
        raise ValueError("All arrays must be equal length.")
    self.norm = kwargs.pop("norm", "euclidean")
    self.epsilon = kwargs.pop("epsilon", None)
    if self.epsilon is None:
        edges = fnp.max(self.xi, axis=1) - fnp.min(self.xi, axis=1)
        flat = edges == 0
        count = fnp.sum(fnp.where(flat, 0.0, 1.0))
        self.epsilon = (fnp.prod(fnp.where(flat, 1.0, edges)) / self.N) ** (1.0 / count)
    self.smooth = kwargs.pop("smooth", 0.0)
    self.function = kwargs.pop("function", "multiquadric")
    for item, value in kwargs.items():
        setattr(self, item, value)
    points = fnp.transpose(self.xi)
    matrix = _rbf_kernel(self, points, points) - np.eye(self.N) * self.smooth
    self.nodes = solve(matrix, self.di)


def _rbf_kernel(self: Any, x: Array, y: Array) -> Array:
    if callable(self.norm):
        r: Any = self.norm(fnp.transpose(x), fnp.transpose(y))
        q = r * r
    elif self.norm == "euclidean":
        q = squared_distances(x, y)
    else:
        raise refuse(f"scipy.interpolate.Rbf with norm={self.norm!r}", "Use 'euclidean' or a function of two arrays.")
    if isinstance(self.function, str):
        name = _RBF_NAMES.get(self.function.lower(), self.function.lower())
        if name not in _RBF:
            raise ValueError(f"function must be a callable or one of {', '.join(_RBF)}")
        return _RBF[name](q, self.epsilon)
    code = getattr(self.function, "__code__", None)
    r = _root(q)
    return self.function(r) if code is None or code.co_argcount == 1 else self.function(self, r)


def Rbf___call__(self: Any, *args: Any) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""
    parts = [reals(a) for a in args]
    shape = shape_of(parts[0])
    if any(shape_of(part) != shape for part in parts):
        raise ValueError("Array lengths must be equal")
    points = fnp.stack([fnp.reshape(part, (-1,)) for part in parts], axis=1)
    k = _rbf_kernel(self, points, fnp.transpose(array_of(self.xi)))
    out = fnp.matmul(*common(k, floats(self.nodes)))
    return fnp.reshape(out, (*shape, self._target_dim) if self._target_dim > 1 else shape)


def _scattered(points: Any, values: Any, rescale: bool) -> tuple[Array, Array, Any, Any]:
    """Points (n, d) and values (n, …), and the offset and scale that `rescale` asks for."""
    x = coordinates(points)
    y = array_of(values)
    y = to_dtype(y, COMPLEX if dtype_of(y).kind == "c" else DOUBLE)
    if len(shape_of(x)) != 2 or not shape_of(y) or shape_of(y)[0] != shape_of(x)[0]:
        raise ValueError("different number of values and points")
    if not rescale:
        return x, y, None, None
    offset = fnp.mean(x, axis=0)
    extent = fnp.max(x, axis=0) - fnp.min(x, axis=0)
    scale = fnp.where(extent > 0, extent, 1.0)
    return (x - offset) / scale, y, offset, scale


def NearestNDInterpolator___init__(self: Any, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
    """The value of the nearest point; differentiable in the values."""
    points, _, offset, scale = _scattered(x, y, rescale)
    self._parts = (points, array_of(y), offset, scale)


def NearestNDInterpolator___call__(self: Any, *args: Any, **query_options: Any) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""
    if query_options:
        raise refuse("scipy.interpolate.NearestNDInterpolator with query options", "Leave them out.")
    if hasattr(self, "_parts"):
        points, values, offset, scale = self._parts
    else:
        points, values = self.points, self.values
        offset, scale = (self.offset, self.scale) if getattr(self, "scale", None) is not None else (None, None)
    xi = coordinates(args[0] if len(args) == 1 else args, shape_of(points)[1])
    if offset is not None:
        xi = (xi - offset) / scale
    shape = shape_of(xi)
    flat = fnp.reshape(xi, (-1, shape[-1]))
    if shape_of(flat)[0] * shape_of(points)[0] > DENSE:
        what = "the nearest point"
        place = KDTree(numbers(points, what)).query(numbers(flat, what))[1]
    else:
        place = fnp.argmin(squared_distances(flat, points), axis=1)
    values = values if dtype_of(values).kind == "c" else to_dtype(values, DOUBLE)
    out = fnp.take(values, place, axis=0)
    return fnp.reshape(out, (*shape[:-1], *shape_of(values)[1:]))


def _fill_scattered(self: Any, points: Any, values: Any, fill_value: Any, rescale: bool) -> None:
    """The data of an interpolator on triangles, whose points may be a triangulation."""
    given = points.points if isinstance(points, Delaunay) else points
    x, y, offset, scale = _scattered(given, values, rescale)
    if isinstance(points, Delaunay):
        if rescale:
            raise ValueError("Rescaling is not supported when passing a Delaunay triangulation as points")
        self.tri = points
    else:
        self.tri = Delaunay(numbers(x, "the triangulation of points"))
    self._parts, self.fill_value = (x, y, offset, scale), fill_value


def LinearNDInterpolator___init__(
    self: Any, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False
) -> None:
    """Linear interpolation on triangles or simplices.

    The simplices are those of the numbers of the points; differentiable in points, values and queries.
    """
    _fill_scattered(self, points, values, fill_value, rescale)


def _linear_values(self: Any, args: Any, tolerance: float) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""

    def values_at(points: Array, values: Array, found: Array, weights: Array) -> Array:
        corners = fnp.take(self.tri.simplices, found, axis=0)
        return fnp.sum(weights[:, :, None] * fnp.take(values, corners, axis=0), axis=1)

    return _on_simplices(self, args, tolerance, values_at)


def _on_simplices(
    self: Any, args: Any, tolerance: float, values_at: Callable[[Array, Array, Array, Array], Array]
) -> Array:
    """Values at queries in simplices, by a function of points, values (n, m), simplices and barycentric coordinates."""
    if hasattr(self, "_parts"):
        points, values, offset, scale = self._parts
    else:
        points, values = self.points, np.reshape(self.values, (len(self.values), *self.values_shape))
        offset, scale = (self.offset, self.scale) if self.scale is not None else (None, None)
    xi = coordinates(args[0] if len(args) == 1 else args, shape_of(points)[1])
    if offset is not None:
        xi = (xi - offset) / scale
    shape = shape_of(xi)
    flat = fnp.reshape(xi, (-1, shape[-1]))
    found, lost = _simplex_of(self.tri, flat, 100 * np.finfo(float).eps * tolerance)
    corners = fnp.take(self.tri.simplices, found, axis=0)
    weights = simplex_weights(fnp.take(points, corners, axis=0), flat)
    rest = shape_of(values)[1:]
    out = values_at(points, fnp.reshape(values, (shape_of(values)[0], -1)), found, weights)
    if not is_never(lost):
        fill = to_dtype(array_of(self.fill_value), dtype_of(out))
        out = fnp.where(lost[:, None], fill, out)
    return fnp.reshape(out, (*shape[:-1], *rest))


def _simplex_of(tri: Any, x: Array, tolerance: float) -> tuple[Array, Array]:
    """The simplex of each point (n, d), and whether there is none.

    Few points are tried in all simplices, which needs no numbers; for many points SciPy searches.
    """
    d = shape_of(x)[1]
    if shape_of(x)[0] * len(tri.simplices) > DENSE:
        found = tri.find_simplex(numbers(x, "the triangle that holds a point"), tol=tolerance)
        return np.maximum(found, 0), found < 0
    first = fnp.einsum("sij,nsj->nsi", tri.transform[:, :d], stop_gradient(x)[:, None, :] - tri.transform[:, d])
    least = fnp.minimum(fnp.min(first, axis=2), 1.0 - fnp.sum(first, axis=2))
    least = fnp.where(fnp.isnan(least), -np.inf, least)
    return fnp.argmax(least, axis=1), fnp.logical_not(fnp.max(least, axis=1) >= -tolerance)


def LinearNDInterpolator___call__(self: Any, *args: Any, simplex_tolerance: float = 1.0) -> Array:
    """Evaluation of both classes of interpolators on triangles, which inherit one method, at traced points."""
    return (_cubic_values if isinstance(self, _scipy.CloughTocher2DInterpolator) else _linear_values)(
        self, args, simplex_tolerance
    )


def CloughTocher2DInterpolator___init__(
    self: Any, points: Any, values: Any, fill_value: Any = np.nan, tol: float = 1e-6, maxiter: int = 400,
    rescale: bool = False,
) -> None:  # fmt: skip
    """Cubic interpolation on triangles.

    The triangles are those of the numbers of the points; differentiable in points, values and queries. The gradients
    solve their equations exactly, without `tol` and `maxiter`.
    """
    _fill_scattered(self, points, values, fill_value, rescale)
    x, y, _, _ = self._parts
    if shape_of(x)[1] != 2:
        raise ValueError("this mode of interpolation available only for 2-D data")
    self._slopes = gradients(self.tri, x, fnp.reshape(y, (shape_of(y)[0], -1)))


def _cubic_values(self: Any, args: Any, tolerance: float) -> Array:
    """Evaluation of SciPy's and func's objects at traced points."""

    def values_at(points: Array, values: Array, found: Array, weights: Array) -> Array:
        return cubic_values(self.tri, points, values, self._slopes if own else self.grad, found, weights)

    own = hasattr(self, "_parts")
    return _on_simplices(self, args, tolerance, values_at)


def simplex_weights(corners: Array, x: Array) -> Array:
    """The barycentric coordinates (n, d + 1) of points (n, d) in simplices with corners (n, d + 1, d)."""
    d = shape_of(x)[1]
    last = corners[:, d]
    edges = fnp.swapaxes(corners[:, :d] - last[:, None, :], 1, 2)
    first = fnp.linalg.solve(edges, (x - last)[:, :, None])[:, :, 0]
    return fnp.concatenate([first, 1.0 - fnp.sum(first, axis=1)[:, None]], axis=1)


@version_of(_scipy.griddata)
def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Interpolation of scattered data, as scipy.interpolate.griddata.

    Differentiable in points, values and queries.
    """
    x = coordinates(points)
    if shape_of(x)[-1] > 1 or method not in ("nearest", "linear", "cubic"):
        return in_original(_scipy.griddata, x, values, xi, method, fill_value, rescale, **options)
    x = fnp.reshape(x, (-1,))
    if isinstance(xi, tuple):
        if len(xi) != 1:
            raise ValueError("invalid number of dimensions in xi")
        (xi,) = xi
    order = fnp.argsort(x)
    values = fnp.take(array_of(values), order, axis=0)
    fill = "extrapolate" if method == "nearest" else fill_value
    return interp1d(fnp.take(x, order), values, kind=method, axis=0, bounds_error=False, fill_value=fill)(xi)
