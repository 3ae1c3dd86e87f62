"""Blocks of rows: a nest with expensive functions of single numbers in its rows takes several rows at a time.

In the gradient of a logistic regression, a row is a product with a vector, two functions of one number, and a sum over
rows. One row at a time, the two functions, a logarithm and an exponential, run on scalars. They take three times as
long as the row's two passes over the matrix. In a block the first pass runs for all rows, then the functions on one
vector with an element for each row. The second pass then finds all rows in the cache:

    for i = 0, R, 2R, …:
      for r < R:  first pass of row i + r; its sum goes to lane r
      vector code on R lanes
      for r < R:  second pass of row i + r with the number in lane r

Only operations on registers become vectors. Accesses to memory run row by row, in the order of the rows. So a last
block with fewer rows needs no special code: its other lanes contain numbers of earlier blocks, which nothing reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from func.backends import ir
from func.backends.llvm.codegen.bodies import BodyEmitter, CodeContext
from func.backends.llvm.codegen.counted_loops import number, span
from func.backends.llvm.codegen.stages import StageLoops
from func.backends.loops import kernels
from func.backends.loops.chunking import FRAME, ORDINARY, SLOW, work
from func.backends.loops.traversal import operands_of, refs_of
from func.backends.records import Record
from func.backends.scalars.ir_values import Value, constant, part_of, read, stored, write

VECTORS = 2
"""Vector registers of a block's rows: two of them hide the latency of elementary functions."""
SCALAR_COST = 8
"""The time of an expensive operation on one number, in elements of a vector."""
WORTH = 0.2
"""The share of a row's passes that its scalar code must exceed."""
IN_CACHE = 1 << 17
"""Bytes that the passes of a block may touch: half of a usual second-level cache, so the second pass finds them."""


class RowStep(Record):
    """The contents of a step: a pass or accesses to memory row by row, or operations on all rows."""

    code: list[kernels.Instruction]
    stage: kernels.NestStage | None = None
    """The inner stage of a pass."""

    @property
    def is_vector(self) -> bool:
        """Whether the step runs on all rows at once."""
        return self.stage is None and isinstance(self.code[0], kernels.Apply)


class RowPlan(NamedTuple):
    """The steps of a block, the number of its rows, and the registers that one step leaves to another."""

    steps: list[RowStep]
    rows: int
    shared: list[kernels.Register]


def row_plan(nest: kernels.LoopNest, group: Sequence[int], bits: int) -> RowPlan | None:
    """The plan of blocks of rows along the dimensions of a loop; None if rows should or must run one by one."""
    row_code = [instruction for stage in nest.stages if not stage.inner for instruction in stage.code]
    expensive = [each for each in row_code if isinstance(each, kernels.Apply) and each.op not in ORDINARY | SLOW]
    length = math.prod([nest.domain[axis] for axis in group])
    if not expensive or nest.row_scratch is None or any([chunking.stage is not None for chunking in nest.chunkings]):
        return None
    inner = nest.domain[nest.outer or 0 :]
    passes = sum([work(stage, inner) for stage in nest.stages if stage.inner])
    single = SCALAR_COST * work(kernels.NestStage(False, list(expensive)), ())
    if single < WORTH * passes:
        return None
    size = max([part_of(each.out.dtype).itemsize for each in expensive])
    rows = VECTORS * bits // (8 * size)
    scratch = sum([buffer.bytes for buffer in nest.row_scratch])
    while rows > 2 and (rows > length or rows * _bytes_of_row(nest) > IN_CACHE or rows * scratch > FRAME):
        rows //= 2
    if rows > length or rows < 2 or rows * scratch > FRAME:
        return None
    steps = [step for stage in nest.stages for step in _steps(stage)]
    return RowPlan(steps, rows, _shared(steps))


def _bytes_of_row(nest: kernels.LoopNest) -> int:
    """Roughly the bytes that the passes of one row touch."""
    inner = math.prod(nest.domain[nest.outer or 0 :])
    refs = refs_of([instruction for stage in nest.stages if stage.inner for instruction in stage.code])
    return inner * max([ref.buffer.dtype.itemsize for ref in refs], default=1)


def _steps(stage: kernels.NestStage) -> list[RowStep]:
    """The steps of a stage. Loads come first, unless they read earlier writes or need a computed index."""
    if stage.inner:
        return [RowStep(stage.code, stage)]
    steps: list[RowStep] = []
    loads: list[kernels.Instruction] = []
    applied: list[kernels.Instruction] = []
    writes: list[kernels.Instruction] = []

    def close() -> None:
        steps.extend([RowStep(list(code)) for code in (loads, applied, writes) if code])
        for code in (loads, applied, writes):
            code.clear()

    for instruction in stage.code:
        if isinstance(instruction, kernels.Apply):
            applied.append(instruction)
        elif isinstance(instruction, (kernels.Load, kernels.LoadAt, kernels.Position)):
            written = {id(ref.buffer.storage) for ref in refs_of(writes)}
            computed = {id(each.out) for each in applied if isinstance(each, kernels.Apply)}
            if any([id(ref.buffer.storage) in written for ref in refs_of([instruction])]) or any(
                [id(x) in computed for x in operands_of(instruction)]
            ):
                close()
            loads.append(instruction)
        else:
            writes.append(instruction)
    close()
    return steps


def _shared(steps: Sequence[RowStep]) -> list[kernels.Register]:
    """The registers that a step assigns and another reads."""
    home: dict[int, tuple[int, kernels.Register]] = {}
    shared: dict[int, kernels.Register] = {}
    for place, step in enumerate(steps):
        for instruction in step.code:
            for x in operands_of(instruction):
                known = home.get(id(x))
                if known is not None and known[0] != place:
                    shared[id(x)] = known[1]
            if isinstance(instruction, (kernels.Load, kernels.LoadAt, kernels.Position, kernels.Apply, kernels.Reduce)):
                home[id(instruction.out)] = place, instruction.out
    return list(shared.values())


class RowBlocks:
    """The loop over the rows of a plan, in blocks; `at` are the positions along the loops around it."""

    def __init__(
        self, context: CodeContext, nest: kernels.LoopNest, plan: RowPlan, dims: list[int], at: list[ir.Value]
    ) -> None:
        self.context = context
        self.nest, self.plan = nest, plan
        self.dims, self.at = dims, at
        self.lanes = {id(register): self._memory(register) for register in plan.shared}
        self.scratch = [(buffer, self._frame(buffer)) for buffer in nest.row_scratch or ()]

    def _memory(self, register: kernels.Register) -> ir.Value:
        """The address of a number for each row of a block, initially one: lanes without a row divide by them."""
        b, dtype, rows = self.context.builder, register.dtype, self.plan.rows
        with b.goto_entry_block():
            memory = b.alloca(ir.ArrayType(stored(dtype), rows))
            write(b, memory, dtype, constant(dtype, 1, rows))
        return memory

    def _frame(self, buffer: kernels.Buffer) -> ir.Value:
        """Stack memory for the scratch of each row."""
        b = self.context.builder
        with b.goto_entry_block():
            return b.alloca(ir.ArrayType(stored(buffer.dtype), buffer.size * self.plan.rows))

    def emit(self, start: ir.Value, stop: ir.Value) -> None:
        """The rows from `start` on, below `stop`."""
        span(self.context.builder, start, stop, self.plan.rows, lambda i: self._block(i, stop))

    def _block(self, first: ir.Value, stop: ir.Value) -> None:
        b = self.context.builder
        left = b.sub(stop, first)
        rows = number(self.plan.rows)
        count = b.select(b.icmp_unsigned("<", left, rows), left, rows)
        for step in self.plan.steps:
            if step.is_vector:
                self._on_all_rows(step)
            else:
                self._row_by_row(step, first, count)

    def _on_all_rows(self, step: RowStep) -> None:
        """Operations on one vector with a lane for each row."""
        rows = self.plan.rows
        registers = self._read(step, lambda address, dtype: read(self.context.builder, address, dtype, rows))
        body = BodyEmitter(self.context, [], [], rows, registers, registers)
        for instruction in step.code:
            body.emit(instruction)
        for instruction in step.code:
            if isinstance(instruction, kernels.Apply) and id(instruction.out) in self.lanes:
                value = body.splat(registers[id(instruction.out)])
                write(self.context.builder, self.lanes[id(instruction.out)], instruction.out.dtype, value)

    def _row_by_row(self, step: RowStep, first: ir.Value, count: ir.Value) -> None:
        """A pass, or accesses to memory, of one row after the other."""
        b = self.context.builder

        def lane(address: ir.Value, r: ir.Value, dtype: kernels.DType) -> ir.Value:
            return b.gep(address, [r], source_etype=stored(dtype))

        def row(r: ir.Value) -> None:
            for buffer, address in self.scratch:
                place = b.mul(r, number(buffer.size))
                self.context.memory.pointers[id(buffer)] = b.gep(address, [place], source_etype=stored(buffer.dtype))
            at = [*self.at, b.add(first, r)]
            registers = self._read(step, lambda address, dtype: read(b, lane(address, r, dtype), dtype))
            if step.stage is not None:
                StageLoops(self.context, self.nest, step.stage, self.dims, at, registers).emit()
            else:
                for instruction in step.code:
                    BodyEmitter(self.context, self.dims, at, 1, registers, registers).emit(instruction)
            for register in self.plan.shared:
                if id(register) in registers and self._assigns(step, register):
                    address = lane(self.lanes[id(register)], r, register.dtype)
                    write(b, address, register.dtype, registers[id(register)])

        span(b, number(0), count, 1, row)

    def _read(self, step: RowStep, value_of: Callable[[ir.Value, kernels.DType], Value]) -> dict[int, Value]:
        """The registers that a step reads and other steps assign."""
        used = {id(x) for instruction in step.code for x in operands_of(instruction)}
        return {
            id(register): value_of(self.lanes[id(register)], register.dtype)
            for register in self.plan.shared
            if id(register) in used and not self._assigns(step, register)
        }

    def _assigns(self, step: RowStep, register: kernels.Register) -> bool:
        """Whether a step assigns a register that it passes on."""
        return any([getattr(instruction, "out", None) is register for instruction in step.code])
