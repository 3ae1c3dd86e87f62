"""Primitives that move data: views stay views, and parts of a result are written in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.backends.loops.kernels import Shape, row_major
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.slicing import Index
from func.interpreters.program.program import Equation


def entries_of(index: Index) -> list[Any]:
    """A normalised basic index in the form of the fuser."""
    return [(entry[0], entry[2], len(range(*entry))) if isinstance(entry, tuple) else entry for entry in index]


@native("broadcast")
def _broadcast(context: TranslationContext) -> ArrayValue:
    x = context.args[0]
    return context.fuser.broadcast(x, context.params["shape"])


@native("reshape")
def _reshape(context: TranslationContext) -> ArrayValue:
    return context.fuser.reshape(context.args[0], context.params["shape"])


@native("permute")
def _permute(context: TranslationContext) -> ArrayValue:
    return context.fuser.permute(context.args[0], context.params["order"])


@native("getitem")
def _getitem(context: TranslationContext) -> ArrayValue:
    return context.fuser.slices(context.args[0], entries_of(context.params["index"]))


@native("embed")
def _embed(context: TranslationContext) -> ArrayValue:
    return context.fuser.embedded(context.args[0], context.params["shape"], entries_of(context.params["index"]), 0)


@native("update")
def _update(context: TranslationContext) -> ArrayValue:
    x = context.args[0]
    array = context.storage.copied(x)
    return context.fuser.overwritten(array, entries_of(context.params["index"]), context.fitted(1, x.dtype))


@native("concatenate")
def _concatenate(context: TranslationContext) -> ArrayValue:
    parts = [context.convert(x, context.out.dtype) for x in context.args]
    return context.fuser.joined(parts, context.params["axis"], context.out.shape)


def is_safe(equation: Equation) -> bool:
    """Whether an equation whose outputs have no elements cannot raise an error."""
    return not equation.primitive.checks_indices


class _Indexing:
    """Dynamic indices into the axes of an array from `axis` on: the result has the axes of an index there."""

    def __init__(
        self,
        context: TranslationContext,
        indices: Sequence[ArrayValue],
        shape: Shape,
        strides: Sequence[int],
        axis: int,
    ) -> None:
        if 0 in shape and 0 not in indices[0].shape:
            raise NotNative("indices into an array without elements")
        stop, inner = axis + len(indices), len(indices[0].shape)
        self.shape = (*shape[:axis], *indices[0].shape, *shape[stop:])
        self.rest = (*strides[:axis], *[0] * inner, *strides[stop:])
        """The strides of the array by the axes of the result."""
        self.indices = [
            (_spread(context, index, self.shape, axis), length, stride)
            for index, length, stride in zip(indices, shape[axis:stop], strides[axis:stop], strict=True)
        ]


@native("gather")
def _gather(context: TranslationContext) -> ArrayValue:
    x, *indices = context.args
    indexing = _Indexing(context, indices, x.shape, context.storage.ref(x).strides, context.params["axis"])
    return context.fuser.take(x, indexing.indices, context.out.shape, indexing.rest)


def _spread(context: TranslationContext, index: ArrayValue, shape: Sequence[int], axis: int) -> ArrayValue:
    """An index over the whole result: its axes stand from `axis` on."""
    if index.dtype.kind not in "iu":
        raise NotNative(f"an index of {index.dtype}")
    after = len(shape) - axis - len(index.shape)
    return context.fuser.broadcast(context.fuser.reshape(index, (*index.shape, *[1] * after)), tuple(shape))


def _scattered(context: TranslationContext, adds: bool) -> ArrayValue:
    x, _, *indices = context.args
    array = context.storage.copied(x)
    indexing = _Indexing(context, indices, x.shape, row_major(x.shape), context.params["axis"])
    updates = context.fuser.broadcast(context.fitted(1, x.dtype), indexing.shape)
    return context.fuser.put(array, indexing.indices, indexing.rest, updates, adds)


@native("scatter")
def _scatter(context: TranslationContext) -> ArrayValue:
    return _scattered(context, False)


@native("scatter_add")
def _scatter_add(context: TranslationContext) -> ArrayValue:
    return _scattered(context, True)


@native("sparse_product")
def _sparse_product(context: TranslationContext) -> ArrayValue:
    """Every entry times its row of x, added to its row of the result."""
    data, rows, cols, x = context.args
    dtype, fuser, storage = context.out.dtype, context.fuser, context.storage
    total = storage.copied(fuser.broadcast(context.number(0, dtype), context.out.shape))
    shape = (data.shape[0], context.out.shape[1])
    source = _Indexing(context, [cols], x.shape, storage.ref(x).strides, 0)
    taken = context.convert(fuser.take(x, source.indices, shape, source.rest), dtype)
    column = fuser.broadcast(fuser.reshape(context.convert(data, dtype), (data.shape[0], 1)), shape)
    target = _Indexing(context, [rows], context.out.shape, row_major(context.out.shape), 0)
    return fuser.put(total, target.indices, target.rest, context.map("multiply", column, taken), True)
