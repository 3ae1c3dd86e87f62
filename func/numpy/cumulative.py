"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.structural import cumulative, shapes, slicing
from func.numpy.argument_checks import arrayed, count, normalize_axis, rank_of, to_dtype
from func.numpy.inplace import write_into
from func.numpy.memory import in_order_of
from func.numpy.protocol import implements
from func.numpy.reductions import deliver, loop_dtype


def _cumsum_primitive(a: Array, axis: int) -> Array:
    return cumulative.cumsum(a, axis=axis, reverse=False)


def _cumprod_primitive(a: Array, axis: int) -> Array:
    return cumulative.cumprod(a, axis=axis)


def running(primitive: Callable[[Array, int], Array], a: Any, axis: Any, dtype: Any, out: Any) -> Array:
    """A cumulative primitive along an axis (None: of the flattened array), computed in a dtype."""
    a = operand(a)
    dtype = loop_dtype(np.multiply if primitive is _cumprod_primitive else np.add, a, dtype, out)
    a = to_dtype(a, dtype)
    if axis is None or not shape_of(a):
        normalize_axis(0 if axis is None else axis, rank_of(a) or 1)
        a, axis = shapes.reshape(arrayed(a), shape=(count(shape_of(a)),)), 0
    result = to_dtype(primitive(a, normalize_axis(axis, rank_of(a))), dtype)
    return result if out is None else deliver(result, out)


@implements(np.cumsum)
def cumsum(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """The cumulative sum along an axis, as numpy.cumsum."""
    return running(_cumsum_primitive, a, axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """The cumulative product along an axis, as numpy.cumprod; its derivative is exact for zero elements too."""
    return running(_cumprod_primitive, a, axis, dtype, out)


def _cumulative(
    primitive: Any, first: int, x: Any, axis: int | None, dtype: Any, out: Any, include_initial: bool
) -> Array:
    x = operand(x)
    rank = rank_of(x)
    if rank == 0:
        x, rank = shapes.reshape(arrayed(x), shape=(1,)), 1
    if axis is None:
        if rank != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    place = normalize_axis(axis, rank)
    result = running(primitive, x, place, dtype, None)
    if include_initial:
        start = tuple([1 if i == place else n for i, n in enumerate(shape_of(result))])
        whole = slicing.concatenate(shapes.full_like(result, first, start, dtype_of(result)), result, axis=place)
        result = in_order_of(whole, result)
    return result if out is None else write_into(out, to_dtype(result, dtype_of(out)))


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """The cumulative sum along an axis, after a zero if `include_initial`, as numpy.cumulative_sum."""
    return _cumulative(_cumsum_primitive, 0, x, axis, dtype, out, include_initial)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """The cumulative product along an axis, after a one if `include_initial`, as numpy.cumulative_prod."""
    return _cumulative(_cumprod_primitive, 1, x, axis, dtype, out, include_initial)


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    implements(np.cumulative_sum)(cumulative_sum)
    implements(np.cumulative_prod)(cumulative_prod)
