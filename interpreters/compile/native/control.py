"""Loops and branches as native control flow: bodies are translated with fusers of their own, between shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import Branch, Buffer, Check, Item, Loop, Move, Spot, While, row_major
from func.backends.loops.values import Val
from func.interpreters.calls.compiled_call import Staged
from func.interpreters.compile.execution import prepared
from func.interpreters.compile.native.rules import Site, native


def _shared(site: Site, x: Val) -> Val:
    """A value as the body of a loop reads it: in memory, or a number."""
    if x.root is None:
        return x
    spot = site.fuser.spot(x)
    return site.fuser.located(spot.buffer, x.shape, spot.strides, spot.offset)


def _settled(site: Site, x: Val) -> Buffer:
    """A copy of a value in memory of its own, which a loop may write to."""
    buffer = Buffer(math.prod(x.shape), x.dtype)
    site.fuser.copied(x, Spot(buffer, 0, row_major(x.shape)))
    return buffer


def _body(site: Site, staged: Staged, inputs: Sequence[Val], targets: Sequence[Spot]) -> list[Item]:
    """The items of a body that writes its outputs to the targets. Where pullbacks inside give NaN, the caller is told,
    who computes all of it again, step by step, with zeros that win."""
    inner = site.translator.inside(prepared(staged.program), inputs)
    flag = inner.nan_flag() if staged.pulls else None
    for x, target in zip(inner.program.outputs, targets, strict=True):
        value = inner.value(x)
        if x in inner.program.inputs or value.root is None or value.dtype != target.buffer.dtype:
            value = inner.fuser.map("convert", [value], target.buffer.dtype)
        inner.fuser.copied(value, target)
    items: list[Item] = inner.fuser.items
    return items if flag is None else [*items, Check(flag)]


def _whole(buffer: Buffer, shape: Sequence[int]) -> Spot:
    return Spot(buffer, 0, row_major(tuple(shape)))


def _steps(site: Site, staged: Staged, inputs: Sequence[Val], carries: Sequence[Buffer], rows: Sequence[Spot]) -> Any:
    """The items of a body whose first outputs become the carries once all of it has run."""
    shapes = [out.shape for out in staged.program.outputs[: len(carries)]]
    fresh = [Buffer(one.size, one.dtype) for one in carries]
    spots = [_whole(one, shape) for one, shape in zip(fresh, shapes, strict=True)]
    items = _body(site, staged, inputs, [*spots, *rows])
    return [*items, *[Move(old, new) for old, new in zip(carries, fresh, strict=True)]]


@native("scan_call")
def _scan(site: Site) -> list[Val]:
    loop, body = site.params["loop"], site.params["body"]
    consts, carries = site.args[: loop.consts], site.args[loop.consts : loop.consts + loop.carries]
    fixed = [_shared(site, x) for x in consts]
    states = [_settled(site, x) for x in carries]
    slices: list[Buffer] = []
    inputs = [*fixed, *[site.fuser.located(one, x.shape) for one, x in zip(states, carries, strict=True)]]
    for x in site.args[loop.consts + loop.carries :]:
        if x.root is None:
            inputs.append(Val(x.shape[1:], x.dtype, None, (), x.literal))
            continue
        spot = site.fuser.spot(x)
        row = Buffer(0, x.dtype, "slice", base=spot.buffer, start=spot.offset, step=spot.strides[0])
        slices.append(row)
        inputs.append(site.fuser.located(row, x.shape[1:], spot.strides[1:]))
    stacked: list[Buffer] = []
    rows: list[Spot] = []
    for aval in site.outs[loop.carries :]:
        whole = Buffer(math.prod(aval.shape), aval.dtype)
        row = Buffer(0, aval.dtype, "slice", base=whole, start=0, step=math.prod(aval.shape[1:]))
        stacked.append(whole)
        slices.append(row)
        rows.append(_whole(row, aval.shape[1:]))
    place = site.fuser.add_item(Loop(loop.length, loop.reverse, [], slices))
    item = site.fuser.items[place]
    assert isinstance(item, Loop)
    item.body = _steps(site, body, inputs, states, rows)
    return [site.fuser.result(one, aval.shape, place) for one, aval in zip([*states, *stacked], site.outs, strict=True)]


@native("while_call")
def _while(site: Site) -> list[Val]:
    loop = site.params["loop"]
    tested = [_shared(site, x) for x in site.args[: loop.conditions]]
    fixed = [_shared(site, x) for x in site.args[loop.conditions : loop.conditions + loop.consts]]
    carries = site.args[loop.conditions + loop.consts :]
    states = [_settled(site, x) for x in carries]
    inside = [site.fuser.located(one, x.shape) for one, x in zip(states, carries, strict=True)]
    flag = Spot(Buffer(1, np.dtype(bool)), 0, ())
    test = _body(site, site.params["cond"], [*tested, *inside], [flag])
    body = _steps(site, site.params["body"], [*fixed, *inside], states, [])
    place = site.fuser.add_item(While(test, flag, body))
    return [site.fuser.result(one, aval.shape, place) for one, aval in zip(states, site.outs, strict=True)]


@native("cond_call")
def _cond(site: Site) -> list[Val]:
    index, *args = site.args
    operands = [_shared(site, x) for x in args]
    chosen = site.fuser.spot(index)
    made = [Buffer(math.prod(aval.shape), aval.dtype) for aval in site.outs]
    targets = [_whole(one, aval.shape) for one, aval in zip(made, site.outs, strict=True)]
    branches = [_body(site, branch, operands, targets) for branch in site.params["branches"]]
    place = site.fuser.add_item(Branch(chosen, branches))
    return [site.fuser.result(one, aval.shape, place) for one, aval in zip(made, site.outs, strict=True)]


@native("program_call")
def _call(site: Site) -> list[Val]:
    staged = site.params["staged"]
    inner = site.translator.inlined(prepared(staged.program), site.args)
    flag = inner.nan_flag() if staged.pulls else None
    if flag is not None:
        site.fuser.add_item(Check(flag))
    return [inner.value(x) for x in inner.program.outputs]
