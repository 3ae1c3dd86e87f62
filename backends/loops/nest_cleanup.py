"""Stages without dead instructions, with joint computation of functions that share most of their work."""

from __future__ import annotations

from collections.abc import Iterable

from func.backends.loops.kernels import WRITES, Apply, Instruction, Item, LoadAt, LoopNest
from func.backends.loops.traversal import bodies_of, operands_of


def eliminate_dead_code(items: list[Item]) -> None:
    """Remove dead instructions, and nests without any left. A load at dynamic indices stays, since an index may be out
    of range.
    """
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


COMPUTED_WITH = {"tanh": ("sech_squared", "tanh_with_sech_squared")}
"""For an operation another one, and the operation that computes both."""


def share_parts(items: Iterable[Item]) -> None:
    """Let operations share their common work."""
    for item in items:
        for body in bodies_of(item):
            share_parts(body)
        for stage in item.stages if isinstance(item, LoopNest) else ():
            applied = {(step.op, id(step.args[0])) for step in stage.code if isinstance(step, Apply)}
            for place, step in enumerate(stage.code):
                if isinstance(step, Apply) and step.op in COMPUTED_WITH and step.out.dtype.kind != "c":
                    other, together = COMPUTED_WITH[step.op]
                    if (other, id(step.args[0])) in applied:
                        stage.code[place] = Apply(step.out, together, step.args)
