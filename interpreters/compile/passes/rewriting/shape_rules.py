"""Rules for reshape, permute and broadcast: they are combined, moved behind arithmetic and reductions, and dropped.

f(reshape x) = reshape f(x) for elementwise f, so that pairs of them meet and cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule
from func.interpreters.core import Params, Primitive, Shape, shape_of
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.program.program import Var


def without_units(shape: Sequence[int]) -> Shape:
    """A shape without its axes of length one."""
    return tuple([length for length in shape if length != 1])


def combine_reshape(rw: Rewriter, out: Var, x: Any, *, shape: Shape) -> Any:
    """A reshape of a reshape, or of a broadcast or permutation that only moves axes of length one, is one reshape."""
    if shape_of(x) == shape:
        return x
    inner = rw.operand(x, reshape)
    if inner is not None:
        return rw.reshape(inner, shape)
    for primitive in (broadcast, permute):
        inner = rw.operand(x, primitive)
        if type(inner) is Var and is_reshape(inner.shape, rw.definitions[x], x.shape):
            return rw.reshape(inner, shape)
    return None


def is_reshape(inner: Shape, equation: Any, outer: Shape) -> bool:
    """True for a broadcast or permutation that only inserts or moves axes of length one."""
    if equation.primitive is broadcast:
        return math.prod(inner) == math.prod(outer) and without_units(inner) == without_units(outer)
    order = [axis for axis in equation.params["order"] if inner[axis] != 1]
    return order == sorted(order)


def combine_permute(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """A permutation of a permutation is one permutation; one that only moves axes of length one is a reshape."""
    if order == tuple(range(len(order))):
        return x
    inner = rw.definition(x, permute)
    if inner is not None:
        return rw.permute(inner.inputs[0], [inner.params["order"][axis] for axis in order])
    long = [axis for axis in order if x.shape[axis] != 1]
    return rw.reshape(x, out.shape) if long == sorted(long) else None


def permute_of_broadcast(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """A permutation of a broadcast is the broadcast of a permutation."""
    inner = rw.operand(x, broadcast)
    if type(inner) is not Var:
        return None
    aligned = rw.reshape(inner, (1,) * (len(order) - len(inner.shape)) + inner.shape)
    return rw.emit(broadcast, rw.permute(aligned, order), shape=out.shape)


def combine_broadcast(rw: Rewriter, out: Var, x: Any, *, shape: Shape) -> Any:
    """A broadcast of a broadcast, or of a reshape that adds leading axes of length one, is one broadcast."""
    if shape_of(x) == shape:
        return x
    inner = rw.operand(x, broadcast)
    if inner is not None:
        return rw.emit(broadcast, inner, shape=shape)
    inner = rw.operand(x, reshape)
    if type(inner) is Var and (1,) * (len(x.shape) - len(inner.shape)) + inner.shape == x.shape:
        return rw.emit(broadcast, inner, shape=shape)
    return None


def elementwise_rules(primitive: Primitive) -> tuple[Rule, ...]:
    """The rules for an elementwise primitive, here f."""

    def structural_operands(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """Apply the rule for a broadcast, reshape or permute among the definitions of operands."""
        primitives = {equation.primitive for equation in map(rw.definitions.get, inputs) if equation is not None}
        for structural, rule in rules.items():
            replacement = rule(rw, out, *inputs, **params) if structural in primitives else None
            if replacement is not None:
                return replacement
        return None

    def of_broadcasts(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """f(broadcast x, y) = f(x, y) where y has the full shape; f(broadcast x, broadcast y) = broadcast f(x, y)."""
        inner = [rw.operand(x, broadcast) for x in inputs]
        small = [y if type(y) is Var else x for x, y in zip(inputs, inner, strict=True)]
        shape = np.broadcast_shapes(*[shape_of(x) for x in small])
        if shape == out.shape:
            return rw.emit(primitive, *small, **params)
        if math.prod(shape) < out.size:
            return rw.emit(broadcast, rw.emit(primitive, *small, **params), shape=out.shape)
        return keep_needed_broadcasts(rw, out, inputs, small, params)

    def keep_needed_broadcasts(
        rw: Rewriter, out: Var, inputs: Sequence[Any], small: Sequence[Any], params: Params
    ) -> Any:
        """Drop each broadcast without which the operands still have the shape of the result."""
        operands = list(inputs)
        for i, x in enumerate(small):
            candidate = [*operands[:i], x, *operands[i + 1 :]]
            if np.broadcast_shapes(*[shape_of(operand) for operand in candidate]) == out.shape:
                operands = candidate
        is_changed = any([x is not y for x, y in zip(operands, inputs, strict=True)])
        return rw.emit(primitive, *operands, **params) if is_changed else None

    def of_reshapes(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """f(reshape x, reshape y) = reshape f(x, y)."""
        inner = [rw.operand(x, reshape) if type(x) is Var and x.shape else x for x in inputs]
        if any([x is None for x in inner]):
            return drop_unit_axes(rw, out, *inputs, **params)
        shapes = {x.shape for x, y in zip(inner, inputs, strict=True) if x is not y}
        if len(shapes) != 1 or any([x is not y and y.shape != out.shape for x, y in zip(inner, inputs, strict=True)]):
            return drop_unit_axes(rw, out, *inputs, **params)
        return rw.reshape(rw.emit(primitive, *inner, **params), out.shape)

    def drop_unit_axes(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """Reshapes that insert axes of length one are moved behind f."""
        if 1 not in out.shape:
            return None
        squeezed = [_squeeze(rw, x, out.shape) for x in inputs]
        return None if None in squeezed else rw.reshape(rw.emit(primitive, *squeezed, **params), out.shape)

    def of_permutes(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """f(xᵀ, yᵀ) = f(x, y)ᵀ."""
        orders = set()
        inner = []
        for x in inputs:
            if type(x) is not Var or not x.shape:
                inner.append(x)
                continue
            equation = rw.definition(x, permute)
            if equation is None:
                return None
            orders.add(equation.params["order"])
            inner.append(equation.inputs[0])
        if len(orders) != 1:
            return None
        (order,) = orders
        return rw.permute(rw.emit(primitive, *inner, **params), order)

    rules: dict[Primitive, Rule] = {broadcast: of_broadcasts, reshape: of_reshapes, permute: of_permutes}
    return (structural_operands,)


def _squeeze(rw: Rewriter, x: Any, shape: Shape) -> Any:
    """x without the axes that have length one in a shape that it broadcasts to.

    None where x is neither a reshape nor a constant, so that dropping them would add an equation.
    """
    if type(x) is not Var or not x.shape:
        return x
    aligned = shape[len(shape) - len(x.shape) :]
    shape = tuple([length for length, full in zip(x.shape, aligned, strict=True) if full != 1])
    if shape == x.shape:
        return x
    return rw.reshape(x, shape) if rw.definition(x, reshape) is not None or rw.constant_value(x) is not None else None


def reduction_rules(primitive: Primitive) -> tuple[Rule, ...]:
    """The rules for a reduction that does not depend on the order of elements."""

    def of_reshape(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """A reduction of a reshape that only inserts axes of length one is a reshape of a reduction."""
        inner = rw.operand(x, reshape)
        if type(inner) is not Var or without_units(inner.shape) != without_units(x.shape):
            return None
        long = [axis for axis, length in enumerate(inner.shape) if length != 1]
        places = dict(zip([axis for axis, length in enumerate(x.shape) if length != 1], long, strict=True))
        inner_axes = tuple([places[axis] for axis in axes if axis in places])
        return rw.reshape(rw.emit(primitive, inner, axes=inner_axes, **params), out.shape)

    def over_units(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """A reduction over axes of length one, or over none, is a reshape; NumPy multiplies by one over no axes."""
        if not axes and primitive.reduces == "multiply" and x.dtype.kind == "c":
            return None
        return rw.reshape(x, out.shape) if all([x.shape[axis] == 1 for axis in axes]) else None

    def of_permute(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """A reduction of a permutation is a permutation of a reduction."""
        equation = rw.definition(x, permute)
        if equation is None:
            return None
        (inner,), order = equation.inputs, equation.params["order"]
        reduced = rw.emit(primitive, inner, axes=tuple(sorted([order[axis] for axis in axes])), **params)
        left = [source for axis, source in enumerate(order) if axis not in axes]
        return rw.permute(reduced, [sorted(left).index(source) for source in left])

    return over_units, of_reshape, of_permute


TABLE: dict[Primitive, tuple[Rule, ...]] = {
    reshape: (combine_reshape,),
    permute: (combine_permute, permute_of_broadcast),
    broadcast: (combine_broadcast,),
}
