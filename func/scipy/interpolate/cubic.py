"""The slopes at the nodes of cubic interpolators; SciPy's own code checks the data and makes the object.

The slopes of CubicSpline solve SciPy's tridiagonal system, with its boundary conditions. Those of PchipInterpolator and
Akima1DInterpolator are means of neighbouring slopes, chosen by signs. At data where the choice changes, the derivative
is that of the chosen side.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.interpreters.core import Array, dtype_of, shape_of
from func.linalg import solve, solve_banded
from func.scipy.interpolate.data_arguments import column, common
from func.scipy.kinds.traces import numpy_with, part

_prepare_input: Any = inspect.unwrap(_scipy.CubicHermiteSpline.__init__).__globals__["prepare_input"]
_NAMESPACE = {"xp": np} if "xp" in inspect.signature(_prepare_input).parameters else {}
"""The array namespace, an argument of SciPy's function from 1.16 on."""
_validate_bc = part(
    _scipy.CubicSpline._validate_bc,
    np=numpy_with(allclose=lambda a, b, **options: fnp.all(fnp.isclose(a, b, **options))),
)
"""SciPy's check of conditions, which asks for one value instead of the several of `np.allclose`."""


def _prepared(x: Any, y: Any, axis: int) -> tuple[Array, Array, Array, int]:
    """Nodes, their distances, values with the axis of interpolation first, and that axis; checked by SciPy."""
    prepared: tuple[Array, Array, Array, int] = _prepare_input(x, y, axis, **_NAMESPACE)[:4]
    return prepared


def _fill(self: Any, x: Array, dx: Array, y: Array, slopes: Array, axis: int, extrapolate: Any) -> None:
    """Make an object of SciPy's with these values and slopes."""
    h = column(dx, len(shape_of(y)))
    chord = fnp.diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2.0 * chord) / h
    c = fnp.stack(common(bend / h, (chord - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]))
    _scipy.PPoly.__init__(self, c, x, extrapolate=extrapolate)
    self.axis = axis


def PchipInterpolator___init__(self: Any, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """The monotone piecewise cubic of Fritsch and Butland."""
    x, dx, y, axis = _prepared(x, y, axis)
    _check_real(y, "PchipInterpolator")
    _fill(self, x, dx, y, pchip_slopes(dx, y), axis, extrapolate)


def _check_real(y: Array, name: str) -> None:
    if dtype_of(y).kind == "c":
        raise ValueError(
            f"`{name}` only works with real values for `y`. If you are trying to use the real components of the passed "
            f"array, use `np.real` on the array before passing to `{name}`."
        )


def pchip_slopes(dx: Array, y: Array) -> Array:
    """Harmonic means of the slopes of neighbouring chords; zero where their signs differ.

    Source: F. N. Fritsch and J. Butland (1984), SIAM J. Sci. Comput. 5(2), 300-304.
    """
    h = column(dx, len(shape_of(y)))
    chord = fnp.diff(y, axis=0) / h
    if shape_of(y)[0] == 2:
        return fnp.concatenate([chord, chord])
    before, after = chord[:-1], chord[1:]
    flat = (fnp.sign(before) != fnp.sign(after)) | (before == 0) | (after == 0)
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    mean = (w1 / fnp.where(flat, 1.0, before) + w2 / fnp.where(flat, 1.0, after)) / (w1 + w2)
    inner = fnp.where(flat, 0.0, 1.0 / fnp.where(flat, 1.0, mean))
    first = _end_slope(h[0], h[1], chord[0], chord[1])
    n = shape_of(chord)[0]
    last = _end_slope(h[n - 1], h[n - 2], chord[n - 1], chord[n - 2])
    return fnp.concatenate([first[None], inner, last[None]])


def _end_slope(h0: Array, h1: Array, m0: Array, m1: Array) -> Array:
    """The three-point slope at an end, limited to keep the shape of the data."""
    d = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = fnp.sign(d) != fnp.sign(m0)
    steep = (fnp.sign(m0) != fnp.sign(m1)) & (fnp.abs(d) > 3.0 * fnp.abs(m0))
    return fnp.where(turned, 0.0, fnp.where(steep, 3.0 * m0, d))


def Akima1DInterpolator___init__(
    self: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
) -> None:
    """Akima's piecewise cubic, or the modified one.

    Source: H. Akima (1970), J. ACM 17(4), 589-602.
    """
    if method not in {"akima", "makima"}:
        raise NotImplementedError(f"`method`={method} is unsupported.")
    x, dx, y, axis = _prepared(x, y, axis)
    _check_real(y, "Akima1DInterpolator")
    _fill(self, x, dx, y, _akima_slopes(dx, y, method == "makima"), axis, extrapolate or False)


def _akima_slopes(dx: Array, y: Array, modified: bool) -> Array:
    chord = fnp.diff(y, axis=0) / column(dx, len(shape_of(y)))
    n = shape_of(chord)[0]
    if n == 1:
        return fnp.concatenate([chord, chord])
    first = 2.0 * chord[0] - chord[1]
    last = 2.0 * chord[n - 1] - chord[n - 2]
    ends = [2.0 * first - chord[0], first], [last, 2.0 * last - chord[n - 1]]
    m = fnp.concatenate([fnp.stack(ends[0]), chord, fnp.stack(ends[1])])
    dm = fnp.abs(fnp.diff(m, axis=0))
    before, after = dm[:-2], dm[2:]
    if modified:
        pm = fnp.abs(m[1:] + m[:-1])
        before, after = before + 0.5 * pm[:-2], after + 0.5 * pm[2:]
    total = before + after
    uneven = total > 1e-9 * fnp.max(total)
    mixed = m[1:-2] + before / fnp.where(uneven, total, 1.0) * (m[2:-1] - m[1:-2])
    return fnp.where(uneven, mixed, 0.5 * (m[3:] + m[:-3]))


def CubicSpline___init__(
    self: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> None:
    """The twice continuously differentiable piecewise cubic through data."""
    x, dx, y, axis = _prepared(x, y, axis)
    conditions, y = _validate_bc(bc_type, y, shape_of(y)[1:], axis)
    if extrapolate is None:
        extrapolate = "periodic" if conditions[0] == "periodic" else True
    slopes = fnp.zeros_like(y) if 0 in shape_of(y) else _spline_slopes(x, dx, y, conditions)
    _fill(self, x, dx, y, slopes, axis, extrapolate)


def _spline_slopes(x: Array, dx: Array, y: Array, bc: list[Any]) -> Array:
    """The slopes at the nodes with a continuous second derivative.

    In an inner node h[i] s[i-1] + 2 (h[i-1] + h[i]) s[i] + h[i-1] s[i+1] = 3 (h[i] m[i-1] + h[i-1] m[i]) with the
    slopes m of the chords; the boundary conditions are the first and the last equation.
    """
    n = shape_of(x)[0]
    h = column(dx, len(shape_of(y)))
    chord = fnp.diff(y, axis=0) / h
    if n == 2:
        bc = [(1, chord[0]) if isinstance(end, str) else end for end in bc]
    if n == 3 and bc[0] == "periodic":
        mean = fnp.sum(chord / h, axis=0) / fnp.sum(1.0 / h, axis=0)
        return fnp.stack([mean] * 3)
    right = 3.0 * (h[1:] * chord[:-1] + h[:-1] * chord[1:])
    if n == 3 and all(isinstance(end, str) for end in bc):
        zero, one = fnp.zeros_like(dx[0]), fnp.ones_like(dx[0])
        matrix = fnp.stack(
            [fnp.stack([one, one, zero]), fnp.stack([dx[1], 2.0 * (dx[0] + dx[1]), dx[0]]), fnp.stack([zero, one, one])]
        )
        return _solved(lambda b: solve(matrix, b), fnp.stack([2.0 * chord[0], right[0], 2.0 * chord[1]]))
    if bc[0] == "periodic":
        return _periodic_slopes(dx, h, chord)
    upper, diagonal, lower, start, end = _end_equations(x, dx, y, h, chord, bc)
    rows = [
        fnp.concatenate([fnp.zeros_like(dx[:1]), upper, dx[:-1]]),
        fnp.concatenate([diagonal[0], 2.0 * (dx[:-1] + dx[1:]), diagonal[1]]),
        fnp.concatenate([dx[1:], lower, fnp.zeros_like(dx[:1])]),
    ]
    b = fnp.concatenate(common(start[None], right, end[None]))
    return _solved(lambda b: solve_banded((1, 1), fnp.stack(rows), b, check_finite=False), b)


def _end_equations(
    x: Array, dx: Array, y: Array, h: Array, chord: Array, bc: list[Any]
) -> tuple[Array, list[Array], Array, Array, Array]:
    """The entries of the first and the last equation, and their right-hand sides."""
    n = shape_of(x)[0]
    one, zero = fnp.ones_like(dx[:1]), fnp.zeros_like(dx[:1])
    diagonals, others, sides = [], [], []
    for name, i, j, sign in ((bc[0], 0, 1, -1.0), (bc[1], n - 2, n - 3, 1.0)):
        if isinstance(name, str):
            d = dx[i] + dx[j]
            diagonals.append(dx[j : j + 1])
            others.append(fnp.reshape(d, (1,)))
            sides.append(((h[i] + 2.0 * d) * h[j] * chord[i] + h[i] ** 2 * chord[j]) / d)
        elif name[0] == 1:
            diagonals.append(one)
            others.append(zero)
            sides.append(name[1])
        else:
            diagonals.append(2.0 * dx[i : i + 1])
            others.append(dx[i : i + 1])
            sides.append(sign * 0.5 * name[1] * dx[i] ** 2 + 3.0 * (y[i + 1] - y[i]))
    return others[0], diagonals, others[1], sides[0], sides[1]


def _solved(solver: Any, b: Array) -> Array:
    """The solution for a right-hand side (n, …)."""
    shape = shape_of(b)
    return fnp.reshape(solver(fnp.reshape(b, (shape[0], -1))), shape)


def _periodic_slopes(dx: Array, h: Array, chord: Array) -> Array:
    """The slopes of a periodic spline: two tridiagonal solves give the cyclic system's solution."""
    n = shape_of(dx)[0]
    zero = fnp.zeros_like(dx[:1])
    before = fnp.concatenate([dx[n - 1 :], dx[: n - 1]])
    diagonal = 2.0 * (before + dx)
    h_before = fnp.concatenate([h[n - 1 :], h[: n - 1]])
    chord_before = fnp.concatenate([chord[n - 1 :], chord[: n - 1]])
    b = 3.0 * (h * chord_before + h_before * chord)
    m = n - 1
    rows = [
        fnp.concatenate([zero, before[: m - 1]]),
        diagonal[:m],
        fnp.concatenate([dx[1:m], zero]),
    ]
    ab = fnp.stack(rows)
    corner = fnp.concatenate([-dx[:1], fnp.zeros_like(dx[: m - 2]), -before[m - 1 : m]])
    rank = len(shape_of(chord))
    s1 = _solved(lambda v: solve_banded((1, 1), ab, v, check_finite=False), b[:m])
    s2 = column(solve_banded((1, 1), ab, corner, check_finite=False), rank)
    last = (b[m] - dx[m] * s1[m - 1] - before[m] * s1[0]) / (diagonal[m] + dx[m] * s2[m - 1] + before[m] * s2[0])
    s = s1 + last * s2
    return fnp.concatenate([s, last[None], s[:1]])
