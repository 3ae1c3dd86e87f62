"""Equations, and constants, that no output needs are dropped; equations without outputs have an effect and stay."""

from __future__ import annotations

from typing import Any

from func.interpreters.program import Program


def dead(program: Program) -> Program:
    """The program without equations and constants that no output needs; the given one where all are needed."""
    needed: set[Any] = set(program.outputs)
    kept = []
    for equation in reversed(program.equations):
        if not equation.outputs or not needed.isdisjoint(equation.outputs):
            kept.append(equation)
            needed.update(equation.inputs)
    constants = {var: value for var, value in program.constants.items() if var in needed}
    if len(kept) == len(program.equations) and len(constants) == len(program.constants):
        return program
    kept.reverse()
    return Program(program.inputs, kept, program.outputs, constants)
