"""Outer products as pairs of factors, concatenations of them, and the builder with the operations on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.core import Shape, Shaped
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import convert, reduce_sum
from func.interpreters.program.program import Equation, Program, Var

MIN_SIZE = 1024
"""Smaller products are faster multiplied out."""

Labels: TypeAlias = tuple[int, ...]


class Factor:
    """A factor of an outer product: a variable with one axis per label."""

    __slots__ = ("labels", "value")

    def __init__(self, value: Any, labels: Labels) -> None:
        self.value = value
        self.labels = labels


class OuterProduct(Shaped):
    """x · y, broadcast over the labels of both; an axis of the product runs over the labels of its group in C order.

    `sources` are the variables of the program whose definitions the product replaces.
    """

    __slots__ = ("groups", "sizes", "sources", "x", "y")

    def __init__(
        self,
        x: Factor,
        y: Factor,
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
            Factor(x, self.x.labels), Factor(y, self.y.labels), self.groups, self.sizes, dtype, self.sources
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

    def start(self, equation: Equation) -> OuterProduct:
        """The product of an equation as two factors."""
        x, y = equation.inputs
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
            factors.append(Factor(self.reshape(value, tuple([sizes[label] for label in long])), long))
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
