"""Sorts and partitions without an order that nothing else needs.

Equal orders must be one variable before: an order with another use is computed once, and both uses read it.
"""

from __future__ import annotations

from typing import Any

from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule, rewrite
from func.interpreters.core import Primitive
from func.interpreters.primitives.structural.sorting import argsort, partition, partition_order, reorder, sort
from func.interpreters.program.program import Program, Var


def reorder_by_own_order(finds: Primitive, values: Primitive) -> Rule:
    """x in the order that `finds` gives for x = values(x), if the order has no other use."""

    def rule(rw: Rewriter, out: Var, x: Any, order: Any, *, axis: int) -> Any:
        equation = rw.definition(order, finds)
        if equation is None or not rw.used_once(order):
            return None
        if equation.inputs[0] is not x or equation.params["axis"] != axis:
            return None
        return rw.emit(values, x, **equation.params)

    return rule


_RULES = (reorder_by_own_order(argsort, sort), reorder_by_own_order(partition_order, partition))


def drop_unneeded_orders(program: Program) -> Program:
    """Sort and partition values alone where nothing reads their order."""
    if not any([equation.primitive is reorder for equation in program.equations]):
        return program
    return rewrite(program, lambda primitive: _RULES if primitive is reorder else ())
