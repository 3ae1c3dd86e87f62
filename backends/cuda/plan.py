"""Plans: a native program as steps for a device.

A plan is plain data. Most steps are launches of kernels; the others are products for cuBLAS, copies, and loops and
branches that the host runs. A nest becomes the fastest form that it allows. Elementwise code has a thread for every
element. Reductions have a thread, a warp or a block for every row, or for chunks of long rows. One thread runs all
other nests, in the order of the loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.cuda.block_programs import block_kernel
from func.backends.cuda.device_steps import (
    Choose,
    MatrixProduct,
    Move,
    Order,
    Repeat,
    Step,
    While,
    buffers_of_step,
)
from func.backends.cuda.nest_forms import (
    accesses_of,
    needed_by,
    parallel_axes,
    permuted,
    reductions_of_rows,
    row_scratch,
    split_stages,
    varies,
    with_axis_order,
    with_row_scratch,
    without_accumulation,
    without_unit_axes,
)
from func.backends.cuda.nest_kernels import (
    THREADS,
    TILE,
    WARP,
    KernelLibrary,
    Tiling,
    Unit,
    key_kernel,
    report_kernel,
    segment_kernel,
    thread_kernel,
    tiled_kernel,
    unit_kernel,
)
from func.backends.loops.buffer_assignment import assign_by_use
from func.backends.loops.interface import AliasedOutput, ArraySpec
from func.backends.loops.kernels import (
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
    Literal,
    Load,
    LoadAt,
    LoopNest,
    NativeProgram,
    NestStage,
    Position,
    Reduce,
    Register,
    Running,
    Store,
    StoreAt,
    StridedRef,
    row_major,
)
from func.backends.loops.traversal import bodies_of, operands_of, own_buffers
from func.backends.records import Record, field

HAS_NAN, OUT_OF_RANGE, COMPUTE_AGAIN = 1, 2, 4
"""Bits of the status: an output has a NaN; an index was out of range; pullbacks inside a loop gave NaN."""


class Limits(Record):
    """The sizes from which on a nest takes each form."""

    short_row: int = 16
    """Elements of the longest row that one thread reduces."""
    warp_row: int = 1024
    block_row: int = 8192
    """Elements of the longest row for a block of the usual size; longer ones get twice as many threads."""
    few_rows: int = 128
    little: int = 1 << 15
    """Elements of a nest from which on few rows are split into chunks."""
    chunk: int = 4096
    """Elements of a chunk for a block."""
    lane_chunk: int = 128
    """Elements of a chunk for a thread."""
    busy: int = 1 << 16
    """Threads that keep a device busy."""
    many_scans: int = 1 << 10
    """Rows next to each other from which on each has a thread for its running reductions."""
    library_work: int = 1 << 15
    """Multiplications from which on a product is cuBLAS's."""
    shared: int = 1 << 15
    """Bytes of shared memory that a block takes for the scratch of its rows at most."""
    far: int = 32
    """Bytes between neighbouring elements from which on a load goes through a tile of shared memory."""
    tile: int = 32
    """Elements along both axes from which on tiles are worth their barriers."""
    updates: int = 512
    """Writes at computed places from which on they are sorted."""
    block_work: int = 1 << 13
    """Elements of the largest nest, and an eighth of the multiplications of the largest product, for one block among
    other steps.
    """
    together: int = 32
    """The most stages of loop nests in one kernel, loops aside: NVRTC takes longer for a kernel than for its parts."""


LIMITS = Limits()


class MissingForm(Exception):
    """An item has no form on a device; the message says which."""


class DevicePlan(Record):
    """Steps over numbered inputs, constants and outputs, with `arena` bytes of scratch, and the text of the kernels."""

    inputs: list[ArraySpec]
    constants: list[Any]
    outputs: list[ArraySpec]
    steps: list[Step]
    arena: int
    library: KernelLibrary
    reports: int
    """The bits that the status may have."""
    aliased: dict[int, AliasedOutput] = field(default_factory=dict)
    """The outputs that lie in the memory of donated inputs, by their places among all."""

    @property
    def source(self) -> str:
        """The text of the kernels, with what they call."""
        return self.library.source()


def device_plan(program: NativeProgram, guarded: bool = False, tf32: bool = False) -> DevicePlan:
    """The plan of a program. Raises MissingForm."""
    return Planner(program, guarded, tf32).plan()


class Planner:
    """Plans one program."""

    def __init__(
        self,
        program: NativeProgram,
        guarded: bool = False,
        tf32: bool = False,
        library: KernelLibrary | None = None,
    ) -> None:
        self.program = program
        self.limits = LIMITS
        self.is_inside = library is not None
        """Whether the steps are for one block."""
        self.guarded = guarded
        self.tf32 = tf32
        self.library = library or KernelLibrary(guarded)
        self.reports = 0
        self._shared = _shared_buffers(program.items)
        if self.is_inside:
            never = 1 << 60
            self.limits = self.limits.with_fields(
                block_row=never, little=never, tile=never, updates=never, shared=self.limits.shared // 16
            )

    def plan(self) -> DevicePlan:
        """The plan."""
        program = self.program
        items = [part for item in program.items for part in without_long_chains(item, self.limits.together)]
        if len(items) + (program.flag is not None) > 1 and is_small(items, self.limits.block_work):
            flags = [(program.flag, HAS_NAN)] if program.flag is not None else []
            groups = groups_of(items, self.limits.together)
            steps = [self._one_block(group, flags if group is groups[-1] else []) for group in groups]
        else:
            steps = self._items(items)
            if program.flag is not None:
                steps.append(self._report(program.flag, HAS_NAN))
        if "? 2 : 0;" in self.library.source():
            self.reports |= OUT_OF_RANGE
        arena = assign_by_use([buffers_of_step(step) for step in steps])
        known = program.inputs, program.constants, program.outputs
        return DevicePlan(*known, steps, arena, self.library, self.reports, program.aliased)

    def _items(self, items: Sequence[Item]) -> list[Step]:
        return [step for item in items for step in self._item(item)]

    def _item(self, item: Item) -> list[Step]:
        if isinstance(item, LoopNest):
            return self._nest(item)
        if isinstance(item, Dot):
            return (
                [MatrixProduct(item, self.tf32)]
                if not (self.guarded or self.is_inside) and is_for_library(item)
                else self._nest(product_nest(item))
            )
        if isinstance(item, Fill):
            return self._fill(item.buffer, item.value)
        if isinstance(item, Copy):
            return [self._copy(item.target, item.source)]
        if isinstance(item, FlagCheck):
            return [self._report(item.flag, COMPUTE_AGAIN)]
        if not self.is_inside and isinstance(item, LOOPS) and is_small([item], self.limits.block_work):
            return [self._one_block([item], [])]
        if isinstance(item, CountedLoop):
            body = [*self._items(item.ahead), *self._items(item.body)]
            for view in item.slices:
                view.ring = 0 if view.ring >= item.length else view.ring
            return [Repeat(item.length, item.reverse, body, item.slices)]
        if isinstance(item, (ConditionalLoop, Branch)) and self.guarded and not self.is_inside:
            raise MissingForm(f"{type(item).__name__} waits for the device")
        if isinstance(item, ConditionalLoop):
            return [While(self._items(item.test), item.flag, self._items(item.body))]
        if isinstance(item, Branch):
            return [Choose(item.index, [self._items(branch) for branch in item.branches])]
        assert isinstance(item, (LibraryCall, EarlyExit))
        raise MissingForm(item.routine if isinstance(item, LibraryCall) else "EarlyExit")

    def _report(self, flag: StridedRef, bit: int) -> Step:
        """A kernel that sets a bit of the status where a flag is true."""
        self.reports |= bit
        register = Register(flag.buffer.dtype)
        nest = LoopNest((), 0, [NestStage(False, [Load(register, StridedRef(flag.buffer, flag.offset, ()))])])
        return report_kernel(self.library, nest, register, bit)

    def _one_block(self, items: Sequence[Item], flags: Sequence[tuple[StridedRef, int]]) -> Step:
        """A kernel of one block that runs small items, loops and branches included, one after the other."""
        library = KernelLibrary(definitions=self.library.definitions)
        inside = Planner(self.program, False, False, library)
        steps = inside._items(items)
        steps += [inside._report(flag, bit) for flag, bit in flags]
        self.reports |= inside.reports
        return block_kernel(self.library, steps)

    def _fill(self, buffer: Buffer, value: Any) -> list[Step]:
        if buffer.size == 0:
            return []
        store = Store(StridedRef(buffer, 0, (1,)), Literal(value, buffer.dtype))
        return self._nest(LoopNest((buffer.size,), 0, [NestStage(True, [store])]))

    def _copy(self, target: Buffer, source: Buffer) -> Step:
        if not self.guarded and not self.is_inside:
            return Move(target, source)
        register = Register(target.dtype)
        code: list[Instruction] = [
            Load(register, StridedRef(source, 0, (1,))),
            Store(StridedRef(target, 0, (1,)), register),
        ]
        (step,) = self._nest(LoopNest((target.size,), 0, [NestStage(True, code)]))
        return step

    # -- nests ------------------------------------------------------------------------------------------------------
    def _nest(self, nest: LoopNest) -> list[Step]:
        """The launches of a nest."""
        if 0 in nest.domain:
            return [step for buffer, value in nest.fills for step in self._fill(buffer, value)]
        nest = without_unit_axes(LoopNest(nest.domain, nest.outer or 0, nest.stages, nest.fills))
        rows = reductions_of_rows(nest)
        if rows is None and any([isinstance(each, Accumulate) for each in nest.code]):
            first, *behind = without_accumulation(nest)
            if behind:
                steps = self._filled(first) if first.stages else []
                return [*steps, *[step for each in behind for step in self._nest(each)]]
        steps = self._filled(nest if rows is None else rows[0])
        return [*steps, *[step for each in (rows or [])[1:] for step in self._form(each)]]

    def _filled(self, nest: LoopNest) -> list[Step]:
        """The launches of a nest, and of its fills before."""
        steps = [step for buffer, value in nest.fills for step in self._fill(buffer, value)]
        return [*steps, *self._form(nest)]

    def _form(self, nest: LoopNest) -> list[Step]:
        """The launches of a nest whose buffers are filled."""
        outer, rank = nest.outer or 0, len(nest.domain)
        is_reduction = any([isinstance(each, (Reduce, Running)) for each in nest.code])
        if len(nest.stages) == 1 and not is_reduction:
            return self._sorted_updates(nest) or [self._elementwise(nest)]
        bare, scratch = nest, list(row_scratch(nest, self._shared))
        nest = with_row_scratch(nest, scratch)
        rows = list(range(outer))
        parallel = parallel_axes(nest, nest.code, rows)
        if parallel != rows:
            order = [*parallel, *[axis for axis in rows if axis not in parallel], *range(outer, rank)]
            return [thread_kernel(self.library, permuted(nest, order, outer), range(len(parallel)), title_of(nest))]
        count = math.prod(nest.domain[:outer])
        longest = math.prod(nest.domain[outer:])
        inner = [stage for stage in nest.stages if stage.inner]
        can_split = all([self._is_free_inside(nest, stage) for stage in inner])
        across = _lies_across(nest)
        scans = any([isinstance(each, Running) for each in nest.code])
        is_busy = count > (self.limits.many_scans if scans else self.limits.busy)
        if not can_split or longest <= self.limits.short_row or (is_busy and across):
            return [thread_kernel(self.library, nest, rows, title_of(nest))]
        if count >= self.limits.few_rows or count * longest <= self.limits.little:
            if count >= self.limits.few_rows and across and len(inner) == 1 and not scans:
                return self._chunked(nest, count, longest)
            unit = self._unit_for(longest)
            own = sum([buffer.bytes for buffer in scratch])
            if unit.kind == "warp" and THREADS // WARP * own > self.limits.shared:
                unit = Unit("block", THREADS)
            if scratch and (THREADS // WARP if unit.kind == "warp" else 1) * own <= self.limits.shared:
                unit.shared = scratch
                return [unit_kernel(self.library, bare, unit, title_of(nest))]
            return [unit_kernel(self.library, nest, unit, title_of(nest))]
        if not scans and (
            len(nest.stages) == 1 or (len(inner) == 1 and nest.stages[0].inner and len(nest.stages) == 2)
        ):
            return self._chunked(nest, count, longest)
        return [step for part in split_stages(nest) for step in self._part(part)]

    def _part(self, nest: LoopNest) -> list[Step]:
        """The launches of one stage of a nest with few rows."""
        inner = [stage for stage in nest.stages if stage.inner]
        outer, rank = nest.outer or 0, len(nest.domain)
        if not inner:
            return [thread_kernel(self.library, nest, range(outer), title_of(nest))]
        count, longest = math.prod(nest.domain[:outer]), math.prod(nest.domain[outer:])
        if any([isinstance(each, Running) for each in nest.code]):
            return self._scanned(nest, count, longest)
        if any([isinstance(each, Reduce) for each in nest.code]):
            return self._chunked(nest, count, longest)
        code = [each for stage in nest.stages for each in stage.code]
        whole = permuted(LoopNest(nest.domain, rank, [NestStage(False, code)]), range(rank), rank)
        return [thread_kernel(self.library, whole, range(rank), title_of(nest))]

    def _is_free_inside(self, nest: LoopNest, stage: NestStage) -> bool:
        """Whether the loops of an inner stage may run in any order, reductions aside."""
        if any([isinstance(each, (StoreAt, Accumulate)) for each in stage.code]):
            return False
        if any([isinstance(each, Running) for each in stage.code]) and not _is_scan(stage.code):
            return False
        inner = [axis for axis in range(nest.outer or 0, len(nest.domain)) if nest.domain[axis] > 1]
        return bool(inner) and parallel_axes(nest, stage.code, inner) == inner

    def _elementwise(self, nest: LoopNest) -> Step:
        """One stage without reductions: a thread for every index of the axes that allow it."""
        rank = len(nest.domain)
        code = nest.stages[0].code
        axes = list(range(rank)) if nest.stages[0].inner else list(range(nest.outer or 0))
        parallel = parallel_axes(nest, code, axes)
        rest = [axis for axis in axes if axis not in parallel]
        if not rest:
            whole = LoopNest(nest.domain[: len(axes)], len(axes), [NestStage(False, code)])
            tiling = self._tiling(permuted(whole, axes, len(axes)))
            if tiling is not None:
                return tiled_kernel(self.library, tiling[0], tiling[1], title_of(nest))
            return thread_kernel(self.library, permuted(whole, axes, len(axes)), axes, title_of(nest))
        order = [*parallel, *rest]
        inner = permuted(LoopNest(nest.domain, 0, [NestStage(True, code)]), order, len(parallel))
        return thread_kernel(self.library, inner, range(len(parallel)), title_of(nest))

    def _unit_for(self, longest: int) -> Unit:
        """The unit for a row of this number of elements."""
        if longest <= self.limits.warp_row:
            return Unit("warp", WARP)
        return Unit("block", THREADS if longest <= self.limits.block_row else 2 * THREADS)

    def _tiling(self, nest: LoopNest) -> tuple[LoopNest, Tiling] | None:
        """The tiles for loads whose order is not that of the stores; None where all are adjacent along one axis."""
        code = nest.code
        stores = [each for each in code if isinstance(each, Store)]
        loads = [each for each in code if isinstance(each, Load)]
        if not all([isinstance(each, (Load, Store, Apply, Position)) for each in code]) or not stores:
            return None
        written = {id(each.ref.buffer.storage) for each in stores}
        if any([id(each.ref.buffer.storage) in written for each in loads]):
            return None
        near = next((axis for axis, stride in enumerate(stores[0].ref.strides) if abs(stride) == 1), None)
        if near is None or nest.domain[near] < self.limits.tile:
            return None
        if any([abs(each.ref.strides[near]) > 1 for each in stores]):
            return None
        far: int | None = None
        distant = []
        for each in loads:
            if abs(each.ref.strides[near]) * each.ref.buffer.dtype.itemsize < self.limits.far:
                continue
            axis = next((axis for axis, stride in enumerate(each.ref.strides) if abs(stride) == 1), None)
            if axis is None or nest.domain[axis] < self.limits.tile or far not in (None, axis) or axis == near:
                continue
            far = axis
            distant.append(each)
        tile_bytes = sum([TILE * (TILE + 1) * each.ref.buffer.dtype.itemsize for each in distant])
        if far is None or tile_bytes > self.limits.shared:
            return None
        return nest, Tiling(near, far, distant)

    def _sorted_updates(self, nest: LoopNest) -> list[Step] | None:
        """Writes at computed, possibly equal places, sorted by their places; None for other nests, or few writes."""
        if self.guarded or self.is_inside or not nest.stages[0].inner or nest.outer:
            return None
        code, rank = nest.stages[0].code, len(nest.domain)
        writes = [each for each in code if isinstance(each, (Store, StoreAt, Accumulate))]
        store = writes[0] if len(writes) == 1 else None
        if not isinstance(store, StoreAt):
            return None
        if any(
            [
                id(each.ref.buffer.storage) == id(store.ref.buffer.storage)
                for each in accesses_of(code)
                if each is not store
            ]
        ):
            return None
        independent = parallel_axes(nest, code, list(range(rank)))
        updates = [axis for axis in range(rank) if axis not in independent]
        count = math.prod([nest.domain[axis] for axis in updates])
        if count < self.limits.updates or count * self.limits.updates < math.prod(
            [nest.domain[axis] for axis in independent]
        ):
            return None
        depends = varies(nest, code)
        fixed = nest.padded(store.ref).strides
        if any([fixed[axis] for axis in updates]):
            return None
        if any([depends.get(id(index.value), set()) & set(independent) for index in store.indices]):
            return None
        keys, order = Buffer(count, np.dtype(np.int64)), Buffer(count, np.dtype(np.int64))
        indices = [Reduce(Register(index.value.dtype), "add", index.value) for index in store.indices]
        of_keys = needed_by([*code, *indices], indices)[: -len(indices)]
        last = LoopNest(nest.domain, 0, [NestStage(True, [*[each for each in code if each is not store], store])])
        turned = permuted(last, [*updates, *independent], 0)
        lengths = turned.domain[: len(updates)]
        key_code = [with_axis_order(each, [*updates, *independent], rank) for each in of_keys]
        first = LoopNest(lengths, len(lengths), [NestStage(False, key_code)])
        return [
            key_kernel(self.library, first, store, keys, "places"),
            Order(keys, order),
            segment_kernel(self.library, turned, len(updates), keys, order, title_of(nest)),
        ]

    def _scanned(self, nest: LoopNest, count: int, longest: int) -> list[Step]:
        """Running reductions of few long rows: the results of chunks, those at their ends, and all of them."""
        chunks = min(-(-longest // self.limits.chunk), max(1, 4 * self.limits.busy // THREADS // count))
        chunks = -(-longest // -(-longest // chunks))
        if chunks == 1 or len(nest.stages) > 1:
            return [unit_kernel(self.library, nest, self._unit_for(longest), title_of(nest))]
        outer, code = nest.outer or 0, nest.stages[0].code
        rows = nest.domain[:outer]
        running = [each for each in code if isinstance(each, Running)]
        early = [each for each in needed_by(code, running) if not isinstance(each, Running)]
        totals = [Reduce(Register(each.out.dtype), each.op, each.value) for each in running]
        partials = [Buffer(count * chunks, each.out.dtype) for each in running]
        starts = [Buffer(count * chunks, each.out.dtype) for each in running]
        ends: list[Instruction] = []
        for each, source, target in zip(running, partials, starts, strict=True):
            value, result = Register(each.out.dtype), Register(each.out.dtype)
            steps = row_major((*rows, chunks))
            ends += [Load(value, StridedRef(source, 0, steps)), Running(result, each.op, value)]
            ends.append(Store(StridedRef(target, 0, steps), result))
        first = LoopNest(nest.domain, outer, [NestStage(True, [*early, *totals])])
        second = LoopNest((*rows, chunks), outer, [NestStage(True, ends)])
        return [
            unit_kernel(self.library, first, Unit("block", THREADS, chunks, partials), title_of(nest)),
            *self._form(second),
            unit_kernel(self.library, nest, Unit("block", THREADS, chunks, starts=starts), title_of(nest)),
        ]

    def _chunked(self, nest: LoopNest, count: int, longest: int) -> list[Step]:
        """A reduction whose rows are cut into chunks, and one of the chunks."""
        outer = nest.outer or 0
        across = _lies_across(nest)
        place = next(place for place, stage in enumerate(nest.stages) if stage.inner)
        if across:
            chunks = min(-(-longest // self.limits.lane_chunk), max(1, 4 * self.limits.busy // count))
        else:
            chunks = min(-(-longest // self.limits.chunk), max(1, 4 * self.limits.busy // THREADS // count))
        chunks = -(-longest // -(-longest // chunks))
        kind, lanes = ("thread", 1) if across else ("block", THREADS)
        if chunks == 1:
            unit = Unit("thread", 1) if across else self._unit_for(longest)
            return [unit_kernel(self.library, nest, unit, title_of(nest))]
        reductions = [each for each in nest.stages[place].code if isinstance(each, Reduce)]
        partials = [Buffer(count * chunks, each.out.dtype) for each in reductions]
        first = LoopNest(nest.domain, outer, nest.stages[: place + 1])
        unit = Unit(kind, lanes, chunks, partials)
        rows = nest.domain[:outer]
        code: list[Instruction] = []
        for each, buffer in zip(reductions, partials, strict=True):
            value = Register(each.out.dtype)
            steps = row_major(rows) if across else tuple([step * chunks for step in row_major(rows)])
            code += [
                Load(value, StridedRef(buffer, 0, (*steps, count if across else 1))),
                Reduce(each.out, each.op, value),
            ]
        after = [NestStage(stage.inner, stage.code) for stage in nest.stages[place + 1 :]]
        before = nest.stages[:place]
        second = LoopNest((*rows, chunks), outer, [*before, NestStage(True, code), *after])
        launch = unit_kernel(self.library, first, unit, title_of(nest))
        if chunks <= self.limits.short_row:
            return [launch, thread_kernel(self.library, second, range(outer), "the chunks of it")]
        finish = Unit("warp", WARP) if chunks <= self.limits.warp_row else Unit("block", THREADS)
        if across and count >= self.limits.busy:
            finish = Unit("thread", 1)
        return [launch, unit_kernel(self.library, second, finish, "the chunks of it")]


LOOPS = (CountedLoop, ConditionalLoop, Branch)


def _is_scan(code: Sequence[Instruction]) -> bool:
    """Whether a tree may combine the running reductions of a stage: none needs another's result, and they read only
    unwritten values.
    """
    running = [each for each in code if isinstance(each, Running)]
    early = needed_by(code, running)
    if any([isinstance(each, Reduce) for each in code]):
        return False
    results = {id(each.out) for each in running}
    if any([id(x) in results for each in early for x in operands_of(each)]):
        return False
    written: set[int] = set()
    chosen = set(map(id, early))
    for each in code:
        if isinstance(each, (Load, LoadAt)) and id(each) in chosen and id(each.ref.buffer.storage) in written:
            return False
        if isinstance(each, Store):
            written.add(id(each.ref.buffer.storage))
    return True


def is_small(items: Sequence[Item], work: int) -> bool:
    """Whether one block runs items as fast as launches of kernels would start them."""
    for item in items:
        if isinstance(item, LoopNest):
            if math.prod(item.domain) > work or any([buffer.size > work for buffer, _ in item.fills]):
                return False
        elif isinstance(item, Dot):
            if math.prod(item.batch) * math.prod(item.sizes) > 8 * work:
                return False
        elif isinstance(item, (Fill, Copy)):
            if (item.buffer if isinstance(item, Fill) else item.target).size > work:
                return False
        elif isinstance(item, (LibraryCall, EarlyExit)):
            return False
        if not all([is_small(body, work) for body in bodies_of(item)]):
            return False
    return True


def groups_of(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Items in groups of at most this number, counting those inside loops and branches; one item stays whole."""
    groups: list[list[Item]] = [[]]
    size = 0
    for item in items:
        own = _count(item)
        if groups[-1] and size + own > most:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += own
    return list(groups)


def _count(item: Item) -> int:
    own = len(item.stages) if isinstance(item, LoopNest) else 1
    return own + sum([_count(each) for body in bodies_of(item) for each in body])


def without_long_chains(item: Item, most: int) -> list[Item]:
    """A nest of one row with many stages, split into several; any other item unchanged."""
    if not isinstance(item, LoopNest) or len(item.stages) <= most or math.prod(item.domain[: item.outer or 0]) != 1:
        return [item]
    return list(split_stages(item, most))


def _lies_across(nest: LoopNest) -> bool:
    """Whether neighbouring rows, instead of neighbouring elements of a row, are adjacent in memory."""
    outer, rank = nest.outer or 0, len(nest.domain)
    if not outer or rank == outer:
        return False
    across = along = 0
    for each in accesses_of(nest.code):
        ref = nest.padded(each.ref)
        if not any(ref.strides[outer:]):
            continue
        across += ref.strides[outer - 1] == 1
        along += ref.strides[rank - 1] == 1
    return across > along


def _shared_buffers(items: Sequence[Item]) -> set[int]:
    """The buffers (by id) that several items use."""
    users: dict[int, int] = {}

    def visit(items: Sequence[Item]) -> None:
        for item in items:
            for key in {id(buffer) for buffer in own_buffers(item)} | {
                id(buffer.storage) for buffer in own_buffers(item)
            }:
                users[key] = users.get(key, 0) + 1
            for body in bodies_of(item):
                visit(body)

    visit(items)
    return {key for key, number in users.items() if number > 1}


def is_for_library(dot: Dot) -> bool:
    """Whether cuBLAS computes a product: of floats, with adjacent elements along one axis of each matrix, at most one
    batch axis, and sizes below 2**31.
    """
    if dot.out.buffer.dtype.kind != "f" or dot.out.buffer.dtype.itemsize < 4:
        return False
    if math.prod(dot.batch) * math.prod(dot.sizes) < LIMITS.library_work:
        return False
    m, k, n = dot.sizes
    shapes = ((dot.out, (m, n)), (dot.x, (m, k)), (dot.y, (k, n)))
    numbers = [m, k, n, math.prod(dot.batch), *[abs(stride) for ref, _ in shapes for stride in ref.strides[-2:]]]
    if max(numbers) >= 1 << 31:
        return False
    return all([_is_matrix(ref.strides[-2:], shape) and _is_one_batch(ref, dot.batch) for ref, shape in shapes])


def _is_matrix(strides: Sequence[int], shape: tuple[int, int]) -> bool:
    (down, across), (rows, columns) = strides, shape
    return ((across == 1 or columns == 1) and (down >= columns or rows == 1)) or (
        (down == 1 or rows == 1) and (across >= rows or columns == 1)
    )


def _is_one_batch(ref: StridedRef, batch: Sequence[int]) -> bool:
    """Whether the axes of a batch are one axis with one stride."""
    axes = [(length, stride) for length, stride in zip(batch, ref.strides, strict=False) if length > 1]
    return all([axes[i][1] == axes[i + 1][1] * axes[i + 1][0] for i in range(len(axes) - 1)])


def product_nest(dot: Dot) -> LoopNest:
    """A product as a nest whose rows are the elements of the result."""
    m, k, n = dot.sizes
    batch = len(dot.batch)
    dtype = dot.out.buffer.dtype

    def ref(old: StridedRef, places: Sequence[int | None]) -> StridedRef:
        last = [0 if place is None else old.strides[batch + place] for place in places]
        return StridedRef(old.buffer, old.offset, (*old.strides[:batch], *last))

    x, y, product, total = [Register(dtype) for _ in range(4)]
    code: list[Instruction] = [
        Load(x, ref(dot.x, (0, None, 1))),
        Load(y, ref(dot.y, (None, 1, 0))),
        Apply(product, "multiply", (x, y)),
        Reduce(total, "add", product),
    ]
    out = StridedRef(dot.out.buffer, dot.out.offset, dot.out.strides[: batch + 2])
    stages = [NestStage(True, code), NestStage(False, [Store(out, total)])]
    return LoopNest((*dot.batch, m, n, k), batch + 2, stages)


def title_of(nest: LoopNest) -> str:
    """The operations of a nest in a few words."""
    ops: list[str] = []
    for each in nest.code:
        op = getattr(each, "op", None)
        if op is not None and op not in ops:
            ops.append(op)
    return ", ".join(ops[:6]) or "copy"
