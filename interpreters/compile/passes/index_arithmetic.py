"""Arithmetic of basic indices, whose entries are integers and (start, stop, step) in normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from func.interpreters.core import Shape

Run: TypeAlias = tuple[int, int, int]
"""start, stop and step of a slice."""
Entry: TypeAlias = int | Run
"""The part of an index that belongs to one axis; an integer drops the axis."""
Index: TypeAlias = tuple[Any, ...]


def count(entry: Entry) -> int:
    """The number of positions that an entry selects."""
    return 1 if isinstance(entry, int) else len(range(*entry))


def as_run(entry: Entry) -> Run:
    """The entry as a slice."""
    return (entry, entry + 1, 1) if isinstance(entry, int) else entry


def run(start: int, step: int, length: int) -> Run:
    """The slice of start + step · i for 0 ≤ i < length."""
    return start, start + step * (length - 1) + (1 if step > 0 else -1), step


def whole_index(shape: Sequence[int]) -> Index:
    """The index that selects everything."""
    return tuple([(0, length, 1) for length in shape])


def is_whole(index: Sequence[Any], shape: Shape) -> bool:
    """True where an index selects everything in order; integers may drop axes of length one."""
    return all([_is_whole_axis(entry, length) for entry, length in zip(index, shape, strict=True)])


def _is_whole_axis(entry: Entry, length: int) -> bool:
    if isinstance(entry, int) or length == 1:
        return length == 1 and count(entry) == 1
    return entry == (0, length, 1)


def partial_axes(index: Sequence[Any], shape: Shape) -> list[int]:
    """The axes along which an index does not select everything in order."""
    return [axis for axis, entry in enumerate(index) if entry != (0, shape[axis], 1)]


def compose(first: Index, second: Index) -> Index:
    """The index for which x[compose(first, second)] = x[first][second]; neither has new axes."""
    rest = iter(second)
    return tuple([entry if isinstance(entry, int) else _compose_entries(entry, next(rest)) for entry in first])


def _compose_entries(outer: Run, inner: Entry) -> Entry:
    start, _, step = outer
    if isinstance(inner, int):
        return start + inner * step
    length = count(inner)
    return run(start + inner[0] * step, inner[2] * step, length) if length else (0, 0, 1)


def interval(entry: Entry) -> tuple[int, int]:
    """The first position that an entry selects, and the one after the last."""
    positions = range(*as_run(entry))
    if len(positions) == 0:
        return 0, 0
    return min(positions[0], positions[-1]), max(positions[0], positions[-1]) + 1


def are_disjoint(x: Index, y: Index) -> bool:
    """True where the intervals of two indices of one array do not overlap along some axis."""
    pairs = [(interval(a), interval(b)) for a, b in zip(x, y, strict=True)]
    return any([a[1] <= b[0] or b[1] <= a[0] for a, b in pairs])


def shift(index: Index, axis: int, by: int) -> Index:
    """An index moved along one axis."""
    entry = index[axis]
    moved = entry + by if isinstance(entry, int) else (entry[0] + by, entry[1] + by, entry[2])
    return (*index[:axis], moved, *index[axis + 1 :])
