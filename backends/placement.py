"""Where fused code goes: nests by their domain, stages by what they wait for, operands at hand in each.

An operation goes into the first nest with its domain that runs late enough; a register that another nest needs is
stored there and then.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from func.backends.kernels import (
    Apply,
    Buffer,
    DType,
    Instruction,
    Item,
    Literal,
    Load,
    Nest,
    Operand,
    Position,
    Reduce,
    Reg,
    Shape,
    Spot,
    Stage,
    Store,
    row_major,
)
from func.backends.values import Root, Val, domain_of, whole

CHEAP = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "negative",
        "absolute",
        "select",
        "convert",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_not",
        "maximum",
        "minimum",
    }
)
"""Operations that a later stage rather repeats than loads the result of."""
MOST_REPEATED = 6
MOST_CODE = 600
"""Instructions beyond which a nest takes no more: compilers are not linear."""


@dataclass
class Copies:
    """What was brought into later stages of a nest."""

    regs: dict[tuple[int, int], Operand] = field(default_factory=dict)
    spots: dict[int, Spot] = field(default_factory=dict)


class Placement:
    """The items of one body, and what is known of them while it grows."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._by_domain: dict[Shape, list[int]] = {}
        self._made: dict[int, tuple[int, int, Instruction]] = {}
        """For registers (by id): nest, stage, instruction."""
        self._regs: list[Reg] = []
        self._copies: dict[int, Copies] = {}
        self._loads: dict[tuple[int, int, int, int, tuple[int, ...]], Reg] = {}
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

    # --- nests --------------------------------------------------------------------------------------------------

    def _mapped(self, place: int, shape: Shape, args: Sequence[Val], dtype: DType, make: Any) -> Val:
        domain, _ = domain_of(shape)
        is_row = domain != self._nest(place).domain
        stage = self._stage(place, shape, args)
        regs = tuple([self._operand(place, stage, x, shape) for x in args])
        out = self._reg(dtype)
        self._emit(place, stage, make(out, regs), out)
        root = Root(domain, dtype, out, place, stage, is_row)
        return Val(shape, dtype, root, whole(shape))

    def _stage(self, place: int, shape: Shape, args: Sequence[Val]) -> int:
        """The stage of a nest for code at every index of a shape."""
        is_row = domain_of(shape)[0] != self._nest(place).domain
        bound = self._bound(place, args, is_row)
        return self._row_stage(place, bound) if is_row else self._inner_stage(place, bound)

    def _nest(self, place: int) -> Nest:
        nest = self.items[place]
        assert isinstance(nest, Nest)
        return nest

    def _place(
        self,
        shape: Shape,
        args: Sequence[Val],
        outer: int | None = None,
        after: int = -1,
        alone: bool = False,
        rows: bool = True,
    ) -> int:
        """The first nest with this domain in which all arguments are at hand; a new one at the end if there is none.
        `outer`: preferably one whose rows are made of so many dimensions."""
        domain, _ = domain_of(shape)
        start = after + 1
        for x in args:
            if x.root is not None:
                root = x.root
                start = max(start, root.ready + 1 if root.reg is None else root.nest)
        found = -1
        if not alone:
            for place in self._by_domain.get(domain, ()):
                if place >= start and self._takes(place, domain, shape, args, rows):
                    agrees = outer is None or self._nest(place).outer in (None, outer)
                    if agrees:
                        return place
                    if found < 0:
                        found = place
            if found >= 0:
                return found
        self.items.append(Nest(domain))
        place = len(self.items) - 1
        if not alone:
            self._by_domain.setdefault(domain, []).append(place)
        return place

    def _takes(self, place: int, domain: Shape, shape: Shape, args: Sequence[Val], rows: bool) -> bool:
        nest = self._nest(place)
        if sum([len(stage.code) for stage in nest.stages]) > MOST_CODE:
            return False
        if nest.domain != domain and (not rows or nest.outer is None or nest.domain[: nest.outer] != domain):
            return False
        return all([x.root is None or x.root.nest != place or self._fits(x, shape) for x in args])

    def _fits(self, x: Val, shape: Shape) -> bool:
        """Whether a register can be used as it is at an index of `shape`: each of its axes is one of the domain's
        leading ones, in order and whole."""
        assert x.root is not None
        if x.root.reg is None:
            return False
        domain, kept = domain_of(shape)
        if x.shape == shape and x.root.domain == domain and x.index == whole(shape):
            return True
        lead = len(shape) - len(x.shape)
        if len(x.root.domain) > len(kept):
            return False
        for axis, (start, step, dim) in zip(kept, x.index, strict=False):
            if start != 0 or step != 1 or dim is None or dim + lead != axis or x.shape[dim] == 1:
                return False
        return all([shape[kept[i]] == length for i, length in enumerate(x.root.domain)])

    def _bound(self, place: int, args: Sequence[Val], is_row: bool = False) -> int:
        """The first stage that an operation on these arguments may go to."""
        bound = 0
        nest = self._nest(place)
        for x in args:
            root = x.root
            if root is None or root.nest != place or root.reg is None:
                continue
            same = nest.stages[root.stage].inner != is_row and not (root.is_row and nest.stages[root.stage].inner)
            bound = max(bound, root.stage if same else root.stage + 1)
        return bound

    def _inner_stage(self, place: int, bound: int) -> int:
        return self._stage_from(place, bound, True)

    def _row_stage(self, place: int, bound: int) -> int:
        return self._stage_from(place, bound, False)

    def _stage_from(self, place: int, bound: int, inner: bool) -> int:
        nest = self._nest(place)
        for number in range(bound, len(nest.stages)):
            if nest.stages[number].inner == inner:
                return number
        nest.stages.append(Stage(inner))
        return len(nest.stages) - 1

    def _known_at(self, domain: Shape, place: int) -> None:
        """A nest takes operations at its rows from now on."""
        known = self._by_domain.setdefault(domain, [])
        if place not in known:
            bisect.insort(known, place)

    def _reg(self, dtype: DType) -> Reg:
        reg = Reg(dtype)
        self._regs.append(reg)
        return reg

    def _emit(self, place: int, stage: int, instruction: Instruction, out: Reg | None = None) -> None:
        self._nest(place).stages[stage].code.append(instruction)
        if out is not None:
            self._made[id(out)] = place, stage, instruction

    # --- operands -----------------------------------------------------------------------------------------------

    def _operand(self, place: int, stage: int, x: Val, shape: Shape) -> Operand:
        """A value of `x` at the present index of `shape` in a stage."""
        if x.root is None:
            return Literal(x.literal, x.dtype)
        root = x.root
        nest = self._nest(place)
        if root.reg is not None and root.nest == place and self._fits(x, shape):
            if root.is_row or root.stage == stage:
                return root.reg
            return self._brought(place, stage, root)
        spot = self.spot(x)
        lead = len(shape) - len(x.shape)
        strides = [0] * len(shape)
        for axis, stride in enumerate(spot.strides):
            if x.shape[axis] != 1:
                strides[axis + lead] = stride
        kept = [i for i, length in enumerate(shape) if length != 1]
        used = nest.domain if nest.stages[stage].inner else nest.domain[: nest.outer]
        by_domain = tuple([strides[i] for i in kept])
        assert len(by_domain) == len(used)
        return self._loaded(place, stage, Spot(spot.buffer, spot.offset, by_domain))

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
        reg = self._loaded(place, stage, spot)
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
