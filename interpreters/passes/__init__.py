"""Optimising a Program: small passes, each a function Program → Program, run until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from func.interpreters.passes.adjoints import adjoints
from func.interpreters.passes.algebra import algebra
from func.interpreters.passes.bands import bands
from func.interpreters.passes.common import common
from func.interpreters.passes.congruences import congruences
from func.interpreters.passes.contractions import contractions
from func.interpreters.passes.dead import dead
from func.interpreters.passes.factorings import factorings
from func.interpreters.passes.folding import folding
from func.interpreters.passes.labels import labels
from func.interpreters.passes.outer import outer
from func.interpreters.passes.padding import padding
from func.interpreters.passes.sharing import sharing
from func.interpreters.program import Program

Pass: TypeAlias = Callable[[Program], Program]

PIPELINE: tuple[Pass, ...] = (
    dead,
    labels,
    folding,
    algebra,
    common,
    factorings,
    congruences,
    padding,
    contractions,
    bands,
    adjoints,
    outer,
    sharing,
)
"""The passes of a round, in order. A pass that finds nothing to do returns the program it was given."""
ROUNDS, LONG, ROUNDS_IF_LONG = 4, 1000, 2
"""How many rounds are worth their time, and how many for programs of so many equations."""


def optimize(program: Program) -> Program:
    """The program as it should be executed: it computes the same outputs with less work."""
    rounds = ROUNDS if len(program.equations) < LONG else ROUNDS_IF_LONG
    idle = 0
    for one in PIPELINE * rounds:
        after = one(program)
        idle = 0 if after is not program else idle + 1
        if idle == len(PIPELINE):
            break
        program = after
    return program
