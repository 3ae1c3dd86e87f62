"""Rows that reach across the lanes of one vmap: sums, gathering, scattering, maxima.

Their second argument is the lane's own number. It differs from lane to lane of that vmap and of no other, which is how
the batch rule knows the vmap; and as any other value it follows the lanes through staged and derived programs. Values
that do not differ from lane to lane count as if every lane had a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    Shaped,
    bind,
    dtype_of,
    general,
    is_inexact,
    shape_of,
)
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import divide, equal, isnan, logical_or
from func.interpreters.primitives.structural.reductions import reduce_max, reduce_min
from func.interpreters.primitives.structural.shapes import broadcast, convert, move_axis, reduce_sum


class LinearCollective(Primitive):
    """A collective that is linear in its first argument."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = bind(self, primals, params)
        dx = tangents[0]
        return out, ZERO if dx is ZERO or not is_inexact(dtype_of(out)) else bind(self, (dx, primals[1]), params)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        return bind(self, values, params), self, (None, values[1])


Across = Callable[[Array, bool, int], Array]
"""(x, whether it has lanes, how many lanes there are) -> an array of lanes."""


def _batch(across: Across, elsewhere: Callable[..., Array]) -> Callable[..., Any]:
    """The batch rule of a collective at its own vmap, and at others, whose lanes are carried along."""

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        x, lane = args
        return across(x, batched[0], size) if batched[1] else elsewhere(x, lane, **params)

    return batch


def _everywhere(x: Array, size: int) -> Array:
    """A value without lanes, for every lane."""
    return broadcast(x, shape=(size, *shape_of(x)))


# --- sums -------------------------------------------------------------------------------------------------------


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.add.reduce(np.zeros(1, dtype)).dtype  # type: ignore[no-any-return]


def _times(x: Array, size: int) -> Array:
    """The sum of so many copies."""
    dtype = _sum_dtype(dtype_of(x))
    return multiply(convert(x, dtype=dtype), dtype.type(size))


def _times_impl(xp: Any, x: Array, size: int) -> Array:
    dtype = _sum_dtype(dtype_of(x))
    return xp.multiply(xp.asarray(x).astype(dtype), dtype.type(size))


def _psum_across(x: Array, has_lanes: bool, size: int) -> Array:
    return _everywhere(reduce_sum(x, axes=(0,)) if has_lanes else _times(x, size), size)


psum: LinearCollective = LinearCollective(
    "psum",
    lambda xp, x, lane, *, size: _times_impl(xp, x, size),
    aval=lambda x, lane, *, size: Aval(x.shape, _sum_dtype(x.dtype)),
    transpose=lambda ct, x, lane, *, size: (psum(ct, lane, size=size), ZERO),
    batch=_batch(_psum_across, lambda x, lane, *, size: psum(x, lane, size=size)),
    cost=costs.per_input(1),
)
"""The sum over all lanes, in every lane."""


# --- gathering and its transpose --------------------------------------------------------------------------------


def _gather_across(x: Array, has_lanes: bool, size: int) -> Array:
    return _everywhere(x if has_lanes else _everywhere(x, size), size)


all_gather: LinearCollective = LinearCollective(
    "all_gather",
    lambda xp, x, lane, *, size: xp.broadcast_to(x, (size, *shape_of(x))),
    aval=lambda x, lane, *, size: Aval((size, *x.shape), x.dtype),
    transpose=lambda ct, x, lane, *, size: (psum_scatter(ct, lane, size=size), ZERO),
    batch=_batch(_gather_across, lambda x, lane, *, size: move_axis(all_gather(x, lane, size=size), 1, 0)),
    cost=0,
    view=True,
)
"""The values of all lanes, stacked along a new leading axis, in every lane."""


def _scatter_across(x: Array, has_lanes: bool, size: int) -> Array:
    return reduce_sum(x, axes=(0,)) if has_lanes else _times(x, size)


psum_scatter: LinearCollective = LinearCollective(
    "psum_scatter",
    lambda xp, x, lane, *, size: _times_impl(xp, x[lane], size),
    aval=lambda x, lane, *, size: Aval(x.shape[1:], _sum_dtype(x.dtype)),
    transpose=lambda ct, x, lane, *, size: (all_gather(ct, lane, size=size), ZERO),
    batch=_batch(_scatter_across, lambda x, lane, *, size: psum_scatter(move_axis(x, 1, 0), lane, size=size)),
    cost=costs.per_input(1),
)
"""To every lane the sum over all lanes of the row with its number."""


# --- maxima -----------------------------------------------------------------------------------------------------


def _extremum(name: str, reduce: Any) -> Primitive:
    """The largest or smallest value of all lanes; ties share the tangent evenly."""

    def across(x: Array, has_lanes: bool, size: int) -> Array:
        return _everywhere(reduce(x, axes=(0,)) if has_lanes else x, size)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, size: int) -> tuple[Array, Any]:
        (x, lane), (dx, _) = primals, tangents
        out = primitive(x, lane, size=size)
        hits = convert(logical_or(equal(x, out), isnan(x)), dtype=dtype_of(x))
        number = psum(hits, lane, size=size)
        return out, psum(multiply(divide(hits, number), dx), lane, size=size)

    primitive: Primitive = general(
        name,
        lambda xp, x, lane, *, size: x,
        aval=lambda x, lane, *, size: Aval(x.shape, x.dtype),
        batch=_batch(across, lambda x, lane, *, size: primitive(x, lane, size=size)),
        jvp=jvp,
        cost=0,
        view=True,
    )
    return primitive


pmax = _extremum("pmax", reduce_max)
pmin = _extremum("pmin", reduce_min)
