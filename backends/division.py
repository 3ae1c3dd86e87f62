"""How the loops of nests go through memory."""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.kernels import Accumulate, Instruction, Load, LoadAt, Position, Spot, Store, StoreAt


def collapse(dims: Sequence[int], strides: Sequence[Sequence[int]], first: int, last: int) -> list[list[int]]:
    """Groups of neighbouring dimensions in [first, last) that can be run through as one, given all strides."""
    groups: list[list[int]] = []
    for axis in range(first, last):
        joins = bool(groups) and all([one[axis - 1] == one[axis] * dims[axis] for one in strides])
        if joins:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def strides_of(code: Sequence[Instruction], rank: int) -> list[tuple[int, ...]]:
    """All that goes on by the index: addresses, and positions."""
    found = [spot.strides for spot in spots_of(code)]
    for one in code:
        if isinstance(one, Position):
            found.append(tuple([int(axis == one.axis) for axis in range(rank)]))
    return found


def spots_of(code: Sequence[Instruction]) -> list[Spot]:
    """All memory that instructions name."""
    return [one.spot for one in code if isinstance(one, (Load, LoadAt, Store, StoreAt, Accumulate))]
