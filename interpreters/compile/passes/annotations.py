"""What only transforms look at is left out: names for checkpoint policies, and where no derivative passes.

So an optimised program is for executing; derivatives are those of the program before.
"""

from __future__ import annotations

from func.interpreters.compile.passes.rewriting.arithmetic_rules import itself
from func.interpreters.compile.passes.rewriting.rewriter import Rule, rewritten
from func.interpreters.core import Primitive
from func.interpreters.primitives.structural.identity import named, stop_gradient
from func.interpreters.program.program import Program

_RULES: dict[Primitive, tuple[Rule, ...]] = {named: (itself,), stop_gradient: (itself,)}


def labels(program: Program) -> Program:
    """The program without names and marks for derivatives."""
    if not any([equation.primitive in _RULES for equation in program.equations]):
        return program
    return rewritten(program, lambda primitive: _RULES.get(primitive, ()))
