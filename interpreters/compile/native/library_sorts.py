"""Sorting along an axis by NumPy's functions: native code calls them for every row of elements.

A sort works on contiguous rows: the code computes or copies its operand there, with the axis last.
"""

from __future__ import annotations

import math

import numpy as np

from func.backends.loops.kernels import Buffer, DType, Shape, StridedRef, row_major
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.linalg import run
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native

INDEX = np.dtype(np.intp)
KINDS = {None: "quicksort", "quicksort": "quicksort", "mergesort": "stable", "stable": "stable"}


@native("sort")
def _sort(context: TranslationContext) -> ArrayValue:
    (x,), axis = context.args, context.params["axis"]
    kind = _kind(context, "sort", x.dtype)
    out = _rows(x.shape, x.dtype, axis)
    context.storage.copied(x, out)
    number = _run(context, "sort", x, axis, [out], [], kind=kind)
    return context.storage.located(out.buffer, x.shape, out.strides, 0, number)


@native("argsort")
def _argsort(context: TranslationContext) -> ArrayValue:
    (x,), axis = context.args, context.params["axis"]
    kind = _kind(context, "argsort", x.dtype)
    return _order(context, "argsort", x, axis, kind=kind)


@native("inverse_order")
def _inverse_order(context: TranslationContext) -> ArrayValue:
    (order,), axis = context.args, context.params["axis"]
    if order.dtype.kind not in "iu":
        raise NotNative(f"an order of {order.dtype}")
    return _order(context, "inverse_order", context.convert(order, INDEX), axis)


def _kind(context: TranslationContext, function: str, dtype: DType) -> str:
    """The kind of sort, by the name in NumPy's function."""
    # imported here, since a first call without a sort needs no table of routines
    from func.backends.llvm.linalg import sorts

    kind = KINDS.get(context.params["kind"])
    if kind is None or not sorts.is_available(function, dtype, kind):
        raise NotNative(f"{function} of {dtype} by {context.params['kind']}")
    return kind


def _order(context: TranslationContext, name: str, x: ArrayValue, axis: int, **params: str) -> ArrayValue:
    """The indices that a routine computes for rows of elements."""
    ref = context.storage.ref(x)
    if ref.strides[axis] != 1 and x.shape[axis] > 1:
        ref = _rows(x.shape, x.dtype, axis)
        context.storage.copied(x, ref)
    out = _rows(x.shape, INDEX, axis)
    number = _run(context, name, x, axis, [out], [ref], **params)
    return context.storage.located(out.buffer, x.shape, out.strides, 0, number)


def _rows(shape: Shape, dtype: DType, axis: int) -> StridedRef:
    """New memory with the axis last."""
    strides = list(row_major((*shape[:axis], *shape[axis + 1 :], shape[axis])))
    strides.insert(axis, strides.pop())
    return StridedRef(Buffer(math.prod(shape), dtype), 0, tuple(strides))


def _run(
    context: TranslationContext,
    name: str,
    x: ArrayValue,
    axis: int,
    outs: list[StridedRef],
    args: list[StridedRef],
    **params: str,
) -> int:
    """Add the call of a routine for every row."""
    batch = (*x.shape[:axis], *x.shape[axis + 1 :])
    last_outs, last_args = ([_axis_last(ref, axis) for ref in refs] for refs in (outs, args))
    return run(context, name, x.dtype, batch, last_outs, last_args, length=x.shape[axis], **params)


def _axis_last(ref: StridedRef, axis: int) -> StridedRef:
    strides = list(ref.strides)
    strides.append(strides.pop(axis))
    return StridedRef(ref.buffer, ref.offset, tuple(strides))
