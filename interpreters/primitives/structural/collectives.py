"""Primitives that reach across the elements of one vmap's batch: sums, gathering, scattering, maxima.

Their second argument is the number of the element in the batch. It is batched by that vmap and by no other, which is
how the batch rule recognises the vmap, also inside traced and derived programs. A value that is not batched counts as
if every element had a copy of it.
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
from func.interpreters.core.parameters import integer
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply, nan_safe_multiply
from func.interpreters.primitives.elementwise.table import divide, equal, isnan, logical_or
from func.interpreters.primitives.structural.reductions import reduce_max, reduce_min
from func.interpreters.primitives.structural.shapes import broadcast, convert, move_axis, reduce_sum

SIZE = {"size": integer(0)}


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
"""(x, is_batched, size of the batch) -> a batched array."""


def _batch(across: Across, elsewhere: Callable[..., Array]) -> Callable[..., Any]:
    """The batch rule of a collective at the vmap that it reaches across, and at any other."""

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        x, element = args
        return across(x, batched[0], size) if batched[1] else elsewhere(x, element, **params)

    return batch


def _everywhere(x: Array, size: int) -> Array:
    """One value for every element of the batch."""
    return broadcast(x, shape=(size, *shape_of(x)))


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.add.reduce(np.zeros(1, dtype)).dtype  # type: ignore[no-any-return]


def _times(x: Array, size: int) -> Array:
    """The sum of `size` copies."""
    dtype = _sum_dtype(dtype_of(x))
    return multiply(convert(x, dtype=dtype), dtype.type(size))


def _times_impl(xp: Any, x: Array, size: int) -> Array:
    dtype = _sum_dtype(dtype_of(x))
    return xp.multiply(xp.asarray(x).astype(dtype), dtype.type(size))


def _psum_across(x: Array, is_batched: bool, size: int) -> Array:
    return _everywhere(reduce_sum(x, axes=(0,)) if is_batched else _times(x, size), size)


psum: LinearCollective = LinearCollective(
    "psum",
    lambda xp, x, element, *, size: _times_impl(xp, x, size),
    aval=lambda x, element, *, size: Aval(x.shape, _sum_dtype(x.dtype)),
    parameters=SIZE,
    transpose=lambda ct, x, element, *, size: (psum(ct, element, size=size), ZERO),
    batch=_batch(_psum_across, lambda x, element, *, size: psum(x, element, size=size)),
    cost=costs.per_input(1),
    mask="covered",
    covers=True,
)
"""The sum over all elements of the batch, in every element."""


def _gather_across(x: Array, is_batched: bool, size: int) -> Array:
    return _everywhere(x if is_batched else _everywhere(x, size), size)


all_gather: LinearCollective = LinearCollective(
    "all_gather",
    lambda xp, x, element, *, size: xp.broadcast_to(x, (size, *shape_of(x))),
    aval=lambda x, element, *, size: Aval((size, *x.shape), x.dtype),
    parameters=SIZE,
    transpose=lambda ct, x, element, *, size: (psum_scatter(ct, element, size=size), ZERO),
    batch=_batch(_gather_across, lambda x, element, *, size: move_axis(all_gather(x, element, size=size), 1, 0)),
    cost=0,
    view=True,
    mask="covered",
    covers=True,
)
"""The values of all elements, stacked along a new leading axis, in every element."""


def _scatter_across(x: Array, is_batched: bool, size: int) -> Array:
    return reduce_sum(x, axes=(0,)) if is_batched else _times(x, size)


psum_scatter: LinearCollective = LinearCollective(
    "psum_scatter",
    lambda xp, x, element, *, size: _times_impl(xp, x[element], size),
    aval=lambda x, element, *, size: Aval(x.shape[1:], _sum_dtype(x.dtype)),
    parameters=SIZE,
    fits=lambda x, element, *, size: x.shape[:1] == (size,),
    transpose=lambda ct, x, element, *, size: (all_gather(ct, element, size=size), ZERO),
    batch=_batch(_scatter_across, lambda x, element, *, size: psum_scatter(move_axis(x, 1, 0), element, size=size)),
    cost=costs.per_input(1),
    mask="covered",
    covers=True,
)
"""In element i of the batch the sum over all elements of their x[i]."""


def _extremum(name: str, reduce: Any) -> Primitive:
    """The largest or smallest value in the batch; ties share the tangent evenly."""

    def across(x: Array, is_batched: bool, size: int) -> Array:
        return _everywhere(reduce(x, axes=(0,)) if is_batched else x, size)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, size: int) -> tuple[Array, Any]:
        (x, element), (dx, _) = primals, tangents
        out = primitive(x, element, size=size)
        hits = convert(logical_or(equal(x, out), isnan(x)), dtype=dtype_of(x))
        number = psum(hits, element, size=size)
        return out, psum(nan_safe_multiply(dx, divide(hits, number)), element, size=size)

    primitive: Primitive = general(
        name,
        lambda xp, x, element, *, size: x,
        aval=lambda x, element, *, size: Aval(x.shape, x.dtype),
        parameters=SIZE,
        batch=_batch(across, lambda x, element, *, size: primitive(x, element, size=size)),
        jvp=jvp,
        cost=0,
        view=True,
    )
    return primitive


pmax = _extremum("pmax", reduce_max)
pmin = _extremum("pmin", reduce_min)
