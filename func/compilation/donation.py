"""Donation: arrays that the caller of a jitted function gives up, so that results may take their memory."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core.errors import DonatedBufferError
from func.interpreters.host.source import at_line

DONATED: dict[int, Any] = {}
"""Weak references to the arrays that were donated and still exist, by id."""


def check_not_donated(leaves: Iterable[Any]) -> None:
    """Raise DonatedBufferError for an array that an earlier call has taken."""
    for leaf in leaves:
        reference = DONATED.get(id(leaf))
        if reference is not None and leaf is reference():
            raise DonatedBufferError(
                f"func.jit: an array of shape {leaf.shape} was donated to an earlier call, which may have "
                f"overwritten it{at_line()}\nPass what that call returned, or leave "
                "donate_argnums out."
            )


def note_donated(args: Sequence[Any], kwargs: dict[str, Any], places: Iterable[int | str]) -> None:
    """Mark the arrays of the arguments with these positions and names as unusable."""
    for place in places:
        has_argument = place in kwargs if isinstance(place, str) else place < len(args)
        if has_argument:
            arg = kwargs[place] if isinstance(place, str) else args[place]
            for leaf in (arg,) if type(arg) is np.ndarray else tree.leaves(arg):
                if type(leaf) is np.ndarray:
                    _note(leaf)


def _note(array: Any) -> None:
    key = id(array)
    array.setflags(align=False)  # native code takes no such array, so it need not check in every call
    DONATED[key] = weakref.ref(array, functools.partial(_collected, key))


def _collected(key: int, reference: Any) -> None:
    DONATED.pop(key, None)


def donated_leaves(spec: Any, donated: Set[int | str], static: Set[Any]) -> frozenset[int]:
    """The positions of the donated leaves among the leaves of the traced arguments."""
    if not donated:
        return frozenset()
    args, kwargs = tree.unflatten(spec, list(range(spec.num_leaves)))
    numbers = [i for i in range(len(args) + len(static)) if i not in static]
    arguments = [*zip(numbers, args, strict=False), *kwargs.items()]
    return frozenset([leaf for place, arg in arguments if place in donated for leaf in tree.leaves(arg)])


def overwritable(leaves: Sequence[Any], donated: Set[int]) -> list[Any]:
    """The leaves; copies those in `donated` if writing to them would change something else."""
    shared = _sharing(leaves) if donated else set()
    return [
        _copied(leaf)
        if place in donated and type(leaf) is np.ndarray and (place in shared or not _is_writable(leaf))
        else leaf
        for place, leaf in enumerate(leaves)
    ]


def _copied(leaf: Any) -> Any:
    """A donated view of all of a copy, so that it may be donated again."""
    copy = np.array(leaf, leaf.dtype.newbyteorder("="), order="C")
    whole = copy.view()
    _note(copy)
    return whole


def _is_writable(leaf: np.ndarray[Any, Any]) -> bool:
    """Whether an array owns its memory, or is all of a donated array."""
    if not leaf.flags.carray or not leaf.dtype.isnative:
        return False
    base = leaf.base
    return base is None or (id(base) in DONATED and base.size == leaf.size)


def _sharing(leaves: Sequence[Any]) -> set[int]:
    """The places of arrays that may share memory with another one of these."""
    places = [place for place, leaf in enumerate(leaves) if type(leaf) is np.ndarray and leaf.size]
    owners = [_owner(leaves[place]) for place in places]
    if None in owners:
        return _overlapping(leaves, places)
    if len(set(owners)) == len(owners):
        return set()
    counts = Counter(owners)
    return {place for place, owner in zip(places, owners, strict=True) if counts[owner] > 1}


def _owner(array: Any) -> int | None:
    """The id of the array that owns the memory of this one; None if something else owns it."""
    base = array if array.base is None else array.base
    return id(base) if isinstance(base, np.ndarray) and base.flags.owndata else None


def _overlapping(leaves: Sequence[Any], places: Sequence[int]) -> set[int]:
    """The places of arrays that overlap the byte range of another one."""
    spans = sorted([(*np.lib.array_utils.byte_bounds(leaves[place]), place) for place in places])
    overlapping: set[int] = set()
    stop, furthest = 0, -1
    for start, end, place in spans:
        if start < stop:
            overlapping |= {furthest, place}
        if end > stop:
            stop, furthest = end, place
    return overlapping
