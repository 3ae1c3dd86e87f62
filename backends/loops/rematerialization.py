"""Values that are rather computed again than kept: how, out of what lies in memory anyway."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from func.backends.loops.kernels import Apply, Instruction, Literal, Load, Operand, Reg, Shape, StridedRef
from func.backends.loops.values import Root

_CHEAP = """
absolute add conjugate convert equal greater greater_equal imag less less_equal logical_and logical_not logical_or
maximum minimum multiply negative not_equal real select square subtract
"""
CHEAP = frozenset(_CHEAP.split())
"""Operations that a later stage or nest rather repeats than loads the result of."""
MOST_REPEATED = 6
"""Instructions that are repeated for one value."""
WORTH = 1.25
"""Bytes that may be read for each byte which is neither stored nor read back."""

Made: TypeAlias = Mapping[int, tuple[int, int, Instruction]]
"""For registers (by id): nest, stage, instruction."""


class Leaf(NamedTuple):
    """What a repetition reads: a register of the value's nest, and where it lies by the loops of that nest. A row's
    value that is not in memory yet has its root in place of a spot."""

    reg: Reg
    found: StridedRef | Root


class Recipe(NamedTuple):
    """How a value is computed: from what, and by which operations, in their order."""

    leaves: list[Leaf]
    steps: list[Apply]


def recipe_of(root: Root, made: Made, roots: Mapping[int, Root], touched: Mapping[int, int]) -> Recipe | None:
    """How the value of a register is computed in a few cheap steps from memory that has not changed since; None where
    it cannot be. `touched`: the last item that writes to a storage (by id)."""
    recipe = Recipe([], [])
    seen: set[int] = set()

    def is_old(ref: StridedRef, last: int) -> bool:
        return touched.get(id(ref.buffer.storage), -1) <= last

    def add(reg: Operand) -> bool:
        if isinstance(reg, Literal) or id(reg) in seen:
            return True
        seen.add(id(reg))
        if len(seen) > MOST_REPEATED:
            return False
        other = roots.get(id(reg))
        if other is not None and other is not root:
            if other.is_row:
                recipe.leaves.append(Leaf(reg, other if other.ref is None else other.ref))
                return other.ref is None or is_old(other.ref, root.nest)
            if other.ref is not None and other.domain == root.domain and is_old(other.ref, root.nest):
                recipe.leaves.append(Leaf(reg, other.ref))
                return True
        _, _, instruction = made[id(reg)]
        if isinstance(instruction, Load):
            recipe.leaves.append(Leaf(reg, instruction.ref))
            return is_old(instruction.ref, root.nest - 1)
        if not isinstance(instruction, Apply) or instruction.op not in CHEAP:
            return False
        if not all([add(arg) for arg in instruction.args]):
            return False
        recipe.steps.append(instruction)
        return True

    assert root.reg is not None
    return recipe if add(root.reg) else None


def read_by(ref: StridedRef, domain: Shape) -> int:
    """The bytes that loops over a domain read at a spot."""
    sizes = [length for length, stride in zip(domain, ref.strides, strict=False) if stride]
    return math.prod(sizes) * ref.buffer.dtype.itemsize
