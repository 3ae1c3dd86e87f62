"""Where values of fused code lie: memory, and operands at hand in every stage of a nest.

An operation goes into the first nest with its domain that runs late enough (`nesting.py`). A register that another nest
needs is computed again there, if that reads no more than keeping it would, or else stored where it is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from func.backends.loops.kernels import (
    Apply,
    Buffer,
    DType,
    Item,
    Literal,
    Load,
    Operand,
    Position,
    Reduce,
    Reg,
    Shape,
    Store,
    StridedRef,
    row_major,
)
from func.backends.loops.nesting import Nesting
from func.backends.loops.rematerialization import CHEAP, MOST_REPEATED, WORTH, read_by, recipe_of
from func.backends.loops.values import Axis, Root, Val, domain_of, whole

EVERY_ROW = 1 << 62
"""The last item that writes to memory which holds something else at every row."""


@dataclass
class Copies:
    """What was brought into later stages of a nest."""

    regs: dict[tuple[int, int], Operand] = field(default_factory=dict)
    refs: dict[int, StridedRef] = field(default_factory=dict)


class Placement(Nesting):
    """The items of one body, with what is known of the values in them."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[int, Copies] = {}
        self._loads: dict[tuple[int, int, int, int, tuple[int, ...]], Reg] = {}
        self._roots: dict[int, Root] = {}
        """Whose value a register (by id) holds."""
        self._again: dict[tuple[int, int, int, Shape, Shape, tuple[Axis, ...]], Operand] = {}
        self._last_touch: dict[int, int] = {}

    # --- values -------------------------------------------------------------------------------------------------

    def number(self, value: Any, dtype: DType) -> Val:
        """A constant scalar."""
        return Val((), dtype, None, (), value)

    def located(self, buffer: Buffer, shape: Shape, strides: tuple[int, ...] | None = None, offset: int = 0) -> Val:
        """An array in memory."""
        strides = row_major(shape) if strides is None else strides
        kept = [i for i, length in enumerate(shape) if length != 1]
        ref = StridedRef(buffer, offset, tuple([strides[i] for i in kept]))
        root = Root(tuple([shape[i] for i in kept]), buffer.dtype, ref=ref)
        return Val(shape, buffer.dtype, root, tuple([(0, 1, i) for i in kept]))

    # --- memory -------------------------------------------------------------------------------------------------

    def ref(self, x: Val) -> StridedRef:
        """Where an array lies, with a stride for every axis; what is a register only is stored."""
        if x.root is None:
            return self.ref(self.copied(x))
        ref = self._stored(x.root)
        offset = ref.offset
        strides = [0] * len(x.shape)
        for (start, step, dim), stride in zip(x.index, ref.strides, strict=True):
            offset += start * stride
            if dim is not None:
                strides[dim] += step * stride
        return StridedRef(ref.buffer, offset, tuple(strides))

    def _stored(self, root: Root) -> StridedRef:
        if root.ref is None:
            assert root.reg is not None
            buffer = Buffer(math.prod(root.domain), root.dtype)
            self._store(root, StridedRef(buffer, 0, row_major(root.domain)))
        assert root.ref is not None
        return root.ref

    def _store(self, root: Root, ref: StridedRef) -> None:
        """Store a register where it is made."""
        nest = self._nest(root.nest)
        place = root.stage
        assert root.reg is not None
        if root.is_row and nest.stages[place].inner:
            place = self._row_stage(root.nest, place + 1)
        nest.stages[place].code.append(Store(ref, root.reg))
        root.ref, root.ready = ref, root.nest
        self._last_touch[id(ref.buffer.storage)] = max(self._last_touch.get(id(ref.buffer.storage), -1), root.nest)

    def copied(self, x: Val, into: StridedRef | None = None) -> Val:
        """An array of its own in row-major order, or in `into` (with a stride for every axis)."""
        if into is None:
            into = StridedRef(Buffer(math.prod(x.shape), x.dtype), 0, row_major(x.shape))
        found = self.located(into.buffer, x.shape, into.strides, into.offset)
        found.root.ready = self.write(found, x)  # type: ignore[union-attr]
        return found

    def write(self, target: Val, x: Val) -> int:
        """Write x over a view of memory; the item that does it."""
        ref = self.ref(target)
        ready = self._ready_of(target, ref)
        shape = target.shape
        place = self._place(shape, [x], after=ready)
        stage = self._stage(place, shape, [x])
        value = self._operand(place, stage, x, shape)
        _, kept = domain_of(shape)
        self._emit(
            place, stage, Store(StridedRef(ref.buffer, ref.offset, tuple([ref.strides[i] for i in kept])), value)
        )
        self.written(ref.buffer, place)
        return place

    def written(self, buffer: Buffer, item: int) -> None:
        """Note that an item writes to a buffer."""
        key = id(buffer.storage)
        self._last_touch[key] = max(self._last_touch.get(key, -1), item)

    def add_item(self, item: Item) -> int:
        """Append an item that is no nest of this fuser's."""
        self.items.append(item)
        return len(self.items) - 1

    def result(self, buffer: Buffer, shape: Shape, item: int) -> Val:
        """An array that an item has written."""
        found = self.located(buffer, shape)
        found.root.ready = item  # type: ignore[union-attr]
        self.written(buffer, item)
        return found

    def _ready_of(self, x: Val, ref: StridedRef) -> int:
        return max(x.root.ready if x.root is not None else -1, self._last_touch.get(id(ref.buffer.storage), -1))

    # --- operands --------------------------------------------------------------------------------------------------

    def _mapped(self, place: int, shape: Shape, args: Sequence[Val], dtype: DType, make: Any) -> Val:
        domain, _ = domain_of(shape)
        is_row = domain != self._nest(place).domain
        stage = self._stage(place, shape, args)
        regs = tuple([self._operand(place, stage, x, shape) for x in args])
        out = self._reg(dtype)
        self._emit(place, stage, make(out, regs), out)
        root = self._roots[id(out)] = Root(domain, dtype, out, place, stage, is_row)
        return Val(shape, dtype, root, whole(shape))

    def _operand(self, place: int, stage: int, x: Val, shape: Shape) -> Operand:
        """A value of `x` at the present index of `shape` in a stage."""
        if x.root is None:
            return Literal(x.literal, x.dtype)
        root = x.root
        if root.reg is not None and root.nest == place and self._fits(x, shape):
            if root.is_row or root.stage == stage:
                return root.reg
            return self._brought(place, stage, root)
        if root.ref is None and not root.is_row:
            again = self._computed_again(place, stage, x, shape)
            if again is not None:
                return again
        return self._loaded(place, stage, self._here(x, place, stage, shape))

    def _here(self, x: Val, place: int, stage: int, shape: Shape) -> StridedRef:
        """Where x lies by the loops of a stage, at an index of `shape`."""
        ref, nest = self.ref(x), self._nest(place)
        lead = len(shape) - len(x.shape)
        strides = [0] * len(shape)
        for axis, stride in enumerate(ref.strides):
            if x.shape[axis] != 1:
                strides[axis + lead] = stride
        by_domain = tuple([strides[i] for i in domain_of(shape)[1]])
        assert len(by_domain) == len(nest.domain if nest.stages[stage].inner else nest.domain[: nest.outer])
        return StridedRef(ref.buffer, ref.offset, by_domain)

    def _computed_again(self, place: int, stage: int, x: Val, shape: Shape) -> Operand | None:
        """A value of another nest that is in no memory, computed again where that reads no more than keeping it."""
        root = x.root
        assert root is not None
        key = (id(root.reg), place, stage, shape, x.shape, x.index)
        if key in self._again:
            return self._again[key]
        recipe = recipe_of(root, self._made, self._roots, self._last_touch)
        if recipe is None:
            return None
        refs = []
        for leaf in recipe.leaves:
            ref = leaf.found if isinstance(leaf.found, StridedRef) else self._stored(leaf.found)
            strides = (*ref.strides, *[0] * (len(root.domain) - len(ref.strides)))
            there = Root(root.domain, ref.buffer.dtype, ref=StridedRef(ref.buffer, ref.offset, strides))
            refs.append(self._here(Val(x.shape, there.dtype, there, x.index), place, stage, shape))
        domain = self._nest(place).domain
        new = [ref for ref in refs if (place, stage, id(ref.buffer), ref.offset, ref.strides) not in self._loads]
        kept = math.prod(root.domain) * root.dtype.itemsize
        if sum([read_by(ref, domain) for ref in new]) > WORTH * kept:
            return None
        known: dict[int, Operand] = {}
        for leaf, ref in zip(recipe.leaves, refs, strict=True):
            known[id(leaf.reg)] = self._loaded(place, stage, ref)
        for step in recipe.steps:
            made = known[id(step.out)] = self._reg(step.out.dtype)
            args = tuple([known.get(id(arg), arg) for arg in step.args])
            self._emit(place, stage, Apply(made, step.op, args), made)
        found = self._again[key] = known[id(root.reg)]
        return found

    def _loaded(self, place: int, stage: int, ref: StridedRef) -> Reg:
        key = (place, stage, id(ref.buffer), ref.offset, ref.strides)
        reg = self._loads.get(key)
        if reg is None:
            reg = self._loads[key] = self._reg(ref.buffer.dtype)
            self._emit(place, stage, Load(reg, ref), reg)
        return reg

    def _brought(self, place: int, stage: int, root: Root) -> Operand:
        """A register of an earlier inner stage, for this one: computed again if that is cheap, else kept in memory."""
        assert root.reg is not None
        copies = self._copies.setdefault(place, Copies())
        known = copies.regs.get((id(root.reg), stage))
        if known is not None:
            return known
        if self._weight(root.reg, place, root.stage, MOST_REPEATED) <= MOST_REPEATED:
            return self._repeated(place, stage, root.reg, copies)
        ref = root.ref or copies.refs.get(id(root.reg))
        if ref is None:
            nest = self._nest(place)
            outer = nest.outer or 0
            row = nest.domain[outer:]
            ref = StridedRef(Buffer(math.prod(row), root.dtype), 0, (*[0] * outer, *row_major(row)))
            nest.stages[root.stage].code.append(Store(ref, root.reg))
            copies.refs[id(root.reg)] = ref
            self._last_touch[id(ref.buffer.storage)] = EVERY_ROW
        reg = self._loaded(place, stage, ref)
        self._roots.setdefault(id(reg), root)
        copies.regs[id(root.reg), stage] = reg
        return reg

    def _weight(self, reg: Operand, place: int, stage: int, budget: int) -> int:
        """How many instructions computing a register of a stage again takes; more than the budget if it is dear."""
        if isinstance(reg, Literal):
            return 0
        _, at, instruction = self._made[id(reg)]
        if at != stage:
            return 0
        if budget < 1:
            return 1
        if isinstance(instruction, (Load, Position)):
            return 1
        if not isinstance(instruction, Apply) or instruction.op not in CHEAP:
            return budget + 1
        total = 1
        for arg in instruction.args:
            total += self._weight(arg, place, stage, budget - total)
            if total > budget:
                break
        return total

    def _repeated(self, place: int, stage: int, reg: Operand, copies: Copies) -> Operand:
        if isinstance(reg, Literal):
            return reg
        known = copies.regs.get((id(reg), stage))
        if known is not None:
            return known
        _, at, instruction = self._made[id(reg)]
        if isinstance(instruction, Reduce) or not self._nest(place).stages[at].inner:
            return reg
        made: Operand
        if isinstance(instruction, Load):
            made = self._loaded(place, stage, instruction.ref)
        elif isinstance(instruction, Position):
            made = self._reg(reg.dtype)
            self._emit(place, stage, Position(made, instruction.axis), made)
        else:
            assert isinstance(instruction, Apply)
            args = tuple([self._repeated(place, stage, arg, copies) for arg in instruction.args])
            made = self._reg(reg.dtype)
            self._emit(place, stage, Apply(made, instruction.op, args), made)
        copies.regs[id(reg), stage] = made
        return made
