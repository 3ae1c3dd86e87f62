"""Windows (views), their sums, and correlations as products with windows."""

from __future__ import annotations

import math

import numpy as np

from func.backends.array_helpers.windows import lags_of, window_region
from func.backends.loops.values import ArrayValue
from func.backends.number_types import kind_of
from func.interpreters.compile.native.contraction import sums_of_products
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.contraction import spec

MOST_PLACES = 64
"""The most elements of a window that one nest each adds."""


@native("windows")
def _windows(context: TranslationContext) -> ArrayValue:
    x, axes = context.args[0], context.params["axes"]
    ones = (1,) * len(axes)
    ref = context.storage.ref(x)
    strides = list(ref.strides)
    inner = [strides[axis] * gap for axis, gap in zip(axes, context.params.get("gaps") or ones, strict=True)]
    for axis, step in zip(axes, context.params.get("steps") or ones, strict=True):
        strides[axis] *= step
    return context.fuser.strided(x, context.out.shape, (*strides, *inner), ref.offset)


@native("overlap_add")
def _overlap_add(context: TranslationContext) -> ArrayValue:
    x, sizes, axes = context.args[0], context.params["sizes"], context.params["axes"]
    if math.prod(sizes) > MOST_PLACES:
        raise NotNative(f"the sum of windows of {sizes}")
    counts = x.shape[: len(context.out.shape)]
    total = context.storage.copied(context.fuser.broadcast(context.number(0, x.dtype), context.out.shape))
    for place in np.ndindex(*sizes):
        region = window_region(place, counts, axes, context.params.get("steps", ()), context.params.get("gaps", ()))
        entries = [(axis_slice.start, axis_slice.step, count) for axis_slice, count in zip(region, counts, strict=True)]
        part = context.fuser.slices(x, [*[(0, 1, count) for count in counts], *place])
        added = context.map("add", context.fuser.slices(total, entries), part)
        total = context.fuser.overwritten(total, entries, added)
    return total


def _finite(context: TranslationContext, y: ArrayValue) -> ArrayValue:
    """y, whose product with zeros outside of x is zero. If y is not finite, an index out of range ends the native code,
    and NumPy runs the program."""
    if kind_of(y.dtype) not in "fc":
        return y
    is_finite = context.map("isfinite", y, dtype=np.dtype(bool))
    index = context.convert(context.map("logical_not", is_finite, dtype=np.dtype(bool)), np.dtype(np.intp))
    one = context.constant(np.ones(1, y.dtype))
    return context.map("multiply", y, context.fuser.take(one, [(index, 1, 1)], y.shape, (0,) * len(y.shape)))


@native("correlate")
def _correlate(context: TranslationContext) -> ArrayValue:
    """A product of the windows of x, with zeros around it if needed, and y."""
    dtype = context.out.dtype
    x, y = [context.convert(operand, dtype) for operand in context.args]
    n, k = x.shape[-1], y.shape[-1]
    start, stop = lags_of(n, k, context.params["mode"])
    rows = [(0, 1, length) for length in x.shape[:-1]]
    padded = x
    if start >= k - 1 and stop <= n:
        start, stop = start - (k - 1), stop - (k - 1)
    else:
        y = _finite(context, y)
        padded_shape = (*x.shape[:-1], n + 2 * (k - 1))
        padded = context.fuser.embedded(x, padded_shape, [*rows, (k - 1, 1, n)], 0)
    shape = (*x.shape[:-1], stop - start, k)

    def windows(padded: ArrayValue) -> ArrayValue:
        ref = context.storage.ref(padded)
        offset = ref.offset + start * ref.strides[-1]
        return context.fuser.strided(padded, shape, (*ref.strides, ref.strides[-1]), offset)

    batch = tuple(range(len(rows)))
    lag, place = len(rows), len(rows) + 1
    labels = spec((*batch, lag, place), (*batch, place), (*batch, lag))
    return context.convert(sums_of_products(context, padded, y, labels, windows), dtype)
