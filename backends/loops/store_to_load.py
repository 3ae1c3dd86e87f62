"""Store-to-load forwarding: a nest recomputes a value that an earlier nest stores, instead of loading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from func.backends.loops.kernels import (
    WRITES,
    Apply,
    Instruction,
    Item,
    Load,
    LoopNest,
    NestStage,
    Position,
    Register,
    Shape,
    Store,
    StridedRef,
)
from func.backends.loops.traversal import operands_of
from func.backends.records import Record


class Stored(Record):
    """The stores of a nest, the item with this number, and the code that computes their values."""

    item: int
    domain: Shape
    store: Store
    code: list[Instruction]


Known: TypeAlias = dict[int, Stored | None]
"""By buffer (by id): the only store to it, None where there are more."""


def forward_stores(items: Sequence[Item], outputs: set[int]) -> list[Item]:
    """The items without loads of buffers in `outputs` (by id) whose value a nest over the same indices stores.

    The code of the value must be able to run again.
    """
    known: Known = {}
    last_writes: dict[int, int] = {}
    forwarded: list[Item] = []
    for number, item in enumerate(items):
        if isinstance(item, LoopNest):
            stages = [NestStage(stage.inner, _code(item, stage, known, last_writes)) for stage in item.stages]
            forwarded.append(LoopNest(item.domain, item.outer, stages, item.fills))
            _learn(number, item, outputs, known, last_writes)
        else:
            forwarded.append(item)
    return forwarded


def _code(nest: LoopNest, stage: NestStage, known: Known, last_writes: dict[int, int]) -> list[Instruction]:
    """The code of a stage with stored values in place of loads."""
    code: list[Instruction] = []
    repeated: set[int] = set()
    for instruction in stage.code:
        if not isinstance(instruction, Load) or not stage.inner:
            code.append(instruction)
            continue
        stored = known.get(id(instruction.ref.buffer))
        if stored is None or not _can_repeat(stored, nest, instruction.ref, last_writes):
            code.append(instruction)
            continue
        code.extend([step for step in stored.code if id(step) not in repeated])
        repeated |= set(map(id, stored.code))
        code.append(Apply(instruction.out, "convert", (stored.store.value,)))
    return code


def _can_repeat(stored: Stored, nest: LoopNest, ref: StridedRef, last_writes: dict[int, int]) -> bool:
    """Whether the stored value is the one at a reference, and its operands are still in memory."""
    written = stored.store.ref
    if stored.domain != nest.domain or (written.offset, written.strides) != (ref.offset, ref.strides):
        return False
    loads = [instruction for instruction in stored.code if isinstance(instruction, Load)]
    return all([last_writes.get(id(load.ref.buffer), -1) < stored.item for load in loads])


def _learn(number: int, nest: LoopNest, outputs: set[int], known: Known, last_writes: dict[int, int]) -> None:
    last_writes.update({id(buffer): number for buffer, _ in nest.fills})
    for stage in nest.stages:
        for write in stage.code:
            if not isinstance(write, WRITES):
                continue
            key = id(write.ref.buffer)
            last_writes[key] = number
            if key in outputs:
                code = _slice(stage, write) if isinstance(write, Store) and stage.inner and key not in known else None
                known[key] = Stored(number, nest.domain, write, code) if isinstance(write, Store) and code else None


def _slice(stage: NestStage, store: Store) -> list[Instruction] | None:
    """The code of a stage that computes a stored value; None if the value depends on other stages."""
    makers = {id(step.out): step for step in stage.code if isinstance(step, (Load, Apply, Position))}
    pending = [store.value]
    needed: set[int] = set()
    while pending:
        operand = pending.pop()
        if not isinstance(operand, Register) or id(operand) in needed:
            continue
        if id(operand) not in makers:
            return None
        needed.add(id(operand))
        pending.extend(operands_of(makers[id(operand)]))
    return [step for step in stage.code if isinstance(step, (Load, Apply, Position)) and id(step.out) in needed]
