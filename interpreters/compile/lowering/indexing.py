"""Rows that read and write at integer indices."""

from __future__ import annotations

from func.backends.support.arrays import place, place_into, scatter_add, scatter_add_into
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering, writing_code
from func.interpreters.compile.lowering.literals import literal


def _index(axis: int, places: range) -> str:
    """The index with full slices in front, as a tuple."""
    entries = [*["slice(None)"] * axis, *[f"{{{place}}}" for place in places]]
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


@lowering("gather")
def _gather(context: LoweringContext) -> Code:
    entries = [*[":"] * context.params["axis"], *[f"{{{place}}}" for place in range(1, len(context.avals))]]
    scalar = all([aval.shape == () for aval in context.avals[1:]])
    return Code(f"{{0}}[{', '.join(entries)}]", view=scalar)


@lowering("scatter")
def _scatter(context: LoweringContext) -> Code:
    return writing_code(place_into, place, _index(context.params["axis"], range(2, len(context.avals))))


@lowering("scatter_add")
def _scatter_add(context: LoweringContext) -> Code:
    index = _index(context.params["axis"], range(2, len(context.avals)))
    return writing_code(scatter_add_into, scatter_add, index, xp="np, ")


# --- sorting ----------------------------------------------------------------------------------------------------


@lowering("argsort")
def _argsort(context: LoweringContext) -> Code:
    return Code(f"{{0}}.argsort({context.params['axis']}, {literal(context.params['kind'])})")


@lowering("reorder")
def _reorder(context: LoweringContext) -> Code:
    return Code(f"np.take_along_axis({{0}}, {{1}}, {context.params['axis']})")


@lowering("argpartition")
def _argpartition(context: LoweringContext) -> Code:
    axis = context.params["axis"]
    if context.device:
        return Code(f"{{0}}.argsort({axis})")
    return Code(f"{{0}}.argpartition({literal(context.params['kth'])}, {axis}, {literal(context.params['kind'])})")


@lowering("lexsort")
def _lexsort(context: LoweringContext) -> Code:
    keys = f"({context.operands()}{',' if len(context.avals) == 1 else ''})"
    return Code(f"np.lexsort(np.stack({keys}))" if context.device else f"np.lexsort({keys}, {context.params['axis']})")
