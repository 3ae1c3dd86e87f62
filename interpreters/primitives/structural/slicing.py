"""Linear primitives at basic indices: getitem, embed, update, concatenate; and writes without a copy.

A functional update copies its array, so a loop that writes n elements one by one would copy n times n. Before a write,
`spare_buffers` finds the arrays behind a tracer to which nothing else refers. Between `reuse` and `keep` the update
primitives write into them instead of copying.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy import ndarray

from func.backends.array_helpers.strides import axes_by_stride, joined_order
from func.interpreters import core
from func.interpreters.core import Array, Aval, Linear, Params, Shape, Shaped, Tracer
from func.interpreters.core.parameters import AXIS, INDEX, INDEX_OF_SHAPE, SHAPE
from func.interpreters.primitives.structural.filling import zeros_like
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import fit_cotangent

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
    """The counts of the two functions above for an array without other references; -1 if that is unreliable."""
    if not hasattr(sys, "getrefcount") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    ct = np.empty(0)
    return _references(Tracer(None, np.empty(0), None), "_value"), _Puller().pull(ct)  # type: ignore[arg-type]


_IN_BOX, _IN_PULL = _unshared_counts()


def spare_buffers(box: Tracer) -> list[int]:
    """The ids of the arrays behind a tracer, its tangents included, that nothing else refers to."""
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
could end it: a later array may have the id of a dropped one.
"""
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


Index: TypeAlias = tuple[int | tuple[int, int, int] | None, ...]
"""A basic index, one entry per axis: an integer, (start, stop, step) within bounds, or None for a new axis."""


@functools.lru_cache(8192)
def as_slices(index: Index) -> tuple[Any, ...]:
    """A normalised basic index as NumPy takes it."""
    return tuple([_as_slice(*entry) if type(entry) is tuple else entry for entry in index])


def _as_slice(start: int, stop: int, step: int) -> slice:
    """The slice of a range of positions; -1 is the place before the first, which a slice cannot name."""
    if start < 0 or stop < 0 < step:
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


def sliced_shape(index: Index) -> Shape:
    """The shape that a normalised basic index selects."""
    return tuple([1 if entry is None else len(range(*entry)) for entry in index if not isinstance(entry, int)])


def _getitem_impl(xp: Any, x: Array, *, index: Index) -> Array:
    return x[as_slices(index)]


_zeros = np.zeros  # as in `shapes`


def _embed_impl(xp: Any, x: Array, *, index: Index, shape: Shape) -> Array:
    out = _zeros(shape, core.dtype_of(x)) if xp is np else xp.zeros(shape, core.dtype_of(x))
    out[as_slices(index)] = x
    return out


def _whole(size: int) -> tuple[int, int, int]:
    return (0, size, 1)


getitem: Linear = core.linear(
    "getitem",
    _getitem_impl,
    aval=lambda x, *, index: Aval(sliced_shape(index), x.dtype),
    parameters={"index": INDEX},
    transpose=lambda ct, x, *, index: (embed(ct, index=index, shape=x.shape),),
    batch=lambda x, *, index: getitem(x, index=(_whole(x.shape[0]), *index)),
    cost=0,
    layout=lambda x, *, index: x[(*as_slices(index), ...)],
    view=True,
    mask="covered",
)
"""Basic indexing with a normalised index."""

embed: Linear = core.linear(
    "embed",
    _embed_impl,
    aval=lambda x, *, index, shape: Aval(shape, x.dtype),
    parameters={"index": INDEX_OF_SHAPE, "shape": SHAPE},
    fits=lambda x, *, index, shape: sliced_shape(index) == x.shape,
    transpose=lambda ct, x, *, index, shape: (getitem(ct, index=index),),
    batch=lambda x, *, index, shape: embed(x, index=(_whole(x.shape[0]), *index), shape=(x.shape[0], *shape)),
    cost=0,
    layout=lambda x, *, index, shape: tuple(range(len(shape)))[:: -1 if x.flags.fnc else 1],
    numpy_suffices=True,
    mask="padded",
    covers=True,
)
"""Zeros of a shape with x at a basic index: the transpose of getitem, and every kind of zero padding."""


def _update_impl(xp: Any, x: Array, value: Array, *, index: Index) -> Array:
    out = writable(xp, x)
    out[as_slices(index)] = value
    return out


def _update_transpose(ct: Array, x: Any, value: Any, *, index: Index) -> tuple[Array, Array]:
    region = getitem(ct, index=index)
    if math.prod(region.shape) == math.prod(ct.shape):
        ct = stop_gradient(ct)  # nothing is left of x, and no graph leads back to it
    return update(ct, zeros_like(region), index=index), region


def _update_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    x, value = core.materialize(size, batched, args)
    return update(x, value, index=(_whole(size), *params["index"]))


class Update(Linear):
    """`update`, whose pullback clears the part in the cotangent itself if nothing else refers to it."""

    __slots__ = ()

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if not is_spare_cotangent(ct):
            return super().pull(ct, parents, saved, params)
        index = as_slices(params["index"])
        region = ct[index].copy()
        ct[index] = 0
        return ct, region


update = Update(
    "update",
    _update_impl,
    aval=lambda x, value, *, index: x,
    parameters={"index": INDEX},
    fits=lambda x, value, *, index: sliced_shape(index) == value.shape,
    transpose=_update_transpose,
    batch=_update_batch,
    cost=0,
    layout=lambda x, value, *, index: axes_by_stride(x.strides),
    numpy_suffices=True,
    mask="covered",
)
update.positions = None
"""x with the part at a basic index replaced by a value of that part's shape and x's dtype."""


def _concatenate_aval(*xs: Aval, axis: int) -> Aval:
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return Aval(tuple(shape), np.result_type(*[x.dtype for x in xs]))


def _can_be_joined(*xs: Aval, axis: int) -> bool:
    """Whether only the lengths along the axis differ."""
    return len({(*x.shape[:axis], *x.shape[axis + 1 :]) for x in xs}) == len({len(x.shape) for x in xs}) == 1


def _concatenate_transpose(ct: Array, *xs: Shaped, axis: int) -> tuple[Array, ...]:
    shape = core.shape_of(ct)
    parts = []
    start = 0
    for x in xs:
        stop = start + x.shape[axis]
        index = tuple([(start, stop, 1) if i == axis else _whole(n) for i, n in enumerate(shape)])
        parts.append(fit_cotangent(getitem(ct, index=index), x))
        start = stop
    return tuple(parts)


def _concatenate_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return concatenate(*core.materialize(size, batched, args), axis=params["axis"] + 1)


concatenate: Linear = core.linear(
    "concatenate",
    lambda xp, *xs, axis: xp.concatenate(xs, axis),
    aval=_concatenate_aval,
    parameters={"axis": AXIS},
    fits=_can_be_joined,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    positions=(),
    cost=0,
    layout=joined_order,
    numpy_suffices=True,
    mask="covered",
    covers=True,
)
