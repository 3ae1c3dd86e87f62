"""Windows, which are views, their sums, and correlations as products with windows."""

from __future__ import annotations

import math

import numpy as np

from func.backends.loops.values import Val
from func.backends.support.windows import lags_of, window_region
from func.interpreters.compile.native.contraction import sums_of_products
from func.interpreters.compile.native.rules import NotNative, Site, native
from func.interpreters.primitives.structural.contraction import spec

MOST_PLACES = 64
"""Elements of a window that are added one nest each."""


def viewed(site: Site, x: Val, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Val:
    """The memory of an array seen otherwise: strides in elements, from its first one."""
    spot = site.fuser.spot(x)
    return site.fuser.seen(x, shape, strides, spot.offset + offset)


@native("windows")
def _windows(site: Site) -> Val:
    x, axes = site.args[0], site.params["axes"]
    ones = (1,) * len(axes)
    strides = list(site.fuser.spot(x).strides)
    inner = [strides[axis] * gap for axis, gap in zip(axes, site.params.get("gaps") or ones, strict=True)]
    for axis, step in zip(axes, site.params.get("steps") or ones, strict=True):
        strides[axis] *= step
    return viewed(site, x, site.out.shape, (*strides, *inner))


@native("overlap_add")
def _overlap_add(site: Site) -> Val:
    x, sizes, axes = site.args[0], site.params["sizes"], site.params["axes"]
    if math.prod(sizes) > MOST_PLACES:
        raise NotNative(f"the sum of windows of {sizes}")
    counts = x.shape[: len(site.out.shape)]
    total = site.fuser.copied(site.fuser.broadcast(site.number(0, x.dtype), site.out.shape))
    for place in np.ndindex(*sizes):
        region = window_region(place, counts, axes, site.params.get("steps", ()), site.params.get("gaps", ()))
        entries = [(one.start, one.step, count) for one, count in zip(region, counts, strict=True)]
        part = site.fuser.slices(x, [*[(0, 1, count) for count in counts], *place])
        added = site.map("add", site.fuser.slices(total, entries), part)
        total = site.fuser.overwritten(total, entries, added)
    return total


@native("correlate")
def _correlate(site: Site) -> Val:
    """A product of the windows of x, with zeros around it, and y."""
    dtype = site.out.dtype
    x, y = [site.convert(one, dtype) for one in site.args]
    n, k = x.shape[-1], y.shape[-1]
    start, stop = lags_of(n, k, site.params["mode"])
    rows = [(0, 1, length) for length in x.shape[:-1]]
    wide = (*x.shape[:-1], n + 2 * (k - 1))
    padded = site.fuser.embedded(x, wide, [*rows, (k - 1, 1, n)], 0) if k > 1 else x
    shape = (*x.shape[:-1], stop - start, k)

    def windows(one: Val) -> Val:
        strides = site.fuser.spot(one).strides
        return viewed(site, one, shape, (*strides, strides[-1]), start * strides[-1])

    lanes = tuple(range(len(rows)))
    lag, place = len(rows), len(rows) + 1
    labels = spec((*lanes, lag, place), (*lanes, place), (*lanes, lag))
    return site.convert(sums_of_products(site, padded, y, labels, windows), dtype)
