"""Values that share memory, as arguments of a function that expects separate arrays.

Such values are read-only: in NumPy a write to one would change the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from func.interpreters.core import Array, Tracer, snapshot
from func.numpy.inplace import link_view
from func.numpy.memory import view_of
from func.numpy.sharing import overlap, read_only, shared_groups


def is_write_error(error: ValueError, values: Sequence[Array]) -> bool:
    """Whether this is the error of a write to a guarded value."""
    if type(error) is not ValueError or not str(error).endswith("is read-only"):
        return False
    return any([unguarded(value) is not value for value in values])


def unguarded(value: Array) -> Array:
    """A value without the guard of shared memory."""
    if type(value) is np.ndarray:
        return value if value.flags.writeable else value.copy()
    if type(value) is Tracer and (view := view_of(value)) is not None and view.put is None:
        return snapshot(value)
    return value


def may_share(values: Sequence[Array]) -> bool:
    """Whether some values may share memory: duplicates or views."""
    if len(values) < 2:
        return False
    if len(set(map(id, values))) < len(values):
        return True
    return any([view_of(x) is not None if type(x) is Tracer else getattr(x, "base", None) is not None for x in values])


def shared_places(arrays: Sequence[Array]) -> list[list[int]]:
    """The places of arrays that share memory with another, grouped by owner."""
    if len(arrays) < 2:
        return []
    return [
        places
        for group in shared_groups(arrays)
        if (places := [i for i in group if any([k != i and overlap(arrays[i], arrays[k]) for k in group])])
    ]


def guard(values: list[Array], arrays: Sequence[Array]) -> set[int]:
    """Make values that share memory read-only, in place; return their places.

    `arrays` are the caller's arrays for the values, followed by related ones.
    """
    guarded = set()
    for places in shared_places(arrays):
        for i in places:
            if i < len(values):
                first = next(k for k in places if arrays[k] is arrays[i])
                values[i] = _guarded(values[min(first, i)])
                guarded.add(i)
    return guarded


def guard_places(values: list[Array], shared: Sequence[Sequence[int]]) -> None:
    """Make the values at some places read-only, in place."""
    for places in shared:
        for i in places:
            values[i] = _guarded(values[i])


def _guarded(value: Array) -> Array:
    """A read-only view of the value."""
    if type(value) is not Tracer:
        return read_only(value)
    return link_view(snapshot(value), value, snapshot, {}, None, lambda array: array)
