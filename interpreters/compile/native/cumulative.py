"""Running sums, products and extrema: every row of elements from the one before it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from func.backends.loops.kernels import (
    Apply,
    Buffer,
    Instruction,
    Load,
    Nest,
    Reg,
    Running,
    Stage,
    Store,
    StridedRef,
    row_major,
)
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import TranslationContext, native

OPS = {"cumsum": "add", "cumprod": "multiply", "cummax": "maximum", "cummin": "minimum"}


@native(*OPS)
def _running(context: TranslationContext) -> Val:
    x, axis = context.convert(context.args[0], context.out.dtype), context.params["axis"]
    if context.params.get("reverse", False):
        return _backwards(
            context, running(context, OPS[context.equation.primitive.name], _backwards(context, x, axis), axis), axis
        )
    return running(context, OPS[context.equation.primitive.name], x, axis)


def _backwards(context: TranslationContext, x: Val, axis: int) -> Val:
    entries = [(length - 1, -1, length) if i == axis else (0, 1, length) for i, length in enumerate(x.shape)]
    return context.fuser.slices(x, entries)


def running(context: TranslationContext, op: str, x: Val, axis: int) -> Val:
    """op of all elements up to each along an axis, one after the other as NumPy has it."""
    fuser, shape = context.fuser, x.shape
    if shape[axis] == 1:
        return x
    buffer = Buffer(math.prod(shape), x.dtype)
    others = [i for i, length in enumerate(shape) if i != axis and length != 1]
    out = StridedRef(buffer, 0, row_major(shape))
    if not others or axis > others[-1]:
        done = fuser.add_item(_along_rows(op, fuser.ref(x), out, shape, [*others, axis]))
    else:
        first = [(0, 1, 1 if i == axis else length) for i, length in enumerate(shape)]
        fuser.write(fuser.slices(fuser.located(buffer, shape), first), fuser.slices(x, first))
        done = fuser.add_item(_across_rows(op, fuser.ref(x), out, shape, [axis, *others]))
    return fuser.result(buffer, shape, done)


def _ordered(of: StridedRef, order: Sequence[int], offset: int = 0) -> StridedRef:
    return StridedRef(of.buffer, of.offset + offset, tuple([of.strides[axis] for axis in order]))


def _along_rows(op: str, x: StridedRef, out: StridedRef, shape: tuple[int, ...], order: Sequence[int]) -> Nest:
    """Along the last axis, by one register."""
    present, made = Reg(out.buffer.dtype), Reg(out.buffer.dtype)
    code: list[Instruction] = [
        Load(present, _ordered(x, order)),
        Running(made, op, present),
        Store(_ordered(out, order), made),
    ]
    return Nest(tuple([shape[axis] for axis in order]), len(order) - 1, [Stage(True, code)])


def _across_rows(op: str, x: StridedRef, out: StridedRef, shape: tuple[int, ...], order: Sequence[int]) -> Nest:
    """Along another axis: all rows but the first, by vectors, from the one before."""
    axis = order[0]
    before, present, made = [Reg(out.buffer.dtype) for _ in range(3)]
    code: list[Instruction] = [
        Load(before, _ordered(out, order)),
        Load(present, _ordered(x, order, x.strides[axis])),
        Apply(made, op, (before, present)),
        Store(_ordered(out, order, out.strides[axis]), made),
    ]
    return Nest((shape[axis] - 1, *[shape[other] for other in order[1:]]), 1, [Stage(True, code)])
