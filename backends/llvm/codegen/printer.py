"""Native programs as LLVM IR: one function that runs all items."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.backends import ir
from func.backends.hashing import new_hash
from func.backends.llvm.codegen.counted_loops import INDEX, POINTER, BufferPointers, loop, number
from func.backends.llvm.codegen.nests import NestPrinter
from func.backends.llvm.codegen.parallel import ERRORS, Task, copying
from func.backends.llvm.linalg.blas_threads import BlasThreads
from func.backends.llvm.math.elementary import Elementary
from func.backends.llvm.math.own_functions import Features
from func.backends.loops import kernels
from func.backends.loops.chunking import chunkings_of
from func.backends.loops.traversal import all_items, buffers_of
from func.backends.scalars import scipy_exports
from func.backends.scalars.ir_values import stored
from func.backends.scalars.operations import Scalars

if TYPE_CHECKING:
    from func.backends.llvm.codegen.matrix_products import DotPrinter

STATUS = ir.IntType(32)
HAS_FAILED = 2
"""The status of a program that reports an error."""
BYTE = ir.IntType(8)
FAST = ("contract", "reassoc", "arcp", "nsz")
"""Fast-math flags without nnan and ninf, and without approximate functions."""
LONGEST = 4_000
"""Instructions of a function after which another one goes on: LLVM takes time quadratic in the length of a function."""
LONG_SIDE = 1200
"""Rows or columns of matrices that LAPACK factors with all threads of BLAS, in some ten milliseconds."""


def print_program(program: kernels.NativeProgram, features: Features, name: str = "run") -> ir.Module:
    """A module with the function i32 run(ptr inputs, ptr outputs, ptr arena), and `constants`, a table for the
    addresses of the program's constants.
    """
    module = ir.Module(name)
    module.vector_bytes = features.bits // 8
    module.triple = ""
    kind = ir.FunctionType(STATUS, [POINTER, POINTER, POINTER])
    function = ir.Function(module, kind, name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    if _calls_scipy(program.items):
        builder = _unless_scipy_reports(module, builder)
    Printer(module, builder, features, program).emit()
    return module


def _calls_scipy(items: Iterable[kernels.Item]) -> bool:
    """Whether some operation is a function of SciPy."""
    nests = [item for item in all_items(items) if isinstance(item, kernels.LoopNest)]
    return any([isinstance(x, kernels.Apply) and x.op.startswith(kernels.CALLED) for nest in nests for x in nest.code])


def _unless_scipy_reports(module: ir.Module, b: ir.IRBuilder) -> ir.IRBuilder:
    """Return an error for errors of SciPy's functions; else the result of a function, whose builder this returns."""
    outer = b.function
    silent = ir.Function(module, outer.function_type, f"{outer.name}_silently")
    silent.linkage = "internal"
    silent.attributes |= {"noinline", "nounwind"}
    reports = b.call(ir.Function(module, ir.FunctionType(STATUS, []), scipy_exports.REPORTS), [])
    with b.if_then(b.icmp_unsigned("!=", reports, ir.Constant(STATUS, 0)), likely=False):
        b.ret(ir.Constant(STATUS, HAS_FAILED))
    b.ret(b.call(silent, outer.args))
    return ir.IRBuilder(silent.append_basic_block("entry"))


class Printer:
    """Emits the items of a program."""

    def __init__(
        self, module: ir.Module, builder: ir.IRBuilder, features: Features, program: kernels.NativeProgram
    ) -> None:
        self.module = module
        self.builder = builder
        self.program = program
        self.features = features
        self.memory = BufferPointers()
        self.scalars = Scalars(module, Elementary(module, features))
        if program.fast:
            self.scalars.flags = FAST
        self.scalars.builder = builder
        self.nests = NestPrinter(builder, self.scalars, self.memory, features.bits)
        self.threads = BlasThreads(builder)
        self.bits = features.bits
        self._end: Any = None
        """The block that returns, if an item before the last one may end the program."""
        self._instructions = self._blocks = 0

    @functools.cached_property
    def dots(self) -> DotPrinter:
        """The emitter of products."""
        # imported here, since a first call without products needs no BLAS
        from func.backends.llvm.codegen.matrix_products import DotPrinter

        return DotPrinter(self.nests.context, self.features, self.threads)

    def emit(self) -> None:
        """The whole function, and the functions that it calls for the rest if it would become too long."""
        status = self.builder.alloca(STATUS, name="bad")
        self.builder.store(ir.Constant(STATUS, 0), status)
        rest = self._part(list(self.program.items), status)
        while rest is not None:
            printer, items = rest
            rest = printer._part(items, printer.builder.function.args[3])

    def _part(self, items: list[kernels.Item], status: ir.Value) -> tuple[Printer, list[kernels.Item]] | None:
        """As many items as a function takes; returns the remaining ones, and the printer of the function for them."""
        builder = self.builder
        self.memory.status = status
        start = builder.append_basic_block("start")
        builder.branch(start)
        builder.position_at_end(start)
        tables = self._tables()
        for place, item in enumerate(items):
            if place and self._length() > LONGEST:
                printer = self._go_on(status)
                self._return()
                return printer, items[place:]
            self._pointers(buffers_of(item), tables)
            self._items([item])
        if self.program.flag is not None:
            self._pointers([self.program.flag.buffer], tables)
            self._note(self.program.flag)
        self._return()
        return None

    def _length(self) -> int:
        """Roughly the number of instructions of the function so far; those of the last block are not complete yet."""
        blocks = self.builder.function.blocks
        self._instructions += sum([len(block.lines) for block in blocks[self._blocks : -1]])
        self._blocks = max(self._blocks, len(blocks) - 1)
        return self._instructions + len(blocks[-1].lines)

    def _go_on(self, status: ir.Value) -> Printer:
        """Call another function, and return its printer."""
        kind = ir.FunctionType(ir.VoidType(), [POINTER] * 4)
        function = ir.Function(self.module, kind, f"part_{len(self.module.globals)}")
        function.linkage = "internal"
        function.attributes |= {"noinline", "nounwind"}
        self.threads.release()
        self.builder.call(function, [*self.builder.function.args[:3], status])
        self.threads.resume()
        return self._sibling(ir.IRBuilder(function.append_basic_block("entry")))

    def _sibling(self, builder: ir.IRBuilder) -> Printer:
        """A printer of the same kind for another function."""
        return Printer(self.module, builder, self.features, self.program)

    def _return(self) -> None:
        builder = self.builder
        if self._end is not None:
            builder.branch(self._end)
            builder.position_at_end(self._end)
        self.threads.release()
        if builder.function.function_type.return_type is STATUS:
            builder.ret(builder.load(self.memory.status, typ=STATUS))
        else:
            builder.ret_void()

    def _note(self, flag: kernels.StridedRef) -> None:
        """Set the status bit for NaN where a boolean is true."""
        b, status = self.builder, self.memory.status
        has_nan = b.load(self.memory.pointer(flag.buffer), typ=BYTE)
        b.store(b.or_(b.load(status, typ=STATUS), b.zext(has_nan, STATUS)), status)

    def _exit_early(self, item: kernels.EarlyExit) -> None:
        b = self.builder
        if item.flag is not None:
            self._note(item.flag)
        if self._end is None:
            self._end = b.append_basic_block("end")
        onwards = b.append_basic_block()
        is_well = b.icmp_unsigned("==", b.load(self.memory.status, typ=STATUS), ir.Constant(STATUS, 0))
        b.cbranch(is_well, onwards, self._end)
        b.position_at_end(onwards)

    def _tables(self) -> dict[str, ir.Value]:
        """The tables of addresses by kind of memory, and the address of the arena."""
        inputs, outputs, arena = self.builder.function.args[:3]
        constants: Any = None
        if self.program.constants and (constants := self.module.globals.get("constants")) is None:
            table = ir.ArrayType(POINTER, len(self.program.constants))
            mark = new_hash(b"".join([constant.tobytes() for constant in self.program.constants])).hexdigest()
            self.module.add_metadata([mark])  # code is shared by equal text, so the text includes the constants
            constants = ir.GlobalVariable(self.module, table, "constants")
            constants.initializer = ir.Constant(table, None)
        return {"input": inputs, "output": outputs, "constant": constants, "arena": arena}

    def _pointers(self, buffers: Iterable[kernels.Buffer], tables: dict[str, ir.Value]) -> None:
        """Load the addresses of buffers that an item is the first to use.

        Loading all of them at the start takes LLVM time quadratic in their number.
        """
        builder = self.builder
        for buffer in buffers:
            storage = buffer.storage
            if id(storage) in self.memory.pointers:
                continue
            place = [number(storage.place)]
            if storage.kind == "arena":
                pointer = builder.gep(tables["arena"], place, source_etype=BYTE)
            else:
                pointer = builder.load(builder.gep(tables[storage.kind], place, source_etype=POINTER), typ=POINTER)
            self.memory.pointers[id(storage)] = pointer

    def _items(self, items: Sequence[kernels.Item]) -> None:
        for item in items:
            if isinstance(item, kernels.LoopNest):
                self.nests.emit(item)
            elif isinstance(item, kernels.Dot):
                self.dots.emit(item)
            elif isinstance(item, kernels.Fill):
                self.nests.fill(item.buffer, item.value)
            elif isinstance(item, kernels.Copy):
                self._move(item)
            elif isinstance(item, kernels.FlagCheck):
                self._check(item)
            elif isinstance(item, kernels.EarlyExit):
                self._exit_early(item)
            elif isinstance(item, kernels.LibraryCall):
                self._library(item)
            elif isinstance(item, kernels.CountedLoop):
                self._loop(item)
            elif isinstance(item, kernels.ConditionalLoop):
                self._while(item)
            else:
                self._branch(item)

    def _library(self, item: kernels.LibraryCall) -> None:
        # imported here, since a first call without linear algebra needs no table of routines
        from func.backends.llvm.linalg.library_calls import WITHOUT_BLAS, emit_library

        if item.routine in WITHOUT_BLAS:
            emit_library(self, item)
            return
        self.threads.hold()
        is_long = max(item.params.get("n", 0), item.params.get("m", 0)) >= LONG_SIDE
        if is_long:
            self.threads.release()
        emit_library(self, item)
        if is_long:
            self.threads.resume()

    def _move(self, item: kernels.Copy) -> None:
        nest = copying(item.target, item.source)
        nest.chunkings = list(chunkings_of(nest, set()))
        if nest.chunkings:
            self.nests.emit(nest)
            return
        b = self.builder
        target, source = self.memory.pointer(item.target), self.memory.pointer(item.source)
        copy = self.module.globals.get("llvm.memcpy.p0.p0.i64") or ir.Function(
            self.module,
            ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INDEX, ir.IntType(1)]),
            "llvm.memcpy.p0.p0.i64",
        )
        b.call(copy, [target, source, number(item.target.bytes), ir.Constant(ir.IntType(1), 0)])

    def _check(self, item: kernels.FlagCheck) -> None:
        b, status = self.builder, self.memory.status
        flag = b.load(self.memory.pointer(item.flag.buffer), typ=BYTE)
        b.store(b.or_(b.load(status, typ=STATUS), b.shl(b.zext(flag, STATUS), ir.Constant(STATUS, 1))), status)

    def _loop(self, item: kernels.CountedLoop) -> None:
        if item.ahead:
            self._pipeline(item)
        else:
            loop(self.builder, item.length, 1, lambda i: self._step(item, i, item.body))

    def _step(self, item: kernels.CountedLoop, i: ir.Value, items: Sequence[kernels.Item]) -> None:
        """Some items of a loop in its i-th step."""
        b = self.builder
        self._slide(item.slices, b.sub(number(item.length - 1), i) if item.reverse else i)
        self._items(items)

    def _pipeline(self, item: kernels.CountedLoop) -> None:
        """A loop with one step more; step i runs the body of step i - 1 concurrently with the part ahead of step i."""
        b = self.builder
        with b.goto_entry_block():
            statuses = b.alloca(ir.ArrayType(STATUS, 2))
        places = [b.gep(statuses, [number(place)], source_etype=STATUS) for place in range(2)]
        for place in places:
            b.store(ir.Constant(STATUS, 0), place)

        def both(i: ir.Value) -> None:
            task = Task(self.nests.context, kernels.Chunking(0, 2))
            inside, step = self._inside(task), task.taken(i)
            t = inside.builder
            inside.memory.status = task.of_chunk(statuses, ERRORS, 1)
            with t.if_else(t.icmp_unsigned("==", task.chunk, number(0))) as (before, ahead):
                with before, t.if_then(t.icmp_unsigned(">", step, number(0))):
                    inside._step(item, t.sub(step, number(1)), item.body)
                with ahead, t.if_then(t.icmp_unsigned("<", step, number(item.length))):
                    inside._step(item, step, item.ahead)
            task.run()

        loop(b, item.length + 1, 1, both)
        status = b.load(self.memory.status, typ=STATUS)
        for place in places:
            status = b.or_(status, b.load(place, typ=STATUS))
        b.store(status, self.memory.status)

    def _inside(self, task: Task) -> Printer:
        """A printer of the same kind for the function of a task."""
        printer = self._sibling(task.context.builder)
        printer.memory, printer.scalars, printer.threads = task.context.memory, task.context.scalars, self.threads
        printer.nests = NestPrinter(*task.context)
        return printer

    def _slide(self, slices: Sequence[kernels.Buffer], at: ir.Value) -> None:
        b = self.builder
        for view in slices:
            assert view.base is not None
            turn = b.and_(at, number(view.ring - 1)) if view.ring else at
            place = b.add(b.mul(turn, number(view.step)), number(view.start))
            self.memory.pointers[id(view)] = b.gep(
                self.memory.pointer(view.base), [place], source_etype=stored(view.dtype)
            )

    def _while(self, item: kernels.ConditionalLoop) -> None:
        b = self.builder
        head, inside, done = [b.append_basic_block() for _ in range(3)]
        b.branch(head)
        b.position_at_end(head)
        self._items(item.test)
        start = self.memory.pointer(item.flag.buffer)
        flag = b.load(b.gep(start, [number(item.flag.offset)], source_etype=BYTE), typ=BYTE)
        goes_on = b.icmp_unsigned("!=", flag, ir.Constant(BYTE, 0))
        is_well = b.icmp_unsigned("==", b.load(self.memory.status, typ=STATUS), ir.Constant(STATUS, 0))
        b.cbranch(b.and_(goes_on, is_well), inside, done)
        b.position_at_end(inside)
        self._items(item.body)
        b.branch(head)
        b.position_at_end(done)

    def _branch(self, item: kernels.Branch) -> None:
        b = self.builder
        dtype = item.index.buffer.dtype
        start = self.memory.pointer(item.index.buffer)
        value = b.load(b.gep(start, [number(item.index.offset)], source_etype=stored(dtype)), typ=stored(dtype))
        wide = self.scalars.convert(value, np.dtype(np.uint8) if dtype.kind == "b" else dtype, np.dtype(np.int64))
        blocks = [b.append_basic_block() for _ in item.branches]
        done = b.append_basic_block()
        low = b.select(b.icmp_signed("<", wide, number(0)), number(0), wide)
        chosen = b.switch(low, blocks[-1])
        for place, block in enumerate(blocks[:-1]):
            chosen.add_case(number(place), block)
        for block, items in zip(blocks, item.branches, strict=True):
            b.position_at_end(block)
            self._items(items)
            b.branch(done)
        b.position_at_end(done)
