"""Optimising a Program: small passes, each a function Program → Program, run until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from func.interpreters.compile.passes.annotations import labels
from func.interpreters.compile.passes.cleanup import common, dead
from func.interpreters.compile.passes.constant_folding import folding
from func.interpreters.compile.passes.contraction_order import contractions
from func.interpreters.compile.passes.linalg.cholesky_pullback import adjoints
from func.interpreters.compile.passes.linalg.hermitian_cholesky_pullback import congruences
from func.interpreters.compile.passes.linalg.shared_lu import sharing
from func.interpreters.compile.passes.linalg.solve_rules import factorings
from func.interpreters.compile.passes.low_rank.outer_sums import outer
from func.interpreters.compile.passes.rewriting.algebra import algebra
from func.interpreters.compile.passes.rewriting.padded_sums import padding
from func.interpreters.compile.passes.sparsity.diagonal_pass import bands
from func.interpreters.program.program import Program

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
