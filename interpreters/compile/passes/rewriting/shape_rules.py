"""Rules for shapes: what only moves axes is joined, sunk below the arithmetic, and left out where nothing is moved."""

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


# --- reshape, permute, broadcast --------------------------------------------------------------------------------


def reshape_again(rw: Rewriter, out: Var, x: Any, *, shape: Shape) -> Any:
    """To the same shape; a reshape of a reshape; one of an array to which only axes of length one are new."""
    if shape_of(x) == shape:
        return x
    inner = rw.inside(x, reshape)
    if inner is not None:
        return rw.reshaped(inner, shape)
    for primitive in (broadcast, permute):
        inner = rw.inside(x, primitive)
        if type(inner) is Var and only_units_move(inner.shape, rw.made[x], x.shape):
            return rw.reshaped(inner, shape)
    return None


def only_units_move(inner: Shape, equation: Any, outer: Shape) -> bool:
    """True where a broadcast or permutation does what a reshape could do."""
    if equation.primitive is broadcast:
        return math.prod(inner) == math.prod(outer) and without_units(inner) == without_units(outer)
    order = [axis for axis in equation.params["order"] if inner[axis] != 1]
    return order == sorted(order)


def permute_again(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """The identity, and a permutation of a permutation."""
    if order == tuple(range(len(order))):
        return x
    inner = rw.maker(x, permute)
    if inner is not None:
        return rw.permuted(inner.inputs[0], [inner.params["order"][axis] for axis in order])
    moving = [axis for axis in order if x.shape[axis] != 1]
    return rw.reshaped(x, out.shape) if moving == sorted(moving) else None


def permuted_broadcast(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """A permutation of a broadcast is the broadcast of a permutation."""
    inner = rw.inside(x, broadcast)
    if type(inner) is not Var:
        return None
    aligned = rw.reshaped(inner, (1,) * (len(order) - len(inner.shape)) + inner.shape)
    return rw.emit(broadcast, rw.permuted(aligned, order), shape=out.shape)


def broadcast_again(rw: Rewriter, out: Var, x: Any, *, shape: Shape) -> Any:
    """To the same shape; a broadcast of a broadcast; of an array whose leading axes of length one were just added."""
    if shape_of(x) == shape:
        return x
    inner = rw.inside(x, broadcast)
    if inner is not None:
        return rw.emit(broadcast, inner, shape=shape)
    inner = rw.inside(x, reshape)
    if type(inner) is Var and (1,) * (len(x.shape) - len(inner.shape)) + inner.shape == x.shape:
        return rw.emit(broadcast, inner, shape=shape)
    return None


# --- below elementwise rows -------------------------------------------------------------------------------------


def elementwise_rules(primitive: Primitive) -> tuple[Rule, ...]:
    """What holds for every elementwise row."""

    def moved_operands(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """One of the rules below, if an operand was only moved."""
        rows = {equation.primitive for equation in map(rw.made.get, inputs) if equation is not None}
        for moved, rule in rules.items():
            found = rule(rw, out, *inputs, **params) if moved in rows else None
            if found is not None:
                return found
        return None

    def small_operands(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """NumPy broadcasts by itself; where all operands are broadcast, the result is, and not the operands."""
        inner = [rw.inside(x, broadcast) for x in inputs]
        small = [y if type(y) is Var else x for x, y in zip(inputs, inner, strict=True)]
        shape = np.broadcast_shapes(*[shape_of(x) for x in small])
        if shape == out.shape:
            return rw.emit(primitive, *small, **params)
        if math.prod(shape) < out.size:
            return rw.emit(broadcast, rw.emit(primitive, *small, **params), shape=out.shape)
        return one_stays(rw, out, inputs, small, params)

    def one_stays(rw: Rewriter, out: Var, inputs: Sequence[Any], small: Sequence[Any], params: Params) -> Any:
        """Leave out the broadcasts that the others make up for."""
        kept = list(inputs)
        for place, x in enumerate(small):
            given = [*kept[:place], x, *kept[place + 1 :]]
            if np.broadcast_shapes(*[shape_of(one) for one in given]) == out.shape:
                kept = given
        return (
            rw.emit(primitive, *kept, **params)
            if any([x is not y for x, y in zip(kept, inputs, strict=True)])
            else None
        )

    def below_reshape(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """f(reshape x, reshape y) = reshape f(x, y)."""
        inner = [rw.inside(x, reshape) if type(x) is Var and x.shape else x for x in inputs]
        if any([x is None for x in inner]):
            return below_units(rw, out, *inputs, **params)
        shapes = {x.shape for x, y in zip(inner, inputs, strict=True) if x is not y}
        if len(shapes) != 1 or any([x is not y and y.shape != out.shape for x, y in zip(inner, inputs, strict=True)]):
            return below_units(rw, out, *inputs, **params)
        return rw.reshaped(rw.emit(primitive, *inner, **params), out.shape)

    def below_units(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """Axes of length one that reshapes have put in are put in later."""
        if 1 not in out.shape:
            return None
        without = [_without_unit_axes(rw, x, out.shape) for x in inputs]
        return None if None in without else rw.reshaped(rw.emit(primitive, *without, **params), out.shape)

    def below_permute(rw: Rewriter, out: Var, *inputs: Any, **params: Any) -> Any:
        """f(xᵀ, yᵀ) = f(x, y)ᵀ."""
        orders = set()
        inner = []
        for x in inputs:
            if type(x) is not Var or not x.shape:
                inner.append(x)
                continue
            equation = rw.maker(x, permute)
            if equation is None:
                return None
            orders.add(equation.params["order"])
            inner.append(equation.inputs[0])
        if len(orders) != 1:
            return None
        (order,) = orders
        return rw.permuted(rw.emit(primitive, *inner, **params), order)

    rules: dict[Primitive, Rule] = {broadcast: small_operands, reshape: below_reshape, permute: below_permute}
    return (moved_operands,)


def _without_unit_axes(rw: Rewriter, x: Any, shape: Shape) -> Any:
    """x without the axes that are of length one in a shape that it broadcasts to; None where that takes work."""
    if type(x) is not Var or not x.shape:
        return x
    aligned = shape[len(shape) - len(x.shape) :]
    kept = tuple([length for length, full in zip(x.shape, aligned, strict=True) if full != 1])
    if kept == x.shape:
        return x
    return rw.reshaped(x, kept) if rw.maker(x, reshape) is not None or rw.value(x) is not None else None


# --- below reductions -------------------------------------------------------------------------------------------


def reduction_rules(primitive: Primitive) -> tuple[Rule, ...]:
    """What holds for every reduction whose value does not depend on the order of its elements."""

    def of_reshape(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """A reduction of an array to which axes of length one were added."""
        inner = rw.inside(x, reshape)
        if type(inner) is not Var or without_units(inner.shape) != without_units(x.shape):
            return None
        long = [axis for axis, length in enumerate(inner.shape) if length != 1]
        places = dict(zip([axis for axis, length in enumerate(x.shape) if length != 1], long, strict=True))
        moved = tuple([places[axis] for axis in axes if axis in places])
        return rw.reshaped(rw.emit(primitive, inner, axes=moved, **params), out.shape)

    def over_units(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """Over axes of length one, or none: a reshape."""
        return rw.reshaped(x, out.shape) if all([x.shape[axis] == 1 for axis in axes]) else None

    def of_permute(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        """A reduction of a permutation: of the array itself, and a permutation of what is left."""
        equation = rw.maker(x, permute)
        if equation is None:
            return None
        (inner,), order = equation.inputs, equation.params["order"]
        reduced = rw.emit(primitive, inner, axes=tuple(sorted([order[axis] for axis in axes])), **params)
        left = [source for axis, source in enumerate(order) if axis not in axes]
        return rw.permuted(reduced, [sorted(left).index(source) for source in left])

    return over_units, of_reshape, of_permute


TABLE: dict[Primitive, tuple[Rule, ...]] = {
    reshape: (reshape_again,),
    permute: (permute_again, permuted_broadcast),
    broadcast: (broadcast_again,),
}
