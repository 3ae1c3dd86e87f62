"""Where extrema are, orders given by indices, and places in sorted arrays."""

from __future__ import annotations

import numpy as np

from func.backends.loops.values import Val
from func.interpreters.compile.native.reductions import reduced
from func.interpreters.compile.native.rules import NotNative, TranslationContext, native

BOOL, INDEX = np.dtype(bool), np.dtype(np.intp)


@native("argmax", "argmin")
def _place_of_extremum(context: TranslationContext) -> Val:
    """The first place of an element that equals the extremum, or of a NaN."""
    x, axis = context.args[0], context.params["axis"]
    top = reduced(context, "maximum" if context.equation.primitive.name == "argmax" else "minimum", x, (axis,))
    hit = context.map("equal", x, context.keep(top, x.shape, (axis,)), dtype=BOOL)
    if x.dtype.kind in "fc":
        hit = context.map("logical_or", hit, context.map("isnan", x, dtype=BOOL), dtype=BOOL)
    places = context.fuser.position(x.shape, axis)
    return reduced(
        context, "minimum", context.map("select", hit, places, context.number(x.shape[axis], INDEX)), (axis,)
    )


@native("reorder")
def _reorder(context: TranslationContext) -> Val:
    x, order = context.args
    axis = context.params["axis"]
    if order.dtype.kind not in "iu":
        raise NotNative(f"an order of {order.dtype}")
    ref = context.fuser.ref(x)
    rest = tuple([0 if i == axis else stride for i, stride in enumerate(ref.strides)])
    pick = (context.fuser.broadcast(order, context.out.shape), x.shape[axis], ref.strides[axis])
    return context.fuser.take(x, [pick], context.out.shape, rest)


@native("search")
def _search(context: TranslationContext) -> Val:
    """Binary search, one step for every bit of the table's length."""
    lanes, side = context.params["lanes"], context.params["side"]
    dtype = np.result_type(context.avals[0].dtype, context.avals[1].dtype)
    if dtype.kind not in "biuf":
        raise NotNative(f"search among {dtype}")
    table, needs_cotangent = [context.convert(x, dtype) for x in context.args]
    length = table.shape[-1]
    shape = context.out.shape
    if length == 0:
        return Val(shape, INDEX, None, (), 0)
    ref = context.fuser.ref(table)
    rest = (*ref.strides[:lanes], *[0] * (len(shape) - lanes))
    place = context.fuser.broadcast(context.number(0, INDEX), shape)
    for bit in reversed(range(length.bit_length())):
        further = context.map("add", place, context.number(1 << bit, INDEX))
        probe = context.map("minimum", further, context.number(length, INDEX))
        index = context.map("subtract", probe, context.number(1, INDEX))
        element = context.fuser.take(table, [(index, length, ref.strides[-1])], shape, rest)
        if side == "left":
            below = _is_less(context, element, needs_cotangent)
        else:
            below = context.map("logical_not", _is_less(context, needs_cotangent, element), dtype=BOOL)
        inside = context.map("less_equal", further, context.number(length, INDEX), dtype=BOOL)
        place = context.map("select", context.map("logical_and", below, inside, dtype=BOOL), further, place)
    return place


def _is_less(context: TranslationContext, x: Val, y: Val) -> Val:
    """Whether x comes before y in a sorted array; NaN comes last."""
    less = context.map("less", x, y, dtype=BOOL)
    if x.dtype.kind != "f":
        return less
    number = context.map("logical_not", context.map("isnan", x, dtype=BOOL), dtype=BOOL)
    last = context.map("logical_and", context.map("isnan", y, dtype=BOOL), number, dtype=BOOL)
    return context.map("logical_or", less, last, dtype=BOOL)
