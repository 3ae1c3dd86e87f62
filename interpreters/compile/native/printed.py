"""What only printed code has forms for: sorting and Fourier transforms, which `jit` leaves to NumPy."""

from __future__ import annotations

import math

import numpy as np

from func.backends.loops.kernels import Buffer, StridedRef
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.linalg import INT64, fresh, result, run
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, printed
from func.interpreters.compile.native.sorting import reordered

TABLE = 512
"""Roots of unity of the longest transform that has them as constants; longer ones compute them."""


def _along_last(context: TranslationContext, x: ArrayValue, axis: int) -> tuple[StridedRef, list[int]]:
    """An array in memory with an axis moved to its end, and the order that moves the axis back."""
    order = [*[i for i in range(len(x.shape)) if i != axis], axis]
    ref = context.storage.ref(context.storage.copied(context.fuser.permute(x, order)))
    return ref, [order.index(i) for i in range(len(order))]


def _space(count: int, dtype: np.dtype[np.generic], batch: tuple[int, ...]) -> StridedRef:
    """Scratch memory that all rows share."""
    return StridedRef(Buffer(max(1, count), dtype), 0, (*[0] * len(batch), 1))


@printed("argsort", "argpartition", "partition_order", "inverse_order")
def _argsort(context: TranslationContext) -> ArrayValue:
    """The stable order, which is a partition, too; that of an order is its inverse."""
    x, axis = context.args[0], context.params["axis"]
    if x.dtype.kind not in "biuf":
        raise NotNative(f"sorting of {x.dtype}")
    if x.dtype.kind == "b" or x.dtype == np.float16:
        x = context.convert(x, np.dtype(np.int8 if x.dtype.kind == "b" else np.float32))
    ref, back = _along_last(context, x, axis)
    batch, n = tuple([x.shape[i] for i in range(len(x.shape)) if i != axis]), x.shape[axis]
    out = fresh((*batch, n), INT64)
    number = run(context, "argsort", x.dtype, batch, [out, _space(n, INT64, batch)], [ref], n=n)
    return context.fuser.permute(result(context, out, (*batch, n), number), back)


@printed("sort", "partition")
def _sort(context: TranslationContext) -> ArrayValue:
    """The elements in their order."""
    return reordered(context, context.args[0], _argsort(context), context.params["axis"])


@printed("fft", "rfft", "irfft")
def _fourier(context: TranslationContext) -> ArrayValue:
    x, axis, norm = context.args[0], context.params["axis"], context.params["norm"]
    name, out = context.equation.primitive.name, context.out
    part = np.dtype(np.float32 if out.dtype.itemsize <= (4 if name == "irfft" else 8) else np.float64)
    if part.itemsize < out.dtype.itemsize // (1 if name == "irfft" else 2) or out.dtype.itemsize < part.itemsize:
        raise NotNative(f"Fourier transforms of {x.dtype}")
    dtype = part if name == "rfft" else np.result_type(part, np.complex64)
    n = out.shape[axis] if name == "irfft" else x.shape[axis]
    inverse = name == "irfft" or bool(context.params.get("inverse", False))
    scale = {"ortho": 1 / math.sqrt(n), "forward": 1.0 if inverse else 1 / n}.get(norm, 1 / n if inverse else 1.0)
    ref, back = _along_last(context, context.convert(x, dtype), axis)
    batch = tuple([x.shape[i] for i in range(len(x.shape)) if i != axis])
    shape = (*batch, out.shape[axis])
    target = fresh(shape, out.dtype)
    if n <= TABLE:
        angles = (2 if inverse else -2) * np.pi / n * np.arange(n)
        table = context.constant(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(part))
        roots = context.storage.ref(table)
    else:
        roots = StridedRef(Buffer(2 * n, part), 0, (1,))
        run(context, "roots_of_unity", part, (), [roots], [], n=n, inverse=inverse)
    fixed = StridedRef(roots.buffer, roots.offset, (*[0] * len(batch), 1))
    number = run(
        context,
        "fourier",
        part,
        batch,
        [target, _space(6 * n, part, batch)],
        [ref, fixed],
        n=n,
        kind=("fft", "rfft", "irfft").index(name),
        scale=scale,
    )
    return context.fuser.permute(result(context, target, shape, number), back)
