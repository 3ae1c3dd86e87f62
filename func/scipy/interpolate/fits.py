"""Splines through data and near data: the coefficients solve banded systems of basis functions at the nodes."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.interpolate as _scipy

import func.numpy as fnp
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, shape_of
from func.linalg import solve, solve_banded
from func.numpy.argument_checks import to_dtype
from func.scipy.interpolate.basis import basis, knot_intervals
from func.scipy.interpolate.collocation import band, least_squares, periodic_coefficients
from func.scipy.interpolate.data_arguments import (
    DOUBLE,
    array_of,
    column,
    first_axis,
    floats,
    holds,
    is_finite,
    numbers,
    reals,
    refuse,
    require,
)
from func.scipy.kinds.traces import numpy_with, traces
from func.scipy.kinds.versions import version_of
from func.transforms.implicit import custom_root


def _node_data(x: Any, y: Any, axis: int, check_finite: bool) -> tuple[Array, Array, int]:
    x, y = reals(x), floats(y)
    if check_finite and not is_finite(x, y):
        raise ValueError("Array must not contain infs or nans.")
    y, axis = first_axis(y, axis)
    return x, y, axis


def _boundary_values(pairs: Any) -> tuple[Any, Any]:
    """The orders and values of the derivatives at one end."""
    try:
        orders, values = zip(*pairs, strict=True) if pairs else ((), ())
    except TypeError as error:
        raise ValueError(
            "Derivatives, `bc_type`, should be specified as a pair of iterables of pairs of (order, value)."
        ) from error
    return np.array(orders, int), fnp.stack([floats(value) for value in values]) if values else np.zeros(0)


def _boundary_rows(t: Any, k: int, x: Any, ab: Any, lower: int, upper: int, orders: Any, offset: int = 0) -> None:
    """Write the derivatives of the basis functions at an end as rows of the matrix, in its diagonals."""
    point = fnp.reshape(resolved(x), (1,))
    place = knot_intervals(t, k, point)
    columns = place[0] - k + np.arange(k + 1)
    for row, order in enumerate(np.asarray(orders).tolist()):
        ab[lower + upper + offset + row - columns, columns] = basis(t, k, point, place, order)[0]


def _dierckx__coloc(x: Any, t: Any, k: int, ab: Any, offset: int) -> None:
    """Write the basis functions at nodes as rows of a matrix, in its diagonals (n, 3 k + 1)."""
    x, t = resolved(x), resolved(t)
    place = knot_intervals(t, k, x)
    first = place - k
    ab[:, k:] = fnp.transpose(band(basis(t, k, x, place), first, (k, k), shape_of(ab)[0], offset))


def _solved_bands(lower: int, upper: int, ab: Any, b: Any, **options: Any) -> tuple[Any, Any, Array, int]:
    """LAPACK's gbsv, of traced matrices too."""
    try:
        bands, right = resolved(ab)[lower:], resolved(b)
        return None, None, solve_banded((lower, upper), bands, right, check_finite=False), 0
    except np.linalg.LinAlgError:
        return None, None, b, 1


def _periodic(x: Any, y: Any, t: Any, k: int, axis: int, **options: Any) -> Any:
    """The periodic spline through data."""
    t = resolved(t)
    c = periodic_coefficients(resolved(x), resolved(y), t, k)
    return _scipy.BSpline.construct_fast(t, c, k, extrapolate="periodic", axis=axis)


make_interp_spline = traces(
    inspect.unwrap(_scipy.make_interp_spline),
    get_lapack_funcs=lambda names, arrays: (_solved_bands,),
    _process_deriv_spec=_boundary_values,
    _handle_lhs_derivatives=_boundary_rows,
    _make_periodic_spline=_periodic,
    np=numpy_with(
        allclose=lambda a, b, **options: fnp.all(fnp.isclose(a, b, **options)), asarray_chkfinite=lambda x: x
    ),
)


@version_of(_scipy.make_lsq_spline)
def make_lsq_spline(
    x: Any, y: Any, t: Any, k: Any = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> Any:
    """The spline with given knots that is nearest to data, as scipy.interpolate.make_lsq_spline.

    Differentiable in nodes, values, knots and weights.
    """
    x, y, axis = _node_data(x, y, axis, check_finite)
    t = reals(t)
    w = fnp.ones_like(x) if w is None else reals(w)
    k = operator.index(k)
    if check_finite and not is_finite(t, w):
        raise ValueError("Array must not contain infs or nans.")
    if len(shape_of(x)) != 1:
        raise ValueError("Expect x to be a 1-D sequence.")
    n = shape_of(x)[0]
    if n < k + 1:
        raise ValueError("Need more x points.")
    if k < 0:
        raise ValueError("Expect non-negative k.")
    if len(shape_of(t)) != 1 or not holds(fnp.diff(t) >= 0):
        raise ValueError("Expect t to be a 1D strictly increasing sequence.")
    if n != shape_of(y)[0]:
        raise ValueError(f"Shapes of x {shape_of(x)} and y {shape_of(y)} are incompatible")
    nt = shape_of(t)[0] - k - 1
    if k > 0:
        require((x >= t[k]) & (x <= t[shape_of(t)[0] - k]), f"Out of bounds w/ x = {x}.")
    if shape_of(w) != (n,):
        raise ValueError(f"Shapes of x {shape_of(x)} and w {shape_of(w)} are incompatible")
    if method not in ("qr", "norm-eq"):
        raise ValueError(f"Unknown method ={method!r}.")
    strict = method == "norm-eq"
    require(
        fnp.diff(x) > 0 if strict else fnp.diff(x) >= 0,
        f"Expect x to be a 1D {'strictly increasing' if strict else 'non-decreasing'} sequence.",
    )
    m = knot_intervals(t, k, x)
    c = least_squares(basis(t, k, x, m) * w[:, None], m - k, y * column(w, len(shape_of(y))), nt)
    return _scipy.BSpline.construct_fast(t, c, k, axis=axis)


def _divided(x: Sequence[Array]) -> list[Array]:
    """The coefficients of the divided difference at points."""
    out = []
    for i, xi in enumerate(x):
        product: Any = 1.0
        for j, xj in enumerate(x):
            if i != j:
                product = product * (xi - xj)
        out.append(1.0 / product)
    return out


@version_of(_scipy.make_smoothing_spline)
def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0) -> Any:
    """The natural cubic spline that weighs distance from data against bending, as SciPy's function of the name.

    Differentiable in nodes, values, weights and `lam`. Without `lam`, SciPy finds the minimum of generalized
    cross-validation to five digits. Its derivative, by the equation of a minimum, has the same accuracy.
    """
    x, y = reals(x), reals(y, "y")
    n = shape_of(x)[0] if shape_of(x) else 0
    require(fnp.diff(x) > 0, "``x`` should be an ascending array")
    if len(shape_of(x)) != 1 or n != shape_of(y)[axis]:
        raise ValueError(f"``x`` should be 1D and x.shape = {shape_of(x)!r} == y.shape = {shape_of(y)!r}")
    w = fnp.ones_like(x) if w is None else to_dtype(array_of(w), DOUBLE)
    require(w > 0, "Invalid vector of weights")
    if n <= 4:
        raise ValueError("``x`` and ``y`` length must be at least 5")
    y, axis = first_axis(y, axis)
    rest = shape_of(y)[1:]
    flat = fnp.reshape(y, (n, -1))
    t = fnp.concatenate([*[x[:1]] * 3, x, *[x[n - 1 :]] * 3])
    fit, bend = _smoothing_bands(x, w, t, n)
    if lam is None:
        columns = [cross_validated(fit, bend, flat[:, i], w) for i in range(shape_of(flat)[1])]
        lam = fnp.stack(columns) if rest else columns[0]
    lam = to_dtype(array_of(lam), DOUBLE)
    require(lam >= 0, "Regularization parameter should be non-negative")
    if len(shape_of(lam)) == 0:
        c = solve_banded((2, 2), fit + lam * bend, flat, check_finite=False)
    elif shape_of(lam) == shape_of(flat)[1:]:
        columns = [
            solve_banded((2, 2), fit + lam[i] * bend, flat[:, i], check_finite=False) for i in range(shape_of(lam)[0])
        ]
        c = fnp.stack(columns, axis=1)
    else:
        raise ValueError(f"lam must be a number or have shape {shape_of(flat)[1:]}, got {shape_of(lam)}")
    c0, c1, d1, d0 = c[:1], c[1:2], c[n - 2 : n - 1], c[n - 1 :]
    e = shape_of(t)[0]
    ends = [c0 * (t[5] + t[4] - 2.0 * t[3]) + c1, c0 * (t[5] - t[3]) + c1]
    others = [d0 * (t[e - 4] - t[e - 6]) + d1, d0 * (2.0 * t[e - 4] - t[e - 5] - t[e - 6]) + d1]
    c = fnp.reshape(fnp.concatenate([*ends, c[1 : n - 1], *others]), (n + 2, *rest))
    return _scipy.BSpline.construct_fast(t, c, 3, axis=axis)


def cross_validated(fit: Array, bend: Array, y: Array, w: Array) -> Array:
    """The weight of bending where generalized cross-validation is least, of a system X + λ E in bands.

    The score is |λ E c|² / (n - tr(A X))² with A = (X + λ E)⁻¹ and c = A y.
    """
    plain = [numbers(v, "the minimum of cross-validation") for v in (fit, bend, y, w)]
    start = float(getattr(_scipy, "_bsplines")._compute_optimal_gcv_parameter(*plain))  # noqa: B009
    n = len(plain[2])

    def slope(lam: Array, fit: Array, bend: Array, y: Array) -> Array:
        """Half the derivative of the logarithm of the score."""
        x, e = full_matrix(fit), full_matrix(bend)
        both = fnp.concatenate([y[:, None], x], axis=1)
        solved = solve(x + lam * e, both, check_finite=False)
        again = solve(x + lam * e, e @ solved, check_finite=False)
        gap, gap_rate = lam * (e @ solved[:, 0]), e @ (solved[:, 0] - lam * again[:, 0])
        free, free_rate = n - fnp.trace(solved[:, 1:]), fnp.trace(again[:, 1:])
        return fnp.sum(gap * gap_rate) / fnp.sum(gap * gap) - free_rate / free

    step = 1e-3 * start
    ends = [float(slope(np.float64(lam), *plain[:3])) for lam in (start - step, start + step)]
    rest = full_matrix(plain[1]) @ solve_banded((2, 2), plain[0] + start * plain[1], plain[2], check_finite=False)
    is_exact = start * np.linalg.norm(rest) <= 1e-12 * np.linalg.norm(plain[2])
    if is_exact or not ends[0] < 0 < ends[1]:
        raise refuse(
            "scipy.interpolate.make_smoothing_spline without lam, where the score has no minimum in its range,",
            "Pass lam.",
        )
    found: Array = custom_root(lambda lam: slope(lam, fit, bend, y), lambda _, start: start)(start)
    return found


def full_matrix(bands: Array) -> Array:
    """The matrix of five diagonals (5, n)."""
    n = shape_of(bands)[1]
    i, j = np.arange(n)[:, None], np.arange(n)
    inside = np.abs(i - j) <= 2
    return fnp.where(inside, fnp.take(fnp.reshape(bands, (-1,)), np.clip(2 + i - j, 0, 4) * n + j), 0.0)


def _smoothing_bands(x: Array, w: Array, t: Array, n: int) -> tuple[Array, Array]:
    """The five diagonals of the basis of natural splines at the nodes, and of its bending energy over the weights.

    Source: C. F. Reinsch (1967), Numer. Math. 10, 177-183, in the basis of P. J. Green and B. W. Silverman (1994).
    """
    m = knot_intervals(t, 3, x)
    rows = basis(t, 3, x, m)
    entry = [{int(a): rows[i, a] for a in range(4)} for i in (0, 1, 2, n - 3, n - 2, n - 1)]
    # Rows 0, 1, 2 start at columns 0, 1, 2; the last row shares the last interval with the row before it.
    start = [0, 1, 2, n - 3, n - 2, n - 2]
    values = {(i, start[p] + a): v for p, i in enumerate((0, 1, 2, n - 3, n - 2, n - 1)) for a, v in entry[p].items()}
    zero = fnp.zeros_like(x[0])
    end = n + 1
    upper = [zero, values[0, 0]]
    main = [
        (x[2] + x[1] - 2.0 * x[0]) * values[0, 0],
        values[1, 1] + values[1, 2],
    ]
    lower = [(x[2] - x[0]) * values[1, 1], values[2, 2]]
    tail_upper = [values[n - 3, end - 2], (x[n - 1] - x[n - 3]) * values[n - 2, end - 1]]
    tail_main = [
        values[n - 2, end - 2] + values[n - 2, end - 1],
        (2.0 * x[n - 1] - x[n - 2] - x[n - 3]) * values[n - 1, end],
    ]
    tail_lower = [values[n - 1, end], zero]
    # In an inner row i only the columns i, i + 1, i + 2 are not zero; column j of the band holds rows j - 1 … j + 1.
    j = np.arange(2, n - 2)
    inner = [rows[j - 1, 2], rows[j, 1], rows[j + 1, 0]]
    bands = [
        fnp.zeros_like(x),
        fnp.concatenate([fnp.stack(upper), inner[0], fnp.stack(tail_upper)]),
        fnp.concatenate([fnp.stack(main), inner[1], fnp.stack(tail_main)]),
        fnp.concatenate([fnp.stack(lower), inner[2], fnp.stack(tail_lower)]),
        fnp.zeros_like(x),
    ]
    columns = []
    for i in range(n):
        if i in (0, n - 1):
            place, scale = (range(0, 3), 1.0) if i == 0 else (range(n - 3, n), 1.0)
        elif i in (1, n - 2):
            place, scale = (range(0, 4), 1.0) if i == 1 else (range(n - 4, n), -1.0)
        else:
            place, scale = range(i - 2, i + 3), x[i + 2] - x[i - 2]
        parts = [scale * v / w[p] for p, v in zip(place, _divided([x[p] for p in place]), strict=True)]
        missing = [zero] * (5 - len(parts))
        columns.append(fnp.stack([*missing, *parts] if i < 2 else [*parts, *missing]))
    return fnp.stack(bands), 6.0 * fnp.stack(columns, axis=1)
