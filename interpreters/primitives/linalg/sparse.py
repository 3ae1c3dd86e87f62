"""Products and solves of sparse matrices, given by their entries with rows and columns. No rule makes a dense matrix.

The entries are one array, their rows and columns two arrays of integers; entries at the same place add up. The
cotangent of the entries is taken at their places alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import sparse
from func.backends.array_helpers.linalg import float_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import FLAG, Kind, are_integers, integer
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, negative
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    convert,
    expand,
    fit_cotangent,
    move_axis,
    reduce_sum,
    reshape,
)
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.primitives.written_pullbacks import direct


def _conjugated(x: Array) -> Array:
    return conjugate(x) if core.dtype_of(x).kind == "c" else x


def entries_of_outer(rows: Array, cols: Array, left: Array, right: Array) -> Array:
    """The entries of left · rightᴴ at (rows, cols); `left` is (…, m, k) and `right` (…, n, k)."""
    axis = len(core.shape_of(left)) - 2
    terms = multiply(gather(left, rows, axis=axis), _conjugated(gather(right, cols, axis=axis)))
    return reduce_sum(terms, axes=(axis + 1,))


def _are_entries(data: Aval, rows: Aval, cols: Aval) -> bool:
    """Whether there is a row and a column for every entry."""
    return are_integers(rows, cols) and rows.shape == cols.shape == data.shape[-1:] and len(rows.shape) == 1


def _product_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, length: int) -> tuple[Array, Any]:
    """dA x + A dx."""
    (data, rows, cols, x), (d_data, _, _, dx) = primals, tangents
    out = sparse_product(data, rows, cols, x, length=length)
    parts = [ZERO if d_data is ZERO else sparse_product(d_data, rows, cols, x, length=length)]
    parts.append(ZERO if dx is ZERO else sparse_product(data, rows, cols, dx, length=length))
    return out, core.add_tangents(*parts)


def _product_transpose(ct: Array, data: Any, rows: Array, cols: Array, x: Any, *, length: int) -> tuple[Any, ...]:
    """Aᴴ c for x; for the entries, those of c xᴴ."""
    to_data: Any = ZERO
    to_x: Any = ZERO
    if isinstance(data, Shaped):
        to_data = fit_cotangent(entries_of_outer(rows, cols, ct, x), data)
    if isinstance(x, Shaped):
        pulled = sparse_product(_conjugated(data), cols, rows, ct, length=x.shape[0])
        to_x = fit_cotangent(pulled, x)
    return to_data, ZERO, ZERO, to_x


def _product_adjoint(ct: Array, parents: Any, saved: Any, *, length: int) -> tuple[Any, ...]:
    operands = [value if parent is None else parent for parent, value in zip(parents, saved[:4], strict=True)]
    data, rows, cols, x = saved[:4]
    to_data = _product_transpose(ct, operands[0], rows, cols, x, length=length)[0] if parents[0] is not None else ZERO
    to_x = _product_transpose(ct, data, rows, cols, operands[3], length=length)[3] if parents[3] is not None else ZERO
    return to_data, ZERO, ZERO, to_x


def _product_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    """Batch elements of x are further columns; those of the entries are blocks of one block-diagonal matrix."""
    length = params["length"]
    if not any(batched[:3]):
        data, rows, cols, x = args
        _, n, k = core.shape_of(x)
        out = sparse_product(data, rows, cols, reshape(move_axis(x, 0, 2), shape=(n, k * size)), length=length)
        return move_axis(reshape(out, shape=(length, k, size)), 2, 0)
    data, rows, cols, x = core.materialize(size, batched, args)
    _, n, k = core.shape_of(x)
    entries = core.shape_of(data)[1]
    rows, cols = [
        reshape(
            add(index, multiply(broadcast(reshape(iota(size, index), shape=(size, 1)), shape=(size, entries)), step)),
            shape=(size * entries,),
        )
        for index, step in (
            (convert(rows, dtype=np.dtype(np.int64)), length),
            (convert(cols, dtype=np.dtype(np.int64)), n),
        )
    ]
    out = sparse_product(
        reshape(data, shape=(size * entries,)), rows, cols, reshape(x, shape=(size * n, k)), length=size * length
    )
    return reshape(out, shape=(size, length, k))


sparse_product: Primitive = direct(
    "sparse_product",
    sparse.sparse_product,
    _product_adjoint,
    aval=lambda data, rows, cols, x, *, length: Aval((length, x.shape[1]), np.result_type(data.dtype, x.dtype)),
    parameters={"length": integer(0)},
    fits=lambda data, rows, cols, x, **params: (
        _are_entries(data, rows, cols) and len(data.shape) == 1 and len(x.shape) == 2
    ),
    batch=_product_batch,
    jvp=_product_jvp,
    transpose=_product_transpose,
    cost=lambda ins, outs, params: 2.0 * ins[0].size * ins[3].shape[1],
    checks_indices=True,
)
"""A x for entries of A at (rows, cols); A has `length` rows, x is (n, k)."""


def _are_options(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return type(value) is tuple and all(
        [
            type(item) is tuple
            and len(item) == 2
            and type(item[0]) is str
            and (type(item[1]) in (str, int, float, bool, type(None)) or _are_options(item[1], avals, params))
            for item in value
        ]
    )


OPTIONS = Kind("pairs of names and values of SuperLU's options", _are_options)


def _entries_product(data: Array, rows: Array, cols: Array, x: Array) -> Array:
    """A x for entries and sides with the same leading axes."""
    *batch, n, k = core.shape_of(x)
    if not batch:
        return sparse_product(data, rows, cols, x, length=n)
    size = int(np.prod(batch))
    flat = (reshape(data, shape=(size, core.shape_of(data)[-1])), rows, cols, reshape(x, shape=(size, n, k)))
    return reshape(_product_batch(size, (True, False, False, True), flat, {"length": n}), shape=(*batch, n, k))


def _solve_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, adjoint: bool, **params: Any) -> tuple[Array, Any]:
    """A dx = db - dA x. Source: M. Giles (2008), section 2.2.2."""
    (data, rows, cols, b), (d_data, _, _, db) = primals, tangents
    x = sparse_solve(data, rows, cols, b, adjoint=adjoint, **params)
    right = db
    if d_data is not ZERO:
        product = (
            _entries_product(_conjugated(d_data), cols, rows, x) if adjoint else _entries_product(d_data, rows, cols, x)
        )
        right = core.add_tangents(db, negative(product))
    return x, sparse_solve(data, rows, cols, right, adjoint=adjoint, **params)


def _solve_transpose(
    ct: Array, data: Any, rows: Array, cols: Array, b: Any, *, adjoint: bool, **params: Any
) -> tuple[Any, ...]:
    pulled = sparse_solve(data, rows, cols, ct, adjoint=not adjoint, **params)
    return ZERO, ZERO, ZERO, fit_cotangent(pulled, b)


def _solve_adjoint(ct: Array, parents: Any, saved: Any, *, adjoint: bool, **params: Any) -> tuple[Any, ...]:
    """b̄ = A⁻ᴴ x̄, and the entries of -b̄ xᴴ, or of its adjoint. Source: M. Giles (2008), section 2.2.2."""
    data, rows, cols, _, x = saved
    right = sparse_solve(data, rows, cols, ct, adjoint=not adjoint, **params)
    if parents[0] is None:
        return ZERO, ZERO, ZERO, right
    left, dual = (x, right) if adjoint else (right, x)
    return negative(entries_of_outer(rows, cols, left, dual)), ZERO, ZERO, right


def _element(x: Array, i: int) -> Array:
    return getitem(x, index=(i, *[(0, length, 1) for length in core.shape_of(x)[1:]]))


def _solve_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    """Batch elements of the sides alone are further columns of one solve."""
    if batched[1] or batched[2]:
        full = core.materialize(size, batched, args)
        singles = [[_element(arg, i) for arg in full] for i in range(size)]
        return concatenate(*[expand(sparse_solve(*own, **params), (0,)) for own in singles], axis=0)
    data, rows, cols, b = args
    rank = len(core.shape_of(b)) - 1
    if not batched[0] and rank == 2:
        _, n, k = core.shape_of(b)
        out = sparse_solve(data, rows, cols, reshape(move_axis(b, 0, 2), shape=(n, k * size)), **params)
        return move_axis(reshape(out, shape=(n, k, size)), 2, 0)
    data, b = core.materialize(size, (batched[0], batched[3]), (data, b))
    return sparse_solve(data, rows, cols, b, **params)


sparse_solve: Primitive = direct(
    "sparse_solve",
    sparse.sparse_solve,
    _solve_adjoint,
    aval=lambda data, rows, cols, b, **params: Aval(
        b.shape, np.result_type(float_dtype(data.dtype), float_dtype(b.dtype))
    ),
    parameters={"adjoint": FLAG, "strict": FLAG, "options": OPTIONS},
    fits=lambda data, rows, cols, b, **params: (
        _are_entries(data, rows, cols) and len(b.shape) >= 2 and data.shape[:-1] == b.shape[:-2]
    ),
    batch=_solve_batch,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    cost=lambda ins, outs, params: 30.0 * ins[0].size ** 1.5,
)
"""A⁻¹ b or A⁻ᴴ b for entries (…, entries) at (rows, cols); b is (…, n, k)."""
