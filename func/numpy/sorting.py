"""Sorting, partitioning, searching and counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import sorting as sorting_primitives
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.shapes import convert, full_like, reshape
from func.interpreters.primitives.structural.slicing import getitem
from func.numpy import reductions
from func.numpy.argument_checks import (
    arrayed,
    check_unsupported,
    count,
    flattened,
    normalize_axis,
    rank_of,
    to_dtype,
    to_host,
)
from func.numpy.creation import sequence
from func.numpy.inplace import rebind
from func.numpy.memory import fresh, in_order_of
from func.numpy.protocol import implements

_KINDS = {None, "quicksort", "mergesort", "heapsort", "stable"}


def _prepared(a: Any, axis: int | None) -> tuple[Array, int]:
    """The array and the axis to sort; axis None sorts the flattened array."""
    a = operand(a)
    return (flattened(a), 0) if axis is None else (a, normalize_axis(axis, rank_of(a)))


def _kind(function: str, kind: Any, stable: Any, order: Any) -> Any:
    check_unsupported(function, order=(order, None))
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time. Use only one of them.")
    if kind not in _KINDS:
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return "stable" if stable else kind


@implements(np.argsort)
def argsort(a: Array, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """The indices that sort an axis, as numpy.argsort."""
    kind = _kind("argsort", kind, stable, order)
    a = operand(a)
    if rank_of(a) == 0:
        normalize_axis(-1 if axis is None else axis, 1)
        return np.zeros(1, np.intp)
    a, place = _prepared(a, axis)
    return sorting_primitives.argsort(a, axis=place, kind=kind)


@implements(np.sort)
def sort(a: Array, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
    """The elements along an axis in ascending order, as numpy.sort; the derivative is permuted with the elements."""
    kind = _kind("sort", kind, stable, order)
    a, place = _prepared(a, axis)
    order = sorting_primitives.argsort(a, axis=place, kind=kind)
    return in_order_of(sorting_primitives.ordered(a, order, place), a)


@implements(np.sort_complex)
def sort_complex(a: Array) -> Array:
    """The elements of the last axis in ascending order, as complex numbers, as numpy.sort_complex."""
    a = sort(a)
    if dtype_of(a).kind == "c":
        return a
    single = dtype_of(a).char in "bhBH"
    return convert(a, dtype=np.dtype(np.complex64 if single else np.complex128))


def _kth(kth: Any, a: Array, axis: int) -> tuple[int, ...]:
    """kth as a tuple of non-negative indices. As in NumPy, an array without elements accepts any places."""
    places = to_host(kth)
    if places.dtype.kind not in "iu" or places.ndim > 1:
        raise TypeError("Partition index must be integer")
    length = shape_of(a)[axis]
    if count(shape_of(a)) == 0:
        return (0,)
    for place in places.ravel().tolist():
        if not -length <= place < length:
            raise ValueError(f"kth(={place}) out of bounds ({length})")
    return tuple([place % length for place in places.ravel().tolist()])


@implements(np.argpartition)
def argpartition(a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The indices that partition an axis at its kth element, as numpy.argpartition."""
    check_unsupported("argpartition", order=(order, None))
    a = operand(a)
    if rank_of(a) == 0:
        a = reshape(arrayed(a), shape=(1,))
    a, place = _prepared(a, axis)
    return sorting_primitives.argpartition(a, kth=_kth(kth, a, place), axis=place, kind=kind)


@implements(np.partition)
def partition(a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The elements partitioned at the kth one, as numpy.partition; the derivative is permuted with the elements."""
    check_unsupported("partition", order=(order, None))
    a, place = _prepared(a, axis)
    places = _kth(kth, a, place)
    order = sorting_primitives.partition_order(a, kth=places, axis=place, kind=kind)
    return in_order_of(sorting_primitives.partitioned(a, order, places, place), a)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by several keys, as numpy.lexsort; the last key is the primary one."""
    rows_of_keys = [arrayed(operand(key)) for key in sequence(keys)]
    if not rows_of_keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shape = np.broadcast_shapes(*[shape_of(key) for key in rows_of_keys])
    if any([shape_of(key) != shape for key in rows_of_keys]):
        raise ValueError("all keys need to be the same shape")
    return sorting_primitives.lexsort(*rows_of_keys, axis=normalize_axis(axis, len(shape) or 1))


@implements(np.searchsorted)
def searchsorted(a: Array, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """The indices at which values keep a vector sorted, as numpy.searchsorted."""
    a, v = operand(a), operand(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be one of 'left' or 'right' (got '{side}')")
    if rank_of(a) != 1:
        raise ValueError("object too deep for desired array")
    if sorter is not None:
        sorter = arrayed(operand(sorter))
        if dtype_of(sorter).kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if shape_of(sorter) != shape_of(a):
            raise ValueError("sorter.size must equal a.size")
        a = gather(a, sorter, axis=0)
    return sorting_primitives.search(a, arrayed(v), side=side, batch_rank=0)


@implements(np.digitize)
def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    """The index of the bin of each element, as numpy.digitize."""
    x, bins = operand(x), operand(bins)
    if dtype_of(x).kind == "c":
        raise TypeError("x may not be complex")
    if rank_of(bins) != 1:
        raise ValueError("object too deep for desired array" if rank_of(bins) else "bins must be 1-dimensional")
    n = shape_of(bins)[0]
    later, earlier = (getitem(bins, index=((start, start + n - 1, 1),)) for start in (1, 0)) if n else (bins, bins)
    side = "left" if right else "right"
    if bool(reductions.all(ops.less_equal(earlier, later))):
        return searchsorted(bins, x, side)
    if not bool(reductions.all(ops.greater_equal(earlier, later))):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return ops.subtract(n, searchsorted(getitem(bins, index=((n - 1, -1, -1),)), x, side))


@implements(np.bincount)
def bincount(x: Array, /, weights: Any = None, minlength: int = 0) -> Array:
    """The count of each integer, or the sum of its weights, as numpy.bincount; differentiable in the weights."""
    x = arrayed(operand(x))
    if minlength is None:
        raise TypeError("use 0 instead of None for minlength")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if rank_of(x) != 1:
        raise ValueError(f"object {'too deep' if rank_of(x) else 'of too small depth'} for desired array")
    if dtype_of(x).kind not in "bui":  # NumPy before 2.3 rejects uint64
        raise TypeError(f"x: cannot cast from {dtype_of(x)!r} to dtype('int64') according to the rule 'safe'")
    x = to_dtype(x, np.intp)
    empty = shape_of(x)[0] == 0
    if not empty and not bool(reductions.all(ops.greater_equal(x, 0))):
        raise ValueError("'list' argument must have no negative elements")
    length = max(minlength, 0 if empty else int(reductions.max(x)) + 1)
    if weights is None:
        return scatter_add(full_like(x, 0, (length,), np.intp), full_like(x, 1, None, np.intp), x, axis=0)
    values = operand(weights)
    if not np.can_cast(dtype_of(values), np.float64, "safe"):
        raise TypeError(
            f"weights: cannot cast from {dtype_of(values)!r} to dtype('float64') according to the rule 'safe'"
        )
    if shape_of(values) != shape_of(x):
        raise ValueError("The weights and list don't have the same length.")
    if empty:
        return full_like(x, 0, (length,), np.intp)
    return scatter_add(full_like(x, 0, (length,), np.float64), to_dtype(values, np.float64), x, axis=0)


def sort_method(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """x.sort."""
    rebind(self, sort(fresh(self), axis, kind, order, stable=stable))


def partition_method(self: Tracer, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """x.partition."""
    rebind(self, partition(fresh(self), kth, axis, kind, order))
