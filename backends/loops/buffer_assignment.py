"""Buffer assignment: scratch buffers get offsets in one arena; buffers that never live together share memory."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from func.backends.loops.kernels import Buffer, Item
from func.backends.loops.traversal import buffers_of

ALIGNMENT = 64
WASTE, LEAST, MOST = 1 / 32, 1 << 20, 128
"""If more than this part of an arena of at least this size stays unused, the largest buffers get new places, up to this
number."""


class _Arena:
    """Memory with allocation of places: the gaps between used places, in order, and everything after the last one."""

    def __init__(self) -> None:
        self.size = 0
        """The bytes that have been in use at all."""
        self._end = 0
        """The end of the memory in use now."""
        self._gaps: list[tuple[int, int]] = []
        """The free parts before the end, as (start, stop). No two of them touch."""

    def take(self, size: int) -> int:
        """The first place for this number of bytes."""
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
        """Free a used place."""
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
    touches it to the last; one used inside a loop lives as long as the loop.
    """
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
    lives = [
        _Life(buffer, -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT, first, last)
        for buffer, (first, last) in lifetimes.items()
    ]
    arena = _Arena()
    used_at_once = most_used = 0
    live: list[tuple[int, int, int]] = []
    """A heap of (last item, offset, bytes)."""
    for life in lives:  # in order of their first items
        while live and live[0][0] < life.first:
            _, start, size = heapq.heappop(live)
            arena.give_back(start, size)
            used_at_once -= size
        life.buffer.place = arena.take(life.size)
        heapq.heappush(live, (life.last, life.buffer.place, life.size))
        used_at_once += life.size
        most_used = max(most_used, used_at_once)
    if arena.size < LEAST or arena.size - most_used <= WASTE * arena.size or len(lives) > MOST:
        return arena.size
    places, size = _largest_first(lives)
    if size < arena.size:
        for life, place in zip(lives, places, strict=True):
            life.buffer.place = place
    return min(size, arena.size)


class _Life(NamedTuple):
    """A buffer, its bytes, and the first and the last item that touches it."""

    buffer: Buffer
    size: int
    first: int
    last: int


def _largest_first(lives: Sequence[_Life]) -> tuple[list[int], int]:
    """A place for each buffer, and the size of the arena. From the largest buffer on, each gets the first place that is
    free during its life. A small buffer does not take the beginning of a gap that a large one would fill.

    Source: Pisarchyk and Lee (2020), arXiv:2001.03288, "greedy by size" for offsets.
    """
    places = [0] * len(lives)
    placed: list[int] = []
    for number in sorted(range(len(lives)), key=lambda number: -lives[number].size):
        life = lives[number]
        taken = sorted(
            [
                (places[other], places[other] + lives[other].size)
                for other in placed
                if lives[other].first <= life.last and life.first <= lives[other].last
            ]
        )
        for start, stop in taken:
            if start - places[number] >= life.size:
                break
            places[number] = max(places[number], stop)
        placed.append(number)
    return places, max([place + life.size for place, life in zip(places, lives, strict=True)])
