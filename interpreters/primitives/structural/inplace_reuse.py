"""Writing without copying: an array that nobody but the box to be written holds may be changed in place.

A functional update copies its array, so a loop that writes n elements one by one would copy n times n. Before a write,
`spare_buffers` finds the arrays at the bottom of a box to which nothing else refers; between `reuse` and `keep` the
update primitives write into them instead of copying.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from func.interpreters.core import Array, Tracer

_reusable: set[int] = set()


def _references(holder: Any, slot: str) -> int:
    value = getattr(holder, slot)
    return sys.getrefcount(value)


class _Puller:
    def pull(self, ct: Any) -> int:
        return _argument_references(ct)


def _argument_references(ct: Any) -> int:
    return sys.getrefcount(ct)


def _unshared_counts() -> tuple[int, int]:
    """What the two functions above count for an array without other holders; -1 where that is unreliable."""
    if not hasattr(sys, "getrefcount") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    ct = np.empty(0)
    return _references(Tracer(None, np.empty(0), None), "_value"), _Puller().pull(ct)  # type: ignore[arg-type]


_IN_BOX, _IN_PULL = _unshared_counts()


def spare_buffers(box: Tracer) -> list[int]:
    """The ids of the arrays at the bottom of a box, its tangents included, that nothing else refers to."""
    places: list[int] = []
    _collect(box, places)
    return places


def _collect(box: Tracer, places: list[int]) -> None:
    for slot in ("_value", "_attached"):
        kind = type(getattr(box, slot))
        if kind is Tracer and _references(box, slot) == _IN_BOX:
            _collect(getattr(box, slot), places)
        elif kind is ndarray and _references(box, slot) == _IN_BOX and _is_owner(getattr(box, slot)):
            places.append(id(getattr(box, slot)))


def _is_owner(array: Any) -> bool:
    return array.base is None and array.flags.owndata and array.flags.writeable


def is_spare_cotangent(ct: Any) -> bool:
    """True in `pull` for an array that only the caller's variable, from which it was passed, and `pull` itself hold."""
    return type(ct) is ndarray and sys.getrefcount(ct) == _IN_PULL and _is_owner(ct)


reuse: Callable[[list[int]], None] = _reusable.update
"""Let the update primitives write into these arrays, until `keep`. Neither runs code of Python, in which an interrupt
could end it: a later array may have the id of one that was not kept."""
keep: Callable[[list[int]], None] = _reusable.difference_update
"""From now on these arrays are copied before a write, as all others are."""


def writable(xp: Any, x: Array) -> Array:
    """A copy of x to write into, or x itself where its only holder is about to be written."""
    if id(x) in _reusable:
        return x
    strides = getattr(x, "strides", ())
    if 0 not in strides:
        return xp.array(x, copy=True, order="K")
    # Order "K" would put the batch axis of a broadcast array last; here axes without a stride come first.
    order = sorted(range(len(strides)), key=lambda axis: (strides[axis] != 0, -abs(strides[axis])))
    out = xp.transpose(xp.empty([x.shape[axis] for axis in order], x.dtype), np.argsort(order).tolist())
    out[...] = x
    return out
