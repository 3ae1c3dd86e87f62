"""Copies that graphs and programs keep: of a large array that nobody has written to in between, one copy for all.

An operation saves the operands that its derivative needs, and users may write to their arrays later. A loop that uses
one matrix in every step would keep it once for each step. So the copy of a large array is looked up by the memory that
it was taken from, and is kept again where it still has the same bits. The copies are read-only: whoever hands one out
copies it.

A copy ends with the graphs that hold it. But a gradient that is called again and again takes one of its data each time.
So the second copy of an array is kept until the next call, as long as the array lives, unless it is written to in
between; `func.config.array_cache` bounds the bytes of all of them.
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
    """A reference to a copy, with what has been found out about it."""

    __slots__ = ("digest", "key")
    key: Any
    digest: bytes | None


_COPIES: dict[Any, _Copy] = {}
"""The copies that somebody holds, by the memory, shape, strides and dtype that they were taken from."""


class _Source(weakref.ref[Any]):
    """A reference to an array that a copy was taken of, or to the one whose view it was."""

    __slots__ = ("copy", "key", "varies")
    key: Any
    copy: Any
    """A copy that is kept for the next call, which may ask for it again."""
    varies: bool
    """Whether it has been written to between two calls."""


_SOURCES: dict[Any, _Source] = {}
MOST_SOURCES = 256


def _forget(reference: weakref.ref[Any]) -> None:
    known: dict[Any, Any] = _COPIES if type(reference) is _Copy else _SOURCES
    key = reference.key  # type: ignore[attr-defined]
    if known.get(key) is reference:
        known.pop(key, None)


def forget_copies() -> None:
    """Give back the memory of copies that are kept for the next call."""
    _SOURCES.clear()


def kept_copy(array: Any) -> Any:
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
    """An array was copied: the second copy of one that nobody has written to is kept, as there may be a third."""
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
        kept = [other for other in list(_SOURCES.values()) if other.copy is not None]
        total = sum([other.copy.nbytes for other in kept])
        for other in kept:  # the oldest first
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
