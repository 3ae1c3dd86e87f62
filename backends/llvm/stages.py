"""The loops of one stage of a nest as LLVM IR: vectors along the innermost dimension, reductions.

Every instruction is emitted at the depth of the deepest loop that it depends on: what does not vary along the innermost
dimension is a scalar outside its loop. The innermost loop takes `width` elements at a time as one vector, and what is
left over as one shorter vector, so that the code of a body is emitted at most twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from func.backends.division import collapse, spots_of, strides_of
from func.backends.kernels import (
    Accumulate,
    Apply,
    DType,
    Instruction,
    Literal,
    Load,
    LoadAt,
    Nest,
    Operand,
    Position,
    Reduce,
    Reg,
    Running,
    Spot,
    Stage,
    Store,
    StoreAt,
)
from func.backends.llvm.bodies import Body, Context
from func.backends.llvm.loops import INDEX, loop, neutral, number
from func.backends.llvm.values import (
    Value,
    Variable,
    chosen,
    constant,
    gathered,
    lane,
    part_of,
    read,
    shuffled,
    width_of,
    write,
)

LIGHT, MIDDLE = 12, 40
"""Bodies of up to so many instructions take four, and two, registers at a time."""


class StageLoops:
    """The loops of one inner stage, at one row."""

    def __init__(
        self,
        context: Context,
        nest: Nest,
        stage: Stage,
        dims: list[int],
        at: list[ir.Value],
        rows: dict[int, ir.Value],
    ) -> None:
        self.context = context
        self.stage = stage
        self.outer_dims, self.outer_at = dims, at
        self.rows = rows
        strides = strides_of(stage.code, len(nest.domain))
        groups = collapse(nest.domain, strides, nest.outer or 0, len(nest.domain))
        self.dims = [group[-1] for group in groups]
        self.lengths = [int(np.prod([nest.domain[axis] for axis in group])) for group in groups]
        self.groups = groups
        self.levels = self._levels()
        self.accumulators: list[tuple[Reduce | Running | Accumulate, Variable, int]] = []

    def _levels(self) -> list[list[Instruction]]:
        """The instructions by the number of loops that they depend on."""
        depth: dict[int, int] = {}
        levels: list[list[Instruction]] = [[] for _ in range(len(self.dims) + 1)]

        def of(x: Operand) -> int:
            return 0 if isinstance(x, Literal) else depth.get(id(x), 0)

        def of_spot(spot: Spot) -> int:
            varying = [i + 1 for i, axis in enumerate(self.dims) if spot.strides[axis]]
            return max(varying, default=0)

        written = {id(one.spot.buffer) for one in self.stage.code if isinstance(one, (Store, StoreAt, Accumulate))}
        for one in self.stage.code:
            if isinstance(one, Load):
                level = len(self.dims) if id(one.spot.buffer) in written else of_spot(one.spot)
                depth[id(one.out)] = level
            elif isinstance(one, Position):
                level = self.dims.index(one.axis) + 1 if one.axis in self.dims else 0
                depth[id(one.out)] = level
            elif isinstance(one, Apply):
                level = max([of(x) for x in one.args], default=0)
                depth[id(one.out)] = level
            elif isinstance(one, LoadAt):
                level = max(of_spot(one.spot), *[of(pick.index) for pick in one.picks])
                depth[id(one.out)] = level
            else:
                level = len(self.dims)
                if isinstance(one, Running):
                    depth[id(one.out)] = level
            levels[level].append(one)
        return levels

    def emit(self) -> None:
        """Loops, and the values of reductions afterwards."""
        width = self.width()
        for one in self.levels[-1]:
            if isinstance(one, (Reduce, Running)):
                self._accumulator(one, width if self.dims else 1)
        self._loops(0, [], dict(self.rows), width)
        for one, memory, _ in self.accumulators:
            if isinstance(one, Reduce):
                self.rows[id(one.out)] = self.folded(one.op, one.out.dtype, memory.get())

    def width(self) -> int:
        """How many elements are taken at a time."""
        if not self.dims:
            return 1
        code = self.levels[-1]
        sizes = [part_of(one.out.dtype).itemsize for one in code if isinstance(one, (Load, Apply, LoadAt, Position))]
        sizes += [part_of(one.spot.buffer.dtype).itemsize for one in code if isinstance(one, (Store, Accumulate))]
        if any([isinstance(one, (StoreAt, Running)) for one in code]):
            return 1
        native = self.context.bits // (8 * max(sizes, default=8))
        times = 4 if len(code) <= LIGHT else 2 if len(code) <= MIDDLE else 1
        width = native * times
        while width > native and width > self.lengths[-1]:
            width //= 2
        return min(width, self.lengths[-1])

    def _accumulator(self, one: Reduce | Running | Accumulate, lanes: int) -> Variable:
        dtype = one.spot.buffer.dtype if isinstance(one, Accumulate) else one.out.dtype
        memory = Variable(self.context.builder, dtype, lanes)
        memory.set(constant(dtype, neutral(one.op, dtype), lanes))
        self.accumulators.append((one, memory, lanes))
        return memory

    def _loops(self, depth: int, at: list[ir.Value], regs: dict[int, ir.Value], width: int) -> None:
        if depth < len(self.dims):
            body = self._body(at, 1, regs)
            for one in self.levels[depth]:
                body.emit(one)
            if depth == len(self.dims) - 1:
                self._innermost(at, regs, width)
            else:
                length = self.lengths[depth]
                loop(self.context.builder, length, 1, lambda i: self._loops(depth + 1, [*at, i], dict(regs), width))
            return
        body = self._body(at, 1, regs)
        for one in self.levels[depth]:
            self._emit(body, one)

    def _body(self, at: list[ir.Value], width: int, regs: dict[int, ir.Value], bases: Any = None) -> Body:
        dims = [*self.outer_dims, *self.dims[: len(at)]]
        return Body(self.context, dims, [*self.outer_at, *at], width, regs, regs, bases)

    def _innermost(self, at: list[ir.Value], regs: dict[int, ir.Value], width: int) -> None:
        length = self.lengths[-1]
        main, rest = length // width * width, length % width
        code = self.levels[-1]
        axis = self.dims[-1]
        local = []
        for one in code:
            if isinstance(one, Accumulate) and not one.spot.strides[axis]:
                local.append((one, self._accumulator(one, width)))
        bases: dict[Any, ir.Value] = {}
        outside = self._body(at, 1, regs)
        for spot in spots_of(code):  # addresses are worked out before the loop
            key_dims = [*self.outer_dims, *self.dims[:-1]]
            outside.bases = bases
            outside.base(spot, key_dims, [*self.outer_at, *at])
        splats = self._splats(code, regs, width)

        def run(i: ir.Value, lanes: int, again: Any = None) -> None:
            inside = dict(regs)
            if lanes == width:
                inside.update(splats)
            body = self._body([*at, i], lanes, inside, bases)
            body.again = again
            for one in code:
                self._emit(body, one)

        if rest and self._overlaps(code, axis):
            self._overlapping(length, width, run)
        else:
            loop(self.context.builder, main, width, lambda i: run(i, width))
            if rest:
                run(number(main), rest)
        for one, memory in local:
            self._finish(one, memory, outside)

    def _overlaps(self, code: list[Instruction], axis: int) -> bool:
        """Whether the last vector may begin before the one in front of it ends: the body is long, so that emitting it
        twice takes time, and doing elements again changes nothing."""
        if len(code) <= MIDDLE:
            return False
        read = {id(one.spot.buffer.storage) for one in code if isinstance(one, (Load, LoadAt))}
        for one in code:
            if isinstance(one, Store) and id(one.spot.buffer.storage) in read:
                return False
            if isinstance(one, StoreAt) or (isinstance(one, Accumulate) and one.spot.strides[axis]):
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
            again = b.icmp_unsigned("<", lanes, helper.splat(b.sub(i, start)))
            run(start, width, again)

        loop(b, -(-length // width) * width, width, step)

    def _splats(self, code: list[Instruction], regs: dict[int, ir.Value], width: int) -> dict[int, ir.Value]:
        """Scalars that the innermost loop uses, spread over vectors before it."""
        if width == 1:
            return {}
        used: dict[int, ir.Value] = {}
        helper = Body(self.context, [], [], width, regs, regs)
        for one in code:
            operands: Sequence[Operand] = ()
            if isinstance(one, Apply):
                operands = one.args
            elif isinstance(one, (Store, StoreAt, Reduce, Running, Accumulate)):
                operands = (one.value,)
            elif isinstance(one, LoadAt):
                operands = [pick.index for pick in one.picks]
            for x in operands:
                if isinstance(x, Reg) and id(x) in regs and id(x) not in used:
                    used[id(x)] = helper.splat(regs[id(x)])
        return used

    def _emit(self, body: Body, one: Instruction) -> None:
        kept = next((memory for known, memory, _ in self.accumulators if known is one), None)
        if kept is None or not isinstance(one, (Reduce, Running, Accumulate)):
            body.emit(one)
            return
        lanes = next(lanes for known, _, lanes in self.accumulators if known is one)
        dtype = one.spot.buffer.dtype if isinstance(one, Accumulate) else one.out.dtype
        value = self._filled(body.value(one.value), one.op, dtype, lanes)
        if body.again is not None:
            value = chosen(self.context.builder, body.again, constant(dtype, neutral(one.op, dtype), lanes), value)
        made = self.context.scalars.apply(one.op, dtype, [kept.get(), value], dtype)
        kept.set(made)
        if isinstance(one, Running):
            body.regs[id(one.out)] = made

    def _filled(self, value: Value, op: str, dtype: DType, lanes: int) -> Value:
        """A shorter vector lengthened by neutral elements."""
        have = width_of(value)
        if have == lanes:
            return value
        if have == 1:
            start = constant(dtype, neutral(op, dtype), 1)
            return gathered(self.context.builder, [value, *[start] * (lanes - 1)])
        more = constant(dtype, neutral(op, dtype), have)
        return shuffled(self.context.builder, value, more, [place if place < have else have for place in range(lanes)])

    def _finish(self, one: Accumulate, memory: Variable, body: Body) -> None:
        """Add what the innermost loop has gathered to the element in memory."""
        b = self.context.builder
        dtype = one.spot.buffer.dtype
        value = self.folded(one.op, dtype, memory.get())
        pointer = body.base(one.spot, [*self.outer_dims, *self.dims[:-1]], body.at)
        write(b, pointer, dtype, self.context.scalars.apply(one.op, dtype, [read(b, pointer, dtype), value], dtype))
        self.accumulators = [known for known in self.accumulators if known[0] is not one]

    def folded(self, op: str, dtype: DType, value: Value) -> Value:
        """The lanes of a vector as one value: halves are combined until one lane is left."""
        b = self.context.builder
        width = width_of(value)
        while width > 2:
            half = (width + 1) // 2
            low = shuffled(b, value, value, range(half))
            if width % 2:
                upper = [place if place < width else width for place in range(half, 2 * half)]
                high = shuffled(b, value, constant(dtype, neutral(op, dtype), width), upper)
            else:
                high = shuffled(b, value, value, range(half, width))
            value = self.context.scalars.apply(op, dtype, [low, high], dtype)
            width = half
        if width == 1:
            return value
        return self.context.scalars.apply(op, dtype, [lane(b, value, 0), lane(b, value, 1)], dtype)
