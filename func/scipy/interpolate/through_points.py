"""Polynomials and rational functions through points: Newton's, Lagrange's and the barycentric form, Padé approximants.

The barycentric form is a sum relative to the nearest node: p = Σ w q y / Σ w q with q = (x - near) / (x - node). So it
is smooth at the nodes, where SciPy's own form is 0 / 0 and takes the value of the node.

Source: J.-P. Berrut and L. N. Trefethen (2004), SIAM Review 46(3), 501-517.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, dtype_of, shape_of
from func.linalg import solve
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.data_arguments import (
    COMPLEX,
    array_of,
    column,
    common,
    floats,
    holds,
    is_finite,
    is_never,
    is_traced,
    nan_where,
    numbers,
    reals,
    refuse,
)
from func.scipy.kinds.traces import in_original, part
from func.scipy.kinds.versions import version_of

_BASE: Any = next(kind for kind in _scipy.KroghInterpolator.__mro__ if kind.__name__ == "_Interpolator1D")


def _set_up(self: Any, xi: Any, yi: Any, axis: int) -> None:
    """The shape and dtype of the values, checked by SciPy."""
    in_original(_BASE.__init__, self, xi, yi, axis)


def KroghInterpolator___init__(self: Any, xi: Any, yi: Any, axis: int = 0) -> None:
    """The polynomial through points, repeated ones with derivatives.

    Differentiable in nodes, values and points; the numbers of the nodes decide which ones are repeated.
    """
    nodes = reals(xi, "xi")
    n = shape_of(nodes)[0]
    yi = floats(yi)
    _set_up(self, nodes, yi, axis)
    self.xi, self.yi = nodes, in_original(_BASE._reshape_yi, self, yi)
    self.n, self.r = shape_of(self.yi)
    if n > 30:
        warnings.warn(
            f"{n} degrees provided, degrees higher than about thirty cause problems with numerical instability "
            "with 'KroghInterpolator'",
            stacklevel=2,
        )
    self.c = _newton_coefficients(nodes, self.yi, numbers(nodes, "which nodes are repeated"))


def _newton_coefficients(xi: Array, y: Array, known: Any) -> Array:
    """The divided differences, of derivatives where nodes are repeated.

    Source: F. T. Krogh (1970), Math. Comp. 24, 185-190.
    """
    n = shape_of(xi)[0]
    c = [y[0]]
    for k in range(1, n):
        repeated = 0
        while repeated < k and known[k - repeated - 1] == known[k]:
            repeated += 1
        factorial = float(np.prod(np.arange(1, repeated + 1)))
        v = y[k] / factorial
        before: Any = None
        rows = [v]
        for i in range(k - repeated):
            if known[i] == known[k]:
                raise ValueError("Elements of `xi` can't be equal.")
            gap = xi[i] - xi[k]
            before = (c[i] - rows[i]) / gap
            rows.append(before)
        if repeated:
            rows = _repeated_rows(xi, y, c, k, repeated)
        c.append(rows[k - repeated])
    c.append(fnp.zeros_like(c[0]))
    return fnp.stack(c)


def _repeated_rows(xi: Array, y: Array, c: list[Array], k: int, repeated: int) -> list[Array]:
    """Krogh's differences for a repeated node: those of the Taylor coefficients of the rest."""
    start = k - repeated
    # The Newton form so far, and its derivatives at the node, by Taylor coefficients in x - xi[k].
    size = repeated + 1
    total = [fnp.zeros_like(c[0])] * size
    product: list[Any] = [1.0] + [0.0] * repeated
    for i in range(k):
        total = [t + p * c[i] for t, p in zip(total, product, strict=True)]
        gap = xi[k] - xi[i] if i < start else 0.0
        product = [gap * product[j] + (product[j - 1] if j else 0.0) for j in range(size)]
    factorial = float(np.prod(np.arange(1, repeated + 1)))
    rest = (y[k] / factorial - total[repeated]) / product[repeated]
    return [rest] * (k + 1)


def KroghInterpolator__evaluate(self: Any, x: Any) -> Array:
    """Values (queries, r) of Newton's form."""
    return KroghInterpolator__evaluate_derivatives(self, x, 1)[0]


def KroghInterpolator__evaluate_derivatives(self: Any, x: Any, der: int | None = None) -> Array:
    """The derivatives (der, queries, r) of Newton's form, of orders below der."""
    points, c, xi = reals(x), floats(self.c), reals(self.xi)
    n = int(self.n)
    count = n if der is None else int(der)
    size = min(count, n)
    powers: list[Any] = [fnp.ones_like(points)] + [fnp.zeros_like(points)] * (size - 1)
    rows = [powers[m][:, None] * c[0] for m in range(size)]
    for k in range(1, n):
        w = points - xi[k - 1]
        powers = [w * powers[m] + (m * powers[m - 1] if m else 0.0) for m in range(size)]
        rows = [row + power[:, None] * c[k] for row, power in zip(rows, powers, strict=True)]
    return fnp.stack(rows + [rows[0] * 0.0] * (count - size))


def near(nodes: Array, points: Array) -> tuple[Array, Array]:
    """The nearest node of each point, and q = (x - near) / (x - node), which is 1 for the nearest."""
    gaps = points[:, None] - nodes
    place = fnp.argmin(fnp.abs(gaps), axis=1)
    own = place[:, None] == np.arange(shape_of(nodes)[0])
    to_near = points - fnp.take(nodes, place)
    return place, fnp.where(own, 1.0, to_near[:, None] / fnp.where(own, 1.0, gaps))


def barycentric(nodes: Array, weights: Array, values: Array, points: Array) -> Array:
    """The barycentric form (queries, r) of values (n, r) at points."""
    if 0 in shape_of(points):
        return fnp.zeros_like(values, shape=(0, shape_of(values)[1]))
    w = weights * near(nodes, points)[1]
    return (w @ values) / fnp.sum(w, axis=1)[:, None]


class _InOrder:
    """A generator whose permutation is the identity, for SciPy's order of products."""

    permutation = staticmethod(np.arange)


_set_nodes = part(inspect.unwrap(_scipy.BarycentricInterpolator.__init__), check_random_state=lambda rng: _InOrder)


def BarycentricInterpolator___init__(
    self: Any, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None, random_state: Any = None
) -> None:
    """The polynomial through points in the barycentric form; nothing random."""
    _set_nodes(self, xi, yi, axis, wi=wi)


def BarycentricInterpolator__evaluate(self: Any, x: Any) -> Array:
    """Values (queries, r) of the barycentric form, which is smooth at the nodes too."""
    return barycentric(reals(self.xi), reals(self.wi), floats(self.yi), reals(x))


def BarycentricInterpolator__evaluate_derivatives(
    self: Any, x: Any, der: int | None = None, all_lower: bool = True
) -> Array:
    """The derivatives (der, queries, r) of orders below der: the form of the derivatives at the nodes; or the last."""
    points, xi, wi, values = reals(x), reals(self.xi), reals(self.wi), floats(self.yi)
    eye = np.eye(int(self.n), dtype=bool)
    gaps = fnp.where(eye, 1.0, xi[:, None] - xi)
    matrix = fnp.where(eye, 0.0, wi / (gaps * wi[:, None]))
    matrix = fnp.where(eye, -fnp.sum(matrix, axis=1)[:, None], matrix)
    rows: list[Array] = []
    for order in range(int(self.n if der is None else der)):
        rows.append(barycentric(xi, wi, values, points) if order < self.n else rows[0] * 0.0)
        values = matrix @ values
    return fnp.stack(rows) if all_lower else rows[-1]


def _poly1d(coefficients: Array) -> Any:
    """A poly1d with traced coefficients; leading zeros stay, as they have derivatives too."""
    out: Any = np.poly1d([0.0])
    out._coeffs = coefficients
    return out


@version_of(_scipy.lagrange)
def lagrange(x: Any, w: Any) -> Any:
    """The polynomial through points as a numpy.poly1d, as scipy.interpolate.lagrange.

    Leading zero coefficients stay.
    """
    x, w = floats(x), floats(w)
    n = shape_of(x)[0]
    total: Any = None
    for j in range(n):
        term = w[j : j + 1]
        for k in range(n):
            if k != j:
                zero = fnp.zeros_like(term[:1])
                product = fnp.concatenate(common(term, zero)) - x[k] * fnp.concatenate(common(zero, term))
                term = product / (x[j] - x[k])
        total = term if total is None else total + term
    return _poly1d(total)


@version_of(_scipy.pade)
def pade(an: Any, m: int, n: int | None = None) -> Any:
    """The Padé approximant p / q of a Taylor series as two numpy.poly1d, as scipy.interpolate.pade."""
    a = floats(an)
    length = shape_of(a)[0]
    if n is None:
        n = length - 1 - m
        if n < 0:
            raise ValueError("Order of q <m> must be smaller than len(an)-1.")
    if n < 0:
        raise ValueError("Order of p <n> must be greater than 0.")
    size = m + n
    if size > length - 1:
        raise ValueError("Order of q+p <m+n> must be smaller than len(an).")
    a = a[: size + 1]
    shift = np.arange(size + 1)[:, None] - np.arange(1, m + 1)
    right = fnp.where(shift >= 0, -fnp.take(a, np.maximum(shift, 0)), 0.0)
    matrix = fnp.concatenate(common(fnp.asarray(np.eye(size + 1, n + 1)), right), axis=1)
    both = solve(matrix, a)
    q = fnp.concatenate([fnp.ones_like(both[:1]), both[n + 1 :]])
    return _poly1d(both[: n + 1][::-1]), _poly1d(q[::-1])


def approximate_taylor_polynomial(f: Any, x: Any, degree: int, scale: Any, order: int | None = None) -> Any:
    """The Taylor polynomial of a function, from a polynomial through nearby values, as SciPy's function of the name."""
    n = (degree if order is None else order) + 1
    values = f(scale * np.cos(np.linspace(0, np.pi, n, endpoint=False)) + x)
    if not is_traced(values, x, scale):
        return scipy_hooks.original(_scipy.approximate_taylor_polynomial)(f, x, degree, scale, order)
    # In the variable (nodes - x) / scale the nodes are numbers, which are known also in traced code.
    nodes = np.cos(np.linspace(0, np.pi, n, endpoint=False))
    derivatives = _scipy.KroghInterpolator(nodes, floats(values)).derivatives(0.0, der=degree + 1)
    factors = np.cumprod(np.r_[1.0, np.arange(1, degree + 1)])
    scales = fnp.stack([floats(scale) ** i for i in range(degree + 1)])
    rank = len(shape_of(derivatives))
    return _poly1d((derivatives / column(scales * factors, rank))[::-1])


def FloaterHormannInterpolator___init__(self: Any, points: Any, values: Any, *, d: int = 3, axis: int = 0) -> None:
    """Floater and Hormann's rational function through points.

    Source: M. S. Floater and K. Hormann (2007), Numer. Math. 107, 315-331.
    """
    z, f = array_of(points), array_of(values)
    if dtype_of(z).kind == "c":
        raise refuse("scipy.interpolate.FloaterHormannInterpolator at complex nodes", "Pass real nodes.")
    z = reals(z)
    if not 0 <= d < shape_of(z)[0]:
        raise ValueError("`d` must satisfy 0 <= d < n")
    if len(shape_of(z)) != 1:
        raise ValueError("`x` must be 1-D.")
    if not len(shape_of(f)):
        raise ValueError("`y` must be at least 1-D.")
    if shape_of(z)[0] != shape_of(f)[axis]:
        raise ValueError(f"`x` be of size {shape_of(f)[axis]} but got size {shape_of(z)[0]}.")
    if not is_finite(z):
        raise ValueError("`x` must be finite.")
    f = fnp.moveaxis(floats(f), axis, 0)
    if not is_finite(f):
        finite = np.isfinite(numbers(f, "which values are finite")).reshape(shape_of(f)[0], -1).all(axis=1)
        z, f = z[np.flatnonzero(finite)], f[np.flatnonzero(finite)]
    order = fnp.argsort(z)
    z, f = fnp.take(z, order), fnp.take(f, order, axis=0)
    if not holds(fnp.diff(z) > 0):
        first = np.unique(numbers(z, "which nodes are repeated"), return_index=True)[1]
        z, f = z[first], f[first]
    self._axis, self._shape = axis, shape_of(f)[1:]
    self._support_points, self._support_values, self.weights = z, f, _floater_hormann_weights(z, d)
    self._poles = self._residues = self._roots = None


def _floater_hormann_weights(z: Array, d: int) -> Array:
    n = shape_of(z)[0]
    total: Any = 0.0
    for offset in range(d + 1):
        size = n - d
        product: Any = fnp.ones_like(z[:size])
        for q in range(d + 1):
            if q != offset:
                product = product * fnp.abs(z[offset : offset + size] - z[q : q + size])
        empty = fnp.zeros_like(z)
        total = total + fnp.concatenate([empty[:offset], 1.0 / product, empty[offset + size :]])
    return total * (-1.0) ** (np.arange(n) - d)


def AAA___call__(self: Any, z: Any) -> Array:
    """Evaluation of SciPy's and func's rational functions at traced points."""
    z = array_of(z)
    if dtype_of(z).kind == "c" or any(np.iscomplexobj(v) for v in (self._support_points, self._support_values)):
        z = to_dtype(z, COMPLEX)
    else:
        z = reals(z)
    shape = shape_of(z)
    points = fnp.reshape(z, (-1,))
    nodes, weights = floats(self._support_points), floats(self.weights)
    values = fnp.reshape(floats(self._support_values), (shape_of(nodes)[0], -1))
    out = barycentric(nodes, weights, values, points)
    infinite = fnp.isinf(points)
    if not is_never(infinite):
        limit = fnp.sum(weights[:, None] * values, axis=0) / fnp.sum(weights)
        out = fnp.where(infinite[:, None], limit, out)
    rest, axis = getattr(self, "_shape", ()), getattr(self, "_axis", 0)  # SciPy has them from 1.16 on
    out = fnp.reshape(nan_where(fnp.isnan(points), out), (*shape, *rest))
    return fnp.moveaxis(out, 0, axis) if shape else out


def AAA___init__(self: Any, x: Any, y: Any, **options: Any) -> None:
    """Raises an error: greedy rational approximation is of plain data; its result takes traced points too."""
    raise refuse(
        "scipy.interpolate.AAA",
        "Its support points and weights are chosen to a tolerance: use plain data, or FloaterHormannInterpolator, "
        "which differentiates in its data.",
    )
