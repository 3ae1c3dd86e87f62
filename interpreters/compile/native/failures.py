"""The warning where a compiler fails: the reason, and the equation."""

from __future__ import annotations

import warnings

from func.interpreters.compile.native.not_native import RuleError
from func.interpreters.host.source import Line, user_line
from func.interpreters.program.program import Equation, Program

MOST_EQUATIONS, MOST_LETTERS = 3, 300
"""The equations and the letters of an error that a warning quotes."""


def warn_of_failure(program: Program, error: Exception, what: str) -> None:
    """Warn that `what` could not be made for a program: a first clause, such as "native code could not be made"."""
    cause = error.__cause__ or error
    reason = f"{type(cause).__name__}: {str(cause).strip()[:MOST_LETTERS]}".rstrip(": ")
    if isinstance(error, RuleError):
        where = f"at {_described(error.equation)}"
    else:
        first = [_described(equation) for equation in program.equations[:MOST_EQUATIONS]]
        where = "in a program that begins with " + "; ".join(first)
    line = user_line() or Line(__file__, 1, "")
    warnings.warn_explicit(f"func.jit: {what} ({reason})\n  {where}", RuntimeWarning, line.file, line.number)


def _described(equation: Equation) -> str:
    """The primitive of an equation, and the user's line that it comes from."""
    return equation.primitive.name if equation.line is None else f"{equation.primitive.name}, {equation.line}"
