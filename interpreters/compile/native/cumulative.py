"""Cumulative sums, products and extrema: each row of elements follows from the one before it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from func.backends.loops import kernels
from func.backends.loops.kernels import Apply, Buffer, Instruction, Load, LoopNest, NestStage, Register, Running, Shape
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.rules import TranslationContext, native


@native("cumsum", "cumprod", "cummax", "cummin")
def _cumulative(context: TranslationContext) -> ArrayValue:
    x, axis = context.convert(context.args[0], context.out.dtype), context.params["axis"]
    op = context.reduction
    if context.params.get("reverse", False):
        return _reversed(context, running(context, op, _reversed(context, x, axis), axis), axis)
    return running(context, op, x, axis)


def _reversed(context: TranslationContext, x: ArrayValue, axis: int) -> ArrayValue:
    entries = [(length - 1, -1, length) if i == axis else (0, 1, length) for i, length in enumerate(x.shape)]
    return context.fuser.slices(x, entries)


def running(context: TranslationContext, op: str, x: ArrayValue, axis: int) -> ArrayValue:
    """op of all elements up to each along an axis, in NumPy's order."""
    fuser, storage, schedule, shape = context.fuser, context.storage, context.schedule, x.shape
    if shape[axis] == 1:
        return x
    buffer = Buffer(math.prod(shape), x.dtype)
    other_axes = [i for i, length in enumerate(shape) if i != axis and length != 1]
    out = kernels.StridedRef(buffer, 0, kernels.row_major(shape))
    if not other_axes or axis > other_axes[-1]:
        nest = _along_rows(op, storage.ref(x), out, shape, [*other_axes, axis])
    else:
        first = [(0, 1, 1 if i == axis else length) for i, length in enumerate(shape)]
        storage.write(fuser.slices(storage.located(buffer, shape), first), fuser.slices(x, first))
        nest = _across_rows(op, storage.ref(x), out, shape, [axis, *other_axes])
    return storage.result(buffer, shape, schedule.add(nest))


def _ordered(ref: kernels.StridedRef, order: Sequence[int], offset: int = 0) -> kernels.StridedRef:
    return kernels.StridedRef(ref.buffer, ref.offset + offset, tuple([ref.strides[axis] for axis in order]))


def _along_rows(
    op: str, x: kernels.StridedRef, out: kernels.StridedRef, shape: Shape, order: Sequence[int]
) -> LoopNest:
    """Along the last axis, by one register."""
    element, total = Register(out.buffer.dtype), Register(out.buffer.dtype)
    code: list[Instruction] = [
        Load(element, _ordered(x, order)),
        Running(total, op, element),
        kernels.Store(_ordered(out, order), total),
    ]
    return LoopNest(tuple([shape[axis] for axis in order]), len(order) - 1, [NestStage(True, code)])


def _across_rows(
    op: str, x: kernels.StridedRef, out: kernels.StridedRef, shape: Shape, order: Sequence[int]
) -> LoopNest:
    """Along another axis: all rows but the first, by vectors, from the row before."""
    axis = order[0]
    before, element, total = [Register(out.buffer.dtype) for _ in range(3)]
    code: list[Instruction] = [
        Load(before, _ordered(out, order)),
        Load(element, _ordered(x, order, x.strides[axis])),
        Apply(total, op, (before, element)),
        kernels.Store(_ordered(out, order, out.strides[axis]), total),
    ]
    return LoopNest((shape[axis] - 1, *[shape[other] for other in order[1:]]), 1, [NestStage(True, code)])
