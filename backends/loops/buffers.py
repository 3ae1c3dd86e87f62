"""Memory that goes by another buffer's name from now on.

Scratch memory of a native program: every buffer gets a place that nothing alive shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from func.backends.loops.kernels import (
    Accumulate,
    Branch,
    Buffer,
    Check,
    Dot,
    EarlyExit,
    Fill,
    Item,
    Library,
    Load,
    LoadAt,
    Loop,
    Move,
    Nest,
    Store,
    StoreAt,
    StridedRef,
    While,
)


def rename(item: Item, shared: dict[Buffer, Buffer]) -> None:
    """Let everything that names a buffer name the one with which it shares memory."""
    if isinstance(item, Nest):
        item.starts = [(shared.get(buffer, buffer), value) for buffer, value in item.starts]
        for stage in item.stages:
            for one in stage.code:
                if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate)):
                    _move(one.ref, shared)
    elif isinstance(item, Fill):
        item.buffer = shared.get(item.buffer, item.buffer)
    elif isinstance(item, Move):
        item.target, item.source = (shared.get(one, one) for one in (item.target, item.source))
    else:
        for ref in _refs(item):
            _move(ref, shared)
        for buffer in item.slices if isinstance(item, Loop) else ():
            buffer.base = None if buffer.base is None else shared.get(buffer.base, buffer.base)
        for inner in _inside(item):
            rename(inner, shared)


def _inside(item: Item) -> list[Item]:
    """The items of a loop or branch."""
    if isinstance(item, Loop):
        return item.body
    if isinstance(item, While):
        return [*item.test, *item.body]
    return [one for branch in item.branches for one in branch] if isinstance(item, Branch) else []


def _refs(item: Item) -> Sequence[StridedRef]:
    """The places that an item names itself."""
    if isinstance(item, Dot):
        return item.out, item.x, item.y
    if isinstance(item, Library):
        return *item.outs, *item.args
    if isinstance(item, Branch):
        return (item.index,)
    flag = item.flag if isinstance(item, (Check, While, EarlyExit)) else None
    return () if flag is None else (flag,)


def _move(ref: StridedRef, shared: dict[Buffer, Buffer]) -> None:
    ref.buffer = shared.get(ref.buffer, ref.buffer)


ALIGNED = 64


def buffers_of(item: Item) -> Iterator[Buffer]:
    """All memory that an item touches."""
    if isinstance(item, Nest):
        yield from [buffer for buffer, _ in item.starts]
        for division in item.divisions:
            yield from [buffer for _, buffer in division.partial]
            yield from [buffer for _, buffer in division.owned if buffer is not None]
        for stage in item.stages:
            for one in stage.code:
                if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate)):
                    yield one.ref.buffer
    elif isinstance(item, Dot):
        yield from (item.out.buffer, item.x.buffer, item.y.buffer)
    elif isinstance(item, Fill):
        yield item.buffer
    elif isinstance(item, Move):
        yield from (item.target, item.source)
    elif isinstance(item, (Check, EarlyExit)):
        if item.flag is not None:
            yield item.flag.buffer
    elif isinstance(item, Library):
        yield from [ref.buffer for ref in (*item.outs, *item.args)]
    elif isinstance(item, Loop):
        yield from item.slices
        yield from _all(item.body)
    elif isinstance(item, While):
        yield from _all(item.test)
        yield item.flag.buffer
        yield from _all(item.body)
    else:
        yield item.index.buffer
        for branch in item.branches:
            yield from _all(branch)


def _all(items: Iterable[Item]) -> Iterator[Buffer]:
    for item in items:
        yield from buffers_of(item)


def place_buffers(items: list[Item]) -> int:
    """Give every arena buffer its offset; the bytes that all of them take. A buffer lives from the first item that
    touches it to the last; what is touched inside a loop lives as long as the loop."""
    spans: dict[int, list[int]] = {}
    known: dict[int, Buffer] = {}
    for place, item in enumerate(items):
        for buffer in buffers_of(item):
            storage = buffer.storage
            if storage.kind != "arena":
                continue
            span = spans.setdefault(id(storage), [place, place])
            span[1] = place
            known[id(storage)] = storage
    placed: list[tuple[int, int, int]] = []
    """(start, stop, last item) of memory in use."""
    total = 0
    for key in sorted(spans, key=lambda one: spans[one][0]):
        first, last = spans[key]
        placed = [one for one in placed if one[2] >= first]
        size = -(-max(known[key].bytes, 1) // ALIGNED) * ALIGNED
        at = 0
        for start, stop, _ in sorted(placed):
            if start - at >= size:
                break
            at = max(at, stop)
        known[key].place = at
        placed.append((at, at + size, last))
        total = max(total, at + size)
    return total
