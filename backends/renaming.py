"""Memory that goes by another buffer's name from now on."""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.kernels import (
    Accumulate,
    Branch,
    Buffer,
    Check,
    Dot,
    Fill,
    Halt,
    Item,
    Library,
    Load,
    LoadAt,
    Loop,
    Move,
    Nest,
    Spot,
    Store,
    StoreAt,
    While,
)

__all__ = ["rename"]


def rename(item: Item, shared: dict[Buffer, Buffer]) -> None:
    """Let everything that names a buffer name the one with which it shares memory."""
    if isinstance(item, Nest):
        item.starts = [(shared.get(buffer, buffer), value) for buffer, value in item.starts]
        for stage in item.stages:
            for one in stage.code:
                if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate)):
                    _move(one.spot, shared)
    elif isinstance(item, Fill):
        item.buffer = shared.get(item.buffer, item.buffer)
    elif isinstance(item, Move):
        item.target, item.source = (shared.get(one, one) for one in (item.target, item.source))
    else:
        for spot in _spots(item):
            _move(spot, shared)
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


def _spots(item: Item) -> Sequence[Spot]:
    """The places that an item names itself."""
    if isinstance(item, Dot):
        return item.out, item.x, item.y
    if isinstance(item, Library):
        return *item.outs, *item.args
    if isinstance(item, Branch):
        return (item.index,)
    flag = item.flag if isinstance(item, (Check, While, Halt)) else None
    return () if flag is None else (flag,)


def _move(spot: Spot, shared: dict[Buffer, Buffer]) -> None:
    spot.buffer = shared.get(spot.buffer, spot.buffer)
