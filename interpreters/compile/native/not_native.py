"""Programs without native code: the exceptions that stop a translation, and the warning where a compiler fails."""

from __future__ import annotations

import warnings

from func.interpreters.host.source import Line, user_line
from func.interpreters.program.program import Equation, Program

MOST_EQUATIONS, MOST_LETTERS = 3, 300
"""The equations and the letters of an error that a warning quotes."""


class NotNative(Exception):
    """An equation has no native form; the message says why."""


class RuleError(Exception):
    """A rule failed at `equation`; its error is the cause."""

    def __init__(self, equation: Equation) -> None:
        super().__init__(equation.primitive.name)
        self.equation = equation


def warn_of_failure(program: Program, error: Exception, what: str) -> None:
    """Warn that a program lacks `what`: a first clause, such as "native code could not be made"."""
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
    """The primitive of an equation, and its line in the user's code."""
    return equation.primitive.name if equation.line is None else f"{equation.primitive.name}, {equation.line}"
