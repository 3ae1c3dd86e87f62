"""Low-rank structure: sums over outer products as products of sums, Σᵢⱼ (uᵢ vⱼ)² = Σᵢ uᵢ² · Σⱼ vⱼ².

A contraction that sums nothing, like the gradient of a weight matrix for each sample of a batch, is a pair of factors.
It stays one through the primitives with a rule here:

    f(u v) = f(u) f(v) for squares, powers and absolute values,    (u v) y = (u y) v,    (u v)(u' v') = (u u')(v v').

A sum over it becomes a contraction of the factors. Where some equation needs the product as an array, it is computed as
in the source program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.compile.passes import LEAST_OUTER_PRODUCT
from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.core import PYTHON_SCALARS, Shape, Shaped
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import divide, square
from func.interpreters.primitives.structural.contraction import Labels, contract, spec
from func.interpreters.primitives.structural.shapes import convert, reduce_sum
from func.interpreters.program.program import Equation, Program, Var


class OuterFactor(NamedTuple):
    """A factor of an outer product: a variable with one axis per label."""

    value: Any
    labels: Labels


class OuterProduct(Shaped):
    """x · y, broadcast over the labels of both; an axis of the product runs over the labels of its group in C order.

    `sources` are the variables of the program whose definitions the product replaces.
    """

    __slots__ = ("groups", "sizes", "sources", "x", "y")

    def __init__(
        self,
        x: OuterFactor,
        y: OuterFactor,
        groups: Sequence[Labels],
        sizes: dict[int, int],
        dtype: np.dtype[Any],
        sources: frozenset[Var],
    ) -> None:
        self.x = x
        self.y = y
        self.groups = tuple(groups)
        self.sizes = sizes
        self.shape = tuple([math.prod([sizes[label] for label in group]) for group in groups])
        self.dtype = dtype
        self.sources = sources

    def with_factors(self, x: Any, y: Any, dtype: np.dtype[Any]) -> OuterProduct:
        """The product with other values of the factors."""
        return OuterProduct(
            OuterFactor(x, self.x.labels), OuterFactor(y, self.y.labels), self.groups, self.sizes, dtype, self.sources
        )

    def with_groups(self, groups: Sequence[Labels]) -> OuterProduct:
        """The product in another shape."""
        return OuterProduct(self.x, self.y, groups, self.sizes, self.dtype, self.sources)


class Stack(Shaped):
    """A concatenation of outer products and variables along an axis."""

    __slots__ = ("axis", "pieces")

    def __init__(self, pieces: Sequence[Any], axis: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.pieces = tuple(pieces)
        self.axis = axis
        self.shape = shape
        self.dtype = dtype

    @property
    def sources(self) -> frozenset[Var]:
        """The sources of the pieces."""
        return frozenset().union(*[piece.sources for piece in self.pieces if type(piece) is OuterProduct])


class ProductBuilder(EquationBuilder):
    """Builds the program of one attempt; `needed` collects the outer products that some equation needs as arrays."""

    def __init__(self, source: Program) -> None:
        super().__init__(source)
        self.needed: set[Var] = set()
        self.changed = False
        self._pairs: dict[Any, tuple[Any, Any]] = {}

    def start(self, equation: Equation, operands: Sequence[Any]) -> OuterProduct:
        """The product of an equation as two factors, which are arrays: a product of products needs these."""
        x, y = map(self.require, operands, equation.inputs)
        out = equation.outputs[0]
        if equation.primitive is contract:
            labels = equation.params["spec"]
            sides = [(x, labels.x), (y, labels.y)]
            order = labels.out
        else:
            order = tuple(range(len(out.shape)))
            sides = [(x, order), (y, order)]
        sizes = dict(zip(order, out.shape, strict=True))
        factors = []
        for value, own in sides:
            long = tuple([label for label, n in zip(own, value.shape, strict=True) if n > 1])
            value = value if value.dtype == out.dtype else self.emit(convert, value, dtype=out.dtype)
            factors.append(OuterFactor(self.reshape(value, tuple([sizes[label] for label in long])), long))
        groups = [(label,) if sizes[label] > 1 else () for label in order]
        return OuterProduct(factors[0], factors[1], groups, sizes, out.dtype, frozenset([out]))

    def require(self, x: Any, var: Any) -> Any:
        """The variable for an operand; where this is a product, its sources are needed and the attempt is void."""
        if isinstance(x, (OuterProduct, Stack)):
            self.needed |= x.sources
            return var
        return x

    def times(self, x: Any, y: Any) -> Any:
        """x · y; its sum will be the contraction of x and y."""
        out = self.emit(multiply, x, y)
        self._pairs[out] = (x, y)
        return out

    def _sum_factor(self, value: Any, labels: Labels, axes: Sequence[int]) -> Any:
        """The sum of a factor over some of its axes."""
        if not axes:
            return value
        if value in self._pairs:
            rest = tuple([label for axis, label in enumerate(labels) if axis not in axes])
            return self.emit(contract, *self._pairs[value], spec=spec(labels, labels, rest))
        return self.emit(reduce_sum, value, axes=tuple(axes))

    def sum_product(self, x: OuterProduct, axes: Sequence[int], shape: Shape) -> Any:
        """Σ x y: sum each factor over the labels that it alone has, then contract the factors over the rest."""
        summed = {label for axis in axes for label in x.groups[axis]}
        values, labels = [], []
        for own, other in ((x.x, x.y), (x.y, x.x)):
            alone = [k for k, label in enumerate(own.labels) if label in summed and label not in other.labels]
            values.append(self._sum_factor(own.value, own.labels, alone))
            labels.append(tuple([label for k, label in enumerate(own.labels) if k not in alone]))
        out = tuple([label for axis, group in enumerate(x.groups) if axis not in axes for label in group])
        self.changed = True
        if labels[0] == labels[1] == out:
            return self.reshape(self.emit(multiply, *values), shape)
        return self.reshape(self.emit(contract, *values, spec=spec(labels[0], labels[1], out)), shape)


Rule: TypeAlias = Callable[[ProductBuilder, Equation, tuple[Any, ...]], Any]
"""rule(builder, equation, operands) returns a product, a stack or a variable, or None where it needs the array."""


def map_pieces(builder: ProductBuilder, equation: Equation, x: Stack, rule: Rule, others: Sequence[Any] = ()) -> Any:
    """Apply a rule to the products among the pieces, and the primitive itself to the other pieces."""
    pieces = []
    for k, piece in enumerate(x.pieces):
        operands = (piece, *[other.pieces[k] if type(other) is Stack else other for other in others])
        if any([type(operand) is OuterProduct for operand in operands]):
            result = rule(builder, equation, operands)
        else:
            result = builder.emit(equation.primitive, *operands, **equation.params)
        if result is None:
            return None
        pieces.append(result)
    return Stack(pieces, x.axis, x.shape, equation.outputs[0].dtype)


def map_factors(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """f(u v) = f(u) f(v)."""
    x, *rest = operands
    if type(x) is Stack:
        return map_pieces(builder, equation, x, map_factors, rest)
    if type(x) is not OuterProduct:
        return None
    values = []
    for factor in (x.x, x.y):
        if equation.primitive is square:
            values.append(builder.times(factor.value, factor.value))
        else:
            values.append(builder.emit(equation.primitive, factor.value, *rest, **equation.params))
    return x.with_factors(values[0], values[1], equation.outputs[0].dtype)


def integer_power(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """(u v) ** n = u ** n · v ** n for positive integers n."""
    exponent = operands[1]
    if type(exponent) not in (int, float) or exponent != int(exponent) or exponent < 1:
        return None
    return map_factors(builder, equation, operands)


def lossless_conversion(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A conversion of both factors, where it is exact."""
    dtype = equation.outputs[0].dtype
    wider = dtype.kind in "fc" and dtype.itemsize >= operands[0].dtype.itemsize
    is_same_kind = dtype.kind == operands[0].dtype.kind or dtype.kind == "c"
    return map_factors(builder, equation, operands) if wider and is_same_kind else None


def map_smaller_factor(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """f(u v) = f(u) v or u f(v) for linear f, whichever factor is smaller."""
    (x,) = operands
    if type(x) is Stack:
        return map_pieces(builder, equation, x, map_smaller_factor)
    left, right = x.x.value, x.y.value
    if left.size <= right.size:
        left = builder.emit(equation.primitive, left, **equation.params)
    else:
        right = builder.emit(equation.primitive, right, **equation.params)
    return x.with_factors(left, right, equation.outputs[0].dtype)


def times(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A product of two outer products, or a scaling of one factor."""
    x, y = operands
    if type(x) is Stack or type(y) is Stack:
        return _times_stack(builder, equation, x, y)
    if type(x) is OuterProduct and type(y) is OuterProduct:
        return elementwise_product(builder, x, y, equation.outputs[0].dtype)
    product, other = (x, y) if type(x) is OuterProduct else (y, x)
    return scale_factor(builder, equation, product, other, type(x) is OuterProduct)


def _times_stack(builder: ProductBuilder, equation: Equation, x: Any, y: Any) -> Any:
    if type(x) is Stack and type(y) is Stack:
        are_aligned = x.axis == y.axis and [p.shape for p in x.pieces] == [p.shape for p in y.pieces]
        return map_pieces(builder, equation, x, times, (y,)) if are_aligned else None
    stack, other = (x, y) if type(x) is Stack else (y, x)
    return map_pieces(builder, equation, stack, times, (other,)) if _is_scalar(other) else None


def _is_scalar(x: Any) -> bool:
    return type(x) in PYTHON_SCALARS or (type(x) is Var and x.shape == ())


def quotient(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """(u v) / y = (u / y) v."""
    x, y = operands
    if type(x) is Stack and _is_scalar(y):
        return map_pieces(builder, equation, x, quotient, (y,))
    if type(x) is not OuterProduct or isinstance(y, (OuterProduct, Stack)):
        return None
    return scale_factor(builder, equation, x, y, True)


def elementwise_product(builder: ProductBuilder, x: OuterProduct, y: OuterProduct, dtype: Any) -> OuterProduct | None:
    """(u v)(u' v') = (u u')(v v'), where the factors have the same labels pairwise."""
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
        matches = [(labels, value) for labels, value in sides if set(labels) == set(own.labels)]
        if len(matches) != 1:
            return None
        ((labels, value),) = matches
        pairs.append(builder.times(own.value, builder.permute(value, [labels.index(label) for label in own.labels])))
    product = x.with_factors(pairs[0], pairs[1], dtype)
    product.sources = x.sources | y.sources
    return product


def scale_factor(
    builder: ProductBuilder, equation: Equation, x: OuterProduct, other: Any, first: bool
) -> OuterProduct | None:
    """(u v) · y = (u y) v or u (v y), or a quotient, where y is a scalar or varies along the labels of one factor."""
    shape: Shape = other.shape if type(other) is Var else ()
    if len(shape) > len(x.shape) or equation.outputs[0].shape != x.shape:
        return None
    groups = x.groups[len(x.groups) - len(shape) :]
    varying = [label for n, group in zip(shape, groups, strict=True) if n > 1 for label in group]
    sides = sorted((x.x, x.y), key=lambda side: side.value.size)
    for side in sides:
        if set(varying) <= set(side.labels):
            break
    else:
        return None
    if type(other) is Var and shape:
        other = _align_to_factor(builder, other, varying, side.labels, x.sizes)
    pair = (side.value, other) if first else (other, side.value)
    value = builder.emit(equation.primitive, *pair)
    return x.with_factors(*((value, x.y.value) if side is x.x else (x.x.value, value)), equation.outputs[0].dtype)


def _align_to_factor(
    builder: ProductBuilder, value: Var, varying: Sequence[int], labels: Labels, sizes: dict[int, int]
) -> Any:
    """An array over the labels `varying` with one axis for each label of a factor."""
    split = builder.reshape(value, tuple([sizes[label] for label in varying]))
    order = sorted(range(len(varying)), key=lambda k: labels.index(varying[k]))
    split = builder.permute(split, order)
    return builder.reshape(split, tuple([sizes[label] if label in varying else 1 for label in labels]))


def reshape_product(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The same labels in other groups, where the new axes do not split a label."""
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


def permute_product(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The groups in another order."""
    (x,) = operands
    return x.with_groups([x.groups[k] for k in equation.params["order"]]) if type(x) is OuterProduct else None


def concatenate_products(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A concatenation of products as a stack."""
    out = equation.outputs[0]
    if any([type(x) is Stack or x.dtype != out.dtype for x in operands]):
        return None
    return Stack(operands, equation.params["axis"], out.shape, out.dtype)


def total(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The sum of a product or of a stack."""
    out = equation.outputs[0]
    if equation.params.get("dtype") not in (None, operands[0].dtype):
        return None
    return sum_axes(builder, operands[0], equation.params["axes"], out.shape)


def sum_axes(builder: ProductBuilder, x: Any, axes: Sequence[int], shape: Shape) -> Any:
    """The sum of a product or stack over axes, in a shape; None for a stack whose axis is not summed."""
    if type(x) is OuterProduct:
        return builder.sum_product(x, axes, shape)
    if x.axis not in axes:
        return None
    result = None
    for piece in x.pieces:
        if type(piece) is OuterProduct:
            term = builder.sum_product(piece, axes, shape)
        else:
            term = builder.reshape(builder.emit(reduce_sum, piece, axes=tuple(axes)), shape)
        result = term if result is None else builder.emit(add, result, term)
    return result


def average(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """mean(x) = Σ x / n."""
    result = total(builder, equation, operands)
    count = math.prod([operands[0].shape[axis] for axis in equation.params["axes"]])
    return None if result is None else builder.emit(divide, result, count)


def inner_product(builder: ProductBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """A contraction with all labels in common is the sum of the elementwise product."""
    x, y = operands
    labels = equation.params["spec"]
    out = equation.outputs[0]
    if labels.x != labels.y or [label for label in labels.x if label in labels.out] != list(labels.out):
        return None
    if type(x) is OuterProduct and type(y) is OuterProduct:
        product: Any = elementwise_product(builder, x, y, out.dtype)
    elif type(x) is Stack and type(y) is Stack and x.axis == y.axis:
        product = _multiply_stacks(builder, x, y, out.dtype)
    else:
        return None
    axes = [axis for axis, label in enumerate(labels.x) if label not in labels.out]
    return None if product is None else sum_axes(builder, product, axes, out.shape)


def _multiply_stacks(builder: ProductBuilder, x: Stack, y: Stack, dtype: Any) -> Stack | None:
    pieces: list[Any] = []
    for left, right in zip(x.pieces, y.pieces, strict=False):
        if type(left) is not type(right) or left.shape != right.shape:
            return None
        is_product = type(left) is OuterProduct
        piece = elementwise_product(builder, left, right, dtype) if is_product else builder.emit(multiply, left, right)
        if piece is None:
            return None
        pieces.append(piece)
    return Stack(pieces, x.axis, x.shape, dtype)


RULES: dict[str, Rule] = {
    "square": map_factors,
    "absolute": map_factors,
    "conjugate": map_factors,
    "power": integer_power,
    "convert": lossless_conversion,
    "negative": map_smaller_factor,
    "multiply": times,
    "divide": quotient,
    "reshape": reshape_product,
    "permute": permute_product,
    "concatenate": concatenate_products,
    "sum": total,
    "mean": average,
    "contract": inner_product,
}
"""The rules by the names of primitives."""


def exploit_outer_products(program: Program) -> Program:
    """Leave out outer products whose sums alone are needed."""
    starts = {equation.outputs[0] for equation in program.equations if _is_outer_product(equation)}
    while starts:
        builder = ProductBuilder(program)
        rewritten = builder.interpret({}, functools.partial(_apply_rule, builder, starts), builder.require)
        if not builder.needed:
            return rewritten if builder.changed else program
        starts -= builder.needed
    return program


def _is_outer_product(equation: Equation) -> bool:
    """True for a large product without sums in which each operand has axes that the other has not."""
    if equation.primitive is not contract and equation.primitive is not multiply:
        return False
    out = equation.outputs[0]
    x, y = equation.inputs
    if type(x) is not Var or type(y) is not Var or out.size < LEAST_OUTER_PRODUCT or out.dtype.kind not in "fc":
        return False
    if equation.primitive is contract:
        labels = equation.params["spec"]
        own = [set(labels.x) - set(labels.y), set(labels.y) - set(labels.x)]
        return all(own) and {*labels.x, *labels.y} == set(labels.out) and max(x.size, y.size) < out.size
    return max(x.size, y.size) < out.size and len(x.shape) == len(y.shape)


def _apply_rule(builder: ProductBuilder, starts: set[Var], equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The result of an equation that is a start, or has a rule and a product as an operand; None for others."""
    out = equation.outputs[0] if equation.outputs else None
    if out in starts:
        return builder.start(equation, operands)
    rule = RULES.get(equation.primitive.name)
    if rule is None or not any([isinstance(x, (OuterProduct, Stack)) for x in operands]):
        return None
    result = rule(builder, equation, operands)
    is_typed = type(result) is not Var or result.dtype == equation.outputs[0].dtype
    return result if is_typed else builder.emit(convert, result, dtype=equation.outputs[0].dtype)
