"""Optimisation of a Program for execution.

Each pass is a function from Program to Program that returns its argument where it changes nothing. A traced Program
comes in; a Program with the same outputs and less work comes out of `optimize`, which repeats the passes. Outputs are
the same up to rounding, and bit by bit where a pass is marked so (`keeps_bits`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TypeAlias

from func.interpreters.compile.passes.cleanup import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    pin_messages,
    strip_annotations,
)
from func.interpreters.compile.passes.rewriting.algebra import simplify_algebra
from func.interpreters.program.program import Equation, Program
from func.interpreters.program.translations import validated

Pass: TypeAlias = Callable[[Program], Program]

LEAST_OUTER_PRODUCT = 1024
"""The smallest outer product, in elements, that the pass avoids: smaller ones are faster multiplied out."""
LINALG = "func.interpreters.primitives.linalg."
"""The package of the primitives for which the passes of `passes/linalg/` exist."""


def _where(concerns: Callable[[Equation], bool], module: str, name: str) -> Pass:
    """A pass for programs with an equation that it concerns; the first such equation imports its module."""

    def apply_pass(program: Program) -> Program:
        if not any([concerns(equation) for equation in program.equations]):
            return program
        found: Pass = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return found(program)

    apply_pass.__name__ = name
    return apply_pass


def _with(*names: str) -> Callable[[Equation], bool]:
    """Tells equations of primitives with these names."""
    return lambda equation: equation.primitive.name in names


def _of_linalg(equation: Equation) -> bool:
    return equation.primitive.defined_in.startswith(LINALG)


def _may_be_outer_product(equation: Equation) -> bool:
    return equation.primitive.name in ("contract", "multiply") and equation.outputs[0].size >= LEAST_OUTER_PRODUCT


drop_unneeded_orders = _where(_with("reorder"), "rewriting.unneeded_orders", "drop_unneeded_orders")
join_padded_sums = _where(_with("embed"), "rewriting.sum_trees", "join_padded_sums")
order_contractions = _where(_with("contract", "sum"), "contraction_order", "order_contractions")
exploit_diagonal_sparsity = _where(
    _with("scatter", "scatter_add", "seed"), "sparsity.diagonal_sparsity", "exploit_diagonal_sparsity"
)
exploit_outer_products = _where(_may_be_outer_product, "low_rank", "exploit_outer_products")

PIPELINE: tuple[Pass, ...] = (
    eliminate_dead_code,
    strip_annotations,
    fold_constants,
    simplify_algebra,
    eliminate_common_subexpressions,
    drop_unneeded_orders,
    _where(_of_linalg, "linalg.solve_rules", "simplify_solves"),
    _where(_of_linalg, "linalg.cholesky_pullback", "simplify_hermitian_cholesky_pullbacks"),
    join_padded_sums,
    order_contractions,
    exploit_diagonal_sparsity,
    _where(_of_linalg, "linalg.cholesky_pullback", "simplify_cholesky_pullbacks"),
    exploit_outer_products,
    _where(_of_linalg, "linalg.shared_lu", "share_lu"),
)
"""The passes of one round, in order."""
CLEANING: tuple[Pass, ...] = (
    eliminate_dead_code,
    strip_annotations,
    fold_constants,
    eliminate_common_subexpressions,
)
"""The passes after which equal steps of a loop have equal equations."""
MAX_ROUNDS = 4
"""The most repetitions of the passes, which end when a whole round changes nothing."""
LONG_PROGRAM = 1000
"""From this number of equations on, further rounds are not worth their time."""
MAX_ROUNDS_IF_LONG = 2


def clean(program: Program) -> Program:
    """The program without unneeded and duplicate equations."""
    for apply_pass in map(validated, CLEANING):
        program = apply_pass(program)
    return program


def optimize(program: Program) -> Program:
    """The program for execution."""
    if not program.communicates:
        return _optimized(program)
    pinned = pin_messages(program.pruned())
    changed = _optimized(pinned)
    return Program(changed.inputs, changed.equations, changed.outputs[: len(program.outputs)], changed.constants)


def _optimized(program: Program) -> Program:
    rounds = MAX_ROUNDS if len(program.equations) < LONG_PROGRAM else MAX_ROUNDS_IF_LONG
    idle = 0
    for apply_pass in tuple(map(validated, PIPELINE)) * rounds:
        changed = apply_pass(program)
        idle = 0 if changed is not program else idle + 1
        if idle == len(PIPELINE):
            break
        program = changed
    return program
