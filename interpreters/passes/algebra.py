"""Algebraic simplification from a table: for each row, rules that say what stands for its output.

The table is joined from one file for each subject; a rule there is a function of a few lines whose docstring is its
equation. Rules are also applied to what rules emit, so that one walk brings most programs to their normal form.
"""

from __future__ import annotations

import functools

from func.interpreters.core import Primitive
from func.interpreters.passes import arithmetic, products, shapes, slices, sums
from func.interpreters.passes.rewriting import Rule, rewritten
from func.interpreters.primitives.elementwise import (
    absolute,
    add,
    conjugate,
    equal,
    imag,
    logical_not,
    make_complex,
    multiply,
    negative,
    not_equal,
    positive,
    real,
    square,
    subtract,
)
from func.interpreters.primitives.indexing import scatter_add
from func.interpreters.primitives.pointwise import Elementwise, ElementwiseConstant
from func.interpreters.primitives.reductions import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
)
from func.interpreters.primitives.structural import broadcast, convert, embed, permute, reduce_sum, reshape, where
from func.interpreters.program import Program

_LIKE_THEM = frozenset({where, make_complex, convert, conjugate, real, imag})
_TABLES = (arithmetic.TABLE, shapes.TABLE, slices.TABLE, sums.TABLE, products.TABLE)
_REDUCTIONS = (reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_any, reduce_all)


@functools.cache
def rules_of(row: Primitive) -> tuple[Rule, ...]:
    """The rules for a row, in the order in which they are tried."""
    rules = [rule for table in _TABLES for rule in table.get(row, ())]
    if isinstance(row, (Elementwise, ElementwiseConstant)) or row in _LIKE_THEM:
        rules += shapes.elementwise_rules(row)
    if row in _REDUCTIONS:
        rules += shapes.reduction_rules(row)
    return tuple(rules)


@functools.cache
def looks_for(row: Primitive) -> frozenset[Primitive] | None:
    """The rows that the rules for an elementwise row look for among its operands."""
    if row in _ALWAYS or not isinstance(row, (Elementwise, ElementwiseConstant)):
        return None
    return _MOVES | _LOOKED_FOR.get(row, frozenset())


_ALWAYS = frozenset({positive})
_MOVES: frozenset[Primitive] = frozenset({broadcast, reshape, permute})
_LOOKED_FOR: dict[Primitive, frozenset[Primitive]] = {
    add: frozenset({negative, embed, scatter_add}),
    subtract: frozenset({negative}),
    multiply: frozenset({negative, multiply}),
    negative: frozenset({negative, multiply}),
    square: frozenset({negative}),
    absolute: frozenset({negative}),
    logical_not: frozenset({equal, not_equal}),
}


def algebra(program: Program) -> Program:
    """The program simplified by the table."""
    return rewritten(program, rules_of, looks_for)
