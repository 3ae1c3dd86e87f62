"""Contractions: products element by element, or matrices between the axes that play the same part."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from func.backends.loops.kernels import Buffer, Dot, DType, StridedRef, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.reductions import reduced
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.contraction import Spec

STREAMED = 1 << 16
"""Elements of an array from which on reading it is what its product with a vector costs."""
WIDE: dict[DType, DType] = {np.dtype(bool): np.dtype(np.int64), np.dtype(np.float16): np.dtype(np.float32)}
"""In what the products of small types are summed."""


@native("contract")
def _contract(context: TranslationContext) -> Val:
    spec = context.params["spec"]
    dtype = np.result_type(context.avals[0].dtype, context.avals[1].dtype)
    x, y = [context.convert(one, dtype) for one in context.args]
    summed = [label for label in spec.x if label in spec.y and label not in spec.out]
    if not summed:
        x, y = _aligned(context, x, spec.x, spec.out), _aligned(context, y, spec.y, spec.out)
        return context.convert(context.map("multiply", x, y), context.out.dtype)
    if 0 in (*x.shape, *y.shape):
        return context.fuser.broadcast(context.number(0, context.out.dtype), context.out.shape)
    return context.convert(sums_of_products(context, x, y, spec), context.out.dtype)


def sums_of_products(
    context: TranslationContext, x: Val, y: Val, spec: Spec, seen: Callable[[Val], Val] | None = None
) -> Val:
    """Sums of the products of two arrays of one dtype: of booleans they are counts, half precision is summed in single
    precision, complex numbers are multiplied part by part. `seen` makes the first operand out of x, or of its parts."""
    see = seen or (lambda one: one)
    if x.dtype.kind != "c":
        wide = WIDE.get(x.dtype, x.dtype)
        return _product(context, see(context.convert(x, wide)), context.convert(y, wide), spec)
    part = np.dtype(f"f{x.dtype.itemsize // 2}")
    re, im = [see(context.fuser.map(name, [x], part)) for name in ("real", "imag")]
    other_re, other_im = [context.fuser.map(name, [y], part) for name in ("real", "imag")]

    def product(one: Val, other: Val) -> Val:
        return _product(context, one, other, spec)

    real = context.map("subtract", product(re, other_re), product(im, other_im))
    imag = context.map("add", product(re, other_im), product(im, other_re))
    return context.map("complex", real, imag, dtype=x.dtype)


def _aligned(context: TranslationContext, x: Val, labels: Sequence[int], out: Sequence[int]) -> Val:
    """An operand with its axes in the order of the output, and axes of length one for the others."""
    moved = context.fuser.permute(x, [labels.index(label) for label in out if label in labels])
    return context.fuser.slices(moved, [(0, 1, moved.shape[i]) if i >= 0 else None for i in _places(labels, out)])


def _places(labels: Sequence[int], out: Sequence[int]) -> list[int]:
    found = []
    count = 0
    for label in out:
        found.append(count if label in labels else -1)
        count += label in labels
    return found


def _streamed(
    context: TranslationContext, x: Val, y: Val, labels: Sequence[int], others: Sequence[int], out: Sequence[int]
) -> Val:
    """The product of a large array and one with some of its axes, as a loop over the large one: other loops over it
    join in, so that it is read once."""
    order = list(range(len(labels)))
    if x.root is not None and x.root.ref is not None:
        strides = context.fuser.ref(x).strides
        order.sort(key=lambda axis: -abs(strides[axis]))
    names = [labels[axis] for axis in order]
    products = context.map("multiply", context.fuser.permute(x, order), _aligned(context, y, others, names))
    total = reduced(context, "add", products, [place for place, label in enumerate(names) if label not in out])
    left = [label for label in names if label in out]
    return context.fuser.permute(total, [left.index(label) for label in out])


def _product(context: TranslationContext, x: Val, y: Val, spec: Spec) -> Val:
    """A batch of matrix products; the axes of each part are run together where they lie so, else copied together."""
    if set(spec.y) <= set(spec.x) and math.prod(x.shape) >= STREAMED:
        return _streamed(context, x, y, spec.x, spec.y, spec.out)
    if set(spec.x) <= set(spec.y) and math.prod(y.shape) >= STREAMED:
        return _streamed(context, y, x, spec.y, spec.x, spec.out)
    fuser = context.fuser
    summed = [label for label in spec.x if label in spec.y and label not in spec.out]
    sizes = dict(zip((*spec.x, *spec.y), (*x.shape, *y.shape), strict=True))
    batch = [label for label in spec.out if label in spec.x and label in spec.y]
    rows = [label for label in spec.out if label in spec.x and label not in spec.y]
    columns = [label for label in spec.out if label in spec.y and label not in spec.x]

    def count(labels: Sequence[int]) -> int:
        return math.prod([sizes[label] for label in labels])

    left = _matrices(context, x, spec.x, batch, rows, summed, sizes)
    right = _matrices(context, y, spec.y, batch, summed, columns, sizes)
    made = [*batch, *rows, *columns]
    lengths = tuple([sizes[label] for label in batch])
    flat = (*lengths, count(rows), count(columns))
    turned = columns and rows and made != list(spec.out) and [*batch, *columns, *rows] == list(spec.out)
    if turned:
        buffer = Buffer(math.prod(flat), x.dtype)
        strides = (*row_major((*lengths, flat[-1], flat[-2]))[:-2], 1, flat[-2])
        made = [*batch, *columns, *rows]
    else:
        buffer = Buffer(math.prod(flat), x.dtype)
        strides = row_major(flat)
    item = Dot(StridedRef(buffer, 0, strides), left, right, lengths, (flat[-2], count(summed), flat[-1]))
    place = fuser.add_item(item)
    out = fuser.result(buffer, tuple([sizes[label] for label in made]), place)
    return fuser.permute(out, [made.index(label) for label in spec.out])


def _matrices(
    context: TranslationContext,
    x: Val,
    labels: Sequence[int],
    batch: list[int],
    first: list[int],
    second: list[int],
    sizes: dict[int, int],
) -> StridedRef:
    """Where an operand's matrices lie: strides of the batch axes, of all first axes as one and of all second ones."""
    fuser = context.fuser
    order = [labels.index(label) for label in (*batch, *first, *second)]
    moved = fuser.permute(x, order)
    lengths = [sizes[label] for label in batch]
    shape = (*lengths, math.prod([sizes[label] for label in first]), math.prod([sizes[label] for label in second]))
    ref = fuser.ref(fuser.reshape(moved, shape))
    if math.prod(shape[-2:]) > 64 and not _readable(ref.strides[-2:], shape[-2:]):
        ref = fuser.ref(fuser.copied(fuser.reshape(moved, shape)))
    return ref


def _readable(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether one of a matrix's axes lies element by element."""
    return any([stride == 1 or length == 1 for stride, length in zip(strides, shape, strict=True)])
