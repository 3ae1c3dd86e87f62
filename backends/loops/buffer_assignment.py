"""Buffer assignment: scratch buffers get offsets in one arena, and those that never live together share memory."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable

from func.backends.loops.kernels import Buffer, Item
from func.backends.loops.traversal import buffers_of

ALIGNMENT = 64


class _Arena:
    """Memory in which places are taken and given back: the gaps between what is taken, in order, and all that follows
    the last one."""

    def __init__(self) -> None:
        self.size = 0
        """The bytes that have been in use at all."""
        self._end = 0
        """The end of what is in use now."""
        self._gaps: list[tuple[int, int]] = []
        """The free parts before the end, as (start, stop). No two of them touch."""

    def take(self, size: int) -> int:
        """The first place for so many bytes."""
        for number, (start, stop) in enumerate(self._gaps):
            if stop - start >= size:
                if stop - start == size:
                    del self._gaps[number]
                else:
                    self._gaps[number] = start + size, stop
                return start
        start = self._end
        self._end += size
        self.size = max(self.size, self._end)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free a place that was taken."""
        stop = start + size
        number = bisect.bisect(self._gaps, (start, stop))
        if number < len(self._gaps) and self._gaps[number][0] == stop:
            stop = self._gaps.pop(number)[1]
        if number and self._gaps[number - 1][1] == start:
            number -= 1
            start = self._gaps.pop(number)[0]
        if stop == self._end:
            self._end = start
        else:
            self._gaps.insert(number, (start, stop))


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
    arena = _Arena()
    live: list[tuple[int, int, int]] = []
    """A heap of (last item, offset, bytes)."""
    for buffer, (first, last) in lifetimes.items():  # in order of their first items
        while live and live[0][0] < first:
            arena.give_back(*heapq.heappop(live)[1:])
        size = -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT
        buffer.place = arena.take(size)
        heapq.heappush(live, (last, buffer.place, size))
    return arena.size
