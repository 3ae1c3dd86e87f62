"""Memory traffic of the items of a native program, each element counted once, and the operations of products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from func.backends.loops import kernels


class Traffic(NamedTuple):
    """The necessary bytes of reads and writes, and operations of products."""

    read: int
    written: int
    operations: int = 0

    def times(self, count: int) -> Traffic:
        """The traffic of `count` runs."""
        return Traffic(self.read * count, self.written * count, self.operations * count)

    def plus(self, other: Traffic) -> Traffic:
        """The sum of both."""
        return Traffic(self.read + other.read, self.written + other.written, self.operations + other.operations)


NOTHING = Traffic(0, 0)


def traffic(item: kernels.Item) -> Traffic:
    """The traffic of one run of an item; nothing for control flow, whose traffic depends on how often its items run."""
    if isinstance(item, kernels.LoopNest):
        return _of_nest(item)
    if isinstance(item, kernels.Dot):
        rows, summed, columns = item.sizes
        read, written = TouchedElements(), TouchedElements()
        read.add(item.x, (*item.batch, rows, summed))
        read.add(item.y, (*item.batch, summed, columns))
        written.add(item.out, (*item.batch, rows, columns))
        return Traffic(read.bytes, written.bytes, 2 * math.prod((*item.batch, *item.sizes)))
    if isinstance(item, kernels.Fill):
        return Traffic(0, item.buffer.bytes)
    if isinstance(item, kernels.Copy):
        return Traffic(item.target.bytes, item.target.bytes)
    if isinstance(item, kernels.FlagCheck):
        return Traffic(item.flag.buffer.dtype.itemsize, 0)
    if isinstance(item, kernels.LibraryCall):
        return Traffic(_whole([ref.buffer for ref in item.args]), _whole([ref.buffer for ref in item.outs]))
    return NOTHING


def _whole(buffers: Sequence[kernels.Buffer]) -> int:
    return sum([buffer.bytes for buffer in dict.fromkeys(buffers)])


class TouchedElements:
    """Elements of buffers, each counted once."""

    def __init__(self) -> None:
        self._ranges: dict[kernels.Buffer, dict[tuple[int, ...], dict[int, tuple[int, int]]]] = {}

    def __contains__(self, buffer: kernels.Buffer) -> bool:
        return buffer in self._ranges

    def add(self, ref: kernels.StridedRef, lengths: kernels.Shape, most: int | None = None) -> None:
        """The elements of a reference over an index space; `most` is their number where they are at dynamic indices."""
        pairs = [(stride, n) for stride, n in zip(ref.strides, lengths, strict=True) if stride and n != 1]
        count = math.prod([n for _, n in pairs]) if 0 not in lengths else 0
        low = ref.offset + sum([stride * (n - 1) for stride, n in pairs if stride < 0])
        span = 1 + sum([abs(stride) * (n - 1) for stride, n in pairs])
        if most is not None:
            count, low, span = most, 0, ref.buffer.size
        strides = tuple([stride for stride, _ in pairs])
        ranges = self._ranges.setdefault(ref.buffer, {}).setdefault(strides, {})
        ranges[low] = (max(count, ranges.get(low, (0, 0))[0]), span)

    @property
    def bytes(self) -> int:
        """The bytes of all elements; overlapping references with the same strides count once."""
        return sum([self._count(buffer) * buffer.dtype.itemsize for buffer in self._ranges])

    def _count(self, buffer: kernels.Buffer) -> int:
        total = 0
        for ranges in self._ranges[buffer].values():
            span = max([low + span for low, (_, span) in ranges.items()]) - min(ranges)
            total += min(sum([count for count, _ in ranges.values()]), span)
        return min(total, buffer.size) if buffer.size else total


def _of_nest(nest: kernels.LoopNest) -> Traffic:
    read, written = TouchedElements(), TouchedElements()
    for buffer, _ in nest.fills:
        written.add(kernels.StridedRef(buffer, 0, (1,)), (buffer.size,))
    for instruction, lengths in _accesses(nest):
        most = math.prod(lengths) if isinstance(instruction, (kernels.LoadAt, kernels.StoreAt)) else None
        if isinstance(instruction, (kernels.Load, kernels.LoadAt)):
            if instruction.ref.buffer not in written:  # else it is in the cache
                read.add(instruction.ref, lengths, most)
        elif isinstance(instruction, (kernels.Store, kernels.StoreAt, kernels.Accumulate)):
            is_updated = isinstance(instruction, kernels.Accumulate) or (
                isinstance(instruction, kernels.StoreAt) and instruction.adds
            )
            if is_updated and instruction.ref.buffer not in written:
                read.add(instruction.ref, lengths, most)
            written.add(instruction.ref, lengths, most)
    return Traffic(read.bytes, written.bytes)


def _accesses(nest: kernels.LoopNest) -> Iterator[tuple[kernels.Instruction, kernels.Shape]]:
    """The instructions of a nest, each with the index space that it runs over."""
    for stage in nest.stages:
        lengths = nest.domain if stage.inner else nest.domain[: nest.outer or 0]
        for instruction in stage.code:
            yield instruction, lengths
