"""Loop nests as kernels: a thread, a warp or a block for every row.

Reductions run in a fixed order: every lane reduces its share of a row in order, then a tree combines the lanes. The
number of lanes follows from the shapes alone, so a result is the same in every run and on every device.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from func.backends import ir
from func.backends.c.declarations import c_type, literal, stored_type
from func.backends.c.expressions import CBuilder
from func.backends.c.loop_nests import LONG, Accumulator, BodyWriter, Memory, NestWriter, StageWriter, index_text
from func.backends.cuda.dialect import CudaDefinitions, CudaScalars, vector_length
from func.backends.cuda.nest_forms import READS, accesses_of, needed_by, operations_of
from func.backends.llvm.codegen.stage_plans import StagePlan, accumulated
from func.backends.loops import kernels
from func.backends.loops.chunking import length_of, row_groups
from func.backends.records import Record
from func.backends.scalars.ir_values import Value

WARP = 32
THREADS = 256
"""Threads of a block of most kernels."""
MOST_BLOCKS = 4096
"""Blocks of the largest grid; threads stride through the rest."""
SMALL_INDEX = 1 << 31
UNROLLED_WORK = 8.0
"""Operations of a pass up to which the compiler unrolls loops as it likes. Longer passes hide the loop, and copies of
them cost registers, spills and most of the time of NVRTC."""
MOST_SLOTS = 16
"""Places of one type in shared memory through which the warps of a block combine reductions."""


SIZES = {"double": 8, "float": 4, "uint64_t": 8, "int64_t": 8, "uint32_t": 4, "int32_t": 4, "uint16_t": 2}
SIZES |= {"int16_t": 2, "uint8_t": 1, "int8_t": 1, "bool": 1}
"""Bytes of the types of C."""


class Launch(Record):
    """One kernel on a grid: its name, the blocks, the threads of a block, the buffers whose addresses it takes."""

    kernel: str
    blocks: int
    threads: int
    buffers: list[kernels.Buffer]
    takes_status: bool
    title: str
    nest: kernels.LoopNest | None = None
    """Its computation, for reports and models."""
    inside: Any = None
    """The steps that one block runs, where the kernel is that of `block_programs.py`."""
    shared: int = 0
    """Bytes of shared memory that a function takes from the kernel of one block that calls it."""
    scans: bool = False
    """Whether running reductions are combined as trees."""
    in_order: bool = False
    """Whether one thread combines all terms of a reduction, in the order of the loops."""


class Unit(Record):
    """The unit of a row: "thread", "warp" or "block" with this number of lanes, for each of `chunks` parts of a row."""

    kind: str
    lanes: int
    chunks: int = 1
    partials: list[kernels.Buffer] | None = None
    """The buffers for parts of reductions, one for each reduction of the last stage."""
    shared: list[kernels.Buffer] | None = None
    """The scratch of a row in shared memory."""
    starts: list[kernels.Buffer] | None = None
    """The running results at the ends of chunks, one buffer for each of the stage."""


class KernelLibrary:
    """The kernels of a program, each once."""

    def __init__(self, guarded: bool = False, definitions: CudaDefinitions | None = None) -> None:
        self.texts: dict[str, str] = {}
        self.definitions = definitions or CudaDefinitions()
        self.guarded = guarded
        """Whether kernels do nothing unless the program's status reports a NaN in an output."""
        self.is_inside = definitions is not None
        """Whether the added functions are for a kernel of one block, with a block of the usual size."""

    def source(self) -> str:
        """The definitions and the kernels."""
        body = "\n\n".join(self.texts.values())
        return f"{self.definitions.device_text(body)}\n\n{body}\n"

    def add(self, body: str, parameters: Sequence[str], threads: int, uses_status: bool) -> tuple[str, bool]:
        """The name of a kernel with this body, and whether it takes the status."""
        if self.is_inside:
            return self._add_function(body, parameters, uses_status)
        takes_status = uses_status or self.guarded
        listed = [*parameters, *(["int *__restrict__ func_status"] if takes_status else [])]
        lines = [f'extern "C" __global__ void __launch_bounds__({threads}) KERNEL({", ".join(listed)}) {{']
        if self.guarded:
            lines += ["    if ((*func_status & 1) == 0) {", "        return;", "    }"]
        if uses_status:
            lines.append("    int status = 0;")
        lines.append(body)
        if uses_status:
            lines += ["    if (status != 0) {", "        atomicOr(func_status, status);", "    }"]
        text = "\n".join([*lines, "}"])
        name = f"func_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self.texts.setdefault(name, text.replace("KERNEL", name))
        return name, takes_status

    def _add_function(self, body: str, parameters: Sequence[str], uses_status: bool) -> tuple[str, bool]:
        """A function with this body. Its pointers promise nothing, since other functions of the kernel write there."""
        listed = [parameter.replace(" __restrict__", "") for parameter in parameters]
        listed += ["int *func_status"] if uses_status else []
        lines = [f"static __device__ void KERNEL({', '.join(listed)}) {{"]
        lines += ["    int status = 0;"] if uses_status else []
        lines.append(body)
        if uses_status:
            lines += ["    if (status != 0) {", "        atomicOr(func_status, status);", "    }"]
        text = "\n".join([*lines, "}"])
        name = f"func_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self.definitions.texts.setdefault(name, text.replace("KERNEL", name))
        return name, uses_status

    def threads(self, threads_of_row: int) -> int:
        """The threads of a block: those of the kernel around a function."""
        return THREADS if self.is_inside else threads_of_row


class KernelWriter:
    """Writes one kernel."""

    def __init__(self, library: KernelLibrary, nest: kernels.LoopNest | None, title: str) -> None:
        self.library = library
        self.builder = CBuilder()
        self.builder.keeps_loops = nest is not None and operations_of(nest.code) > UNROLLED_WORK
        self.memory = Memory()
        self.scalars = CudaScalars(self.builder, library.definitions)
        self.nests = NestWriter(self.builder, self.scalars, self.memory)
        self.nest, self.title = nest, title
        self.buffers: list[kernels.Buffer] = []
        self.writes: set[int] = set()
        self.local: dict[int, str] = {}
        """The names of memory (by id) that belongs to the kernel."""
        self.shared = 0

    def declare_shared(self, word: str, name: str, count: int) -> None:
        """Declare an array in shared memory. Functions that one kernel calls after each other have theirs at one place,
        since a block has 48 KiB in all."""
        if not self.library.is_inside:
            self.builder.line(f"__shared__ {word} {name}[{count}];")
            return
        self.builder.line(f"{word} *const {name} = reinterpret_cast<{word} *>(func_shared + {self.shared});")
        self.shared += -(-count * SIZES[word] // 16) * 16

    def declare(self, nest: kernels.LoopNest, more: Sequence[kernels.Buffer] = ()) -> None:
        """Name the buffers that a nest touches, and other written ones."""
        for each in accesses_of(nest.code):
            self._name(each.ref.buffer)
            if not isinstance(each, READS):
                self.writes.add(id(each.ref.buffer.storage))
        for buffer in more:
            self._name(buffer)
            self.writes.add(id(buffer.storage))

    def _name(self, buffer: kernels.Buffer) -> None:
        if id(buffer) in self.local:
            self.memory.names[id(buffer)] = self.local[id(buffer)]
        elif id(buffer) not in self.memory.names:
            self.memory.names[id(buffer)] = f"p{len(self.buffers)}"
            self.buffers.append(buffer)

    def parameters(self) -> list[str]:
        """The declarations of the pointers."""
        storages = [id(buffer.storage) for buffer in self.buffers]
        listed = []
        for buffer, storage in zip(self.buffers, storages, strict=True):
            const = "" if storage in self.writes else "const "
            alone = " __restrict__ " if storages.count(storage) == 1 else " "
            listed.append(f"{const}{stored_type(buffer.dtype)} *{alone}{self.memory.name(buffer)}")
        return listed

    def launch(self, blocks: int, threads: int) -> Launch:
        """The launch of the written kernel."""
        body = self.builder.text(1)
        parameters = [*self.parameters(), *(["char *func_shared"] if self.shared else [])]
        name, takes_status = self.library.add(body, parameters, threads, "status |=" in body)
        return Launch(name, blocks, threads, self.buffers, takes_status, self.title, self.nest, None, self.shared)

    def index_word(self, total: int) -> str:
        """The type of indices: 64 bits only where 32 are too few."""
        reach = max([total, *[2 * buffer.storage.size for buffer in self.buffers]])
        return "int" if reach < SMALL_INDEX // 2 else "func_long"


# -- one thread for a row -------------------------------------------------------------------------------------------
def thread_kernel(library: KernelLibrary, nest: kernels.LoopNest, parallel: Sequence[int], title: str) -> Launch:
    """A thread for every index of some leading axes; it runs all other loops in order."""
    writer = KernelWriter(library, nest, title)
    writer.declare(nest)
    b = writer.builder
    rows = math.prod([nest.domain[axis] for axis in parallel])
    groups = row_groups(nest)
    outer = [group for group in groups if set(group) <= set(parallel)]
    if sum(map(len, outer)) != len(parallel):  # a group has both kinds
        groups = [[axis] for axis in range(nest.outer or 0)]
        outer = [[axis] for axis in parallel]
    rest = [group for group in groups if not set(group) & set(parallel)]
    word = writer.index_word(rows)
    blocks = max(1, min(-(-rows // THREADS), MOST_BLOCKS))
    threads = library.threads(min(THREADS, -(-rows // WARP) * WARP) if rows > 1 else 1)
    vector = _vector_plan(nest, outer, rest)
    if vector > 1:
        return _vector_kernel(writer, nest, rows, vector, word)
    if rows == 1:
        with b.braces("if (blockIdx.x == 0 && threadIdx.x == 0) {"):
            _sequential(writer, nest, [*outer, *rest], {axis: "0" for group in outer for axis in group})
        launch = writer.launch(1, WARP)
    else:
        with _rolled(b, _strided_loop(word, "row", rows, threads)):
            at = _decomposed(b, word, "row", nest, outer)
            _sequential(writer, nest, [*outer, *rest], at)
        launch = writer.launch(blocks, threads)
    lengths = [StagePlan(nest, stage, None, 64).lengths for stage in nest.stages if stage.inner]
    launch.in_order = all([not each or each[-1] < LONG for each in lengths])
    return launch


def _strided_loop(word: str, name: str, count: int, threads: int) -> str:
    start = f"{name} = ({word})blockIdx.x * {threads} + ({word})threadIdx.x"
    return f"for ({word} {start}; {name} < {count}; {name} += ({word})gridDim.x * {threads}) {{"


@contextmanager
def _rolled(b: CBuilder, opening: str) -> Iterator[None]:
    """A loop over rows that the compiler does not unroll: most threads have one row, and others hide the time of a
    load."""
    b.line("#pragma unroll 1")
    with b.braces(opening):
        yield


def _decomposed(
    b: CBuilder, word: str, flat: str, nest: kernels.LoopNest, groups: Sequence[Sequence[int]]
) -> dict[int, str]:
    """The indices of loops in a flat index, by the last dimensions of the loops; the last one runs fastest."""
    at: dict[int, str] = {}
    size = 1
    for place, group in reversed(list(enumerate(groups))):
        length = length_of(nest, group)
        if len(groups) == 1:
            at[group[-1]] = flat
            continue
        name = b.fresh("r")
        text = flat if size == 1 else f"{flat} / {size}"
        if place > 0:
            text = f"{text} % {length}"
        b.declare(name, f"const {word} {name} = {text};")
        at[group[-1]] = name
        size *= length
    return at


def _sequential(
    writer: KernelWriter, nest: kernels.LoopNest, groups: Sequence[Sequence[int]], at: dict[int, str]
) -> None:
    """The rows of a nest at given indices of some loops, in order along the others."""
    b = writer.builder
    left = [group for group in groups if group[-1] not in at]
    if left:
        with b.counted(length_of(nest, left[0])) as i:
            _sequential(writer, nest, groups, {**at, left[0][-1]: i})
        return
    registers: dict[int, Value] = {}
    dims = [group[-1] for group in groups]
    texts = [at[axis] for axis in dims]
    for stage in nest.stages:
        if stage.inner:
            stage_writer = StageWriter(writer.nests, nest, stage, dims, texts, registers)
            stage_writer.block = None
            stage_writer.emit()
        else:
            body = BodyWriter(writer.nests, dims, texts, registers, registers)
            for instruction in stage.code:
                body.emit(instruction)


# -- vectors of elements --------------------------------------------------------------------------------------------
def _vector_plan(nest: kernels.LoopNest, outer: Sequence[Sequence[int]], rest: Sequence[Any]) -> int:
    """The elements that a thread loads at once; 1 where elements do not lie next to each other."""
    if len(outer) != 1 or rest or len(nest.stages) != 1 or nest.stages[0].inner:
        return 1
    axis, length, widths, stored = outer[0][-1], length_of(nest, outer[0]), [], set()
    for each in accesses_of(nest.code):
        stride = each.ref.strides[axis] if axis < len(each.ref.strides) else 0
        if isinstance(each, (kernels.LoadAt, kernels.StoreAt, kernels.Accumulate)):
            return 1
        if stride == 0 and isinstance(each, kernels.Load):
            continue
        buffer = each.ref.buffer
        if stride != 1 or buffer.base is not None or buffer.dtype.kind == "c":
            return 1
        if isinstance(each, kernels.Store):
            stored.add(id(buffer))
        elif id(buffer) in stored:
            return 1
        widths.append((vector_length(buffer.dtype), each.ref.offset))
    if any([isinstance(each, kernels.Position) for each in nest.code]) or not widths or length < 2 * THREADS:
        return 1
    written: dict[int, int] = {}
    for each in accesses_of(nest.code):
        written.setdefault(id(each.ref.buffer), each.ref.offset)
        if written[id(each.ref.buffer)] != each.ref.offset:
            return 1
    width = min(min([width for width, _ in widths]), 4)
    return width if all([offset % width == 0 for _, offset in widths]) else 1


def _vector_kernel(writer: KernelWriter, nest: kernels.LoopNest, rows: int, width: int, word: str) -> Launch:
    """Elementwise code for `width` neighbouring elements at a time, then for the rest."""
    b, code = writer.builder, nest.stages[0].code
    axis = len(nest.domain) - 1
    count, rest = rows // width, rows % width
    threads, blocks = THREADS, max(1, min(-(-count // THREADS), MOST_BLOCKS))
    loads: list[kernels.StridedRef] = []
    stores: list[kernels.StridedRef] = []
    for each in accesses_of(code):
        refs = loads if isinstance(each, kernels.Load) else stores
        if each.ref.strides and each.ref.strides[axis] and all([ref.buffer is not each.ref.buffer for ref in refs]):
            refs.append(each.ref)
    names: dict[int, str] = {}
    with _rolled(b, _strided_loop(word, "pack", count, threads)):
        for ref in loads:
            names[id(ref.buffer)] = b.fresh("q")
            kind = f"func_pack<{stored_type(ref.buffer.dtype)}, {width}>"
            start = index_text(ref.offset // width, [("pack", 1)])
            name, source = names[id(ref.buffer)], writer.memory.name(ref.buffer)
            b.line(f"const {kind} {name} = reinterpret_cast<const {kind} *>({source})[{start}];")
        for ref in stores:
            names.setdefault(-id(ref.buffer), b.fresh("o"))
            b.line(f"func_pack<{stored_type(ref.buffer.dtype)}, {width}> {names[-id(ref.buffer)]};")
        b.line("#pragma unroll")
        with b.braces(f"for (int lane = 0; lane < {width}; ++lane) {{"):
            _at_lane(writer, code, names, axis)
        for ref in stores:
            kind = f"func_pack<{stored_type(ref.buffer.dtype)}, {width}>"
            start = index_text(ref.offset // width, [("pack", 1)])
            b.effect(
                f"reinterpret_cast<{kind} *>({writer.memory.name(ref.buffer)})[{start}] = {names[-id(ref.buffer)]};"
            )
    if rest:
        with b.braces(f"if (blockIdx.x == 0 && threadIdx.x < {rest}) {{"):
            b.declare("row", f"const {word} row = {rows - rest} + ({word})threadIdx.x;")
            _sequential(writer, nest, [list(range(axis + 1))], {axis: "row"})
    return writer.launch(blocks, threads)


def _at_lane(writer: KernelWriter, code: Sequence[kernels.Instruction], names: dict[int, str], axis: int) -> None:
    """The code for one lane of packs: their elements have the names of packs."""
    nests, names_before = writer.nests, dict(writer.memory.names)
    registers: dict[int, Value] = {}
    body = BodyWriter(nests, [axis], ["lane"], registers, registers)
    for each in code:
        if not isinstance(each, (kernels.Load, kernels.Store)) or not (each.ref.strides and each.ref.strides[axis]):
            body.emit(each)
            continue
        buffer = each.ref.buffer
        is_load = isinstance(each, kernels.Load)
        pack = names.get(id(buffer) if is_load and id(buffer) in names else -id(buffer))
        writer.memory.names[id(buffer)] = f"{pack}.x"
        flat = kernels.StridedRef(buffer, 0, each.ref.strides)
        body.emit(each.with_fields(ref=flat))
        writer.memory.names.update(names_before)


# -- warps and blocks for a row -------------------------------------------------------------------------------------
def unit_kernel(library: KernelLibrary, nest: kernels.LoopNest, unit: Unit, title: str) -> Launch:
    """A unit of several lanes for every row, or for every chunk of every row."""
    return _UnitWriter(library, nest, unit, title).written()


class _UnitWriter(KernelWriter):
    def __init__(self, library: KernelLibrary, nest: kernels.LoopNest, unit: Unit, title: str) -> None:
        super().__init__(library, nest, title)
        self.unit = unit
        for buffer in unit.shared or ():
            self.local[id(buffer)] = f"own{len(self.local)}"
        self.declare(nest, unit.partials or ())
        for buffer in unit.starts or ():
            self._name(buffer)
        self.groups = row_groups(nest)
        self.rows = math.prod(nest.domain[: nest.outer or 0])
        self.registers: dict[int, Value] = {}
        self.pending: set[int] = set()
        """Memory (by id) written since the last barrier."""
        self.touched: set[int] = set()
        self.slots: dict[str, list[str]] = {}
        """Places of values of warps by their type, and the number of requests."""
        self.taken: dict[str, int] = {}
        self.has_barrier = False
        self.word = self.index_word(math.prod(nest.domain) * unit.chunks)

    def written(self) -> Launch:
        """The launch."""
        unit, b, word = self.unit, self.builder, self.word
        count = self.rows * unit.chunks
        threads = self.library.threads(
            unit.lanes if unit.kind == "block" else min(THREADS, -(-count * unit.lanes // WARP) * WARP)
        )
        per_block = threads // unit.lanes
        blocks = max(1, min(-(-count // per_block), 8 * MOST_BLOCKS))
        if unit.kind == "block":
            b.declare("lane", "const int lane = (int)threadIdx.x;")
            self._share(1)
            start, step = f"({word})blockIdx.x", f"({word})gridDim.x"
        else:
            mask = f"(int)threadIdx.x % {unit.lanes}" if unit.lanes > 1 else "0"
            b.declare("lane", f"const int lane = {mask};")
            self._share(per_block)
            b.declare(
                "unit", f"const {word} unit = (({word})blockIdx.x * {threads} + ({word})threadIdx.x) / {unit.lanes};"
            )
            start, step = "unit", f"({word})gridDim.x * {per_block}"
        with _rolled(b, f"for ({word} part = {start}; part < {count}; part += {step}) {{"):
            row, chunk = "part", ""
            if unit.chunks > 1:
                row, chunk = self._row_and_chunk()
            self.row = row
            at = _decomposed(b, word, row, self.nest, self.groups)  # type: ignore[arg-type]
            self.dims = [group[-1] for group in self.groups]
            self.texts = [at[axis] for axis in self.dims]
            assert self.nest is not None
            for stage in self.nest.stages:
                self._stage(stage, chunk)
            if unit.partials is not None:
                self._store_partials(row, chunk)
            if self.pending or self.has_barrier:
                self._barrier()
        launch = self.launch(blocks, threads)
        launch.scans = any([isinstance(each, kernels.Running) for each in self.nest.code])
        return launch

    def _share(self, units: int) -> None:
        """Declare the shared memory for this number of units of a block."""
        for buffer in self.unit.shared or ():
            name, word = self.local[id(buffer)], stored_type(buffer.dtype)
            size = buffer.size * (2 if buffer.dtype.kind == "c" else 1)
            self.declare_shared(word, f"{name}_all", size * units)
            place = f" + (int)threadIdx.x / {self.unit.lanes} * {size}" if units > 1 else ""
            self.builder.line(f"{word} *const {name} = {name}_all{place};")

    def _row_and_chunk(self) -> tuple[str, str]:
        """The row and the chunk of a part: threads next to each other have rows next to each other."""
        b, word, unit = self.builder, self.word, self.unit
        if unit.kind == "thread":
            b.declare("row", f"const {word} row = part % {self.rows};")
            b.declare("chunk", f"const {word} chunk = part / {self.rows};")
        else:
            b.declare("row", f"const {word} row = part / {unit.chunks};")
            b.declare("chunk", f"const {word} chunk = part % {unit.chunks};")
        return "row", "chunk"

    def _barrier(self) -> None:
        if self.unit.lanes > 1:
            self.builder.effect("__syncthreads();" if self.unit.kind == "block" else "__syncwarp();")
            self.has_barrier = True
        self.pending.clear()

    def _note(self, stage: kernels.NestStage) -> None:
        """Wait if a stage touches another's writes, or writes what another has read."""
        touched = {id(each.ref.buffer.storage) for each in accesses_of(stage.code)}
        written = {id(each.ref.buffer.storage) for each in accesses_of(stage.code) if not isinstance(each, READS)}
        if touched & self.pending or written & self.touched:
            self._barrier()
            self.touched.clear()
        self.pending |= written
        self.touched |= touched

    def _stage(self, stage: kernels.NestStage, chunk: str) -> None:
        self._note(stage)
        if stage.inner:
            self._inner(stage, chunk)
            return
        body = BodyWriter(self.nests, self.dims, self.texts, self.registers, self.registers)
        for each in stage.code:
            if isinstance(each, (kernels.Store, kernels.StoreAt, kernels.Accumulate)) and self.unit.lanes > 1:
                for x in _values_of(body, each):
                    self.builder.fix(x)
                with self.builder.braces("if (lane == 0) {"):
                    body.emit(each)
            else:
                body.emit(each)

    def _inner(self, stage: kernels.NestStage, chunk: str) -> None:
        b, unit, word, nest = self.builder, self.unit, self.word, self.nest
        assert nest is not None
        self.reductions = []
        if any([isinstance(each, kernels.Running) for each in stage.code]):
            self._scanned(nest, stage, chunk)
            return
        plan = StagePlan(nest, stage, None, 64)
        total = math.prod(plan.lengths)
        reductions = [each for each in stage.code if isinstance(each, kernels.Reduce)]
        accumulators = {id(each): Accumulator(self.nests, each.op, accumulated(each), 1, False) for each in reductions}
        before: dict[int, Value] = dict(self.registers)
        body = BodyWriter(self.nests, self.dims, self.texts, self.registers, before)
        for each in plan.levels[0]:
            body.emit(each)
        rest = [each for level in plan.levels[1:] for each in level]
        order = {id(each): place for place, each in enumerate(stage.code)}
        rest.sort(key=lambda each: order[id(each)])
        first, stop = self._span(total, chunk)
        index = b.fresh("j")
        start = "lane" if first == "0" else f"{first} + lane"
        with b.braces(f"for ({word} {index} = {start}; {index} < {stop}; {index} += {unit.lanes}) {{"):
            at = _flat_indices(b, word, index, plan)
            inside = dict(before)
            texts = [at[axis] for axis in plan.dims]
            body = BodyWriter(self.nests, [*self.dims, *plan.dims], [*self.texts, *texts], self.registers, inside)
            for each in rest:
                accumulator = accumulators.get(id(each))
                if accumulator is None:
                    body.emit(each)
                else:
                    assert isinstance(each, kernels.Reduce)
                    accumulator.add(body.value(each.value))
        for each in reductions:
            self._combine(accumulators[id(each)])
            self.registers[id(each.out)] = accumulators[id(each)].get()
        self.reductions = reductions

    def _span(self, total: int, chunk: str) -> tuple[str, str]:
        """The bounds of the elements of a part of a row."""
        b, word, chunks = self.builder, self.word, self.unit.chunks
        if chunks == 1:
            return "0", str(total)
        step = -(-total // chunks)
        first, stop = b.fresh("first"), b.fresh("stop")
        b.line(f"const {word} {first} = {chunk} * {step};")
        b.line(f"const {word} {stop} = {first} + {step} < {total} ? {first} + {step} : {total};")
        return first, stop

    def _scanned(self, nest: kernels.LoopNest, stage: kernels.NestStage, chunk: str) -> None:
        """A stage with running reductions: the lanes take neighbouring elements and combine them with the earlier lanes
        in log2 steps. They carry the last result on to the next elements.
        """
        b, unit, word = self.builder, self.unit, self.word
        plan = StagePlan(nest, stage, None, 64)
        running = [each for each in stage.code if isinstance(each, kernels.Running)]
        before: dict[int, Value] = dict(self.registers)
        body = BodyWriter(self.nests, self.dims, self.texts, self.registers, before)
        for each in plan.levels[0]:
            body.emit(each)
        outside = set(map(id, plan.levels[0]))
        rest = [each for each in stage.code if id(each) not in outside]
        early = [each for each in needed_by(rest, running) if not isinstance(each, kernels.Running)]
        chosen = {id(each) for each in (*early, *running)}
        carries = [Accumulator(self.nests, each.op, each.out.dtype, 1, False) for each in running]
        if unit.starts is not None:
            with b.braces(f"if ({chunk} > 0) {{"):
                for carry, buffer in zip(carries, unit.starts, strict=True):
                    carry.set(self.nests.read(buffer, [f"{self.row} * {unit.chunks} + {chunk} - 1"]))
        first, stop = self._span(math.prod(plan.lengths), chunk)
        base, index, is_in = b.fresh("base"), b.fresh("j"), b.fresh("is_in")
        with b.braces(f"for ({word} {base} = {first}; {base} < {stop}; {base} += {unit.lanes}) {{"):
            b.line(f"const bool {is_in} = {base} + lane < {stop};")
            b.line(f"const {word} {index} = {is_in} ? {base} + lane : {stop} - 1;")
            at = _flat_indices(b, word, index, plan)
            inside = dict(before)
            texts = [at[axis] for axis in plan.dims]
            body = BodyWriter(self.nests, [*self.dims, *plan.dims], [*self.texts, *texts], self.registers, inside)
            for each in early:
                body.emit(each)
            for scan, carry in zip(running, carries, strict=True):
                inside[id(scan.out)] = self._scan(scan, carry, body.value(scan.value), is_in)
            with b.braces(f"if ({is_in}) {{"):
                for each in rest:
                    if id(each) not in chosen:
                        body.emit(each)
            if unit.lanes > WARP:
                self._barrier()

    def _scan(self, scan: kernels.Running, carry: Accumulator, value: Value, is_in: str) -> Value:
        """The running result at every lane; the carry becomes that of the last one."""
        b, unit = self.builder, self.unit
        own = Accumulator(self.nests, scan.op, scan.out.dtype, 1, False)
        kind = c_type(own.kind)
        for part in own._parts(value):
            b.fix(part)
        with b.braces(f"if ({is_in}) {{"):
            own.set(value)
        distance = b.fresh("d")
        with b.braces(f"for (int {distance} = 1; {distance} < {WARP}; {distance} *= 2) {{"):
            other = [b.fresh("t") for _ in own.names]
            for name, mine in zip(other, own.names, strict=True):
                b.effect(f"const {kind} {name} = func_up({mine}, {distance});")
            with b.braces(f"if (lane % {WARP} >= {distance}) {{"):
                own.set(self._joined_by(scan, own._joined(other), own.get()))
        if unit.lanes == WARP:
            result = self._named(self._joined_by(scan, carry.get(), own.get()))
            texts = [b.fresh("t") for _ in own.names]
            for name, part in zip(texts, own._parts(result), strict=True):
                b.effect(f"const {kind} {name} = func_last(", part, ");")
            carry.set(own._joined(texts))
            return result
        slots = [self._slot(kind) for _ in own.names]
        with b.braces(f"if (lane % {WARP} == {WARP - 1}) {{"):
            for name, slot in zip(own.names, slots, strict=True):
                b.effect(f"{slot}[lane / {WARP}] = {name};")
        self._barrier()
        ahead = Accumulator(self.nests, scan.op, scan.out.dtype, 1, False)
        ahead.set(carry.get())
        warp = b.fresh("w")
        with b.braces(f"for (int {warp} = 0; {warp} < {unit.lanes // WARP}; ++{warp}) {{"):
            total = own._joined([f"{slot}[{warp}]" for slot in slots])
            with b.braces(f"if ({warp} < lane / {WARP}) {{"):
                ahead.set(self._joined_by(scan, ahead.get(), total))
            carry.set(self._joined_by(scan, carry.get(), total))
        return self._named(self._joined_by(scan, ahead.get(), own.get()))

    def _joined_by(self, scan: kernels.Running, left: Value, right: Value) -> Value:
        return self.nests.scalars.apply(scan.op, scan.out.dtype, [left, right], scan.out.dtype)

    def _named(self, value: Value) -> Value:
        """A value with names, computed here."""
        for part in Accumulator._parts(value):
            self.builder.fix(part)
        self.builder.epoch += 1
        return value

    def _combine(self, accumulator: Accumulator) -> None:
        """Combine the values of all lanes, as a tree; every lane has the result."""
        b, unit = self.builder, self.unit
        if unit.lanes == 1:
            return
        self._tree(accumulator, min(unit.lanes, WARP))
        if unit.lanes > WARP:
            warps = unit.lanes // WARP
            word = [c_type(part.type) for part in accumulator._parts(accumulator.start)]
            starts = [literal(part) for part in accumulator._parts(accumulator.start)]
            slots = [self._slot(kind) for kind in word]
            with b.braces("if (lane % 32 == 0) {"):
                for name, slot in zip(accumulator.names, slots, strict=True):
                    b.effect(f"{slot}[lane / 32] = {name};")
            self._barrier()
            for name, slot, start in zip(accumulator.names, slots, starts, strict=True):
                b.effect(f"{name} = lane % 32 < {warps} ? {slot}[lane % 32] : {start};")
            self._tree(accumulator, warps)
            self.has_barrier = True

    def _slot(self, word: str) -> str:
        """A place in shared memory for a value of every warp; it is used again after a barrier."""
        own = self.slots.setdefault(word, [])
        place = self.taken.get(word, 0)
        self.taken[word] = place + 1
        if place < MOST_SLOTS:
            own.append(self.builder.fresh("w"))
            self.declare_shared(word, own[-1], WARP)
        elif place % MOST_SLOTS == 0:
            self._barrier()
        return own[place % MOST_SLOTS]

    def _tree(self, accumulator: Accumulator, lanes: int) -> None:
        b = self.builder
        distance = b.fresh("d")
        with b.braces(f"for (int {distance} = {lanes // 2}; {distance} > 0; {distance} /= 2) {{"):
            other = [b.fresh("t") for _ in accumulator.names]
            kind = accumulator.kind
            for name, mine in zip(other, accumulator.names, strict=True):
                b.line(f"const {c_type(kind)} {name} = func_down({mine}, {distance});")
            b.epoch += 1
            accumulator.add(accumulator._joined(other))
        for name in accumulator.names:
            b.effect(f"{name} = func_first({name});")

    def _store_partials(self, row: str, chunk: str) -> None:
        b, unit = self.builder, self.unit
        assert unit.partials is not None
        place = f"{row} * {unit.chunks} + {chunk}" if unit.kind != "thread" else f"{chunk} * {self.rows} + {row}"
        values = [self.registers[id(each.out)] for each in self.reductions]
        with b.braces("if (lane == 0) {" if unit.lanes > 1 else "{"):
            for buffer, value in zip(unit.partials, values, strict=True):
                self.nests.write(buffer, [place], value)


def _values_of(body: BodyWriter, each: Any) -> list[ir.Value]:
    value = body.value(each.value)
    return [value.re, value.im] if hasattr(value, "re") else [value]


def _flat_indices(b: CBuilder, word: str, flat: str, plan: StagePlan) -> dict[int, str]:
    at: dict[int, str] = {}
    size = 1
    for place in reversed(range(len(plan.dims))):
        axis, length = plan.dims[place], plan.lengths[place]
        if len(plan.dims) == 1:
            at[axis] = flat
            continue
        name = b.fresh("r")
        text = flat if size == 1 else f"{flat} / {size}"
        if place > 0:
            text = f"{text} % {length}"
        b.declare(name, f"const {word} {name} = {text};")
        at[axis] = name
        size *= length
    return at


def report_kernel(library: KernelLibrary, nest: kernels.LoopNest, flag: kernels.Register, bit: int) -> Launch:
    """A kernel that sets a bit of the status where a boolean in memory is true."""
    writer = KernelWriter(library, nest, "report")
    writer.declare(nest)
    registers: dict[int, Value] = {}
    body = BodyWriter(writer.nests, [], [], registers, registers)
    for each in nest.code:
        body.emit(each)
    writer.builder.line("status |= ", registers[id(flag)], f" ? {bit} : 0;")
    return writer.launch(1, 1)


# -- tiles ----------------------------------------------------------------------------------------------------------
TILE = 32
"""Elements of a tile along both of its axes."""
TILE_ROWS = 8
"""Rows of a tile that a block moves at once."""


class Tiling(Record):
    """The axis along which stores are adjacent, the one along which some loads are, and those loads."""

    near: int
    far: int
    loads: list[kernels.Load]


def tiled_kernel(library: KernelLibrary, nest: kernels.LoopNest, tiling: Tiling, title: str) -> Launch:
    """Elementwise code whose loads of one order and stores of another go through tiles of shared memory."""
    writer = KernelWriter(library, nest, title)
    writer.declare(nest)
    b, rank = writer.builder, len(nest.domain)
    near, far = nest.domain[tiling.near], nest.domain[tiling.far]
    others = [axis for axis in range(rank) if axis not in (tiling.near, tiling.far)]
    by_near, by_far = -(-near // TILE), -(-far // TILE)
    count = math.prod([nest.domain[axis] for axis in others]) * by_near * by_far
    word = writer.index_word(math.prod(nest.domain) * 2)
    tiles: dict[int, kernels.Buffer] = {}
    for place, load in enumerate(tiling.loads):
        tile = tiles[id(load)] = kernels.Buffer(TILE * (TILE + 1), load.ref.buffer.dtype)
        parts = 2 if tile.dtype.kind == "c" else 1
        writer.memory.names[id(tile)] = f"tile{place}"
        b.line(f"__shared__ {stored_type(tile.dtype)} tile{place}[{parts * tile.size}];")
    b.line(f"const int x = (int)threadIdx.x % {TILE}, y = (int)threadIdx.x / {TILE};")
    with _rolled(b, f"for ({word} part = blockIdx.x; part < {count}; part += gridDim.x) {{"):
        b.line(f"const {word} first_far = part % {by_far} * {TILE};")
        b.line(f"const {word} first_near = part / {by_far} % {by_near} * {TILE};")
        at: dict[int, str] = {}
        size = by_near * by_far
        for axis in reversed(others):
            at[axis] = b.fresh("r")
            b.declare(at[axis], f"const {word} {at[axis]} = part / {size} % {nest.domain[axis]};")
            size *= nest.domain[axis]

        def corner(along_near: str, along_far: str) -> str:
            b.line(f"const {word} near = first_near + {along_near}, far = first_far + {along_far};")
            return f"if (near < {near} && far < {far}) {{"

        places = {**at, tiling.near: "near", tiling.far: "far"}
        dims, texts = list(range(rank)), [places[axis] for axis in range(rank)]
        with b.braces(f"for (int k = y; k < {TILE}; k += {TILE_ROWS}) {{"), b.braces(corner("k", "x")):
            registers: dict[int, Value] = {}
            body = BodyWriter(writer.nests, dims, texts, registers, registers)
            for load in tiling.loads:
                writer.nests.write(tiles[id(load)], [f"k * {TILE + 1} + x"], body.load(load.ref))
        b.effect("__syncthreads();")
        with b.braces(f"for (int k = y; k < {TILE}; k += {TILE_ROWS}) {{"), b.braces(corner("x", "k")):
            registers = {}
            body = BodyWriter(writer.nests, dims, texts, registers, registers)
            for each in nest.code:
                if id(each) in tiles:
                    assert isinstance(each, kernels.Load)
                    registers[id(each.out)] = writer.nests.read(tiles[id(each)], [f"x * {TILE + 1} + k"])
                else:
                    body.emit(each)
        b.effect("__syncthreads();")
    return writer.launch(max(1, min(count, MOST_BLOCKS)), TILE * TILE_ROWS)


# -- writes at computed places --------------------------------------------------------------------------------------
def key_kernel(
    library: KernelLibrary, nest: kernels.LoopNest, store: kernels.StoreAt, keys: kernels.Buffer, title: str
) -> Launch:
    """The offset by the dynamic indices of each update; the nest has the axes of the updates alone."""
    writer = KernelWriter(library, nest, title)
    for each in nest.code:
        if isinstance(each, (kernels.Load, kernels.LoadAt)):
            writer._name(each.ref.buffer)
    writer._name(keys)
    writer.writes.add(id(keys))
    b, rows = writer.builder, math.prod(nest.domain)
    word = writer.index_word(rows)
    with _rolled(b, _strided_loop(word, "row", rows, THREADS)):
        at = _decomposed(b, word, "row", nest, [[axis] for axis in range(len(nest.domain))])
        registers: dict[int, Value] = {}
        body = BodyWriter(writer.nests, list(at), list(at.values()), registers, registers)
        for each in nest.code:
            body.emit(each)
        pieces: list[Any] = ["0"]
        for index in store.indices:
            pieces += [f" + {index.stride} * (int64_t)", body.position(index)]
        b.effect(f"{writer.memory.name(keys)}[row] = ", *pieces, ";")
    return writer.launch(max(1, min(-(-rows // THREADS), MOST_BLOCKS)), THREADS)


def segment_kernel(
    library: KernelLibrary,
    nest: kernels.LoopNest,
    updates: int,
    keys: kernels.Buffer,
    order: kernels.Buffer,
    title: str,
) -> Launch:
    """A thread for every group of updates of one place, and every index of the axes behind the first `updates`. It
    applies them in their order. The last instruction of the nest is the write."""
    writer = KernelWriter(library, nest, title)
    code = nest.stages[0].code
    store = code[-1]
    assert isinstance(store, kernels.StoreAt)
    writer.declare(nest)
    for buffer in (keys, order):
        writer._name(buffer)
    b = writer.builder
    count, inside = math.prod(nest.domain[:updates]), math.prod(nest.domain[updates:])
    word = writer.index_word(count * inside)
    key_of, place_of = writer.memory.name(keys), writer.memory.name(order)
    with _rolled(b, _strided_loop(word, "part", count * inside, THREADS)):
        b.line(f"const {word} first = part / {inside};" if inside > 1 else f"const {word} first = part;")
        b.line(f"const int64_t key = {key_of}[{place_of}[first]];")
        with b.braces(f"if (first > 0 && {key_of}[{place_of}[first - 1]] == key) {{"):
            b.effect("continue;")
        at: dict[int, str] = {}
        size = 1
        for axis in reversed(range(updates, len(nest.domain))):
            at[axis] = b.fresh("r")
            b.declare(at[axis], f"const {word} {at[axis]} = part / {size} % {nest.domain[axis]};")
            size *= nest.domain[axis]
        with b.braces(f"for ({word} next = first; next < {count} && {key_of}[{place_of}[next]] == key; ++next) {{"):
            b.line(f"const {word} update = ({word}){place_of}[next];")
            size = 1
            for axis in reversed(range(updates)):
                at[axis] = b.fresh("r")
                b.declare(at[axis], f"const {word} {at[axis]} = update / {size} % {nest.domain[axis]};")
                size *= nest.domain[axis]
            registers: dict[int, Value] = {}
            body = BodyWriter(writer.nests, list(at), list(at.values()), registers, registers)
            for each in code[:-1]:
                body.emit(each)
            buffer, value = store.ref.buffer, body.value(store.value)
            place = [*body.place(store.ref), " + key"]
            if store.adds:
                have = writer.nests.read(buffer, place)
                value = writer.scalars.apply("add", buffer.dtype, [have, value], buffer.dtype)
            writer.nests.write(buffer, place, value)
    return writer.launch(max(1, min(-(-count * inside // THREADS), MOST_BLOCKS)), THREADS)
