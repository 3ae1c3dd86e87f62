"""Splines in the B-spline basis with traced coefficients, knots and arguments, of one and of several variables."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, shape_of
from func.scipy.interpolate.basis import checked_knots, differentiated, full, integrated, spline_values, tensor_values
from func.scipy.interpolate.collocation import (
    coefficients,
    end_knots,
    not_a_knot,
    periodic_coefficients,
    periodic_knots,
)
from func.scipy.interpolate.data_arguments import (
    array_of,
    first_axis,
    floats,
    is_traced,
    nan_where,
    numbers,
    order_of,
    queries,
    reals,
    refuse,
    shaped,
)
from func.scipy.interpolate.held_attributes import HeldAttribute, HoldsTraced
from func.scipy.kinds.versions import version_of


class BSpline(HoldsTraced, _scipy.BSpline):  # type: ignore[misc]
    """A spline in the B-spline basis with knots t, coefficients c (n, …) and degree k, as scipy.interpolate.BSpline.

    Differentiable in knots, coefficients and points; at a knot the derivative is that of the piece to its right.
    """

    _held_names = ("t", "c", "k", "extrapolate", "axis")
    t, c, k, extrapolate, axis = HeldAttribute(), HeldAttribute(), HeldAttribute(), HeldAttribute(), HeldAttribute()

    @version_of(_scipy.BSpline.__init__)
    def __init__(self, t: Any, c: Any, k: Any, extrapolate: Any = True, axis: int = 0) -> None:
        k = operator.index(k)
        t, c = reals(t), floats(c)
        if not shape_of(c):
            raise ValueError("Coefficients must be at least 1-dimensional.")
        c, axis = first_axis(c, axis)
        n = checked_knots(t, k)
        if shape_of(c)[0] < n:
            raise ValueError("Knots, coefficients and degree are inconsistent.")
        self._fill(t, c, k, extrapolate if extrapolate == "periodic" else bool(extrapolate), axis)

    def _fill(self, t: Array, c: Array, k: int, extrapolate: Any, axis: int) -> None:
        self._hold(t=t, c=c, k=k, extrapolate=extrapolate, axis=axis)

    def _store(self, *, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> None:
        scipy_hooks.original(_scipy.BSpline.__init__)(self, t, c, k, extrapolate)
        self.axis = axis

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Any:
        """A spline of these knots and coefficients, without checks."""
        t, c = array_of(t), array_of(c)
        if not is_traced(t, c):
            return super().construct_fast(t, c, k, extrapolate, axis)
        self = object.__new__(cls)
        self._fill(t, c, k, extrapolate, axis)
        return self

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> Any:
        """The basis function with these knots, as a spline."""
        if not is_traced(t):
            return _scipy.BSpline.basis_element(t, extrapolate)
        t = reals(t)
        n = shape_of(t)[0]
        k = n - 2
        t = fnp.concatenate([*[t[:1] - 1.0] * k, t, *[t[n - 1 :] + 1.0] * k])
        c = np.zeros(shape_of(t)[0])
        c[k] = 1.0
        return BSpline.construct_fast(t, c, k, extrapolate)

    @classmethod
    def design_matrix(cls, x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
        """The sparse matrix of the basis functions at points."""
        if not is_traced(x, t):
            return _scipy.BSpline.design_matrix(x, t, k, extrapolate)
        return BSpline_design_matrix(cls, x, t, k, extrapolate)

    @version_of(_scipy.BSpline.__call__)
    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        """Evaluate the spline or its nu-th derivative."""
        return BSpline___call__(self, x, nu, extrapolate)

    @version_of(_scipy.BSpline.derivative)
    def derivative(self, nu: int = 1) -> Any:
        """The spline that is the nu-th derivative."""
        made = differentiated(self.t, full(self.t, self.c), self.k, int(nu))
        return BSpline.construct_fast(*made, extrapolate=self.extrapolate, axis=self.axis)

    @version_of(_scipy.BSpline.antiderivative)
    def antiderivative(self, nu: int = 1) -> Any:
        """The spline that is the nu-th antiderivative."""
        made = integrated(self.t, full(self.t, self.c), self.k, int(nu))
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return BSpline.construct_fast(*made, extrapolate=extrapolate, axis=self.axis)

    @version_of(_scipy.BSpline.integrate)
    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b, differentiable in both."""
        return BSpline_integrate(self, a, b, extrapolate)

    @classmethod
    def from_power_basis(cls, pp: Any, bc_type: str = "not-a-knot") -> Any:
        """The spline that equals a CubicSpline."""
        if not is_traced(pp):
            return _scipy.BSpline.from_power_basis(pp, bc_type)
        return BSpline_from_power_basis(cls, pp, bc_type)

    @version_of(_scipy.BSpline.insert_knot)
    def insert_knot(self, x: Any, m: int = 1) -> Any:
        """The same spline with a knot x more, m times."""
        return BSpline_insert_knot(self, x, m)


def BSpline___call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
    """Evaluation of SciPy's and func's splines at traced points."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    points, shape = queries(x)
    t, c, k = self.t, self.c, self.k
    n = shape_of(t)[0] - k - 1
    if extrapolate == "periodic":
        points, extrapolate = t[k] + fnp.remainder(points - t[k], t[n] - t[k]), True
    out = spline_values(t, c, k, points, order_of(nu))
    if not extrapolate:
        out = nan_where(fnp.logical_not((t[k] <= points) & (points <= t[n])), out)
    return shaped(out, shape, self.axis)


def BSpline_integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """Integrals of SciPy's and func's splines between traced limits."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    a, b = reals(a), reals(b)
    if shape_of(a) or shape_of(b):
        raise ValueError(f"the limits of an integral must be numbers, got shapes {shape_of(a)} and {shape_of(b)}")
    t, k = self.t, self.k
    n = shape_of(t)[0] - k - 1
    made = integrated(t, full(t, self.c), k, 1)
    start, end = t[k], t[n]
    limits = fnp.stack([a, b])
    if extrapolate == "periodic":
        turns = fnp.floor((limits - start) / (end - start))
        points = fnp.concatenate([limits - turns * (end - start), fnp.stack([start, end])])
        values = spline_values(*made, points)
        return values[1] - values[0] + (turns[1] - turns[0]) * (values[3] - values[2])
    if not extrapolate:
        limits = fnp.where(limits >= start, limits, start)
        limits = fnp.where(limits <= end, limits, end)
    values = spline_values(*made, limits)
    return values[1] - values[0]


def BSpline_insert_knot(self: Any, x: Any, m: int = 1) -> Any:
    """Knot insertion by Boehm's method, in SciPy's and func's splines.

    Source: W. Boehm (1980), Computer-Aided Design 12(4), 199-201.
    """
    x = reals(x)
    t, c, k = self.t, self.c, self.k
    what = "the place of a new knot"
    known, place = numbers(t, what), float(numbers(x, what))
    if place < known[k] or place > known[-k - 1]:
        raise ValueError(f"Cannot insert a knot at {place}.")
    if m <= 0:
        raise ValueError(f"`m` must be positive, got m = {m!r}.")
    for _ in range(m):
        t, c = _inserted(t, c, k, x, numbers(t, what), place, self.extrapolate == "periodic")
    return BSpline.construct_fast(t, c, k, self.extrapolate, self.axis)


def _inserted(t: Array, c: Array, k: int, x: Array, known: Any, place: float, periodic: bool) -> tuple[Array, Array]:
    n = len(known) - k - 1
    interval = int(np.clip(np.searchsorted(known, place, "right") - 1, k, n - 1))
    if known[interval] == known[interval + k + 1]:
        interval -= 1
    if periodic and interval + 1 <= 2 * k and interval + 1 >= len(known) - 2 * k:
        raise ValueError("Not enough internal knots.")
    new = fnp.concatenate([t[: interval + 1], fnp.reshape(x, (1,)), t[interval + 1 :]])
    rows = [c[: interval - k + 1]]
    for i in range(interval - k + 1, interval + 1):
        part = (x - new[i]) / (new[i + k + 1] - new[i])
        rows.append((part * c[i] + (1.0 - part) * c[i - 1])[None])
    out = fnp.concatenate([*rows, c[interval:]])
    if periodic:
        new, out = _repeated(new, out, k, interval)
    return new, out


def _repeated(t: Array, c: Array, k: int, interval: int) -> tuple[Array, Array]:
    """A periodic spline's knots and coefficients, with the period repeated at the end that the insertion left old."""
    n = shape_of(t)[0]
    period = t[n - k - 1] - t[k]
    inner = n - 2 * k - 1
    if interval >= n - 2 * k - 1:
        t = fnp.concatenate([t[n - 2 * k - 1 : n - k - 1] - period, t[k:]])
        c = fnp.concatenate([c[inner : inner + k], c[k:]])
    if interval <= 2 * k - 1:
        t = fnp.concatenate([t[: n - k], t[k + 1 : 2 * k + 1] + period])
        c = fnp.concatenate([c[:inner], c[:k], c[inner + k :]])
    return t, c


def BSpline_from_power_basis(cls: Any, pp: Any, bc_type: str = "not-a-knot") -> Any:
    """The spline that equals a traced CubicSpline.

    It has the values at the nodes, and what the boundary condition says about the ends.
    """
    if not isinstance(pp, _scipy.CubicSpline):
        raise NotImplementedError(f"Only CubicSpline objects are accepted for now. Got {type(pp)} instead.")
    if bc_type not in ("not-a-knot", "natural", "clamped", "periodic"):
        raise TypeError(f"Unknown boundary condition: {bc_type}")
    x = pp.x
    values = pp.c[3]
    n = shape_of(x)[0]
    h = x[n - 1] - x[n - 2]
    last = ((pp.c[0, n - 2] * h + pp.c[1, n - 2]) * h + pp.c[2, n - 2]) * h + values[n - 2]
    y = fnp.concatenate([values, fnp.reshape(last, (1, *shape_of(values)[1:]))])
    if len(shape_of(y)) > 1:
        raise refuse("BSpline.from_power_basis of several curves", "Call it for each of them.")
    none: tuple[list[int], list[Array]] = ([], [])
    if bc_type == "periodic":
        t = periodic_knots(x, 3)
        c = periodic_coefficients(x, y, t, 3)
    elif bc_type == "not-a-knot":
        t = not_a_knot(x, 3)
        c = coefficients(x, y, t, 3, none, none)
    else:
        slopes = pp.c[2, 0], (3.0 * pp.c[0, n - 2] * h + 2.0 * pp.c[1, n - 2]) * h + pp.c[2, n - 2]
        t = end_knots(x, 3)
        c = coefficients(x, y, t, 3, ([1], [slopes[0]]), ([1], [slopes[1]]))
    return BSpline.construct_fast(t, c, 3, pp.extrapolate, pp.axis)


def BSpline_basis_element(cls: Any, t: Any, extrapolate: Any = True) -> Any:
    """SciPy's class method for traced knots."""
    return BSpline.basis_element(t, extrapolate)


def BSpline_construct_fast(cls: Any, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Any:
    """SciPy's class method for traced knots or coefficients."""
    return BSpline.construct_fast(t, c, k, extrapolate, axis)


def BSpline_design_matrix(cls: Any, x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
    """Refused: a sparse matrix holds plain numbers."""
    raise refuse(
        "scipy.interpolate.BSpline.design_matrix",
        "Write BSpline(t, np.eye(len(t) - k - 1), k)(x), which is the matrix as an array.",
    )


class NdBSpline(HoldsTraced, _scipy.NdBSpline):  # type: ignore[misc]
    """A tensor-product spline of several variables, as scipy.interpolate.NdBSpline.

    Differentiable in knots, coefficients and points.
    """

    _held_names = ("t", "c", "k", "extrapolate")
    t, c, k, extrapolate = HeldAttribute(), HeldAttribute(), HeldAttribute(), HeldAttribute()

    @version_of(_scipy.NdBSpline.__init__)
    def __init__(self, t: Any, c: Any, k: Any, *, extrapolate: Any = None) -> None:
        if not isinstance(t, tuple):
            raise ValueError(f"Expect `t` to be a tuple of array-likes. Got {t} instead.")
        orders = [operator.index(d) for d in k] if np.ndim(k) else [operator.index(k)] * len(t)
        if len(orders) != len(t):
            raise ValueError(f"len(t) = {len(t)} != len(k) = {len(orders)!r}.")
        knots = tuple([reals(v) for v in t])
        c = floats(c)
        if len(shape_of(c)) < len(knots):
            raise ValueError(f"Coefficients must be at least {len(knots)}-dimensional.")
        for d, (v, order) in enumerate(zip(knots, orders, strict=True)):
            n = checked_knots(v, order)
            if shape_of(c)[d] != n:
                raise ValueError(
                    f"Knots, coefficients and degree in dimension {d} are inconsistent: got {shape_of(c)[d]} "
                    f"coefficients for {shape_of(v)[0]} knots, need at least {n} for k={order}."
                )
        self._hold(t=knots, c=c, k=tuple(orders), extrapolate=True if extrapolate is None else bool(extrapolate))

    def _store(self, *, t: Any, c: Any, k: Any, extrapolate: bool) -> None:
        scipy_hooks.original(_scipy.NdBSpline.__init__)(self, t, c, k, extrapolate=extrapolate)

    @version_of(_scipy.NdBSpline.__call__)
    def __call__(self, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
        """Evaluate the spline or its derivative of orders nu at points (…, ndim)."""
        return NdBSpline___call__(self, xi, nu=nu, extrapolate=extrapolate)

    @version_of(getattr(_scipy.NdBSpline, "derivative", None))  # later versions of SciPy have it
    def derivative(self, nu: Any) -> Any:
        """The spline that is the derivative of orders nu."""
        orders = _orders(nu, len(self.t))
        knots, degrees, c = list(self.t), list(self.k), self.c
        for d, order in enumerate(orders):
            if order == 0:
                continue
            inner = fnp.moveaxis(c, d, 0)
            if order > degrees[d]:
                inner, degrees[d] = fnp.zeros_like(inner, shape=(shape_of(knots[d])[0] - 1, *shape_of(inner)[1:])), 0
            else:
                knots[d], made, degrees[d] = differentiated(knots[d], full(knots[d], inner), degrees[d], order)
                inner = made[: shape_of(knots[d])[0] - degrees[d] - 1]
            c = fnp.moveaxis(inner, 0, d)
        return NdBSpline(tuple(knots), c, tuple(degrees), extrapolate=self.extrapolate)

    @classmethod
    def design_matrix(cls, xvals: Any, t: Any, k: Any, extrapolate: Any = True) -> Any:
        """The sparse matrix of the basis functions at points; refused for traced values."""
        if not is_traced(xvals, t):
            return _scipy.NdBSpline.design_matrix(xvals, t, k, extrapolate)
        raise refuse("scipy.interpolate.NdBSpline.design_matrix", "Evaluate an NdBSpline of unit coefficients.")


def _orders(nu: Any, ndim: int) -> list[int]:
    orders = np.asarray(nu, np.int64)
    if orders.ndim != 1 or len(orders) != ndim:
        raise ValueError(f"invalid number of derivative orders nu = {nu!r} for ndim = {ndim}.")
    if (orders < 0).any():
        raise ValueError(f"derivatives must be positive, got nu = {nu!r}")
    return [int(order) for order in orders]


def NdBSpline___call__(self: Any, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
    """Evaluation of SciPy's and func's splines at traced points."""
    extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
    knots, degrees, c = [reals(t) for t in self.t], [int(k) for k in self.k], floats(self.c)
    ndim = len(knots)
    orders = [0] * ndim if nu is None else _orders(nu, ndim)
    xi = reals(xi, "xi")
    shape = shape_of(xi)
    if shape[-1] != ndim:
        raise ValueError(f"Shapes: xi.shape={shape} and ndim={ndim}")
    points = fnp.reshape(xi, (-1, ndim))
    out = tensor_values(knots, c, degrees, [points[:, d] for d in range(ndim)], orders)
    lost = fnp.any(fnp.isnan(points), axis=1)
    if not extrapolate:
        for d, (t, k) in enumerate(zip(knots, degrees, strict=True)):
            x, n = points[:, d], shape_of(t)[0] - k - 1
            lost = lost | fnp.logical_not((t[k] <= x) & (x <= t[n]))
    return fnp.reshape(nan_where(lost, out), (*shape[:-1], *shape_of(c)[ndim:]))
