"""Loop nests as LLVM IR: the loops over rows, and the stages inside them."""

from __future__ import annotations

from typing import Any

from func.backends import ir
from func.backends.llvm.codegen.bodies import BodyEmitter, CodeContext
from func.backends.llvm.codegen.counted_loops import BufferPointers, LoopChunk, loop, number, span
from func.backends.llvm.codegen.parallel import ChunkErrors, Task, emit_stage, filling, privatize
from func.backends.llvm.codegen.row_blocks import RowBlocks, row_plan
from func.backends.llvm.codegen.stages import StageLoops
from func.backends.loops.chunking import chunkings_of, length_of, row_groups
from func.backends.loops.kernels import Buffer, Chunking, LoopNest
from func.backends.scalars.operations import Scalars


class NestPrinter:
    """Emits one nest after the other with a builder."""

    def __init__(self, builder: ir.IRBuilder, scalars: Scalars, memory: BufferPointers, bits: int) -> None:
        self.context = CodeContext(builder, scalars, memory, bits)

    def emit(self, nest: LoopNest) -> None:
        """All loops of a nest."""
        for buffer, value in nest.fills:
            self.fill(buffer, value)
        if 0 in nest.domain:
            return
        for chunking in nest.chunkings:
            if chunking.stage is None:
                self._in_chunks(nest, chunking)
                return
        self._rows(nest, [])

    def fill(self, buffer: Buffer, value: Any) -> None:
        """Set all elements of a buffer."""
        if buffer.size:
            nest = filling(buffer, value)
            nest.chunkings = list(chunkings_of(nest, set()))
            self.emit(nest)

    def _in_chunks(self, nest: LoopNest, chunking: Chunking) -> None:
        """The rows by chunks."""
        task = Task(self.context, chunking)
        errors = ChunkErrors(task, nest.stages)
        following = privatize(task, chunking)
        NestPrinter(*task.context)._rows(nest, [], task.loop_chunk)
        task.run()
        errors.report()
        for combining in following:
            self.emit(combining)

    def _rows(self, nest: LoopNest, at: list[ir.Value], loop_chunk: LoopChunk | None = None) -> None:
        """The loops over rows, or over those of a chunk."""
        groups = row_groups(nest)
        if len(at) == len(groups):
            self._stages(nest, [group[-1] for group in groups], at)
            return
        group = groups[len(at)]
        b, length = self.context.builder, length_of(nest, group)
        bounds: tuple[ir.Value, ir.Value] | None = None
        if loop_chunk is not None and loop_chunk.axis == group[-1]:
            bounds = loop_chunk.bounds(b, length, 1)
        plan = row_plan(nest, group, self.context.bits) if len(at) == len(groups) - 1 else None
        if plan is not None:
            blocks = RowBlocks(self.context, nest, plan, [each[-1] for each in groups], at)
            blocks.emit(*(bounds or (number(0), number(length))))
        elif bounds is not None:
            span(b, *bounds, 1, lambda i: self._rows(nest, [*at, i], loop_chunk))
        else:
            loop(b, length, 1, lambda i: self._rows(nest, [*at, i], loop_chunk))

    def _stages(self, nest: LoopNest, dims: list[int], at: list[ir.Value]) -> None:
        """Everything at one row."""
        rows: dict[int, Any] = {}
        by_stage = {id(chunking.stage): chunking for chunking in nest.chunkings if chunking.stage is not None}
        for stage in nest.stages:
            if not stage.inner:
                for instruction in stage.code:
                    BodyEmitter(self.context, dims, at, 1, rows, rows).emit(instruction)
            elif id(stage) in by_stage:
                for combining in emit_stage(self.context, nest, by_stage[id(stage)], dims, at, rows):
                    self.emit(combining)
            else:
                StageLoops(self.context, nest, stage, dims, at, rows).emit()
