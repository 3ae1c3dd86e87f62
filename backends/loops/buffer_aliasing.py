"""Donated inputs: outputs of a native program that are written into the memory of inputs which the caller gives up.

An output may take the place of an input if nothing reads an element of the input after the output has been written
there. Where it then only copies the input, nothing is left to do: so a row is written into an array without touching
the rest. What a caller gave must be whole when the program reports that something is wrong; so whatever can go wrong is
found out before the first write (`rehearsal.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from func.backends.loops.buffers import buffers_of, rename
from func.backends.loops.dry_run import filtered, rehearsed, useful, written
from func.backends.loops.kernels import (
    Accumulate,
    Buffer,
    Dot,
    EarlyExit,
    Item,
    Library,
    Load,
    LoadAt,
    Move,
    NativeProgram,
    Nest,
    Shape,
    Store,
    StoreAt,
    StridedRef,
    Written,
)
from func.backends.loops.memory_dependence import extent, same_place

Access: TypeAlias = Load | LoadAt | Store | StoreAt | Accumulate
SAME, TOGETHER, APART = 2, 1, 0
"""How well an output fits an input: it is a copy of it, it is made where the input is read, or neither."""


class Use(NamedTuple):
    """Where memory is used: the number of the item; in a nest, stage, place in the stage's code, and instruction. What
    a nest fills before its loops has no instruction."""

    item: int
    stage: int = -1
    place: int = -1
    one: Access | None = None


def donate(program: NativeProgram, inputs: Sequence[Buffer], outputs: Sequence[Buffer], donated: Iterable[int]) -> None:
    """Let outputs be written into the memory of `donated` inputs where that changes nothing; those are no outputs of
    the program any more, but are noted in `program.written`."""
    uses = _Uses(updates_last(program.items))
    arrays = [inputs[place] for place in sorted(donated) if program.inputs[place].shape]
    results = [out for out, result in zip(outputs, program.outputs, strict=True) if result.shape]
    shared = _chosen(uses, arrays, results)
    while shared:
        first = {out: uses.first_write(out, given) for out, given in shared.items()}
        start = min(first.values())
        items = _without_copies(uses, shared)
        ready = rehearsed(items, start, program.flag, set(map(id, shared)), set(map(id, shared.values())))
        if ready is not None:
            program.items[:] = ready
            break
        del shared[min(shared, key=lambda out: first[out])]
    if shared:
        _let_share(program, outputs, shared)


def _let_share(program: NativeProgram, outputs: Sequence[Buffer], shared: dict[Buffer, Buffer]) -> None:
    """One buffer for an output and its input, and fewer outputs."""
    for item in program.items:
        rename(item, shared)
    if any([isinstance(item, EarlyExit) for item in program.items]):
        program.flag = None
    program.items[:] = useful(program.items, program.flag)
    kept = [place for place, out in enumerate(outputs) if out not in shared]
    program.written = {
        place: Written(shared[out].place, program.outputs[place].shape)
        for place, out in enumerate(outputs)
        if out in shared
    }
    program.outputs[:] = [program.outputs[place] for place in kept]
    for number, place in enumerate(kept):
        outputs[place].place = number


def updates_last(items: Sequence[Item]) -> list[Item]:
    """The items in another order: nests that nothing but nests depends on, such as those that make new parameters,
    stand behind all others, which may still read the old ones."""
    first: list[Item] = []
    last: list[Item] = []
    touched: set[int] = set()
    changed: set[int] = set()
    for item in reversed(items):
        mine = {id(buffer.storage) for buffer in buffers_of(item)}
        changes = {id(buffer.storage) for buffer in _changed(item)}
        if isinstance(item, Nest) and not changes & touched and not mine & changed:
            last.append(item)
            continue
        first.append(item)
        touched |= mine
        changed |= changes
    return [*reversed(first), *reversed(last)]


def _changed(item: Item) -> Iterable[Buffer]:
    """The memory that an item may write to."""
    if isinstance(item, Nest):
        return written(item)
    if isinstance(item, Dot):
        return [item.out.buffer]
    if isinstance(item, Library):
        return [ref.buffer for ref in item.outs]
    return [buffer for buffer in buffers_of(item) if buffer.storage.kind not in ("input", "constant")]


# --- which output takes which input -------------------------------------------------------------------------------


def _chosen(uses: _Uses, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> dict[Buffer, Buffer]:
    """Inputs by the outputs that may take their memory: first those that fit best."""
    found = [
        (uses.fit(out, given), -place, out, given)
        for place, out in enumerate(outputs)
        for given in inputs
        if out.size == given.size > 0 and out.dtype == given.dtype
    ]
    shared: dict[Buffer, Buffer] = {}
    taken: set[Buffer] = set()
    for _, _, out, given in sorted(found, key=lambda one: one[:2], reverse=True):
        if out not in shared and given not in taken and uses.may_share(out, given):
            shared[out] = given
            taken.add(given)
    return shared


class _Uses:
    """What uses which memory, in order."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self._found: dict[int, list[Use]] = {}
        self._loads: dict[int, Load] = {}
        """Loads by the registers (by id) that they set."""
        for number, item in enumerate(items):
            if isinstance(item, Nest):
                self._learn(number, item)
            else:
                for key in {id(buffer.storage) for buffer in buffers_of(item)}:
                    self._found.setdefault(key, []).append(Use(number))

    def _learn(self, number: int, nest: Nest) -> None:
        for buffer, _ in nest.starts:
            self._found.setdefault(id(buffer.storage), []).append(Use(number))
        for at, stage in enumerate(nest.stages):
            for place, one in enumerate(stage.code):
                if isinstance(one, Load):
                    self._loads[id(one.out)] = one
                if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate)):
                    self._found.setdefault(id(one.ref.buffer.storage), []).append(Use(number, at, place, one))

    def of(self, buffer: Buffer) -> list[Use]:
        """All uses of a buffer."""
        return self._found.get(id(buffer), [])

    def writes(self, out: Buffer, given: Buffer) -> list[Use]:
        """What is written to an output and is not in the same place of the input anyway."""
        return [use for use in self.of(out) if not _is_load(use) and not self.is_copy(use, given)]

    def is_copy(self, use: Use, given: Buffer) -> bool:
        """Whether what is written is what stands at the same place of an input."""
        if isinstance(use.one, Store):
            load = self._loads.get(id(use.one.value))
            return load is not None and load.ref.buffer is given and _are_same(load.ref, use.one.ref)
        item = self.items[use.item]
        return isinstance(item, Move) and item.source is given

    def first_write(self, out: Buffer, given: Buffer) -> int:
        """The first item that changes an element of an output that has the memory of an input."""
        return min([use.item for use in self.writes(out, given)], default=len(self.items))

    def fit(self, out: Buffer, given: Buffer) -> int:
        """How well an output fits an input."""
        if any([self.is_copy(use, given) for use in self.of(out)]):
            return SAME
        made = {use.item for use in self.of(out)}
        return TOGETHER if any([use.item in made for use in self.of(given)]) else APART

    def may_share(self, out: Buffer, given: Buffer) -> bool:
        """Whether every element of an input is read before an output, in the same memory, has another one there."""
        for write in self.writes(out, given):
            if any([write.item <= read.item and self._clash(read, write) for read in self.of(given)]):
                return False
            if any(
                [write.item == use.item and write[:3] < use[:3] for use in self.of(out) if self.is_copy(use, given)]
            ):
                return False
        return True

    def _clash(self, read: Use, write: Use) -> bool:
        """Whether an element may be read after it was written; `write` belongs to the same item or an earlier one."""
        if read.one is None or write.one is None:
            return True
        first, second = self.items[read.item], self.items[write.item]
        assert isinstance(first, Nest) and isinstance(second, Nest)
        if not _overlap(first.domain, read.one, second.domain, write.one):
            return False
        return read.item != write.item or _clash_within(first, read, write)


def _clash_within(nest: Nest, read: Use, write: Use) -> bool:
    """Whether the loops of a nest may read an element that they have written."""
    rows = range(nest.outer or 0)
    if read.stage < write.stage and not rows:
        return False
    if not isinstance(read.one, Load) or not isinstance(write.one, Store):
        return True
    if (read.stage, read.place) > (write.stage, write.place):
        return True
    within = read.stage == write.stage and nest.stages[read.stage].inner
    group = range(len(nest.domain)) if within else rows
    return len(group) > 0 and same_place(nest.domain, _full(write.one.ref, nest), _full(read.one.ref, nest), group)


def _full(ref: StridedRef, nest: Nest) -> StridedRef:
    return StridedRef(ref.buffer, ref.offset, (*ref.strides, *[0] * (len(nest.domain) - len(ref.strides))))


def _overlap(domain: Shape, one: Access, other_domain: Shape, other: Access) -> bool:
    if isinstance(one, (LoadAt, StoreAt)) or isinstance(other, (LoadAt, StoreAt)):
        return True
    if 0 in domain or 0 in other_domain:
        return False
    low, high = extent(domain[: len(one.ref.strides)], one.ref)
    first, last = extent(other_domain[: len(other.ref.strides)], other.ref)
    return low <= last and first <= high


def _is_load(use: Use) -> bool:
    return isinstance(use.one, (Load, LoadAt))


def _are_same(one: StridedRef, other: StridedRef) -> bool:
    return one.offset == other.offset and one.strides == other.strides


# --- one memory for both ------------------------------------------------------------------------------------------


def _without_copies(uses: _Uses, shared: dict[Buffer, Buffer]) -> list[Item]:
    """The items without those writes that write what is there; as many as before."""
    dropped: dict[int, set[int]] = {}
    for out, given in shared.items():
        for use in uses.of(out):
            if uses.is_copy(use, given):
                dropped.setdefault(use.item, set()).add(id(use.one))
    made: list[Item] = []
    for number, item in enumerate(uses.items):
        if number in dropped:
            item = filtered(item, dropped[number]) if isinstance(item, Nest) else Nest(())
        made.append(item)
    return made
