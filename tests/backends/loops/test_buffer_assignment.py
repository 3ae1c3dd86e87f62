"""Buffer assignment: the first place that is free, and no two buffers in one place at a time."""

from __future__ import annotations

import random

import numpy as np

from func.backends.loops.buffer_assignment import ALIGNMENT, assign_by_use
from func.backends.loops.kernels import Buffer


def aligned(buffer: Buffer) -> int:
    return -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT


def lifetimes_of(used: list[list[Buffer]]) -> dict[Buffer, tuple[int, int]]:
    lifetimes: dict[Buffer, tuple[int, int]] = {}
    for number, buffers in enumerate(used):
        for buffer in buffers:
            lifetimes[buffer] = lifetimes.get(buffer, (number, number))[0], number
    return lifetimes


def first_fit(used: list[list[Buffer]]) -> list[int]:
    """The places by comparing each buffer with all others."""
    places: list[tuple[int, int, int]] = []
    for buffer, (first, last) in lifetimes_of(used).items():
        size = aligned(buffer)
        taken = sorted([(start, stop) for start, stop, end in places if end >= first])
        offset = 0
        for start, stop in taken:
            if start - offset >= size:
                break
            offset = max(offset, stop)
        places.append((offset, offset + size, last))
    return [start for start, _, _ in places]


def test_places_are_the_first_that_are_free() -> None:
    generator = random.Random(0)
    for _ in range(300):
        sizes = [generator.choice([0, 1, 7, 8, 9, 64, 100, 1000]) for _ in range(generator.randrange(1, 40))]
        buffers = [Buffer(size, np.dtype(float)) for size in sizes]
        steps = generator.randrange(1, 60)
        used = [generator.sample(buffers, generator.randrange(min(4, len(buffers)) + 1)) for _ in range(steps)]
        expected = first_fit(used)
        total = assign_by_use(used)
        ends = [buffer.place + max(buffer.bytes, 1) for buffer in lifetimes_of(used)]
        assert [buffer.place for buffer in lifetimes_of(used)] == expected
        assert total == -(-max(ends, default=0) // ALIGNMENT) * ALIGNMENT


def test_large_arenas_have_no_more_gaps_than_by_the_first_that_are_free() -> None:
    generator = random.Random(1)
    smaller = 0
    for _ in range(300):
        sizes = [generator.choice([1, 100, 5_000, 100_000, 300_000]) for _ in range(generator.randrange(1, 25))]
        buffers = [Buffer(size, np.dtype(float)) for size in sizes]
        used = [generator.sample(buffers, generator.randrange(min(4, len(buffers)) + 1)) for _ in range(30)]
        lifetimes = lifetimes_of(used)
        by_first_fit = max(
            [place + aligned(buffer) for place, buffer in zip(first_fit(used), lifetimes, strict=True)], default=0
        )
        total = assign_by_use(used)
        smaller += total < by_first_fit
        assert total <= by_first_fit
        assert total == max([buffer.place + aligned(buffer) for buffer in lifetimes], default=0)
        for x, (first, last) in lifetimes.items():
            assert x.place % ALIGNMENT == 0
            for y, (begin, end) in lifetimes.items():
                if x is not y and first <= end and begin <= last:
                    assert x.place + aligned(x) <= y.place or y.place + aligned(y) <= x.place
    assert smaller > 20, smaller


def test_a_small_buffer_leaves_a_gap_to_a_large_one() -> None:
    first, second, third = (Buffer(1 << 20, np.dtype(float)) for _ in range(3))
    small = Buffer(8, np.dtype(float))
    total = assign_by_use([[first, second], [second, small], [second, small, third]])
    assert total == aligned(first) + aligned(second) + aligned(small)
    assert third.place == first.place


def test_many_buffers_that_live_long() -> None:
    buffers = [Buffer(1, np.dtype(float)) for _ in range(20_000)]
    assert assign_by_use([[buffer] for buffer in buffers] + [buffers]) == ALIGNMENT * len(buffers)
