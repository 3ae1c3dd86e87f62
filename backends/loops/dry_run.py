"""The dry run of a native program: it reports errors before the program overwrites its donated inputs.

A dry run leaves most writes out: it computes only whether an index is out of range or an output has a NaN. The same
walk removes dead code.
"""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.loops import kernels
from func.backends.loops.kernels import WRITES, EarlyExit, FlagCheck, Instruction, Item, LibraryCall, Load, LoadAt
from func.backends.loops.store_to_load import forward_stores
from func.backends.loops.traversal import bodies_of, buffers_of, operands_of, written_by


def with_dry_run(
    items: Sequence[Item], start: int, flag: kernels.StridedRef | None, outputs: set[int], inputs: set[int]
) -> list[Item] | None:
    """The items with a dry run of those from `start` on, after which the program stops on an error; unchanged if there
    can be none. `outputs` and `inputs` are the buffers (by id) that will share memory. None if a dry run is impossible.
    """
    before, after = list(items[:start]), list(items[start:])
    if not after or (flag is None and not any(map(can_fail, items))):
        return [*before, *after]
    used_before = {id(buffer.storage) for item in before for buffer in buffers_of(item)}
    needed = set() if flag is None else {id(flag.buffer.storage)}
    dry: list[Item] = []
    for item in reversed(forward_stores(after, outputs)):
        if isinstance(item, kernels.LoopNest):
            nest = needed_part(item, needed, dry=True)
            if nest is not None:
                dry.append(nest)
        elif isinstance(item, FlagCheck):
            dry.append(item)
            needed.add(id(item.flag.buffer.storage))
        elif can_fail(item) or needed & {id(buffer.storage) for buffer in buffers_of(item)}:
            return None
    changed = {id(buffer.storage) for item in dry if isinstance(item, kernels.LoopNest) for buffer in written_by(item)}
    if needed & outputs or changed & (used_before | inputs):
        return None
    unchecked = [item for item in after if not isinstance(item, FlagCheck)]
    return [*before, *reversed(dry), EarlyExit(flag), *unchecked]


def can_fail(item: Item) -> bool:
    """Whether an item may report an error."""
    if isinstance(item, kernels.LoopNest):
        return any([isinstance(instruction, (LoadAt, kernels.StoreAt)) for instruction in item.code])
    return isinstance(item, (FlagCheck, LibraryCall)) or any([any(map(can_fail, body)) for body in bodies_of(item)])


def without_dead_nests(items: Sequence[Item], flag: kernels.StridedRef | None) -> list[Item]:
    """The items without the code of nests with unused results."""
    needed = set() if flag is None else {id(flag.buffer.storage)}
    live: list[Item] = []
    for item in reversed(items):
        if isinstance(item, kernels.LoopNest):
            needed |= {id(buffer.storage) for buffer in written_by(item) if buffer.storage.kind != "arena"}
            nest = needed_part(item, needed, dry=False)
            if nest is not None:
                live.append(nest)
        else:
            needed |= {id(buffer.storage) for buffer in buffers_of(item)}
            live.append(item)
    return live[::-1]


def needed_part(nest: kernels.LoopNest, needed: set[int], dry: bool) -> kernels.LoopNest | None:
    """The part of a nest that writes to memory in `needed` (by id) or reads at dynamic indices; None if there is none.
    Adds its reads to `needed`. In a dry run, other accesses at dynamic indices become tests of the range.
    """
    while True:
        before = len(needed)
        live, tests = _mark(nest, needed, dry)
        if len(needed) == before:
            break
    fills = [(buffer, value) for buffer, value in nest.fills if id(buffer.storage) in needed]
    if not live and not tests and not fills:
        return None
    stages = [kernels.NestStage(stage.inner, _code(stage, live, tests)) for stage in nest.stages]
    return kernels.LoopNest(nest.domain, nest.outer, stages, fills)


def _mark(nest: kernels.LoopNest, needed: set[int], dry: bool) -> tuple[set[int], dict[int, Instruction]]:
    """Instructions (by id) that stay, and tests of the range by the instructions (by id) that they replace."""
    operands: set[int] = set()
    live: set[int] = set()
    tests: dict[int, Instruction] = {}
    for instruction in reversed(nest.code):
        if isinstance(instruction, WRITES):
            is_live = id(instruction.ref.buffer.storage) in needed
        else:
            is_live = id(instruction.out) in operands or (isinstance(instruction, LoadAt) and not dry)
        if is_live:
            live.add(id(instruction))
            operands |= {id(operand) for operand in operands_of(instruction)}
            if isinstance(instruction, (Load, LoadAt)):
                needed.add(id(instruction.ref.buffer.storage))
        elif dry and isinstance(instruction, (LoadAt, kernels.StoreAt)):
            tests[id(instruction)] = _range_test(instruction)
            operands |= {id(index.value) for index in instruction.indices}
    return live, tests


def _code(stage: kernels.NestStage, live: set[int], tests: dict[int, Instruction]) -> list[Instruction]:
    return [tests.get(id(step), step) for step in stage.code if id(step) in live or id(step) in tests]


def _range_test(access: LoadAt | kernels.StoreAt) -> Instruction:
    """A load that notes an index out of range, with an unused result."""
    ref = kernels.StridedRef(access.ref.buffer, access.ref.offset, tuple([0] * len(access.ref.strides)))
    return LoadAt(kernels.Register(access.ref.buffer.dtype), ref, access.indices)


def without_instructions(nest: kernels.LoopNest, dropped: set[int]) -> kernels.LoopNest:
    """A nest without some instructions (by id)."""
    stages = [
        kernels.NestStage(stage.inner, [step for step in stage.code if id(step) not in dropped])
        for stage in nest.stages
    ]
    return kernels.LoopNest(nest.domain, nest.outer, stages, nest.fills)
