"""The text of control flow in source that people read: nested programs become functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from func.backends.array_helpers.arrays import run_branch, run_scan, run_while
from func.backends.source.literals import dtype_text, literal, tuple_text
from func.interpreters.compile.lowering.code import Code
from func.interpreters.program.program import Equation, Program

Name: TypeAlias = Callable[[Program], str]
"""(program): the name of the function that computes a nested program."""


def _operands(equation: Equation, start: int = 0) -> str:
    """The operands from a position on, as a tuple."""
    return tuple_text([f"{{{position}}}" for position in range(start, len(equation.inputs))])


def _scan_code(function: Name, equation: Equation) -> Code:
    body, loop = equation.params["body"], equation.params["loop"]
    kinds = [f"({literal(var.shape)}, {dtype_text(var.dtype)})" for var in equation.outputs[loop.carries :]]
    sizes = literal((loop.consts, loop.carries, loop.length))
    name = function(body.program)
    text = f"run_scan(np, {name}, {_operands(equation)}, {sizes}, {literal(loop.reverse)}, [{', '.join(kinds)}])"
    return Code(text, helpers=(run_scan,))


def _while_code(function: Name, equation: Equation) -> Code:
    loop = equation.params["loop"]
    test, body = [function(equation.params[name].program) for name in ("cond", "body")]
    sizes = literal((loop.conditions, loop.consts))
    return Code(f"run_while({test}, {body}, {_operands(equation)}, {sizes})", helpers=(run_while,))


def _cond_code(function: Name, equation: Equation) -> Code:
    names = [function(branch.program) for branch in equation.params["branches"]]
    return Code(f"run_branch({tuple_text(names)}, {{0}}, {_operands(equation, 1)})", helpers=(run_branch,))


def _call_code(function: Name, equation: Equation) -> Code:
    return Code(f"{function(equation.params['compiled'].program)}(*{_operands(equation)})")


NESTED = {"scan_call": _scan_code, "while_call": _while_code, "cond_call": _cond_code, "program_call": _call_code}
