"""Functions of elements that are not ufuncs, and functions of neighbouring elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, concrete, dtype_of, operand, shape_of
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives.structural import full_like
from func.interpreters.primitives.structural import where as where_row
from func.numpy.arguments import NO_VALUE, one_axis, rank_of, refuse
from func.numpy.inplace import write_into
from func.numpy.protocol import implements
from func.numpy.reductions import is_given, sum
from func.numpy.statistics import mean

__all__ = [
    "allclose",
    "angle",
    "around",
    "array_equal",
    "array_equiv",
    "clip",
    "corrcoef",
    "cov",
    "diff",
    "ediff1d",
    "fix",
    "gradient",
    "imag",
    "interp",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "nan_to_num",
    "polyval",
    "real",
    "real_if_close",
    "round",
    "sinc",
    "trapezoid",
    "unwrap",
]


@implements(np.real)
def real(val: Array) -> Array:
    """The real part."""
    val = operand(val)
    return rows.real(val) if dtype_of(val).kind == "c" else val


@implements(np.imag)
def imag(val: Array) -> Array:
    """The imaginary part."""
    return rows.imag(operand(val))


@implements(np.angle)
def angle(z: Array, deg: bool = False) -> Array:
    """The phase of complex numbers."""
    z = operand(z)
    phase = rows.arctan2(rows.imag(z), real(z))
    return rows.multiply(phase, 180 / np.pi) if deg else phase


@implements(np.clip)
def clip(
    a: Array, a_min: Any = NO_VALUE, a_max: Any = NO_VALUE, out: Any = None, *, min: Any = NO_VALUE, max: Any = NO_VALUE
) -> Array:
    """Values between two bounds; at a bound the derivative is shared, as for maximum and minimum."""
    a = operand(a)
    low = a_min if is_given(a_min) else min
    high = a_max if is_given(a_max) else max
    if is_given(low):
        a = rows.maximum(a, operand(low))
    if is_given(high):
        a = rows.minimum(a, operand(high))
    return a if out is None else write_into(out, a)


@implements(np.round, np.around)
def round(a: Array, decimals: int = 0, out: Any = None) -> Array:
    """Rounding, whose derivative is zero."""
    a = operand(a)
    if decimals == 0:
        result = rows.rint(a) if dtype_of(a).kind in "fc" else a
    else:
        scale = 10.0 ** abs(decimals)
        if decimals > 0:
            result = rows.divide(rows.rint(rows.multiply(a, scale)), scale)
        else:
            result = rows.multiply(rows.rint(rows.divide(a, scale)), scale)
    return result if out is None else write_into(out, result)


around = round


@implements(np.fix)
def fix(x: Array, out: Any = None) -> Array:
    """Rounding towards zero, whose derivative is zero."""
    result = rows.trunc(operand(x))
    return result if out is None else write_into(out, result)


@implements(np.sinc)
def sinc(x: Array) -> Array:
    """sin(πx) / (πx), with derivatives of every order also near zero (by the power series there)."""
    x = rows.multiply(operand(x), np.pi)
    small = rows.less(rows.multiply(x, x), 1e-2)
    one = full_like(x, 1, ())
    safe = where_row(small, one, x)
    squared = rows.square(where_row(small, x, full_like(x, 0, ())))
    series: Array = full_like(x, 0, ())
    for k in range(9, -1, -1):  # Σ (-1)^k x^2k / (2k+1)!
        series = rows.add(rows.multiply(series, squared), (-1.0) ** k / float(np.prod(np.arange(1.0, 2 * k + 2))))
    return where_row(small, series, rows.divide(rows.sin(safe), safe))


@implements(np.nan_to_num)
def nan_to_num(x: Array, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NaN and infinities replaced by numbers."""
    refuse("nan_to_num", copy=(copy, True))
    x = operand(x)
    if dtype_of(x).kind == "c":
        parts = [nan_to_num(part, True, nan, posinf, neginf) for part in (rows.real(x), rows.imag(x))]
        return rows.add(parts[0], rows.multiply(parts[1], 1j))
    if dtype_of(x).kind != "f":
        return x
    info = np.finfo(dtype_of(x))
    dtype = dtype_of(x)
    x = where_row(rows.isnan(x), np.asarray(nan, dtype), x)
    x = where_row(isposinf(x), np.asarray(info.max if posinf is None else posinf, dtype), x)
    return where_row(isneginf(x), np.asarray(info.min if neginf is None else neginf, dtype), x)


@implements(np.isposinf)
def isposinf(x: Array, out: Any = None) -> Array:
    """Whether elements are +∞."""
    x = operand(x)
    return rows.logical_and(rows.isinf(x), rows.logical_not(rows.signbit(x)))


@implements(np.isneginf)
def isneginf(x: Array, out: Any = None) -> Array:
    """Whether elements are -∞."""
    x = operand(x)
    return rows.logical_and(rows.isinf(x), rows.signbit(x))


@implements(np.isreal)
def isreal(x: Array) -> Array:
    """Whether the imaginary parts vanish."""
    return rows.equal(imag(x), 0)


@implements(np.iscomplex)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary parts do not vanish."""
    return rows.not_equal(imag(x), 0)


@implements(np.iscomplexobj)
def iscomplexobj(x: Array) -> bool:
    """Whether the dtype is complex."""
    return dtype_of(operand(x)).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Array) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


@implements(np.real_if_close)
def real_if_close(a: Array, tol: float = 100) -> Array:
    """The real part where all imaginary parts are within tol machine epsilons of zero."""
    a = operand(a)
    if dtype_of(a).kind != "c":
        return a
    limit = tol * np.finfo(dtype_of(a)).eps if tol > 1 else tol
    return rows.real(a) if np.all(np.abs(concrete(rows.imag(a))) < limit) else a


@implements(np.isclose)
def isclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether elements are equal within tolerances."""
    from func.numpy.ufuncs import absolute

    a, b = operand(a), operand(b)
    near = rows.less_equal(absolute(rows.subtract(a, b)), rows.add(atol, rows.multiply(rtol, absolute(b))))
    result = rows.logical_or(rows.logical_and(near, rows.isfinite(b)), rows.equal(a, b))
    return rows.logical_or(result, rows.logical_and(rows.isnan(a), rows.isnan(b))) if equal_nan else result


@implements(np.allclose)
def allclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within tolerances."""
    from func.numpy.reductions import all

    return bool(all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements."""
    from func.numpy.reductions import all

    a1, a2 = operand(a1), operand(a2)
    if shape_of(a1) != shape_of(a2):
        return False
    same = rows.equal(a1, a2)
    if equal_nan:
        same = rows.logical_or(same, rows.logical_and(rows.isnan(a1), rows.isnan(a2)))
    return bool(all(same))


@implements(np.array_equiv)
def array_equiv(a1: Array, a2: Array) -> bool:
    """Whether two arrays are equal after broadcasting."""
    from func.numpy.reductions import all

    a1, a2 = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(shape_of(a1), shape_of(a2))
    except ValueError:
        return False
    return bool(all(rows.equal(a1, a2)))


# --- neighbouring elements --------------------------------------------------------------------------------------


def _cut(rank: int, axis: int, start: int | None, stop: int | None, step: int | None = None) -> tuple[Any, ...]:
    return tuple([slice(start, stop, step) if i == axis else slice(None) for i in range(rank)])


@implements(np.diff)
def diff(a: Array, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Array:
    """Differences of neighbours along an axis, n times."""
    from func.numpy.joining import concatenate
    from func.numpy.shaping import broadcast_to

    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = operand(a)
    if rank_of(a) == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    place = one_axis(axis, rank_of(a))
    edge = tuple([1 if i == place else m for i, m in enumerate(shape_of(a))])
    ends = [
        value if rank_of(value) else broadcast_to(value, edge)
        for value in [operand(v) for v in (prepend, append) if is_given(v)]
    ]
    if ends:
        parts = [ends[0], a] if is_given(prepend) else [a]
        a = concatenate([*parts, *([ends[-1]] if is_given(append) else [])], place)
    rank = rank_of(a)
    for _ in range(n):
        minus = rows.not_equal if dtype_of(a).kind == "b" else rows.subtract
        a = minus(a[_cut(rank, place, 1, None)], a[_cut(rank, place, None, -1)])
    return a


@implements(np.ediff1d)
def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours of the flattened array, with values at the ends."""
    from func.numpy.joining import concatenate
    from func.numpy.shaping import ravel

    parts = [to_begin, diff(ravel(operand(ary))), to_end]
    kept = [ravel(operand(p)) for p in parts if p is not None]
    return concatenate(kept) if len(kept) > 1 else kept[0]


@implements(np.trapezoid)
def trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule."""
    y = operand(y)
    place = one_axis(axis, rank_of(y))
    if x is None:
        step: Array = operand(dx)
    else:
        x = operand(x)
        step = diff(x, axis=place) if rank_of(x) == rank_of(y) else diff(x)
        if rank_of(step) == 1 and rank_of(y) > 1:
            from func.numpy.shaping import reshape

            step = reshape(step, tuple([-1 if i == place else 1 for i in range(rank_of(y))]))
    both = rows.add(y[_cut(rank_of(y), place, 1, None)], y[_cut(rank_of(y), place, None, -1)])
    return sum(rows.divide(rows.multiply(step, both), 2.0), place)


@implements(np.gradient)
def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences in the interior, one-sided ones of the given order at the edges."""
    from func.numpy.arguments import many_axes

    f = operand(f)
    f = rows.multiply(f, 1.0) if dtype_of(f).kind in "iub" else f
    axes = many_axes(axis, rank_of(f))
    spacings = list(varargs) if len(varargs) == len(axes) else [varargs[0] if varargs else 1.0] * len(axes)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    out = [_gradient(f, operand(h), place, edge_order) for place, h in zip(axes, spacings, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)


def _gradient(f: Array, h: Array, axis: int, edge_order: int) -> Array:
    from func.numpy.joining import concatenate
    from func.numpy.shaping import reshape

    rank, n = rank_of(f), shape_of(f)[axis]
    if n < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) needed")

    def at(start: int | None, stop: int | None) -> Array:
        return f[_cut(rank, axis, start, stop)]

    if rank_of(h) == 0:
        inner = (at(2, None) - at(None, -2)) / (2.0 * h)
        if edge_order == 1:
            first, last = (at(1, 2) - at(0, 1)) / h, (at(-1, None) - at(-2, -1)) / h
        else:
            first = (-1.5 / h) * at(0, 1) + (2.0 / h) * at(1, 2) + (-0.5 / h) * at(2, 3)
            last = (0.5 / h) * at(-3, -2) + (-2.0 / h) * at(-2, -1) + (1.5 / h) * at(-1, None)
        return concatenate([first, inner, last], axis)
    d = diff(h)
    d = reshape(d, tuple([-1 if i == axis else 1 for i in range(rank)]))
    d1, d2 = d[_cut(rank, axis, None, -1)], d[_cut(rank, axis, 1, None)]
    a, b, c = -d2 / (d1 * (d1 + d2)), (d2 - d1) / (d1 * d2), d1 / (d2 * (d1 + d2))
    inner = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
    s1, s2 = d[_cut(rank, axis, 0, 1)], d[_cut(rank, axis, 1, 2)]
    e1, e2 = d[_cut(rank, axis, -2, -1)] if n > 2 else s1, d[_cut(rank, axis, -1, None)]
    if edge_order == 1:
        first, last = (at(1, 2) - at(0, 1)) / s1, (at(-1, None) - at(-2, -1)) / e2
    else:
        first = -(2 * s1 + s2) / (s1 * (s1 + s2)) * at(0, 1) + (s1 + s2) / (s1 * s2) * at(1, 2)
        first = first - s1 / (s2 * (s1 + s2)) * at(2, 3)
        last = e2 / (e1 * (e1 + e2)) * at(-3, -2) - (e2 + e1) / (e1 * e2) * at(-2, -1)
        last = last + (2 * e2 + e1) / (e2 * (e1 + e2)) * at(-1, None)
    return concatenate([first, inner, last], axis)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Linear interpolation between samples at increasing places, constant outside."""
    from func.numpy.selection import take
    from func.numpy.sorting import searchsorted

    refuse("interp", period=(period, None))
    x, xp, fp = operand(x), operand(xp), operand(fp)
    x = x if hasattr(x, "shape") else np.asarray(x, float)
    n = shape_of(xp)[0]
    if n == 0 or shape_of(xp) != shape_of(fp):
        raise ValueError("fp and xp are not of the same length, or are empty")
    if n == 1:
        inside = rows.add(rows.multiply(x, 0), fp[0])
    else:
        high = rows.minimum(rows.maximum(searchsorted(xp, x, "right"), 1), n - 1)
        low = rows.subtract(high, 1)
        x0, x1, f0, f1 = [take(v, i, axis=0) for v, i in ((xp, low), (xp, high), (fp, low), (fp, high))]
        inside = (f1 - f0) / (x1 - x0) * (x - x0) + f0
    inside = where_row(rows.less(x, xp[0]), fp[0] if left is None else operand(left), inside)
    return where_row(rows.greater(x, xp[n - 1]), fp[n - 1] if right is None else operand(right), inside)


@implements(np.unwrap)
def unwrap(p: Array, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Array:
    """Phases without jumps of more than half a period."""
    from func.numpy.cumulative import cumsum
    from func.numpy.joining import concatenate
    from func.numpy.ufuncs import absolute

    p = operand(p)
    place = one_axis(axis, rank_of(p))
    steps = diff(p, axis=place)
    half = period / 2
    wrapped = rows.subtract(rows.remainder(rows.add(steps, half), period), half)
    wrapped = where_row(
        rows.logical_and(rows.equal(wrapped, -half), rows.greater(steps, 0)), full_like(steps, half, ()), wrapped
    )
    fix_up = rows.subtract(wrapped, steps)
    limit = half if discont is None else discont
    fix_up = where_row(rows.less(absolute(steps), limit), full_like(steps, 0, ()), fix_up)
    rank = rank_of(p)
    rest = rows.add(p[_cut(rank, place, 1, None)], cumsum(fix_up, place))
    return concatenate([p[_cut(rank, place, None, 1)], rest], place)


# --- statistics of samples --------------------------------------------------------------------------------------


@implements(np.cov)
def cov(
    m: Array,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """The covariance matrix of variables in rows (rowvar) or columns."""
    from func.numpy.joining import concatenate
    from func.numpy.products import dot
    from func.numpy.shaping import atleast_2d, squeeze, transpose

    refuse("cov", fweights=(fweights, None), aweights=(aweights, None), dtype=(dtype, None))
    x = atleast_2d(operand(m))
    x = rows.multiply(x, 1.0)
    if not rowvar and shape_of(x)[0] != 1:
        x = transpose(x)
    if y is not None:
        other = atleast_2d(rows.multiply(operand(y), 1.0))
        x = concatenate([x, transpose(other) if not rowvar and shape_of(other)[0] != 1 else other], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    x = rows.subtract(x, mean(x, 1, keepdims=True))
    flipped = transpose(x)
    product = dot(x, rows.conjugate(flipped) if dtype_of(x).kind == "c" else flipped)
    return squeeze(rows.divide(product, max(shape_of(x)[1] - ddof, 0)))


@implements(np.corrcoef)
def corrcoef(x: Array, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlation coefficients of variables."""
    from func.numpy.creation import diag

    c = cov(x, y, rowvar, dtype=dtype)
    if rank_of(c) == 0:
        return rows.divide(c, c)
    spread = rows.sqrt(real(diag(c)))
    return clip(rows.divide(rows.divide(c, spread[:, None]), spread[None, :]), -1, 1)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Array:
    """A polynomial with the given coefficients, the highest power first."""
    p, x = operand(p), operand(x)
    value: Any = rows.multiply(x, 0)
    for k in range(shape_of(p)[0]):
        value = rows.add(rows.multiply(value, x), p[k])
    return value
