"""Buffer assignment: scratch buffers get offsets in one arena, and those that never live together share memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from func.backends.loops.kernels import Buffer, Item
from func.backends.loops.traversal import buffers_of

ALIGNMENT = 64


class _Assigned(NamedTuple):
    """Bytes of the arena that are in use until an item has run."""

    start: int
    stop: int
    last_item: int


def assign_buffers(items: list[Item]) -> int:
    """Give every arena buffer its offset; the size of the arena in bytes. A buffer lives from the first item that
    touches it to the last; what is touched inside a loop lives as long as the loop."""
    return assign_by_use([buffers_of(item) for item in items])


def assign_by_use(used: Iterable[Iterable[Buffer]]) -> int:
    """`assign_buffers` for the buffers that each of several steps touches."""
    lifetimes: dict[Buffer, tuple[int, int]] = {}
    for number, buffers in enumerate(used):
        for buffer in buffers:
            storage = buffer.storage
            if storage.kind == "arena":
                first, _ = lifetimes.get(storage, (number, number))
                lifetimes[storage] = first, number
    live: list[_Assigned] = []
    total = 0
    for buffer, (first, last) in lifetimes.items():  # in order of their first items
        live = [assigned for assigned in live if assigned.last_item >= first]
        size = -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for assigned in sorted(live):
            if assigned.start - offset >= size:
                break
            offset = max(offset, assigned.stop)
        buffer.place = offset
        live.append(_Assigned(offset, offset + size, last))
        total = max(total, offset + size)
    return total
