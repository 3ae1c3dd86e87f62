"""The memory of a Program's values: sizes, views, and last uses."""

from __future__ import annotations

from func.interpreters.core import Aval, Shaped, aval_of
from func.interpreters.program.program import Equation, Program, Var


def avals_of(equation: Equation) -> list[Aval]:
    """The avals of the inputs, which may be literals."""
    return [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]


def is_view(equation: Equation) -> bool:
    """Whether an equation makes a view of its first input, which moves nothing."""
    view = equation.primitive.view
    if isinstance(view, bool):
        return view
    return bool(equation.inputs) and type(equation.inputs[0]) is Var and view(avals_of(equation))


def bytes_of(value: Shaped) -> int:
    """The size of an array of this shape and dtype."""
    return value.size * value.dtype.itemsize


def held_bytes(out: Var, equation: Equation) -> int:
    """The memory of an output; a broadcast scalar takes one element."""
    return out.dtype.itemsize if is_view(equation) else bytes_of(out)


def memory_roots(program: Program) -> dict[Var, Var]:
    """For each variable, the variable that owns its memory."""
    roots: dict[Var, Var] = {var: var for var in (*program.inputs, *program.constants)}
    for equation in program.equations:
        passes_on = equation.primitive.passes_on
        passed_on = passes_on(*equation.inputs, **equation.params) if passes_on is not None else ()
        for i, out in enumerate(equation.outputs):
            source = passed_on[i] if passed_on else equation.inputs[0] if is_view(equation) else out
            roots[out] = roots[source] if type(source) is Var and source is not out else out
    return roots


def operand_roots(equation: Equation, roots: dict[Var, Var]) -> list[tuple[Var, Var]]:
    """The variables that an equation reads, and the owners of their memory."""
    return [(x, roots[x]) for x in dict.fromkeys(equation.inputs) if type(x) is Var]


def last_uses(program: Program, roots: dict[Var, Var]) -> dict[Var, int]:
    """For each array that the program allocates and does not return, the last equation that uses it."""
    last: dict[Var, int] = {}
    for place, equation in enumerate(program.equations):
        for x in (*equation.inputs, *equation.outputs):
            if type(x) is Var:
                last[roots[x]] = place
    for x in (*program.inputs, *program.constants, *program.outputs):
        if type(x) is Var:
            last.pop(roots[x], None)
    return last
