"""Contractions: elementwise products, and products of matrices over axes with the same labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from func.backends.loops.kernels import Buffer, Dot, DType, StridedRef, row_major
from func.backends.loops.values import ArrayValue
from func.backends.number_types import is_narrow
from func.interpreters.compile.native.reductions import reduced
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.contraction import Spec

STREAMED = 1 << 16
"""From this many elements on, an array's product with a vector costs as much as reading the array."""
SMALL = 64
"""The largest matrix, in elements, whose layout does not matter for products."""
WIDE_ROW = 8
"""From this many elements of a row on, whole rows are added."""


def wide_of(dtype: DType) -> DType:
    """The dtype for sums of products of small types."""
    if is_narrow(dtype):
        return np.dtype(np.float32)
    return np.dtype(np.int64) if dtype.kind == "b" else dtype


@native("contract")
def _contract(context: TranslationContext) -> ArrayValue:
    spec = context.params["spec"]
    dtype = np.result_type(context.avals[0].dtype, context.avals[1].dtype)
    x, y = [context.convert(operand, dtype) for operand in context.args]
    if not _summed(spec):
        x, y = _aligned(context, x, spec.x, spec.out), _aligned(context, y, spec.y, spec.out)
        return context.convert(context.map("multiply", x, y), context.out.dtype)
    if 0 in (*x.shape, *y.shape):
        return context.fuser.broadcast(context.number(0, context.out.dtype), context.out.shape)
    return context.convert(sums_of_products(context, x, y, spec), context.out.dtype)


def _summed(spec: Spec) -> list[int]:
    """The labels over which a contraction sums."""
    return [label for label in spec.x if label in spec.y and label not in spec.out]


def sums_of_products(
    context: TranslationContext,
    x: ArrayValue,
    y: ArrayValue,
    spec: Spec,
    view: Callable[[ArrayValue], ArrayValue] | None = None,
) -> ArrayValue:
    """Sums of the products of two arrays of one dtype.

    For booleans they are counts; half precision and bfloat16 are summed in single precision, complex numbers multiplied
    part by part. `view` makes the first operand from x, or from its parts."""

    def product(x: ArrayValue, y: ArrayValue) -> ArrayValue:
        return _product(context, x if view is None else view(x), y, spec)

    if x.dtype.kind != "c":
        wide = wide_of(x.dtype)
        return product(context.convert(x, wide), context.convert(y, wide))
    part = np.dtype(f"f{x.dtype.itemsize // 2}")
    (x_re, x_im), (y_re, y_im) = [
        [context.map(name, operand, dtype=part) for name in ("real", "imag")] for operand in (x, y)
    ]
    real = context.map("subtract", product(x_re, y_re), product(x_im, y_im))
    imag = context.map("add", product(x_re, y_im), product(x_im, y_re))
    return context.map("complex", real, imag, dtype=x.dtype)


def _aligned(context: TranslationContext, x: ArrayValue, labels: Sequence[int], out: Sequence[int]) -> ArrayValue:
    """An operand with its axes in the order of the output, and axes of length one for the others."""
    ordered = context.fuser.permute(x, [labels.index(label) for label in out if label in labels])
    lengths = iter(ordered.shape)
    return context.fuser.slices(ordered, [(0, 1, next(lengths)) if label in labels else None for label in out])


def _streamed(
    context: TranslationContext,
    x: ArrayValue,
    y: ArrayValue,
    x_labels: Sequence[int],
    y_labels: Sequence[int],
    out: Sequence[int],
) -> ArrayValue:
    """The product of a large array and one with some of its axes, as a loop over the large one.

    Other loops over the large array join in, so that it is read once."""
    order = list(range(len(x_labels)))
    if x.root is not None and x.root.ref is not None:
        strides = context.storage.ref(x).strides
        order.sort(key=lambda axis: -abs(strides[axis]))
    labels = [x_labels[axis] for axis in order]
    products = context.map("multiply", context.fuser.permute(x, order), _aligned(context, y, y_labels, labels))
    total = reduced(context, "add", products, [axis for axis, label in enumerate(labels) if label not in out])
    left = [label for label in labels if label in out]
    return context.fuser.permute(total, [left.index(label) for label in out])


def _product(context: TranslationContext, x: ArrayValue, y: ArrayValue, spec: Spec) -> ArrayValue:
    """A batch of matrix products. Axes of one kind become one axis: a view if their strides allow it, else a copy."""
    if set(spec.y) <= set(spec.x) and math.prod(x.shape) >= STREAMED:
        return _streamed(context, x, y, spec.x, spec.y, spec.out)
    if set(spec.x) <= set(spec.y) and math.prod(y.shape) >= STREAMED:
        return _streamed(context, y, x, spec.y, spec.x, spec.out)
    if _sums_rows(context, x, y, spec):
        return _streamed(context, x, y, spec.x, spec.y, spec.out)
    summed = _summed(spec)
    sizes = dict(zip((*spec.x, *spec.y), (*x.shape, *y.shape), strict=True))
    batch = [label for label in spec.out if label in spec.x and label in spec.y]
    rows = [label for label in spec.out if label in spec.x and label not in spec.y]
    columns = [label for label in spec.out if label in spec.y and label not in spec.x]
    left = _matrices(context, x, spec.x, batch, rows, summed, sizes)
    right = _matrices(context, y, spec.y, batch, summed, columns, sizes)
    lengths = tuple([sizes[label] for label in batch])
    m, k, n = [math.prod([sizes[label] for label in labels]) for labels in (rows, summed, columns)]
    buffer = Buffer(math.prod(lengths) * m * n, x.dtype)
    labels = [*batch, *rows, *columns]
    strides = row_major((*lengths, m, n))
    is_transposed = columns and rows and labels != list(spec.out) and [*batch, *columns, *rows] == list(spec.out)
    if is_transposed:
        labels = [*batch, *columns, *rows]
        strides = (*row_major((*lengths, n, m))[:-2], 1, m)
    number = context.schedule.add(Dot(StridedRef(buffer, 0, strides), left, right, lengths, (m, k, n)))
    out = context.storage.result(buffer, tuple([sizes[label] for label in labels]), number)
    return context.fuser.permute(out, [labels.index(label) for label in spec.out])


def _sums_rows(context: TranslationContext, x: ArrayValue, y: ArrayValue, spec: Spec) -> bool:
    """Whether arrays of one layout are multiplied and summed over their slowest axes.

    Then a loop over rows adds whole rows, where products of vectors would read with strides."""
    if list(spec.x) != list(spec.y) or not spec.out or x.shape[-1] < WIDE_ROW or spec.x[-1] not in spec.out:
        return False
    return all([v.root is not None and context.storage.ref(v).strides[-1] == 1 for v in (x, y)])


def _matrices(
    context: TranslationContext,
    x: ArrayValue,
    labels: Sequence[int],
    batch: list[int],
    first: list[int],
    second: list[int],
    sizes: dict[int, int],
) -> StridedRef:
    """The layout of an operand's matrices: strides of the batch axes, of all first axes as one and of all second
    ones."""
    fuser, storage = context.fuser, context.storage
    ordered = fuser.permute(x, [labels.index(label) for label in (*batch, *first, *second)])
    lengths = [sizes[label] for label in batch]
    shape = (*lengths, math.prod([sizes[label] for label in first]), math.prod([sizes[label] for label in second]))
    ref = storage.ref(fuser.reshape(ordered, shape))
    if math.prod(shape[-2:]) > SMALL and not _is_contiguous(ref.strides[-2:], shape[-2:]):
        ref = storage.ref(storage.copied(fuser.reshape(ordered, shape)))
    return ref


def _is_contiguous(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether one of a matrix's axes is contiguous."""
    return any([stride == 1 or length == 1 for stride, length in zip(strides, shape, strict=True)])
