"""Buffer aliasing: writes outputs of a native program into the memory of donated inputs.

An output may have the memory of an input if nothing reads an element of the input after the write of the output there.
A write that only copies the input is then dropped: so a row update touches only the row. After an error of the program
the caller's inputs must be unchanged, so a dry run (`dry_run.py`) detects errors before the first write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from func.backends.loops import kernels
from func.backends.loops.dry_run import with_dry_run, without_dead_nests, without_instructions
from func.backends.loops.interface import AliasedOutput
from func.backends.loops.kernels import Access, Buffer, Copy, Dot, EarlyExit, Item, LibraryCall, Load, LoadAt, LoopNest
from func.backends.loops.memory_dependence import extent, may_alias
from func.backends.loops.traversal import BufferUse, buffers_of, replace_buffers, uses_in, written_by

SAME, TOGETHER, APART = 2, 1, 0
"""The fit of an output to an input: a copy of it, written where the code reads the input, or neither."""


def alias_outputs(
    program: kernels.NativeProgram, inputs: Sequence[Buffer], outputs: Sequence[Buffer], donated: Iterable[int]
) -> None:
    """Let outputs use the memory of `donated` inputs if that changes no result."""
    uses = _Uses(updates_last(program.items))
    arrays = [inputs[place] for place in sorted(donated) if program.inputs[place].shape]
    results = [out for out, spec in zip(outputs, program.outputs, strict=True) if spec.shape]
    aliases = _choose(uses, arrays, results)
    while aliases:
        first_write = {output: uses.first_write(output, donor) for output, donor in aliases.items()}
        start = min(first_write.values())
        items = _without_copies(uses, aliases)
        checked = with_dry_run(items, start, program.flag, set(map(id, aliases)), set(map(id, aliases.values())))
        if checked is not None:
            program.items[:] = checked
            break
        del aliases[min(aliases, key=lambda output: first_write[output])]
    if aliases:
        _apply(program, outputs, aliases)


def _apply(program: kernels.NativeProgram, outputs: Sequence[Buffer], aliases: dict[Buffer, Buffer]) -> None:
    """Merge the buffers of outputs and inputs, and renumber the other outputs."""
    for item in program.items:
        replace_buffers(item, aliases)
    if any([isinstance(item, EarlyExit) for item in program.items]):
        program.flag = None
    program.items[:] = without_dead_nests(program.items, program.flag)
    fresh = [place for place, output in enumerate(outputs) if output not in aliases]
    program.aliased = {
        place: AliasedOutput(aliases[output].place, program.outputs[place].shape)
        for place, output in enumerate(outputs)
        if output in aliases
    }
    program.outputs[:] = [program.outputs[place] for place in fresh]
    for number, place in enumerate(fresh):
        outputs[place].place = number


def updates_last(items: Sequence[Item]) -> list[Item]:
    """The items in another order: nests that only nests depend on run last."""
    first: list[Item] = []
    last: list[Item] = []
    touched: set[int] = set()
    changed: set[int] = set()
    for item in reversed(items):
        touches = {id(buffer.storage) for buffer in buffers_of(item)}
        changes = {id(buffer.storage) for buffer in _changed(item)}
        if isinstance(item, LoopNest) and not changes & touched and not touches & changed:
            last.append(item)
            continue
        first.append(item)
        touched |= touches
        changed |= changes
    return [*reversed(first), *reversed(last)]


def _changed(item: Item) -> Iterable[Buffer]:
    """The memory that an item may write to."""
    if isinstance(item, LoopNest):
        return written_by(item)
    if isinstance(item, Dot):
        return [item.out.buffer]
    if isinstance(item, LibraryCall):
        return [ref.buffer for ref in item.outs]
    return [buffer for buffer in buffers_of(item) if buffer.storage.kind not in ("input", "constant")]


def _choose(uses: _Uses, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> dict[Buffer, Buffer]:
    """Inputs by the outputs that may take their memory, in order of their fit."""
    candidates = [
        (uses.fit(output, donor), -place, output, donor)
        for place, output in enumerate(outputs)
        for donor in inputs
        if output.size == donor.size > 0 and output.dtype == donor.dtype
    ]
    aliases: dict[Buffer, Buffer] = {}
    taken: set[Buffer] = set()
    for _, _, output, donor in sorted(candidates, key=lambda candidate: candidate[:2], reverse=True):
        if output not in aliases and donor not in taken and uses.may_share(output, donor):
            aliases[output] = donor
            taken.add(donor)
    return aliases


class _Uses:
    """The uses of all memory, in order of the items."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self._by_storage: dict[int, list[BufferUse]] = {}
        self._loads: dict[int, Load] = {}
        """Loads by the registers (by id) that they set."""
        for number, item in enumerate(items):
            if isinstance(item, LoopNest):
                self._add_nest(number, item)
            else:
                for key in {id(buffer.storage) for buffer in buffers_of(item)}:
                    self._by_storage.setdefault(key, []).append(BufferUse(number))

    def _add_nest(self, number: int, nest: LoopNest) -> None:
        for buffer, _ in nest.fills:
            self._by_storage.setdefault(id(buffer.storage), []).append(BufferUse(number))
        for buffer, use in uses_in(nest, number):
            self._by_storage.setdefault(id(buffer.storage), []).append(use)
            if isinstance(use.instruction, Load):
                self._loads[id(use.instruction.out)] = use.instruction

    def of(self, buffer: Buffer) -> list[BufferUse]:
        """All uses of a buffer."""
        return self._by_storage.get(id(buffer), [])

    def changes(self, output: Buffer, donor: Buffer) -> list[BufferUse]:
        """The writes to an output of anything but the element at the same place of the input."""
        return [
            use
            for use in self.of(output)
            if not isinstance(use.instruction, (Load, LoadAt)) and not self.is_copy(use, donor)
        ]

    def is_copy(self, use: BufferUse, donor: Buffer) -> bool:
        """Whether the written value is the one at the same place of an input."""
        store = use.instruction
        if isinstance(store, kernels.Store):
            load = self._loads.get(id(store.value))
            if load is None or load.ref.buffer is not donor:
                return False
            return load.ref.offset == store.ref.offset and load.ref.strides == store.ref.strides
        item = self.items[use.item]
        return isinstance(item, Copy) and item.source is donor

    def first_write(self, output: Buffer, donor: Buffer) -> int:
        """The first item that changes an element of an output that has the memory of an input."""
        return min([use.item for use in self.changes(output, donor)], default=len(self.items))

    def fit(self, output: Buffer, donor: Buffer) -> int:
        """The fit of an output to an input."""
        if any([self.is_copy(use, donor) for use in self.of(output)]):
            return SAME
        users = {use.item for use in self.of(output)}
        return TOGETHER if any([use.item in users for use in self.of(donor)]) else APART

    def may_share(self, output: Buffer, donor: Buffer) -> bool:
        """Whether the code reads every element of an input before it overwrites the element with the output."""
        for write in self.changes(output, donor):
            if any([write.item <= read.item and self._conflicts(read, write) for read in self.of(donor)]):
                return False
            if any(
                [write.item == use.item and write[:3] < use[:3] for use in self.of(output) if self.is_copy(use, donor)]
            ):
                return False
        return True

    def _conflicts(self, read: BufferUse, write: BufferUse) -> bool:
        """Whether an element may be read after its write; `write` belongs to the same item or an earlier one."""
        if read.instruction is None or write.instruction is None:
            return True
        first, second = self.items[read.item], self.items[write.item]
        assert isinstance(first, LoopNest) and isinstance(second, LoopNest)
        if not _overlap(first.domain, read.instruction, second.domain, write.instruction):
            return False
        return read.item != write.item or _conflicts_within(first, read, write)


def _conflicts_within(nest: LoopNest, read: BufferUse, write: BufferUse) -> bool:
    """Whether the loops of a nest may read an element after its write."""
    rows = range(nest.outer or 0)
    if read.stage < write.stage and not rows:
        return False
    load, store = read.instruction, write.instruction
    if not isinstance(load, Load) or not isinstance(store, kernels.Store):
        return True
    if (read.stage, read.place) > (write.stage, write.place):
        return True
    is_within = read.stage == write.stage and nest.stages[read.stage].inner
    group = range(len(nest.domain)) if is_within else rows
    return len(group) > 0 and may_alias(nest.domain, nest.padded(store.ref), nest.padded(load.ref), group)


def _overlap(read_domain: kernels.Shape, read: Access, write_domain: kernels.Shape, write: Access) -> bool:
    """Whether two accesses may reach the same element at any indices."""
    if isinstance(read, (LoadAt, kernels.StoreAt)) or isinstance(write, (LoadAt, kernels.StoreAt)):
        return True
    if 0 in read_domain or 0 in write_domain:
        return False
    low, high = extent(read_domain[: len(read.ref.strides)], read.ref)
    first, last = extent(write_domain[: len(write.ref.strides)], write.ref)
    return low <= last and first <= high


def _without_copies(uses: _Uses, aliases: dict[Buffer, Buffer]) -> list[Item]:
    """The items, as many as before, without writes of equal values."""
    dropped: dict[int, set[int]] = {}
    for output, donor in aliases.items():
        for use in uses.of(output):
            if uses.is_copy(use, donor):
                dropped.setdefault(use.item, set()).add(id(use.instruction))
    items = list(uses.items)
    for number, instructions in dropped.items():
        item = items[number]
        items[number] = without_instructions(item, instructions) if isinstance(item, LoopNest) else LoopNest(())
    return items
