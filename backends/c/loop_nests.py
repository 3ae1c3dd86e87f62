"""Loop nests as loops of C.

Every instruction is inside the outermost loop that it depends on. Long reductions run in several lanes: compilers turn
them into vectors without permission to reorder sums. Long sums of floats add up pairwise, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.c.declarations import BIT, c_type, literal, stored_type
from func.backends.c.element_operations import CScalars
from func.backends.c.expressions import ATOM, CBuilder, Piece
from func.backends.llvm.codegen.counted_loops import neutral
from func.backends.llvm.codegen.stage_plans import StagePlan, accumulated, is_sum
from func.backends.loops import kernels
from func.backends.loops.chunking import length_of, row_groups
from func.backends.scalars.ir_values import Pair, Value, constant, element
from func.backends.scalars.operations import EXTREMA

LANES = 8
"""Lanes of a reduction."""
LONG = 16
"""Elements along the innermost loop from which on a reduction runs in lanes."""
TOGETHER, FEW = 4, 8
"""Elements that a lane takes together in a search for maxima, and other instructions of the longest such loop."""
BLOCK = 512
"""Elements of a block of a sum."""
DEPTH = 48
"""Places of the stack of sums: enough for 2**48 blocks."""


class Memory:
    """The names of buffers in the text."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.by_value: set[int] = set()
        """Numbers that are parameters themselves."""

    def name(self, buffer: kernels.Buffer) -> str:
        """The name of the pointer to a buffer."""
        return self.names[id(buffer)]


def index_text(offset: int, terms: Sequence[tuple[str, int]]) -> str:
    """offset + Σ stride * index."""
    parts = []
    for index, stride in terms:
        if stride == 0 or index == "0":
            continue
        if index.isdigit():
            offset += int(index) * stride
        else:
            inner = index if index.isidentifier() or stride == 1 else f"({index})"
            parts.append(inner if stride == 1 else f"-{inner}" if stride == -1 else f"{stride} * {inner}")
    text = " + ".join(parts).replace("+ -", "- ")
    if not text:
        return str(offset)
    if offset:
        text += f" + {offset}" if offset > 0 else f" - {-offset}"
    return text


class BodyWriter:
    """Writes instructions at one index: `at` holds the texts of the positions along the axes `dims`."""

    def __init__(
        self, nests: NestWriter, dims: Sequence[int], at: Sequence[str], rows: dict[int, Value], regs: dict[int, Value]
    ) -> None:
        self.nests = nests
        self.builder, self.scalars = nests.builder, nests.scalars
        self.at = dict(zip(dims, at, strict=True))
        self.rows = rows
        self.regs = regs

    def value(self, x: kernels.Operand) -> Value:
        """An operand."""
        if isinstance(x, kernels.Literal):
            return constant(x.dtype, x.value)
        value = self.regs.get(id(x))
        return self.rows[id(x)] if value is None else value

    def place(self, ref: kernels.StridedRef, indices: Sequence[kernels.DynamicIndex] = ()) -> list[Piece]:
        """The text of an element's index."""
        terms = [(i, ref.strides[axis]) for axis, i in self.at.items() if axis < len(ref.strides)]
        pieces: list[Piece] = [index_text(ref.offset, terms)]
        for index in indices:
            start = " + " if index.stride == 1 else f" + {index.stride} * "
            pieces += [f"{start}(ptrdiff_t)", self.position(index)]
        return pieces

    def load(self, ref: kernels.StridedRef, indices: Sequence[kernels.DynamicIndex] = ()) -> Value:
        """The element at the current index."""
        return self.nests.read(ref.buffer, self.place(ref, indices))

    def position(self, index: kernels.DynamicIndex) -> Value:
        """A position from the start, 0 for one that is out of range, which is an error."""
        b, kind = self.builder, ir.IntType(64)
        wide = self.scalars.convert(self.value(index.value), index.value.dtype, np.dtype(np.int64))
        length, zero = ir.Constant(kind, index.length), ir.Constant(kind, 0)
        if index.value.dtype.kind == "i":
            wide = b.select(b.icmp_signed("<", wide, zero), b.add(wide, length), wide)
        outside = b.fix(b.icmp_unsigned(">=", wide, length))
        b.line("status |= ", outside, " ? 2 : 0;")
        return b.fix(b.select(outside, zero, wide))

    def emit(self, instruction: kernels.Instruction) -> None:
        """Any instruction except a reduction of the stage."""
        if isinstance(instruction, kernels.Load):
            self.regs[id(instruction.out)] = self.load(instruction.ref)
        elif isinstance(instruction, kernels.Apply):
            dtype = instruction.args[-1].dtype
            args = [self.value(x) for x in instruction.args]
            self.regs[id(instruction.out)] = self.scalars.apply(instruction.op, dtype, args, instruction.out.dtype)
        elif isinstance(instruction, kernels.Store):
            self.nests.write(instruction.ref.buffer, self.place(instruction.ref), self.value(instruction.value))
        elif isinstance(instruction, kernels.Position):
            value = self.builder.expression(ir.IntType(64), [f"(uint64_t){self._index(instruction.axis)}"], level=ATOM)
            self.regs[id(instruction.out)] = value
        elif isinstance(instruction, kernels.LoadAt):
            self.regs[id(instruction.out)] = self.load(instruction.ref, instruction.indices)
        elif isinstance(instruction, kernels.StoreAt):
            self.store_at(instruction)
        elif isinstance(instruction, kernels.Accumulate):
            self.combine(instruction.ref, instruction.op, self.value(instruction.value))

    def _index(self, axis: int) -> str:
        text = self.at[axis]
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def combine(self, ref: kernels.StridedRef, op: str, value: Value) -> None:
        """The element becomes op(itself, value)."""
        place, dtype = self.place(ref), ref.buffer.dtype
        have = self.nests.read(ref.buffer, place)
        self.nests.write(ref.buffer, place, self.scalars.apply(op, dtype, [have, value], dtype))

    def store_at(self, instruction: kernels.StoreAt) -> None:
        """Write or add at dynamic positions."""
        buffer, value = instruction.ref.buffer, self.value(instruction.value)
        place = self.place(instruction.ref, instruction.indices)
        if instruction.adds:
            have = self.nests.read(buffer, place)
            value = self.scalars.apply("add", buffer.dtype, [have, value], buffer.dtype)
        self.nests.write(buffer, place, value)


class Accumulator:
    """Variables for a reduction: one for each lane and part of a number."""

    def __init__(self, nests: NestWriter, op: str, dtype: kernels.DType, lanes: int, pairwise: bool) -> None:
        self.nests, self.builder = nests, nests.builder
        self.op, self.dtype, self.lanes, self.pairwise = op, dtype, lanes, pairwise
        self.start = constant(dtype, neutral(op, dtype))
        self.kind = element(dtype)
        self.names = [self.builder.fresh("s") for _ in self._parts(self.start)]
        word = c_type(self.kind)
        for name, start in zip(self.names, self._parts(self.start), strict=True):
            if lanes == 1:
                self.builder.line(f"{word} {name} = {literal(start)};")
            elif literal(start) == "0.0" or literal(start) == "0.0f":
                self.builder.line(f"{word} {name}[{lanes}] = {{0}};")
            else:
                self.builder.line(f"{word} {name}[{lanes}] = {{{', '.join([literal(start)] * lanes)}}};")
            if pairwise:
                self.builder.line(f"{word} {name}_stack[{DEPTH}];")
                self.builder.line(f"size_t {name}_count = 0;")
        self.builder.epoch += 1

    @staticmethod
    def _parts(value: Value) -> list[ir.Value]:
        return [value.re, value.im] if isinstance(value, Pair) else [value]

    def _joined(self, texts: Sequence[str]) -> Value:
        values = [self.builder.expression(self.kind, [text], level=ATOM) for text in texts]
        return Pair(*values) if len(values) == 2 else values[0]

    def get(self, lane: str = "0") -> Value:
        """The current value of a lane."""
        return self._joined([name if self.lanes == 1 else f"{name}[{lane}]" for name in self.names])

    def set(self, value: Value, lane: str = "0") -> None:
        """Replace the value of a lane."""
        for part in self._parts(value):
            self.builder.fix(part) if len(self.names) == 2 else None
        for name, part in zip(self.names, self._parts(value), strict=True):
            target = name if self.lanes == 1 else f"{name}[{lane}]"
            self.builder.line(f"{target} = ", part, ";")
        self.builder.epoch += 1

    def add(self, value: Value, lane: str = "0") -> Value:
        """Combine a lane with a value."""
        total = self.combined(self.get(lane), value)
        self.set(total, lane)
        return total

    def combined(self, x: Value, y: Value) -> Value:
        """Two values as one."""
        return self.nests.scalars.reduced(self.op, self.dtype, x, y)

    def fold(self) -> Value:
        """All lanes combined."""
        values = [self.get(str(lane)) for lane in range(self.lanes)]
        while len(values) > 1:
            half = len(values) // 2
            values = [self.combined(x, y) for x, y in zip(values[:half], values[half:], strict=True)]
        return values[0]

    def push(self) -> None:
        """Put the sum of a block on the stack, and begin another."""
        word, sum_ = c_type(self.kind), self._parts(self.fold())
        self.nests.scalars.definitions.pairwise(word)
        for name, start, part in zip(self.names, self._parts(self.start), sum_, strict=True):
            self.builder.line(f"func_push_{word}({name}_stack, &{name}_count, ", part, ");")
            if self.lanes == 1:
                self.builder.line(f"{name} = {literal(start)};")
            else:
                with self.builder.counted(self.lanes) as lane:
                    self.builder.line(f"{name}[{lane}] = {literal(start)};")
        self.builder.epoch += 1

    def total(self) -> Value:
        """The result."""
        if self.pairwise:
            word = c_type(self.kind)
            return self._joined([f"func_total_{word}({name}_stack, {name}_count)" for name in self.names])
        total = self.fold()
        for part in self._parts(total) if self.lanes > 1 else ():
            self.builder.fix(part)
        return total


class NestWriter:
    """Writes one nest after the other."""

    def __init__(self, builder: CBuilder, scalars: CScalars, memory: Memory) -> None:
        self.builder = builder
        self.scalars = scalars
        self.memory = memory
        self.unread: set[int] = set()
        """Scratch memory that nothing reads."""

    # -- memory -----------------------------------------------------------------------------------------------------
    def read(self, buffer: kernels.Buffer, place: Sequence[Piece]) -> Value:
        """An element of a buffer."""
        b, name, dtype = self.builder, self.memory.name(buffer), buffer.dtype
        kind = element(dtype)
        cast = f"({c_type(kind)})" if dtype.kind == "i" else ""
        if id(buffer) in self.memory.by_value:
            return b.expression(kind, [f"({name} != 0)" if dtype.kind == "b" else f"{cast}{name}"], level=ATOM)
        if dtype.kind == "c":
            return Pair(
                b.expression(kind, [f"{name}[2 * (", *place, ")]"], level=ATOM),
                b.expression(kind, [f"{name}[2 * (", *place, ") + 1]"], level=ATOM),
            )
        if dtype.kind == "b":
            return b.expression(BIT, [f"({name}[", *place, "] != 0)"], level=ATOM)
        return b.expression(kind, [f"{cast}{name}[", *place, "]"], level=ATOM)

    def write(self, buffer: kernels.Buffer, place: Sequence[Piece], value: Value) -> None:
        """Store an element of a buffer."""
        if id(buffer.storage) in self.unread:
            return
        b, name, dtype = self.builder, self.memory.name(buffer), buffer.dtype
        if dtype.kind == "c":
            b.fix(value.re)
            b.fix(value.im)
            b.line(f"{name}[2 * (", *place, ")] = ", value.re, ";")
            b.line(f"{name}[2 * (", *place, ") + 1] = ", value.im, ";")
        else:
            cast = f"({stored_type(dtype)})" if dtype.kind in "bi" else ""
            b.line(f"{name}[", *place, f"] = {cast}", value, ";")
        b.epoch += 1

    # -- loops ------------------------------------------------------------------------------------------------------
    def emit(self, nest: kernels.LoopNest) -> None:
        """All loops of a nest."""
        for buffer, value in nest.fills:
            self.fill(buffer, value)
        self.scalars.in_loop = math.prod(nest.domain) >= LONG
        if 0 not in nest.domain:
            self._rows(nest, row_groups(nest), [])
        self.scalars.in_loop = False

    def fill(self, buffer: kernels.Buffer, value: Any) -> None:
        """Set all elements of a buffer."""
        with self.builder.counted(buffer.size) as i:
            self.write(buffer, [i], constant(buffer.dtype, value))

    def _rows(self, nest: kernels.LoopNest, groups: list[list[int]], at: list[str]) -> None:
        if len(at) < len(groups):
            with self.builder.counted(length_of(nest, groups[len(at)])) as i:
                self._rows(nest, groups, [*at, i])
            return
        rows: dict[int, Value] = {}
        dims = [group[-1] for group in groups]
        for stage in nest.stages:
            if stage.inner:
                StageWriter(self, nest, stage, dims, at, rows).emit()
            else:
                body = BodyWriter(self, dims, at, rows, rows)
                for instruction in stage.code:
                    body.emit(instruction)


class StageWriter:
    """The loops of one inner stage, at one row."""

    def __init__(
        self,
        nests: NestWriter,
        nest: kernels.LoopNest,
        stage: kernels.NestStage,
        dims: list[int],
        at: list[str],
        rows: dict[int, Value],
    ) -> None:
        self.nests, self.builder = nests, nests.builder
        self.outer_dims, self.outer_at, self.rows = dims, at, rows
        self.plan = StagePlan(nest, stage, None, 64)
        self.dims, self.lengths, self.levels = self.plan.dims, self.plan.lengths, self.plan.levels
        code = self.levels[-1]
        self.reductions = [
            instruction
            for instruction in code
            if isinstance(instruction, (kernels.Reduce, kernels.Running))
            or (isinstance(instruction, kernels.Accumulate) and self.dims and not self.plan.moves(instruction))
        ]
        ordered = any([isinstance(instruction, (kernels.StoreAt, kernels.Running)) for instruction in code])
        long = bool(self.lengths) and self.lengths[-1] >= LONG
        self.lanes = LANES if self.reductions and long and not ordered else 1
        self.accumulators: dict[int, Accumulator] = {}
        self.block = self._block()

    def _block(self) -> tuple[int, int] | None:
        """The depth of the loop to cut into blocks, and the steps of a block; None where sums are short."""
        lengths = self.lengths
        if math.prod(lengths) < 2 * BLOCK or not any([is_sum(instruction) for instruction in self.reductions]):
            return None
        for depth in reversed(range(len(lengths))):
            inside = math.prod(lengths[depth + 1 :])
            if lengths[depth] * inside >= 2 * BLOCK:
                return depth, max(1, BLOCK // inside)
        return None

    def emit(self) -> None:
        """Loops, and the values of reductions afterwards."""
        for instruction in self.reductions:
            if not isinstance(instruction, kernels.Accumulate):
                self._accumulator(instruction, self.block is not None)
        self._loops(0, [], dict(self.rows))
        for instruction in self.reductions:
            if isinstance(instruction, kernels.Reduce):
                self.rows[id(instruction.out)] = self.accumulators[id(instruction)].total()

    def _accumulator(self, instruction: Any, blocked: bool) -> Accumulator:
        pairwise = blocked and is_sum(instruction)
        accumulator = Accumulator(self.nests, instruction.op, accumulated(instruction), self.lanes, pairwise)
        self.accumulators[id(instruction)] = accumulator
        return accumulator

    def _body(self, at: list[str], regs: dict[int, Value]) -> BodyWriter:
        return BodyWriter(self.nests, [*self.outer_dims, *self.dims[: len(at)]], [*self.outer_at, *at], self.rows, regs)

    def _loops(self, depth: int, at: list[str], regs: dict[int, Value]) -> None:
        body = self._body(at, regs)
        if depth == len(self.dims):
            for instruction in self.levels[depth]:
                self._emit(body, instruction, "0")
            return
        for instruction in self.levels[depth]:
            body.emit(instruction)
        innermost = depth == len(self.dims) - 1
        local = [each for each in self.reductions if innermost and isinstance(each, kernels.Accumulate)]
        blocked = self.block is not None and self.block[0] == depth
        for instruction in local:
            self._accumulator(instruction, blocked)
        length = self.lengths[depth]
        if blocked and self.block is not None:
            step = self.block[1]
            with self.builder.counted(length, step) as start:
                stop = str(length)
                if length % step:
                    stop = self.builder.fresh("end")
                    self.builder.line(
                        f"const ptrdiff_t {stop} = {start} + {step} < {length} ? {start} + {step} : {length};"
                    )
                else:
                    stop = f"{start} + {step}"
                self._span(depth, at, regs, start, stop, step, length % step)
                for accumulator in self.accumulators.values():
                    if accumulator.pairwise:
                        accumulator.push()
        else:
            self._span(depth, at, regs, "0", str(length), length, 0)
        for instruction in local:
            total = self.accumulators.pop(id(instruction)).total()
            self._body(at, regs).combine(_outer(instruction.ref, self.dims[-1]), instruction.op, total)

    def _span(
        self, depth: int, at: list[str], regs: dict[int, Value], start: str, stop: str, length: int, last: int
    ) -> None:
        """The loop from start to stop: `length` steps, or `last` ones in the last block."""
        b = self.builder
        if depth < len(self.dims) - 1 or self.lanes == 1:
            first: int | str = int(start) if start.isdigit() else start
            end: int | str = int(stop) if stop.isdigit() else stop
            with b.counted(end, 1, first) as i:
                self._loops(depth + 1, [*at, i], dict(regs))
            return
        lanes, wide = self.lanes, TOGETHER * self.lanes
        counts = length, last
        steps = [wide] if self._is_light() and length >= wide else []
        steps += [lanes] if not steps or any([count % wide >= lanes for count in counts]) else []
        rest = any([count % lanes for count in counts])
        index = b.fresh("i")
        if rest or len(steps) > 1:
            b.line(f"ptrdiff_t {index} = {start};")
            openings = [f"for (; {index} + {step} <= {stop}; {index} += {step}) {{" for step in steps]
        else:
            openings = [f"for (ptrdiff_t {index} = {start}; {index} < {stop}; {index} += {steps[0]}) {{"]
        for step, opening in zip(steps, openings, strict=True):
            with b.braces(opening), b.counted(lanes) as lane:
                places = [f"{index} + {lane}", *[f"{index} + {lane} + {more}" for more in range(lanes, step, lanes)]]
                self._lane([[*at, place] for place in places], regs, lane)
        if rest:
            lane = b.fresh("i")
            with b.braces(f"for (ptrdiff_t {lane} = 0; {index} < {stop}; ++{index}, ++{lane}) {{"):
                self._lane([[*at, index]], regs, lane)

    def _is_light(self) -> bool:
        """Whether the innermost loop finds maxima and minima with little other work: gcc does not vectorize a short
        loop over lanes, which it unrolls before.
        """
        others = [instruction for instruction in self.levels[-1] if instruction not in self.reductions]
        return (
            all([isinstance(each, kernels.Reduce) and each.op in EXTREMA for each in self.reductions])
            and all([isinstance(each, (kernels.Load, kernels.Apply)) for each in others])
            and len(others) <= FEW
        )

    def _lane(self, places: Sequence[list[str]], regs: dict[int, Value], lane: str) -> None:
        """The body at some places, whose values one lane takes together."""
        if len(places) == 1:
            self._one(self._body(places[0], dict(regs)), lane)
            return
        bodies = [self._body(at, dict(regs)) for at in places]
        for body in bodies:
            for instruction in self.levels[-1]:
                if id(instruction) not in self.accumulators:
                    body.emit(instruction)
        for instruction in self.reductions:
            accumulator = self.accumulators[id(instruction)]
            values = [body.value(instruction.value) for body in bodies]
            while len(values) > 1:
                values = [accumulator.combined(x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
            accumulator.add(values[0], lane)

    def _one(self, body: BodyWriter, lane: str) -> None:
        for instruction in self.levels[-1]:
            self._emit(body, instruction, lane)

    def _emit(self, body: BodyWriter, instruction: kernels.Instruction, lane: str) -> None:
        accumulator = self.accumulators.get(id(instruction))
        if accumulator is None or not isinstance(instruction, (kernels.Reduce, kernels.Running, kernels.Accumulate)):
            body.emit(instruction)
            return
        accumulator.add(body.value(instruction.value), lane)
        if isinstance(instruction, kernels.Running):
            body.regs[id(instruction.out)] = accumulator.get()


def _outer(ref: kernels.StridedRef, axis: int) -> kernels.StridedRef:
    """A reference that does not vary along an axis, without its stride."""
    strides = tuple([0 if place == axis else stride for place, stride in enumerate(ref.strides)])
    return kernels.StridedRef(ref.buffer, ref.offset, strides)
