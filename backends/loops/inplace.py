"""Large results of loops that are written over an operand which nobody needs any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from func.backends.loops.buffers import buffers_of, rename
from func.backends.loops.kernels import Accumulate, Buffer, Item, Load, LoadAt, Nest, Shape, Store, StoreAt, StridedRef

LEAST = 1 << 20
"""Bytes of such a result: smaller ones stay in caches anyway, and separate memory makes shorter code."""


class Use(NamedTuple):
    """An instruction of a nest that touches memory: the numbers of its stage and in it, itself."""

    stage: int
    place: int
    one: Load | LoadAt | Store | StoreAt | Accumulate


def write_in_place(items: Sequence[Item]) -> None:
    """Give results of nests the memory of operands that die there, if every element is written where it is read."""
    spans = _spans(items)
    for place, nest in enumerate(items):
        if not isinstance(nest, Nest):
            continue
        uses = _uses(nest)
        for out, given in _pairs(nest, uses, place, spans):
            if out in spans and given in spans:
                spans[given] = spans[given][0], spans.pop(out)[1]
                for item in items[place:]:
                    rename(item, {out: given})


def _spans(items: Sequence[Item]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last item that touches them, for large scratch buffers which are used as a whole."""
    spans: dict[Buffer, tuple[int, int]] = {}
    divided: set[Buffer] = set()
    for place, item in enumerate(items):
        for buffer in buffers_of(item):
            if buffer.base is not None:
                divided.add(buffer.storage)
            elif buffer.kind == "arena" and buffer.bytes >= LEAST:
                spans[buffer] = spans.get(buffer, (place, place))[0], place
    return {buffer: span for buffer, span in spans.items() if buffer not in divided}


def _uses(nest: Nest) -> dict[Buffer, list[Use]]:
    uses: dict[Buffer, list[Use]] = {}
    for number, stage in enumerate(nest.stages):
        for place, one in enumerate(stage.code):
            if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate)):
                uses.setdefault(one.ref.buffer, []).append(Use(number, place, one))
    return uses


def _pairs(
    nest: Nest, uses: dict[Buffer, list[Use]], place: int, spans: dict[Buffer, tuple[int, int]]
) -> Iterator[tuple[Buffer, Buffer]]:
    """(result, operand) of a nest, the operand's memory being free for the result."""
    filled = {buffer for buffer, _ in nest.starts}
    for out, writes in uses.items():
        if out in filled or out not in spans or spans[out][0] != place or len(writes) > 1:
            continue
        (write,) = writes
        if not isinstance(write.one, Store) or not _once_each(nest.domain, write.one.ref):
            continue
        for given, reads in uses.items():
            fits = given is not out and given.size == out.size and given.dtype == out.dtype
            dies = given in spans and spans[given][1] == place and given not in filled
            if fits and dies and all([_before(read, write) for read in reads]):
                yield out, given
                break


def _before(read: Use, write: Use) -> bool:
    """Whether an element is read, at the index at which the other is written and before that."""
    if not isinstance(read.one, Load) or read[:2] > write[:2]:
        return False
    one, other = read.one.ref, write.one.ref
    return one.offset == other.offset and one.strides == other.strides


def _once_each(domain: Shape, ref: StridedRef) -> bool:
    """Whether the loops over a domain visit every element of a buffer, each once."""
    size = 1
    for stride, length in sorted(zip(ref.strides, domain, strict=False)):
        if stride != size:
            return False
        size *= length
    return len(ref.strides) == len(domain) and ref.offset == 0 and size == ref.buffer.size
