"""Values at regular places: diagonals written into zeros, and read."""

from __future__ import annotations

import math

from func.backends.support.strided import place_strided, strided_places, strided_window, take_strided
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import dtype_text, literal

_LARGE = 1 << 16
"""Zeros of more elements come from the system, which makes the pages that are never written cheap."""


@lowering("place")
def _place(context: LoweringContext) -> Code:
    placements = literal(context.params["placements"])
    zeros = f"np.zeros({literal(context.out.shape)}, {dtype_text(context.out.dtype)})"
    plain = f"place_strided(np, {zeros}, True, {placements}, {context.operands()})"
    support = (place_strided, strided_window, strided_places)
    written = sum([math.prod(sizes) for _, sizes, _ in context.params["placements"]])
    if context.out.size > _LARGE and 4 * written < context.out.size:
        return Code(plain, support=support)
    text = f"place_strided(np, {{out}}, False, {placements}, {context.operands()})"
    return Code(text, out=True, plain=plain, support=support)


@lowering("take")
def _take(context: LoweringContext) -> Code:
    arguments = ", ".join([literal(entry) for entry in context.params["placement"]])
    return Code(
        f"take_strided(np, {{0}}, {arguments})",
        support=(take_strided, strided_window, strided_places),
    )
