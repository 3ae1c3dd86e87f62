"""How rows act on outer products. A rule gives None where the product itself is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from func.interpreters.compile.passes.low_rank.outer_products import Labels, OuterState, Product, Rule, Stack
from func.interpreters.core import PYTHON_SCALARS, Shape
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import divide, square
from func.interpreters.primitives.structural.shapes import permute, reduce_sum
from func.interpreters.program.program import Equation, Var


def each_part(state: OuterState, equation: Equation, x: Stack, rule: Rule, others: Sequence[Any] = ()) -> Any:
    """A rule on every part of a concatenation; parts that are plain variables get the row itself."""
    parts = []
    for k, part in enumerate(x.parts):
        operands = (part, *[other.parts[k] if type(other) is Stack else other for other in others])
        if any([type(one) is Product for one in operands]):
            made = rule(state, equation, operands)
        else:
            made = state.emit(equation.primitive, *operands, **equation.params)
        if made is None:
            return None
        parts.append(made)
    return Stack(parts, x.axis, x.shape, equation.outputs[0].dtype)


def both_factors(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Functions with f(u v) = f(u) f(v)."""
    x, *rest = operands
    if type(x) is Stack:
        return each_part(state, equation, x, both_factors, rest)
    if type(x) is not Product:
        return None
    values = []
    for factor in (x.x, x.y):
        if equation.primitive is square:
            values.append(state.times(factor.value, factor.value))
        else:
            values.append(state.emit(equation.primitive, factor.value, *rest, **equation.params))
    return x.with_factors(values[0], values[1], equation.outputs[0].dtype)


def whole_power(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Powers with a whole number as exponent."""
    exponent = operands[1]
    if type(exponent) not in (int, float) or exponent != int(exponent) or exponent < 1:
        return None
    return both_factors(state, equation, operands)


def to_float(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Conversions that lose nothing."""
    dtype = equation.outputs[0].dtype
    wider = dtype.kind in "fc" and dtype.itemsize >= operands[0].dtype.itemsize
    same = dtype.kind == operands[0].dtype.kind or dtype.kind == "c"
    return both_factors(state, equation, operands) if wider and same else None


def one_factor(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Functions that are linear: on the smaller factor."""
    (x,) = operands
    if type(x) is Stack:
        return each_part(state, equation, x, one_factor)
    left, right = x.x.value, x.y.value
    if left.size <= right.size:
        left = state.emit(equation.primitive, left, **equation.params)
    else:
        right = state.emit(equation.primitive, right, **equation.params)
    return x.with_factors(left, right, equation.outputs[0].dtype)


def times(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A product of two of the same form, or a scaling along axes of one factor."""
    x, y = operands
    if type(x) is Stack or type(y) is Stack:
        return _times_stack(state, equation, x, y)
    if type(x) is Product and type(y) is Product:
        return elementwise_product(state, x, y, equation.outputs[0].dtype)
    product, other = (x, y) if type(x) is Product else (y, x)
    return scaled(state, equation, product, other, type(x) is Product)


def _times_stack(state: OuterState, equation: Equation, x: Any, y: Any) -> Any:
    if type(x) is Stack and type(y) is Stack:
        alike = x.axis == y.axis and [p.shape for p in x.parts] == [p.shape for p in y.parts]
        return each_part(state, equation, x, times, (y,)) if alike else None
    stack, other = (x, y) if type(x) is Stack else (y, x)
    scalar = type(other) in PYTHON_SCALARS or (type(other) is Var and other.shape == ())
    return each_part(state, equation, stack, times, (other,)) if scalar else None


def quotient(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A scaling by the reciprocal."""
    x, y = operands
    if type(x) is Stack and (type(y) in PYTHON_SCALARS or (type(y) is Var and y.shape == ())):
        return each_part(state, equation, x, quotient, (y,))
    return scaled(state, equation, x, y, True) if type(x) is Product and not isinstance(y, (Product, Stack)) else None


def elementwise_product(state: OuterState, x: Product, y: Product, dtype: Any) -> Product | None:
    """The product of two products with the same labels."""
    if x.shape != y.shape:
        return None
    names: dict[int, int] = {}
    for group, other in zip(x.groups, y.groups, strict=True):
        if [x.sizes[a] for a in group] != [y.sizes[b] for b in other]:
            return None
        names.update(zip(other, group, strict=True))
    pairs = []
    sides = [(tuple([names[label] for label in side.labels]), side.value) for side in (y.x, y.y)]
    for own in (x.x, x.y):
        match = [value for labels, value in sides if set(labels) == set(own.labels)]
        order = [labels for labels, value in sides if set(labels) == set(own.labels)]
        if len(match) != 1:
            return None
        moved = tuple([order[0].index(label) for label in own.labels])
        value = match[0] if moved == tuple(range(len(moved))) else state.emit(permute, match[0], order=moved)
        pairs.append(state.times(own.value, value))
    product = x.with_factors(pairs[0], pairs[1], dtype)
    product.sources = x.sources | y.sources
    return product


def scaled(state: OuterState, equation: Equation, x: Product, other: Any, first: bool) -> Product | None:
    """x times (or over) a scalar or an array that varies along axes of one factor only."""
    shape: Shape = other.shape if type(other) is Var else ()
    if len(shape) > len(x.shape) or equation.outputs[0].shape != x.shape:
        return None
    groups = x.groups[len(x.groups) - len(shape) :]
    moving = [label for n, group in zip(shape, groups, strict=True) if n > 1 for label in group]
    sides = sorted((x.x, x.y), key=lambda side: side.value.size)
    for side in sides:
        if set(moving) <= set(side.labels):
            break
    else:
        return None
    if type(other) is Var and shape:
        other = _aligned(state, other, moving, side.labels, x.sizes)
    pair = (side.value, other) if first else (other, side.value)
    value = state.emit(equation.primitive, *pair)
    return x.with_factors(*((value, x.y.value) if side is x.x else (x.x.value, value)), equation.outputs[0].dtype)


def _aligned(state: OuterState, value: Var, moving: Sequence[int], labels: Labels, sizes: dict[int, int]) -> Any:
    """An array over some labels with one axis for every label of a factor."""
    split = state.reshaped(value, tuple([sizes[label] for label in moving]))
    order = sorted(range(len(moving)), key=lambda k: labels.index(moving[k]))
    split = state.permuted(split, order)
    return state.reshaped(split, tuple([sizes[label] if label in moving else 1 for label in labels]))


# --- shape ------------------------------------------------------------------------------------------------------


def regroup(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The same labels in other groups."""
    (x,), shape = operands, equation.outputs[0].shape
    if x.shape == shape:
        return x
    if type(x) is Stack:
        return None
    labels = [label for group in x.groups for label in group]
    groups = []
    for length in shape:
        group: list[int] = []
        while math.prod([x.sizes[label] for label in group]) < length and labels:
            group.append(labels.pop(0))
        if math.prod([x.sizes[label] for label in group]) != length:
            return None
        groups.append(tuple(group))
    return x.with_groups(groups)


def reorder(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Axes in another order."""
    (x,) = operands
    return x.with_groups([x.groups[k] for k in equation.params["order"]]) if type(x) is Product else None


def join(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Products beside each other."""
    out = equation.outputs[0]
    if any([type(x) is Stack or x.dtype != out.dtype for x in operands]):
        return None
    return Stack(operands, equation.params["axis"], out.shape, out.dtype)


# --- sums -------------------------------------------------------------------------------------------------------


def total(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The sum of a product, and that of a concatenation part by part."""
    out = equation.outputs[0]
    if equation.params.get("dtype") not in (None, operands[0].dtype):
        return None
    return summed(state, operands[0], equation.params["axes"], out.shape)


def summed(state: OuterState, x: Any, axes: Sequence[int], shape: Shape) -> Any:
    """The sum of a product or concatenation over axes, in a shape."""
    if type(x) is Product:
        return state.summed(x, axes, shape)
    if x.axis not in axes:
        return None
    result = None
    for part in x.parts:
        if type(part) is Product:
            one = state.summed(part, axes, shape)
        else:
            one = state.reshaped(state.emit(reduce_sum, part, axes=tuple(axes)), shape)
        result = one if result is None else state.emit(add, result, one)
    return result


def average(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A sum over a number."""
    result = total(state, equation, operands)
    count = math.prod([operands[0].shape[axis] for axis in equation.params["axes"]])
    return None if result is None else state.emit(divide, result, count)


def inner(state: OuterState, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A contraction of two products with all their axes in common: an elementwise product, then a sum."""
    x, y = operands
    labels = equation.params["spec"]
    out = equation.outputs[0]
    if labels.x != labels.y or [label for label in labels.x if label in labels.out] != list(labels.out):
        return None
    if type(x) is Product and type(y) is Product:
        squared: Any = elementwise_product(state, x, y, out.dtype)
    elif type(x) is Stack and type(y) is Stack and x.axis == y.axis:
        squared = _products(state, x, y, out.dtype)
    else:
        return None
    axes = [axis for axis, label in enumerate(labels.x) if label not in labels.out]
    return None if squared is None else summed(state, squared, axes, out.shape)


def _products(state: OuterState, x: Stack, y: Stack, dtype: Any) -> Stack | None:
    parts: list[Any] = []
    for one, two in zip(x.parts, y.parts, strict=False):
        if type(one) is not type(two) or one.shape != two.shape:
            return None
        made = elementwise_product(state, one, two, dtype) if type(one) is Product else state.emit(multiply, one, two)
        if made is None:
            return None
        parts.append(made)
    return Stack(parts, x.axis, x.shape, dtype)


RULES: dict[str, Rule] = {
    "square": both_factors,
    "absolute": both_factors,
    "conjugate": both_factors,
    "power": whole_power,
    "convert": to_float,
    "negative": one_factor,
    "multiply": times,
    "divide": quotient,
    "reshape": regroup,
    "permute": reorder,
    "concatenate": join,
    "sum": total,
    "mean": average,
    "contract": inner,
}
"""By row: (state, equation, operands) -> a Product, a Stack or a variable, or None."""
