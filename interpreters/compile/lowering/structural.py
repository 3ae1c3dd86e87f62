"""Rows that move data: shapes, basic indices, concatenation, sums."""

from __future__ import annotations

import math

from func.backends.support.arrays import place, place_into
from func.backends.support.windows import windows
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering, support_code, writing_code
from func.interpreters.compile.lowering.literals import dtype_text, index_text, literal, slices_text
from func.interpreters.primitives.structural.shapes import SMALL


@lowering("named", "stop_gradient", "barrier")
def _identity(context: LoweringContext) -> Code:
    return Code("{0}", view=True)


@lowering("broadcast")
def _broadcast(context: LoweringContext) -> Code:
    shape = context.params["shape"]
    if context.device or not shape or math.prod(shape) > SMALL:
        return Code(f"np.broadcast_to({{0}}, {literal(shape)})", view=True)
    plain = f"np.full({literal(shape)}, {{0}}, {dtype_text(context.out.dtype)})"
    if context.out.dtype.kind in "bV":
        return Code(plain)
    return Code("np.positive({0}, {out})", out=True, plain=plain, inplace=context.matching())


@lowering("reshape")
def _reshape(context: LoweringContext) -> Code:
    shape = context.params["shape"]
    inner = ", ".join([str(length) for length in shape]) or "()"
    return Code(f"{context.array(0)}.reshape({inner})", view=True)


@lowering("permute")
def _permute(context: LoweringContext) -> Code:
    order = context.params["order"]
    if order == tuple(range(len(order)))[::-1] and order:
        return Code(f"{context.array(0)}.T", view=True)
    return Code(f"{context.array(0)}.transpose({literal(order)})", view=True)


@lowering("getitem")
def _getitem(context: LoweringContext) -> Code:
    return Code(f"{context.array(0)}[{index_text(context.params['index'])}]", view=True)


@lowering("embed")
def _embed(context: LoweringContext) -> Code:
    index, shape = slices_text(context.params["index"]), literal(context.params["shape"])
    zeros = f"np.zeros({shape}, {dtype_text(context.out.dtype)})"
    return writing_code(place_into, place, index, whole="0", copy=zeros, part="{0}")


@lowering("update")
def _update(context: LoweringContext) -> Code:
    index = slices_text(context.params["index"])
    copy = "{0}.copy()" if context.out.shape else "np.array({0})"
    return writing_code(place_into, place, index, copy=copy)


@lowering("concatenate")
def _concatenate(context: LoweringContext) -> Code:
    parts = f"({context.operands()}{',' if len(context.avals) == 1 else ''})"
    axis = context.params["axis"]
    plain = f"np.concatenate({parts}, {axis})"
    return Code(f"np.concatenate({parts}, {axis}, {{out}})", out=True, plain=plain)


@lowering("cumsum")
def _cumsum(context: LoweringContext) -> Code:
    axis = context.params["axis"]
    if not context.params["reverse"]:
        plain = f"{context.array(0)}.cumsum({axis})"
        return Code(f"{context.array(0)}.cumsum({axis}, None, {{out}})", out=True, plain=plain)
    back = ", ".join([*[":"] * axis, "::-1"])
    return Code(f"{{0}}[{back}].cumsum({axis})[{back}]")


@lowering("cumprod")
def _cumprod(context: LoweringContext) -> Code:
    axis = context.params["axis"]
    return Code(f"{{0}}.cumprod({axis}, None, {{out}})", out=True, plain=f"{{0}}.cumprod({axis})")


def _register_extremum(name: str, ufunc: str) -> None:
    @lowering(name)
    def _running_extremum(context: LoweringContext) -> Code:
        call = f"np.{ufunc}.accumulate({{0}}, {context.params['axis']}"
        return Code(f"{call}, None, {{out}})", out=True, plain=f"{call})")


_register_extremum("cummax", "maximum")
_register_extremum("cummin", "minimum")


@lowering("windows")
def _windows(context: LoweringContext) -> Code:
    code = support_code(windows, context)
    return Code(code.text, view=True, support=code.support)
