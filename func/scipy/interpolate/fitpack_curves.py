"""FITPACK's curves with traced data: (t, c, k) of splrep and splprep, and the classes of univariate splines.

A spline through the data and one with given knots solve linear systems, and differentiate through them. Smoothing with
s > 0 chooses knots by the numbers, and then differentiates too (`smoothing.py`), except that of periodic data.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host import scipy_hooks
from func.interpreters.core import Array, shape_of
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.basis import basis, full, knot_intervals, spline_values
from func.scipy.interpolate.bsplines import BSpline_integrate
from func.scipy.interpolate.collocation import (
    coefficients,
    least_squares,
    not_a_knot,
    periodic_coefficients,
    periodic_knots,
)
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    floats,
    holds,
    is_finite,
    is_never,
    is_traced,
    numbers,
    reals,
    refuse,
    require,
)
from func.scipy.interpolate.fits import make_interp_spline
from func.scipy.interpolate.smoothing import knots_at_data, smoothed
from func.scipy.kinds.versions import version_of

_INSTEAD = (
    "Use s=0 (a spline through the data), give the knots t (least squares), or make_smoothing_spline with lam, which "
    "differentiate."
)


def through_data(x: Array, y: Array, k: int, ends: tuple[Any, Any], periodic: bool = False) -> tuple[Array, Array]:
    """Knots and coefficients (len(t), …) of the spline through data (n, …), FITPACK's for s = 0."""
    if periodic:
        t = periodic_knots(x, k)
        return t, full(t, periodic_coefficients(x, y, t, k))
    n = shape_of(x)[0]
    inner = not_a_knot(x, k)[k + 1 : n]
    t = _with_ends(inner, ends, k)
    return t, full(t, coefficients(x, y, t, k))


def _with_ends(inner: Array, ends: tuple[Any, Any], k: int) -> Array:
    first, last = [fnp.reshape(to_dtype(array_of(end), DOUBLE), (1,)) for end in ends]
    return fnp.concatenate([*[first] * (k + 1), inner, *[last] * (k + 1)])


def near_data(x: Array, y: Array, w: Array, t: Array, k: int) -> Array:
    """The coefficients (len(t), …) of the least-squares spline with knots t."""
    m = knot_intervals(t, k, x)
    weighted = y * fnp.reshape(w, (-1,) + (1,) * (len(shape_of(y)) - 1))
    c = least_squares(basis(t, k, x, m) * w[:, None], m - k, weighted, shape_of(t)[0] - k - 1)
    return full(t, c)


def _residual(x: Array, y: Array, w: Array, t: Array, c: Array, k: int) -> Array:
    return fnp.sum((w * (y - spline_values(t, c, k, x))) ** 2)


def _curve_data(x: Any, y: Any, w: Any, k: int) -> tuple[Array, Array, Array]:
    x, y = fnp.reshape(reals(x), (-1,)), fnp.reshape(reals(y, "y"), (-1,))
    m = shape_of(x)[0]
    w = fnp.ones_like(x) if w is None else reals(w, "w")
    if shape_of(w) != (m,):
        raise TypeError(f"len(w)={shape_of(w)} is not equal to m={m}")
    if shape_of(y) != (m,):
        raise TypeError("Lengths of the first three arguments (x,y,w) must be equal")
    if not 1 <= k <= 5:
        raise TypeError(f"Given degree of the spline (k={k}) is not supported. (1<=k<=5)")
    if m <= k:
        raise TypeError("m > k must hold")
    if not is_finite(x, y, w):
        raise ValueError("Error on input data")
    return x, y, w


@version_of(_scipy.splrep)
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """The spline (t, c, k) through data (s=0) or nearest to data with knots t, as scipy.interpolate.splrep.

    Differentiable in data, knots and weights.
    """
    given = w is not None
    x, y, w = _curve_data(x, y, w, k)
    m = shape_of(x)[0]
    if s is None:
        s = m - np.sqrt(2 * m) if given else 0.0
    ends = x[0] if xb is None else xb, x[m - 1] if xe is None else xe
    if not -1 <= task <= 1:
        raise TypeError("task must be -1, 0 or 1")
    if task == 1:
        raise refuse("scipy.interpolate.splrep with task=1", "It reuses knots of an earlier call: pass them as t.")
    if task == -1 and t is None:
        raise TypeError("Knots must be given for task=-1")
    if t is not None:
        if per:
            raise refuse("scipy.interpolate.splrep with per=1 and given knots", _INSTEAD)
        knots = _with_ends(reals(t, "t"), ends, k)
        require(fnp.diff(knots[k : shape_of(knots)[0] - k]) > 0, "Error on input data")
        c, ier = near_data(x, y, w, knots, k), 0
    else:
        knots, c, ier = _chosen(x, y, w, ends, k, s, bool(per), _by_splrep)
    tck = (knots, c, k)
    return (tck, _residual(x, y, w, knots, c, k), ier, "") if full_output else tck


def _by_splrep(x: Any, y: Any, w: Any, first: float, last: float, k: int, s: float) -> tuple[Any, float, int]:
    """The knots that splrep chooses for plain data, the distance that it attains, and FITPACK's code."""
    (t, _, _), distance, ier, _ = scipy_hooks.original(_scipy.splrep)(x, y, w, first, last, k=k, s=s, full_output=1)
    return t, distance, ier


def _chosen(
    x: Array, y: Array, w: Array, ends: tuple[Any, Any], k: int, s: Any, periodic: bool,
    choice: Callable[..., tuple[Any, float, int]],
) -> tuple[Array, Array, int]:  # fmt: skip
    """Knots, coefficients and FITPACK's code for a smoothing condition s; `choice` is SciPy's for plain data."""
    if not is_traced(s) and s == 0:
        require(fnp.diff(x) > 0, "Error on input data")
        if periodic:
            y = fnp.concatenate([y[: shape_of(y)[0] - 1], y[:1]])
        return (*through_data(x, y, k, ends, periodic), -1)
    if not periodic:
        values = [numbers(v, "what smoothing chooses") for v in (x, y, w, *ends, s)]
        rest = [float(v) for v in values[3:]]
        plain_t, distance, ier = choice(*values[:3], *rest[:2], k, rest[2])
        if ier == -2:
            t = _with_ends(x[:0], ends, k)
            return t, near_data(x, y, w, t, k), -2
        if ier == -1:
            return (*through_data(x, y, k, ends), -1)
        if ier == 0:
            t = knots_at_data(plain_t, values[0], x, _end_arrays(ends), k)
            return t, smoothed(x, y, w, t, k, float(distance), s), 0
    what = "of periodic data" if periodic else "where FITPACK finds no solution,"
    raise refuse(f"a smoothing spline of scipy.interpolate with s > 0, {what}", _INSTEAD)


def _end_arrays(ends: tuple[Any, Any]) -> tuple[Array, Array]:
    first, last = [to_dtype(array_of(end), DOUBLE) for end in ends]
    return first, last


@version_of(_scipy.splprep)
def splprep(
    x: Any, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, nest: Any = None, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """The parametric spline ([t, c, k], u) through points (s=0) or near them with knots t, as SciPy's splprep."""
    points = fnp.stack([reals(row) for row in x])
    m = shape_of(points)[1]
    if not 1 <= k <= 5:
        raise TypeError(f"1 <= k= {k} <=5 must hold")
    if m <= k:
        raise TypeError("m > k must hold")
    if s is None:
        s = m - np.sqrt(2 * m)
    weights = fnp.ones_like(points[0]) if w is None else reals(w, "w")
    if per:
        points = fnp.concatenate([points[:, : m - 1], points[:, :1]], axis=1)
    u = _chord_lengths(points) if u is None else reals(u, "u")
    if shape_of(u) != (m,) or shape_of(weights) != (m,):
        raise TypeError("Mismatch of input dimensions")
    ends = u[0] if ub is None else ub, u[m - 1] if ue is None else ue
    y, ier = fnp.transpose(points), -1
    if t is not None and not per and task == -1:
        knots = reals(t, "t")
        inner = knots[k + 1 : shape_of(knots)[0] - k - 1]
        knots = _with_ends(inner, ends, k)
        c = near_data(u, y, weights, knots, k)
    elif not is_traced(s) and s == 0:
        knots, c = through_data(u, y, k, ends, bool(per))
    else:
        knots, c, ier = _smoothed_points(u, y, weights, ends, k, s, bool(per) or t is not None)
    c = c[: shape_of(knots)[0] - k - 1]
    tcku = ([knots, [c[:, i] for i in range(shape_of(c)[1])], k], u)
    if not full_output:
        return tcku
    gap = y - spline_values(knots, c, k, u)
    return tcku, fnp.sum((weights[:, None] * gap) ** 2), ier, ""


def _smoothed_points(
    u: Array, y: Array, w: Array, ends: tuple[Any, Any], k: int, s: Any, is_refused: bool
) -> tuple[Array, Array, int]:
    """Knots and coefficients of a smoothing condition for points (m, d), and FITPACK's code."""
    if is_refused:
        raise refuse("scipy.interpolate.splprep with s > 0 of periodic data, or with knots", _INSTEAD)
    values = [numbers(v, "what smoothing chooses") for v in (y, w, u, *ends, s)]
    rest = [float(v) for v in values[3:]]
    plain = scipy_hooks.original(_scipy.splprep)(
        list(values[0].T), values[1], values[2], *rest[:2], k=k, s=rest[2], full_output=1
    )
    ier = plain[2]
    if ier == -1:
        return (*through_data(u, y, k, ends), ier)
    if ier not in (0, -2):
        raise refuse("scipy.interpolate.splprep, where FITPACK finds no solution,", _INSTEAD)
    t = knots_at_data(plain[0][0][0], values[2], u, _end_arrays(ends), k)
    return t, near_data(u, y, w, t, k) if ier else smoothed(u, y, w, t, k, float(plain[1]), s), ier


def _chord_lengths(points: Array) -> Array:
    """The length of the polygon up to each of its points (d, n), over the whole."""
    steps = fnp.sqrt(fnp.sum(fnp.diff(points, axis=1) ** 2, axis=0))
    lengths = fnp.cumsum(steps)
    n = shape_of(lengths)[0]
    return fnp.concatenate([fnp.zeros_like(lengths[:1]), lengths[: n - 1] / lengths[n - 1], fnp.ones_like(lengths[:1])])


@version_of(_scipy.make_splrep)
def make_splrep(
    x: Any, y: Any, *, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, s: Any = 0, t: Any = None,
    nest: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """The spline through data, or near data, as a BSpline, as scipy.interpolate.make_splrep."""
    if options.get("bc_type") == "periodic":
        raise refuse("scipy.interpolate.make_splrep of periodic data", _INSTEAD)
    if not is_traced(s) and s == 0:
        if t is not None or w is not None or nest is not None:
            raise ValueError("s==0 is for interpolation only")
        return make_interp_spline(x, y, k=k)
    x, y, w = _curve_data(x, y, w, k)
    ends = _end_arrays((x[0] if xb is None else xb, x[shape_of(x)[0] - 1] if xe is None else xe))
    return _scipy.BSpline.construct_fast(*_made_near(x, y, w, ends, k, s, t, nest), k)


def _made_near(
    x: Array, y: Array, w: Array, ends: tuple[Array, Array], k: int, s: Any, t: Any, nest: Any
) -> tuple[Array, Array]:
    """Knots and coefficients of the smoothing spline that SciPy makes of data (m,) or (m, d)."""
    px, py, pw, first, last, ps = [numbers(v, "what smoothing chooses") for v in (x, y, w, *ends, s)]
    options: dict[str, Any] = {"w": pw, "k": k, "s": float(ps), "nest": nest}
    options["t"] = None if t is None else numbers(t, "what smoothing chooses")
    if py.ndim == 1:
        plain = scipy_hooks.original(_scipy.make_splrep)(px, py, xb=float(first), xe=float(last), **options)
        values = plain(px)
    else:
        plain, _ = scipy_hooks.original(_scipy.make_splprep)(
            list(py.T), u=px, ub=float(first), ue=float(last), **options
        )
        values = plain(px).T
    count = len(plain.t) - 2 * k - 2
    knots = knots_at_data(plain.t, px, x, ends, k) if t is None else reals(t, "t")
    if count == 0:
        return knots, near_data(x, y, w, knots, k)[: k + 1]
    gaps = (py - values).reshape(len(px), -1) * pw[:, None]
    c = smoothed(x, y, w, knots, k, float(np.sum(gaps**2)), s)
    return knots, c[: shape_of(knots)[0] - k - 1]


@version_of(_scipy.make_splprep)
def make_splprep(
    x: Any, *, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: int = 3, s: Any = 0, t: Any = None,
    nest: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """The parametric spline through points, or near them, as (BSpline, u), as scipy.interpolate.make_splprep."""
    if options.get("bc_type") == "periodic":
        raise refuse("scipy.interpolate.make_splprep of periodic data", _INSTEAD)
    points = fnp.stack([reals(row) for row in x])
    u = _chord_lengths(points) if u is None else reals(u, "u")
    if is_traced(s) or s != 0:
        weights = fnp.ones_like(u) if w is None else reals(w, "w")
        ends = _end_arrays((u[0] if ub is None else ub, u[shape_of(u)[0] - 1] if ue is None else ue))
        knots, c = _made_near(u, fnp.transpose(points), weights, ends, k, s, t, nest)
        return _scipy.BSpline.construct_fast(knots, c, k, axis=1), u
    if t is not None or nest is not None:
        raise ValueError("s==0 is for interpolation only")
    made = make_interp_spline(u, fnp.transpose(points), k=k)
    return _scipy.BSpline.construct_fast(made.t, made.c, k, axis=1), u


def _is_parametric(c: Any) -> bool:
    return (isinstance(c, (list, tuple)) and any(len(shape_of(array_of(row))) for row in c)) or len(np.shape(c)) > 1


def _each(c: Any, function: Callable[[Any], Any]) -> list[Any]:
    return [function(row) for row in c]


def _fitpack_impl_splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """A spline or its derivative at points, as scipy.interpolate.splev; differentiable in points and spline."""
    t, c, k = tck
    if _is_parametric(c):
        return _each(c, lambda row: _fitpack_impl_splev(x, (t, row, k), der, ext))
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ValueError(f"ext = {ext} not in (0, 1, 2, 3) ")
    t, c, x = reals(t, "t"), floats(c), reals(x)
    shape, points = shape_of(x), fnp.reshape(x, (-1,))
    first, last = t[k], t[shape_of(t)[0] - k - 1]
    outside = fnp.logical_not((first <= points) & (points <= last))
    if ext == 2 and not holds(fnp.logical_not(outside)):
        raise ValueError("Found x value not in the domain")
    if ext == 3 and der == 0:  # FITPACK extrapolates derivatives
        points = fnp.where(points < first, first, fnp.where(points > last, last, points))
    out = spline_values(t, c, k, points, int(der))
    if ext in (1, 2) and not is_never(outside):
        out = fnp.where(outside, 0.0 if ext == 1 else np.nan, out)
    return fnp.reshape(out, shape)


def _fitpack_impl_splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """The integral of a spline, zero outside its base interval, as scipy.interpolate.splint."""
    t, c, k = tck
    if full_output:
        raise refuse("scipy.interpolate.splint with full_output", "The integral alone differentiates.")
    if _is_parametric(c):
        return _each(c, lambda row: _fitpack_impl_splint(a, b, (t, row, k)))
    spline = _scipy.BSpline.construct_fast(reals(t, "t"), floats(c), k)
    return BSpline_integrate(spline, a, b, extrapolate=False)


def _fitpack_impl_spalde(x: Any, tck: Any) -> Any:
    """All derivatives of a spline at a point, or a list of them for several, as scipy.interpolate.spalde."""
    t, c, k = tck
    if _is_parametric(c):
        return _each(c, lambda row: _fitpack_impl_spalde(x, (t, row, k)))
    t, c, points = reals(t, "t"), floats(c), fnp.atleast_1d(reals(x))
    n = shape_of(t)[0]
    if not holds((t[k] <= points) & (points <= t[n - k - 1])):
        raise TypeError("Invalid input data. t(k)<=x<=t(n-k+1) must hold.")
    rows = fnp.stack([spline_values(t, c, k, points, order) for order in range(k + 1)], axis=1)
    return rows[0] if shape_of(points)[0] == 1 else [rows[i] for i in range(shape_of(points)[0])]


def _fitpack_impl_sproot(tck: Any, mest: int = 10) -> Any:
    """The roots of a cubic spline, as scipy.interpolate.sproot; differentiable by the implicit function theorem."""
    t, c, k = tck
    if k != 3:
        raise ValueError("sproot works only for cubic (k=3) splines")
    if _is_parametric(c):
        return _each(c, lambda row: _fitpack_impl_sproot((t, row, k), mest))
    t = reals(t, "t")
    c = full(t, floats(c))
    what = "the number of roots of a spline"
    found = scipy_hooks.original(_scipy.sproot)((numbers(t, what), numbers(c, what), k), mest)
    roots = fnp.asarray(found)
    for _ in range(2 if len(found) else 0):
        roots = roots - spline_values(t, c, k, roots) / spline_values(t, c, k, roots, 1)
    return roots


def _fitpack_impl_insert(x: Any, tck: Any, m: int = 1, per: int = 0) -> Any:
    """The same spline with a knot more, m times, as scipy.interpolate.insert."""
    t, c, k = tck
    if per:
        raise refuse("scipy.interpolate.insert with per=1", "Use BSpline.insert_knot of a periodic spline.")
    if _is_parametric(c):
        made = [_fitpack_impl_insert(x, (t, row, k), m) for row in c]
        return made[0][0], [row[1] for row in made], k
    t, c = reals(t, "t"), floats(c)
    n = shape_of(t)[0] - k - 1
    spline = _scipy.BSpline.construct_fast(t, c[:n], k).insert_knot(x, m)
    return spline.t, full(spline.t, spline.c), k


def UnivariateSpline___init__(
    self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
    check_finite: bool = False,
) -> None:  # fmt: skip
    """FITPACK's smoothing spline."""
    _fit(self, x, y, w, bbox, k, ext, check_finite, s=s)


def InterpolatedUnivariateSpline___init__(
    self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
    check_finite: bool = False,
) -> None:  # fmt: skip
    """FITPACK's spline through data."""
    _fit(self, x, y, w, bbox, k, ext, check_finite, s=0)


def LSQUnivariateSpline___init__(
    self: Any, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
    check_finite: bool = False,
) -> None:  # fmt: skip
    """FITPACK's least-squares spline with given inner knots."""
    _fit(self, x, y, w, bbox, k, ext, check_finite, inner=t)


def _fit(
    self: Any, x: Any, y: Any, w: Any, bbox: Any, k: int, ext: Any, check_finite: bool, s: Any = None, inner: Any = None
) -> None:
    """Make the spline of data that SciPy's class checks."""
    checked_bbox = [None] * len(bbox) if is_traced(bbox) else bbox
    x, y, w, _, self.ext = _scipy.UnivariateSpline.validate_input(x, y, w, checked_bbox, k, s, ext, check_finite)
    x, y, w = _curve_data(x, y, w, k)
    m = shape_of(x)[0]
    ends = x[0] if bbox[0] is None else bbox[0], x[m - 1] if bbox[1] is None else bbox[1]
    if inner is not None:
        t = _with_ends(reals(inner, "t"), ends, k)
        n = shape_of(t)[0]
        require(fnp.diff(t[k : n - k]) > 0, "Interior knots t must satisfy Schoenberg-Whitney conditions")
        c = near_data(x, y, w, t, k)
    else:
        s = float(m) if s is None else s
        t, c, _ = _chosen(x, y, w, ends, k, s, False, functools.partial(_chosen_by_scipy, self))
    self._eval_args = (t, c, k)
    self._data = (x, y, w, *ends, k, s, shape_of(t)[0], t, c, _residual(x, y, w, t, c, k), None, None, None)


def _chosen_by_scipy(
    self: Any, x: Any, y: Any, w: Any, first: float, last: float, k: int, s: float
) -> tuple[Any, float, int]:
    """The choices of SciPy's object for plain data, which starts with its earlier knots."""
    twin: Any = getattr(self, "_twin", None)
    if twin is None:
        twin = _scipy.UnivariateSpline(x, y, w, [first, last], k, s=s)
    else:
        twin.set_smoothing_factor(s)
    self._twin = twin
    return twin._eval_args[0], float(twin.get_residual()), int(twin._data[-1])


def UnivariateSpline_set_smoothing_factor(self: Any, s: Any) -> None:
    """Fit again with another smoothing condition."""
    if isinstance(self, _scipy.LSQUnivariateSpline):
        warnings.warn("smoothing factor unchanged for LSQ spline with fixed knots", stacklevel=2)
        return
    data: Any = self._data
    if not hasattr(self, "_twin"):
        values = [numbers(v, "what smoothing chooses") for v in data[:5]]
        self._twin = _scipy.UnivariateSpline(*values[:3], [float(v) for v in values[3:]], data[5], s=0)
    _fit(self, data[0], data[1], data[2], (data[3], data[4]), data[5], self.ext, False, s=s)
