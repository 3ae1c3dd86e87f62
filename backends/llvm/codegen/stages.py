"""The loops of one stage of a nest as LLVM IR: vectors along the innermost dimension, reductions.

Every instruction is emitted at the depth of the deepest loop that it depends on. A value that does not vary along the
innermost dimension is a scalar outside its loop. The innermost loop takes `width` elements at a time as one vector and
the remainder as one shorter vector. So it emits the code of a body at most twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.backends import ir
from func.backends.llvm.codegen.bodies import BodyEmitter, CodeContext
from func.backends.llvm.codegen.counted_loops import INDEX, LoopChunk, blocks, neutral, number, span
from func.backends.llvm.codegen.pairwise_sums import PairwiseSums, folded
from func.backends.llvm.codegen.stage_plans import TWICE, StagePlan, accumulated, is_sum
from func.backends.loops import kernels
from func.backends.loops.traversal import operands_of, refs_of
from func.backends.scalars.ir_values import (
    Value,
    Variable,
    chosen,
    constant,
    gathered,
    read,
    shuffled,
    width_of,
    write,
)


class StageLoops:
    """The loops of one inner stage, at one row."""

    def __init__(
        self,
        context: CodeContext,
        nest: kernels.LoopNest,
        stage: kernels.NestStage,
        dims: list[int],
        at: list[ir.Value],
        rows: dict[int, ir.Value],
        loop_chunk: LoopChunk | None = None,
    ) -> None:
        self.context = context
        self.loop_chunk = loop_chunk
        self.outer_dims, self.outer_at = dims, at
        self.rows = rows
        self.plan = StagePlan(nest, stage, loop_chunk, context.bits)
        self.dims, self.lengths, self.levels = self.plan.dims, self.plan.lengths, self.plan.levels
        self.accumulators: list[tuple[kernels.Reduce | kernels.Running | kernels.Accumulate, Variable, int]] = []
        self.sums: list[PairwiseSums] = []
        self.tile: tuple[ir.Value, ir.Value] | None = None
        """The bounds of the current tile."""

    def emit(self) -> None:
        """Loops, and the values of reductions afterwards."""
        for instruction in self.levels[-1]:
            if isinstance(instruction, (kernels.Reduce, kernels.Running)):
                self._accumulator(instruction, self.plan.width)
        sums = self._pairwise(self.accumulators)
        self._loops(0, [], dict(self.rows))
        if sums is not None:
            sums.total()
        for instruction, memory, _ in self.accumulators:
            if isinstance(instruction, kernels.Reduce):
                self.rows[id(instruction.out)] = folded(
                    self.context, instruction.op, instruction.out.dtype, memory.get()
                )

    def _accumulator(self, instruction: kernels.Reduce | kernels.Running | kernels.Accumulate, lanes: int) -> Variable:
        dtype = accumulated(instruction)
        memory = Variable(self.context.builder, dtype, lanes)
        memory.set(constant(dtype, neutral(instruction.op, dtype), lanes))
        self.accumulators.append((instruction, memory, lanes))
        return memory

    def _pairwise(
        self, accumulators: Sequence[tuple[kernels.Reduce | kernels.Running | kernels.Accumulate, Variable, int]]
    ) -> PairwiseSums | None:
        """Pairwise sums of the accumulators that are sums; None without any."""
        summed = [
            (memory, accumulated(instruction), lanes)
            for instruction, memory, lanes in accumulators
            if is_sum(instruction)
        ]
        if self.plan.block is None or not summed:
            return None
        self.sums.append(PairwiseSums(self.context, summed, self.plan.block.most))
        return self.sums[-1]

    def _steps(self, depth: int, start: ir.Value, stop: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
        """One of the loops, in blocks if the plan cuts it."""
        if self.plan.block is not None and self.plan.block.depth == depth:
            blocks(self.context.builder, start, stop, (step, self.plan.block.steps), body, self._push)
        else:
            span(self.context.builder, start, stop, step, body)

    def _push(self) -> None:
        for sums in self.sums:
            sums.push()

    def _bounds(self, depth: int, length: int, step: int) -> tuple[ir.Value, ir.Value]:
        """The bounds of a loop; length is a multiple of step."""
        if self.loop_chunk is not None and self.loop_chunk.axis == self.dims[depth]:
            return self.loop_chunk.bounds(self.context.builder, length, step)
        return number(0), number(length)

    def _loops(self, depth: int, at: list[ir.Value], regs: dict[int, ir.Value]) -> None:
        if depth < len(self.dims):
            body = self._body(at, 1, regs)
            for instruction in self.levels[depth]:
                body.emit(instruction)
            if depth == len(self.dims) - 1:
                self._innermost(at, regs)
            else:
                self._outer(depth, at, regs)
            return
        body = self._body(at, 1, regs)
        for instruction in self.levels[depth]:
            self._emit(body, instruction)

    def _outer(self, depth: int, at: list[ir.Value], regs: dict[int, ir.Value]) -> None:
        """A loop that encloses others."""
        b, tile = self.context.builder, self.plan.tile
        start, stop = self._bounds(depth, self.lengths[depth], 1)

        def tiles(i: ir.Value) -> None:
            end = b.add(i, number(tile.steps if tile is not None else 1))
            self.tile = i, b.select(b.icmp_unsigned("<", end, stop), end, stop)
            self._loops(depth + 1, [*at, i], dict(regs))

        if tile is not None and tile.depth == depth:
            span(b, start, stop, tile.steps, tiles)
        else:
            self._steps(depth, start, stop, 1, lambda i: self._loops(depth + 1, [*at, i], dict(regs)))

    def _body(self, at: list[ir.Value], width: int, regs: dict[int, ir.Value], bases: Any = None) -> BodyEmitter:
        dims = [*self.outer_dims, *self.dims[: len(at)]]
        return BodyEmitter(self.context, dims, [*self.outer_at, *at], width, regs, regs, bases)

    def _innermost(self, at: list[ir.Value], regs: dict[int, ir.Value]) -> None:
        length, width = self.lengths[-1], self.plan.width
        main, rest = length // width * width, length % width
        code = self.levels[-1]
        axis = self.dims[-1]
        local = []
        for instruction in code:
            if isinstance(instruction, kernels.Accumulate) and not self.plan.moves(instruction):
                local.append((instruction, self._accumulator(instruction, width), width))
        bases: dict[Any, ir.Value] = {}
        outside = self._body(at, 1, regs)
        for ref in refs_of(code):  # addresses are computed before the loop
            key_dims = [*self.outer_dims, *self.dims[:-1]]
            outside.bases = bases
            outside.base(ref, key_dims, [*self.outer_at, *at])
        splats = self._splats(code, regs, width)

        def run(i: ir.Value, lanes: int, repeated: Any = None) -> None:
            inside = dict(regs)
            if lanes == width:
                inside.update(splats)
            if self.plan.tile is None:
                vector([*at, i], lanes, inside, bases, repeated)
                return
            assert self.tile is not None
            depth = self.plan.tile.depth

            def step(k: ir.Value) -> None:
                vector([*at[:depth], k, *at[depth + 1 :], i], lanes, dict(inside), {}, repeated)

            span(self.context.builder, *self.tile, 1, step)

        def vector(
            at: list[ir.Value], lanes: int, inside: dict[int, Any], bases: dict[Any, Any], repeated: Any
        ) -> None:
            body = self._body(at, lanes, inside, bases)
            body.repeated = repeated
            for instruction in code:
                self._emit(body, instruction)

        sums = self._pairwise(local) if self.plan.block is not None and self.plan.block.depth == len(at) else None
        if rest and self._overlaps(code, axis):
            self._overlapping(length, width, run)
        else:
            self._vectors(main, rest, width, run)
        if sums is not None:
            sums.total()
            self.sums.remove(sums)
        for instruction, memory, _ in local:
            self._finish(instruction, memory, outside)

    def _vectors(self, main: int, rest: int, width: int, run: Callable[..., None]) -> None:
        """Whole vectors, and a shorter one at the end."""
        b, depth = self.context.builder, len(self.dims) - 1
        if main == width:
            run(number(0), width)
        elif main:
            start, stop = self._bounds(depth, main, width)
            self._steps(depth, start, stop, width, lambda i: run(i, width))
        if rest and self.loop_chunk is not None and self.loop_chunk.axis == self.dims[depth]:
            with b.if_then(self.loop_chunk.is_last(b)):
                run(number(main), rest)
        elif rest:
            run(number(main), rest)

    def _overlaps(self, code: list[kernels.Instruction], axis: int) -> bool:
        """Whether the last vector may overlap the vector before it.

        Then the body is long, so that emitting it twice takes time, and computing elements twice changes nothing."""
        if len(code) <= TWICE:
            return False
        read = {
            id(instruction.ref.buffer.storage)
            for instruction in code
            if isinstance(instruction, (kernels.Load, kernels.LoadAt))
        }
        for instruction in code:
            if isinstance(instruction, kernels.Store) and id(instruction.ref.buffer.storage) in read:
                return False
            if isinstance(instruction, kernels.StoreAt) or (
                isinstance(instruction, kernels.Accumulate) and instruction.ref.strides[axis]
            ):
                return False
        return True

    def _overlapping(self, length: int, width: int, run: Callable[..., None]) -> None:
        b = self.context.builder
        last = number(length - width)
        lanes = ir.Constant(ir.VectorType(INDEX, width), list(range(width)))
        helper = self._body([], width, {})

        def step(i: ir.Value) -> None:
            is_last = b.icmp_unsigned(">", i, last)
            start = b.select(is_last, last, i)
            repeated = b.icmp_unsigned("<", lanes, helper.splat(b.sub(i, start)))
            run(start, width, repeated)

        depth = len(self.dims) - 1
        if self.loop_chunk is not None and self.loop_chunk.axis == self.dims[depth]:
            start, stop = self.loop_chunk.bounds(b, length, width)
            stop = b.select(self.loop_chunk.is_last(b), number(length), stop)
        else:
            start, stop = number(0), number(length)
        self._steps(depth, start, stop, width, step)

    def _splats(self, code: list[kernels.Instruction], regs: dict[int, ir.Value], width: int) -> dict[int, ir.Value]:
        """Scalars that the innermost loop uses, as vectors made before the loop."""
        if width == 1:
            return {}
        used: dict[int, ir.Value] = {}
        helper = BodyEmitter(self.context, [], [], width, regs, regs)
        for instruction in code:
            for x in operands_of(instruction):
                if isinstance(x, kernels.Register) and id(x) in regs and id(x) not in used:
                    used[id(x)] = helper.splat(regs[id(x)])
        return used

    def _emit(self, body: BodyEmitter, instruction: kernels.Instruction) -> None:
        entry = next((entry for entry in self.accumulators if entry[0] is instruction), None)
        if entry is None or not isinstance(instruction, (kernels.Reduce, kernels.Running, kernels.Accumulate)):
            body.emit(instruction)
            return
        _, variable, lanes = entry
        dtype = accumulated(instruction)
        value = self._filled(body.value(instruction.value), instruction.op, dtype, lanes)
        if body.repeated is not None:
            value = chosen(
                self.context.builder, body.repeated, constant(dtype, neutral(instruction.op, dtype), lanes), value
            )
        total = self.context.scalars.apply(instruction.op, dtype, [variable.get(), value], dtype)
        variable.set(total)
        if isinstance(instruction, kernels.Running):
            body.regs[id(instruction.out)] = total

    def _filled(self, value: Value, op: str, dtype: kernels.DType, lanes: int) -> Value:
        """A vector extended to `lanes` lanes by neutral elements."""
        width = width_of(value)
        if width == lanes:
            return value
        if width == 1:
            start = constant(dtype, neutral(op, dtype), 1)
            return gathered(self.context.builder, [value, *[start] * (lanes - 1)])
        more = constant(dtype, neutral(op, dtype), width)
        return shuffled(
            self.context.builder, value, more, [place if place < width else width for place in range(lanes)]
        )

    def _finish(self, instruction: kernels.Accumulate, memory: Variable, body: BodyEmitter) -> None:
        """Add the accumulator of the innermost loop to the element in memory."""
        b = self.context.builder
        dtype = instruction.ref.buffer.dtype
        value = folded(self.context, instruction.op, dtype, memory.get())
        pointer = body.base(instruction.ref, [*self.outer_dims, *self.dims[:-1]], body.at)
        write(
            b,
            pointer,
            dtype,
            self.context.scalars.apply(instruction.op, dtype, [read(b, pointer, dtype), value], dtype),
        )
        self.accumulators = [known for known in self.accumulators if known[0] is not instruction]
