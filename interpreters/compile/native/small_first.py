"""The order of translation: equations that follow from inputs alone come first, if many others repeat their values.

Loop nests run in the order in which they begin, and an operation joins the first nest that comes after all its
operands. So a small operation in the middle, such as the inverse of an input column, would begin a nest there. Its
readers, and their readers, could not join the large nests before.
"""

from __future__ import annotations

from collections.abc import Sequence

from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import is_view

SMALL = 8
"""The least number of elements of another value in which an element of an early value occurs."""


def small_first(program: Program) -> Sequence[Equation]:
    """The equations of a program; those come first that compute, from inputs, values that larger ones repeat.

    The early values have together no more elements than the largest value, so little memory is in use for longer.
    """
    repeated = _repeated(program.equations)
    if not repeated:
        return program.equations
    left = max([var.size for equation in program.equations for var in equation.outputs])
    ready = {*program.inputs, *program.constants}
    first: list[Equation] = []
    rest: list[Equation] = []
    for equation in program.equations:
        is_ready = all([x in ready for x in equation.inputs if type(x) is Var])
        size = sum([0 if is_view(equation) else out.size for out in equation.outputs])
        if is_ready and size <= left and any([out in repeated for out in equation.outputs]):
            left -= size
            first.append(equation)
            ready.update(equation.outputs)
        else:
            rest.append(equation)
    return [*first, *rest]


def _repeated(equations: Sequence[Equation]) -> set[Var]:
    """Values computed element by element that larger ones repeat, and the origins of such values."""
    repeated: set[Var] = set()
    widest: dict[Var, int] = {}
    """The elements of the largest value that is computed element by element from a variable."""
    for equation in reversed(equations):
        if not (isinstance(equation.primitive, Pointwise) or is_view(equation)) or equation.primitive.multiple:
            continue
        (out,) = equation.outputs
        reached = max(widest.get(out, 0), out.size)
        if reached >= SMALL * out.size:
            repeated.add(out)
        for x in equation.inputs:
            if type(x) is Var:
                widest[x] = max(widest.get(x, 0), reached)
    return repeated
