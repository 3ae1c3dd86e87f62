"""Primitives that reach across the elements of one vmap's batch: sums, gathering, scattering, exchange, maxima.

Their second argument is the number of the element in the batch. It is batched by that vmap and by no other, which is
how the batch rule recognises the vmap, also inside traced and derived programs. A value that is not batched counts as
if every element had a copy of it. `rank_collectives` has the same over processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import Kind, integer, is_integer
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import SHARES, multiply, scale
from func.interpreters.primitives.elementwise.table import equal, isnan, logical_or
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_max, reduce_min, share_of_ties
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    convert,
    full_like,
    move_axis,
    reduce_sum,
    reshape,
    where,
)

Pairs: TypeAlias = tuple[tuple[int, int], ...]

SIZE = {"size": integer(0)}
ROOT = Kind("the number of an element", lambda value, avals, params: is_integer(value) and 0 <= value < params["size"])


class LinearCollective(Primitive):
    """A collective that is linear in its first argument."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = core.bind(self, primals, params)
        dx = tangents[0]
        return out, ZERO if dx is ZERO or not core.is_inexact(core.dtype_of(out)) else core.bind(
            self, (dx, primals[1]), params
        )

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        return core.bind(self, values, params), self, (None, values[1])


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
    return broadcast(x, shape=(size, *core.shape_of(x)))


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of NumPy's sums of such numbers."""
    return np.add.reduce(np.zeros(1, dtype)).dtype  # type: ignore[no-any-return]


def _times(x: Array, size: int) -> Array:
    """The sum of `size` copies."""
    dtype = sum_dtype(core.dtype_of(x))
    return multiply(convert(x, dtype=dtype), dtype.type(size))


def _times_impl(xp: Any, x: Array, size: int) -> Array:
    dtype = sum_dtype(core.dtype_of(x))
    return xp.multiply(xp.asarray(x).astype(dtype), dtype.type(size))


def _psum_across(x: Array, is_batched: bool, size: int) -> Array:
    return _everywhere(reduce_sum(x, axes=(0,)) if is_batched else _times(x, size), size)


psum: LinearCollective = LinearCollective(
    "psum",
    lambda xp, x, element, *, size: _times_impl(xp, x, size),
    aval=lambda x, element, *, size: Aval(x.shape, sum_dtype(x.dtype)),
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
    lambda xp, x, element, *, size: xp.broadcast_to(x, (size, *core.shape_of(x))),
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
    aval=lambda x, element, *, size: Aval(x.shape[1:], sum_dtype(x.dtype)),
    parameters=SIZE,
    fits=lambda x, element, *, size: x.shape[:1] == (size,),
    transpose=lambda ct, x, element, *, size: (all_gather(ct, element, size=size), ZERO),
    batch=_batch(_scatter_across, lambda x, element, *, size: psum_scatter(move_axis(x, 1, 0), element, size=size)),
    cost=costs.per_input(1),
    mask="covered",
    covers=True,
)
"""In element i of the batch the sum over all elements of their x[i]."""


def _all_to_all_across(x: Array, is_batched: bool, size: int) -> Array:
    if is_batched:
        return move_axis(x, 1, 0)
    own = core.shape_of(x)[1:]
    return broadcast(reshape(x, shape=(size, 1, *own)), shape=(size, size, *own))


all_to_all: LinearCollective = LinearCollective(
    "all_to_all",
    lambda xp, x, element, *, size: xp.broadcast_to(x[element], core.shape_of(x)),
    aval=lambda x, element, *, size: Aval(x.shape, x.dtype),
    parameters=SIZE,
    fits=lambda x, element, *, size: x.shape[:1] == (size,),
    transpose=lambda ct, x, element, *, size: (all_to_all(ct, element, size=size), ZERO),
    batch=_batch(
        _all_to_all_across,
        lambda x, element, *, size: move_axis(all_to_all(move_axis(x, 1, 0), element, size=size), 1, 0),
    ),
    cost=0,
    view=True,
    mask="covered",
    covers=True,
)
"""In element i of the batch, as row j, the row x[i] of element j."""


def inverse_pairs(pairs: Pairs) -> Pairs:
    """The way back: (destination, source) for each (source, destination)."""
    return tuple([(destination, source) for source, destination in pairs])


def are_pairs(value: Any, size: int) -> bool:
    """Whether this is a tuple of (source, destination), each number less than `size` and at most once in its place."""
    return type(value) is tuple and all(
        [
            *[type(pair) is tuple and len(pair) == 2 for pair in value],
            *[is_integer(number) and 0 <= number < size for pair in value for number in pair],
            *[len({pair[place] for pair in value}) == len(value) for place in (0, 1)],
        ]
    )


def _chosen(x: Array, elements: Sequence[int], size: int) -> Array:
    """The rows of a batch that belong to these elements, zeros in the others."""
    rows = np.zeros(size, bool)
    rows[list(elements)] = True
    if rows.all():
        return x
    return where(rows.reshape(size, *[1] * (len(core.shape_of(x)) - 1)), x, full_like(x, 0, ()))


def _ppermute_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, element = args
    if not batched[1]:
        return ppermute(x, element, **params)
    if not batched[0]:
        x = _everywhere(x, size)
    sources = np.arange(size)
    for source, destination in params["pairs"]:
        sources[destination] = source
    return _chosen(gather(x, sources, axis=0), [destination for _, destination in params["pairs"]], size)


def _only_at(xp: Any, x: Array, element: Any, elements: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A value of some elements, zeros in the others."""
    return xp.where(xp.isin(element, xp.asarray(list(elements))), x, dtype.type(0))


PAIRS = Kind(
    "pairs of a source and a destination, each once",
    lambda value, avals, params: are_pairs(value, params["size"]),
)

ppermute: LinearCollective = LinearCollective(
    "ppermute",
    lambda xp, x, element, *, size, pairs: _only_at(
        xp, x, element, [destination for _, destination in pairs], core.dtype_of(x)
    ),
    aval=lambda x, element, *, size, pairs: Aval(x.shape, x.dtype),
    parameters={**SIZE, "pairs": PAIRS},
    transpose=lambda ct, x, element, *, size, pairs: (
        ppermute(ct, element, size=size, pairs=inverse_pairs(pairs)),
        ZERO,
    ),
    batch=_ppermute_batch,
    cost=0,
    mask="padded",
)
"""For each pair (source, destination) the value of the one in the other; zeros in elements without a source."""


def _broadcast_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, element = args
    if not batched[1]:
        return broadcast_from(x, element, **params)
    return _everywhere(gather(x, np.int64(params["root"]), axis=0) if batched[0] else x, size)


broadcast_from: LinearCollective = LinearCollective(
    "broadcast_from",
    lambda xp, x, element, *, size, root: x,
    aval=lambda x, element, *, size, root: Aval(x.shape, x.dtype),
    parameters={**SIZE, "root": ROOT},
    transpose=lambda ct, x, element, *, size, root: (reduce_to(ct, element, size=size, root=root), ZERO),
    batch=_broadcast_batch,
    cost=0,
    view=True,
    mask="covered",
)
"""The value of the element `root`, in every element."""


def _reduce_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, element = args
    if not batched[1]:
        return reduce_to(x, element, **params)
    return _chosen(_psum_across(x, batched[0], size), [params["root"]], size)


reduce_to: LinearCollective = LinearCollective(
    "reduce_to",
    lambda xp, x, element, *, size, root: _only_at(
        xp, _times_impl(xp, x, size), element, [root], sum_dtype(core.dtype_of(x))
    ),
    aval=lambda x, element, *, size, root: Aval(x.shape, sum_dtype(x.dtype)),
    parameters={**SIZE, "root": ROOT},
    transpose=lambda ct, x, element, *, size, root: (broadcast_from(ct, element, size=size, root=root), ZERO),
    batch=_reduce_batch,
    cost=costs.per_input(1),
    mask="padded",
    covers=True,
)
"""The sum over all elements of the batch in the element `root`, zeros in the others."""


def _extremum(name: str, reduce: Any) -> Primitive:
    """The largest or smallest value in the batch; ties share the tangent evenly."""

    def across(x: Array, is_batched: bool, size: int) -> Array:
        return _everywhere(reduce(x, axes=(0,)) if is_batched else x, size)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, size: int) -> tuple[Array, Any]:
        (x, element), (dx, _) = primals, tangents
        out = primitive(x, element, size=size)
        hits = convert(logical_or(equal(x, out), isnan(x)), dtype=core.dtype_of(x))
        weights = share_of_ties(hits, psum(hits, element, size=size), x)
        return out, psum(scale(weights, dx, False, SHARES), element, size=size)

    primitive: Primitive = core.general(
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
