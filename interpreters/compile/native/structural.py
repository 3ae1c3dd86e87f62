"""Rows that move data: views stay views, what is put together is written in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from func.backends.loops.kernels import Buffer, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import NotNative, TranslationContext, native
from func.interpreters.primitives.structural.slicing import Index
from func.interpreters.program.program import Equation


def entries_of(index: Index) -> list[Any]:
    """A normalised basic index as the fuser takes it: (start, step, length), positions, None."""
    found: list[Any] = []
    for entry in index:
        found.append((entry[0], entry[2], len(range(*entry))) if isinstance(entry, tuple) else entry)
    return found


@native("broadcast")
def _broadcast(context: TranslationContext) -> Val:
    x = context.args[0]
    return context.fuser.broadcast(x, context.params["shape"])


@native("reshape")
def _reshape(context: TranslationContext) -> Val:
    return context.fuser.reshape(context.args[0], context.params["shape"])


@native("permute")
def _permute(context: TranslationContext) -> Val:
    return context.fuser.permute(context.args[0], context.params["order"])


@native("getitem")
def _getitem(context: TranslationContext) -> Val:
    return context.fuser.slices(context.args[0], entries_of(context.params["index"]))


@native("embed")
def _embed(context: TranslationContext) -> Val:
    return context.fuser.embedded(context.args[0], context.params["shape"], entries_of(context.params["index"]), 0)


@native("update")
def _update(context: TranslationContext) -> Val:
    x, value = context.args
    whole = context.fuser.copied(x)
    return context.fuser.overwritten(whole, entries_of(context.params["index"]), context.convert(value, x.dtype))


@native("concatenate")
def _concatenate(context: TranslationContext) -> Val:
    parts = [context.convert(x, context.out.dtype) for x in context.args]
    return context.fuser.joined(parts, context.params["axis"], context.out.shape)


def is_safe(equation: Equation) -> bool:
    """Whether nothing can be wrong about an equation that makes no elements."""
    return equation.primitive.name not in ("gather", "scatter", "scatter_add", "reorder")


# --- dynamic indices ----------------------------------------------------------------------------------------------


def _picks(indices: Sequence[Val], shape: Sequence[int], strides: Sequence[int], axis: int) -> list[Any]:
    """(index, length, stride) for the axes that are indexed."""
    places = range(axis, axis + len(indices))
    return [(index, shape[place], strides[place]) for index, place in zip(indices, places, strict=True)]


@native("gather")
def _gather(context: TranslationContext) -> Val:
    x, *indices = context.args
    axis = context.params["axis"]
    if 0 in x.shape and 0 not in indices[0].shape:
        raise NotNative("indices into nothing")
    ref = context.fuser.ref(x)
    shape = context.out.shape
    inner = len(indices[0].shape)
    rest = [0] * len(shape)
    for place in range(axis):
        rest[place] = ref.strides[place]
    for place in range(axis + len(indices), len(x.shape)):
        rest[place - len(indices) + inner] = ref.strides[place]
    full = [_spread(context, index, shape, axis) for index in indices]
    return context.fuser.take(x, _picks(full, x.shape, ref.strides, axis), shape, tuple(rest))


def _spread(context: TranslationContext, index: Val, shape: Sequence[int], axis: int) -> Val:
    """An index over the whole result: its axes stand from `axis` on."""
    if index.dtype.kind not in "iu":
        raise NotNative(f"an index of {index.dtype}")
    after = len(shape) - axis - len(index.shape)
    return context.fuser.broadcast(context.fuser.reshape(index, (*index.shape, *[1] * after)), tuple(shape))


def _written(context: TranslationContext, adds: bool) -> Val:
    x, value, *indices = context.args
    axis = context.params["axis"]
    if 0 in x.shape and 0 not in indices[0].shape:
        raise NotNative("indices into nothing")
    whole = context.fuser.copied(x)
    strides = row_major(x.shape)
    inner = len(indices[0].shape)
    shape = (*x.shape[:axis], *indices[0].shape, *x.shape[axis + len(indices) :])
    rest = [0] * len(shape)
    for place in range(axis):
        rest[place] = strides[place]
    for place in range(axis + len(indices), len(x.shape)):
        rest[place - len(indices) + inner] = strides[place]
    full = [_spread(context, index, shape, axis) for index in indices]
    given = context.fuser.broadcast(context.convert(value, x.dtype), shape)
    return context.fuser.put(whole, _picks(full, x.shape, strides, axis), tuple(rest), given, adds)


@native("scatter")
def _scatter(context: TranslationContext) -> Val:
    return _written(context, False)


@native("scatter_add")
def _scatter_add(context: TranslationContext) -> Val:
    return _written(context, True)


def fresh(context: TranslationContext, shape: Sequence[int], dtype: Any) -> Buffer:
    """Memory for a result."""
    return Buffer(math.prod(shape), dtype)
