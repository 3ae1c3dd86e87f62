"""Instructions whose results nobody needs, such as values that later nests compute again for themselves."""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.loops.kernels import (
    Accumulate,
    Apply,
    Branch,
    Instruction,
    Item,
    LoadAt,
    Loop,
    Nest,
    Operand,
    Reduce,
    Running,
    Store,
    StoreAt,
    While,
)


def operands_of(one: Instruction) -> Sequence[Operand]:
    """The operands that an instruction reads."""
    if isinstance(one, Apply):
        return one.args
    if isinstance(one, (Store, Reduce, Running, Accumulate)):
        return (one.value,)
    if isinstance(one, LoadAt):
        return [pick.index for pick in one.picks]
    if isinstance(one, StoreAt):
        return [*[pick.index for pick in one.picks], one.value]
    return ()


def drop_unused(items: list[Item]) -> None:
    """Take such instructions out, and nests of which nothing is left. Reading at an index stays, since the index may be
    out of range."""
    for item in items:
        if isinstance(item, Nest):
            _drop(item)
        elif isinstance(item, Loop):
            drop_unused(item.body)
        elif isinstance(item, While):
            drop_unused(item.test)
            drop_unused(item.body)
        elif isinstance(item, Branch):
            for branch in item.branches:
                drop_unused(branch)
    items[:] = [item for item in items if not isinstance(item, Nest) or item.stages or item.starts]


def _drop(nest: Nest) -> None:
    used: set[int] = set()
    for stage in reversed(nest.stages):
        kept: list[Instruction] = []
        for one in reversed(stage.code):
            if isinstance(one, (Store, StoreAt, Accumulate, LoadAt)) or id(one.out) in used:
                kept.append(one)
                used.update([id(operand) for operand in operands_of(one)])
        stage.code[:] = reversed(kept)
    nest.stages[:] = [stage for stage in nest.stages if stage.code]
    if not nest.stages:
        nest.domain, nest.outer = (), None
