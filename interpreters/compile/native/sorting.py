"""Positions of extrema, reordering by indices, and binary search."""

from __future__ import annotations

import numpy as np

from func.backends.loops.values import ArrayValue, uniform
from func.backends.number_types import kind_of
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.reductions import reduced
from func.interpreters.compile.native.rules import TranslationContext, native

BOOL, INDEX = np.dtype(bool), np.dtype(np.intp)


@native("argmax", "argmin")
def _position_of_extremum(context: TranslationContext) -> ArrayValue:
    """The first position of an element that equals the extremum, or of a NaN."""
    x, axis = context.args[0], context.params["axis"]
    top = reduced(context, context.reduction, x, (axis,))
    is_hit = context.map("equal", x, context.keep(top, x.shape, (axis,)), dtype=BOOL)
    if kind_of(x.dtype) in "fc":
        is_hit = context.map("logical_or", is_hit, context.map("isnan", x, dtype=BOOL), dtype=BOOL)
    positions = context.fuser.position(x.shape, axis)
    candidates = context.map("select", is_hit, positions, context.number(x.shape[axis], INDEX))
    return reduced(context, "minimum", candidates, (axis,))


@native("reorder")
def _reorder(context: TranslationContext) -> ArrayValue:
    x, order = context.args
    if order.dtype.kind not in "iu":
        raise NotNative(f"an order of {order.dtype}")
    return reordered(context, x, order, context.params["axis"])


def reordered(context: TranslationContext, x: ArrayValue, order: ArrayValue, axis: int) -> ArrayValue:
    """The elements of x at the indices along an axis that an array has."""
    ref = context.storage.ref(x)
    rest = tuple([0 if i == axis else stride for i, stride in enumerate(ref.strides)])
    index = (context.fuser.broadcast(order, context.out.shape), x.shape[axis], ref.strides[axis])
    return context.fuser.take(x, [index], context.out.shape, rest)


@native("search")
def _search(context: TranslationContext) -> ArrayValue:
    """Binary search, one step for every bit of the table's length."""
    batch, side = context.params["batch_rank"], context.params["side"]
    dtype = np.result_type(context.avals[0].dtype, context.avals[1].dtype)
    if kind_of(dtype) not in "biuf":
        raise NotNative(f"search among {dtype}")
    table, values = [context.convert(x, dtype) for x in context.args]
    length = table.shape[-1]
    shape = context.out.shape
    if length == 0:
        return uniform(0, INDEX, shape)
    ref = context.storage.ref(table)
    rest = (*ref.strides[:batch], *[0] * (len(shape) - batch))
    place = context.fuser.broadcast(context.number(0, INDEX), shape)
    for bit in reversed(range(length.bit_length())):
        further = context.map("add", place, context.number(1 << bit, INDEX))
        probe = context.map("minimum", further, context.number(length, INDEX))
        index = context.map("subtract", probe, context.number(1, INDEX))
        element = context.fuser.take(table, [(index, length, ref.strides[-1])], shape, rest)
        if side == "left":
            below = _is_less(context, element, values)
        else:
            below = context.map("logical_not", _is_less(context, values, element), dtype=BOOL)
        inside = context.map("less_equal", further, context.number(length, INDEX), dtype=BOOL)
        place = context.map("select", context.map("logical_and", below, inside, dtype=BOOL), further, place)
    return place


def _is_less(context: TranslationContext, x: ArrayValue, y: ArrayValue) -> ArrayValue:
    """Whether x comes before y in a sorted array; NaN comes last."""
    less = context.map("less", x, y, dtype=BOOL)
    if kind_of(x.dtype) != "f":
        return less
    is_number = context.map("logical_not", context.map("isnan", x, dtype=BOOL), dtype=BOOL)
    last = context.map("logical_and", context.map("isnan", y, dtype=BOOL), is_number, dtype=BOOL)
    return context.map("logical_or", less, last, dtype=BOOL)
