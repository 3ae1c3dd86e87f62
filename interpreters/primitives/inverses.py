"""Rows that passes put in place of others where factors of a matrix are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.backends import support_inverses
from func.interpreters.core import Array
from func.interpreters.primitives.elementwise import multiply, negative
from func.interpreters.primitives.kinds import Row, general, leading_axes
from func.interpreters.primitives.matrices import hermitian_part, keep_where, mH, mm, same_aval


def _cholesky_inverse_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """dX = -X (dL Lᴴ + L dLᴴ) X, of dL the triangle that is read.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.3.
    """
    (factor,), (tangent,) = primals, tangents
    lower = keep_where(factor, lambda i, j: j <= i)
    moved = keep_where(tangent, lambda i, j: j <= i)
    inverse = cholesky_inverse(factor)
    inner = multiply(hermitian_part(mm(moved, mH(lower))), 2.0)
    return inverse, negative(mm(mm(inverse, inner), inverse))


cholesky_inverse: Row = general(
    "cholesky_inverse",
    support_inverses.cholesky_inverse,
    aval=same_aval,
    batch=leading_axes("cholesky_inverse"),
    jvp=_cholesky_inverse_jvp,
)
"""(L Lᴴ)⁻¹ from lower Cholesky factors L, whose upper triangles are not read."""
