"""Sums of diagonal terms in place of variables, and the builder with the operations on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.compile.passes.index_arithmetic import run
from func.interpreters.compile.passes.sparsity.diagonal_terms import (
    Axis,
    GiveUp,
    SplitLabel,
    Term,
    is_injective,
    reshape_axes,
    split_axis,
    whole_order,
)
from func.interpreters.core import Shape, Shaped
from func.interpreters.primitives.structural.diagonals import place, take
from func.interpreters.primitives.structural.shapes import broadcast, convert, permute
from func.interpreters.program.program import Program, Var

MOST_TERMS = 12
"""A value of more terms is written as a dense array."""
FEW_TERMS = 3
"""A small value of more terms is written too: each equation takes about the same time for it."""


class DiagonalSum(Shaped):
    """An array as a sum of terms; `dense` is the variable that holds it, once it is written."""

    __slots__ = ("dense", "terms")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], terms: Sequence[Term], dense: Var | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.terms = tuple(terms)
        self.dense = dense

    def order(self) -> tuple[int, ...] | None:
        """The order of labels in which the value of a single term is the whole array; None where it is not."""
        return whole_order(*self.terms[0][1:], self.shape) if len(self.terms) == 1 else None


class DiagonalBuilder(EquationBuilder):
    """Builds the equations on dense values and on the values of terms."""

    def __init__(self, source: Program) -> None:
        super().__init__(source)
        self._zero: dict[Var, bool] = {}

    def constant_sum(self, var: Var, terms: Sequence[tuple[Any, Shape, tuple[Axis, ...]]]) -> DiagonalSum:
        """A constant of the program as a sum of terms."""
        result = []
        for values, sizes, axes in terms:
            first = values.flat[0]
            value = first.item() if np.all(values == first) else self.constant(np.ascontiguousarray(values))
            result.append(Term(value, sizes, axes))
        return DiagonalSum(var.shape, var.dtype, result, var)

    def is_zero(self, x: Any) -> bool:
        """True for zero scalars, constants of zeros and sums without terms."""
        if type(x) is DiagonalSum:
            return not x.terms
        if type(x) is not Var:
            return bool(x == 0)
        if x not in self._zero:
            value = self.constants.get(x)
            self._zero[x] = type(value) is np.ndarray and not np.any(value)
        return self._zero[x]

    def accept(self, out: Var, result: Any) -> Any:
        """The result of a rule in the dtype of the output; dense where that is no larger than the terms."""
        if type(result) is not DiagonalSum:
            assert (result.shape, result.dtype) == (out.shape, out.dtype)
            return result
        terms = [Term(self.as_dtype(term.value, out.dtype), *term[1:]) for term in result.terms]
        if not all([is_injective(term.sizes, term.axes) for term in terms]):
            raise GiveUp
        result = DiagonalSum(out.shape, out.dtype, terms)
        order = result.order()
        if order is not None:
            return self.to_dense(result) if order == tuple(range(len(order))) else result
        size = math.prod(out.shape)
        large = sum([term.size for term in terms]) >= size
        return self.to_dense(result) if large or len(terms) > min(MOST_TERMS, FEW_TERMS + size // 2048) else result

    def as_dtype(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """A term's value in a dtype."""
        if type(value) is not Var:
            return np.asarray(value).astype(dtype).item()
        return value if value.dtype == dtype else self.emit(convert, value, dtype=dtype)

    def to_dense(self, x: Any) -> Any:
        """The variable or scalar that holds a value."""
        if type(x) is not DiagonalSum:
            return x
        if x.dense is None:
            x.dense = self._write_dense(x)
        return x.dense

    def _write_dense(self, x: DiagonalSum) -> Any:
        order = x.order()
        if order is not None:
            (term,) = x.terms
            full = self.emit(broadcast, self.as_variable(term.value, x.dtype), shape=term.sizes)
            return self.reshape(self.permute(full, order), x.shape)
        if not x.terms:
            return self.emit(broadcast, self.constant(np.zeros((), x.dtype)), shape=x.shape)
        placements = tuple([term.placement(x.shape) for term in x.terms])
        values = [term.value for term in x.terms]
        return self.emit(place, *values, shape=x.shape, dtype=x.dtype, placements=placements)

    def as_variable(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """A term's value as a variable."""
        return value if type(value) is Var else self.constant(np.asarray(value, dtype))

    def slice_label(self, value: Any, sizes: Shape, label: int, start: int, step: int, count: int) -> Any:
        """A term's value with a label restricted to start + step · i."""
        if type(value) is not Var or not value.shape or value.shape[label] == 1 or label < 0:
            return value
        entries = [run(start, step, count) if k == label else (0, n, 1) for k, n in enumerate(value.shape)]
        return self.slice(value, tuple(entries))

    def read(self, x: Any, axes: Sequence[Axis], sizes: Shape) -> Any:
        """The elements of a dense value at the positions of a term, with one axis per label."""
        if type(x) is not Var or not x.shape:
            return x
        while (equation := self.definition(x, permute)) is not None:
            (x,), order = equation.inputs, equation.params["order"]
            by_source = dict(zip(order, axes, strict=True))
            axes = [by_source[axis] for axis in range(len(order))]
        used = [axis.uses(sizes) if n > 1 else [] for n, axis in zip(x.shape, axes, strict=True)]
        labels = [label for axis_labels in used for label in axis_labels]
        if len(labels) != len(set(labels)) or any([len(axis_labels) > 1 for axis_labels in used]):
            return self._take_diagonals(x, axes, sizes, sorted(set(labels)))
        entries: list[Any] = []
        for n, axis, axis_labels in zip(x.shape, axes, used, strict=True):
            if axis_labels:
                label = axis_labels[0]
                entries.append(run(axis.offset, axis.steps[label], sizes[label]))
            else:
                entries.append(axis.offset if n > 1 else 0)
        part = self.slice(x, tuple(entries))
        order = sorted(range(len(labels)), key=lambda k: labels[k])
        return self.reshape(self.permute(part, order), self.label_shape(sizes, labels))

    def _take_diagonals(self, x: Var, axes: Sequence[Axis], sizes: Shape, labels: Sequence[int]) -> Any:
        """`read` where an axis has several labels, or a label several axes."""
        reached = [axis if n > 1 else Axis(0, (0,) * len(sizes)) for n, axis in zip(x.shape, axes, strict=True)]
        if not is_injective(self.label_shape(sizes, labels), tuple(reached)):
            raise GiveUp
        offset, _, strides = Term(1, sizes, tuple(reached)).placement(x.shape)
        placement = (offset, tuple([sizes[k] for k in labels]), tuple([strides[k] for k in labels]))
        return self.reshape(self.emit(take, x, placement=placement), self.label_shape(sizes, labels))

    def label_shape(self, sizes: Shape, labels: Sequence[int]) -> Shape:
        """One axis per label, of length one for all but the given labels."""
        return tuple([size if label in labels else 1 for label, size in enumerate(sizes)])

    def reshape_term(self, term: Term, old: Shape, new: Shape) -> Term:
        """A term of a reshaped array."""
        while True:
            try:
                return term._replace(axes=reshape_axes(term.axes, term.sizes, old, new))
            except SplitLabel as split:
                term = self._split(term, split.label, split.inner)

    def _split(self, term: Term, label: int, inner: int) -> Term:
        value, sizes = term.value, term.sizes
        if type(value) is Var and value.shape:
            parts = (1, 1) if value.shape[label] == 1 else (sizes[label] // inner, inner)
            value = self.reshape(value, (*value.shape[:label], *parts, *value.shape[label + 1 :]))
        sizes = (*sizes[:label], sizes[label] // inner, inner, *sizes[label + 1 :])
        return Term(value, sizes, tuple([split_axis(axis, label, inner) for axis in term.axes]))

    def add_labels(self, term: Term, extra: Shape) -> Term:
        """A term with additional labels, on which neither its value nor its positions depend."""
        value = term.value
        if type(value) is Var and value.shape and extra:
            value = self.reshape(value, (*value.shape, *[1] * len(extra)))
        axes = tuple([Axis(axis.offset, (*axis.steps, *[0] * len(extra))) for axis in term.axes])
        return Term(value, (*term.sizes, *extra), axes)

    def broadcast_to(self, x: DiagonalSum, shape: Shape) -> DiagonalSum:
        """A value broadcast to a shape, with a new label for each axis that is new or stretched."""
        if x.shape == shape:
            return x
        missing = len(shape) - len(x.shape)
        aligned = (*[1] * missing, *x.shape)
        stretched = [axis for axis, (n, m) in enumerate(zip(aligned, shape, strict=True)) if n != m]
        terms = []
        for term in x.terms:
            first = len(term.sizes)
            extended = self.add_labels(term, tuple([shape[axis] for axis in stretched]))
            fixed = Axis(0, (0,) * len(extended.sizes))
            axes = [*[fixed] * missing, *extended.axes]
            for number, axis in enumerate(stretched):
                axes[axis] = Axis(0, tuple([int(k == first + number) for k in range(len(extended.sizes))]))
            terms.append(extended._replace(axes=tuple(axes)))
        return DiagonalSum(shape, x.dtype, terms)
