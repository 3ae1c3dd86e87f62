"""Rows that move data: views stay views, what is put together is written in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from func.backends.loops.kernels import Buffer, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import NotNative, Site, native
from func.interpreters.primitives.structural.slicing import Index
from func.interpreters.program.program import Equation


def entries_of(index: Index) -> list[Any]:
    """A normalised basic index as the fuser takes it: (start, step, length), positions, None."""
    found: list[Any] = []
    for entry in index:
        found.append((entry[0], entry[2], len(range(*entry))) if isinstance(entry, tuple) else entry)
    return found


@native("broadcast")
def _broadcast(site: Site) -> Val:
    x = site.args[0]
    return site.fuser.broadcast(x, site.params["shape"])


@native("reshape")
def _reshape(site: Site) -> Val:
    return site.fuser.reshape(site.args[0], site.params["shape"])


@native("permute")
def _permute(site: Site) -> Val:
    return site.fuser.permute(site.args[0], site.params["order"])


@native("getitem")
def _getitem(site: Site) -> Val:
    return site.fuser.slices(site.args[0], entries_of(site.params["index"]))


@native("embed")
def _embed(site: Site) -> Val:
    return site.fuser.embedded(site.args[0], site.params["shape"], entries_of(site.params["index"]), 0)


@native("update")
def _update(site: Site) -> Val:
    x, value = site.args
    whole = site.fuser.copied(x)
    return site.fuser.overwritten(whole, entries_of(site.params["index"]), site.convert(value, x.dtype))


@native("concatenate")
def _concatenate(site: Site) -> Val:
    parts = [site.convert(x, site.out.dtype) for x in site.args]
    return site.fuser.joined(parts, site.params["axis"], site.out.shape)


def is_safe(equation: Equation) -> bool:
    """Whether nothing can be wrong about an equation that makes no elements."""
    return equation.row.name not in ("gather", "scatter", "scatter_add", "reorder")


# --- dynamic indices ----------------------------------------------------------------------------------------------


def _picks(indices: Sequence[Val], shape: Sequence[int], strides: Sequence[int], axis: int) -> list[Any]:
    """(index, length, stride) for the axes that are indexed."""
    places = range(axis, axis + len(indices))
    return [(index, shape[place], strides[place]) for index, place in zip(indices, places, strict=True)]


@native("gather")
def _gather(site: Site) -> Val:
    x, *indices = site.args
    axis = site.params["axis"]
    if 0 in x.shape and 0 not in indices[0].shape:
        raise NotNative("indices into nothing")
    spot = site.fuser.spot(x)
    shape = site.out.shape
    inner = len(indices[0].shape)
    rest = [0] * len(shape)
    for place in range(axis):
        rest[place] = spot.strides[place]
    for place in range(axis + len(indices), len(x.shape)):
        rest[place - len(indices) + inner] = spot.strides[place]
    full = [_spread(site, index, shape, axis) for index in indices]
    return site.fuser.take(x, _picks(full, x.shape, spot.strides, axis), shape, tuple(rest))


def _spread(site: Site, index: Val, shape: Sequence[int], axis: int) -> Val:
    """An index over the whole result: its axes stand from `axis` on."""
    if index.dtype.kind not in "iu":
        raise NotNative(f"an index of {index.dtype}")
    after = len(shape) - axis - len(index.shape)
    return site.fuser.broadcast(site.fuser.reshape(index, (*index.shape, *[1] * after)), tuple(shape))


def _written(site: Site, adds: bool) -> Val:
    x, value, *indices = site.args
    axis = site.params["axis"]
    if 0 in x.shape and 0 not in indices[0].shape:
        raise NotNative("indices into nothing")
    whole = site.fuser.copied(x)
    strides = row_major(x.shape)
    inner = len(indices[0].shape)
    shape = (*x.shape[:axis], *indices[0].shape, *x.shape[axis + len(indices) :])
    rest = [0] * len(shape)
    for place in range(axis):
        rest[place] = strides[place]
    for place in range(axis + len(indices), len(x.shape)):
        rest[place - len(indices) + inner] = strides[place]
    full = [_spread(site, index, shape, axis) for index in indices]
    given = site.fuser.broadcast(site.convert(value, x.dtype), shape)
    return site.fuser.put(whole, _picks(full, x.shape, strides, axis), tuple(rest), given, adds)


@native("scatter")
def _scatter(site: Site) -> Val:
    return _written(site, False)


@native("scatter_add")
def _scatter_add(site: Site) -> Val:
    return _written(site, True)


def fresh(site: Site, shape: Sequence[int], dtype: Any) -> Buffer:
    """Memory for a result."""
    return Buffer(math.prod(shape), dtype)
