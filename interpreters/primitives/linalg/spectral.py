"""Eigenvalues and eigenvectors, of Hermitian and of general matrices.

Undetermined parts of degenerate spectra are dropped. Functions that are independent of the basis inside an eigenspace
(symmetric functions of eigenvalues, projectors to eigenspaces) have their first derivative there. From
the second order on, the data of single eigenvalues do not determine it, and it is NaN (`cusps`). Derivatives by a
simple eigenvalue among equal ones, and by its vector, are right to every order (`invariant_subspaces`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import spectra
from func.backends.array_helpers.linalg import complex_dtype, float_dtype, real_dtype
from func.interpreters import core
from func.interpreters.core import Array, Aval, Params, Primitive
from func.interpreters.core.parameters import FLAG
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply
from func.interpreters.primitives.elementwise.table import absolute, divide, equal, greater, imag, subtract
from func.interpreters.primitives.linalg.entangled import entangle
from func.interpreters.primitives.linalg.invariant_subspaces import basis_of, turn_within
from func.interpreters.primitives.linalg.matrices import (
    Cusps,
    along_columns,
    along_rows,
    are_square,
    block,
    cusps,
    diagonal_of,
    differences,
    from_triangle,
    identity_like,
    largest,
    mH,
    mm,
    mT,
    part_of,
    part_of_cusps,
    real_part,
    row_of,
    scale_columns,
    turn_to_real,
    with_cusps,
)
from func.interpreters.primitives.linalg.solving import solve
from func.interpreters.primitives.structural.contraction import contract, matmul_spec
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import argmax
from func.interpreters.primitives.structural.shapes import convert, full_like, reduce_sum, reshape, where


def _eigh_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool) -> tuple[Any, Any]:
    """dw = diag(Vᴴ dA V), dV = V (F ∘ Vᴴ dA V) with F_ij = 1 / (w_j - w_i), zero for equal eigenvalues.

    dA is that of the Hermitian matrix of which one triangle is read. Of complex vectors LAPACK makes the first
    component real for the lower triangle, the last one for the upper.
    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 3.1.
    """
    (a,), (da,) = primals, tangents
    w, v = eigh(a, lower=lower)
    cusp = cusps(w)
    dw, dv = turned(lambda: from_triangle(a, lower), projection(da, lower), w, v, cusp)
    return (w, v), (dw, with_real_row(v, dv, lower))


def turned(
    matrix: Callable[[], Array],
    change: Callable[[Array, Array], Array],
    w: Array,
    v: Array,
    cusp: Cusps | None,
    places: tuple[int, int] | None = None,
) -> tuple[Array, Array]:
    """dw and dV of a Hermitian matrix, where `change(U, C)` is Uᴴ dA C; at `places` alone, unless None.

    Where eigenvalues may be equal, the basis that is differentiated further is that of invariant subspaces; columns of
    eigenvectors differ from it by phases.
    """
    places = first, last = places or (0, core.shape_of(w)[-1])
    rows = core.shape_of(v)[-2]
    if cusp is None:
        inner = change(v, block(v, (0, rows), places))
        dv = mm(v, multiply(differences(w, None, first, last), inner))
        own = block(inner, (first, last), (0, last - first))
        return entangle(real_part(diagonal_of(own)), dv, own, part_of(w, first, last), block(v, (0, rows), places))
    a = matrix()
    u = basis_of(a, w, v)
    chosen = block(u, (0, rows), places)
    inner = change(u, chosen)
    dv = mm(u, turn_within(a, w, u, inner, first, last))
    if core.dtype_of(v).kind == "c":
        dv = scale_columns(dv, reduce_columns(conjugate(chosen), block(v, (0, rows), places)))
    marks, own = part_of_cusps(cusp, first, last), block(inner, places, (0, last - first))
    dw = with_cusps(real_part(diagonal_of(own)), marks)
    return entangle(dw, with_cusps(dv, marks), own, part_of(w, first, last), block(v, (0, rows), places))


def projection(da: Array, lower: bool) -> Callable[[Array, Array], Array]:
    """Uᴴ dA C for the change of a Hermitian matrix of which one triangle is read."""
    return lambda u, columns: mm(mm(mH(u), from_triangle(da, lower)), columns)


def with_real_row(v: Array, dv: Array, lower: bool) -> Array:
    """The tangent of eigenvectors of which LAPACK keeps the first (or the last) row real."""
    if core.dtype_of(v).kind != "c" or core.shape_of(v)[-1] == 0:
        return dv
    row = 0 if lower else -1
    return add(dv, scale_columns(v, turn_to_real(row_of(v, row), row_of(dv, row))))


eigh: Primitive = core.general(
    "eigh",
    lambda xp, a, *, lower: tuple(xp.linalg.eigh(a, "L" if lower else "U")),
    aval=lambda a, *, lower: (Aval(a.shape[:-1], real_dtype(a.dtype)), Aval(a.shape, float_dtype(a.dtype))),
    parameters={"lower": FLAG},
    fits=are_square,
    batch=core.leading_axes("eigh"),
    jvp=_eigh_jvp,
    multiple=True,
    cost=costs.cubic(9),
)


def _eigvalsh_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool) -> tuple[Array, Array]:
    """dw = diag(Vᴴ dA V). Source: Giles (2008), section 3.1."""
    (a,), (da,) = primals, tangents
    w = eigvalsh(a, lower=lower)
    cusp = cusps(w)
    _, basis = eigh(a if cusp is None else stop_gradient(a), lower=lower)
    if cusp is not None:
        basis = basis_of(from_triangle(a, lower), w, basis)
    columns = mm(from_triangle(da, lower), basis)
    return w, with_cusps(real_part(reduce_columns(conjugate(basis), columns)), cusp)


def reduce_columns(x: Array, y: Array) -> Array:
    """Σ_i x_ij y_ij, one number per column."""
    product = multiply(x, y)
    return reduce_sum(product, axes=(len(core.shape_of(product)) - 2,))


eigvalsh: Primitive = core.general(
    "eigvalsh",
    lambda xp, a, *, lower: xp.linalg.eigvalsh(a, "L" if lower else "U"),
    aval=lambda a, *, lower: Aval(a.shape[:-1], real_dtype(a.dtype)),
    parameters={"lower": FLAG},
    fits=are_square,
    batch=core.leading_axes("eigvalsh"),
    jvp=_eigvalsh_jvp,
    cost=costs.cubic(4 / 3),
)


INACCURATE = 1e-3
"""The relative error of a left eigenvector beyond which its eigenvalue has no derivative."""


def _eig_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """dw = diag(V⁻¹ dA V), dV = V (F ∘ V⁻¹ dA V) + V diag(c), F_ij = 1 / (w_j - w_i), zero for equal eigenvalues.

    c keeps each column as LAPACK makes it: of Euclidean length one, its largest component real.
    Source: M. Giles (2008), section 3.1; C. Boeddeker et al. (2017), arXiv:1701.00392, equations 4.77 and 4.63.
    """
    (a,), (da,) = primals, tangents
    w, v = eig(a)
    cusp = cusps(w)
    if cusp is None:
        rows = solve(v, identity_like(v, core.shape_of(w)[-1]))
        inner = mm(rows, mm(da, v))
        dv = mm(v, multiply(differences(w, None), inner))
    else:
        u = basis_of(a, w, v, hermitian=False)
        rows = solve(u, identity_like(u, core.shape_of(w)[-1]))
        inner = mm(rows, mm(da, u))
        dv = mm(u, turn_within(a, w, u, inner, hermitian=False))
        dv = scale_columns(dv, divide(reduce_columns(conjugate(u), v), reduce_columns(conjugate(u), u)))
    stretch = real_part(reduce_columns(conjugate(v), dv))
    pivot = _largest_of_columns(v)
    turn = divide(imag(reduce_columns(pivot, dv)), real_part(reduce_columns(pivot, v)))
    correction = add(stretch, multiply(turn, 1j))
    dv = subtract(dv, scale_columns(v, correction))
    dw = multiply(diagonal_of(inner), _one_if_accurate(a, w, rows))
    return (w, v), entangle(with_cusps(dw, cusp), with_cusps(dv, cusp), inner, w, v, "general")


def _one_if_accurate(a: Array, w: Array, rows: Array) -> Array:
    """One for each eigenvalue whose left vector, a row of V⁻¹, satisfies its equation, and NaN for others.

    Near a defective matrix V is singular, and rounding errors are all that is left of some rows.
    """
    a, w, rows = [stop_gradient(x) for x in (a, w, rows)]
    wrong = absolute(subtract(mm(rows, a), multiply(along_rows(w), rows)))
    size = multiply(largest(w), absolute(rows))
    last = len(core.shape_of(w))
    is_wrong = greater(reduce_sum(wrong, axes=(last,)), multiply(reduce_sum(size, axes=(last,)), INACCURATE))
    return where(is_wrong, full_like(w, np.nan), full_like(w, 1))


def _largest_of_columns(v: Array) -> Array:
    """One at the largest component of each column, zero elsewhere."""
    shape = core.shape_of(v)
    rank = len(shape)
    if shape[-1] == 0:
        return v
    places = along_columns(argmax(absolute(v), axis=rank - 2))
    rows = reshape(iota(shape[-2], v), shape=(shape[-2], 1))
    return convert(equal(places, rows), dtype=core.dtype_of(v))


eig: Primitive = core.general(
    "eig",
    spectra.eig,
    aval=lambda a: (Aval(a.shape[:-1], complex_dtype(a.dtype)), Aval(a.shape, complex_dtype(a.dtype))),
    fits=are_square,
    batch=core.leading_axes("eig"),
    jvp=_eig_jvp,
    multiple=True,
    cost=costs.cubic(25),
)
"""Eigenvalues and right eigenvectors, always complex."""


def _eigvals_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """dw = diag(V⁻¹ dA V), in the order of the values, which LAPACK computes apart from those of eig."""
    (a,), (da,) = primals, tangents
    values = eigvals(a)
    cusp = cusps(values)
    w, v = eig(a if cusp is None else stop_gradient(a))
    u = v if cusp is None else basis_of(a, w, v, hermitian=False)
    rows = solve(u, identity_like(u, core.shape_of(w)[-1]))
    d_values = multiply(reduce_columns(mT(rows), mm(da, u)), _one_if_accurate(a, w, rows))
    rank = len(core.shape_of(w)) - 1
    choice = match_values(values, w)
    dw = contract(convert(choice, dtype=core.dtype_of(d_values)), d_values, spec=matmul_spec(2, 1, rank, rank))
    return values, with_cusps(dw, cusp)


eigvals: Primitive = core.general(
    "eigvals",
    spectra.eigvals,
    aval=lambda a: Aval(a.shape[:-1], complex_dtype(a.dtype)),
    fits=are_square,
    batch=core.leading_axes("eigvals"),
    jvp=_eigvals_jvp,
    cost=costs.cubic(10),
)
"""Eigenvalues, always complex."""


def _match_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return match_values(*core.materialize(size, batched, args))


match_values = core.nondifferentiable(
    "match_values",
    spectra.match_values,
    aval=lambda x, y: Aval((*x.shape, x.shape[-1]), np.bool_),
    fits=lambda x, y: len(x.shape) > 0 and x.shape == y.shape,
    batch=_match_batch,
    cost=costs.per_element,
)
"""The boolean permutation matrix that says which y_j each x_i is."""
