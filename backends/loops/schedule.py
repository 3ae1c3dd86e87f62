"""The schedule of a body: its items in order, and the nest and the stage of an operation."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from func.backends.loops.kernels import Buffer, DType, Instruction, Item, LoopNest, NestStage, Register, Shape
from func.backends.loops.values import ArrayValue, Root, domain_of, whole
from func.backends.records import Record

MOST_CODE = 600
"""The most instructions of a nest: compilers are not linear."""


class Emitted(Record):
    """An instruction and its place: the number of the nest among the items, and of the stage in the nest."""

    nest: int
    stage: int
    instruction: Instruction


class Schedule:
    """The items of one body while it grows. Nests are named by their numbers among the items."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.emitted: dict[int, Emitted] = {}
        """The instructions that set registers (by id)."""
        self.roots: dict[int, Root] = {}
        """The roots whose values registers (by id) hold."""
        self.last_writes: dict[int, int] = {}
        """The last items that write to storages (by id)."""
        self._nests_of: dict[Shape, list[int]] = {}
        """The nests that take operations over a domain."""
        self._registers: list[Register] = []
        """Keeps registers alive, so that their ids are not used again."""

    def nest(self, number: int) -> LoopNest:
        """The nest with this number."""
        nest = self.items[number]
        assert isinstance(nest, LoopNest)
        return nest

    def add(self, item: Item) -> int:
        """Append an item; its number."""
        self.items.append(item)
        return len(self.items) - 1

    def note_write(self, buffer: Buffer, item: int) -> None:
        """Note that an item writes to a buffer."""
        key = id(buffer.storage)
        self.last_writes[key] = max(self.last_writes.get(key, -1), item)

    def find_nest(
        self,
        shape: Shape,
        args: Sequence[ArrayValue],
        outer: int | None = None,
        after: int = -1,
        new: bool = False,
        rows: bool = True,
    ) -> int:
        """The first nest after an item that runs over a shape and in which all arguments are available; else a new one.

        `outer`: preferably one with that number of row dimensions; `rows`: also one whose rows have the shape; `new`:
        only a new nest.
        """
        domain, _ = domain_of(shape)
        start = after + 1
        for x in args:
            root = x.root
            if root is not None:
                start = max(start, root.ready + 1 if root.register is None else root.nest)
        if not new:
            second_best = -1
            numbers = self._nests_of.get(domain, [])
            for number in numbers[bisect.bisect_left(numbers, start) :]:
                if self._is_full(number):  # forever: later searches skip it
                    numbers.remove(number)
                elif self._takes(number, domain, shape, args, rows):
                    if outer is None or self.nest(number).outer in (None, outer):
                        return number
                    if second_best < 0:
                        second_best = number
            if second_best >= 0:
                return second_best
        number = self.add(LoopNest(domain))
        if not new:
            self._nests_of.setdefault(domain, []).append(number)
        return number

    def _is_full(self, number: int) -> bool:
        return sum([len(stage.code) for stage in self.nest(number).stages]) > MOST_CODE

    def _takes(self, number: int, domain: Shape, shape: Shape, args: Sequence[ArrayValue], rows: bool) -> bool:
        nest = self.nest(number)
        if nest.domain != domain and (not rows or nest.outer is None or nest.domain[: nest.outer] != domain):
            return False
        return all([x.root is None or x.root.nest != number or self.is_at_hand(x, shape) for x in args])

    def is_at_hand(self, x: ArrayValue, shape: Shape) -> bool:
        """Whether the register of a value is its element at an index of `shape`: its axes are whole leading axes of the
        domain, in order.
        """
        assert x.root is not None
        if x.root.register is None:
            return False
        domain, axes = domain_of(shape)
        if x.shape == shape and x.root.domain == domain and x.index == whole(shape):
            return True
        lead = len(shape) - len(x.shape)
        if len(x.root.domain) > len(axes):
            return False
        for axis, (start, step, dim) in zip(axes, x.index, strict=False):
            if start != 0 or step != 1 or dim is None or dim + lead != axis or x.shape[dim] == 1:
                return False
        return all([shape[axes[i]] == length for i, length in enumerate(x.root.domain)])

    def stage_for(self, number: int, shape: Shape, args: Sequence[ArrayValue]) -> int:
        """The stage of a nest for code at every index of a shape: of its domain, or of its rows."""
        is_row = domain_of(shape)[0] != self.nest(number).domain
        return self.stage_from(number, self._first_stage(number, args, is_row), not is_row)

    def inner_stage_for(self, number: int, args: Sequence[ArrayValue]) -> int:
        """The inner stage of a nest for an operation on these arguments."""
        return self.stage_from(number, self._first_stage(number, args, False), True)

    def _first_stage(self, number: int, args: Sequence[ArrayValue], is_row: bool) -> int:
        """The first stage in which these arguments are available."""
        first = 0
        stages = self.nest(number).stages
        for x in args:
            root = x.root
            if root is None or root.nest != number or root.register is None:
                continue
            is_inner = stages[root.stage].inner
            is_same_stage = is_inner != is_row and not (root.is_row and is_inner)
            first = max(first, root.stage if is_same_stage else root.stage + 1)
        return first

    def stage_from(self, number: int, first: int, inner: bool) -> int:
        """The first inner or row stage of a nest from a stage on; a new one if there is none."""
        stages = self.nest(number).stages
        for place in range(first, len(stages)):
            if stages[place].inner == inner:
                return place
        stages.append(NestStage(inner))
        return len(stages) - 1

    def open_rows(self, number: int, rows: Shape) -> None:
        """Let a nest take operations over its rows from now on."""
        numbers = self._nests_of.setdefault(rows, [])
        if number not in numbers:
            bisect.insort(numbers, number)

    def new_register(self, dtype: DType) -> Register:
        """A register that no instruction sets yet."""
        register = Register(dtype)
        self._registers.append(register)
        return register

    def emit(self, number: int, stage: int, instruction: Instruction, out: Register | None = None) -> None:
        """Append an instruction, which sets the register `out`, to a stage of a nest."""
        self.nest(number).stages[stage].code.append(instruction)
        if out is not None:
            self.emitted[id(out)] = Emitted(number, stage, instruction)
