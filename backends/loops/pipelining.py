"""Pipelined loops: the part of a step that does not need the carry runs one step ahead, on another thread.

The backward pass of a scan in blocks recomputes the steps of a block, and then runs their pullbacks. The former needs
only the start of the block, so the next block may be computed during the pullbacks of this one:

    thread 1:             pull back block 9   pull back block 8   ...   pull back block 0
    thread 2:   block 9   block 8             block 7             ...

The part ahead writes to two places of memory in turn. The order of computations stays, so the results are the same to
the last bit, and one thread runs both parts one after another. The data between the parts moves from the cache of one
core to that of another. This takes longer than a few elementwise operations: a cost model decides which loops are worth
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from func.backends.loops.chunking import CHUNK_WORK, chunk_stride, work
from func.backends.loops.kernels import (
    Branch,
    Buffer,
    Copy,
    CountedLoop,
    Dot,
    Fill,
    Item,
    LibraryCall,
    LoopNest,
)
from func.backends.loops.product_blocks import is_cut
from func.backends.loops.traversal import bodies_of, buffers_of, replace_buffers, written_by
from func.backends.records import Record

LEAST_WORK = CHUNK_WORK
"""Nanoseconds, about, that both parts of a step must take to be worth another thread."""
PER_PRODUCT, PER_BYTE, PER_SHARED_BYTE = 0.06, 0.02, 0.1
"""Nanoseconds of a multiplication of a product, of a byte that is copied, and of one that goes to another core."""
PLACES = 2


class PartCost(Record):
    """Approximate nanoseconds: of all loops, and of those without chunks for several threads."""

    time: float = 0.0
    alone: float = 0.0

    def __add__(self, other: PartCost) -> PartCost:
        return PartCost(self.time + other.time, self.alone + other.alone)

    def times(self, count: float) -> PartCost:
        """The cost of this number of runs."""
        return PartCost(self.time * count, self.alone * count)


def pipeline_loops(items: Iterable[Item]) -> None:
    """Let loops whose steps have a part ahead run it one step ahead if that is possible and worth it.

    Otherwise the part becomes the beginning of the body.
    """
    for item in items:
        if isinstance(item, CountedLoop) and item.ahead:
            shared = _shared(item)
            if shared is None or not _is_worth(item, shared):
                item.ahead, item.body = [], [*item.ahead, *item.body]
            else:
                _give_turns(item, shared)
        for body in bodies_of(item):
            pipeline_loops(body)


def _is_worth(loop: CountedLoop, shared: Sequence[Buffer]) -> bool:
    """Whether two threads gain more than they would from the chunks of both parts."""
    ahead, body = cost(loop.ahead), cost(loop.body)
    if loop.length < PLACES or min(ahead.time, body.time) < LEAST_WORK:
        return False
    transfer = PER_SHARED_BYTE * sum([buffer.bytes for buffer in shared])
    return max(ahead.time, body.time) + transfer < ahead.alone + body.alone


def cost(items: Sequence[Item]) -> PartCost:
    """The approximate cost of items. Loops of unknown length count as one step."""
    total = PartCost()
    for item in items:
        total += _cost(item)
    return total


def _cost(item: Item) -> PartCost:
    if isinstance(item, LoopNest):
        rows = item.domain[: item.outer or 0]
        time = sum([work(stage, item.domain if stage.inner else rows) for stage in item.stages])
        return PartCost(time, 0.0 if item.chunkings else time)
    if isinstance(item, Dot):
        time = PER_PRODUCT * math.prod(item.batch) * math.prod(item.sizes)
        return PartCost(time, 0.0 if is_cut(item) else time)
    if isinstance(item, (Fill, Copy)):
        time = PER_BYTE * (item.buffer if isinstance(item, Fill) else item.target).bytes
        return PartCost(time, time)
    inside = [cost(body) for body in bodies_of(item)]
    if isinstance(item, Branch):
        return max(inside, key=lambda branch: branch.time, default=PartCost())
    total = sum(inside, PartCost())
    return total.times(item.length) if isinstance(item, CountedLoop) else total


def _shared(loop: CountedLoop) -> list[Buffer] | None:
    """The memory that the part ahead writes and the body uses; None if the two must not run at the same time."""
    ahead, body = list(_everything(loop.ahead)), list(_everything(loop.body))
    if any([isinstance(item, LibraryCall) for item in (*ahead, *body)]):
        return None
    used = {buffer.storage for item in loop.body for buffer in buffers_of(item)}
    ends = [buffer.storage for item in ahead for buffer in _written(item)]
    shared = [buffer for buffer in dict.fromkeys(ends) if buffer in used]
    read = {buffer.storage for item in loop.ahead for buffer in buffers_of(item)}.difference(shared)
    if any([buffer.storage in read for item in body for buffer in _written(item)]):
        return None
    sliced = {view.storage for view in loop.slices}
    return None if any([buffer.kind != "arena" or buffer in sliced for buffer in ends]) else shared


def _everything(items: Iterable[Item]) -> Iterable[Item]:
    """Items and those inside them."""
    for item in items:
        yield item
        for body in bodies_of(item):
            yield from _everything(body)


def _written(item: Item) -> Iterable[Buffer]:
    """The memory that an item may write to, without the items inside it."""
    if isinstance(item, LoopNest):
        return [*written_by(item), *[pieces for chunking in item.chunkings for _, pieces in chunking.accumulators]]
    if isinstance(item, Dot):
        return [item.out.buffer]
    if isinstance(item, Fill):
        return [item.buffer]
    return [item.target] if isinstance(item, Copy) else []


def _give_turns(loop: CountedLoop, shared: Iterable[Buffer]) -> None:
    """Let every buffer that both parts use be one of two, in turn."""
    turns: dict[Buffer, Buffer] = {}
    for buffer in shared:
        step = chunk_stride(buffer)
        both = Buffer(PLACES * step, buffer.dtype)
        turns[buffer] = Buffer(buffer.size, buffer.dtype, "slice", base=both, step=step, ring=PLACES)
    for item in (*loop.ahead, *loop.body):
        replace_buffers(item, turns)
    loop.slices = [*loop.slices, *turns.values()]
