"""Rows that move data: shapes, basic indices, concatenation, sums."""

from __future__ import annotations

import math

from func.backends.support.arrays import place, place_into
from func.backends.support.windows import windows
from func.interpreters.compile.lowering.code import Code, Site, lowering, support_code, writing_code
from func.interpreters.compile.lowering.literals import dtype_text, index_text, literal, slices_text
from func.interpreters.primitives.structural.shapes import SMALL


@lowering("named", "stop_gradient", "barrier")
def _identity(site: Site) -> Code:
    return Code("{0}", view=True)


@lowering("broadcast")
def _broadcast(site: Site) -> Code:
    shape = site.params["shape"]
    if site.device or not shape or math.prod(shape) > SMALL:
        return Code(f"np.broadcast_to({{0}}, {literal(shape)})", view=True)
    plain = f"np.full({literal(shape)}, {{0}}, {dtype_text(site.out.dtype)})"
    if site.out.dtype.kind in "bV":
        return Code(plain)
    return Code("np.positive({0}, {out})", out=True, plain=plain, inplace=site.matching())


@lowering("reshape")
def _reshape(site: Site) -> Code:
    shape = site.params["shape"]
    inner = ", ".join([str(length) for length in shape]) or "()"
    return Code(f"{site.array(0)}.reshape({inner})", view=True)


@lowering("permute")
def _permute(site: Site) -> Code:
    order = site.params["order"]
    if order == tuple(range(len(order)))[::-1] and order:
        return Code(f"{site.array(0)}.T", view=True)
    return Code(f"{site.array(0)}.transpose({literal(order)})", view=True)


@lowering("getitem")
def _getitem(site: Site) -> Code:
    return Code(f"{site.array(0)}[{index_text(site.params['index'])}]", view=True)


@lowering("embed")
def _embed(site: Site) -> Code:
    index, shape = slices_text(site.params["index"]), literal(site.params["shape"])
    zeros = f"np.zeros({shape}, {dtype_text(site.out.dtype)})"
    return writing_code(place_into, place, index, whole="0", copy=zeros, part="{0}")


@lowering("update")
def _update(site: Site) -> Code:
    index = slices_text(site.params["index"])
    copy = "{0}.copy()" if site.out.shape else "np.array({0})"
    return writing_code(place_into, place, index, copy=copy)


@lowering("concatenate")
def _concatenate(site: Site) -> Code:
    parts = f"({site.operands()}{',' if len(site.avals) == 1 else ''})"
    axis = site.params["axis"]
    plain = f"np.concatenate({parts}, {axis})"
    return Code(f"np.concatenate({parts}, {axis}, {{out}})", out=True, plain=plain)


@lowering("cumsum")
def _cumsum(site: Site) -> Code:
    axis = site.params["axis"]
    if not site.params["reverse"]:
        plain = f"{site.array(0)}.cumsum({axis})"
        return Code(f"{site.array(0)}.cumsum({axis}, None, {{out}})", out=True, plain=plain)
    back = ", ".join([*[":"] * axis, "::-1"])
    return Code(f"{{0}}[{back}].cumsum({axis})[{back}]")


@lowering("cumprod")
def _cumprod(site: Site) -> Code:
    axis = site.params["axis"]
    return Code(f"{{0}}.cumprod({axis}, None, {{out}})", out=True, plain=f"{{0}}.cumprod({axis})")


def _register_extremum(name: str, ufunc: str) -> None:
    @lowering(name)
    def _running_extremum(site: Site) -> Code:
        call = f"np.{ufunc}.accumulate({{0}}, {site.params['axis']}"
        return Code(f"{call}, None, {{out}})", out=True, plain=f"{call})")


_register_extremum("cummax", "maximum")
_register_extremum("cummin", "minimum")


@lowering("windows")
def _windows(site: Site) -> Code:
    code = support_code(windows, site)
    return Code(code.text, view=True, support=code.support)
