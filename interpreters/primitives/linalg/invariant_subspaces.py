"""Bases of the invariant subspaces of Hermitian matrices, which are smooth also where eigenvalues meet.

Where eigenvalues are equal, their vectors are not smooth, the span of these is. `invariant_basis` is a basis U of such
spans, with a block Λ = Uᴴ A U for each. Its derivative never mixes the vectors of one block, and its values are the
eigenvectors and eigenvalues. So the rule of a simple eigenvalue has derivatives of every order, whatever its neighbours
do: they have a part in it as a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, Array, Aval, Primitive, Shaped, add_tangents, general, leading_axes, shape_of
from func.interpreters.core.parameters import integer
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.linalg.matrices import (
    are_equal,
    are_square,
    block,
    diagonal_matrix,
    differences,
    mH,
    mm,
)
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import full_like, where


def _invariant_basis_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """dΛ are the blocks of Uᴴ dA U, dU = U ω, where ω has no blocks and ω Λ - Λ ω is the rest of Uᴴ dA U."""
    (a, w, v), (da, _, _) = primals, tangents
    blocks, u = invariant_basis(a, w, v)
    if da is ZERO:
        return (blocks, u), (ZERO, ZERO)
    inner = mm(mm(mH(u), da), u)
    return (blocks, u), (within_blocks(inner, w), mm(u, rotation(w, blocks, inner, first=0)))


def within_blocks(x: Array, w: Array) -> Array:
    """The elements of a matrix whose row and column belong to equal eigenvalues."""
    return where(are_equal(w, w), x, full_like(x, 0, ()))


invariant_basis: Primitive = general(
    "invariant_basis",
    lambda xp, a, w, v: (
        xp.where(xp.eye(w.shape[-1], dtype=bool), xp.expand_dims(w, -2), xp.zeros((), v.dtype)),
        xp.asarray(v),
    ),
    aval=lambda a, w, v: (v, v),
    fits=lambda a, w, v: are_square(a, v) and w.shape == a.shape[:-1],
    batch=leading_axes("invariant_basis"),
    jvp=_invariant_basis_jvp,
    multiple=True,
    body=lambda params: lambda a, w, v: (diagonal_matrix(w, v), v),
    cost=0,
)
"""(Λ, U) of a Hermitian matrix A whose eigenvalues w and vectors v are known; the derivatives are by A alone."""


def _rotation_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, first: int) -> tuple[Array, Any]:
    """ω Λ - Λ ω = X gives dω Λ - Λ dω = dX - ω dΛ + dΛ ω."""
    (w, blocks, x), (_, d_blocks, dx) = primals, tangents
    out = rotation(w, blocks, x, first=first)
    if d_blocks is not ZERO:
        places = (first, first + shape_of(x)[-1])
        change = subtract(mm(d_blocks, out), mm(out, block(d_blocks, places, places)))
        dx = add_tangents(dx, change)
    return out, dx if dx is ZERO else rotation(w, blocks, dx, first=first)


def _rotation_transpose(ct: Array, w: Array, blocks: Array, x: Shaped, *, first: int) -> tuple[Any, Any, Array]:
    return ZERO, ZERO, rotation(w, blocks, ct, first=first)


def _rotation_value(w: Array, x: Array, first: int) -> Array:
    return multiply(differences(w, None, first, first + shape_of(x)[-1]), x)


def _rotation_impl(xp: Any, w: Array, blocks: Array, x: Array, *, first: int) -> Array:
    """`_rotation_value` on plain arrays."""
    gap = w[..., None, first : first + x.shape[-1]] - w[..., None]
    if 0 in x.shape:
        return xp.multiply(gap, x)
    scale = xp.max(xp.abs(w), (w.ndim - 1,))[..., None, None]
    same = xp.abs(gap) <= scale * (float(np.finfo(w.dtype).eps) * 4 * x.shape[-1])
    one = xp.ones((), w.dtype)
    return xp.multiply(xp.where(same, xp.zeros((), w.dtype), xp.divide(one, xp.where(same, one, gap))), x)


rotation: Primitive = general(
    "rotation",
    _rotation_impl,
    aval=lambda w, blocks, x, *, first: Aval(x.shape, np.result_type(w.dtype, x.dtype)),
    parameters={"first": integer(0)},
    fits=lambda w, blocks, x, *, first: (
        are_square(blocks) and w.shape == blocks.shape[:-1] == x.shape[:-1] and first + x.shape[-1] <= w.shape[-1]
    ),
    batch=leading_axes("rotation"),
    jvp=_rotation_jvp,
    transpose=_rotation_transpose,
    body=lambda params: lambda w, blocks, x: (_rotation_value(w, x, params["first"]),),
    cost=costs.per_element,
)
"""ω with ω Λ - Λ ω = X outside of the blocks, and zero in them: x / (w_j - w_i). X has the columns from `first` on."""


def basis_of(a: Array, w: Array, v: Array) -> tuple[Array, Array, Array]:
    """The eigenvalues, held, and (Λ, U) of a Hermitian matrix."""
    held = stop_gradient(w)
    blocks, u = invariant_basis(a, held, stop_gradient(v))
    return held, blocks, u
