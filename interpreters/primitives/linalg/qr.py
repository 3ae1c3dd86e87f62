"""QR decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.linalg import float_dtype
from func.backends.array_helpers.strides import memory_order_of
from func.interpreters.core import Array, Aval, Primitive, dtype_of, general, leading_axes, shape_of
from func.interpreters.core.parameters import one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.linalg.matrices import are_matrices, block, imaginary_part, keep_where, mH, mm
from func.interpreters.primitives.linalg.solving import triangular_solve
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.primitives.structural.slicing import concatenate


def _qr_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, mode: str) -> tuple[Any, Any]:
    """With B = dA R⁻¹ and C = Qᴴ B: dQ = B - Q C + Q ω, dR = (C - ω) R, where ω is the antihermitian matrix with the
    lower triangle of C. The diagonal of R stays real, as LAPACK makes it.

    Sources: S. Walter, L. Lehmann, R. Lamour (2012), "On evaluating higher-order derivatives of the QR decomposition",
    for square and tall matrices; wide ones by splitting A = Q [R₁ R₂] as in arXiv:2009.10071. The further columns of
    a complete Q turn so that it stays unitary.
    """
    (a,), (da,) = primals, tangents
    q, r = qr(a, mode=mode)
    m, n = shape_of(a)[-2:]
    k = min(m, n)
    thin, square = block(q, (0, m), (0, k)), block(r, (0, k), (0, k))
    d_first = da if m >= n else block(da, (0, m), (0, m))
    scaled = mH(triangular_solve(square, mH(d_first), lower=False, adjoint=True, unit=False))
    inner = mm(mH(thin), scaled)
    rotation = _rotation(inner)
    turned = mm(thin, rotation)
    if m <= n:
        dr = mm(subtract(inner, rotation), square)
        if m == n:
            return (q, r), (turned, dr)
        return (q, r), (turned, add(mm(mH(turned), a), mm(mH(q), da)))
    dr = mm(subtract(inner, rotation), square)
    if shape_of(q)[-1] == k:
        return (q, r), (add(turned, subtract(scaled, mm(thin, inner))), dr)
    rest = block(q, (0, m), (k, m))
    outside = mm(mH(rest), scaled)
    axis = len(shape_of(a)) - 2
    dq = concatenate(add(turned, mm(rest, outside)), negative(mm(thin, mH(outside))), axis=axis + 1)
    below = full_like(dr, 0, (*shape_of(a)[:-2], m - k, n))
    return (q, r), (dq, concatenate(dr, below, axis=axis))


def _rotation(inner: Array) -> Array:
    """The antihermitian matrix with the lower triangle (and imaginary diagonal) of `inner`."""
    below = keep_where(inner, lambda i, j: j < i)
    rotation = subtract(below, mH(below))
    if dtype_of(inner).kind == "c":
        rotation = add(rotation, imaginary_part(keep_where(inner, lambda i, j: i == j)))
    return rotation


def _qr_aval(a: Aval, *, mode: str) -> tuple[Aval, Aval]:
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    dtype = float_dtype(a.dtype)
    return Aval((*batch, m, k), dtype), Aval((*batch, k, n), dtype)


qr: Primitive = general(
    "qr",
    lambda xp, a, *, mode: tuple(xp.linalg.qr(a, mode)),
    aval=_qr_aval,
    parameters={"mode": one_of("reduced", "complete")},
    fits=are_matrices,
    batch=leading_axes("qr"),
    jvp=_qr_jvp,
    multiple=True,
    cost=costs.per_matrix(costs.qr),
    layout=lambda a, *, mode: memory_order_of(lambda array: tuple(np.linalg.qr(array.astype(float), mode)), a),
)
"""Q and R, in mode "reduced" or "complete"."""


def _raw_aval(a: Aval) -> tuple[Aval, Aval]:
    *batch, m, n = a.shape
    dtype = float_dtype(a.dtype)
    return Aval((*batch, n, m), dtype), Aval((*batch, min(m, n)), dtype)


qr_raw = Primitive(
    "qr_raw",
    lambda xp, a: tuple(xp.linalg.qr(a, "raw")),
    aval=_raw_aval,
    fits=are_matrices,
    batch=leading_axes("qr_raw"),
    multiple=True,
    cost=costs.per_matrix(costs.qr),
)
"""LAPACK's Householder vectors (transposed) and factors. There is no derivative."""
