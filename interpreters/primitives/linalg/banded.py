"""Solves of banded matrices in LAPACK's form: each row is a diagonal, and columns are the columns of the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import linalg
from func.backends.array_helpers.linalg import float_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Primitive, Shaped
from func.interpreters.core.parameters import FLAG, integer
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, negative
from func.interpreters.primitives.elementwise.table import make_complex, real
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.filling import zeros_like
from func.interpreters.primitives.structural.shapes import expand, fit_cotangent, full_like
from func.interpreters.primitives.structural.slicing import concatenate, getitem


def _span(x: Array, axis: int, start: int, stop: int) -> Array:
    index = [(0, length, 1) for length in core.shape_of(x)]
    index[axis] = (start, stop, 1)
    return getitem(x, index=tuple(index))


def shifted(x: Array, axis: int, by: int) -> Array:
    """x shifted along an axis and filled with zeros."""
    shape = core.shape_of(x)
    n = shape[axis]
    by = max(-n, min(n, by))
    if by == 0:
        return x
    empty = full_like(x, 0, (*shape[:axis], abs(by), *shape[axis + 1 :]))
    if by > 0:
        return concatenate(empty, _span(x, axis, 0, n - by), axis=axis)
    return concatenate(_span(x, axis, -by, n), empty, axis=axis)


def diagonal_row(ab: Array, i: int) -> Array:
    """Row i of the diagonals, (…, n)."""
    shape = core.shape_of(ab)
    return getitem(ab, index=(*[(0, length, 1) for length in shape[:-2]], i, (0, shape[-1], 1)))


def band_product(ab: Array, x: Array, lower: int, upper: int) -> Array:
    """A x of the matrix with these diagonals: ab[upper + i - j, j] = A[i, j]."""
    axis = len(core.shape_of(x)) - 2
    terms = []
    for k in range(lower + upper + 1):
        column = diagonal_row(ab, k)
        terms.append(shifted(multiply(expand(column, (len(core.shape_of(column)),)), x), axis, k - upper))
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _stack_rows(rows: Sequence[Array]) -> Array:
    axis = len(core.shape_of(rows[0])) - 1
    return concatenate(*[expand(row, (axis,)) for row in rows], axis=axis)


def band_adjoint(ab: Array, lower: int, upper: int) -> Array:
    """The diagonals of Aᴴ, which has `upper` lower and `lower` upper ones."""
    axis = len(core.shape_of(ab)) - 2
    rows = [shifted(diagonal_row(ab, k), axis, k - upper) for k in reversed(range(lower + upper + 1))]
    stacked = _stack_rows(rows)
    return conjugate(stacked) if core.dtype_of(ab).kind == "c" else stacked


def whole_band(ab: Array, lower: bool) -> Array:
    """All 2u + 1 diagonals of a Hermitian matrix from the u + 1 lower (or upper) ones."""
    u = core.shape_of(ab)[-2] - 1
    axis = len(core.shape_of(ab)) - 2
    complex_ = core.dtype_of(ab).kind == "c"
    main = diagonal_row(ab, 0 if lower else u)
    if complex_:
        main = make_complex(real(main), zeros_like(real(main)))
    stored = [diagonal_row(ab, k if lower else u - k) for k in range(1, u + 1)]
    mirrored = [
        shifted(conjugate(row) if complex_ else row, axis, (k + 1) * (1 if lower else -1))
        for k, row in enumerate(stored)
    ]
    below, above = (stored, mirrored) if lower else (mirrored, stored)
    return _stack_rows([*reversed(above), main, *below])


def _banded_aval(ab: Aval, b: Aval, **params: Any) -> Aval:
    return Aval(b.shape, np.result_type(float_dtype(ab.dtype), b.dtype))


def _are_bands(ab: Aval, b: Aval) -> bool:
    """Whether there are diagonals of square matrices and right-hand sides."""
    return min(len(ab.shape), len(b.shape)) >= 2 and (*ab.shape[:-2], ab.shape[-1]) == b.shape[:-1]


def _solve_banded_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, lower: int, upper: int
) -> tuple[Array, Any]:
    """A dx = db - dA x. Source: M. Giles (2008), section 2.2.2."""
    (ab, b), (dab, db) = primals, tangents
    x = solve_banded(ab, b, lower=lower, upper=upper)
    right = db if dab is ZERO else core.add_tangents(db, negative(band_product(dab, x, lower, upper)))
    return x, solve_banded(ab, right, lower=lower, upper=upper)


def _solve_banded_transpose(ct: Array, ab: Array, b: Shaped, *, lower: int, upper: int) -> tuple[Any, Array]:
    pulled = solve_banded(band_adjoint(ab, lower, upper), ct, lower=upper, upper=lower)
    return ZERO, fit_cotangent(pulled, b)


solve_banded: Primitive = core.general(
    "solve_banded",
    reporting_missing(linalg.solve_banded),
    aval=_banded_aval,
    parameters={"lower": integer(0), "upper": integer(0)},
    fits=lambda ab, b, *, lower, upper: _are_bands(ab, b) and ab.shape[-2] == lower + upper + 1,
    batch=core.leading_axes("solve_banded"),
    jvp=_solve_banded_jvp,
    transpose=_solve_banded_transpose,
    cost=costs.banded,
)
"""A⁻¹ B of the matrix with diagonals ab (…, lower + upper + 1, n); B is (…, n, k)."""


def _solveh_banded_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool) -> tuple[Array, Any]:
    """A dx = db - dA x, dA the Hermitian matrix whose diagonals are the tangents. Source: Giles (2008), 2.2.2."""
    (ab, b), (dab, db) = primals, tangents
    x = solveh_banded(ab, b, lower=lower)
    right = db
    if dab is not ZERO:
        u = core.shape_of(ab)[-2] - 1
        right = core.add_tangents(right, negative(band_product(whole_band(dab, lower), x, u, u)))
    return x, solveh_banded(ab, right, lower=lower)


def _solveh_banded_transpose(ct: Array, ab: Array, b: Shaped, *, lower: bool) -> tuple[Any, Array]:
    return ZERO, fit_cotangent(solveh_banded(ab, ct, lower=lower), b)


solveh_banded: Primitive = core.general(
    "solveh_banded",
    reporting_missing(linalg.solveh_banded),
    aval=_banded_aval,
    parameters={"lower": FLAG},
    fits=lambda ab, b, **params: _are_bands(ab, b) and ab.shape[-2] > 0,
    batch=core.leading_axes("solveh_banded"),
    jvp=_solveh_banded_jvp,
    transpose=_solveh_banded_transpose,
    cost=costs.banded,
)
"""A⁻¹ B of the Hermitian positive-definite matrix with the lower (upper) diagonals ab (…, u + 1, n)."""
