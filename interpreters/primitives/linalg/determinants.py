"""Determinants, also of singular matrices, and the adjugates that are their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.support import linalg
from func.backends.support.linalg import float_dtype, real_dtype
from func.interpreters.core import ZERO, Array, Aval, Primitive, dtype_of, general, leading_axes, shape_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import divide, equal, isinf, less_equal, real, subtract
from func.interpreters.primitives.linalg.matrices import (
    along_columns,
    along_rows,
    are_square,
    constant_mask,
    diagonal_of,
    identity_like,
    imaginary_part,
    keep_where,
    mH,
    mm,
    over_matrices,
    same_aval,
    trace_product,
)
from func.interpreters.primitives.linalg.singular import svd, svdvals
from func.interpreters.primitives.linalg.solving import inv
from func.interpreters.primitives.structural.reductions import reduce_prod
from func.interpreters.primitives.structural.shapes import convert, expand, full_like, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate, getitem


def _slogdet_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """d log|det A| = Re tr(A⁻¹ dA); the phase turns by i Im tr(A⁻¹ dA). Infinite for singular A.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.4.
    """
    (a,), (da,) = primals, tangents
    sign, logdet = slogdet(a)
    singular = isinf(logdet)
    identity = identity_like(a, shape_of(a)[-1])
    trace = trace_product(inv(where(over_matrices(singular), identity, a)), da)
    weight = where(singular, full_like(logdet, np.inf, ()), full_like(logdet, 1, ()))
    if dtype_of(a).kind != "c":
        return (sign, logdet), (ZERO, multiply(weight, trace))
    return (sign, logdet), (multiply(imaginary_part(trace), sign), multiply(weight, real(trace)))


slogdet: Primitive = general(
    "slogdet",
    lambda xp, a: tuple(xp.linalg.slogdet(a)),
    aval=lambda a: (Aval(a.shape[:-2], float_dtype(a.dtype)), Aval(a.shape[:-2], real_dtype(a.dtype))),
    fits=are_square,
    batch=leading_axes("slogdet"),
    jvp=_slogdet_jvp,
    multiple=True,
    cost=costs.cubic(2 / 3),
)


def _det_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """d det A = tr(adj(A) dA). Source: Giles (2008), section 2.2.4, in the form that holds for singular A."""
    (a,), (da,) = primals, tangents
    adj = _small_adjugate(a) if shape_of(a)[-1] <= 3 else adjugate(a)
    return det(a), trace_product(adj, da)


det: Primitive = general(
    "det",
    lambda xp, a: xp.linalg.det(a),
    aval=lambda a: Aval(a.shape[:-2], float_dtype(a.dtype)),
    fits=are_square,
    batch=leading_axes("det"),
    jvp=_det_jvp,
    cost=costs.cubic(2 / 3),
)


def _entry(a: Array, i: int, j: int) -> Array:
    return getitem(a, index=(*[(0, n, 1) for n in shape_of(a)[:-2]], i, j))


def _small_adjugate(a: Array) -> Array:
    """The matrix of cofactors up to 3 by 3: polynomials, whose derivatives of every order hold for every matrix."""
    n = shape_of(a)[-1]
    if n == 0:
        return a
    if n == 1:
        return full_like(a, 1)
    e = [[_entry(a, i, j) for j in range(n)] for i in range(n)]
    if n == 2:
        cofactors = [[e[1][1], negative(e[0][1])], [negative(e[1][0]), e[0][0]]]
    else:
        turns = [(1, 2), (2, 0), (0, 1)]
        cofactors = [
            [subtract(multiply(e[k][p], e[m][q]), multiply(e[k][q], e[m][p])) for k, m in turns] for p, q in turns
        ]
    axis = len(shape_of(a)) - 2
    flat = concatenate(*[expand(entry, (axis,)) for row in cofactors for entry in row], axis=axis)
    return reshape(flat, shape=shape_of(a))


def _adjugate_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """d adj A = tr(A⁻¹ dA) adj A - A⁻¹ dA adj A, or for (nearly) singular A its limit in the basis of its singular
    vectors. (A third derivative assumes distinct singular values there.)"""
    (a,), (da,) = primals, tangents
    n = shape_of(a)[-1]
    s = svdvals(a)
    last = len(shape_of(s)) - 1
    ends = [getitem(s, index=(*[(0, k, 1) for k in shape_of(s)[:-1]], place)) for place in (0, n - 1)]
    singular = over_matrices(less_equal(ends[1], multiply(ends[0], 1e-7)))
    identity = identity_like(a, n)
    regular = where(singular, identity, a)
    inner = mm(inv(regular), da)
    adj = adjugate(a)
    trace = over_matrices(reduce_sum(diagonal_of(inner), axes=(last,)))
    tangent = subtract(multiply(trace, adj), mm(inner, adj))
    return adj, where(singular, _singular_adjugate_tangent(where(singular, a, identity), da), tangent)


def _singular_adjugate_tangent(a: Array, da: Array) -> Array:
    """For diagonal S with C_ij the product of all singular values but s_i and s_j, E = Uᴴ dA V changes adj(S) by
    -C_ij E_ij off the diagonal and Σ_j C_ij E_jj on it."""
    u, s, vh = svd(a, full_matrices=True)
    inner = mm(mm(mH(u), da), mH(vh))
    pairs = convert(_products_but_two(s), dtype=dtype_of(inner))
    spread = multiply(pairs, along_columns(diagonal_of(inner)))
    on_diagonal = along_columns(reduce_sum(spread, axes=(len(shape_of(spread)) - 1,)))
    changed = where(constant_mask(inner, lambda i, j: i == j), on_diagonal, negative(multiply(pairs, inner)))
    turn = multiply(slogdet(u)[0], slogdet(vh)[0])
    return multiply(over_matrices(turn), mm(mm(mH(vh), changed), mH(u)))


def _products_but_two(s: Array) -> Array:
    """C_ij = Π s_k over k other than i and j, zero on the diagonal; by division, with zeros counted apart."""
    last = len(shape_of(s)) - 1
    zero, unit = full_like(s, 0, ()), full_like(s, 1, ())
    empty = equal(s, 0)
    filled = where(empty, unit, s)
    zeros = where(empty, full_like(s, 1), zero)
    left = subtract(over_matrices(reduce_sum(zeros, axes=(last,))), add(along_rows(zeros), along_columns(zeros)))
    total = over_matrices(reduce_prod(filled, axes=(last,)))
    product = divide(divide(total, along_rows(filled)), along_columns(filled))
    return keep_where(where(equal(left, 0), product, zero), lambda i, j: i != j)


adjugate: Primitive = general(
    "adjugate",
    linalg.adjugate,
    aval=same_aval,
    fits=are_square,
    batch=leading_axes("adjugate"),
    jvp=_adjugate_jvp,
    cost=costs.cubic(10),
)
"""The matrix of cofactors, transposed: det(A) A⁻¹ where A has an inverse."""
