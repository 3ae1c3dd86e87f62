"""Values that share memory, given to a function that takes each of them for an array by itself.

Such values are read-only: where the function writes to one, NumPy would show the new numbers in the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from func.interpreters.core import Array, Tracer, snapshot
from func.numpy.inplace import link_view
from func.numpy.memory import view_of
from func.numpy.sharing import overlap, read_only, shared_groups


def is_write_error(error: ValueError, values: Sequence[Array]) -> bool:
    """Whether this is the error of a write to one of the values that are guarded."""
    if type(error) is not ValueError or not str(error).endswith("is read-only"):
        return False
    return any([unguarded(value) is not value for value in values])


def unguarded(value: Array) -> Array:
    """A value without the guard of what shares memory."""
    if type(value) is np.ndarray:
        return value if value.flags.writeable else value.copy()
    if type(value) is Tracer and (view := view_of(value)) is not None and view.put is None:
        return snapshot(value)
    return value


def may_share(values: Sequence[Array]) -> bool:
    """Whether some values may share memory: one is there twice or a view."""
    if len(values) < 2:
        return False
    if len(set(map(id, values))) < len(values):
        return True
    return any([view_of(x) is not None if type(x) is Tracer else getattr(x, "base", None) is not None for x in values])


def shared_places(given: Sequence[Array]) -> list[list[int]]:
    """The places of arrays that have memory in common with another one, those of one owner together."""
    if len(given) < 2:
        return []
    return [
        places
        for group in shared_groups(given)
        if (places := [i for i in group if any([k != i and overlap(given[i], given[k]) for k in group])])
    ]


def guard(values: list[Array], given: Sequence[Array]) -> set[int]:
    """Make values read-only, in place, that share memory with others; their places.

    `given` are the arrays that the user gave for them, and others that go with them.
    """
    guarded = set()
    for places in shared_places(given):
        for i in places:
            if i < len(values):
                first = next(k for k in places if given[k] is given[i])
                values[i] = _guarded(values[min(first, i)])
                guarded.add(i)
    return guarded


def guard_places(values: list[Array], shared: Sequence[Sequence[int]]) -> None:
    """Make the values at some places read-only, in place."""
    for places in shared:
        for i in places:
            values[i] = _guarded(values[i])


def _guarded(value: Array) -> Array:
    """The same value, which cannot be written."""
    if type(value) is not Tracer:
        return read_only(value)
    return link_view(snapshot(value), value, snapshot, {}, None, lambda array: array)
