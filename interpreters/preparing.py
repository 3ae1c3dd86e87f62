"""A Program as it is executed, by whatever executes it."""

from __future__ import annotations

from func.interpreters.inlining import inline
from func.interpreters.passes import optimize
from func.interpreters.program import Program


def prepared(program: Program) -> Program:
    """The program without calls, optimised."""
    return optimize(inline(program))
