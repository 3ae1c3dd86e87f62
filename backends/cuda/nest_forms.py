"""Rewriting of loop nests for many threads: concurrent loops, and nests with independent rows.

The result is a nest with independent rows: no row touches another's writes. Its stages may be inner loops with
reductions. One thread runs a nest without this form, unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from func.backends.loops.chunking import ORDINARY, SLOW
from func.backends.loops.kernels import (
    Accumulate,
    Apply,
    Buffer,
    DynamicIndex,
    Instruction,
    Literal,
    Load,
    LoadAt,
    LoopNest,
    NestStage,
    Operand,
    Position,
    Reduce,
    Register,
    Running,
    Store,
    StoreAt,
    StridedRef,
    row_major,
)
from func.backends.loops.memory_dependence import may_alias
from func.backends.loops.traversal import operands_of

READS = (Load, LoadAt)
ORDINARY_COST, SLOW_COST, EXPENSIVE_COST, EXPENSIVE_DOUBLE = 1.0, 8.0, 20.0, 45.0
"""Operations of an instruction of each kind, as multiplications and additions."""


def accesses_of(code: Iterable[Instruction]) -> list[Any]:
    """The instructions that touch memory."""
    return [each for each in code if isinstance(each, (Load, LoadAt, Store, StoreAt, Accumulate))]


def operations_of(code: Iterable[Instruction]) -> float:
    """The operations of one pass of some code, expensive functions counted by their polynomials."""
    total = 0.0
    for each in code:
        if isinstance(each, Apply):
            dtype = each.args[-1].dtype
            expensive = EXPENSIVE_DOUBLE if dtype.itemsize >= 8 else EXPENSIVE_COST
            cost = ORDINARY_COST if each.op in ORDINARY else SLOW_COST if each.op in SLOW else expensive
            total += cost * (4 if dtype.kind == "c" else 1)
        elif isinstance(each, Reduce):
            total += ORDINARY_COST
    return total


def varies(nest: LoopNest, code: Sequence[Instruction]) -> dict[int, set[int]]:
    """The axes on which each register (by id) depends; those of reductions have all axes of the rows."""
    rows = set(range(nest.outer or 0))
    axes: dict[int, set[int]] = {}
    for each in code:
        if isinstance(each, (Store, StoreAt, Accumulate)):
            continue
        own = {axis for x in operands_of(each) for axis in axes.get(id(x), ())}
        if isinstance(each, (Load, LoadAt)):
            own |= {axis for axis, stride in enumerate(each.ref.strides) if stride}
        elif isinstance(each, Position):
            own.add(each.axis)
        elif isinstance(each, (Reduce, Running)):
            own |= rows if isinstance(each, Reduce) else set(range(len(nest.domain)))
        axes[id(each.out)] = own
    return axes


def parallel_axes(nest: LoopNest, code: Sequence[Instruction], axes: Sequence[int]) -> list[int]:
    """The axes along which no element written at one index is touched at another."""
    independent = [axis for axis in axes if nest.domain[axis] != 1]
    by_storage: dict[int, list[Any]] = {}
    for access in accesses_of(code):
        by_storage.setdefault(id(access.ref.buffer.storage), []).append(access)
    depends = varies(nest, code)
    for accesses in by_storage.values():
        if all([isinstance(access, READS) for access in accesses]):
            continue
        independent = [axis for axis in independent if _is_independent(nest, accesses, axis, depends)]
    return [axis for axis in axes if axis in independent or nest.domain[axis] == 1]


def _is_independent(nest: LoopNest, accesses: Sequence[Any], axis: int, depends: dict[int, set[int]]) -> bool:
    refs = [nest.padded(access.ref) for access in accesses]
    if any([isinstance(access, (LoadAt, StoreAt)) for access in accesses]):
        (first, *rest) = accesses
        return not rest and isinstance(first, StoreAt) and _keeps_apart(nest, first, axis, depends)
    for write, written in zip(accesses, refs, strict=True):
        if isinstance(write, READS):
            continue
        for ref in refs:
            if ref.buffer is not written.buffer or may_alias(nest.domain, written, ref, [axis]):
                return False
    return True


def _keeps_apart(nest: LoopNest, store: StoreAt, axis: int, depends: dict[int, set[int]]) -> bool:
    """Whether a write at dynamic positions may reach one place at several indices of an axis."""
    ref = nest.padded(store.ref)
    write_axes = [each for each, stride in enumerate(ref.strides) if stride and nest.domain[each] > 1]
    dynamic = {each for index in store.indices for each in depends.get(id(index.value), ())}
    if axis not in write_axes or axis in dynamic:
        return False
    grid = math.gcd(*[index.stride for index in store.indices])
    span = sum([abs(ref.strides[each]) * (nest.domain[each] - 1) for each in write_axes])
    inside = StridedRef(ref.buffer, 0, ref.strides)
    return span < grid and not may_alias(nest.domain, inside, inside, write_axes)


# -- copies of nests ------------------------------------------------------------------------------------------------
def with_axis_order(
    each: Instruction, order: Sequence[int], rank: int, refs: dict[int, StridedRef] | None = None
) -> Instruction:
    """An instruction for axes in another order."""

    def ref(old: StridedRef) -> StridedRef:
        padded = (*old.strides, *[0] * (rank - len(old.strides)))
        return StridedRef(old.buffer, old.offset, tuple([padded[axis] for axis in order]))

    if isinstance(each, Load):
        return Load(each.out, ref(each.ref))
    if isinstance(each, LoadAt):
        return LoadAt(each.out, ref(each.ref), each.indices)
    if isinstance(each, Store):
        return Store(ref(each.ref), each.value)
    if isinstance(each, StoreAt):
        return StoreAt(ref(each.ref), each.indices, each.value, each.adds)
    if isinstance(each, Accumulate):
        return Accumulate(ref(each.ref), each.op, each.value)
    if isinstance(each, Position):
        return Position(each.out, list(order).index(each.axis))
    return each


def permuted(nest: LoopNest, order: Sequence[int], outer: int) -> LoopNest:
    """A nest with its axes in another order, of which the first ones are rows."""
    rank = len(nest.domain)
    stages = [
        NestStage(stage.inner, [with_axis_order(each, order, rank) for each in stage.code]) for stage in nest.stages
    ]
    return LoopNest(tuple([nest.domain[axis] for axis in order]), outer, stages, nest.fills)


def without_unit_axes(nest: LoopNest) -> LoopNest:
    """A nest without its axes of length one."""
    order = [axis for axis, length in enumerate(nest.domain) if length != 1]
    if len(order) == len(nest.domain) or any(
        [isinstance(each, Position) and each.axis not in order for each in nest.code]
    ):
        return nest
    outer = len([axis for axis in order if axis < (nest.outer or 0)])
    return permuted(nest, order, outer)


def split_stages(nest: LoopNest, together: int = 1) -> list[LoopNest]:
    """Nests of this number of stages each, in order; registers of the rows go from one to the next through memory."""
    outer = nest.outer or 0
    rows = nest.domain[:outer]
    defined: dict[int, int] = {}
    homes: dict[int, StridedRef] = {}
    nests: list[LoopNest] = []
    replaced: dict[int, Operand] = {}
    for place, stage in enumerate(nest.stages):
        if place % together == 0:
            nests.append(LoopNest(nest.domain, outer, []))
            replaced = {}
        number = len(nests) - 1
        loads: list[Instruction] = []
        for each in stage.code:
            for x in operands_of(each):
                if defined.get(id(x), number) == number or id(x) in replaced:
                    continue
                assert isinstance(x, Register)
                home = homes.get(id(x))
                if home is None:
                    home = homes[id(x)] = StridedRef(Buffer(math.prod(rows), x.dtype), 0, row_major(rows))
                    _at_end(nests[defined[id(x)]], Store(home, x))
                fresh = Register(x.dtype)
                replaced[id(x)] = fresh
                loads.append(Load(fresh, home))
        code = [with_operands(each, replaced) for each in stage.code]
        if not stage.inner:
            nests[-1].stages.append(NestStage(False, [*loads, *code]))
        else:
            if loads:
                nests[-1].stages.append(NestStage(False, loads))
            nests[-1].stages.append(NestStage(True, code))
        for each in stage.code:
            if isinstance(each, Reduce) or (not stage.inner and isinstance(each, (Load, LoadAt, Position, Apply))):
                defined[id(each.out)] = number
    nests[0].fills = nest.fills
    return nests


def _at_end(nest: LoopNest, store: Store) -> None:
    if nest.stages[-1].inner:
        nest.stages.append(NestStage(False, []))
    nest.stages[-1].code.append(store)


def with_operands(each: Instruction, replaced: dict[int, Operand]) -> Instruction:
    """An instruction that reads other operands in place of some."""
    if not any([id(x) in replaced for x in operands_of(each)]):
        return each

    def new(x: Operand) -> Operand:
        return replaced.get(id(x), x)

    def indices(old: Sequence[DynamicIndex]) -> tuple[DynamicIndex, ...]:
        return tuple([DynamicIndex(new(index.value), index.length, index.stride) for index in old])

    if isinstance(each, Apply):
        return Apply(each.out, each.op, tuple([new(x) for x in each.args]))
    if isinstance(each, LoadAt):
        return LoadAt(each.out, each.ref, indices(each.indices))
    if isinstance(each, StoreAt):
        return StoreAt(each.ref, indices(each.indices), new(each.value), each.adds)
    if isinstance(each, Store):
        return Store(each.ref, new(each.value))
    if isinstance(each, Accumulate):
        return Accumulate(each.ref, each.op, new(each.value))
    if isinstance(each, Reduce):
        return Reduce(each.out, each.op, new(each.value))
    assert isinstance(each, Running)
    return Running(each.out, each.op, new(each.value))


# -- accumulation as reduction --------------------------------------------------------------------------------------
def reductions_of_rows(nest: LoopNest) -> list[LoopNest] | None:
    """A nest whose only stage accumulates, as nests whose rows reduce; None for another form.

    Accumulations over the same axes become one nest. Instructions that only some of them need are repeated.
    """
    if len(nest.stages) != 1 or not nest.stages[0].inner or nest.outer:
        return None
    code, rank = nest.stages[0].code, len(nest.domain)
    if any([isinstance(each, (Reduce, Running, StoreAt)) for each in code]):
        return None
    groups: dict[tuple[int, ...], list[Instruction]] = {}
    stored = {id(each.ref.buffer.storage) for each in code if isinstance(each, (Store, Accumulate))}
    if any([isinstance(each, READS) and id(each.ref.buffer.storage) in stored for each in code]):
        return None
    writes = [each.ref.buffer.storage for each in code if isinstance(each, (Store, Accumulate))]
    if len(set(map(id, writes))) != len(writes):
        return None
    whole = [each for each in code if isinstance(each, Store)]
    for each in code:
        if isinstance(each, Accumulate):
            axes = tuple([axis for axis in range(rank) if each.ref.strides[axis] and nest.domain[axis] > 1])
            lengths = [nest.domain[axis] for axis in axes]
            strides = [each.ref.strides[axis] for axis in axes]
            inside = StridedRef(each.ref.buffer, 0, tuple(strides))
            if axes and may_alias(tuple(lengths), inside, inside, range(len(axes))):
                return None
            groups.setdefault(axes, []).append(each)
    for store in whole:
        if rank and may_alias(nest.domain, store.ref, store.ref, range(rank)):
            return None
    if not groups:
        return None
    fills = dict([(id(buffer), (buffer, value)) for buffer, value in nest.fills])
    nests = []
    for place, (axes, group) in enumerate(groups.items()):
        needed = needed_by(code, [*group, *(whole if place == 0 else ())])
        nests.append(_rows_of(nest, needed, axes, fills))
    nests[0].fills = list(fills.values())
    return nests


def needed_by(code: Sequence[Instruction], ends: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of a code that some of them need, with those, in order."""
    needed_values = {id(x) for each in ends for x in operands_of(each)}
    needed_code: list[Instruction] = []
    chosen = set(map(id, ends))
    for each in reversed(code):
        out = getattr(each, "out", None)
        if id(each) in chosen or (out is not None and id(out) in needed_values):
            needed_values.update([id(x) for x in operands_of(each)])
            needed_code.append(each)
    return needed_code[::-1]


def _rows_of(
    nest: LoopNest, code: Sequence[Instruction], row_axes: Sequence[int], fills: dict[int, tuple[Buffer, Any]]
) -> LoopNest:
    rank = len(nest.domain)
    order = [*row_axes, *[axis for axis in range(rank) if axis not in row_axes]]
    inner: list[Instruction] = []
    after: list[Instruction] = []
    for each in code:
        new = with_axis_order(each, order, rank)
        if not isinstance(new, Accumulate):
            inner.append(new)
            continue
        dtype = new.ref.buffer.dtype
        total, result = Register(dtype), Register(dtype)
        inner.append(Reduce(total, new.op, new.value))
        ref = StridedRef(new.ref.buffer, new.ref.offset, new.ref.strides[: len(row_axes)])
        fill = fills.get(id(new.ref.buffer))
        lengths = [nest.domain[axis] for axis in row_axes]
        start: Operand
        if fill is not None and math.prod(lengths) == new.ref.buffer.size:
            start = Literal(fill[1], dtype)
            del fills[id(new.ref.buffer)]
        else:
            start = Register(dtype)
            after.append(Load(start, ref))
        after += [Apply(result, new.op, (start, total)), Store(ref, result)]
    stages = [NestStage(True, inner), NestStage(False, after)]
    return LoopNest(tuple([nest.domain[axis] for axis in order]), len(row_axes), stages)


# -- scratch of rows ------------------------------------------------------------------------------------------------
def row_scratch(nest: LoopNest, shared: set[int]) -> Iterator[Buffer]:
    """Private scratch memory of every row: written before its reads, and touched by nothing else."""
    outer = nest.outer or 0
    if not outer:
        return
    by_buffer: dict[int, list[Any]] = {}
    for access in accesses_of(nest.code):
        by_buffer.setdefault(id(access.ref.buffer), []).append(access)
    for accesses in by_buffer.values():
        buffer = accesses[0].ref.buffer
        if buffer.kind != "arena" or id(buffer) in shared or not isinstance(accesses[0], Store):
            continue
        if any([any(access.ref.strides[:outer]) for access in accesses]):
            continue
        if all([isinstance(access, (Load, Store, LoadAt)) for access in accesses]):
            yield buffer


def with_row_scratch(nest: LoopNest, buffers: Iterable[Buffer]) -> LoopNest:
    """A nest with a separate part of some scratch memory for every row."""
    outer = nest.outer or 0
    rows = nest.domain[:outer]
    larger = {id(buffer): (Buffer(math.prod(rows) * buffer.size, buffer.dtype), buffer.size) for buffer in buffers}
    if not larger:
        return nest

    def expanded(each: Instruction) -> Instruction:
        ref = getattr(each, "ref", None)
        if ref is None or id(ref.buffer) not in larger:
            return each
        buffer, size = larger[id(ref.buffer)]
        steps = [step * size for step in row_major(rows)]
        return each.with_fields(ref=StridedRef(buffer, ref.offset, (*steps, *ref.strides[outer:])))

    stages = [NestStage(stage.inner, [expanded(each) for each in stage.code]) for stage in nest.stages]
    return LoopNest(nest.domain, nest.outer, stages, nest.fills)


# -- accumulation across rows ---------------------------------------------------------------------------------------
def without_accumulation(nest: LoopNest) -> list[LoopNest]:
    """A nest whose rows or stages accumulate, as one that does not and subsequent nests that only accumulate. A row
    reduces its additions to one place. Additions to many places are recomputed after the nest, from arrays and
    registers of the rows, or stored in memory if that is impossible.
    """
    outer = nest.outer or 0
    rows = nest.domain[:outer]
    fills = {id(buffer): (buffer, value) for buffer, value in nest.fills}
    touched: dict[int, int] = {}
    for access in accesses_of(nest.code):
        touched[id(access.ref.buffer.storage)] = touched.get(id(access.ref.buffer.storage), 0) + 1
    written = {id(each.ref.buffer.storage) for each in accesses_of(nest.code) if not isinstance(each, READS)}
    stages: list[NestStage] = []
    behind: list[LoopNest] = []
    saved: list[Instruction] = []
    homes: dict[int, StridedRef] = {}
    for stage in nest.stages:
        code: list[Instruction] = []
        after: list[Instruction] = []
        for each in stage.code:
            if not isinstance(each, Accumulate) or touched[id(each.ref.buffer.storage)] > 1:
                code.append(each)
                continue
            own = [fills.pop(id(each.ref.buffer))] if id(each.ref.buffer) in fills else []
            ref = nest.padded(each.ref)
            dtype = ref.buffer.dtype
            if stage.inner and any(ref.strides[outer:]):
                again = _again(nest, stage, each, written, homes, saved)
                if again is None:
                    home = StridedRef(Buffer(math.prod(nest.domain), dtype), 0, row_major(nest.domain))
                    code.append(Store(home, each.value))
                    value = Register(dtype)
                    again = [Load(value, home), Accumulate(ref, each.op, value)]
                behind.append(LoopNest(nest.domain, 0, [NestStage(True, again)], own))
                continue
            home = StridedRef(Buffer(math.prod(rows), dtype), 0, row_major(rows))
            total: Operand = each.value
            if stage.inner:
                total = Register(dtype)
                code.append(Reduce(total, each.op, each.value))
                after.append(Store(home, total))
            else:
                code.append(Store(home, total))
            value = Register(dtype)
            last = StridedRef(ref.buffer, ref.offset, ref.strides[:outer])
            behind.append(
                LoopNest(rows, 0, [NestStage(True, [Load(value, home), Accumulate(last, each.op, value)])], own)
            )
        stages.append(NestStage(stage.inner, code))
        if after:
            stages.append(NestStage(False, after))
    if saved:
        stages.append(NestStage(False, saved))
    stages = [stage for stage in stages if stage.code]
    first = LoopNest(nest.domain, nest.outer, stages, list(fills.values()))
    return [first, *behind] if behind else [nest]


def _again(
    nest: LoopNest,
    stage: NestStage,
    each: Accumulate,
    written: set[int],
    homes: dict[int, StridedRef],
    saved: list[Instruction],
) -> list[Instruction] | None:
    """The code that recomputes the accumulated values after the nest; None if it needs the nest's writes."""
    outer = nest.outer or 0
    rows = nest.domain[:outer]
    needed = needed_by(stage.code, [each])
    if not all([isinstance(step, (Load, LoadAt, Apply, Position, Accumulate)) for step in needed]):
        return None
    if any([isinstance(step, READS) and id(step.ref.buffer.storage) in written for step in needed]):
        return None
    inside = {id(step.out) for step in needed if isinstance(step, (Load, LoadAt, Apply, Position))}
    replaced: dict[int, Operand] = {}
    loads: list[Instruction] = []
    for x in [x for step in needed for x in operands_of(step)]:
        if isinstance(x, Literal) or id(x) in inside or id(x) in replaced:
            continue
        if id(x) not in homes:
            homes[id(x)] = StridedRef(Buffer(math.prod(rows), x.dtype), 0, row_major(rows))
            saved.append(Store(homes[id(x)], x))
        fresh = Register(x.dtype)
        replaced[id(x)] = fresh
        loads.append(Load(fresh, nest.padded(homes[id(x)])))
    code = [with_axis_order(with_operands(one, replaced), range(len(nest.domain)), len(nest.domain)) for one in needed]
    return [*loads, *code]
