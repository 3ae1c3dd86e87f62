"""Walks over items and instructions: the operands that they read, the memory that they touch, and its replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from func.backends.loops.kernels import (
    ACCESSES,
    WRITES,
    Access,
    Accumulate,
    Apply,
    Branch,
    Buffer,
    ConditionalLoop,
    Copy,
    CountedLoop,
    Dot,
    EarlyExit,
    Fill,
    FlagCheck,
    Instruction,
    Item,
    LibraryCall,
    LoadAt,
    LoopNest,
    Operand,
    Reduce,
    Running,
    Store,
    StoreAt,
    StridedRef,
)


def operands_of(instruction: Instruction) -> Sequence[Operand]:
    """The operands that an instruction reads."""
    if isinstance(instruction, Apply):
        return instruction.args
    if isinstance(instruction, (Store, Reduce, Running, Accumulate)):
        return (instruction.value,)
    if isinstance(instruction, LoadAt):
        return [index.value for index in instruction.indices]
    if isinstance(instruction, StoreAt):
        return [*[index.value for index in instruction.indices], instruction.value]
    return ()


def refs_of(code: Iterable[Instruction]) -> list[StridedRef]:
    """The references to memory in code."""
    return [instruction.ref for instruction in code if isinstance(instruction, ACCESSES)]


def bodies_of(item: Item) -> Sequence[list[Item]]:
    """The lists of items inside an item of control flow."""
    if isinstance(item, CountedLoop):
        return (item.ahead, item.body) if item.ahead else (item.body,)
    if isinstance(item, ConditionalLoop):
        return item.test, item.body
    return item.branches if isinstance(item, Branch) else ()


def own_buffers(item: Item) -> Iterator[Buffer]:
    """The memory that an item touches, without that of the items inside it."""
    if isinstance(item, LoopNest):
        yield from [buffer for buffer, _ in item.fills]
        for chunking in item.chunkings:
            yield from [buffer for _, buffer in chunking.accumulators]
            yield from [buffer for _, buffer in chunking.private if buffer is not None]
        for stage in item.stages:
            yield from [ref.buffer for ref in refs_of(stage.code)]
    elif isinstance(item, Fill):
        yield item.buffer
    elif isinstance(item, Copy):
        yield from (item.target, item.source)
    elif isinstance(item, CountedLoop):
        yield from item.slices
    else:
        yield from [ref.buffer for ref in _own_refs(item)]


def _own_refs(item: Item) -> Sequence[StridedRef]:
    """The references that an item without loops has itself."""
    if isinstance(item, Dot):
        return item.out, item.x, item.y
    if isinstance(item, LibraryCall):
        return *item.outs, *item.args
    if isinstance(item, Branch):
        return (item.index,)
    flag = item.flag if isinstance(item, (FlagCheck, ConditionalLoop, EarlyExit)) else None
    return () if flag is None else (flag,)


def buffers_of(item: Item) -> Iterator[Buffer]:
    """All memory that an item touches."""
    yield from own_buffers(item)
    for body in bodies_of(item):
        for inner in body:
            yield from buffers_of(inner)


def written_by(nest: LoopNest) -> Iterator[Buffer]:
    """The memory that a nest writes to."""
    yield from [buffer for buffer, _ in nest.fills]
    yield from [instruction.ref.buffer for instruction in nest.code if isinstance(instruction, WRITES)]


class BufferUse(NamedTuple):
    """Where memory is used: the number of the item; in a nest, the stage, the place in its code and the instruction.
    The fill of a nest has no instruction."""

    item: int
    stage: int = -1
    place: int = -1
    instruction: Access | None = None


def uses_in(nest: LoopNest, number: int) -> Iterator[tuple[Buffer, BufferUse]]:
    """The accesses to memory in a nest, the item with this number."""
    for at, stage in enumerate(nest.stages):
        for place, instruction in enumerate(stage.code):
            if isinstance(instruction, ACCESSES):
                yield instruction.ref.buffer, BufferUse(number, at, place, instruction)


def replace_buffers(item: Item, replaced: Mapping[Buffer, Buffer]) -> None:
    """Let an item and those inside it use other buffers in place of some."""
    if isinstance(item, LoopNest):
        item.fills = [(replaced.get(buffer, buffer), value) for buffer, value in item.fills]
        refs: Sequence[StridedRef] = refs_of(item.code)
    elif isinstance(item, Fill):
        item.buffer, refs = replaced.get(item.buffer, item.buffer), ()
    elif isinstance(item, Copy):
        item.target, item.source = [replaced.get(buffer, buffer) for buffer in (item.target, item.source)]
        refs = ()
    else:
        refs = _own_refs(item)
    for ref in refs:
        ref.buffer = replaced.get(ref.buffer, ref.buffer)
    for buffer in item.slices if isinstance(item, CountedLoop) else ():
        buffer.base = None if buffer.base is None else replaced.get(buffer.base, buffer.base)
    for body in bodies_of(item):
        for inner in body:
            replace_buffers(inner, replaced)
