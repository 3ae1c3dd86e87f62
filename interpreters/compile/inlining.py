"""Calls replaced by what they call: done last, when no transform will look at the calls any more."""

from __future__ import annotations

from typing import Any

from func.interpreters import drivers
from func.interpreters.core import Array
from func.interpreters.program.program import Equation, Program
from func.interpreters.stage import DerivedStage

LARGE = 1000
"""A staged program with more equations stays a call of its own code."""


def inline(program: Program) -> Program:
    """The program with the bodies of custom rules, checkpoints and small programs in the place of their calls."""
    while any([_body(equation) is not None for equation in program.equations]):
        equations = program.equations

        def override(place: int, operands: tuple[Array, ...], equations: Any = equations) -> Any:
            body = _body(equations[place])
            return None if body is None else tuple(body(*operands))

        def flat(*args: Array, program: Program = program, override: Any = override) -> Any:
            return program.run(args, override)

        program = drivers.stage_flat(flat, [var.aval for var in program.inputs], DerivedStage("jit"))
    return program


def _body(equation: Equation) -> Any:
    if equation.primitive.name == "program_call":
        compiled = equation.params["compiled"]
        if len(compiled.program.equations) <= LARGE:
            return compiled.run_on
        return compiled.plain() if compiled.pulls else None
    body = equation.primitive.body
    return None if body is None else body(equation.params)
