"""Sorting and searching. The order carries no derivative; reordering by a permutation is linear."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import arrays
from func.backends.array_helpers.strides import axes_by_stride
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Linear, NonDifferentiable, Params, Primitive
from func.interpreters.core.parameters import AXIS, Kind, are_integers, have_equal_shapes, integer, is_integer, one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.conventions import followed_by_convention
from func.interpreters.primitives.elementwise.table import equal, greater, logical_and, logical_or
from func.interpreters.primitives.structural.reductions import SORT_KIND
from func.interpreters.primitives.structural.reductions import argsort as argsort
from func.interpreters.primitives.structural.shapes import convert, expand, full_like, reduce_sum
from func.interpreters.primitives.structural.slicing import concatenate, getitem

PLACES = Kind(
    "places along the axis",
    lambda value, avals, params: (
        type(value) is tuple and all([is_integer(k) and 0 <= k < max(avals[0].shape[params["axis"]], 1) for k in value])
    ),
)
SELECTION = one_of("introselect")


def _inverse_order_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return inverse_order(args[0], axis=params["axis"] + 1)


inverse_order: NonDifferentiable = core.nondifferentiable(
    "inverse_order",
    arrays.inverse_order,
    aval=lambda order, *, axis: Aval(order.shape, np.intp),
    parameters={"axis": AXIS},
    fits=lambda order, *, axis: are_integers(order),
    batch=_inverse_order_batch,
    cost=costs.per_element,
)
"""The inverses of an array of permutations along an axis."""


def _reorder_transpose(ct: Array, x: Any, order: Array, *, axis: int) -> tuple[Any, Any]:
    return reorder(ct, inverse_order(order, axis=axis), axis=axis), ZERO


def _reorder_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, order = core.materialize(size, batched, args)
    return reorder(x, order, axis=params["axis"] + 1)


reorder: Linear = core.linear(
    "reorder",
    lambda xp, x, order, *, axis: xp.take_along_axis(x, order, axis),
    aval=lambda x, order, *, axis: x,
    parameters={"axis": AXIS},
    fits=lambda x, order, *, axis: x.shape == order.shape and are_integers(order),
    transpose=_reorder_transpose,
    batch=_reorder_batch,
    positions=(0,),
    cost=costs.per_element,
    layout=lambda x, order, *, axis: axes_by_stride(x.strides),
    checks_indices=True,
    mask="covered",
    covers=True,
)
"""x along an axis in the order of an array of permutations, whose inverse is the transpose."""


def _partition_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return partition_order(args[0], **{**params, "axis": params["axis"] + 1})


partition_order: NonDifferentiable = core.nondifferentiable(
    "partition_order",
    arrays.partition_order,
    aval=lambda x, *, kth, axis, kind: Aval(x.shape, np.intp),
    parameters={"kth": PLACES, "axis": AXIS, "kind": SELECTION},
    batch=_partition_batch,
    cost=costs.sorting,
)
"""The permutation by which np.partition orders an axis."""


def _sort_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int, kind: Any) -> tuple[Array, Array]:
    order = argsort(primals[0], axis=axis, kind=kind)
    return reorder(primals[0], order, axis=axis), reorder(tangents[0], order, axis=axis)


def ordered(x: Array, order: Array, axis: int) -> Array:
    """x in ascending order along an axis; the order of equal elements is a convention."""
    out: Array = reorder(x, order, axis=axis)
    return followed_by_convention(out, lambda: _has_equals(out, axis))


def partitioned(x: Array, order: Array, kth: tuple[int, ...], axis: int) -> Array:
    """x partitioned along an axis; the sides of elements equal to a pivot are a convention."""
    out: Array = reorder(x, order, axis=axis)
    return followed_by_convention(out, lambda: functools.reduce(logical_or, [_is_one_of(out, k, axis) for k in kth]))


def _is_one_of(x: Array, k: int, axis: int) -> Array:
    """The elements along an axis that equal the one at k, if there are several."""
    if core.shape_of(x)[axis] == 0:
        return full_like(x, False, None, np.dtype(bool))
    index = tuple([(k, k + 1, 1) if place == axis else (0, n, 1) for place, n in enumerate(core.shape_of(x))])
    same = equal(x, getitem(x, index=index))
    number = reduce_sum(convert(same, dtype=np.dtype(np.intp)), axes=(axis,))
    return logical_and(same, greater(expand(number, (axis,)), 1))


def _has_equals(x: Array, axis: int) -> Array:
    """Whether an element has an equal neighbour along a sorted axis."""
    shape = core.shape_of(x)
    n = shape[axis]
    if n < 2:
        return full_like(x, False, None, np.dtype(bool))
    whole = [(0, m, 1) for m in shape]
    first, last = [getitem(x, index=(*whole[:axis], rows, *whole[axis + 1 :])) for rows in ((0, n - 1, 1), (1, n, 1))]
    same = equal(first, last)
    end = full_like(same, False, tuple([1 if k == axis else m for k, m in enumerate(shape)]))
    return logical_or(concatenate(end, same, axis=axis), concatenate(same, end, axis=axis))


sort: Primitive = core.general(
    "sort",
    lambda xp, x, *, axis, kind: xp.sort(x, axis, kind=kind) if xp is np else xp.sort(x, axis),
    aval=lambda x, *, axis, kind: x,
    parameters={"axis": AXIS, "kind": SORT_KIND},
    batch=lambda size, batched, args, params: sort(args[0], **{**params, "axis": params["axis"] + 1}),
    jvp=_sort_jvp,
    cost=costs.sorting,
    layout=lambda x, *, axis, kind: axes_by_stride(x.strides),
)
"""x in ascending order along an axis, where nothing else needs the order. Compiled code has it for a `reorder` by
`argsort`, which finds the order first and takes three times as long."""


def _partition_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, kth: tuple[int, ...], axis: int, kind: Any
) -> tuple[Array, Array]:
    order = partition_order(primals[0], kth=kth, axis=axis, kind=kind)
    return reorder(primals[0], order, axis=axis), reorder(tangents[0], order, axis=axis)


partition: Primitive = core.general(
    "partition",
    lambda xp, x, *, kth, axis, kind: xp.partition(x, kth, axis, kind) if xp is np else xp.sort(x, axis),
    aval=lambda x, *, kth, axis, kind: x,
    parameters={"kth": PLACES, "axis": AXIS, "kind": SELECTION},
    batch=lambda size, batched, args, params: partition(args[0], **{**params, "axis": params["axis"] + 1}),
    jvp=_partition_jvp,
    cost=costs.sorting,
    layout=lambda x, *, kth, axis, kind: axes_by_stride(x.strides),
)
"""x partitioned along an axis, where nothing else needs the order."""

argpartition: NonDifferentiable = core.nondifferentiable(
    "argpartition",
    lambda xp, x, *, kth, axis, kind: xp.argpartition(x, kth, axis, kind) if xp is np else xp.argsort(x, axis),
    aval=lambda x, *, kth, axis, kind: Aval(x.shape, np.intp),
    parameters={"kth": PLACES, "axis": AXIS, "kind": SELECTION},
    batch=lambda size, batched, args, params: argpartition(args[0], **{**params, "axis": params["axis"] + 1}),
    cost=costs.sorting,
)


def _lexsort_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return lexsort(*core.materialize(size, batched, args), axis=params["axis"] + 1)


lexsort: NonDifferentiable = core.nondifferentiable(
    "lexsort",
    arrays.lexsort,
    aval=lambda *keys, axis: Aval(keys[0].shape, np.intp),
    parameters={"axis": AXIS},
    fits=lambda *keys, axis: have_equal_shapes(*keys),
    batch=_lexsort_batch,
    cost=costs.sorting,
)


def _search_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    if not batched[0] and params["batch_rank"] == 0:
        return search(*args, **params)
    tables, values = core.materialize(size, batched, args)
    return search(tables, values, side=params["side"], batch_rank=params["batch_rank"] + 1)


def _are_tables(tables: Aval, values: Aval, *, side: str, batch_rank: int) -> bool:
    """Whether there is one sorted axis behind the batch axes that both have."""
    return len(tables.shape) == batch_rank + 1 and tables.shape[:batch_rank] == values.shape[:batch_rank]


def _search_cost(ins: Sequence[Aval], outs: Sequence[Aval], params: Params) -> float:
    """Bisection."""
    return outs[0].size * math.log2(max(ins[0].shape[-1], 2))


search: NonDifferentiable = core.nondifferentiable(
    "search",
    arrays.search,
    aval=lambda sorted_values, values, *, side, batch_rank: Aval(values.shape, np.intp),
    parameters={"side": one_of("left", "right"), "batch_rank": integer(0)},
    fits=_are_tables,
    undefined=lambda tables, values, **params: not np.array_equal(np.sort(tables), tables, equal_nan=True),
    batch=_search_batch,
    cost=_search_cost,
)
"""np.searchsorted; the first `batch_rank` axes of both arrays are a batch."""
