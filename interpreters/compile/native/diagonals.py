"""Diagonals and blocks: views of memory in C order, written to one after the other and read where they lie."""

from __future__ import annotations

import math

from func.backends.loops.kernels import Buffer, Nest, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.diagonals import Placement


def _view(context: TranslationContext, buffer: Buffer, placement: Placement, offset: int, ready: int) -> Val:
    """The elements of memory at a placement, which may be read after an item."""
    start, sizes, strides = placement
    view = context.fuser.located(buffer, sizes, strides, offset + start)
    assert view.root is not None
    view.root.ready = ready
    return view


@native("place")
def _place(context: TranslationContext) -> Val:
    shape, dtype = context.out.shape, context.out.dtype
    buffer = Buffer(math.prod(shape), dtype)
    ready = -1
    for x, placement in zip(context.args, context.params["placements"], strict=True):
        sizes = placement[1]
        value = context.fuser.broadcast(context.convert(x, dtype), sizes)
        if ready < 0:
            ready = context.fuser.write(_view(context, buffer, placement, 0, -1), value)
            if math.prod(sizes) < buffer.size:
                nest = context.fuser.items[ready]
                assert isinstance(nest, Nest)
                nest.starts.append((buffer, 0))
            continue
        before = _view(context, buffer, placement, 0, ready)
        ready = context.fuser.write(_view(context, buffer, placement, 0, ready), context.map("add", before, value))
    return context.fuser.result(buffer, shape, ready)


@native("take")
def _take(context: TranslationContext) -> Val:
    x, placement = context.args[0], context.params["placement"]
    if x.root is None:
        return context.fuser.broadcast(x, placement[1])
    ref = context.fuser.ref(x)
    pairs = zip(ref.strides, row_major(x.shape), x.shape, strict=True)
    if not all([stride == needs_cotangent or length == 1 for stride, needs_cotangent, length in pairs]):
        x = context.fuser.copied(x)
        ref = context.fuser.ref(x)
    assert x.root is not None
    return _view(context, ref.buffer, placement, ref.offset, x.root.ready)
