"""Loads of what another nest has stored, computed again instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from func.backends.loops.dead_code import operands_of
from func.backends.loops.kernels import (
    Accumulate,
    Apply,
    Instruction,
    Item,
    Load,
    Nest,
    Position,
    Reg,
    Stage,
    Store,
    StoreAt,
    StridedRef,
)


class Stored(NamedTuple):
    """What a nest, the item with this number, stores, and the code that makes it."""

    item: int
    domain: tuple[int, ...]
    store: Store
    code: list[Instruction]


def forwarded(items: Sequence[Item], outs: set[int]) -> list[Item]:
    """The items without loads of memory in `outs` (by id) where a nest over the same indices stores it and what that
    nest computes can be computed again."""
    known: dict[int, Stored | None] = {}
    changed: dict[int, int] = {}
    made: list[Item] = []
    for number, item in enumerate(items):
        if isinstance(item, Nest):
            stages = [Stage(stage.inner, _code(item, stage, known, changed)) for stage in item.stages]
            made.append(Nest(item.domain, item.outer, stages, item.starts))
            _learn(number, item, outs, known, changed)
        else:
            made.append(item)
    return made


def _code(nest: Nest, stage: Stage, known: dict[int, Stored | None], changed: dict[int, int]) -> list[Instruction]:
    """The code of a stage with what it loads computed again."""
    code: list[Instruction] = []
    done: set[int] = set()
    for one in stage.code:
        found = known.get(id(one.ref.buffer)) if isinstance(one, Load) and stage.inner else None
        if found is None or not isinstance(one, Load) or not _fits(found, nest, one.ref, changed):
            code.append(one)
            continue
        code.extend([again for again in found.code if id(again) not in done])
        done |= set(map(id, found.code))
        code.append(Apply(one.out, "convert", (found.store.value,)))
    return code


def _fits(found: Stored, nest: Nest, ref: StridedRef, changed: dict[int, int]) -> bool:
    """Whether what was stored is what stands at a spot, and can still be computed."""
    own = found.store.ref
    if found.domain != nest.domain or (own.offset, own.strides) != (ref.offset, ref.strides):
        return False
    return all([changed.get(id(one.ref.buffer), -1) < found.item for one in found.code if isinstance(one, Load)])


def _learn(number: int, nest: Nest, outs: set[int], known: dict[int, Stored | None], changed: dict[int, int]) -> None:
    changed.update({id(buffer): number for buffer, _ in nest.starts})
    for stage in nest.stages:
        for one in stage.code:
            if not isinstance(one, (Store, StoreAt, Accumulate)):
                continue
            key = id(one.ref.buffer)
            changed[key] = number
            if key in outs:
                code = _slice(stage, one) if isinstance(one, Store) and stage.inner and key not in known else None
                known[key] = Stored(number, nest.domain, one, code) if isinstance(one, Store) and code else None


def _slice(stage: Stage, store: Store) -> list[Instruction] | None:
    """The code of a stage that makes what is stored; None where it needs something else, too."""
    made = {id(one.out): one for one in stage.code if isinstance(one, (Load, Apply, Position))}
    wanted = [store.value]
    kept: set[int] = set()
    while wanted:
        operand = wanted.pop()
        if not isinstance(operand, Reg) or id(operand) in kept:
            continue
        if id(operand) not in made:
            return None
        kept.add(id(operand))
        wanted.extend(operands_of(made[id(operand)]))
    return [one for one in stage.code if isinstance(one, (Load, Apply, Position)) and id(one.out) in kept]
