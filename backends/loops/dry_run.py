"""What can go wrong in a native program, found out before the program overwrites what it was given.

A rehearsal is a run without most of the writes: only what says whether an index is out of range or an output has a NaN
is computed. Code that nothing needs is left out by the same walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from func.backends.loops.buffers import buffers_of
from func.backends.loops.dead_code import operands_of
from func.backends.loops.kernels import (
    Accumulate,
    Branch,
    Buffer,
    Check,
    EarlyExit,
    Instruction,
    Item,
    Library,
    Load,
    LoadAt,
    Loop,
    Nest,
    Reg,
    Stage,
    Store,
    StoreAt,
    StridedRef,
    While,
)
from func.backends.loops.store_to_load import forwarded


def rehearsed(
    items: Sequence[Item], start: int, flag: StridedRef | None, outs: set[int], inputs: set[int]
) -> list[Item] | None:
    """The items with a rehearsal of those from `start` on, at the end of which the program stops if something is wrong;
    as they are if nothing can go wrong. `outs` and `inputs` are the memory (by id) that will be shared, two names for
    the same. None where a rehearsal is not possible."""
    before, after = list(items[:start]), list(items[start:])
    if not after or (flag is None and not any(map(may_fail, items))):
        return [*before, *after]
    used_before = {id(buffer.storage) for item in before for buffer in buffers_of(item)}
    needed = set() if flag is None else {id(flag.buffer.storage)}
    made: list[Item] = []
    for item in reversed(forwarded(after, outs)):
        kept: Item | None = None
        if isinstance(item, Nest):
            kept = sliced(item, needed, checked=True)
        elif isinstance(item, Check):
            kept = item
            needed.add(id(item.flag.buffer.storage))
        elif may_fail(item) or needed & {id(buffer.storage) for buffer in buffers_of(item)}:
            return None
        if kept is not None:
            made.append(kept)
    changed = {id(buffer.storage) for item in made if isinstance(item, Nest) for buffer in written(item)}
    if needed & outs or changed & (used_before | inputs):
        return None
    left = [item for item in after if not isinstance(item, Check)]
    return [*before, *reversed(made), EarlyExit(flag), *left]


def may_fail(item: Item) -> bool:
    """Whether an item may note that something is wrong."""
    if isinstance(item, Nest):
        return any([isinstance(one, (LoadAt, StoreAt)) for stage in item.stages for one in stage.code])
    if isinstance(item, Loop):
        return any(map(may_fail, item.body))
    if isinstance(item, While):
        return any(map(may_fail, [*item.test, *item.body]))
    if isinstance(item, Branch):
        return any([may_fail(one) for branch in item.branches for one in branch])
    return isinstance(item, (Check, Library))


def useful(items: Sequence[Item], flag: StridedRef | None) -> list[Item]:
    """The items without code whose results nothing uses."""
    needed = set() if flag is None else {id(flag.buffer.storage)}
    made: list[Item] = []
    for item in reversed(items):
        kept: Item | None = item
        if isinstance(item, Nest):
            needed |= {id(buffer.storage) for buffer in written(item) if buffer.storage.kind != "arena"}
            kept = sliced(item, needed, checked=False)
        else:
            needed |= {id(buffer.storage) for buffer in buffers_of(item)}
        if kept is not None:
            made.append(kept)
    return made[::-1]


def written(nest: Nest) -> Iterator[Buffer]:
    """The memory that a nest writes to."""
    yield from [buffer for buffer, _ in nest.starts]
    for stage in nest.stages:
        yield from [one.ref.buffer for one in stage.code if isinstance(one, (Store, StoreAt, Accumulate))]


def sliced(nest: Nest, needed: set[int], checked: bool) -> Nest | None:
    """The part of a nest that writes to memory in `needed` (by id), which then has what that part reads, too, and that
    reads at dynamic indices; if `checked`, of writes there and unneeded reads only a look whether an index is out of
    range. None if there is none."""
    while True:
        before = len(needed)
        kept, more = _marked(nest, needed, checked)
        if len(needed) == before:
            break
    starts = [(buffer, value) for buffer, value in nest.starts if id(buffer.storage) in needed]
    if not kept and not more and not starts:
        return None
    stages = [Stage(stage.inner, _code(stage, kept, more)) for stage in nest.stages]
    return Nest(nest.domain, nest.outer, stages, starts)


def _marked(nest: Nest, needed: set[int], checked: bool) -> tuple[set[int], dict[int, Instruction]]:
    """Instructions (by id) that stay as they are, and what others become, as far as `needed` goes; it grows."""
    wanted: set[int] = set()
    kept: set[int] = set()
    more: dict[int, Instruction] = {}
    for one in [one for stage in reversed(nest.stages) for one in reversed(stage.code)]:
        if isinstance(one, (Store, StoreAt, Accumulate)):
            is_kept = id(one.ref.buffer.storage) in needed
        else:
            is_kept = id(one.out) in wanted or (isinstance(one, LoadAt) and not checked)
        if is_kept:
            kept.add(id(one))
            wanted |= {id(operand) for operand in operands_of(one)}
            if isinstance(one, (Load, LoadAt)):
                needed.add(id(one.ref.buffer.storage))
        elif checked and isinstance(one, (LoadAt, StoreAt)):
            more[id(one)] = _look(one)
            wanted |= {id(pick.index) for pick in one.picks}
    return kept, more


def _code(stage: Stage, kept: set[int], more: dict[int, Instruction]) -> list[Instruction]:
    return [more.get(id(one), one) for one in stage.code if id(one) in kept or id(one) in more]


def _look(one: LoadAt | StoreAt) -> Instruction:
    """What notes an index out of range and does nothing else."""
    ref = StridedRef(one.ref.buffer, one.ref.offset, tuple([0] * len(one.ref.strides)))
    return LoadAt(Reg(one.ref.buffer.dtype), ref, one.picks)


def filtered(nest: Nest, dropped: set[int]) -> Nest:
    """A nest without some instructions (by id)."""
    stages = [Stage(stage.inner, [one for one in stage.code if id(one) not in dropped]) for stage in nest.stages]
    return Nest(nest.domain, nest.outer, stages, nest.starts)
