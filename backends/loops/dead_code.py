"""Dead-code elimination: instructions whose results nothing reads, such as values that later nests rematerialize."""

from __future__ import annotations

from func.backends.loops.kernels import WRITES, Instruction, Item, LoadAt, LoopNest
from func.backends.loops.traversal import bodies_of, operands_of


def eliminate_dead_code(items: list[Item]) -> None:
    """Take dead instructions out, and nests that have none left. A load at dynamic indices stays, since an index may be
    out of range."""
    for item in items:
        if isinstance(item, LoopNest):
            _eliminate(item)
        for body in bodies_of(item):
            eliminate_dead_code(body)
    items[:] = [item for item in items if not isinstance(item, LoopNest) or item.stages or item.fills]


def _eliminate(nest: LoopNest) -> None:
    used: set[int] = set()
    for stage in reversed(nest.stages):
        live: list[Instruction] = []
        for instruction in reversed(stage.code):
            if isinstance(instruction, (*WRITES, LoadAt)) or id(instruction.out) in used:
                live.append(instruction)
                used.update([id(operand) for operand in operands_of(instruction)])
        stage.code[:] = reversed(live)
    nest.stages[:] = [stage for stage in nest.stages if stage.code]
    if not nest.stages:
        nest.domain, nest.outer = (), None
