"""Tangents of values and vectors that meet in one result, where values are equal.

Eigenvectors of equal eigenvalues may turn freely, so their tangents leave out a part of the change dA. Functions of
the values alone and functions of the whole eigenspace do not read that part. A function of both, such as V f(w) Vᴴ,
has f′ times it in its derivative, which no tangents of w and V can give. It is NaN then:

- forward mode knows the part that is left out, and marks the vectors if it is not zero;
- reverse mode knows which cotangents meet, and marks the cotangent of V if a result reads both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import absolute, equal, greater, not_equal, subtract
from func.interpreters.primitives.linalg.matrices import (
    along_columns,
    along_rows,
    are_equal,
    identity_like,
    mH,
    mm,
    over_matrices,
)
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import reduce_max
from func.interpreters.primitives.structural.shapes import convert, full_like, reduce_sum, where


def entangle(dw: Array, dv: Array, mixing: Array, w: Array, v: Array, kind: str = "hermitian") -> tuple[Array, Array]:
    """dw and dV of a decomposition with values w and vectors V in columns, marked where values are equal.

    `mixing` (…, n, n) is Vᴴ dA V, whose entries between equal values are left out. Kinds: "hermitian", "general" (any
    matrix may mix the vectors of equal values), "singular" (values of zero also leave out their own change).
    """
    w = stop_gradient(w)
    known = core.known_value(w)  # those of all batch elements
    if 0 in core.shape_of(w) or (known is not None and not np.any(_pairs(known, kind))):
        return dw, dv
    dw, dv = entangled(dw, dv, mixing, stop_gradient(v), _pairs(w, kind), kind=kind)
    return dw, dv


def _pairs(w: Array, kind: str) -> Array:
    """(…, n, n): one for each pair of equal values, and for values of zero on the diagonal of singular ones."""
    near = convert(are_equal(w, w), dtype=np.dtype(float))
    n = core.shape_of(w)[-1]
    others = subtract(1.0, identity_like(near, n))
    if kind == "singular":
        others = add(others, multiply(identity_like(near, n), convert(along_rows(equal(w, 0)), dtype=np.dtype(float))))
    return multiply(near, others)


def _large(sizes: Array) -> Array:
    """One where a matrix has entries beyond rounding errors, zero elsewhere."""
    rank = len(core.shape_of(sizes))
    rounding = math.sqrt(np.finfo(core.dtype_of(sizes)).eps)
    limit = multiply(over_matrices(reduce_max(sizes, axes=(rank - 2, rank - 1))), rounding)
    return convert(greater(sizes, limit), dtype=np.dtype(float))


def _marked(columns: Array, is_lost: Array) -> Array:
    """Columns, NaN where some entry of a column of `is_lost` is not zero."""
    count = reduce_sum(is_lost, axes=(len(core.shape_of(is_lost)) - 2,))
    real = absolute(columns)
    mark = where(greater(count, 0), full_like(real, math.nan, ()), full_like(real, 0, ()))
    return add(columns, along_columns(mark))


def _entangled(dw: Array, dv: Array, mixing: Array, v: Array, pairs: Array) -> tuple[Array, Array]:
    return dw, _marked(dv, multiply(pairs, _large(absolute(mixing))))


def _entangled_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, kind: str) -> tuple[Any, Any]:
    moved = [core.zeros_like(x) if dx is ZERO else dx for x, dx in zip(primals[:3], tangents[:3], strict=True)]
    return entangled(*primals, kind=kind), entangled(*moved, *primals[3:], kind=kind)


def _entangled_transpose(
    ct: dict[int, Array], dw: Shaped, dv: Shaped, mixing: Shaped, v: Array, pairs: Array, *, kind: str
) -> tuple[Any, ...]:
    """NaN for the vectors of equal values that the result mixes, if it depends on the values too."""
    if len(ct) < 2:
        return ct.get(0, ZERO), ct.get(1, ZERO), ZERO, ZERO, ZERO
    # Of a general matrix V may be scaled and mixed by any matrix, so that functions of it leave all of Vᴴ ct at zero.
    is_lost = pairs if kind == "general" else multiply(pairs, _large(absolute(mm(mH(v), ct[1]))))
    if kind == "singular":  # the cotangents of the vectors of zero are multiplied by it
        moved = convert(not_equal(ct[0], 0), dtype=np.dtype(float))
        reads = multiply(multiply(pairs, identity_like(pairs, core.shape_of(pairs)[-1])), along_rows(moved))
        is_lost = add(is_lost, mm(mH(pairs), reads))
    return ct[0], _marked(ct[1], is_lost), ZERO, ZERO, ZERO


def _entangled_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return entangled(*core.materialize(size, batched, args), **params)


def _fits(dw: Aval, dv: Aval, mixing: Aval, v: Aval, pairs: Aval, **params: Any) -> bool:
    """Whether the matrices have a column for each value."""
    columns = dv.shape[-1:]
    return len(dv.shape) > 1 and dv.shape == v.shape and mixing.shape == pairs.shape == (*dv.shape[:-2], *columns * 2)


entangled: Primitive = core.general(
    "entangled",
    lambda xp, *args, kind: _entangled(*args),
    aval=lambda dw, dv, mixing, v, pairs, *, kind: (dw, dv),
    parameters={"kind": one_of("hermitian", "general", "singular")},
    fits=_fits,
    batch=_entangled_batch,
    jvp=_entangled_jvp,
    transpose=_entangled_transpose,
    body=lambda params: _entangled,
    mask="body",
    multiple=True,
    cost=costs.per_element,
)
"""(dw, dV): tangents of values and of their vectors in columns, with NaN where values are equal whose entry of
`mixing` is not zero."""
