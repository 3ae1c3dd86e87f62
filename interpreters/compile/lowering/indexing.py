"""Rows that read and write at integer indices."""

from __future__ import annotations

from func.backends.support.arrays import place, place_into, scatter_add, scatter_add_into
from func.interpreters.compile.lowering.code import Code, Site, lowering, writing_code
from func.interpreters.compile.lowering.literals import literal


def _index(axis: int, places: range) -> str:
    """The index with full slices in front, as a tuple."""
    entries = [*["slice(None)"] * axis, *[f"{{{place}}}" for place in places]]
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


@lowering("gather")
def _gather(site: Site) -> Code:
    entries = [*[":"] * site.params["axis"], *[f"{{{place}}}" for place in range(1, len(site.avals))]]
    scalar = all([aval.shape == () for aval in site.avals[1:]])
    return Code(f"{{0}}[{', '.join(entries)}]", view=scalar)


@lowering("scatter")
def _scatter(site: Site) -> Code:
    return writing_code(place_into, place, _index(site.params["axis"], range(2, len(site.avals))))


@lowering("scatter_add")
def _scatter_add(site: Site) -> Code:
    index = _index(site.params["axis"], range(2, len(site.avals)))
    return writing_code(scatter_add_into, scatter_add, index, xp="np, ")


# --- sorting ----------------------------------------------------------------------------------------------------


@lowering("argsort")
def _argsort(site: Site) -> Code:
    return Code(f"{{0}}.argsort({site.params['axis']}, {literal(site.params['kind'])})")


@lowering("reorder")
def _reorder(site: Site) -> Code:
    return Code(f"np.take_along_axis({{0}}, {{1}}, {site.params['axis']})")


@lowering("argpartition")
def _argpartition(site: Site) -> Code:
    axis = site.params["axis"]
    if site.device:
        return Code(f"{{0}}.argsort({axis})")
    return Code(f"{{0}}.argpartition({literal(site.params['kth'])}, {axis}, {literal(site.params['kind'])})")


@lowering("lexsort")
def _lexsort(site: Site) -> Code:
    keys = f"({site.operands()}{',' if len(site.avals) == 1 else ''})"
    return Code(f"np.lexsort(np.stack({keys}))" if site.device else f"np.lexsort({keys}, {site.params['axis']})")
