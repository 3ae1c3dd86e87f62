"""Copies that graphs and programs keep: of a large array that nobody has written to in between, one copy for all.

An operation saves the operands that its derivative needs, and users may write to their arrays later. A loop that uses
one matrix in every step would keep it once for each step. So the copy of a large array is looked up by the memory that
it was taken from, and is kept again where it still has the same bits. The copies are read-only: whoever hands one out
copies it.
"""

from __future__ import annotations

import weakref
from typing import Any

from func.backends import blocks

LARGE = 1 << 16
"""Arrays of fewer bytes are copied each time, which takes less time than the comparison."""

_COPIES: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def kept_copy(array: Any) -> Any:
    """A read-only copy of a NumPy array: the one taken before of the same memory, while that has the same bits."""
    if not array.flags.forc or array.dtype.hasobject:
        return array.copy("K")
    key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
    before = _COPIES.get(key)
    if before is not None and blocks.same_bits(before, array):
        return before
    copy = array.copy("K") if array.size < blocks.LARGE else blocks.copy(array)
    copy.flags.writeable = False
    _COPIES[key] = copy
    return copy
