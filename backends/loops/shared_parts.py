"""Functions of real numbers that share most of their work are computed together in a stage that has both."""

from __future__ import annotations

from collections.abc import Iterable

from func.backends.loops.kernels import Apply, Item, LoopNest
from func.backends.loops.traversal import bodies_of

BESIDE = {"tanh": ("sech_squared", "tanh_beside_sech_squared")}
"""For an operation another one, and the operation that it is beside that."""


def share_parts(items: Iterable[Item]) -> None:
    """Let operations share what they have in common."""
    for item in items:
        for body in bodies_of(item):
            share_parts(body)
        for stage in item.stages if isinstance(item, LoopNest) else ():
            applied = {(step.op, id(step.args[0])) for step in stage.code if isinstance(step, Apply)}
            for place, step in enumerate(stage.code):
                if isinstance(step, Apply) and step.op in BESIDE and step.out.dtype.kind != "c":
                    other, together = BESIDE[step.op]
                    if (other, id(step.args[0])) in applied:
                        stage.code[place] = Apply(step.out, together, step.args)
