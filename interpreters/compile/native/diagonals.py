"""Diagonals and blocks: views of memory in C order, written to one after the other and read where they lie."""

from __future__ import annotations

import math

from func.backends.loops.kernels import Buffer, Nest, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import Site, native
from func.interpreters.primitives.structural.diagonals import Placement


def _view(site: Site, buffer: Buffer, placement: Placement, offset: int, ready: int) -> Val:
    """The elements of memory at a placement, which may be read after an item."""
    start, sizes, strides = placement
    view = site.fuser.located(buffer, sizes, strides, offset + start)
    assert view.root is not None
    view.root.ready = ready
    return view


@native("place")
def _place(site: Site) -> Val:
    shape, dtype = site.out.shape, site.out.dtype
    buffer = Buffer(math.prod(shape), dtype)
    ready = -1
    for x, placement in zip(site.args, site.params["placements"], strict=True):
        sizes = placement[1]
        value = site.fuser.broadcast(site.convert(x, dtype), sizes)
        if ready < 0:
            ready = site.fuser.write(_view(site, buffer, placement, 0, -1), value)
            if math.prod(sizes) < buffer.size:
                nest = site.fuser.items[ready]
                assert isinstance(nest, Nest)
                nest.starts.append((buffer, 0))
            continue
        before = _view(site, buffer, placement, 0, ready)
        ready = site.fuser.write(_view(site, buffer, placement, 0, ready), site.map("add", before, value))
    return site.fuser.result(buffer, shape, ready)


@native("take")
def _take(site: Site) -> Val:
    x, placement = site.args[0], site.params["placement"]
    if x.root is None:
        return site.fuser.broadcast(x, placement[1])
    spot = site.fuser.spot(x)
    pairs = zip(spot.strides, row_major(x.shape), x.shape, strict=True)
    if not all([stride == wanted or length == 1 for stride, wanted, length in pairs]):
        x = site.fuser.copied(x)
        spot = site.fuser.spot(x)
    assert x.root is not None
    return _view(site, spot.buffer, placement, spot.offset, x.root.ready)
