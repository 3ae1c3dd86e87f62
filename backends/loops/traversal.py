"""Walks over items and instructions: the operands that they read, the memory that they touch, and its replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from func.backends.loops import kernels
from func.backends.loops.kernels import ACCESSES, WRITES, Access, Accumulate, Apply, Branch, Buffer, ConditionalLoop


def operands_of(instruction: kernels.Instruction) -> Sequence[kernels.Operand]:
    """The operands that an instruction reads."""
    if isinstance(instruction, Apply):
        return instruction.args
    if isinstance(instruction, (kernels.Store, kernels.Reduce, kernels.Running, Accumulate)):
        return (instruction.value,)
    if isinstance(instruction, kernels.LoadAt):
        return [index.value for index in instruction.indices]
    if isinstance(instruction, kernels.StoreAt):
        return [*[index.value for index in instruction.indices], instruction.value]
    return ()


def refs_of(code: Iterable[kernels.Instruction]) -> list[kernels.StridedRef]:
    """The references to memory in code."""
    return [instruction.ref for instruction in code if isinstance(instruction, ACCESSES)]


def bodies_of(item: kernels.Item) -> Sequence[list[kernels.Item]]:
    """The lists of items inside an item of control flow."""
    if isinstance(item, kernels.CountedLoop):
        return (item.ahead, item.body) if item.ahead else (item.body,)
    if isinstance(item, ConditionalLoop):
        return item.test, item.body
    return item.branches if isinstance(item, Branch) else ()


def all_items(items: Iterable[kernels.Item]) -> Iterator[kernels.Item]:
    """The items and those inside them."""
    for item in items:
        yield item
        for body in bodies_of(item):
            yield from all_items(body)


def own_buffers(item: kernels.Item) -> Iterator[Buffer]:
    """The memory that an item touches, without that of the items inside it."""
    if isinstance(item, kernels.LoopNest):
        yield from [buffer for buffer, _ in item.fills]
        for chunking in item.chunkings:
            yield from [buffer for _, buffer in chunking.accumulators]
            yield from [buffer for _, buffer in chunking.private if buffer is not None]
        for stage in item.stages:
            yield from [ref.buffer for ref in refs_of(stage.code)]
    elif isinstance(item, kernels.Fill):
        yield item.buffer
    elif isinstance(item, kernels.Copy):
        yield from (item.target, item.source)
    elif isinstance(item, kernels.CountedLoop):
        yield from item.slices
    else:
        yield from [ref.buffer for ref in _own_refs(item)]


def _own_refs(item: kernels.Item) -> Sequence[kernels.StridedRef]:
    """The references that an item without loops has itself."""
    if isinstance(item, kernels.Dot):
        return item.out, item.x, item.y
    if isinstance(item, kernels.LibraryCall):
        return *item.outs, *item.args
    if isinstance(item, Branch):
        return (item.index,)
    flag = item.flag if isinstance(item, (kernels.FlagCheck, ConditionalLoop, kernels.EarlyExit)) else None
    return () if flag is None else (flag,)


def buffers_of(item: kernels.Item) -> Iterator[Buffer]:
    """All memory that an item touches."""
    yield from own_buffers(item)
    for body in bodies_of(item):
        for inner in body:
            yield from buffers_of(inner)


def written_by(nest: kernels.LoopNest) -> Iterator[Buffer]:
    """The memory that a nest writes to."""
    yield from [buffer for buffer, _ in nest.fills]
    yield from [instruction.ref.buffer for instruction in nest.code if isinstance(instruction, WRITES)]


class BufferUse(NamedTuple):
    """A use of memory: the number of the item; in a nest, the stage, the place in its code and the instruction."""

    item: int
    stage: int = -1
    place: int = -1
    instruction: Access | None = None


def uses_in(nest: kernels.LoopNest, number: int) -> Iterator[tuple[Buffer, BufferUse]]:
    """The accesses to memory in a nest, the item with this number."""
    for at, stage in enumerate(nest.stages):
        for place, instruction in enumerate(stage.code):
            if isinstance(instruction, ACCESSES):
                yield instruction.ref.buffer, BufferUse(number, at, place, instruction)


def replace_buffers(item: kernels.Item, replaced: Mapping[Buffer, Buffer]) -> None:
    """Let an item and those inside it use other buffers in place of some."""
    if isinstance(item, kernels.LoopNest):
        item.fills = [(replaced.get(buffer, buffer), value) for buffer, value in item.fills]
        refs: Sequence[kernels.StridedRef] = refs_of(item.code)
    elif isinstance(item, kernels.Fill):
        item.buffer, refs = replaced.get(item.buffer, item.buffer), ()
    elif isinstance(item, kernels.Copy):
        item.target, item.source = [replaced.get(buffer, buffer) for buffer in (item.target, item.source)]
        refs = ()
    else:
        refs = _own_refs(item)
    for ref in refs:
        ref.buffer = replaced.get(ref.buffer, ref.buffer)
    for buffer in item.slices if isinstance(item, kernels.CountedLoop) else ():
        buffer.base = None if buffer.base is None else replaced.get(buffer.base, buffer.base)
    for body in bodies_of(item):
        for inner in body:
            replace_buffers(inner, replaced)
