"""Primitives that reach across processes: the collectives over the ranks of a communicator.

Each has the rules of the primitive in `collectives` that reaches across the batch of a vmap; a process is one element.
The parameter `ranks` communicates, and `label` names the value for messages. The second argument is the number of this
process. Nothing depends on it, but in a traced program it is a traced value. So a collective of a constant is an
equation too, and not a message during the trace.

All processes issue the same collectives in the same order. So with structural zeros these primitives always communicate
equally often: masks go the way of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import is_device_array
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Tracer, bind, dtype_of, general, shape_of
from func.interpreters.core.parameters import TEXT, Kind, is_integer
from func.interpreters.primitives.elementwise.builder import SHARES, scale
from func.interpreters.primitives.elementwise.table import equal, isnan, logical_or, not_equal
from func.interpreters.primitives.structural.collectives import LinearCollective, are_pairs, inverse_pairs, sum_dtype
from func.interpreters.primitives.structural.reductions import share_of_ties
from func.interpreters.primitives.structural.shapes import broadcast, convert, full_like, move_axis
from func.interpreters.processes import RANKS, Ranks

PARAMETERS = {"ranks": RANKS, "label": TEXT}
ROOT = Kind(
    "the number of a rank", lambda value, avals, params: is_integer(value) and 0 <= value < params["ranks"].size
)
PAIRS = Kind(
    "pairs of a source and a destination, each once",
    lambda value, avals, params: are_pairs(value, params["ranks"].size),
)


class RankCollective(LinearCollective):
    """A collective over processes that is linear in its first argument."""

    __slots__ = ()

    def apply_masked(self, structural: Any, args: tuple[Array, ...], params: Params) -> Array:
        """Value and mask are sent, also where all elements are reached: on another rank they need not be."""
        (x, index), (mask, _) = structural.unpacked(args)
        out = bind(self, (x, index), params)
        dtype = np.real(np.zeros((), dtype_of(x))).dtype
        numbers = full_like(x, 1, None, dtype) if mask is None else convert(mask, dtype=dtype)
        if shape_of(numbers) != shape_of(x):
            numbers = broadcast(numbers, shape=shape_of(x))
        return Tracer(structural, out, not_equal(bind(self, (numbers, index), params), 0))


def _sent(name: str, xp: Any, x: Array, send: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Array:
    """The result for an array of any backend: MPI takes and returns arrays of the host."""
    if is_device_array(x):
        on_host = xp.on_host(send, f"func.collectives.{name.removeprefix('rank_')}")
        on_host.warn("where MPI sends from")
        return on_host.computed((x,), {})
    return send(np.asarray(x))[()]


def _collective(
    name: str,
    run: Callable[..., Any],
    *,
    aval: Callable[[Aval, Ranks], Aval],
    transpose: Callable[..., Array],
    batch_axes: tuple[int, int] = (0, 0),
    has_rows: bool = False,
    **kinds: Kind,
) -> RankCollective:
    """A linear collective that `run(ranks, x, label=..., ...)` computes.

    `batch_axes` are the places of another vmap's batch axis in the operand and in the output, behind an axis of the
    ranks. The operand has such an axis if `has_rows`.
    """
    source, destination = batch_axes

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        x, index = args
        return move_axis(primitive(move_axis(x, 0, source), index, **params), destination, 0)

    primitive = RankCollective(
        name,
        lambda xp, x, index, *, ranks, **params: _sent(name, xp, x, lambda own: run(ranks, own, **params)),
        aval=lambda x, index, *, ranks, **params: aval(x, ranks),
        batch=batch,
        transpose=lambda ct, x, index, **params: (transpose(ct, index, **params), ZERO),
        parameters={**PARAMETERS, **kinds},
        fits=(lambda x, index, *, ranks, **params: x.shape[:1] == (ranks.size,)) if has_rows else None,
        cost=0,
        calls_python=True,
        communicates=True,
    )
    return primitive


def _same(x: Aval, ranks: Ranks) -> Aval:
    return Aval(x.shape, x.dtype)


def _summed(x: Aval, ranks: Ranks) -> Aval:
    return Aval(x.shape, sum_dtype(x.dtype))


def _summands(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array in the dtype of its sums."""
    return x.astype(sum_dtype(x.dtype), copy=False)


rank_psum: RankCollective = _collective(
    "rank_psum",
    lambda ranks, x, *, label: ranks.psum(_summands(x), label),
    aval=_summed,
    transpose=lambda ct, index, **params: rank_psum(ct, index, **params),
)
"""The sum over all ranks, on every rank."""

rank_all_gather: RankCollective = _collective(
    "rank_all_gather",
    lambda ranks, x, *, label: ranks.all_gather(x, label),
    aval=lambda x, ranks: Aval((ranks.size, *x.shape), x.dtype),
    transpose=lambda ct, index, **params: rank_psum_scatter(ct, index, **params),
    batch_axes=(0, 1),
)
"""The values of all ranks, stacked along a new leading axis, on every rank."""

rank_psum_scatter: RankCollective = _collective(
    "rank_psum_scatter",
    lambda ranks, x, *, label: ranks.psum_scatter(_summands(x), label),
    aval=lambda x, ranks: Aval(x.shape[1:], sum_dtype(x.dtype)),
    transpose=lambda ct, index, **params: rank_all_gather(ct, index, **params),
    batch_axes=(1, 0),
    has_rows=True,
)
"""On rank i the sum over all ranks of their x[i]."""

rank_all_to_all: RankCollective = _collective(
    "rank_all_to_all",
    lambda ranks, x, *, label: ranks.all_to_all(x, label),
    aval=_same,
    transpose=lambda ct, index, **params: rank_all_to_all(ct, index, **params),
    batch_axes=(1, 1),
    has_rows=True,
)
"""On rank i, as row j, the row x[i] of rank j."""

rank_ppermute: RankCollective = _collective(
    "rank_ppermute",
    lambda ranks, x, *, label, pairs: ranks.ppermute(x, pairs, label),
    aval=_same,
    transpose=lambda ct, index, *, pairs, **params: rank_ppermute(ct, index, pairs=inverse_pairs(pairs), **params),
    pairs=PAIRS,
)
"""For each pair (source, destination) the value of the one on the other; zeros on ranks without a source."""

rank_broadcast: RankCollective = _collective(
    "rank_broadcast",
    lambda ranks, x, *, label, root: ranks.broadcast(x, root, label),
    aval=_same,
    transpose=lambda ct, index, **params: rank_reduce(ct, index, **params),
    root=ROOT,
)
"""The value of the rank `root`, on every rank."""

rank_reduce: RankCollective = _collective(
    "rank_reduce",
    lambda ranks, x, *, label, root: ranks.reduce(_summands(x), root, label),
    aval=_summed,
    transpose=lambda ct, index, **params: rank_broadcast(ct, index, **params),
    root=ROOT,
)
"""The sum over all ranks on the rank `root`, zeros on the others."""


def _extremum(name: str, run: Callable[..., Any]) -> Primitive:
    """The largest or smallest value on any rank; ties share the tangent evenly."""

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(*args, **params)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple[Array, Any]:
        (x, index), (dx, _) = primals, tangents
        out = primitive(x, index, **params)
        hits = convert(logical_or(equal(x, out), isnan(x)), dtype=dtype_of(x))
        weights = share_of_ties(hits, rank_psum(hits, index, **params), x)
        return out, rank_psum(scale(weights, dx, False, SHARES), index, **params)

    primitive: Primitive = general(
        name,
        lambda xp, x, index, *, ranks, label: _sent(name, xp, x, lambda own: run(ranks, own, label)),
        aval=lambda x, index, *, ranks, label: _same(x, ranks),
        parameters=PARAMETERS,
        batch=batch,
        jvp=jvp,
        cost=0,
        calls_python=True,
        communicates=True,
    )
    return primitive


rank_pmax = _extremum("rank_pmax", lambda ranks, x, label: ranks.pmax(x, label))
rank_pmin = _extremum("rank_pmin", lambda ranks, x, label: ranks.pmin(x, label))
