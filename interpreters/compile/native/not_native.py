"""What stops a translation to native code."""

from __future__ import annotations

from func.interpreters.program.program import Equation


class NotNative(Exception):
    """An equation has no native form; the message says why."""


class RuleError(Exception):
    """A rule failed at `equation`; what it raised is the cause."""

    def __init__(self, equation: Equation) -> None:
        super().__init__(equation.primitive.name)
        self.equation = equation
