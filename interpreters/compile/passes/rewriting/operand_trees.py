"""Finding trees of one row: sums of sums, contractions of contractions."""

from __future__ import annotations

from typing import Any

from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, count_uses
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.program.program import Program, Var


def roots(program: Program, primitive: Primitive, uses: dict[Any, int] | None = None) -> set[Var]:
    """The outputs of equations of a row that no other such equation takes apart."""
    uses = count_uses(program) if uses is None else uses
    found: set[Var] = set()
    for equation in program.equations:
        if equation.primitive is primitive:
            found.difference_update([x for x in equation.inputs if type(x) is Var and uses[x] == 1])
            found.add(equation.outputs[0])
    return found


def terms_below(rw: Rewriter, x: Any, y: Any) -> list[Any]:
    """The terms of a sum in order: sums that are needed only here, and do not broadcast, are taken apart."""
    terms: list[Any] = []
    stack = [y, x]
    while stack:
        one = stack.pop()
        equation = rw.maker(one, add)
        if equation is None or not rw.used_once(one) or not _plain(equation):
            terms.append(one)
        else:
            stack += [equation.inputs[1], equation.inputs[0]]
    return terms


def _plain(equation: Any) -> bool:
    out = equation.outputs[0]
    return all([type(x) is Var and x.shape == out.shape and x.dtype == out.dtype for x in equation.inputs])
