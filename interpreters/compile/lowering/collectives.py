"""Rows that reach across lanes, of values that do not differ from lane to lane: every lane has a copy."""

from __future__ import annotations

from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import dtype_text, literal


@lowering("psum")
def _psum(context: LoweringContext) -> Code:
    dtype = dtype_text(context.out.dtype)
    return Code(f"np.multiply({context.array(0)}.astype({dtype}), {dtype}({context.params['size']}))")


@lowering("psum_scatter")
def _psum_scatter(context: LoweringContext) -> Code:
    dtype = dtype_text(context.out.dtype)
    return Code(f"np.multiply({context.array(0)}[{{1}}].astype({dtype}), {dtype}({context.params['size']}))")


@lowering("all_gather")
def _all_gather(context: LoweringContext) -> Code:
    return Code(f"np.broadcast_to({{0}}, {literal(context.out.shape)})", view=True)


@lowering("pmax", "pmin")
def _extremum(context: LoweringContext) -> Code:
    return Code("{0}", view=True)
