"""Where extrema are, orders given by indices, and places in sorted arrays."""

from __future__ import annotations

import numpy as np

from func.backends.loops.values import Val
from func.interpreters.compile.native.reductions import reduced
from func.interpreters.compile.native.rules import NotNative, Site, native

BOOL, INDEX = np.dtype(bool), np.dtype(np.intp)


@native("argmax", "argmin")
def _place_of_extremum(site: Site) -> Val:
    """The first place of an element that equals the extremum, or of a NaN."""
    x, axis = site.args[0], site.params["axis"]
    top = reduced(site, "maximum" if site.equation.row.name == "argmax" else "minimum", x, (axis,))
    hit = site.map("equal", x, site.keep(top, x.shape, (axis,)), dtype=BOOL)
    if x.dtype.kind in "fc":
        hit = site.map("logical_or", hit, site.map("isnan", x, dtype=BOOL), dtype=BOOL)
    places = site.fuser.position(x.shape, axis)
    return reduced(site, "minimum", site.map("select", hit, places, site.number(x.shape[axis], INDEX)), (axis,))


@native("reorder")
def _reorder(site: Site) -> Val:
    x, order = site.args
    axis = site.params["axis"]
    if order.dtype.kind not in "iu":
        raise NotNative(f"an order of {order.dtype}")
    spot = site.fuser.spot(x)
    rest = tuple([0 if i == axis else stride for i, stride in enumerate(spot.strides)])
    pick = (site.fuser.broadcast(order, site.out.shape), x.shape[axis], spot.strides[axis])
    return site.fuser.take(x, [pick], site.out.shape, rest)


@native("search")
def _search(site: Site) -> Val:
    """Binary search, one step for every bit of the table's length."""
    lanes, side = site.params["lanes"], site.params["side"]
    dtype = np.result_type(site.avals[0].dtype, site.avals[1].dtype)
    if dtype.kind not in "biuf":
        raise NotNative(f"search among {dtype}")
    table, wanted = [site.convert(x, dtype) for x in site.args]
    length = table.shape[-1]
    shape = site.out.shape
    if length == 0:
        return Val(shape, INDEX, None, (), 0)
    spot = site.fuser.spot(table)
    rest = (*spot.strides[:lanes], *[0] * (len(shape) - lanes))
    place = site.fuser.broadcast(site.number(0, INDEX), shape)
    for bit in reversed(range(length.bit_length())):
        further = site.map("add", place, site.number(1 << bit, INDEX))
        probe = site.map("minimum", further, site.number(length, INDEX))
        index = site.map("subtract", probe, site.number(1, INDEX))
        element = site.fuser.take(table, [(index, length, spot.strides[-1])], shape, rest)
        if side == "left":
            below = _is_less(site, element, wanted)
        else:
            below = site.map("logical_not", _is_less(site, wanted, element), dtype=BOOL)
        inside = site.map("less_equal", further, site.number(length, INDEX), dtype=BOOL)
        place = site.map("select", site.map("logical_and", below, inside, dtype=BOOL), further, place)
    return place


def _is_less(site: Site, x: Val, y: Val) -> Val:
    """Whether x comes before y in a sorted array; NaN comes last."""
    less = site.map("less", x, y, dtype=BOOL)
    if x.dtype.kind != "f":
        return less
    number = site.map("logical_not", site.map("isnan", x, dtype=BOOL), dtype=BOOL)
    last = site.map("logical_and", site.map("isnan", y, dtype=BOOL), number, dtype=BOOL)
    return site.map("logical_or", less, last, dtype=BOOL)
