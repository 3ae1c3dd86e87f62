"""Rematerialization: recomputes a value for another nest or stage if that is cheaper than memory.

Between stages of one nest, it recomputes a value if that takes few cheap instructions. Between nests, it does so from
values in memory, if that reads about as many bytes as storing and loading the value would move.
"""

from __future__ import annotations

import math

from func.backends.loops.kernels import Apply, Literal, Load, Operand, Position, Register, Shape, StridedRef
from func.backends.loops.schedule import Schedule
from func.backends.loops.values import Root
from func.backends.records import Record

_CHEAP = """
absolute add conjugate convert equal greater greater_equal imag less less_equal logical_and logical_not logical_or
maximum minimum multiply negative not_equal real select square subtract
"""
CHEAP = frozenset(_CHEAP.split())
"""Operations that are repeated rather than their results loaded."""
MOST_REPEATED = 6
"""Instructions that are repeated for one value."""
WORTH = 1.25
"""The bytes to read for each byte that is neither stored nor read back."""


class Source(Record):
    """A register that a recipe reads, and the layout of its value by the loops of the register's nest."""

    register: Register
    place: StridedRef | Root


class Recipe(Record):
    """The recipe of a value: its sources, and the operations, in order."""

    sources: list[Source]
    steps: list[Apply]


def recipe_of(root: Root, schedule: Schedule) -> Recipe | None:
    """The recipe of a register's value in a few cheap steps from memory that has not changed since; None if there is
    none.
    """
    recipe = Recipe([], [])
    seen: set[int] = set()

    def is_unchanged(ref: StridedRef, since: int) -> bool:
        return schedule.last_writes.get(id(ref.buffer.storage), -1) <= since

    def can_add(register: Operand) -> bool:
        if isinstance(register, Literal) or id(register) in seen:
            return True
        seen.add(id(register))
        if len(seen) > MOST_REPEATED:
            return False
        source = schedule.roots.get(id(register))
        if source is not None and source is not root:
            if source.is_row:
                recipe.sources.append(Source(register, source if source.ref is None else source.ref))
                return source.ref is None or is_unchanged(source.ref, root.nest)
            if source.ref is not None and source.domain == root.domain and is_unchanged(source.ref, root.nest):
                recipe.sources.append(Source(register, source.ref))
                return True
        instruction = schedule.emitted[id(register)].instruction
        if isinstance(instruction, Load):
            recipe.sources.append(Source(register, instruction.ref))
            return is_unchanged(instruction.ref, root.nest - 1)
        if not isinstance(instruction, Apply) or instruction.op not in CHEAP:
            return False
        if not all([can_add(arg) for arg in instruction.args]):
            return False
        recipe.steps.append(instruction)
        return True

    assert root.register is not None
    return recipe if can_add(root.register) else None


def cost_of(register: Operand, stage: int, schedule: Schedule, budget: int) -> int:
    """The number of instructions that recompute a register of a stage; above the budget if it is expensive."""
    if isinstance(register, Literal):
        return 0
    emitted = schedule.emitted[id(register)]
    instruction = emitted.instruction
    if emitted.stage != stage:
        return 0
    if budget < 1:
        return 1
    if isinstance(instruction, (Load, Position)):
        return 1
    if not isinstance(instruction, Apply) or instruction.op not in CHEAP:
        return budget + 1
    total = 1
    for arg in instruction.args:
        total += cost_of(arg, stage, schedule, budget - total)
        if total > budget:
            break
    return total


def bytes_read(ref: StridedRef, domain: Shape) -> int:
    """The bytes that loops over a domain read at a reference."""
    lengths = [length for length, stride in zip(domain, ref.strides, strict=False) if stride]
    return math.prod(lengths) * ref.buffer.dtype.itemsize
