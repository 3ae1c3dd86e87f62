"""Rows that reach across lanes, of values that do not differ from lane to lane: every lane has a copy."""

from __future__ import annotations

from func.interpreters.compile.lowering.code import Code, Site, lowering
from func.interpreters.compile.lowering.literals import dtype_text, literal


@lowering("psum")
def _psum(site: Site) -> Code:
    dtype = dtype_text(site.out.dtype)
    return Code(f"np.multiply({site.array(0)}.astype({dtype}), {dtype}({site.params['size']}))")


@lowering("psum_scatter")
def _psum_scatter(site: Site) -> Code:
    dtype = dtype_text(site.out.dtype)
    return Code(f"np.multiply({site.array(0)}[{{1}}].astype({dtype}), {dtype}({site.params['size']}))")


@lowering("all_gather")
def _all_gather(site: Site) -> Code:
    return Code(f"np.broadcast_to({{0}}, {literal(site.out.shape)})", view=True)


@lowering("pmax", "pmin")
def _extremum(site: Site) -> Code:
    return Code("{0}", view=True)
