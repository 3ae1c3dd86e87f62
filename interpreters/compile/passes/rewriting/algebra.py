"""Algebraic simplification by a table of rules for each primitive.

Each subject has one file of rules, and the docstring of a rule is its equation. Rules also apply to what rules emit, so
that one walk brings most programs to their normal form.
"""

from __future__ import annotations

import functools

from func.interpreters.compile.passes.rewriting import (
    arithmetic_rules,
    contraction_rules,
    reduction_rules,
    shape_rules,
    slice_rules,
)
from func.interpreters.compile.passes.rewriting.rewriter import Rule, rewrite
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.builder import (
    add,
    conjugate,
    multiply,
    negative,
)
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.structural.indexing import scatter_add
from func.interpreters.primitives.structural.reductions import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
)
from func.interpreters.primitives.structural.shapes import broadcast, convert, permute, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import embed
from func.interpreters.program.program import Program

_ALSO_ELEMENTWISE = frozenset({where, ops.make_complex, convert, conjugate, ops.real, ops.imag})
_TABLES = (arithmetic_rules.TABLE, shape_rules.TABLE, slice_rules.TABLE, reduction_rules.TABLE, contraction_rules.TABLE)
_REDUCTIONS = (reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_any, reduce_all)


@functools.cache
def rules_of(primitive: Primitive) -> tuple[Rule, ...]:
    """The rules for a primitive, in the order in which they are tried."""
    rules = [rule for table in _TABLES for rule in table.get(primitive, ())]
    if isinstance(primitive, Pointwise) or primitive in _ALSO_ELEMENTWISE:
        rules += shape_rules.elementwise_rules(primitive)
    if primitive in _REDUCTIONS:
        rules += shape_rules.reduction_rules(primitive)
    return tuple(rules)


@functools.cache
def looks_for(primitive: Primitive) -> frozenset[Primitive] | None:
    """The primitives that the rules for an elementwise primitive look for among the definitions of its operands."""
    if primitive in _UNCONDITIONAL or not isinstance(primitive, Pointwise):
        return None
    return _STRUCTURAL | _LOOKED_FOR.get(primitive, frozenset())


_UNCONDITIONAL = frozenset({ops.positive})
_STRUCTURAL: frozenset[Primitive] = frozenset({broadcast, reshape, permute})
_LOOKED_FOR: dict[Primitive, frozenset[Primitive]] = {
    add: frozenset({negative, embed, scatter_add}),
    ops.subtract: frozenset({negative}),
    multiply: frozenset({negative, multiply}),
    negative: frozenset({negative, multiply}),
    ops.square: frozenset({negative}),
    ops.absolute: frozenset({negative}),
    ops.logical_not: frozenset({ops.equal, ops.not_equal}),
}


def simplify_algebra(program: Program) -> Program:
    """Simplify every equation by the rules of its primitive."""
    return rewrite(program, rules_of, looks_for)
