"""Banded Hermitian matrices in LAPACK's form: Cholesky factors, eigenvalues and eigenvectors.

Where only the lower (or upper) diagonals are stored, the derivative is with respect to these. Elements outside the
matrix are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as _scipy

from func import linalg as _dense
from func.backends.array_helpers.linalg import real_dtype
from func.control.scanning import scan
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Aval, concrete, dtype_of, shape_of
from func.interpreters.primitives.linalg.banded import band_adjoint, solve_banded
from func.interpreters.primitives.linalg.entangled import entangle
from func.interpreters.primitives.linalg.invariant_subspaces import basis_of, turn_within
from func.interpreters.primitives.linalg.matrices import cusps, from_triangle, largest, safe_reciprocal, with_cusps
from func.interpreters.primitives.linalg.spectral import with_real_row
from func.interpreters.primitives.structural.identity import stop_gradient
from func.linalg import checks
from func.scipy.kinds.versions import version_of
from func.scipy.linalg.scipy_values import adjoint, by_equation, over_batch, scipy_function
from func.transforms.forward import jvp


def cho_solve_banded(cb_and_lower: Any, b: Array, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b from (cb, lower), where cb (…, u + 1, n) is cholesky_banded(a, lower=lower).

    b is (n,) or (…, n, k).
    """
    cb, lower = cb_and_lower
    if not holds_traced((cb, b)):
        out: Array = scipy_function("cho_solve_banded")((cb, lower), b, check_finite=check_finite)
        return out
    cb = checks.matrices(cb, "cb", check_finite)
    b, vector = checks.as_columns(checks.vectors(b, "b", check_finite))
    if shape_of(cb)[-1] != shape_of(b)[-2]:
        raise ValueError(f"shapes of cb {shape_of(cb)} and b {shape_of(b)} are not compatible.")
    cb, b = checks.promoted(cb, b)
    u = shape_of(cb)[-2] - 1
    if lower:
        half = solve_banded(cb, b, lower=u, upper=0)
        return checks.from_columns(solve_banded(band_adjoint(cb, u, 0), half, lower=0, upper=u), vector)
    half = solve_banded(band_adjoint(cb, 0, u), b, lower=u, upper=0)
    return checks.from_columns(solve_banded(cb, half, lower=0, upper=u), vector)


@version_of(_scipy.cholesky_banded)
def cholesky_banded(ab: Array, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor (…, u + 1, n), as a band, of a Hermitian positive-definite band ab (…, u + 1, n).

    Its derivative is that of the elimination by columns, of n u² operations. Elements outside the matrix stay
    unchanged.
    """
    ab = checks.matrices(ab, "ab", check_finite)

    def factor(ab: Any) -> Any:
        return [scipy_function("cholesky_banded")(ab, lower=lower)]

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        return [jvp(lambda ab: _eliminated(ab, lower), tuple(primals), tuple(tangents))[1]]

    def of_one(ab: Array) -> Array:
        if 0 in shape_of(ab):
            return ab
        return by_equation(factor, [Aval(shape_of(ab), dtype_of(ab))], derivative, [ab])[0]

    found: Array = over_batch(of_one, [ab], [2], "cholesky_banded")
    return found


def _eliminated(ab: Array, lower: bool) -> Array:
    """The Cholesky factor by elimination of one column after another, which subtracts from the next u columns."""
    size, n = shape_of(ab)
    is_inside = _is_inside(size, n, lower)
    own = np.where(is_inside, ab, 0)
    below = own if lower else _other_form(own, False)
    later = np.arange(size)[:, None] + np.arange(size)
    is_kept = later < size
    later = np.minimum(later, size - 1)

    def step(pending: Array, column: Array) -> Any:
        column = column - pending[:, 0]
        column = column / np.sqrt(np.real(column[0]))
        change = np.where(is_kept, pending + column[later] * np.conjugate(column), 0)
        return np.concatenate([change[:, 1:], np.zeros_like(change[:, :1])], axis=1), column

    first = np.zeros((size, size), dtype_of(ab))
    columns = scan(step, first, np.swapaxes(_with_real_row(below), 0, 1))[1]
    factor = np.swapaxes(columns, 0, 1)
    return np.where(is_inside, factor if lower else _other_form(factor, True), ab)


def _with_real_row(below: Array) -> Array:
    """Diagonals with a real first one."""
    if dtype_of(below).kind != "c":
        return below
    is_main = np.arange(shape_of(below)[0])[:, None] == 0
    return np.where(is_main, np.real(below) + 0j, below).astype(dtype_of(below))


def _is_inside(size: int, n: int, lower: bool) -> Any:
    """Whether each element of the diagonals belongs to the matrix."""
    offset, column = np.arange(size)[:, None], np.arange(n)
    return column < n - offset if lower else column >= size - 1 - offset


def _other_form(band: Array, lower: bool) -> Array:
    """The diagonals of the same Hermitian matrix (or the adjoint factor) on the other side."""
    size, n = shape_of(band)
    offset = np.arange(size)[:, None]
    column = np.arange(n) + (-(size - 1 - offset) if lower else offset)
    is_there = (column >= 0) & (column < n)
    rows = np.broadcast_to(size - 1 - offset, (size, n))
    return np.where(is_there, np.conjugate(band[rows, np.clip(column, 0, n - 1)]), 0)


def _dense_triangle(band: Array, lower: bool) -> Array:
    """The matrix (n, n) with the stored diagonals in its lower (or upper) triangle, and zeros in the other one."""
    size, n = shape_of(band)
    offset = np.arange(n)[:, None] - np.arange(n)
    row = offset if lower else size - 1 + offset
    is_stored = (row >= 0) & (row < size) & ((offset >= 0) if lower else (offset <= 0))
    columns = np.broadcast_to(np.arange(n), (n, n))
    return np.where(is_stored, band[np.clip(row, 0, size - 1), columns], 0)


def eig_banded(
    a_band: Array,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """(w, v): ascending eigenvalues and vectors of a Hermitian band (…, u + 1, n), or w alone.

    The derivative is that of `func.linalg.eigh` for the full matrix; LAPACK makes the first component of complex
    vectors real. `select` "v" needs known values, as these decide on the shape of the result.

    Source of the derivative: M. Giles (2008), "An extended collection of matrix derivative results", section 3.1.
    """
    options: dict[str, Any] = {"lower": lower, "select": select, "select_range": select_range, "max_ev": max_ev}
    function = scipy_function("eig_banded")
    if not holds_traced(a_band):
        return function(a_band, eigvals_only=eigvals_only, check_finite=check_finite, **options)
    a_band = checks.matrices(a_band, "a_band", check_finite)

    def solved(band: Any) -> Any:
        return function(band, **options)

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        (band,), (change,), (w, v) = primals, tangents, values
        dense = from_triangle(_dense_triangle(band, lower), lower)
        moved = from_triangle(_dense_triangle(change, lower), lower)
        w_all, v_all = _dense.eigh(dense, lower=lower, check_finite=False)
        cusp, all_cusps = cusps(w, w_all), cusps(w_all)
        if all_cusps is None:
            inner = adjoint(v_all) @ moved @ v
            factor = safe_reciprocal(w[None, :] - w_all[:, None], largest(w_all))
            dw = np.real(np.sum(np.conjugate(v) * (v_all @ inner), axis=0))
            dv = with_real_row(v, v_all @ (factor * inner), True)
            return entangle(dw, dv, adjoint(v) @ moved @ v, w, v)
        u = basis_of(dense, w_all, v_all)
        mixture = stop_gradient(adjoint(v_all) @ v)
        columns = u @ mixture
        dw = np.real(np.sum(np.conjugate(columns) * (moved @ columns), axis=0))
        dv = u @ turn_within(dense, w_all, u, adjoint(u) @ moved @ u) @ mixture
        dv = dv * np.sum(np.conjugate(columns) * v, axis=0)
        dv = with_cusps(with_real_row(v, dv, True), cusp)
        return entangle(with_cusps(dw, cusp), dv, adjoint(v) @ moved @ v, w, v)

    def of_one(band: Array) -> Any:
        n = shape_of(band)[1]
        if n == 1:  # LAPACK's drivers for upper diagonals read the wrong row for it
            band = band[:1] if lower else band[-1:]
        count = _count(band, options, n)
        outs = [Aval((count,), real_dtype(dtype_of(band))), Aval((n, count), dtype_of(band))]
        if 0 in shape_of(band):
            empty = [np.zeros(out.shape, out.dtype) for out in outs]
            return empty[0] if eigvals_only else tuple(empty)
        w, v = by_equation(solved, outs, derivative, [band])
        return w if eigvals_only else (w, v)

    return over_batch(of_one, [a_band], [2], "eig_banded")


def _count(band: Array, options: dict[str, Any], n: int) -> int:
    """The number of selected eigenvalues."""
    if options["select"] in ("a", "all", 0) or n == 0:
        return n
    plain = concrete(band) if options["select"] in ("v", "value", 1) else np.ones(shape_of(band))
    return len(scipy_function("eig_banded")(plain, eigvals_only=True, **options))


@version_of(_scipy.eigvals_banded)
def eigvals_banded(
    a_band: Array,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Array:
    """The eigenvalues of eig_banded in ascending order."""
    w: Array = eig_banded(a_band, lower, True, False, select, select_range, 0, check_finite)
    return w
