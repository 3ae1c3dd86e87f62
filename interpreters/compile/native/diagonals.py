"""Diagonals and blocks: strided views of memory in C order, written one after the other and read in place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from func.backends.array_helpers.strided import strided_places
from func.backends.loops.kernels import Buffer, row_major
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.diagonals import Placement


def _view(context: TranslationContext, buffer: Buffer, placement: Placement, offset: int, ready: int) -> ArrayValue:
    """The elements of memory at a placement, which may be read after an item."""
    start, sizes, strides = placement
    return context.storage.located(buffer, sizes, strides, offset + start, ready)


def _cover_once(placements: Sequence[Placement], size: int) -> bool:
    """Whether placements together cover each element once."""
    if len(placements) < 2 or sum([math.prod(sizes) for _, sizes, _ in placements]) != size:
        return False
    return bool(np.bincount(np.concatenate([strided_places(np, *x).reshape(-1) for x in placements])).max() == 1)


@native("place")
def _place(context: TranslationContext) -> ArrayValue:
    shape, dtype = context.out.shape, context.out.dtype
    buffer = Buffer(math.prod(shape), dtype)
    ready = -1
    if _cover_once(context.params["placements"], buffer.size):
        for x, placement in zip(context.args, context.params["placements"], strict=True):
            value = context.fuser.broadcast(context.convert(x, dtype), placement[1])
            ready = max(ready, context.storage.write(_view(context, buffer, placement, 0, -1), value, is_apart=True))
        return context.storage.result(buffer, shape, ready)
    for x, placement in zip(context.args, context.params["placements"], strict=True):
        sizes = placement[1]
        value = context.fuser.broadcast(context.convert(x, dtype), sizes)
        target = _view(context, buffer, placement, 0, ready)
        if ready >= 0:
            value = context.map("add", _view(context, buffer, placement, 0, ready), value)
        is_first = ready < 0
        ready = context.storage.write(target, value)
        if is_first and math.prod(sizes) < buffer.size:
            context.schedule.nest(ready).fills.append((buffer, 0))
    return context.storage.result(buffer, shape, ready)


@native("take")
def _take(context: TranslationContext) -> ArrayValue:
    x, placement = context.args[0], context.params["placement"]
    if x.root is None:
        return context.fuser.broadcast(x, placement[1])
    ref = context.storage.ref(x)
    strides = zip(ref.strides, row_major(x.shape), x.shape, strict=True)
    if not all([stride == contiguous or length == 1 for stride, contiguous, length in strides]):
        found = _in_strides(placement, x.shape, ref.strides)
        if found is not None:
            return _view(context, ref.buffer, found, ref.offset, x.root.ready)
        x = context.storage.copied(x)
        ref = context.storage.ref(x)
    assert x.root is not None
    return _view(context, ref.buffer, placement, ref.offset, x.root.ready)


def _in_strides(placement: Placement, shape: Sequence[int], strides: Sequence[int]) -> Placement | None:
    """A placement in an array of other strides than those of C order; None if its elements have no even steps."""
    sizes = placement[1]
    if 0 in sizes:
        return placement
    places = np.zeros(sizes, int)
    for index, stride in zip(np.unravel_index(strided_places(np, *placement), shape), strides, strict=True):
        places += index * stride
    first = int(places.flat[0])
    steps = tuple([int(places.take(int(n > 1), axis).flat[0]) - first for axis, n in enumerate(sizes)])
    return (first, sizes, steps) if np.array_equal(strided_places(np, first, sizes, steps), places) else None
