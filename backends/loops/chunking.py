"""Chunking: cuts the loops of nests into chunks that may run at the same time, each with private memory.

The chunks follow from the nest alone, never from the number of threads. So the order of additions, and with it every
bit of the results, is the same on one thread and on many. A cost model, which estimates the time of the code of a
stage, decides whether a loop is worth several threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from func.backends.loops import kernels
from func.backends.loops.kernels import (
    CALLED,
    Accumulate,
    Apply,
    Buffer,
    Chunking,
    Dot,
    Instruction,
    Item,
    Load,
    LoadAt,
)
from func.backends.loops.memory_dependence import may_alias
from func.backends.loops.product_blocks import grid_of
from func.backends.loops.traversal import all_items, own_buffers, refs_of
from func.backends.records import Record

PER_BYTE, ORDINARY_TIME, SLOW_TIME, EXPENSIVE_TIME, SINGLE_TIME, CALL_TIME = 0.01, 0.04, 0.3, 1.2, 0.6, 60.0
"""Nanoseconds an element: for a byte read or written, an operation on 8 bytes (three kinds), work on single elements, a
function of SciPy. Measured with vectors of 32 bytes at 3.5 GHz."""
_ORDINARY = """
absolute add bitwise_and bitwise_count bitwise_or bitwise_xor complex conjugate convert deg2rad equal exponent greater
greater_equal heaviside imag invert isfinite isinf isnan left_shift less less_equal logical_and logical_not logical_or
logical_xor maximum minimum multiply negative not_equal positive rad2deg real right_shift select sign signbit spacing
square subtract nan_safe_multiply
"""
_SLOW = """
ceil copysign divide floor floor_divide fmax fmin ldexp nextafter reciprocal remainder rint sqrt trunc
"""
ORDINARY, SLOW = frozenset(_ORDINARY.split()), frozenset(_SLOW.split())

LEAST_WORK = 25_000.0
"""The nanoseconds from which on a nest's chunks are worth their start."""
CHUNK_WORK = 12_000.0
"""Nanoseconds of work in a chunk, unless there would be too many."""
MOST_CHUNKS = 64
ENOUGH = 8
"""Chunks that keep the usual machine busy: inner loops need not be tried if a loop has as many."""
SHORTEST = 256
"""Elements along the innermost dimension of a chunk."""
FRAME = 1 << 16
"""Bytes of scratch that a chunk has on its stack."""
CACHE_LINES = 128
"""Bytes between accumulators of different chunks: no two of them share a cache line."""


def work(stage: kernels.NestStage, domain: kernels.Shape) -> float:
    """The approximate nanoseconds of the code of a stage over a domain."""
    return sum(map(_time, stage.code)) * math.prod(domain)


def _time(instruction: Instruction) -> float:
    if isinstance(instruction, (Load, kernels.Store, Accumulate)):
        stride = next((step for step in reversed(instruction.ref.strides) if step), 0)
        time = PER_BYTE * instruction.ref.buffer.dtype.itemsize
        return 0.0 if not stride else time if abs(stride) == 1 else max(SINGLE_TIME, time)
    if isinstance(instruction, (LoadAt, kernels.StoreAt, kernels.Running)):
        return SINGLE_TIME
    if isinstance(instruction, Apply):
        dtype, op = instruction.args[-1].dtype, instruction.op
        if op.startswith(CALLED):
            return CALL_TIME
        scale = dtype.itemsize / 8 * (4 if dtype.kind == "c" else 1)
        return scale * (ORDINARY_TIME if op in ORDINARY else SLOW_TIME if op in SLOW else EXPENSIVE_TIME)
    return ORDINARY_TIME


def collapse(dims: Sequence[int], strides: Sequence[Sequence[int]], first: int, last: int) -> list[list[int]]:
    """Groups of neighbouring dimensions in [first, last) that one loop can run through, given all strides."""
    groups: list[list[int]] = []
    for axis in range(first, last):
        if groups and all([steps[axis - 1] == steps[axis] * dims[axis] for steps in strides]):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def strides_of(code: Sequence[Instruction], rank: int) -> list[tuple[int, ...]]:
    """The strides of everything that depends on the loop indices: of memory, and of positions."""
    strides = [ref.strides for ref in refs_of(code)]
    for instruction in code:
        if isinstance(instruction, kernels.Position):
            strides.append(tuple([int(axis == instruction.axis) for axis in range(rank)]))
    return strides


def row_groups(nest: kernels.LoopNest) -> list[list[int]]:
    """The loops over the rows of a nest."""
    return collapse(nest.domain, strides_of(nest.code, len(nest.domain)), 0, nest.outer or 0)


def stage_groups(nest: kernels.LoopNest, stage: kernels.NestStage) -> list[list[int]]:
    """The loops of an inner stage."""
    strides = strides_of(stage.code, len(nest.domain))
    return collapse(nest.domain, strides, nest.outer or 0, len(nest.domain))


def length_of(nest: kernels.LoopNest, group: Sequence[int]) -> int:
    """The number of iterations of a loop."""
    return math.prod([nest.domain[axis] for axis in group])


def chunk_loops(items: Iterable[Item]) -> None:
    """Note the chunks in all nests and products, with memory for each chunk."""
    users: dict[int, int] = {}
    nests = []
    for item in all_items(items):
        for key in {id(buffer.storage) for buffer in own_buffers(item)}:
            users[key] = users.get(key, 0) + 1
        if isinstance(item, kernels.LoopNest):
            nests.append(item)
        elif isinstance(item, Dot):
            item.grid = grid_of(item)
    shared = {key for key, number in users.items() if number > 1}
    for nest in nests:
        nest.chunkings = list(chunkings_of(nest, shared))
        nest.row_scratch = _row_scratch(nest, shared)


def chunkings_of(nest: kernels.LoopNest, shared: set[int]) -> Iterator[Chunking]:
    """The chunks of the loops of a nest; `shared` is memory (by id) that other items use as well."""
    if 0 in nest.domain or any([isinstance(instruction, kernels.StoreAt) for instruction in nest.code]):
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
        if stage.inner and not any([isinstance(instruction, kernels.Running) for instruction in stage.code]):
            total = work(stage, nest.domain[len(rows) :])
            by_stage.append(_best(nest, [stage], stage_groups(nest, stage), total, stage, shared))
    if any(by_stage):
        yield from [chunking for chunking in by_stage if chunking is not None]
    elif by_rows is not None:
        yield by_rows


def _best(
    nest: kernels.LoopNest,
    stages: Sequence[kernels.NestStage],
    groups: list[list[int]],
    total: float,
    stage: kernels.NestStage | None,
    shared: set[int],
) -> Chunking | None:
    """The outermost loop with enough chunks, or else the one with most."""
    if total < LEAST_WORK:
        return None
    best: Chunking | None = None
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
            best = _chunking(group, chunks, stage, needs)
        if best is not None and best.chunks >= ENOUGH:
            break
    return best


class Needs(Record):
    """The memory that chunks must not share: scratch, and accumulators."""

    scratch: list[Buffer]
    accumulates: list[Accumulate]


def _affordable(needs: Needs, total: float) -> int:
    """The number of chunks whose accumulators take at most an eighth of the work."""
    time = sum([PER_BYTE * 3 * accumulate.ref.buffer.bytes for accumulate in needs.accumulates])
    return int(total / 8 / time) if time else MOST_CHUNKS


def _chunking(group: Sequence[int], chunks: int, stage: kernels.NestStage | None, needs: Needs) -> Chunking:
    chunking = Chunking(group[-1], chunks, stage)
    is_in_frame = sum([buffer.bytes for buffer in needs.scratch]) <= FRAME
    for buffer in needs.scratch:
        chunking.private.append((buffer, None if is_in_frame else _for_chunks(buffer, chunks)))
    for accumulate in needs.accumulates:
        chunking.accumulators.append((accumulate, _for_chunks(accumulate.ref.buffer, chunks)))
    return chunking


def _for_chunks(buffer: Buffer, chunks: int) -> Buffer:
    return Buffer(chunks * chunk_stride(buffer), buffer.dtype)


def chunk_stride(buffer: Buffer) -> int:
    """The elements between the memory of one chunk and that of the next."""
    return -(-buffer.bytes // CACHE_LINES) * CACHE_LINES // buffer.dtype.itemsize


def _row_scratch(nest: kernels.LoopNest, shared: set[int]) -> list[Buffer] | None:
    """The scratch of a row, if rows along the innermost loop over rows may be interleaved."""
    groups = row_groups(nest)
    if (
        not groups
        or len(nest.stages) < 2
        or any([isinstance(instruction, kernels.StoreAt) for instruction in nest.code])
    ):
        return None
    needs = _needs(nest, nest.stages, groups[-1], None, shared)
    return None if needs is None else needs.scratch


ChunkAccess: TypeAlias = Load | LoadAt | kernels.Store | Accumulate


def _needs(
    nest: kernels.LoopNest,
    stages: Sequence[kernels.NestStage],
    group: Sequence[int],
    stage: kernels.NestStage | None,
    shared: set[int],
) -> Needs | None:
    """The private memory of every chunk of a loop; None if one would touch another's writes."""
    by_storage: dict[int, list[ChunkAccess]] = {}
    for instruction in [instruction for each in stages for instruction in each.code]:
        if isinstance(instruction, (Load, LoadAt, kernels.Store, Accumulate)):
            by_storage.setdefault(id(instruction.ref.buffer.storage), []).append(instruction)
    needs = Needs([], [])
    for key, accesses in by_storage.items():
        if all([isinstance(access, (Load, LoadAt)) for access in accesses]):
            continue
        buffer = accesses[0].ref.buffer
        fixed = [not any([_stride(access.ref, axis) for axis in group]) for access in accesses]
        if any([isinstance(access, Accumulate) for access in accesses]):
            (first, *rest) = accesses
            if rest or not isinstance(first, Accumulate):
                return None
            if fixed[0] and buffer.base is None:
                needs.accumulates.append(first)
                continue
        elif all(fixed) and stage is None and buffer.kind == "arena" and key not in shared:
            if not isinstance(accesses[0], kernels.Store) or any([isinstance(access, LoadAt) for access in accesses]):
                return None
            needs.scratch.append(buffer)
            continue
        if not _are_independent(nest, accesses, group):
            return None
    return needs


def _stride(ref: kernels.StridedRef, axis: int) -> int:
    return ref.strides[axis] if axis < len(ref.strides) else 0


def _are_independent(nest: kernels.LoopNest, accesses: Sequence[ChunkAccess], group: Sequence[int]) -> bool:
    """Whether no element written at one index of a loop is touched at another."""
    refs = [nest.padded(access.ref) for access in accesses]
    for write, written in zip(accesses, refs, strict=True):
        if isinstance(write, (Load, LoadAt)):
            continue
        for access, ref in zip(accesses, refs, strict=True):
            if isinstance(access, LoadAt) or ref.buffer is not written.buffer:
                return False
            if may_alias(nest.domain, written, ref, group):
                return False
    return True
