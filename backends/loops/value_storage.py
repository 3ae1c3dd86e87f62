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
    Spot,
    Store,
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
    spots: dict[int, Spot] = field(default_factory=dict)


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
        spot = Spot(buffer, offset, tuple([strides[i] for i in kept]))
        root = Root(tuple([shape[i] for i in kept]), buffer.dtype, spot=spot)
        return Val(shape, buffer.dtype, root, tuple([(0, 1, i) for i in kept]))

    # --- memory -------------------------------------------------------------------------------------------------

    def spot(self, x: Val) -> Spot:
        """Where an array lies, with a stride for every axis; what is a register only is stored."""
        if x.root is None:
            return self.spot(self.copied(x))
        spot = self._stored(x.root)
        offset = spot.offset
        strides = [0] * len(x.shape)
        for (start, step, dim), stride in zip(x.index, spot.strides, strict=True):
            offset += start * stride
            if dim is not None:
                strides[dim] += step * stride
        return Spot(spot.buffer, offset, tuple(strides))

    def _stored(self, root: Root) -> Spot:
        if root.spot is None:
            assert root.reg is not None
            buffer = Buffer(math.prod(root.domain), root.dtype)
            self._store(root, Spot(buffer, 0, row_major(root.domain)))
        assert root.spot is not None
        return root.spot

    def _store(self, root: Root, spot: Spot) -> None:
        """Store a register where it is made."""
        nest = self._nest(root.nest)
        place = root.stage
        assert root.reg is not None
        if root.is_row and nest.stages[place].inner:
            place = self._row_stage(root.nest, place + 1)
        nest.stages[place].code.append(Store(spot, root.reg))
        root.spot, root.ready = spot, root.nest
        self._last_touch[id(spot.buffer.storage)] = max(self._last_touch.get(id(spot.buffer.storage), -1), root.nest)

    def copied(self, x: Val, into: Spot | None = None) -> Val:
        """An array of its own in row-major order, or in `into` (with a stride for every axis)."""
        if into is None:
            into = Spot(Buffer(math.prod(x.shape), x.dtype), 0, row_major(x.shape))
        found = self.located(into.buffer, x.shape, into.strides, into.offset)
        found.root.ready = self.write(found, x)  # type: ignore[union-attr]
        return found

    def write(self, target: Val, x: Val) -> int:
        """Write x over a view of memory; the item that does it."""
        spot = self.spot(target)
        ready = self._ready_of(target, spot)
        shape = target.shape
        place = self._place(shape, [x], after=ready)
        stage = self._stage(place, shape, [x])
        value = self._operand(place, stage, x, shape)
        _, kept = domain_of(shape)
        self._emit(place, stage, Store(Spot(spot.buffer, spot.offset, tuple([spot.strides[i] for i in kept])), value))
        self.written(spot.buffer, place)
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

    def _ready_of(self, x: Val, spot: Spot) -> int:
        return max(x.root.ready if x.root is not None else -1, self._last_touch.get(id(spot.buffer.storage), -1))

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
        if root.spot is None and not root.is_row:
            again = self._computed_again(place, stage, x, shape)
            if again is not None:
                return again
        return self._loaded(place, stage, self._here(x, place, stage, shape))

    def _here(self, x: Val, place: int, stage: int, shape: Shape) -> Spot:
        """Where x lies by the loops of a stage, at an index of `shape`."""
        spot, nest = self.spot(x), self._nest(place)
        lead = len(shape) - len(x.shape)
        strides = [0] * len(shape)
        for axis, stride in enumerate(spot.strides):
            if x.shape[axis] != 1:
                strides[axis + lead] = stride
        by_domain = tuple([strides[i] for i in domain_of(shape)[1]])
        assert len(by_domain) == len(nest.domain if nest.stages[stage].inner else nest.domain[: nest.outer])
        return Spot(spot.buffer, spot.offset, by_domain)

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
        spots = []
        for leaf in recipe.leaves:
            spot = leaf.found if isinstance(leaf.found, Spot) else self._stored(leaf.found)
            strides = (*spot.strides, *[0] * (len(root.domain) - len(spot.strides)))
            there = Root(root.domain, spot.buffer.dtype, spot=Spot(spot.buffer, spot.offset, strides))
            spots.append(self._here(Val(x.shape, there.dtype, there, x.index), place, stage, shape))
        domain = self._nest(place).domain
        new = [spot for spot in spots if (place, stage, id(spot.buffer), spot.offset, spot.strides) not in self._loads]
        kept = math.prod(root.domain) * root.dtype.itemsize
        if sum([read_by(spot, domain) for spot in new]) > WORTH * kept:
            return None
        known: dict[int, Operand] = {}
        for leaf, spot in zip(recipe.leaves, spots, strict=True):
            known[id(leaf.reg)] = self._loaded(place, stage, spot)
        for step in recipe.steps:
            made = known[id(step.out)] = self._reg(step.out.dtype)
            args = tuple([known.get(id(arg), arg) for arg in step.args])
            self._emit(place, stage, Apply(made, step.op, args), made)
        found = self._again[key] = known[id(root.reg)]
        return found

    def _loaded(self, place: int, stage: int, spot: Spot) -> Reg:
        key = (place, stage, id(spot.buffer), spot.offset, spot.strides)
        reg = self._loads.get(key)
        if reg is None:
            reg = self._loads[key] = self._reg(spot.buffer.dtype)
            self._emit(place, stage, Load(reg, spot), reg)
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
        spot = root.spot or copies.spots.get(id(root.reg))
        if spot is None:
            nest = self._nest(place)
            outer = nest.outer or 0
            row = nest.domain[outer:]
            spot = Spot(Buffer(math.prod(row), root.dtype), 0, (*[0] * outer, *row_major(row)))
            nest.stages[root.stage].code.append(Store(spot, root.reg))
            copies.spots[id(root.reg)] = spot
            self._last_touch[id(spot.buffer.storage)] = EVERY_ROW
        reg = self._loaded(place, stage, spot)
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
            made = self._loaded(place, stage, instruction.spot)
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
