"""Piecewise polynomials with traced coefficients, breakpoints and arguments.

The interval of a point is found by searchsorted, an integer without derivative; the coefficients of the interval are
gathered and summed by Horner's scheme. At a breakpoint the derivative is that of the piece to its right, whose value
SciPy gives there; the last breakpoint belongs to the last piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, shape_of
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.basis import spline_values
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    column,
    common,
    floats,
    holds,
    is_made_of_traced,
    is_never,
    is_traced,
    nan_where,
    numbers,
    order_of,
    picked,
    queries,
    reals,
    require,
    shaped,
)
from func.scipy.interpolate.held_attributes import HeldAttribute, HoldsTraced
from func.scipy.kinds.versions import version_of


def intervals(x: Array, points: Array) -> Array:
    """The interval of each point, in breakpoints that rise or fall."""
    n = shape_of(x)[0]
    sign = fnp.where(x[n - 1] >= x[0], 1.0, -1.0)
    return fnp.clip(fnp.searchsorted(sign * x, sign * points, side="right") - 1, 0, n - 2)


def is_outside(x: Array, points: Array) -> Array:
    """Whether points lie outside all intervals; NaN does."""
    first, last = x[0], x[shape_of(x)[0] - 1]
    inside = (fnp.minimum(first, last) <= points) & (points <= fnp.maximum(first, last))
    return fnp.logical_not(inside)


def wrapped(x: Array, points: Array) -> Array:
    """Points moved into the first period."""
    start, end = x[0], x[shape_of(x)[0] - 1]
    return start + fnp.remainder(points - start, end - start)


def falling(k: int, nu: int) -> float:
    """k (k - 1) … (k - nu + 1), the factor of a power's nu-th derivative."""
    out = 1.0
    for i in range(nu):
        out *= k - i
    return out


def horner(c: Array, s: Array, nu: int) -> Array:
    """The nu-th derivative of polynomials with coefficients (k, n, …), the highest power first, at s (n,)."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    s = column(s, len(shape_of(c)) - 1)
    out: Array = c[0] * falling(k - 1, nu)
    for i in range(1, k - nu):
        out = out * s + c[i] * falling(k - 1 - i, nu)
    return out


def bernstein(c: Array, s: Array, h: Array, nu: int) -> Array:
    """The nu-th derivative of polynomials in the Bernstein basis (k, n, …) on intervals of length h, at s in [0, 1]."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    rank = len(shape_of(c)) - 1
    s, h = column(s, rank), column(h, rank)
    rows = [c[i] for i in range(k)]
    for i in range(nu):
        rows = [(b - a) * ((k - 1 - i) / h) for a, b in itertools.pairwise(rows)]
    while len(rows) > 1:
        rows = [a * (1.0 - s) + b * s for a, b in itertools.pairwise(rows)]
    return rows[0]


class _Piecewise(HoldsTraced):
    """What func's PPoly and BPoly share; their methods take SciPy's objects of plain numbers as well."""

    _local: Callable[[Array, Array, Array, int], Array]
    _scipy_class: type
    _held_names = ("c", "x", "extrapolate", "axis")
    c, x, extrapolate, axis = HeldAttribute(), HeldAttribute(), HeldAttribute(), HeldAttribute()

    def _fill(self: Any, c: Array, x: Array, extrapolate: Any, axis: int) -> None:
        self._hold(c=c, x=x, extrapolate=True if extrapolate is None else extrapolate, axis=axis)

    def _store(self: Any, *, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
        # Not by construct_fast: that of BPoly in SciPy 1.18.1 evaluates its coefficients as those of powers.
        scipy_hooks.original(self._scipy_class.__init__)(self, c, x, extrapolate)
        self.axis = axis

    def _init(self: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        c, x = floats(c), reals(x)
        if extrapolate is None:
            extrapolate = True
        elif extrapolate != "periodic":
            extrapolate = bool(extrapolate)
        rank = len(shape_of(c))
        if rank < 2:
            raise ValueError("Coefficients array must be at least 2-dimensional.")
        if not 0 <= axis < rank - 1:
            raise ValueError(f"axis={axis} must be between 0 and {rank - 1}")
        if axis != 0:
            c = fnp.moveaxis(fnp.moveaxis(c, axis + 1, 0), axis + 1, 0)
        if len(shape_of(x)) != 1:
            raise ValueError("x must be 1-dimensional")
        if shape_of(x)[0] < 2:
            raise ValueError("at least 2 breakpoints are needed")
        if shape_of(c)[0] == 0:
            raise ValueError("polynomial must be at least of order 0")
        if shape_of(c)[1] != shape_of(x)[0] - 1:
            raise ValueError("number of coefficients != len(x)-1")
        dx = fnp.diff(x)
        if not (holds(dx >= 0) or holds(dx <= 0) or holds(fnp.all(dx >= 0) | fnp.all(dx <= 0))):
            raise ValueError("`x` must be strictly increasing or decreasing.")
        self._fill(c, x, extrapolate, axis)

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Any:
        """An object of these coefficients and breakpoints."""
        self = object.__new__(cls)
        self._fill(array_of(c), array_of(x), extrapolate, axis)
        return self

    def _at(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Array:
        """The value at points, or a derivative."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points, shape = queries(x)
        c, breaks = self.c, self.x
        if extrapolate == "periodic":
            points, extrapolate = wrapped(breaks, points), False
        place = intervals(breaks, points)
        start = fnp.take(breaks, place)
        pieces = fnp.take(c, place, axis=1)
        out = _owner(self)._local(pieces, points - start, fnp.take(breaks, place + 1) - start, order_of(nu))
        lost = fnp.isnan(points) if extrapolate else is_outside(breaks, points)
        if not is_never(lost):
            out = nan_where(lost, out)
        return shaped(out, shape, self.axis)

    def _between(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Array:
        """The integral from a to b."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        a, b = reals(a), reals(b)
        if shape_of(a) or shape_of(b):
            raise ValueError(f"the limits of an integral must be numbers, got shapes {shape_of(a)} and {shape_of(b)}")
        primitive = _owner(self).antiderivative(self)
        primitive.axis = 0
        if extrapolate != "periodic":
            ends = primitive(fnp.stack([a, b]), extrapolate=bool(extrapolate))
            return ends[1] - ends[0]
        start, end = self.x[0], self.x[shape_of(self.x)[0] - 1]
        period = end - start
        points = fnp.stack([a, b, start, end])
        turns = fnp.floor((points[:2] - start) / period)
        ends = primitive(fnp.concatenate([points[:2] - turns * period, points[2:]]), extrapolate=True)
        return ends[1] - ends[0] + (turns[1] - turns[0]) * (ends[3] - ends[2])

    def _extended(self: Any, c: Any, x: Any) -> None:
        """Add breakpoints and pieces at the side where they fit."""
        c, x = floats(c), reals(x)
        old, breaks = self.c, self.x
        if len(shape_of(c)) < 2:
            raise ValueError("invalid dimensions for c")
        if len(shape_of(x)) != 1:
            raise ValueError("invalid dimensions for x")
        if shape_of(x)[0] != shape_of(c)[1]:
            raise ValueError(f"Shapes of x {shape_of(x)} and c {shape_of(c)} are incompatible")
        if shape_of(c)[2:] != shape_of(old)[2:] or len(shape_of(c)) != len(shape_of(old)):
            raise ValueError(f"Shapes of c {shape_of(c)} and self.c {shape_of(old)} are incompatible")
        if 0 in shape_of(c):
            return
        new, own = (
            numbers(x, "the side at which pieces are added"),
            numbers(breaks, "the side at which pieces are added"),
        )
        sign = 1.0 if own[-1] >= own[0] else -1.0
        if (np.diff(new) < 0).any() and (np.diff(new) > 0).any():
            raise ValueError("`x` is not sorted.")
        if sign * new[-1] < sign * new[0]:
            raise ValueError("`x` is in the different order than `self.x`.")
        if sign * new[0] >= sign * own[-1]:
            after = True
        elif sign * new[-1] <= sign * own[0]:
            after = False
        else:
            raise ValueError("`x` is neither on the left or on the right from `self.x`.")
        old, c = common(old, c)
        length = max(shape_of(old)[0], shape_of(c)[0])
        parts = [_padded(part, length) for part in ((old, c) if after else (c, old))]
        xs = fnp.concatenate([breaks, x] if after else [x, breaks])
        self._fill(fnp.concatenate(parts, axis=1), xs, self.extrapolate, self.axis)


def _padded(c: Array, length: int) -> Array:
    """Coefficients with zeros for higher powers."""
    missing = length - shape_of(c)[0]
    if missing <= 0:
        return c
    return fnp.concatenate([fnp.zeros_like(c, shape=(missing, *shape_of(c)[1:])), c])


class PPoly(_Piecewise, _scipy.PPoly):  # type: ignore[misc]
    """Piecewise polynomials in powers of x - x[i], with coefficients (k, intervals, …), as scipy.interpolate.PPoly.

    Differentiable in coefficients, breakpoints and points.
    """

    _scipy_class = _scipy.PPoly

    @version_of(_scipy.PPoly.__init__)
    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self._init(c, x, extrapolate, axis)

    @staticmethod
    def _local(c: Array, s: Array, h: Array, nu: int) -> Array:
        return horner(c, s, nu)

    @version_of(_scipy.PPoly.__call__)
    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        """Evaluate the piecewise polynomial or its nu-th derivative."""
        return _Piecewise._at(self, x, nu, extrapolate)

    @version_of(_scipy.PPoly.extend)
    def extend(self, c: Any, x: Any) -> None:
        """Add breakpoints and pieces."""
        self._extended(c, x)

    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial that is the nu-th derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        k = shape_of(c)[0]
        if nu >= k:
            c = c[:1] * 0.0
        elif nu:
            factors = np.array([falling(k - 1 - i, nu) for i in range(k - nu)])
            c = c[: k - nu] * column(factors, len(shape_of(c)))
        return _class_for(self).construct_fast(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial that is a continuous nu-th antiderivative."""
        if nu <= 0:
            return self.derivative(-nu)
        c, x = self.c, self.x
        h = fnp.diff(x)
        rest = (1,) * (len(shape_of(c)) - 2)
        for _ in range(nu):
            k = shape_of(c)[0]
            c = c / column(np.arange(k, 0, -1.0), len(shape_of(c)))
            end = horner(fnp.concatenate([c, fnp.zeros_like(c[:1])]), h, 0)
            sums = fnp.cumsum(end, axis=0)
            constants = fnp.concatenate([fnp.zeros_like(sums[:1]), sums[:-1]])
            c = fnp.concatenate([c, fnp.reshape(constants, (1, -1, *shape_of(c)[2:]) if rest else (1, -1))])
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return _class_for(self).construct_fast(c, x, extrapolate, self.axis)

    @version_of(_scipy.PPoly.integrate)
    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b, differentiable in both."""
        return _Piecewise._between(self, a, b, extrapolate)

    @version_of(_scipy.PPoly.solve)
    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The points where the value is y; they differentiate by the implicit function theorem.

        Where a jump passes y, and where a whole piece is y, the point is a breakpoint.
        """
        y = reals(y, "y")
        if extrapolate is None:
            extrapolate = self.extrapolate
        what = "the number of roots of a piecewise polynomial"
        values = [numbers(v, what) for v in (self.c, self.x, y)]
        plain = _scipy.PPoly(values[0], values[1], extrapolate if extrapolate != "periodic" else True)
        found = scipy_hooks.original(_scipy.PPoly.solve)(plain, float(values[2]), discontinuity, bool(extrapolate))
        if len(shape_of(self.c)) == 2:
            return _refined(self.c, self.x, y, found, values)
        out = np.empty(found.shape, object)
        for index in np.ndindex(found.shape):
            inner = [values[0][(..., *index)], *values[1:]]
            out[index] = _refined(self.c[(..., *index)], self.x, y, found[index], inner)
        return out

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The roots: `solve` for y = 0."""
        return self.solve(0.0, discontinuity, extrapolate)

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> Any:
        """The piecewise polynomial of a spline, a BSpline or (t, c, k)."""
        if not is_traced(tck):
            return _scipy.PPoly.from_spline(tck, extrapolate)
        if isinstance(tck, _scipy.BSpline):
            t, c, k = tck.t, tck.c, tck.k
            extrapolate = tck.extrapolate if extrapolate is None else extrapolate
        else:
            t, c, k = floats(tck[0]), floats(tck[1]), tck[2]
        last = shape_of(t)[0] - 1
        rows = [spline_values(t, c, k, t[:last], m) / float(np.prod(np.arange(1, m + 1))) for m in range(k, -1, -1)]
        return PPoly.construct_fast(fnp.stack(rows), t, extrapolate)

    @classmethod
    def from_bernstein_basis(cls, bp: Any, extrapolate: Any = None) -> Any:
        """The piecewise polynomial in powers that equals one in the Bernstein basis."""
        if not isinstance(bp, _scipy.BPoly):
            raise TypeError(f".from_bernstein_basis only accepts BPoly instances. Got {type(bp)} instead.")
        c = bp.c
        h = fnp.reshape(fnp.diff(bp.x), (-1,) + (1,) * (len(shape_of(c)) - 2))
        k = shape_of(c)[0] - 1
        rows = []
        for s in range(k, -1, -1):
            terms = [c[a] * float((-1) ** (a + s) * comb(k, a) * comb(k - a, s - a)) for a in range(s + 1)]
            rows.append(_total(terms) / h**s)
        return PPoly.construct_fast(
            fnp.stack(rows), bp.x, bp.extrapolate if extrapolate is None else extrapolate, bp.axis
        )


def _total(terms: Sequence[Array]) -> Array:
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out


def _refined(c: Array, x: Array, y: Array, found: Any, values: Sequence[Any]) -> Array:
    """Roots with the derivative of the implicit equation, or of the breakpoint that they are.

    Each step of Newton's method from the root doubles the order of the derivatives that are right.
    """
    plain = _scipy.PPoly.construct_fast(values[0], values[1])
    breaks = values[1]
    rising = breaks[-1] >= breaks[0]
    roots = []
    for root in found.tolist():
        if np.isnan(root):
            roots.append(fnp.asarray(np.nan))
            continue
        at_break = np.flatnonzero(breaks == root)
        slope, scale = float(plain(root, 1)), float(np.max(np.abs(values[0]), initial=1.0))
        residual = abs(float(plain(root)) - float(values[2]))
        if at_break.size and (slope == 0.0 or residual > 1e-9 * scale):
            roots.append(x[int(at_break[0])])
            continue
        ordered = breaks if rising else -breaks
        place = int(np.clip(np.searchsorted(ordered, root if rising else -root, "right") - 1, 0, len(breaks) - 2))
        piece, r = c[:, place : place + 1], fnp.asarray(root)
        for _ in range(2):
            s = fnp.reshape(r - x[place], (1,))
            r = r - ((horner(piece, s, 0) - y) / horner(piece, s, 1))[0]
        roots.append(r)
    return fnp.stack(roots) if roots else found


class BPoly(_Piecewise, _scipy.BPoly):  # type: ignore[misc]
    """Piecewise polynomials in the Bernstein basis, with coefficients (k, intervals, …), as scipy.interpolate.BPoly."""

    _scipy_class = _scipy.BPoly

    @version_of(_scipy.BPoly.__init__)
    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self._init(c, x, extrapolate, axis)

    @staticmethod
    def _local(c: Array, s: Array, h: Array, nu: int) -> Array:
        return bernstein(c, s / h, h, nu)

    @version_of(_scipy.BPoly.__call__)
    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        """Evaluate the piecewise polynomial or its nu-th derivative."""
        return _Piecewise._at(self, x, nu, extrapolate)

    @version_of(_scipy.BPoly.extend)
    def extend(self, c: Any, x: Any) -> None:
        """Add breakpoints and pieces."""
        c = floats(c)
        length = max(shape_of(self.c)[0], shape_of(c)[0])
        raised = raise_degree(self.c, length - shape_of(self.c)[0])
        self._fill(raised, self.x, self.extrapolate, self.axis)
        self._extended(raise_degree(c, length - shape_of(c)[0]), x)

    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial that is the nu-th derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c, x = self.c, self.x
        h = fnp.reshape(fnp.diff(x), (1, -1) + (1,) * (len(shape_of(c)) - 2))
        for _ in range(nu):
            k = shape_of(c)[0] - 1
            c = k * fnp.diff(c, axis=0) / h if k else c * 0.0
        return _class_for(self).construct_fast(c, x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial that is a continuous nu-th antiderivative."""
        if nu <= 0:
            return self.derivative(-nu)
        c, x = self.c, self.x
        h = fnp.reshape(fnp.diff(x), (1, -1) + (1,) * (len(shape_of(c)) - 2))
        for _ in range(nu):
            k = shape_of(c)[0]
            raised = fnp.concatenate([fnp.zeros_like(c[:1]), fnp.cumsum(c, axis=0) / k]) * h
            sums = fnp.cumsum(raised[k], axis=0)
            c = raised + fnp.concatenate([fnp.zeros_like(sums[:1]), sums[:-1]])
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return _class_for(self).construct_fast(c, x, extrapolate, self.axis)

    @version_of(_scipy.BPoly.integrate)
    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b, differentiable in both."""
        return _Piecewise._between(self, a, b, extrapolate)

    @classmethod
    def from_power_basis(cls, pp: Any, extrapolate: Any = None) -> Any:
        """The piecewise polynomial in the Bernstein basis that equals one in powers."""
        if not isinstance(pp, _scipy.PPoly):
            raise TypeError(f".from_power_basis only accepts PPoly instances. Got {type(pp)} instead.")
        c = pp.c
        h = fnp.reshape(fnp.diff(pp.x), (-1,) + (1,) * (len(shape_of(c)) - 2))
        k = shape_of(c)[0] - 1
        rows = [
            _total([c[a] / comb(k, k - a) * h ** (k - a) * float(comb(j, k - a)) for a in range(k - j, k + 1)])
            for j in range(k + 1)
        ]
        return BPoly.construct_fast(
            fnp.stack(rows), pp.x, pp.extrapolate if extrapolate is None else extrapolate, pp.axis
        )

    @classmethod
    def from_derivatives(cls, xi: Any, yi: Any, orders: Any = None, extrapolate: Any = None) -> Any:
        """The piecewise polynomial with these values and derivatives yi[i] = (y, y', …) at the points xi."""
        if not is_traced(xi, yi):
            return _scipy.BPoly.from_derivatives(xi, yi, orders, extrapolate)
        x = reals(xi)
        m = shape_of(x)[0] - 1
        if m + 1 != len(yi):
            raise ValueError("xi and yi need to have the same length")
        require(fnp.diff(x) > 0, "x coordinates are not in increasing order")
        ys = [floats(y) for y in yi]
        if any(not shape_of(y) for y in ys):
            raise ValueError("Using a 1-D array for y? Please .reshape(-1, 1).")
        sizes = [shape_of(y)[0] for y in ys]
        length = max(sizes[i] + sizes[i + 1] for i in range(m))
        wanted: list[Any] = [orders] * m if orders is None or isinstance(orders, (int, np.integer)) else list(orders)
        if any(order is not None for order in wanted):
            length = max(length, *[order for order in wanted if order is not None])
            if any(order is not None and order <= 0 for order in wanted):
                raise ValueError("Orders must be positive.")
        pieces = []
        for i, order in enumerate(wanted):
            n1, n2 = sizes[i], sizes[i + 1]
            if order is not None:
                n1 = min((order + 1) // 2, sizes[i])
                n2 = min(order + 1 - n1, sizes[i + 1])
                n1 = min(order + 1 - n2, sizes[i + 1])
                if n1 + n2 != order + 1:
                    raise ValueError(
                        f"Point {i} has {sizes[i]} derivatives, point {i + 1} has {sizes[i + 1]} derivatives, but "
                        f"order {order} requested"
                    )
                if n1 > sizes[i] or n2 > sizes[i + 1]:
                    raise ValueError("`order` input incompatible with length y1 or y2.")
            piece = _from_ends(x[i + 1] - x[i], ys[i][:n1], ys[i + 1][:n2])
            pieces.append(raise_degree(piece, length - (n1 + n2)))
        return BPoly(fnp.stack(common(*pieces), axis=1), x, extrapolate)


def _from_ends(h: Array, left: Array, right: Array) -> Array:
    """Coefficients of the polynomial with these derivatives at the ends of an interval of length h.

    Row i of the q-th differences at an end is the q-th derivative there, up to the factor n! / (n - q)!.
    """
    if shape_of(left)[1:] != shape_of(right)[1:]:
        raise ValueError(f"Shapes of ya {shape_of(left)} and yb {shape_of(right)} are incompatible")
    n = shape_of(left)[0] + shape_of(right)[0]
    first: list[Array] = []
    last: list[Array] = []
    for rows, y, sign in ((first, left, 1.0), (last, right, -1.0)):
        for q in range(shape_of(y)[0]):
            value = y[q] * (sign * h) ** q / falling(n - 1, q)
            for j in range(q):
                value = value - rows[j] * float((-1) ** (j + q) * comb(q, j))
            rows.append(value)
    return fnp.stack(common(*first, *reversed(last)))


def raise_degree(c: Array, d: int) -> Array:
    """The same polynomials with d more coefficients in the Bernstein basis."""
    if d == 0:
        return c
    k = shape_of(c)[0] - 1
    matrix = np.zeros((k + d + 1, k + 1))
    for a in range(k + 1):
        for j in range(d + 1):
            matrix[a + j, a] = comb(k, a) * comb(d, j) / comb(k + d, a + j)
    return fnp.tensordot(matrix, c, axes=1)


def _owner(poly: Any) -> Any:
    """Func's class that evaluates an object of SciPy's or func's."""
    return BPoly if isinstance(poly, _scipy.BPoly) else PPoly


def _class_for(poly: Any) -> Any:
    """The class of what is derived from an object: its own if that is func's."""
    return type(poly) if isinstance(poly, _Piecewise) else _owner(poly)


def PPoly___init__(self: Any, *args: Any, **kwargs: Any) -> None:
    """The constructor of SciPy's two classes for traced values: the object becomes one of func's class."""
    own: Any = _OWN_CLASSES.get(type(self))
    if own is None:
        scipy_hooks.original(_owner(self)._scipy_class.__init__)(self, *args, **kwargs)
        return
    self.__class__ = own
    self._init(*args, **kwargs)


def PPoly___call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
    """Evaluation of SciPy's objects at traced points."""
    return _Piecewise._at(self, x, nu, extrapolate)


def PPoly_integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """Integrals of SciPy's PPoly between traced limits."""
    return _Piecewise._between(self, a, b, extrapolate)


BPoly___init__, BPoly___call__, BPoly_integrate = PPoly___init__, PPoly___call__, PPoly_integrate


def PPoly_extend(self: Any, c: Any, x: Any) -> None:
    """Extension of SciPy's objects by traced pieces: the object becomes one of func's class."""
    self.__class__ = next(own for kind, own in _OWN_CLASSES.items() if type(self) is kind)
    self.extend(c, x)


BPoly_extend = PPoly_extend
_OWN_CLASSES: dict[type, type] = {_scipy.PPoly: PPoly, _scipy.BPoly: BPoly}


def PPoly_solve(self: Any, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
    """The points where SciPy's PPoly has a traced value."""
    return PPoly.solve(self, y, discontinuity, extrapolate)


def PPoly_from_spline(cls: Any, tck: Any, extrapolate: Any = None) -> Any:
    """SciPy's class method for a traced spline."""
    return PPoly.from_spline(tck, extrapolate)


def PPoly_from_bernstein_basis(cls: Any, bp: Any, extrapolate: Any = None) -> Any:
    """SciPy's class method for a traced BPoly."""
    return PPoly.from_bernstein_basis(bp, extrapolate)


def BPoly_from_power_basis(cls: Any, pp: Any, extrapolate: Any = None) -> Any:
    """SciPy's class method for a traced PPoly."""
    return BPoly.from_power_basis(pp, extrapolate)


def BPoly_from_derivatives(cls: Any, xi: Any, yi: Any, orders: Any = None, extrapolate: Any = None) -> Any:
    """SciPy's class method for traced points and values."""
    return BPoly.from_derivatives(xi, yi, orders, extrapolate)


def PPoly_construct_fast(cls: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Any:
    """SciPy's class method for traced coefficients."""
    return (BPoly if issubclass(cls, _scipy.BPoly) else PPoly).construct_fast(c, x, extrapolate, axis)


BPoly_construct_fast = PPoly_construct_fast


class NdPPoly(_scipy.NdPPoly):  # type: ignore[misc]
    """Piecewise polynomials of several variables, with coefficients (k1, …, intervals1, …, …).

    As scipy.interpolate.NdPPoly; differentiable in coefficients, breakpoints and points.
    """

    @version_of(_scipy.NdPPoly.__init__)
    def __init__(self, c: Any, x: Any, extrapolate: Any = None) -> None:
        self.x = tuple([reals(v) for v in x])
        self.c = floats(c)
        self.extrapolate = True if extrapolate is None else bool(extrapolate)
        shape, ndim = shape_of(self.c), len(self.x)
        if any(len(shape_of(v)) != 1 for v in self.x):
            raise ValueError("x arrays must all be 1-dimensional")
        if any(shape_of(v)[0] < 2 for v in self.x):
            raise ValueError("x arrays must all contain at least 2 points")
        if len(shape) < 2 * ndim:
            raise ValueError("c must have at least 2*len(x) dimensions")
        for v in self.x:
            require(fnp.diff(v) >= 0, "x-coordinates are not in increasing order")
        if any(a != shape_of(b)[0] - 1 for a, b in zip(shape[ndim : 2 * ndim], self.x, strict=True)):
            raise ValueError("x and c do not agree on the number of intervals")

    def __func_holds_traced__(self) -> bool:
        return is_made_of_traced(self, "c", "x")

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None) -> Any:
        """An object of these coefficients and breakpoints, without checks."""
        self = object.__new__(cls)
        self.c, self.x = c, tuple(x)
        self.extrapolate = True if extrapolate is None else extrapolate
        return self

    @version_of(_scipy.NdPPoly.__call__)
    def __call__(self, x: Any, nu: Any = None, extrapolate: Any = None) -> Any:
        """Evaluate the piecewise polynomial or its derivative of orders nu at points (…, ndim)."""
        return NdPPoly___call__(self, x, nu, extrapolate)

    def derivative(self, nu: Sequence[int]) -> Any:
        """The derivative of orders nu in each variable."""
        return self._each_axis(nu, 1)

    def antiderivative(self, nu: Sequence[int]) -> Any:
        """The antiderivative of orders nu in each variable."""
        return self._each_axis(nu, -1)

    def _each_axis(self, nu: Sequence[int], sign: int) -> Any:
        c, ndim = self.c, len(self.x)
        for axis, n in enumerate(nu):
            inner = fnp.moveaxis(c, (axis, ndim + axis), (0, 1))
            poly = PPoly.construct_fast(inner, self.x[axis], self.extrapolate)
            made = poly.derivative(sign * n).c if n else inner
            c = fnp.moveaxis(made, (0, 1), (axis, ndim + axis))
        return NdPPoly.construct_fast(c, self.x, self.extrapolate)

    @version_of(_scipy.NdPPoly.integrate_1d)
    def integrate_1d(self, a: Any, b: Any, axis: int, extrapolate: Any = None) -> Any:
        """The integral over one variable: a piecewise polynomial of the others, or numbers."""
        extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
        ndim = len(self.x)
        axis = int(axis) % ndim
        inner = fnp.moveaxis(self.c, (axis, ndim + axis), (0, 1))
        out = _Piecewise._between(PPoly.construct_fast(inner, self.x[axis], extrapolate), a, b, extrapolate)
        if ndim == 1:
            return out
        return NdPPoly.construct_fast(out, self.x[:axis] + self.x[axis + 1 :], extrapolate)

    @version_of(_scipy.NdPPoly.integrate)
    def integrate(self, ranges: Any, extrapolate: Any = None) -> Any:
        """The integral over a box."""
        extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
        if not hasattr(ranges, "__len__") or len(ranges) != len(self.x):
            raise ValueError("Range not a sequence of correct length")
        out: Any = self
        for a, b in ranges:
            out = NdPPoly.integrate_1d(out, a, b, 0, extrapolate)
        return out


def NdPPoly___call__(self: Any, x: Any, nu: Any = None, extrapolate: Any = None) -> Any:
    """Evaluation of SciPy's and func's objects at traced points."""
    extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
    breaks, c = [reals(v) for v in self.x], floats(self.c)
    ndim = len(breaks)
    points = coordinates(x)
    shape = shape_of(points)
    orders = [0] * ndim if nu is None else [int(n) for n in nu]
    if len(orders) != ndim:
        raise ValueError("invalid number of derivative orders nu")
    if any(n < 0 for n in orders):
        raise ValueError("derivatives must be positive")
    if shape[-1] != ndim:
        raise ValueError(f"invalid shape for xi: {ndim} coordinates are needed, got {shape[-1]}")
    flat = fnp.reshape(points, (-1, ndim))
    places = [intervals(v, flat[:, i]) for i, v in enumerate(breaks)]
    order = [*range(ndim, 2 * ndim), *range(ndim), *range(2 * ndim, len(shape_of(c)))]
    out = fnp.moveaxis(picked(fnp.transpose(c, order), *places), 0, ndim)
    lost = fnp.isnan(flat[:, 0])
    for i, v in enumerate(breaks):
        column_i = flat[:, i]
        out = _horner_nd(out, column_i - fnp.take(v, places[i]), orders[i], ndim - 1 - i)
        lost = lost | (fnp.isnan(column_i) if extrapolate else is_outside(v, column_i))
    return fnp.reshape(nan_where(lost, out), (*shape[:-1], *shape_of(c)[2 * ndim :]))


def _horner_nd(c: Array, s: Array, nu: int, inner: int) -> Array:
    """Horner's scheme along the first axis of coefficients whose points are the axis after `inner` others."""
    k = shape_of(c)[0]
    if nu >= k:
        return c[0] * 0.0
    s = fnp.reshape(s, (1,) * inner + (-1,) + (1,) * (len(shape_of(c)) - 2 - inner))
    out: Array = c[0] * falling(k - 1, nu)
    for i in range(1, k - nu):
        out = out * s + c[i] * falling(k - 1 - i, nu)
    return out


def coordinates(points: Any, ndim: int | None = None) -> Array:
    """Points (…, ndim) of an array, or of a tuple of coordinates that broadcast."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*[to_dtype(array_of(p), DOUBLE) for p in points]), axis=-1)
    points = reals(points, "xi")
    if len(shape_of(points)) == 1:
        return fnp.reshape(points, (-1, 1) if ndim is None else (-1, ndim))
    return fnp.reshape(points, (1, 1)) if not shape_of(points) else points
