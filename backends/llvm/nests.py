"""Loop nests as LLVM IR: loops, vectors along the innermost dimension, reductions.

Every instruction of a body is emitted at the depth of the deepest loop that it depends on: what does not vary along the
innermost dimension is a scalar outside its loop. The innermost loop takes `width` elements at a time as one vector, and
what is left over as one shorter vector, so that the code of a body is emitted at most twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from func.backends.kernels import (
    Accumulate,
    Apply,
    Buffer,
    DType,
    Instruction,
    Literal,
    Load,
    LoadAt,
    Nest,
    Operand,
    Pick,
    Position,
    Reduce,
    Reg,
    Running,
    Spot,
    Stage,
    Store,
    StoreAt,
)
from func.backends.llvm.scalars import Scalars
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
    splat,
    stored,
    width_of,
    write,
)

INDEX = ir.IntType(64)
POINTER = ir.PointerType()
LIGHT, MIDDLE = 12, 40
"""Bodies of up to so many instructions take four, and two, registers at a time."""
SHIFTS = frozenset({"left_shift", "right_shift"})


def number(value: int) -> ir.Constant:
    """An index."""
    return ir.Constant(INDEX, value)


class Memory:
    """Where the buffers of a function lie: a pointer for every buffer."""

    def __init__(self) -> None:
        self.pointers: dict[int, ir.Value] = {}
        self.bad: Any = None
        """Memory for the number of an error."""

    def pointer(self, buffer: Buffer) -> ir.Value:
        """The first byte of a buffer."""
        return self.pointers[id(buffer)]


def loop(builder: ir.IRBuilder, length: int, step: int, body: Callable[[ir.Value], None]) -> None:
    """body(i) for i = 0, step, … below length, which is a multiple of step; no loop for one pass."""
    if length == 0:
        return
    if length == step:
        body(number(0))
        return
    before = builder.block
    head = builder.append_basic_block()
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(INDEX)
    i.add_incoming(number(0), before)
    body(i)
    after = builder.add(i, number(step), flags=("nuw", "nsw"))
    i.add_incoming(after, builder.block)
    done = builder.append_basic_block()
    builder.cbranch(builder.icmp_unsigned("<", after, number(length)), head, done)
    builder.position_at_end(done)


def neutral(op: str, dtype: DType) -> Any:
    """What a reduction starts with."""
    if op == "add":
        return {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0)
    if op == "multiply":
        return 1
    if op in ("logical_or", "bitwise_or"):
        return 0
    if op in ("logical_and", "bitwise_and"):
        return True if dtype.kind == "b" else -1
    if dtype.kind == "b":
        return op == "minimum"
    if dtype.kind in "fc":
        end = -np.inf if op == "maximum" else np.inf
        return end if dtype.kind == "f" else complex(end, end)
    info = np.iinfo(dtype)
    return info.min if op == "maximum" else info.max


def collapse(dims: Sequence[int], strides: Sequence[Sequence[int]], first: int, last: int) -> list[list[int]]:
    """Groups of neighbouring dimensions in [first, last) that can be run through as one, given all strides."""
    groups: list[list[int]] = []
    for axis in range(first, last):
        joins = bool(groups) and all([one[axis - 1] == one[axis] * dims[axis] for one in strides])
        if joins:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _strides(code: Sequence[Instruction], rank: int) -> list[tuple[int, ...]]:
    """All that goes on by the index: addresses, and positions."""
    found = [spot.strides for spot in _spots(code)]
    for one in code:
        if isinstance(one, Position):
            found.append(tuple([int(axis == one.axis) for axis in range(rank)]))
    return found


def _spots(code: Sequence[Instruction]) -> list[Spot]:
    return [one.spot for one in code if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate))]


class NestPrinter:
    """Emits one nest after the other with a builder."""

    def __init__(self, builder: ir.IRBuilder, scalars: Scalars, memory: Memory, bits: int) -> None:
        self.builder = builder
        self.scalars = scalars
        self.memory = memory
        self.bits = bits

    # --- nests --------------------------------------------------------------------------------------------------

    def emit(self, nest: Nest) -> None:
        """All loops of a nest."""
        for buffer, value in nest.starts:
            self.fill(buffer, value)
        if 0 in nest.domain:
            return
        outer = nest.outer or 0
        self.nest = nest
        strides = [one for stage in nest.stages for one in _strides(stage.code, len(nest.domain))]
        groups = collapse(nest.domain, strides, 0, outer)
        self.rows: dict[int, ir.Value] = {}
        self._outer_loops(groups, [])

    def fill(self, buffer: Buffer, value: Any) -> None:
        """Set all elements of a buffer."""
        if not buffer.size:
            return
        whole = Nest((buffer.size,) if buffer.size > 1 else ())
        code: list[Instruction] = [
            Store(Spot(buffer, 0, (1,) if buffer.size > 1 else ()), Literal(value, buffer.dtype))
        ]
        whole.stages.append(Stage(True, code))
        self.emit(whole)

    def _outer_loops(self, groups: list[list[int]], at: list[ir.Value]) -> None:
        depth = len(at)
        if depth < len(groups):
            length = int(np.prod([self.nest.domain[axis] for axis in groups[depth]]))
            loop(self.builder, length, 1, lambda i: self._outer_loops(groups, [*at, i]))
            return
        dims = [group[-1] for group in groups]
        rows = dict(self.rows)
        for stage in self.nest.stages:
            if stage.inner:
                StageLoops(self, stage, dims, at).emit()
            else:
                self._row_code(stage, dims, at)
        self.rows = rows

    def _row_code(self, stage: Stage, dims: list[int], at: list[ir.Value]) -> None:
        for one in stage.code:
            body = Body(self, dims, at, 1, self.rows, self.rows)
            body.emit(one)


class Body:
    """Emits instructions at one index: `dims` are the axes that `at` gives the positions of."""

    def __init__(
        self,
        printer: NestPrinter,
        dims: list[int],
        at: list[ir.Value],
        width: int,
        rows: dict[int, ir.Value],
        regs: dict[int, ir.Value],
        bases: dict[Any, ir.Value] | None = None,
    ) -> None:
        self.printer = printer
        self.dims = dims
        self.at = at
        self.width = width
        self.rows = rows
        self.regs = regs
        self.bases: dict[Any, ir.Value] = {} if bases is None else bases
        self.again: Any = None
        """Lanes that were done before, which reductions pass over."""

    # --- operands and addresses ---------------------------------------------------------------------------------

    def value(self, x: Operand) -> ir.Value:
        """An operand, in every lane."""
        if isinstance(x, Literal):
            return constant(x.dtype, x.value, self.width)
        found = self.regs.get(id(x))
        if found is None:
            found = self.rows[id(x)]
        return self.splat(found)

    def splat(self, value: Value) -> Value:
        """A scalar in every lane."""
        return splat(self.printer.builder, value, self.width)

    def base(self, spot: Spot, dims: list[int], at: list[ir.Value]) -> ir.Value:
        """The address at positions of some axes."""
        b = self.printer.builder
        key = (id(spot.buffer), spot.offset, tuple([spot.strides[axis] for axis in dims]), len(at))
        found = self.bases.get(key)
        if found is None:
            total: Any = number(spot.offset)
            for axis, i in zip(dims, at, strict=True):
                stride = spot.strides[axis]
                if stride:
                    total = b.add(total, i if stride == 1 else b.mul(i, number(stride)))
            start = self.printer.memory.pointer(spot.buffer)
            found = b.gep(start, [total], source_etype=stored(spot.buffer.dtype))
            self.bases[key] = found
        return found

    def last_stride(self, spot: Spot) -> int:
        """The stride along the vector."""
        return spot.strides[self.dims[-1]] if self.width > 1 else 0

    def address(self, spot: Spot, stride: int) -> ir.Value:
        """The address of the first lane."""
        if not self.dims:
            return self.base(spot, [], [])
        start = self.base(spot, self.dims[:-1], self.at[:-1])
        stride = spot.strides[self.dims[-1]]
        if not stride:
            return start
        b = self.printer.builder
        i = self.at[-1]
        return b.gep(start, [i if stride == 1 else b.mul(i, number(stride))], source_etype=stored(spot.buffer.dtype))

    # --- memory -------------------------------------------------------------------------------------------------

    def load(self, spot: Spot) -> ir.Value:
        """The elements at the present index."""
        stride = self.last_stride(spot)
        return self.load_from(self.address(spot, stride), spot.buffer.dtype, stride)

    def load_from(self, pointer: ir.Value, dtype: DType, stride: int) -> Value:
        """Elements at an address, `stride` apart."""
        b, width, kind = self.printer.builder, self.width, stored(dtype)
        if width == 1 or stride == 0:
            return self.splat(read(b, pointer, dtype))
        if stride == 1:
            return read(b, pointer, dtype, width)
        if stride == -1:
            value = read(b, b.gep(pointer, [number(1 - width)], source_etype=kind), dtype, width)
            return shuffled(b, value, value, list(reversed(range(width))))
        lanes = [b.gep(pointer, [number(place * stride)], source_etype=kind) for place in range(width)]
        return gathered(b, [read(b, one, dtype) for one in lanes])

    def store(self, spot: Spot, value: ir.Value) -> None:
        """Write the elements at the present index."""
        stride = self.last_stride(spot)
        self.store_to(self.address(spot, stride), spot.buffer.dtype, stride, value)

    def store_to(self, pointer: ir.Value, dtype: DType, stride: int, value: Value) -> None:
        """Write elements at an address, `stride` apart; where they fall together the last one stays."""
        b, width, kind = self.printer.builder, self.width, stored(dtype)
        if width == 1 or stride == 1:
            write(b, pointer, dtype, value)
            return
        for place in range(width) if stride else (width - 1,):
            write(b, b.gep(pointer, [number(place * stride)], source_etype=kind), dtype, lane(b, value, place))

    # --- instructions -------------------------------------------------------------------------------------------

    def emit(self, one: Instruction) -> None:
        """Any instruction but a Reduce."""
        if isinstance(one, Load):
            self.regs[id(one.out)] = self.load(one.spot)
        elif isinstance(one, Apply):
            self.regs[id(one.out)] = self.apply(one)
        elif isinstance(one, Store):
            self.store(one.spot, self.value(one.value))
        elif isinstance(one, Position):
            self.regs[id(one.out)] = self.place(one.axis)
        elif isinstance(one, LoadAt):
            self.regs[id(one.out)] = self.load_at(one)
        elif isinstance(one, StoreAt):
            self.store_at(one)
        elif isinstance(one, Accumulate):
            dtype = one.spot.buffer.dtype
            have = self.load(one.spot)
            self.store(one.spot, self.printer.scalars.apply(one.op, dtype, [have, self.value(one.value)], dtype))

    def apply(self, one: Apply) -> ir.Value:
        """An operation on the present elements."""
        dtype = one.args[-1].dtype
        return self.printer.scalars.apply(one.op, dtype, [self.value(x) for x in one.args], one.out.dtype)

    def place(self, axis: int) -> ir.Value:
        """The present index along a dimension."""
        b, width = self.printer.builder, self.width
        i = self.at[self.dims.index(axis)]
        if width == 1:
            return i
        lanes = list(range(width)) if axis == self.dims[-1] else [0] * width
        return b.add(self.splat(i), ir.Constant(ir.VectorType(INDEX, width), lanes))

    def load_at(self, one: LoadAt) -> Value:
        """Elements at dynamic positions, lane by lane."""
        b, dtype = self.printer.builder, one.spot.buffer.dtype
        return gathered(b, [read(b, pointer, dtype) for pointer in self.lane_addresses(one.spot, one.picks)])

    def store_at(self, one: StoreAt) -> None:
        """Write at dynamic positions, or add to what is there, one lane after the other."""
        b, dtype, value = self.printer.builder, one.spot.buffer.dtype, self.value(one.value)
        for place, pointer in enumerate(self.lane_addresses(one.spot, one.picks)):
            mine = lane(b, value, place)
            if one.adds:
                mine = self.printer.scalars.apply("add", dtype, [read(b, pointer, dtype), mine], dtype)
            write(b, pointer, dtype, mine)

    def lane_addresses(self, spot: Spot, picks: tuple[Pick, ...]) -> list[ir.Value]:
        """For every lane the address at its dynamic positions; positions out of range are noted and become 0."""
        b, width = self.printer.builder, self.width
        stride = self.last_stride(spot)
        start = self.address(spot, stride)
        total: Any = None
        for pick in picks:
            position = self.position(pick)
            term = b.mul(position, self.constant_index(pick.stride))
            total = term if total is None else b.add(total, term)
        kind = stored(spot.buffer.dtype)
        if width == 1:
            return [b.gep(start, [total], source_etype=kind)]
        found = []
        for place in range(width):
            at = b.add(lane(b, total, place), number(place * stride))
            found.append(b.gep(start, [at], source_etype=kind))
        return found

    def constant_index(self, value: int) -> ir.Constant:
        """An index in every lane."""
        if self.width == 1:
            return number(value)
        return ir.Constant(ir.VectorType(INDEX, self.width), [value] * self.width)

    def position(self, pick: Pick) -> ir.Value:
        """A position in range, counted from the start."""
        b = self.printer.builder
        wide = self.printer.scalars.convert(self.value(pick.index), pick.index.dtype, np.dtype(np.int64))
        length, zero = self.constant_index(pick.length), self.constant_index(0)
        if pick.index.dtype.kind == "i":
            wide = b.select(b.icmp_signed("<", wide, zero), b.add(wide, length), wide)
        outside = b.icmp_unsigned(">=", wide, length)
        found: Any = outside
        if self.width > 1:
            mask = ir.IntType(self.width)
            found = b.icmp_unsigned("!=", b.bitcast(outside, mask), ir.Constant(mask, 0))
        bad, word = self.printer.memory.bad, ir.IntType(32)
        b.store(b.or_(b.load(bad, typ=word), b.shl(b.zext(found, word), ir.Constant(word, 1))), bad)
        return b.select(outside, zero, wide)


class StageLoops:
    """The loops of one inner stage, at one row."""

    def __init__(self, printer: NestPrinter, stage: Stage, dims: list[int], at: list[ir.Value]) -> None:
        self.printer = printer
        self.stage = stage
        self.outer_dims, self.outer_at = dims, at
        nest = printer.nest
        strides = _strides(stage.code, len(nest.domain))
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
        self._loops(0, [], dict(self.printer.rows), width)
        for one, memory, _ in self.accumulators:
            if isinstance(one, Reduce):
                self.printer.rows[id(one.out)] = self.folded(one.op, one.out.dtype, memory.get())

    def width(self) -> int:
        """How many elements are taken at a time."""
        if not self.dims:
            return 1
        code = self.levels[-1]
        sizes = [part_of(one.out.dtype).itemsize for one in code if isinstance(one, (Load, Apply, LoadAt, Position))]
        sizes += [part_of(one.spot.buffer.dtype).itemsize for one in code if isinstance(one, (Store, Accumulate))]
        if any([isinstance(one, (StoreAt, Running)) for one in code]):
            return 1
        native = self.printer.bits // (8 * max(sizes, default=8))
        times = 4 if len(code) <= LIGHT else 2 if len(code) <= MIDDLE else 1
        width = native * times
        while width > native and width > self.lengths[-1]:
            width //= 2
        return min(width, self.lengths[-1])

    def _accumulator(self, one: Reduce | Running | Accumulate, lanes: int) -> Variable:
        dtype = one.spot.buffer.dtype if isinstance(one, Accumulate) else one.out.dtype
        memory = Variable(self.printer.builder, dtype, lanes)
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
                loop(self.printer.builder, length, 1, lambda i: self._loops(depth + 1, [*at, i], dict(regs), width))
            return
        body = self._body(at, 1, regs)
        for one in self.levels[depth]:
            self._emit(body, one)

    def _body(self, at: list[ir.Value], width: int, regs: dict[int, ir.Value], bases: Any = None) -> Body:
        dims = [*self.outer_dims, *self.dims[: len(at)]]
        return Body(self.printer, dims, [*self.outer_at, *at], width, regs, regs, bases)

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
        for spot in _spots(code):  # addresses are worked out before the loop
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
            loop(self.printer.builder, main, width, lambda i: run(i, width))
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
        b = self.printer.builder
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
        helper = Body(self.printer, [], [], width, regs, regs)
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
            value = chosen(self.printer.builder, body.again, constant(dtype, neutral(one.op, dtype), lanes), value)
        made = self.printer.scalars.apply(one.op, dtype, [kept.get(), value], dtype)
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
            return gathered(self.printer.builder, [value, *[start] * (lanes - 1)])
        more = constant(dtype, neutral(op, dtype), have)
        return shuffled(self.printer.builder, value, more, [place if place < have else have for place in range(lanes)])

    def _finish(self, one: Accumulate, memory: Variable, body: Body) -> None:
        """Add what the innermost loop has gathered to the element in memory."""
        b = self.printer.builder
        dtype = one.spot.buffer.dtype
        value = self.folded(one.op, dtype, memory.get())
        pointer = body.base(one.spot, [*self.outer_dims, *self.dims[:-1]], body.at)
        write(b, pointer, dtype, self.printer.scalars.apply(one.op, dtype, [read(b, pointer, dtype), value], dtype))
        self.accumulators = [known for known in self.accumulators if known[0] is not one]

    def folded(self, op: str, dtype: DType, value: Value) -> Value:
        """The lanes of a vector as one value: halves are combined until one lane is left."""
        b = self.printer.builder
        width = width_of(value)
        while width > 2:
            half = (width + 1) // 2
            low = shuffled(b, value, value, range(half))
            if width % 2:
                upper = [place if place < width else width for place in range(half, 2 * half)]
                high = shuffled(b, value, constant(dtype, neutral(op, dtype), width), upper)
            else:
                high = shuffled(b, value, value, range(half, width))
            value = self.printer.scalars.apply(op, dtype, [low, high], dtype)
            width = half
        if width == 1:
            return value
        return self.printer.scalars.apply(op, dtype, [lane(b, value, 0), lane(b, value, 1)], dtype)


__all__ = ["INDEX", "POINTER", "Memory", "NestPrinter", "collapse", "loop", "neutral", "number"]
