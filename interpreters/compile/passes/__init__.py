"""Optimisation of a Program for execution.

Each pass is a function from Program to Program that returns its argument where it changes nothing. A traced Program
comes in; a Program with the same outputs and less work comes out of `optimize`, which repeats the passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from func.interpreters.compile.passes.cleanup import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    pin_messages,
    strip_annotations,
)
from func.interpreters.compile.passes.contraction_order import order_contractions
from func.interpreters.compile.passes.linalg.cholesky_pullback import (
    simplify_cholesky_pullbacks,
    simplify_hermitian_cholesky_pullbacks,
)
from func.interpreters.compile.passes.linalg.shared_lu import share_lu
from func.interpreters.compile.passes.linalg.solve_rules import simplify_solves
from func.interpreters.compile.passes.low_rank import exploit_outer_products
from func.interpreters.compile.passes.rewriting.algebra import simplify_algebra
from func.interpreters.compile.passes.rewriting.sum_trees import join_padded_sums
from func.interpreters.compile.passes.rewriting.unneeded_orders import drop_unneeded_orders
from func.interpreters.compile.passes.sparsity.diagonal_sparsity import exploit_diagonal_sparsity
from func.interpreters.program.program import Program

Pass: TypeAlias = Callable[[Program], Program]

PIPELINE: tuple[Pass, ...] = (
    eliminate_dead_code,
    strip_annotations,
    fold_constants,
    simplify_algebra,
    eliminate_common_subexpressions,
    drop_unneeded_orders,
    simplify_solves,
    simplify_hermitian_cholesky_pullbacks,
    join_padded_sums,
    order_contractions,
    exploit_diagonal_sparsity,
    simplify_cholesky_pullbacks,
    exploit_outer_products,
    share_lu,
)
"""The passes of one round, in order."""
MAX_ROUNDS = 4
"""The passes are repeated until a whole round changes nothing, at most this often."""
LONG_PROGRAM = 1000
"""From this number of equations on, further rounds are not worth their time."""
MAX_ROUNDS_IF_LONG = 2


def optimize(program: Program) -> Program:
    """The program as it is to be executed."""
    if not program.communicates:
        return _optimized(program)
    pinned = pin_messages(program.pruned())
    changed = _optimized(pinned)
    return Program(changed.inputs, changed.equations, changed.outputs[: len(program.outputs)], changed.constants)


def _optimized(program: Program) -> Program:
    rounds = MAX_ROUNDS if len(program.equations) < LONG_PROGRAM else MAX_ROUNDS_IF_LONG
    idle = 0
    for apply_pass in PIPELINE * rounds:
        changed = apply_pass(program)
        idle = 0 if changed is not program else idle + 1
        if idle == len(PIPELINE):
            break
        program = changed
    return program
