"""Loops and branches as native control flow: bodies are translated with fusers of their own, between shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import Branch, Buffer, Check, Item, Loop, Move, StridedRef, While, row_major
from func.backends.loops.values import Val
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.execution import prepared
from func.interpreters.compile.native.rules import TranslationContext, native


def _shared(context: TranslationContext, x: Val) -> Val:
    """A value as the body of a loop reads it: in memory, or a number."""
    if x.root is None:
        return x
    ref = context.fuser.ref(x)
    return context.fuser.located(ref.buffer, x.shape, ref.strides, ref.offset)


def _settled(context: TranslationContext, x: Val) -> Buffer:
    """A copy of a value in memory of its own, which a loop may write to."""
    buffer = Buffer(math.prod(x.shape), x.dtype)
    context.fuser.copied(x, StridedRef(buffer, 0, row_major(x.shape)))
    return buffer


def _body(
    context: TranslationContext, compiled: CompiledCall, inputs: Sequence[Val], targets: Sequence[StridedRef]
) -> list[Item]:
    """The items of a body that writes its outputs to the targets. Where pullbacks inside give NaN, the caller is told,
    who computes all of it again, step by step, with zeros that win."""
    inner = context.translator.inside(prepared(compiled.program), inputs)
    flag = inner.nan_flag() if compiled.has_pullbacks else None
    for x, target in zip(inner.program.outputs, targets, strict=True):
        value = inner.value(x)
        if x in inner.program.inputs or value.root is None or value.dtype != target.buffer.dtype:
            value = inner.fuser.map("convert", [value], target.buffer.dtype)
        inner.fuser.copied(value, target)
    items: list[Item] = inner.fuser.items
    return items if flag is None else [*items, Check(flag)]


def _whole(buffer: Buffer, shape: Sequence[int]) -> StridedRef:
    return StridedRef(buffer, 0, row_major(tuple(shape)))


def _steps(
    context: TranslationContext,
    compiled: CompiledCall,
    inputs: Sequence[Val],
    carries: Sequence[Buffer],
    rows: Sequence[StridedRef],
) -> Any:
    """The items of a body whose first outputs become the carries once all of it has run."""
    shapes = [out.shape for out in compiled.program.outputs[: len(carries)]]
    fresh = [Buffer(one.size, one.dtype) for one in carries]
    refs = [_whole(one, shape) for one, shape in zip(fresh, shapes, strict=True)]
    items = _body(context, compiled, inputs, [*refs, *rows])
    return [*items, *[Move(old, new) for old, new in zip(carries, fresh, strict=True)]]


@native("scan_call")
def _scan(context: TranslationContext) -> list[Val]:
    loop, body = context.params["loop"], context.params["body"]
    consts, carries = context.args[: loop.consts], context.args[loop.consts : loop.consts + loop.carries]
    fixed = [_shared(context, x) for x in consts]
    states = [_settled(context, x) for x in carries]
    slices: list[Buffer] = []
    inputs = [*fixed, *[context.fuser.located(one, x.shape) for one, x in zip(states, carries, strict=True)]]
    for x in context.args[loop.consts + loop.carries :]:
        if x.root is None:
            inputs.append(Val(x.shape[1:], x.dtype, None, (), x.literal))
            continue
        ref = context.fuser.ref(x)
        row = Buffer(0, x.dtype, "slice", base=ref.buffer, start=ref.offset, step=ref.strides[0])
        slices.append(row)
        inputs.append(context.fuser.located(row, x.shape[1:], ref.strides[1:]))
    stacked: list[Buffer] = []
    rows: list[StridedRef] = []
    for aval in context.outs[loop.carries :]:
        whole = Buffer(math.prod(aval.shape), aval.dtype)
        row = Buffer(0, aval.dtype, "slice", base=whole, start=0, step=math.prod(aval.shape[1:]))
        stacked.append(whole)
        slices.append(row)
        rows.append(_whole(row, aval.shape[1:]))
    place = context.fuser.add_item(Loop(loop.length, loop.reverse, [], slices))
    item = context.fuser.items[place]
    assert isinstance(item, Loop)
    item.body = _steps(context, body, inputs, states, rows)
    return [
        context.fuser.result(one, aval.shape, place)
        for one, aval in zip([*states, *stacked], context.outs, strict=True)
    ]


@native("while_call")
def _while(context: TranslationContext) -> list[Val]:
    loop = context.params["loop"]
    tested = [_shared(context, x) for x in context.args[: loop.conditions]]
    fixed = [_shared(context, x) for x in context.args[loop.conditions : loop.conditions + loop.consts]]
    carries = context.args[loop.conditions + loop.consts :]
    states = [_settled(context, x) for x in carries]
    inside = [context.fuser.located(one, x.shape) for one, x in zip(states, carries, strict=True)]
    flag = StridedRef(Buffer(1, np.dtype(bool)), 0, ())
    test = _body(context, context.params["cond"], [*tested, *inside], [flag])
    body = _steps(context, context.params["body"], [*fixed, *inside], states, [])
    place = context.fuser.add_item(While(test, flag, body))
    return [context.fuser.result(one, aval.shape, place) for one, aval in zip(states, context.outs, strict=True)]


@native("cond_call")
def _cond(context: TranslationContext) -> list[Val]:
    index, *args = context.args
    operands = [_shared(context, x) for x in args]
    chosen = context.fuser.ref(index)
    made = [Buffer(math.prod(aval.shape), aval.dtype) for aval in context.outs]
    targets = [_whole(one, aval.shape) for one, aval in zip(made, context.outs, strict=True)]
    branches = [_body(context, branch, operands, targets) for branch in context.params["branches"]]
    place = context.fuser.add_item(Branch(chosen, branches))
    return [context.fuser.result(one, aval.shape, place) for one, aval in zip(made, context.outs, strict=True)]


@native("program_call")
def _call(context: TranslationContext) -> list[Val]:
    compiled = context.params["compiled"]
    inner = context.translator.inlined(prepared(compiled.program), context.args)
    flag = inner.nan_flag() if compiled.has_pullbacks else None
    if flag is not None:
        context.fuser.add_item(Check(flag))
    return [inner.value(x) for x in inner.program.outputs]
