"""Outer products that are not multiplied out, and concatenations of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import Emitter
from func.interpreters.core import Shape, Shaped
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import convert, reduce_sum
from func.interpreters.program.program import Equation, Program, Var

SMALLEST = 1024
"""Products of fewer elements are faster multiplied out."""

Labels: TypeAlias = tuple[int, ...]


class Factor:
    """An operand of a product: a variable with one axis per label."""

    __slots__ = ("labels", "value")

    def __init__(self, value: Any, labels: Labels) -> None:
        self.value = value
        self.labels = labels


class Product(Shaped):
    """x · y, whose axes run over the labels in `groups`: several in an axis that was reshaped from several."""

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

    def with_factors(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Product:
        """The same labels with other values."""
        return Product(Factor(x, self.x.labels), Factor(y, self.y.labels), self.groups, self.sizes, dtype, self.sources)

    def with_groups(self, groups: Sequence[Labels]) -> Product:
        """The same factors in another shape."""
        return Product(self.x, self.y, groups, self.sizes, self.dtype, self.sources)


class Stack(Shaped):
    """A concatenation of products and variables along an axis."""

    __slots__ = ("axis", "parts")

    def __init__(self, parts: Sequence[Any], axis: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.parts = tuple(parts)
        self.axis = axis
        self.shape = shape
        self.dtype = dtype

    @property
    def sources(self) -> frozenset[Var]:
        """The products that it is made of."""
        return frozenset().union(*[part.sources for part in self.parts if type(part) is Product])


class OuterState(Emitter):
    """What one attempt finds: the starts whose product is needed after all, and whether a sum was rewritten."""

    def __init__(self, source: Program, starts: set[Var]) -> None:
        super().__init__(source)
        self.starts = starts
        self.needed: set[Var] = set()
        self.fired = False
        self._pairs: dict[Any, tuple[Any, Any]] = {}

    def start(self, equation: Equation) -> Product:
        """An outer product, as two factors."""
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
            kept = tuple([label for label, n in zip(own, value.shape, strict=True) if n > 1])
            value = value if value.dtype == out.dtype else self.emit(convert, value, dtype=out.dtype)
            factors.append(Factor(self.reshaped(value, tuple([sizes[label] for label in kept])), kept))
        groups = [(label,) if sizes[label] > 1 else () for label in order]
        return Product(factors[0], factors[1], groups, sizes, out.dtype, frozenset([out]))

    def demand(self, x: Any, var: Any) -> Any:
        """The variable itself; a product is then needed, and this attempt is void."""
        if isinstance(x, (Product, Stack)):
            self.needed |= x.sources
            return var
        return x

    def times(self, x: Any, y: Any) -> Any:
        """x · y, of which a sum will be a contraction."""
        out = self.emit(multiply, x, y)
        self._pairs[out] = (x, y)
        return out

    def _alone(self, value: Any, labels: Labels, gone: Sequence[int]) -> Any:
        """The sum of a factor over some of its axes."""
        if not gone:
            return value
        if value in self._pairs:
            kept = tuple([label for k, label in enumerate(labels) if k not in gone])
            return self.emit(contract, *self._pairs[value], spec=spec(labels, labels, kept))
        return self.emit(reduce_sum, value, axes=tuple(gone))

    def summed(self, x: Product, axes: Sequence[int], shape: Shape) -> Any:
        """The sum over axes: each factor over the labels of its own, then both together."""
        gone = {label for axis in axes for label in x.groups[axis]}
        values, labels = [], []
        for own, other in ((x.x, x.y), (x.y, x.x)):
            alone = [k for k, label in enumerate(own.labels) if label in gone and label not in other.labels]
            values.append(self._alone(own.value, own.labels, alone))
            labels.append(tuple([label for k, label in enumerate(own.labels) if k not in alone]))
        out = tuple([label for axis, group in enumerate(x.groups) if axis not in axes for label in group])
        self.fired = True
        if labels[0] == labels[1] == out:
            return self.reshaped(self.emit(multiply, *values), shape)
        return self.reshaped(self.emit(contract, *values, spec=spec(labels[0], labels[1], out)), shape)


Rule: TypeAlias = Callable[[OuterState, Equation, tuple[Any, ...]], Any]
