"""In-place results: a large result of a nest takes the memory of an operand that nothing reads after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from func.backends.loops.kernels import Buffer, Item, Load, LoopNest, Shape, Store, StridedRef
from func.backends.loops.traversal import BufferUse, buffers_of, replace_buffers, uses_in

LEAST = 1 << 20
"""Bytes of such a result: smaller ones stay in caches anyway, and separate memory makes shorter code."""
Lifetimes: TypeAlias = dict[Buffer, tuple[int, int]]
"""The first and the last item that touches a buffer."""


def write_in_place(items: Sequence[Item]) -> None:
    """Give results of nests the memory of operands that die there, if reads and writes are at one index."""
    lifetimes = _lifetimes(items)
    for number, nest in enumerate(items):
        if not isinstance(nest, LoopNest):
            continue
        uses: dict[Buffer, list[BufferUse]] = {}
        for buffer, use in uses_in(nest, number):
            uses.setdefault(buffer, []).append(use)
        for result, operand in _pairs(nest, uses, number, lifetimes):
            if result in lifetimes and operand in lifetimes:
                lifetimes[operand] = lifetimes[operand][0], lifetimes.pop(result)[1]
                for item in items[number:]:
                    replace_buffers(item, {result: operand})


def _lifetimes(items: Sequence[Item]) -> Lifetimes:
    """The large scratch buffers with uses as a whole only."""
    lifetimes: Lifetimes = {}
    sliced: set[Buffer] = set()
    for number, item in enumerate(items):
        for buffer in buffers_of(item):
            if buffer.base is not None:
                sliced.add(buffer.storage)
            elif buffer.kind == "arena" and buffer.bytes >= LEAST:
                lifetimes[buffer] = lifetimes.get(buffer, (number, number))[0], number
    return {buffer: lifetime for buffer, lifetime in lifetimes.items() if buffer not in sliced}


def _pairs(
    nest: LoopNest, uses: dict[Buffer, list[BufferUse]], number: int, lifetimes: Lifetimes
) -> Iterator[tuple[Buffer, Buffer]]:
    """(result, operand) of a nest if the result can have the operand's memory."""
    filled = {buffer for buffer, _ in nest.fills}
    for result, writes in uses.items():
        if result in filled or result not in lifetimes or lifetimes[result][0] != number or len(writes) > 1:
            continue
        (write,) = writes
        store = write.instruction
        if not isinstance(store, Store) or not _is_bijective(nest.domain, store.ref):
            continue
        for operand, reads in uses.items():
            fits = operand is not result and operand.size == result.size and operand.dtype == result.dtype
            dies = operand in lifetimes and lifetimes[operand][1] == number and operand not in filled
            if fits and dies and all([_is_before(read, write, store.ref) for read in reads]):
                yield result, operand
                break


def _is_before(read: BufferUse, write: BufferUse, written: StridedRef) -> bool:
    """Whether the code reads an element at the index of its write, and before that."""
    load = read.instruction
    if not isinstance(load, Load) or (read.stage, read.place) > (write.stage, write.place):
        return False
    return load.ref.offset == written.offset and load.ref.strides == written.strides


def _is_bijective(domain: Shape, ref: StridedRef) -> bool:
    """Whether the loops over a domain visit every element of a buffer exactly once."""
    size = 1
    for stride, length in sorted(zip(ref.strides, domain, strict=False)):
        if stride != size:
            return False
        size *= length
    return len(ref.strides) == len(domain) and ref.offset == 0 and size == ref.buffer.size
