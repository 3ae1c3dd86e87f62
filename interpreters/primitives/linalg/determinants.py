"""Determinants, also of singular matrices, and the adjugates that are their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import linalg
from func.backends.array_helpers.linalg import float_dtype, real_dtype
from func.interpreters.core import ZERO, Array, Aval, Primitive, dtype_of, general, leading_axes, shape_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import equal, exp, isinf, less_equal, real, subtract
from func.interpreters.primitives.linalg.matrices import (
    along_columns,
    are_square,
    diagonal_of,
    identity_like,
    imaginary_part,
    mH,
    mm,
    over_matrices,
    same_aval,
    trace_product,
)
from func.interpreters.primitives.linalg.singular import svd, svdvals
from func.interpreters.primitives.linalg.solving import inv
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import reduce_max
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


NEARLY = 0.45
"""Singular values below this power of the rounding unit, relative to the largest one, count as zero."""
DEFECT = 8
"""Up to this number of zero singular values the derivatives of all orders are right; with more, those up to this order.
"""


def _adjugate_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """d adj A = tr(A⁻¹ dA) adj A - A⁻¹ dA adj A, or for (nearly) singular A the same of its regular part."""
    (a,), (da,) = primals, tangents
    n = shape_of(a)[-1]
    s = svdvals(a)
    last = len(shape_of(s)) - 1
    ends = [getitem(s, index=(*[(0, k, 1) for k in shape_of(s)[:-1]], place)) for place in (0, n - 1)]
    singular = over_matrices(less_equal(ends[1], multiply(ends[0], _negligible(s))))
    identity = identity_like(a, n)
    regular = where(singular, identity, a)
    inner = mm(inv(regular), da)
    adj = adjugate(a)
    trace = over_matrices(reduce_sum(diagonal_of(inner), axes=(last,)))
    tangent = subtract(multiply(trace, adj), mm(inner, adj))
    return adj, where(singular, _singular_adjugate_tangent(where(singular, a, identity), da), tangent)


def _negligible(s: Array) -> float:
    return float(np.finfo(dtype_of(s)).eps ** NEARLY)


def _singular_adjugate_tangent(a: Array, da: Array) -> Array:
    """M = Uᴴ A V = N K in a fixed basis of singular vectors, where N is M with a shift τ on the diagonal where singular
    values are zero (the diagonal projector E). K = N⁻¹ M = I - Y with Y = τ N⁻¹ E differs from the identity only in
    the columns of E, and with Z = E K E

        adj M = adj(K) adj(N),  adj K = (I - E) det Z + (E + (I - E) Y) adj Z,  adj N = det(N) N⁻¹,

    where the determinant and the adjugate of Z, a polynomial, are those of the block in E. There is no division by
    zero. U, V, E and τ are constants: the derivative of this formula, taken here, has all further ones.
    """
    n = shape_of(a)[-1]
    u, s, vh = [stop_gradient(x) for x in svd(a, full_matrices=True)]
    top = reduce_max(s, axes=(len(shape_of(s)) - 1,))
    top = where(equal(top, 0), full_like(top, 1, ()), top)
    zero = less_equal(s, multiply(expand(top, (len(shape_of(s)) - 1,)), _negligible(s)))
    identity = identity_like(a, n)
    inside = multiply(identity, along_columns(convert(zero, dtype=dtype_of(a))))  # E
    outside = subtract(identity, inside)
    m, dm = [mm(mm(mH(u), x), mH(vh)) for x in (a, da)]
    shift = multiply(inside, over_matrices(convert(top, dtype=dtype_of(a))))
    shifted = add(m, shift)
    inverse = inv(shifted)
    turned = mm(inverse, dm)  # N⁻¹ dM, as dN = dM
    y = mm(inverse, shift)
    dy = negative(mm(turned, y))
    z = mm(mm(inside, mm(inverse, m)), inside)
    dz = negative(mm(inside, dy))
    (det_z, d_det_z), (adj_z, d_adj_z) = _block_adjugate(z, dz, inside, zero)
    spread, d_spread = add(inside, mm(outside, y)), mm(outside, dy)
    adj_k = add(multiply(outside, det_z), mm(spread, adj_z))
    d_adj_k = add(multiply(outside, d_det_z), add(mm(d_spread, adj_z), mm(spread, d_adj_z)))
    trace = over_matrices(trace_product(inverse, dm))
    change = add(mm(d_adj_k, inverse), mm(adj_k, subtract(multiply(trace, inverse), mm(turned, inverse))))
    sign, logdet = slogdet(shifted)
    factor = multiply(multiply(slogdet(u)[0], slogdet(vh)[0]), multiply(sign, convert(exp(logdet), dtype=dtype_of(a))))
    return multiply(over_matrices(factor), mm(mm(mH(vh), change), mH(u)))


def _block_adjugate(z: Array, dz: Array, inside: Array, zero: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(det Z, its tangent) and (adj Z, its tangent) of the block of a projector E, of which Z has no more.

    B₁ = E, cₖ = -tr(Z Bₖ) / k, Bₖ₊₁ = Z Bₖ + cₖ E; for a block of size k, adj Z = (-1)^(k-1) Bₖ and det Z = (-1)^k cₖ.
    Source: D. K. Faddeev, V. N. Faddeeva (1963), Computational Methods of Linear Algebra, section 47.
    """
    size = over_matrices(reduce_sum(convert(zero, dtype=np.dtype(int)), axes=(len(shape_of(zero)) - 1,)))
    b, db = inside, full_like(inside, 0)
    nothing = full_like(inside, 0)
    corner = multiply(over_matrices(trace_product(nothing, nothing)), 0)
    det, d_det, adj, d_adj = corner, corner, nothing, nothing
    for k in range(1, min(shape_of(z)[-1], DEFECT) + 1):
        c = multiply(over_matrices(trace_product(z, b)), -1 / k)
        dc = multiply(over_matrices(add(trace_product(dz, b), trace_product(z, db))), -1 / k)
        here, sign = equal(size, k), (-1.0) ** k
        det, d_det = where(here, multiply(c, sign), det), where(here, multiply(dc, sign), d_det)
        adj, d_adj = where(here, multiply(b, -sign), adj), where(here, multiply(db, -sign), d_adj)
        b, db = (
            add(mm(z, b), multiply(inside, c)),
            add(add(mm(dz, b), mm(z, db)), multiply(inside, dc)),
        )
    return (det, d_det), (adj, d_adj)


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
