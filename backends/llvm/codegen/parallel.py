"""Chunks of nests as separate functions, which the thread pool runs.

A task is `void task(ptr data, i64 chunk)`. The enclosing function writes the values that the loops of a chunk use to
`data`, such as the addresses of buffers. The task reads them at its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.codegen.bodies import CodeContext
from func.backends.llvm.codegen.counted_loops import INDEX, POINTER, BufferPointers, LoopChunk, neutral, number
from func.backends.llvm.codegen.pairwise_sums import folded
from func.backends.llvm.codegen.stages import StageLoops
from func.backends.loops import kernels
from func.backends.loops.chunking import chunk_stride
from func.backends.loops.traversal import operands_of
from func.backends.scalars.ir_values import Value, each, read, stored, write
from func.backends.scalars.operations import Scalars

PARALLEL = "func_parallel"
"""The function of the thread pool: (task, data, number of chunks)."""
SLOT = 8
"""Bytes of `data` for one value."""
CACHE_LINE = ir.VectorType(ir.IntType(64), 8)
ERRORS = np.dtype(np.int32)


class InheritedPointers(BufferPointers):
    """The buffers of the enclosing function of a task."""

    def __init__(self, task: Task, outer: BufferPointers) -> None:
        super().__init__()
        self.task = task
        self.outer = outer

    def pointer(self, buffer: kernels.Buffer) -> ir.Value:
        """The first byte of a buffer."""
        pointer = self.pointers.get(id(buffer))
        if pointer is None:
            pointer = self.pointers[id(buffer)] = self.task.taken(self.outer.pointer(buffer))
        return pointer


class Task:
    """The function of the chunks of a loop."""

    def __init__(self, outer: CodeContext, chunking: kernels.Chunking) -> None:
        self.outer = outer
        self.values: list[ir.Value] = []
        module = outer.builder.module
        kind = ir.FunctionType(ir.VoidType(), [POINTER, INDEX])
        self.function = ir.Function(module, kind, f"task_{len(module.globals)}")
        self.function.linkage = "internal"
        self.data, self.chunk = self.function.args
        self.chunks = chunking.chunks
        self.loop_chunk = LoopChunk(chunking.axis, self.chunk, chunking.chunks)
        builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        start = builder.append_basic_block("start")
        builder.branch(start)
        builder.position_at_end(start)
        memory = InheritedPointers(self, outer.memory)
        scalars = Scalars(outer.scalars.module, outer.scalars.elementary)
        scalars.flags = outer.scalars.flags
        scalars.builder = builder
        self.context = CodeContext(builder, scalars, memory, outer.bits)

    def taken(self, value: Value) -> Value:
        """A scalar value of the outer function, inside."""
        return each(self._taken, value)

    def _taken(self, value: ir.Value) -> ir.Value:
        b = self.context.builder
        self.values.append(value)
        with b.goto_entry_block():
            place = b.gep(self.data, [number(SLOT * (len(self.values) - 1))], source_etype=ir.IntType(8))
            return b.load(place, typ=value.type)

    def frame(self, size: int) -> ir.Value:
        """`size` bytes of stack memory of the chunk."""
        with self.context.builder.goto_entry_block():
            return self.context.builder.alloca(CACHE_LINE, size=-(-size // 64))

    def per_chunk(self, dtype: kernels.DType) -> ir.Value:
        """Memory of the outer function for one element per chunk."""
        with self.outer.builder.goto_entry_block():
            return self.outer.builder.alloca(ir.ArrayType(stored(dtype), self.chunks))

    def of_chunk(self, start: ir.Value, dtype: kernels.DType, step: int) -> ir.Value:
        """The chunk's address, inside, in memory of the outer function."""
        b, inside = self.context.builder, self.taken(start)
        with b.goto_entry_block():
            place = b.mul(self.chunk, number(step))
            return b.gep(inside, [place], source_etype=stored(dtype))

    def piece(self, pieces: kernels.Buffer, buffer: kernels.Buffer) -> ir.Value:
        """The address, inside, of the chunk's own piece, in place of a buffer."""
        return self.of_chunk(self.outer.memory.pointer(pieces), buffer.dtype, chunk_stride(buffer))

    def run(self) -> None:
        """End the task and, outside, run all chunks."""
        self.context.builder.ret_void()
        b = self.outer.builder
        with b.goto_entry_block():
            data = b.alloca(INDEX, size=max(1, len(self.values)))
        for place, value in enumerate(self.values):
            b.store(value, b.gep(data, [number(place)], source_etype=INDEX))
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INDEX])
        parallel = b.module.globals.get(PARALLEL) or ir.Function(b.module, kind, PARALLEL)
        b.call(parallel, [self.function, data, number(self.chunks)])


class ChunkErrors:
    """The error bits of the chunks."""

    def __init__(self, task: Task, stages: Iterable[kernels.NestStage]) -> None:
        self.task = task
        b = task.context.builder
        self.memory: Any = None
        if any([isinstance(instruction, kernels.LoadAt) for stage in stages for instruction in stage.code]):
            self.memory = task.per_chunk(ERRORS)
            task.context.memory.status = task.of_chunk(self.memory, ERRORS, 1)
            b.store(ir.Constant(ir.IntType(32), 0), task.context.memory.status)

    def report(self) -> None:
        """Add the errors to the status once all chunks have run."""
        if self.memory is not None:
            b, status = self.task.outer.builder, self.task.outer.memory.status
            errors = folded(self.task.outer, "bitwise_or", ERRORS, read(b, self.memory, ERRORS, self.task.chunks))
            b.store(b.or_(b.load(status, typ=ir.IntType(32)), errors), status)


def filling(buffer: kernels.Buffer, value: Any) -> kernels.LoopNest:
    """A nest that sets all elements of a buffer."""
    domain = (buffer.size,) if buffer.size > 1 else ()
    store = kernels.Store(
        kernels.StridedRef(buffer, 0, kernels.row_major(domain)), kernels.Literal(value, buffer.dtype)
    )
    return kernels.LoopNest(domain, None, [kernels.NestStage(True, [store])])


def copying(target: kernels.Buffer, source: kernels.Buffer) -> kernels.LoopNest:
    """A nest that makes a buffer a copy of another."""
    domain = (target.size,) if target.size > 1 else ()
    value = kernels.Register(target.dtype)
    load, store = (
        kernels.Load(value, kernels.StridedRef(source, 0, kernels.row_major(domain))),
        kernels.Store(kernels.StridedRef(target, 0, kernels.row_major(domain)), value),
    )
    return kernels.LoopNest(domain, None, [kernels.NestStage(True, [load, store])])


def privatize(task: Task, chunking: kernels.Chunking) -> list[kernels.LoopNest]:
    """Give the chunk private scratch memory and accumulators; return the nests that combine the accumulators."""
    memory, following = task.context.memory, []
    for buffer, pieces in chunking.private:
        start = task.frame(buffer.bytes) if pieces is None else task.piece(pieces, buffer)
        memory.pointers[id(buffer)] = start
    for instruction, pieces in chunking.accumulators:
        buffer, op = instruction.ref.buffer, instruction.op
        memory.pointers[id(buffer)] = task.piece(pieces, buffer)
        nest = filling(buffer, neutral(op, buffer.dtype))
        StageLoops(task.context, nest, nest.stages[0], [], [], {}).emit()
        following.append(_combining(pieces, buffer, op, chunking.chunks))
    return following


def _combining(pieces: kernels.Buffer, buffer: kernels.Buffer, op: str, chunks: int) -> kernels.LoopNest:
    """A nest that accumulates the pieces of the chunks in a buffer, one after the other."""
    domain = (chunks, buffer.size) if buffer.size > 1 else (chunks,)
    strides = kernels.row_major(domain[1:])
    value = kernels.Register(buffer.dtype)
    load = kernels.Load(value, kernels.StridedRef(pieces, 0, (chunk_stride(buffer), *strides)))
    return kernels.LoopNest(
        domain,
        None,
        [kernels.NestStage(True, [load, kernels.Accumulate(kernels.StridedRef(buffer, 0, (0, *strides)), op, value)])],
    )


def emit_stage(
    context: CodeContext,
    nest: kernels.LoopNest,
    chunking: kernels.Chunking,
    dims: list[int],
    at: Sequence[ir.Value],
    rows: dict[int, Value],
) -> list[kernels.LoopNest]:
    """Emit the stage of a chunking, in chunks, at one row; return the nests that must follow."""
    stage = chunking.stage
    assert stage is not None
    task = Task(context, chunking)
    errors = ChunkErrors(task, [stage])
    following = privatize(task, chunking)
    inside = {id(x): task.taken(rows[id(x)]) for x in registers_of(stage) if id(x) in rows}
    StageLoops(task.context, nest, stage, dims, [task.taken(i) for i in at], inside, task.loop_chunk).emit()
    reduced = [
        (instruction, task.per_chunk(instruction.out.dtype))
        for instruction in stage.code
        if isinstance(instruction, kernels.Reduce)
    ]
    for instruction, memory in reduced:
        dtype = instruction.out.dtype
        write(task.context.builder, task.of_chunk(memory, dtype, 1), dtype, inside[id(instruction.out)])
    task.run()
    errors.report()
    for instruction, memory in reduced:
        parts = read(context.builder, memory, instruction.out.dtype, chunking.chunks)
        rows[id(instruction.out)] = folded(context, instruction.op, instruction.out.dtype, parts)
    return following


def registers_of(stage: kernels.NestStage) -> list[kernels.Register]:
    """The registers that the code of a stage reads, each once."""
    registers: dict[int, kernels.Register] = {}
    for instruction in stage.code:
        registers.update({id(x): x for x in operands_of(instruction) if isinstance(x, kernels.Register)})
    return list(registers.values())
