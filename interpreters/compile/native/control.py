"""Loops and branches as native control flow: another fuser translates a body, between memory that both use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import (
    Branch,
    Buffer,
    ConditionalLoop,
    Copy,
    CountedLoop,
    FlagCheck,
    Item,
    StridedRef,
    row_major,
)
from func.backends.loops.value_storage import ValueStorage
from func.backends.loops.values import ArrayValue, uniform
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.program.program import Equation, Program, Var


def _in_memory(storage: ValueStorage, x: ArrayValue) -> ArrayValue:
    """A value as the body of a loop reads it: in memory, or a number."""
    if x.root is None:
        return x
    ref = storage.ref(x)
    return storage.located(ref.buffer, x.shape, ref.strides, ref.offset)


def _mutable_copy(context: TranslationContext, x: ArrayValue) -> Buffer:
    """A copy of a value that a loop may write to."""
    buffer = Buffer(math.prod(x.shape), x.dtype)
    context.storage.copied(x, _whole(buffer, x.shape))
    return buffer


def _whole(buffer: Buffer, shape: Sequence[int]) -> StridedRef:
    return StridedRef(buffer, 0, row_major(tuple(shape)))


def _results(context: TranslationContext, buffers: Sequence[Buffer], number: int) -> list[ArrayValue]:
    """The outputs of the equation, which an item has written to buffers."""
    return [
        context.storage.result(buffer, aval.shape, number) for buffer, aval in zip(buffers, context.outs, strict=True)
    ]


def _body(
    context: TranslationContext, compiled: CompiledCall, inputs: Sequence[ArrayValue], targets: Sequence[StridedRef]
) -> list[Item]:
    """The items of a body that writes its outputs to the targets."""
    return _items(context, compiled, prepare_program(compiled.program), inputs, targets)


def _items(
    context: TranslationContext,
    compiled: CompiledCall,
    program: Program,
    inputs: Sequence[ArrayValue],
    targets: Sequence[StridedRef],
) -> list[Item]:
    """The items of a program that writes the outputs of a call to the targets. If pullbacks inside give NaN, the caller
    computes all of it again by NaN-safe rules."""
    inner = context.translator.inside(program, inputs)
    flag = inner.nan_flag() if compiled.has_pullbacks else None
    for x, target in zip(inner.program.outputs, targets, strict=True):
        value = inner.value(x)
        if x in inner.program.inputs or value.root is None or value.dtype != target.buffer.dtype:
            value = inner.fuser.map("convert", [value], target.buffer.dtype)
        inner.fuser.storage.copied(value, target)
    items: list[Item] = inner.fuser.schedule.items
    return items if flag is None else [*items, FlagCheck(flag)]


def _step(
    context: TranslationContext,
    compiled: CompiledCall,
    program: Program,
    inputs: Sequence[ArrayValue],
    carries: Sequence[Buffer],
    rows: Sequence[StridedRef],
) -> list[Item]:
    """The items of a program whose first outputs become the carries once all of it has run."""
    shapes = [out.shape for out in compiled.program.outputs[: len(carries)]]
    fresh = [Buffer(carry.size, carry.dtype) for carry in carries]
    refs = [_whole(buffer, shape) for buffer, shape in zip(fresh, shapes, strict=True)]
    items = _items(context, compiled, program, inputs, [*refs, *rows])
    return [*items, *[Copy(carry, buffer) for carry, buffer in zip(carries, fresh, strict=True)]]


def _slice_of(buffer: Buffer, start: int, step: int) -> Buffer:
    """Memory that moves over a buffer with the steps of a loop."""
    return Buffer(0, buffer.dtype, "slice", base=buffer, start=start, step=step)


@native("scan_call")
def _scan(context: TranslationContext) -> list[ArrayValue]:
    loop, storage = context.params["loop"], context.storage
    consts, carries = context.args[: loop.consts], context.args[loop.consts : loop.consts + loop.carries]
    inputs = [_in_memory(context.storage, x) for x in consts]
    states = [_mutable_copy(context, x) for x in carries]
    inputs += [storage.located(state, x.shape) for state, x in zip(states, carries, strict=True)]
    slices: list[Buffer] = []
    for x in context.args[loop.consts + loop.carries :]:
        if x.root is None:
            inputs.append(uniform(x.number, x.dtype, x.shape[1:]))
            continue
        ref = storage.ref(x)
        slices.append(_slice_of(ref.buffer, ref.offset, ref.strides[0]))
        inputs.append(storage.located(slices[-1], x.shape[1:], ref.strides[1:]))
    stacked: list[Buffer] = []
    rows: list[StridedRef] = []
    for aval in context.outs[loop.carries :]:
        stacked.append(Buffer(math.prod(aval.shape), aval.dtype))
        slices.append(_slice_of(stacked[-1], 0, math.prod(aval.shape[1:])))
        rows.append(_whole(slices[-1], aval.shape[1:]))
    compiled = context.params["body"]
    program = prepare_program(compiled.program)
    before, program = _ahead(program, range(loop.consts, loop.consts + loop.carries))
    ahead: list[Item] = []
    if before is not None:
        inner = context.translator.inside(before, inputs)
        inputs += [_in_memory(inner.fuser.storage, inner.value(x)) for x in before.outputs]
        ahead = inner.fuser.schedule.items
    body = _step(context, compiled, program, inputs, states, rows)
    number = context.schedule.add(CountedLoop(loop.length, loop.reverse, body, slices, ahead))
    return _results(context, [*states, *stacked], number)


LOOPS = ("scan_call", "while_call")


def _ahead(program: Program, carries: range) -> tuple[Program | None, Program]:
    """The body of a loop in two programs: the loops inside it that do not need the carries, and the rest.

    The second one takes the outputs of the first as further inputs. There is no first one if either part is empty."""
    depends = {program.inputs[place] for place in carries}
    needed: set[Var] = set()
    has_others = False
    for equation in program.equations:
        if not depends.isdisjoint(equation.inputs):
            depends.update(equation.outputs)
            has_others = has_others or equation.primitive.name in LOOPS
        elif equation.primitive.name in LOOPS:
            needed.update(equation.outputs)
    if not needed or not has_others:
        return None, program
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.outputs):
            needed.update([x for x in equation.inputs if type(x) is Var])
    first = [equation for equation in program.equations if not needed.isdisjoint(equation.outputs)]
    rest = [equation for equation in program.equations if needed.isdisjoint(equation.outputs)]
    used = {x for x in (*program.outputs, *[x for equation in rest for x in equation.inputs]) if type(x) is Var}
    passed = [x for equation in first for x in equation.outputs if x in used]
    return (
        Program(program.inputs, first, passed, _used_constants(program, first)),
        Program([*program.inputs, *passed], rest, program.outputs, _used_constants(program, rest)),
    )


def _used_constants(program: Program, equations: Sequence[Equation]) -> dict[Var, Any]:
    """The constants that some equations of a program or its outputs use."""
    used = {x for equation in equations for x in equation.inputs if type(x) is Var}.union(
        [x for x in program.outputs if type(x) is Var]
    )
    return {var: value for var, value in program.constants.items() if var in used}


@native("while_call")
def _while(context: TranslationContext) -> list[ArrayValue]:
    loop = context.params["loop"]
    of_test = [_in_memory(context.storage, x) for x in context.args[: loop.conditions]]
    of_body = [_in_memory(context.storage, x) for x in context.args[loop.conditions : loop.conditions + loop.consts]]
    carries = context.args[loop.conditions + loop.consts :]
    states = [_mutable_copy(context, x) for x in carries]
    inside = [context.storage.located(state, x.shape) for state, x in zip(states, carries, strict=True)]
    flag = StridedRef(Buffer(1, np.dtype(bool)), 0, ())
    test = _body(context, context.params["cond"], [*of_test, *inside], [flag])
    compiled = context.params["body"]
    body = _step(context, compiled, prepare_program(compiled.program), [*of_body, *inside], states, [])
    return _results(context, states, context.schedule.add(ConditionalLoop(test, flag, body)))


@native("cond_call")
def _cond(context: TranslationContext) -> list[ArrayValue]:
    index, *args = context.args
    operands = [_in_memory(context.storage, x) for x in args]
    chosen = context.storage.ref(index)
    buffers = [Buffer(math.prod(aval.shape), aval.dtype) for aval in context.outs]
    targets = [_whole(buffer, aval.shape) for buffer, aval in zip(buffers, context.outs, strict=True)]
    branches = [_body(context, branch, operands, targets) for branch in context.params["branches"]]
    return _results(context, buffers, context.schedule.add(Branch(chosen, branches)))


@native("program_call")
def _call(context: TranslationContext) -> list[ArrayValue]:
    compiled = context.params["compiled"]
    inner = context.translator.inlined(prepare_program(compiled.program), context.args)
    flag = inner.nan_flag() if compiled.has_pullbacks else None
    if flag is not None:
        context.schedule.add(FlagCheck(flag))
    return [inner.value(x) for x in inner.program.outputs]
