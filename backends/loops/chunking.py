"""How long loops take, about: what decides whether they are worth several threads.

Which loops of nests are cut into chunks that may run at the same time, and what every chunk needs of its own.

The chunks follow from the nest alone, never from the number of threads: so what is added up in which order, and with it
every bit of the results, is the same on one thread and on many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from func.backends.loops.buffers import buffers_of
from func.backends.loops.kernels import (
    Accumulate,
    Apply,
    Branch,
    Buffer,
    Division,
    Dot,
    Instruction,
    Item,
    Load,
    LoadAt,
    Loop,
    Nest,
    Position,
    Running,
    Shape,
    Stage,
    Store,
    StoreAt,
    StridedRef,
    While,
)
from func.backends.loops.memory_dependence import same_place
from func.backends.loops.product_blocks import grid_of

PER_BYTE, PLAIN_TIME, SLOW_TIME, DEAR_TIME, ALONE_TIME = 0.01, 0.04, 0.3, 1.2, 0.6
"""Nanoseconds an element: reading or writing a byte of it; operations on 8 bytes of the three kinds; what is done one
element at a time. Measured with vectors of 32 bytes at 3.5 GHz."""
_PLAIN = """
absolute add bitwise_and bitwise_count bitwise_or bitwise_xor complex conjugate convert deg2rad equal exponent greater
greater_equal heaviside imag invert isfinite isinf isnan left_shift less less_equal logical_and logical_not logical_or
logical_xor maximum minimum multiply negative not_equal positive rad2deg real right_shift select sign signbit spacing
square subtract nan_safe_multiply
"""
_SLOW = """
ceil copysign divide floor floor_divide fmax fmin ldexp nextafter reciprocal remainder rint sqrt trunc
"""
PLAIN, SLOW = frozenset(_PLAIN.split()), frozenset(_SLOW.split())


def work(stage: Stage, domain: Shape) -> float:
    """Nanoseconds, about, that the code of a stage takes over a domain."""
    return sum([_time(one) for one in stage.code]) * math.prod(domain)


def _time(one: Instruction) -> float:
    if isinstance(one, (Load, Store, Accumulate)):
        stride = next((step for step in reversed(one.ref.strides) if step), 0)
        size = one.ref.buffer.dtype.itemsize
        return 0.0 if not stride else PER_BYTE * size if abs(stride) == 1 else max(ALONE_TIME, PER_BYTE * size)
    if isinstance(one, (LoadAt, StoreAt, Running)):
        return ALONE_TIME
    if isinstance(one, Apply):
        dtype = one.args[-1].dtype
        scale = dtype.itemsize / 8 * (4 if dtype.kind == "c" else 1)
        return scale * (PLAIN_TIME if one.op in PLAIN else SLOW_TIME if one.op in SLOW else DEAR_TIME)
    return PLAIN_TIME


LEAST_WORK = 25_000.0
"""Nanoseconds that a nest must take about for its chunks to be worth their start."""
CHUNK_WORK = 12_000.0
"""Nanoseconds of work in a chunk, unless there would be too many."""
MOST_CHUNKS = 64
ENOUGH = 8
"""Chunks that keep the usual machine busy: a loop that makes so many need not be compared with others."""
SHORTEST = 256
"""Elements along the innermost dimension of a chunk."""
FRAME = 1 << 16
"""Bytes of scratch that a chunk has in its own frame."""
APART = 128
"""Bytes which accumulators of different chunks are apart: no two of them share a line of a cache."""


# --- how loops go through memory ----------------------------------------------------------------------------------


def collapse(dims: Sequence[int], strides: Sequence[Sequence[int]], first: int, last: int) -> list[list[int]]:
    """Groups of neighbouring dimensions in [first, last) that can be run through as one, given all strides."""
    groups: list[list[int]] = []
    for axis in range(first, last):
        joins = bool(groups) and all([one[axis - 1] == one[axis] * dims[axis] for one in strides])
        if joins:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def strides_of(code: Sequence[Instruction], rank: int) -> list[tuple[int, ...]]:
    """All that goes on by the index: addresses, and positions."""
    found = [ref.strides for ref in refs_of(code)]
    for one in code:
        if isinstance(one, Position):
            found.append(tuple([int(axis == one.axis) for axis in range(rank)]))
    return found


def refs_of(code: Sequence[Instruction]) -> list[StridedRef]:
    """All memory that instructions name."""
    return [one.ref for one in code if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate))]


def row_groups(nest: Nest) -> list[list[int]]:
    """The loops over the rows of a nest."""
    strides = [one for stage in nest.stages for one in strides_of(stage.code, len(nest.domain))]
    return collapse(nest.domain, strides, 0, nest.outer or 0)


def stage_groups(nest: Nest, stage: Stage) -> list[list[int]]:
    """The loops of an inner stage."""
    strides = strides_of(stage.code, len(nest.domain))
    return collapse(nest.domain, strides, nest.outer or 0, len(nest.domain))


def length_of(nest: Nest, group: Sequence[int]) -> int:
    """How often a loop runs."""
    return math.prod([nest.domain[axis] for axis in group])


# --- divisions ----------------------------------------------------------------------------------------------------


def divide(items: Iterable[Item]) -> None:
    """Note in all nests and products how they are cut into chunks, with memory for what the chunks need."""
    users: dict[int, int] = {}
    nests = []
    for item, buffers in _uses(items):
        for key in {id(one.storage) for one in buffers}:
            users[key] = users.get(key, 0) + 1
        if isinstance(item, Nest):
            nests.append(item)
        elif isinstance(item, Dot):
            item.grid = grid_of(item)
    shared = {key for key, number in users.items() if number > 1}
    for nest in nests:
        nest.divisions = list(divisions(nest, shared))


def _uses(items: Iterable[Item]) -> Iterator[tuple[Item, Iterable[Buffer]]]:
    """Every item with the memory that it names itself."""
    for item in items:
        if isinstance(item, Loop):
            yield item, item.slices
            yield from _uses(item.body)
        elif isinstance(item, While):
            yield item, [item.flag.buffer]
            yield from _uses([*item.test, *item.body])
        elif isinstance(item, Branch):
            yield item, [item.index.buffer]
            yield from _uses([one for branch in item.branches for one in branch])
        else:
            yield item, buffers_of(item)


def divisions(nest: Nest, shared: set[int]) -> Iterator[Division]:
    """The divisions of a nest; `shared` is memory (by id) that others use as well."""
    if 0 in nest.domain or any([isinstance(one, StoreAt) for stage in nest.stages for one in stage.code]):
        return
    rows = nest.domain[: nest.outer or 0]
    by_rows = None
    if rows:
        total = sum([work(stage, nest.domain if stage.inner else rows) for stage in nest.stages])
        by_rows = _best(nest, nest.stages, row_groups(nest), total, None, shared)
    if by_rows is not None and by_rows.chunks >= ENOUGH:
        yield by_rows
        return
    by_stage = []
    for stage in nest.stages:
        if stage.inner and not any([isinstance(one, Running) for one in stage.code]):
            total = work(stage, nest.domain[len(rows) :])
            by_stage.append(_best(nest, [stage], stage_groups(nest, stage), total, stage, shared))
    if any(by_stage):
        yield from [one for one in by_stage if one is not None]
    elif by_rows is not None:
        yield by_rows


def _best(
    nest: Nest, stages: Sequence[Stage], groups: list[list[int]], total: float, stage: Stage | None, shared: set[int]
) -> Division | None:
    """The outermost loop that makes enough chunks, or else the one that makes most."""
    if total < LEAST_WORK:
        return None
    best: Division | None = None
    for group in groups:
        most = length_of(nest, group)
        if stage is not None and group is groups[-1]:
            most //= SHORTEST
        chunks = min(most, MOST_CHUNKS, int(total / CHUNK_WORK))
        needs = _needs(nest, stages, group, stage, shared) if chunks > 1 else None
        if needs is None:
            continue
        chunks = min(chunks, _affordable(needs, total))
        if chunks > 1 and (best is None or chunks > best.chunks):
            best = _division(group, chunks, stage, needs)
        if best is not None and best.chunks >= ENOUGH:
            break
    return best


class Needs(NamedTuple):
    """What chunks must not share: scratch, and what they accumulate."""

    scratch: list[Buffer]
    partial: list[Accumulate]


def _affordable(needs: Needs, total: float) -> int:
    """How many chunks may have accumulators of their own, for an eighth of the work."""
    one = sum([PER_BYTE * 3 * accumulated.ref.buffer.bytes for accumulated in needs.partial])
    return int(total / 8 / one) if one else MOST_CHUNKS


def _division(group: Sequence[int], chunks: int, stage: Stage | None, needs: Needs) -> Division:
    made = Division(group[-1], chunks, stage)
    in_frame = sum([one.bytes for one in needs.scratch]) <= FRAME
    for one in needs.scratch:
        made.owned.append((one, None if in_frame else Buffer(chunks * apart(one), one.dtype)))
    for accumulated in needs.partial:
        buffer = accumulated.ref.buffer
        made.partial.append((accumulated, Buffer(chunks * apart(buffer), buffer.dtype)))
    return made


def apart(buffer: Buffer) -> int:
    """How many elements the memory of one chunk is away from that of the next."""
    return -(-buffer.bytes // APART) * APART // buffer.dtype.itemsize


def _needs(
    nest: Nest, stages: Sequence[Stage], group: Sequence[int], stage: Stage | None, shared: set[int]
) -> Needs | None:
    """What the chunks of a loop need of their own; None where one would touch what another writes."""
    touched: dict[int, list[Access]] = {}
    for one in [one for each in stages for one in each.code]:
        if isinstance(one, (Load, LoadAt, Store, Accumulate)):
            touched.setdefault(id(one.ref.buffer.storage), []).append(one)
    needs = Needs([], [])
    for key, uses in touched.items():
        if all([isinstance(one, (Load, LoadAt)) for one in uses]):
            continue
        buffer = uses[0].ref.buffer
        fixed = [not any([_stride(one.ref, axis) for axis in group]) for one in uses]
        if any([isinstance(one, Accumulate) for one in uses]):
            (first, *others) = uses
            if others or not isinstance(first, Accumulate):
                return None
            if fixed[0] and buffer.base is None:
                needs.partial.append(first)
                continue
        elif all(fixed) and stage is None and buffer.kind == "arena" and key not in shared:
            if not isinstance(uses[0], Store) or any([isinstance(one, LoadAt) for one in uses]):
                return None
            needs.scratch.append(buffer)
            continue
        if not _are_apart(nest.domain, uses, group):
            return None
    return needs


Access: TypeAlias = Load | LoadAt | Store | Accumulate


def _stride(ref: StridedRef, axis: int) -> int:
    return ref.strides[axis] if axis < len(ref.strides) else 0


def _are_apart(domain: Shape, uses: Sequence[Access], group: Sequence[int]) -> bool:
    """Whether what is written at one index of a loop is not touched at another."""
    refs = [StridedRef(one.ref.buffer, one.ref.offset, _filled(one.ref, len(domain))) for one in uses]
    for place, one in enumerate(uses):
        if isinstance(one, (Load, LoadAt)):
            continue
        for other, ref in zip(uses, refs, strict=True):
            if isinstance(other, LoadAt) or ref.buffer is not one.ref.buffer:
                return False
            if same_place(domain, refs[place], ref, group):
                return False
    return True


def _filled(ref: StridedRef, rank: int) -> tuple[int, ...]:
    return (*ref.strides, *[0] * (rank - len(ref.strides)))
