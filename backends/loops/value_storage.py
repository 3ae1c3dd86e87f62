"""The storage of the values of a body: in memory, and as operands of a stage.

An operation may need a register of another nest or stage. It recomputes the register if that is cheaper than memory
(`rematerialization.py`). Otherwise it stores the register where it is set, and loads it.
"""

from __future__ import annotations

import math

from func.backends.loops import kernels
from func.backends.loops.kernels import Apply, Buffer, Literal, Load, Operand, Position, Reduce, Register, Shape, Store
from func.backends.loops.rematerialization import MOST_REPEATED, WORTH, bytes_read, cost_of, recipe_of
from func.backends.loops.schedule import Schedule
from func.backends.loops.values import ArrayValue, Axis, Root, domain_of
from func.backends.records import Record, field

EVERY_ROW = 1 << 62
"""The last item that writes to memory which has another value at every row."""


class Copies(Record):
    """The copies of earlier stages' registers in later stages of a nest."""

    registers: dict[tuple[int, int], Operand] = field(default_factory=dict)
    """By register (by id) and stage."""
    refs: dict[int, kernels.StridedRef] = field(default_factory=dict)
    """Memory for one row of a register (by id)."""


class ValueStorage:
    """The memory and the registers that hold the values of one body."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._copies: dict[int, Copies] = {}
        """By nest."""
        self._loads: dict[tuple[int, int, int, int, tuple[int, ...]], Register] = {}
        """By nest, stage, buffer (by id), offset and strides."""
        self._rematerialized: dict[tuple[int, int, int, Shape, Shape, tuple[Axis, ...]], Operand] = {}
        """By register (by id), nest, stage, shape of the loops, and shape and index of the view."""

    def located(
        self,
        buffer: Buffer,
        shape: Shape,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        ready: int = -1,
    ) -> ArrayValue:
        """An array in memory, readable after the item `ready`."""
        strides = kernels.row_major(shape) if strides is None else strides
        axes = [axis for axis, length in enumerate(shape) if length != 1]
        ref = kernels.StridedRef(buffer, offset, tuple([strides[axis] for axis in axes]))
        root = Root(tuple([shape[axis] for axis in axes]), buffer.dtype, ref=ref, ready=ready)
        return ArrayValue(shape, buffer.dtype, root, tuple([(0, 1, axis) for axis in axes]))

    def result(self, buffer: Buffer, shape: Shape, item: int) -> ArrayValue:
        """An array that an item has written."""
        self.schedule.note_write(buffer, item)
        return self.located(buffer, shape, ready=item)

    def ref(self, x: ArrayValue) -> kernels.StridedRef:
        """The memory of an array, with a stride for every axis; stores an array in a register."""
        if x.root is None:
            return self.ref(self.copied(x))
        ref = self.stored(x.root)
        offset = ref.offset
        strides = [0] * len(x.shape)
        for (start, step, dim), stride in zip(x.index, ref.strides, strict=True):
            offset += start * stride
            if dim is not None:
                strides[dim] += step * stride
        return kernels.StridedRef(ref.buffer, offset, tuple(strides))

    def stored(self, root: Root) -> kernels.StridedRef:
        """The memory of a root; stores one in a register in the stage that sets it."""
        if root.ref is None:
            assert root.register is not None
            ref = root.ref = kernels.StridedRef(
                Buffer(math.prod(root.domain), root.dtype), 0, kernels.row_major(root.domain)
            )
            root.ready = root.nest
            stage = root.stage
            if root.is_row and self.schedule.nest(root.nest).stages[stage].inner:
                stage = self.schedule.stage_from(root.nest, stage + 1, False)
            self.schedule.emit(root.nest, stage, Store(ref, root.register))
            self.schedule.note_write(ref.buffer, root.nest)
        return root.ref

    def copied(self, x: ArrayValue, into: kernels.StridedRef | None = None) -> ArrayValue:
        """A copy of an array in row-major order, or in `into` (with a stride for every axis)."""
        if into is None:
            into = kernels.StridedRef(Buffer(math.prod(x.shape), x.dtype), 0, kernels.row_major(x.shape))
        target = self.located(into.buffer, x.shape, into.strides, into.offset)
        assert target.root is not None
        target.root.ready = self.write(target, x)
        return target

    def write(self, target: ArrayValue, x: ArrayValue, is_apart: bool = False) -> int:
        """Write x over a view of memory; the number of the nest that does it.

        `is_apart`: nothing else reads or writes this memory, so the nest may also write to adjacent memory.
        """
        ref = self.ref(target)
        shape = target.shape
        after = -1 if is_apart else self.last_change(target, ref)
        nest = self.schedule.find_nest(shape, [x], after=after)
        stage = self.schedule.stage_for(nest, shape, [x])
        value = self.operand(nest, stage, x, shape)
        _, axes = domain_of(shape)
        by_domain = kernels.StridedRef(ref.buffer, ref.offset, tuple([ref.strides[axis] for axis in axes]))
        self.schedule.emit(nest, stage, Store(by_domain, value))
        self.schedule.note_write(ref.buffer, nest)
        return nest

    def last_change(self, x: ArrayValue, ref: kernels.StridedRef) -> int:
        """The last item that changes the memory of an array at `ref`."""
        last_write = self.schedule.last_writes.get(id(ref.buffer.storage), -1)
        return last_write if x.root is None else max(x.root.ready, last_write)

    def operand(self, nest: int, stage: int, x: ArrayValue, shape: Shape) -> Operand:
        """The element of `x` at an index of `shape`, as an operand in a stage."""
        root = x.root
        if root is None:
            return Literal(x.number, x.dtype)
        if root.register is not None and root.nest == nest and self.schedule.is_at_hand(x, shape):
            if root.is_row or root.stage == stage:
                return root.register
            return self._from_earlier_stage(nest, stage, root)
        if root.ref is None and not root.is_row:
            again = self._rematerialize(nest, stage, x, shape)
            if again is not None:
                return again
        return self._load(nest, stage, self._by_loops(x, nest, stage, shape))

    def _by_loops(self, x: ArrayValue, nest: int, stage: int, shape: Shape) -> kernels.StridedRef:
        """The memory of x by the loops of a stage, at an index of `shape`."""
        ref, loops = self.ref(x), self.schedule.nest(nest)
        lead = len(shape) - len(x.shape)
        strides = [0] * len(shape)
        for axis, stride in enumerate(ref.strides):
            if x.shape[axis] != 1:
                strides[axis + lead] = stride
        by_domain = tuple([strides[axis] for axis in domain_of(shape)[1]])
        assert len(by_domain) == len(loops.domain if loops.stages[stage].inner else loops.domain[: loops.outer])
        return kernels.StridedRef(ref.buffer, ref.offset, by_domain)

    def _load(self, nest: int, stage: int, ref: kernels.StridedRef) -> Register:
        """The element at a reference, loaded once in a stage."""
        key = (nest, stage, id(ref.buffer), ref.offset, ref.strides)
        register = self._loads.get(key)
        if register is None:
            register = self._loads[key] = self.schedule.new_register(ref.buffer.dtype)
            self.schedule.emit(nest, stage, Load(register, ref), register)
        return register

    def _rematerialize(self, nest: int, stage: int, x: ArrayValue, shape: Shape) -> Operand | None:
        """A value of another nest without memory, recomputed; None if that reads more than storing it."""
        root = x.root
        assert root is not None
        key = (id(root.register), nest, stage, shape, x.shape, x.index)
        if key in self._rematerialized:
            return self._rematerialized[key]
        recipe = recipe_of(root, self.schedule)
        if recipe is None:
            return None
        refs = []
        for source in recipe.sources:
            ref = source.place if isinstance(source.place, kernels.StridedRef) else self.stored(source.place)
            strides = (*ref.strides, *[0] * (len(root.domain) - len(ref.strides)))
            there = Root(root.domain, ref.buffer.dtype, ref=kernels.StridedRef(ref.buffer, ref.offset, strides))
            refs.append(self._by_loops(ArrayValue(x.shape, there.dtype, there, x.index), nest, stage, shape))
        domain = self.schedule.nest(nest).domain
        new = [ref for ref in refs if (nest, stage, id(ref.buffer), ref.offset, ref.strides) not in self._loads]
        stored_bytes = math.prod(root.domain) * root.dtype.itemsize
        if sum([bytes_read(ref, domain) for ref in new]) > WORTH * stored_bytes:
            return None
        operands: dict[int, Operand] = {}
        for source, ref in zip(recipe.sources, refs, strict=True):
            operands[id(source.register)] = self._load(nest, stage, ref)
        for step in recipe.steps:
            args = tuple([operands.get(id(arg), arg) for arg in step.args])
            operands[id(step.out)] = self._apply(nest, stage, step, args)
        again = self._rematerialized[key] = operands[id(root.register)]
        return again

    def _apply(self, nest: int, stage: int, step: Apply, args: tuple[Operand, ...]) -> Register:
        """The operation of a step on other operands, in a stage."""
        out = self.schedule.new_register(step.out.dtype)
        self.schedule.emit(nest, stage, Apply(out, step.op, args), out)
        return out

    def _from_earlier_stage(self, nest: int, stage: int, root: Root) -> Operand:
        """A register of an earlier inner stage, for this one: recomputed if that is cheap, else stored in memory."""
        register = root.register
        assert register is not None
        copies = self._copies.setdefault(nest, Copies())
        copy = copies.registers.get((id(register), stage))
        if copy is not None:
            return copy
        if cost_of(register, root.stage, self.schedule, MOST_REPEATED) <= MOST_REPEATED:
            return self._repeat(nest, stage, register, copies)
        ref = root.ref or copies.refs.get(id(register))
        if ref is None:
            loops = self.schedule.nest(nest)
            outer = loops.outer or 0
            row = loops.domain[outer:]
            ref = kernels.StridedRef(Buffer(math.prod(row), root.dtype), 0, (*[0] * outer, *kernels.row_major(row)))
            self.schedule.emit(nest, root.stage, Store(ref, register))
            copies.refs[id(register)] = ref
            self.schedule.last_writes[id(ref.buffer.storage)] = EVERY_ROW
        loaded = self._load(nest, stage, ref)
        self.schedule.roots.setdefault(id(loaded), root)
        copies.registers[id(register), stage] = loaded
        return loaded

    def _repeat(self, nest: int, stage: int, register: Operand, copies: Copies) -> Operand:
        """A register of an earlier inner stage, recomputed in this one."""
        if isinstance(register, Literal):
            return register
        copy = copies.registers.get((id(register), stage))
        if copy is not None:
            return copy
        emitted = self.schedule.emitted[id(register)]
        instruction = emitted.instruction
        if isinstance(instruction, Reduce) or not self.schedule.nest(nest).stages[emitted.stage].inner:
            return register
        again: Register
        if isinstance(instruction, Load):
            again = self._load(nest, stage, instruction.ref)
        elif isinstance(instruction, Position):
            again = self.schedule.new_register(register.dtype)
            self.schedule.emit(nest, stage, Position(again, instruction.axis), again)
        else:
            assert isinstance(instruction, Apply)
            args = tuple([self._repeat(nest, stage, arg, copies) for arg in instruction.args])
            again = self._apply(nest, stage, instruction, args)
        copies.registers[id(register), stage] = again
        return again
