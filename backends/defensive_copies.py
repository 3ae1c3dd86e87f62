"""Defensive copies for graphs and programs: one copy of a large array for all, until a write to it.

An operation saves the operands that its derivative needs, and users may write to their arrays later. A loop that uses
one matrix in every step would copy it for each step. So operations look up the copy of a large array by the source
memory, and reuse it if it still has the same bits. The copies are read-only: code that returns one copies it.

A copy ends with its graphs. But repeated calls of a gradient would copy their data each time. So the second copy of an
array stays until the next call, while the array lives and is not written. `func.config.array_cache` bounds the bytes
of all of them.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from func.backends import blocks
from func.backends.array_memory import MEMORY

LEAST_DIGEST = 1 << 20
"""Bytes from which a digest is faster than a comparison."""
LARGE = 1 << 16
"""Arrays of fewer bytes are copied each time, which takes less time than the comparison."""


class _Copy(weakref.ref[Any]):
    """A reference to a copy, with known facts about it."""

    __slots__ = ("digest", "key")
    key: Any
    digest: bytes | None


_COPIES: dict[Any, _Copy] = {}
"""The live copies, by the memory, shape, strides and dtype of their sources."""


class _Source(weakref.ref[Any]):
    """A reference to the source array of a copy, or to the base of a view."""

    __slots__ = ("copy", "key", "varies")
    key: Any
    copy: Any
    """A copy stored for the next call, which may request it again."""
    varies: bool
    """Whether the array was written between two calls."""


_SOURCES: dict[Any, _Source] = {}
MOST_SOURCES = 256


def _forget(reference: weakref.ref[Any]) -> None:
    known: dict[Any, Any] = _COPIES if type(reference) is _Copy else _SOURCES
    key = reference.key  # type: ignore[attr-defined]
    if known.get(key) is reference:
        known.pop(key, None)


def forget_copies() -> None:
    """Free the memory of copies stored for the next call."""
    _SOURCES.clear()


def shared_copy(array: Any) -> Any:
    """A read-only copy of a NumPy array: the one taken before of the same memory, while that has the same bits."""
    if not array.flags.forc or array.dtype.hasobject:
        return array.copy("K")
    key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
    reference = _COPIES.get(key)
    before = None if reference is None else reference()
    if reference is not None and before is not None and _has_bits_of(array, before, reference):
        return before
    copy = array.copy("K") if array.size < blocks.LARGE else blocks.copy(array)
    copy.flags.writeable = False
    reference = _Copy(copy, _forget)
    reference.key, reference.digest = key, None
    _COPIES[key] = reference
    _note_source(key, array, copy, before is not None)
    return copy


def _note_source(key: Any, array: Any, copy: Any, is_changed: bool) -> None:
    """Note a copy of an array: stores the second copy of an unwritten one, as there may be a third."""
    while type(array.base) is np.ndarray:
        array = array.base
    source = _SOURCES.get(key)
    if source is None or source() is not array:
        if array.base is None:
            source = _Source(array, _forget)
            source.key, source.copy, source.varies = key, None, is_changed
            _SOURCES[key] = source
            if len(_SOURCES) > MOST_SOURCES:
                _SOURCES.pop(next(iter(_SOURCES), None), None)
    elif is_changed or source.varies:
        source.copy, source.varies = None, True
    else:
        source.copy = copy
        sources = [other for other in list(_SOURCES.values()) if other.copy is not None]
        total = sum([other.copy.nbytes for other in sources])
        for other in sources:  # the oldest first
            if total <= MEMORY.limit:
                break
            total -= other.copy.nbytes
            other.copy = None


def _has_bits_of(array: Any, copy: Any, reference: _Copy) -> bool:
    """Whether an array has the bits of a copy."""
    if array.nbytes < LEAST_DIGEST:
        return blocks.same_bits(copy, array)
    from func.backends.bit_digests import DIGESTS  # start-up time: few arrays are large

    if not DIGESTS.is_there:
        return DIGESTS.same_bits(copy, array)
    if blocks.differ_early(copy, array):
        return False
    if reference.digest is None:
        reference.digest = DIGESTS.of(copy)  # of the copy itself: another thread may write to the array meanwhile
    return DIGESTS.of(array) == reference.digest
