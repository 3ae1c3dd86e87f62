"""Bases of the invariant subspaces of matrices, which are smooth also where eigenvalues meet.

Where eigenvalues are equal, their vectors are not smooth, but the span of these is. `invariant_basis` is a basis U of
such spans, unitary for Hermitian A, with a block of Λ = U⁻¹ A U for each. Its derivative never mixes the vectors
of one block, and its value is the eigenvectors. So the rule of a simple eigenvalue has derivatives of every order,
independent of its neighbours, which take part as a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import FLAG, integer
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import conjugate, multiply
from func.interpreters.primitives.elementwise.partials import is_followed
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.linalg.matrices import (
    are_equal,
    are_square,
    block,
    differences,
    mH,
    mm,
)
from func.interpreters.primitives.linalg.solving import solve
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import broadcast, expand, full_like, where


def projected(u: Array, a: Array, columns: Array, hermitian: bool) -> Array:
    """U⁻¹ A C."""
    return mm(mm(mH(u), a), columns) if hermitian else solve(u, mm(a, columns))


def _invariant_basis_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, hermitian: bool) -> tuple[Array, Any]:
    """dU = U ω, where ω has no blocks and ω Λ - Λ ω is what U⁻¹ dA U has besides them."""
    (a, w, v), (da, _, _) = primals, tangents
    u = invariant_basis(a, w, v, hermitian=hermitian)
    if da is ZERO:
        return u, ZERO
    return u, mm(u, turn_within(a, w, u, projected(u, da, u, hermitian), hermitian=hermitian))


invariant_basis: Primitive = core.general(
    "invariant_basis",
    lambda xp, a, w, v, *, hermitian: v,
    aval=lambda a, w, v, *, hermitian: v,
    parameters={"hermitian": FLAG},
    fits=lambda a, w, v, *, hermitian: are_square(a, v) and w.shape == a.shape[:-1],
    batch=core.leading_axes("invariant_basis"),
    jvp=_invariant_basis_jvp,
    body=lambda params: lambda a, w, v: (v,),
    cost=0,
)
"""U of a matrix A whose eigenvalues w and vectors v are known; the derivatives are by A alone."""


def _rotation_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, first: int, hermitian: bool, adjoint: bool
) -> tuple[Array, Any]:
    """ω Λ - Λ ω = X gives dω Λ - Λ dω = dX - ω dΛ + dΛ ω, where dΛ are the blocks of U⁻¹ dA U."""
    (w, inverse, a, u, x), (_, _, da, _, dx) = primals, tangents
    params = {"first": first, "hermitian": hermitian, "adjoint": adjoint}
    out = rotation(w, inverse, a, u, x, **params)
    if da is not ZERO:
        shape = (*core.shape_of(x)[:-1], core.shape_of(u)[-1])
        inner = projected(u, da, u, hermitian)
        blocks = where(are_equal(w, w), inner, full_like(inner, 0, ()))
        blocks = blocks if core.shape_of(blocks) == shape else broadcast(blocks, shape=shape)
        blocks = mH(blocks) if adjoint else blocks
        places = (first, first + core.shape_of(x)[-1])
        change = subtract(mm(blocks, out), mm(out, block(blocks, places, places)))
        dx = core.add_tangents(dx, change)
    return out, dx if dx is ZERO else rotation(w, inverse, a, u, dx, **params)


def _rotation_transpose(
    ct: Array, w: Array, inverse: Array, a: Array, u: Array, x: Shaped, *, first: int, hermitian: bool, adjoint: bool
) -> tuple[Any, ...]:
    """The equation with Λᴴ, which is Λ for Hermitian matrices."""
    if core.dtype_of(inverse).kind == "c":
        inverse = conjugate(inverse)
    params = {"first": first, "hermitian": hermitian, "adjoint": not (adjoint or hermitian)}
    return ZERO, ZERO, ZERO, ZERO, rotation(w, inverse, a, u, ct, **params)


def _rotation_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    """The values for one matrix broadcast."""
    (x,) = core.materialize(size, batched[4:], args[4:])
    matrix = [y if is_batched else expand(y, (0,)) for y, is_batched in zip(args[:4], batched[:4], strict=True)]
    if batched[2] != batched[3]:
        matrix[2:] = core.materialize(size, batched[2:4], args[2:4])
    return rotation(*matrix, x, **params)


def _has_parts_of_matrix(w: Aval, inverse: Aval, a: Aval, u: Aval, x: Aval, *, first: int, **params: Any) -> bool:
    return (
        are_square(a, u)
        and w.shape[-1:] == a.shape[-1:] == x.shape[-2:-1]
        and inverse.shape[-2:] == x.shape[-2:]
        and first + x.shape[-1] <= a.shape[-1]
        and np.broadcast_shapes(w.shape[:-1], inverse.shape[:-2], a.shape[:-2], x.shape[:-2]) == x.shape[:-2]
    )


rotation: Primitive = core.general(
    "rotation",
    lambda xp, w, inverse, a, u, x, **params: xp.multiply(inverse, x),
    aval=lambda w, inverse, a, u, x, **params: Aval(x.shape, np.result_type(inverse.dtype, x.dtype)),
    parameters={"first": integer(0), "hermitian": FLAG, "adjoint": FLAG},
    fits=_has_parts_of_matrix,
    batch=_rotation_batch,
    jvp=_rotation_jvp,
    transpose=_rotation_transpose,
    body=lambda params: lambda w, inverse, a, u, x: (multiply(inverse, x),),
    cost=costs.per_element,
)
"""ω with ω Λ - Λ ω = X outside of the blocks of equal eigenvalues w, and zero in them: F ∘ X with the differences F_ij
= 1 / (w_j - w_i) as constants. X has the columns from `first` on. With `adjoint` Λᴴ is in the place of Λ.
"""


def turn_within(
    a: Array, w: Array, u: Array, x: Array, first: int = 0, last: int | None = None, hermitian: bool = True
) -> Array:
    """The rotation of a basis of invariant subspaces of A; a plain product where no further derivative is taken."""
    held = stop_gradient(w)
    inverse = differences(held, None, first, last)
    if not is_followed(a):
        return multiply(inverse, x)
    turn: Array = rotation(held, inverse, a, u, x, first=first, hermitian=hermitian, adjoint=False)
    return turn


def basis_of(a: Array, w: Array, v: Array, hermitian: bool = True) -> Array:
    """The basis of a matrix with these eigenvalues and vectors."""
    basis: Array = invariant_basis(a, stop_gradient(w), stop_gradient(v), hermitian=hermitian)
    return basis
