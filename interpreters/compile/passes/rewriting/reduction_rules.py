"""Rules for reductions of broadcasts, of sums and of multiples.

Σ of n equal terms = n · term, and Σ Σ = one Σ. Both round differently from NumPy's order of additions, by no more than
one order of additions differs from another.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural.reductions import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
)
from func.interpreters.primitives.structural.shapes import broadcast, reduce_sum, reshape
from func.interpreters.program.program import Var

Axes: TypeAlias = tuple[int, ...]
MODERATE = 2.0**20
"""Factors between the reciprocal and this are pulled out of sums; others could overflow or underflow there."""


def sum_of_broadcast(rw: Rewriter, out: Var, x: Any, *, axes: Axes, **params: Any) -> Any:
    """Σ broadcast(x) = n x over n broadcast elements."""
    aligned, stretched = _unbroadcast(rw, x, axes)
    if aligned is None or x.size == 0:
        return None
    number = math.prod([x.shape[axis] for axis in stretched])
    total = rw.emit(reduce_sum, aligned, axes=axes, **params)
    scaled = rw.emit(multiply, total, float(number) if out.dtype.kind in "fc" else number)
    return rw.emit(broadcast, scaled, shape=out.shape)


def _unbroadcast(rw: Rewriter, x: Any, axes: Axes) -> tuple[Any, list[int]]:
    """The operand of a broadcast, with as many axes as x, and those of `axes` along which it is stretched."""
    inner = rw.operand(x, broadcast)
    if type(inner) is not Var:
        return None, []
    shape = (1,) * (len(x.shape) - len(inner.shape)) + inner.shape
    stretched = [axis for axis in axes if shape[axis] != x.shape[axis]]
    return (rw.reshape(inner, shape) if stretched else None), stretched


def idempotent_of_broadcast(primitive: Primitive) -> Rule:
    """reduce(broadcast x) = reduce(x) for reductions that repeated elements do not change."""

    def rule(rw: Rewriter, out: Var, x: Any, *, axes: Axes, **params: Any) -> Any:
        aligned, _ = _unbroadcast(rw, x, axes)
        if aligned is None or x.size == 0:
            return None
        return rw.emit(broadcast, rw.emit(primitive, aligned, axes=axes, **params), shape=out.shape)

    return rule


def sum_of_sum(rw: Rewriter, out: Var, x: Any, *, axes: Axes, **params: Any) -> Any:
    """Σ Σ x = Σ x over both sets of axes, in one dtype."""
    inner = rw.definition(x, reduce_sum)
    if inner is None or not rw.used_once(x) or params.get("dtype") is not None or inner.params.get("dtype") is not None:
        return None
    (source,), first = inner.inputs, inner.params["axes"]
    left = [axis for axis in range(len(source.shape)) if axis not in first]
    return rw.emit(reduce_sum, source, axes=tuple(sorted([*first, *[left[axis] for axis in axes]])), **params)


def sum_of_all(rw: Rewriter, out: Var, x: Any, *, axes: Axes, **params: Any) -> Any:
    """Σ reshape(x) = Σ x over all elements."""
    inner = rw.operand(x, reshape)
    if type(inner) is not Var or len(axes) < len(x.shape):
        return None
    return rw.emit(reduce_sum, inner, axes=tuple(range(len(inner.shape))), **params)


def multiple_of_sum(primitive: Primitive) -> Rule:
    """Σ c x = c Σ x and Σ −x = −Σ x, where x is floating point, c moderate, and c x is not used elsewhere."""

    def rule(rw: Rewriter, out: Var, x: Any, *, axes: Axes, **params: Any) -> Any:
        if out.dtype.kind not in "fc" or out.dtype.itemsize < 4 or out.size >= x.size or not rw.used_once(x):
            return None
        if rw.negated(x) is not None:
            return rw.emit(negative, rw.emit(primitive, rw.negated(x), axes=axes, **params))
        product, factor = split_factor(rw, x)
        return None if product is None else rw.emit(multiply, rw.emit(primitive, product, axes=axes, **params), factor)

    return rule


def split_factor(rw: Rewriter, x: Any) -> tuple[Any, Any]:
    """(y, c) where x = c y with a moderate Python scalar c; (None, None) elsewhere, and for integers, which wrap."""
    if x.dtype.kind not in "fc":
        return None, None
    equation = rw.definition(x, multiply)
    if equation is not None:
        for place in (0, 1):
            factor, rest = equation.inputs[place], equation.inputs[1 - place]
            if is_moderate(factor) and type(rest) is Var and rest.shape == x.shape and rest.dtype == x.dtype:
                return rest, factor
    equation = rw.definition(x, divide)
    if equation is not None:
        rest, divisor = equation.inputs
        if is_moderate(divisor) and type(rest) is Var and rest.shape == x.shape and rest.dtype == x.dtype:
            return rest, 1 / divisor
    return None, None


def is_moderate(factor: Any) -> bool:
    """True for Python numbers that are neither very large nor very small."""
    return type(factor) in (int, float) and 1 / MODERATE <= abs(factor) <= MODERATE


TABLE: dict[Primitive, tuple[Rule, ...]] = {
    reduce_sum: (sum_of_broadcast, sum_of_sum, sum_of_all, multiple_of_sum(reduce_sum)),
    reduce_mean: (idempotent_of_broadcast(reduce_mean), multiple_of_sum(reduce_mean)),
    **{
        primitive: (idempotent_of_broadcast(primitive),)
        for primitive in (reduce_max, reduce_min, reduce_any, reduce_all)
    },
}
