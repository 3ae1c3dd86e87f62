"""Diagonal sparsity: values that are zero except on diagonals are computed as vectors.

Elementwise functions, slices and sums of the identity seeds of a Jacobian are sums of terms, dense values along
diagonals (see diagonal_terms). Their zeros are structural. The zeros of a user's arrays are numbers, also where code
wrote a value into them, as by np.diag. Since 0 · ∞ is NaN, only known finite factors scale such a sum. The pass has a
rule for each primitive that keeps this structure. A contraction with such a value, for instance, scales rows:
Σⱼ δᵢⱼ dⱼ Aⱼₖ = dᵢ Aᵢₖ. The primitive `place` writes the terms into zeros for outputs of the program, and where a rule
does not know the structure of its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.equation_builder import EquationBuilder
from func.interpreters.compile.passes.index_arithmetic import as_run, partial_axes, run
from func.interpreters.compile.passes.sparsity.diagonal_terms import (
    Axis,
    GiveUp,
    SplitLabel,
    Term,
    cut_axis,
    cut_other_axis,
    is_injective,
    renumber_labels,
    reshape_axes,
    split_axis,
    terms_of,
    unit_axes,
    whole_order,
)
from func.interpreters.core import Shape, Shaped
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.diagonals import place, take
from func.interpreters.primitives.structural.shapes import broadcast, convert, permute, reduce_sum, where
from func.interpreters.program.program import Equation, Program, Var

MAX_TERMS = 12
"""A value of more terms is written as a dense array."""
FEW_TERMS = 3
"""A small value of more terms is written too: each equation takes about the same time for it."""


class DiagonalSum(Shaped):
    """An array as a sum of terms; `dense` is the variable that holds it, once it is written.

    `has_numbers` tells that the zeros are numbers, not structural.
    """

    __slots__ = ("dense", "has_numbers", "terms")

    def __init__(
        self,
        shape: Shape,
        dtype: np.dtype[Any],
        terms: Sequence[Term],
        dense: Var | None = None,
        has_numbers: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.terms = tuple(terms)
        self.dense = dense
        self.has_numbers = has_numbers

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

    def accept(self, out: Var, result: Any, has_numbers: bool) -> Any:
        """The result of a rule in the dtype of the output; dense where that is no larger than the terms."""
        if type(result) is not DiagonalSum:
            assert (result.shape, result.dtype) == (out.shape, out.dtype)
            return result
        terms = [Term(self.as_dtype(term.value, out.dtype), *term[1:]) for term in result.terms]
        if not all([is_injective(term.sizes, term.axes) for term in terms]):
            raise GiveUp
        result = DiagonalSum(out.shape, out.dtype, terms, has_numbers=has_numbers)
        order = result.order()
        if order is not None:
            return self.to_dense(result) if order == tuple(range(len(order))) else result
        size = math.prod(out.shape)
        large = sum([term.size for term in terms]) >= size
        return self.to_dense(result) if large or len(terms) > min(MAX_TERMS, FEW_TERMS + size // 2048) else result

    def keeps_zeros(self, x: Any, divides: bool) -> bool:
        """Whether the product of zero and a factor, or its quotient by it, is known to be zero."""
        value = self.constants.get(x) if type(x) is Var else x
        if value is None or type(value) is DiagonalSum:
            return False
        return bool(np.all((value != 0) & ~np.isnan(value)) if divides else np.all(np.isfinite(value)))

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


Rule: TypeAlias = Callable[[DiagonalBuilder, Equation, tuple[Any, ...]], Any]
RULES: dict[str, Rule] = {}
"""For a primitive's name: (builder, equation, operands) -> a DiagonalSum or a variable.

An operand is a DiagonalSum, a variable or a scalar. A rule raises GiveUp where the result has no diagonal structure.
"""
STARTS = ("scatter", "scatter_add", "seed")
"""Primitives whose outputs can be diagonal although no operand is."""
PRODUCTS = ("multiply", "divide", "contract")
"""Primitives that multiply the zeros of an operand by the elements of the other one."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def sum_of_terms(equation: Equation, terms: Sequence[Term]) -> DiagonalSum:
    """A sum of terms with the shape and dtype of an equation's output."""
    out = equation.outputs[0]
    return DiagonalSum(out.shape, out.dtype, terms if out.size else ())


@rule("seed")
def constant_seed(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """A constant whose zeros are structural."""
    value = builder.constants.get(operands[0])
    terms = terms_of(value) if type(value) is np.ndarray else None
    if terms is None:
        raise GiveUp
    return builder.constant_sum(operands[0], terms)


@rule("negative", "positive", "conjugate", "real", "imag", "convert", "named", "stop_gradient")
def map_linear(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """f(Σ x) = Σ f(x) for additive functions."""
    (x,) = operands
    if equation.outputs[0].dtype.kind not in "fc":
        raise GiveUp
    terms = [term._replace(value=builder.emit(equation.primitive, term.value, **equation.params)) for term in x.terms]
    return sum_of_terms(equation, terms)


@rule("square", "absolute", "sqrt")
def map_single(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Functions with f(0) = 0, of a single term."""
    if len(operands[0].terms) != 1:
        raise GiveUp
    return map_linear(builder, equation, operands)


@rule("add", "subtract")
def combine(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """The terms of both operands; with a dense operand, the terms are added in place."""
    out = equation.outputs[0]
    x, y = operands
    minus = equation.primitive.name == "subtract"
    if type(x) is DiagonalSum and type(y) is DiagonalSum:
        both = [*_signed_terms(builder, x, out.shape, False), *_signed_terms(builder, y, out.shape, minus)]
        return sum_of_terms(equation, merge_terms(builder, both))
    sparse, dense, negated = (x, y, False) if type(x) is DiagonalSum else (y, x, minus)
    terms = _signed_terms(builder, sparse, out.shape, negated)
    if builder.is_zero(dense):
        return sum_of_terms(equation, terms)
    if type(dense) is not Var or dense.dtype != out.dtype or sparse.order() is not None:
        raise GiveUp
    dense = builder.emit(broadcast, dense, shape=out.shape)
    if minus and not negated:
        dense = builder.emit(negative, dense)
    whole = Term(dense, out.shape, unit_axes(out.shape))
    values = [dense, *[builder.as_dtype(term.value, out.dtype) for term in terms]]
    placements = tuple([term.placement(out.shape) for term in (whole, *terms)])
    return builder.emit(place, *values, shape=out.shape, dtype=out.dtype, placements=placements)


def _signed_terms(builder: DiagonalBuilder, x: DiagonalSum, shape: Shape, minus: bool) -> list[Term]:
    terms = builder.broadcast_to(x, shape).terms
    return [term._replace(value=builder.emit(negative, term.value)) for term in terms] if minus else list(terms)


def merge_terms(builder: DiagonalBuilder, terms: Sequence[Term]) -> list[Term]:
    """Add up the terms at the same positions."""
    sums: dict[Any, Term] = {}
    for term in terms:
        key = term[1:]
        if key in sums:
            term = term._replace(value=builder.emit(add, sums[key].value, term.value))
        sums[key] = term
    return list(sums.values())


@rule("multiply", "nan_safe_multiply", "divide")
def scale(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Multiply each term by the elements of the dense factor at its positions."""
    out = equation.outputs[0]
    x, y = operands
    first = type(x) is DiagonalSum
    if type(y) is DiagonalSum and (first or equation.primitive.name == "divide"):
        if not first:
            raise GiveUp
        y = builder.to_dense(y)
    sparse, dense = (x, y) if first else (y, x)
    terms = []
    for term in builder.broadcast_to(sparse, out.shape).terms:
        factor = _read_operand(builder, dense, term)
        pair = (term.value, factor) if first else (factor, term.value)
        terms.append(term._replace(value=multiply_values(builder, equation.primitive, *pair)))
    return sum_of_terms(equation, terms)


def _read_operand(builder: DiagonalBuilder, dense: Any, term: Term) -> Any:
    rank = len(dense.shape) if type(dense) is Var else 0
    return builder.read(dense, term.axes[len(term.axes) - rank :], term.sizes)


def multiply_values(builder: DiagonalBuilder, primitive: Any, x: Any, y: Any) -> Any:
    """x · y, or x / y; a factor of one adds no equation."""
    if type(y) is not Var and y == 1:
        return x
    if primitive is not divide and type(x) is not Var and x == 1:
        return y
    return builder.emit(primitive, x, y)


@rule("where")
def choose(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """where(c, x, y) = where(c, x, 0) + where(c, 0, y), where x and y are sums of terms or zero."""
    condition, *sides = operands
    out = equation.outputs[0]
    terms = []
    for position, side in enumerate(sides):
        if type(side) is not DiagonalSum:
            if not builder.is_zero(side):
                raise GiveUp
            continue
        for term in builder.broadcast_to(side, out.shape).terms:
            mask = _read_operand(builder, builder.to_dense(condition), term)
            pair = (term.value, 0.0) if position == 0 else (0.0, term.value)
            terms.append(term._replace(value=builder.emit(where, mask, *pair)))
    return sum_of_terms(equation, merge_terms(builder, terms))


@rule("permute")
def reorder(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Permute the axes of each term."""
    order = equation.params["order"]
    terms = operands[0].terms
    return sum_of_terms(equation, [term._replace(axes=tuple([term.axes[k] for k in order])) for term in terms])


@rule("broadcast")
def stretch(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Broadcast axes become new labels."""
    return builder.broadcast_to(operands[0], equation.outputs[0].shape)


@rule("reshape")
def regroup(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Axes are merged and divided; a label is split where its axis is."""
    (x,), shape = operands, equation.outputs[0].shape
    return sum_of_terms(equation, [builder.reshape_term(term, x.shape, shape) for term in x.terms])


@rule("getitem")
def select(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Restrict each term to the slices."""
    terms = [slice_term(builder, term, equation.params["index"]) for term in operands[0].terms]
    return sum_of_terms(equation, [term for term in terms if term is not None])


def slice_term(builder: DiagonalBuilder, term: Term, index: Sequence[Any]) -> Term | None:
    """term[index] for a basic index; None where no element is left."""
    positions: list[int] = []
    for position, entry in enumerate([entry for entry in index if entry is not None]):
        start, stop, step = as_run(entry)
        cut = cut_axis(term.axes[position], term.sizes, start, step, len(range(start, stop, step)))
        if cut is None:
            return None
        if not isinstance(entry, int):
            positions.append(position)
        axes = [cut.axis if k == position else cut_other_axis(axis, cut) for k, axis in enumerate(term.axes)]
        value, sizes = term.value, term.sizes
        if cut.label >= 0:
            value = builder.slice_label(value, sizes, cut.label, cut.start, cut.step, cut.length)
            sizes = (*sizes[: cut.label], cut.length, *sizes[cut.label + 1 :])
        term = Term(value, sizes, tuple(axes))
    remaining = iter(positions)
    fixed = Axis(0, (0,) * len(term.sizes))
    axes = [fixed if entry is None else term.axes[next(remaining)] for entry in index if not isinstance(entry, int)]
    return term._replace(axes=tuple(axes))


@rule("embed")
def pad(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Map the positions of each term through the index; values stay."""
    return sum_of_terms(equation, [_embed_term(term, equation.params["index"]) for term in operands[0].terms])


def _embed_term(term: Term, index: Sequence[Any]) -> Term:
    sources = iter(term.axes)
    axes = []
    for entry in index:
        if isinstance(entry, int):
            axes.append(Axis(entry, (0,) * len(term.sizes)))
            continue
        axis = next(sources)
        if entry is not None:
            axes.append(_map_axis(axis, entry[0], entry[2]))
    return term._replace(axes=tuple(axes))


@rule("concatenate")
def join(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Shift the terms along the axis; a dense piece becomes one term."""
    along = equation.params["axis"]
    terms: list[Term] = []
    start = 0
    for x in operands:
        if type(x) is DiagonalSum:
            parts = list(x.terms)
        elif builder.is_zero(x):
            parts = []
        else:
            parts = [Term(x, x.shape, unit_axes(x.shape))]
        for term in parts:
            axes = [Axis(a.offset + start, a.steps) if k == along else a for k, a in enumerate(term.axes)]
            terms.append(term._replace(axes=tuple(axes)))
        start += x.shape[along]
    return sum_of_terms(equation, merge_terms(builder, terms))


@rule("update")
def overwrite(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """The terms outside the slice and those of the value. The slice may be partial along one axis only."""
    (x, value), index = operands, equation.params["index"]
    out = equation.outputs[0]
    if type(x) is not DiagonalSum:
        if not builder.is_zero(x):
            raise GiveUp
        x = DiagonalSum(out.shape, out.dtype, ())
    if None in index or (type(value) is not DiagonalSum and not builder.is_zero(value)):
        raise GiveUp
    terms: list[Term] = []
    if x.terms:
        partial = partial_axes(index, out.shape)
        if len(partial) > 1:
            raise GiveUp
        for axis in partial:
            start, stop, step = as_run(index[axis])
            if step != 1 or stop <= start:
                raise GiveUp
            for part in ((0, start, 1), (stop, out.shape[axis], 1)):
                box = tuple([part if k == axis else (0, n, 1) for k, n in enumerate(out.shape)])
                left = [slice_term(builder, term, box) for term in x.terms] if part[1] > part[0] else []
                terms += [_embed_term(term, box) for term in left if term is not None]
    if type(value) is DiagonalSum:
        region = tuple([len(range(*entry)) for entry in index if not isinstance(entry, int)])
        terms += [_embed_term(term, index) for term in builder.broadcast_to(value, region).terms]
    return sum_of_terms(equation, merge_terms(builder, terms))


@rule("scatter", "scatter_add")
def scatter_diagonal(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Values written into, or added to, zeros at constant, evenly spaced indices, as np.diag does."""
    x, value, *indices = operands
    axis, out = equation.params["axis"], equation.outputs[0]
    progressions = [_progression(builder, index, n) for index, n in zip(indices, out.shape[axis:], strict=False)]
    terms: list[Term] = []
    if type(x) is DiagonalSum and equation.primitive.name == "scatter_add":
        terms += x.terms
    elif not builder.is_zero(x):
        raise GiveUp
    if None in progressions or type(value) not in (Var, DiagonalSum):
        raise GiveUp
    if value.shape != (*out.shape[:axis], indices[0].shape[0], *out.shape[axis + len(indices) :]):
        raise GiveUp
    for term in value.terms if type(value) is DiagonalSum else [Term(value, value.shape, unit_axes(value.shape))]:
        images = [_map_axis(term.axes[axis], *progression) for progression in progressions if progression is not None]
        terms.append(term._replace(axes=(*term.axes[:axis], *images, *term.axes[axis + 1 :])))
    return sum_of_terms(equation, merge_terms(builder, terms))


def _map_axis(axis: Axis, start: int, step: int) -> Axis:
    """The axis for positions start + step · position."""
    return Axis(start + step * axis.offset, tuple([step * s for s in axis.steps]))


def _progression(builder: DiagonalBuilder, index: Any, length: int) -> tuple[int, int] | None:
    """(start, step) of a constant vector of evenly spaced indices."""
    array = builder.constants.get(index) if type(index) is Var else None
    if type(array) is not np.ndarray or array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        return None
    array = array.astype(np.intp)  # a narrow type may hold neither the length nor differences
    array = np.where(array < 0, array + length, array)
    step = int(array[1] - array[0]) if array.size > 1 else 1
    return (int(array[0]), step) if np.array_equal(array, array[0] + step * np.arange(array.size)) else None


@rule("sum")
def total(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Sum over the labels that only summed axes use."""
    summed = equation.params["axes"]
    terms = []
    for term in operands[0].terms:
        axes = [axis for k, axis in enumerate(term.axes) if k not in summed]
        terms.append(_sum_unused_labels(builder, term._replace(axes=tuple(axes))))
    return sum_of_terms(equation, merge_terms(builder, terms))


@rule("mean")
def average(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """mean(x) = Σ x / n."""
    sums = total(builder, equation, operands)
    count = math.prod([operands[0].shape[axis] for axis in equation.params["axes"]])
    return sum_of_terms(equation, [term._replace(value=builder.emit(divide, term.value, count)) for term in sums.terms])


def _sum_unused_labels(builder: DiagonalBuilder, term: Term) -> Term:
    """Sum a term over the labels that no axis uses."""
    used = {label for axis in term.axes for label in axis.uses(term.sizes)}
    unused = [label for label in range(len(term.sizes)) if label not in used]
    value, factor = term.value, 1
    if type(value) is Var and value.shape:
        inside = [label for label in unused if value.shape[label] > 1]
        factor = math.prod([term.sizes[label] for label in unused if label not in inside])
        shape = tuple([n for label, n in enumerate(value.shape) if label in used])
        if inside:
            value = builder.emit(reduce_sum, value, axes=tuple(inside))
        value = builder.reshape(value, shape)
    else:
        factor = math.prod([term.sizes[label] for label in unused])
    if factor != 1:
        value = builder.emit(multiply, value, factor)
    axes = tuple([Axis(a.offset, tuple([s for k, s in enumerate(a.steps) if k in used])) for a in term.axes])
    return Term(value, tuple([n for label, n in enumerate(term.sizes) if label in used]), axes)


@rule("contract")
def product(builder: DiagonalBuilder, equation: Equation, operands: tuple[Any, ...]) -> DiagonalSum:
    """Σⱼ Dᵢⱼ Aⱼₖ = dᵢ Aₚₖ with p = p(i): multiply each term by the dense operand at its positions."""
    x, y = operands
    labels = equation.params["spec"]
    sparse, dense, own, other = (x, y, labels.x, labels.y) if type(x) is DiagonalSum else (y, x, labels.y, labels.x)
    lengths = dict(zip((*own, *other), (*sparse.shape, *dense.shape), strict=True))
    new = [label for label in other if label not in own]
    extra = tuple([lengths[label] for label in new])
    if sparse.order() is not None or not _is_cheaper(labels, lengths, sparse, extra):
        raise GiveUp
    dense = builder.to_dense(dense)
    terms = []
    for term in sparse.terms:
        extended = builder.add_labels(term, extra)
        along = dict(zip(own, extended.axes, strict=True))
        for number, label in enumerate(new):
            own_label = len(term.sizes) + number
            along[label] = Axis(0, tuple([int(k == own_label) for k in range(len(extended.sizes))]))
        axes = [along[label] for label in (*labels.out, *other)]
        extended = _order_labels(Term(extended.value, extended.sizes, tuple(axes)), len(labels.out))
        part = builder.read(dense, extended.axes[len(labels.out) :], extended.sizes)
        pair = (extended.value, part) if type(x) is DiagonalSum else (part, extended.value)
        terms.append(_product(builder, Term(None, extended.sizes, extended.axes[: len(labels.out)]), *pair))
    return sum_of_terms(equation, merge_terms(builder, terms))


def _order_labels(term: Term, outs: int) -> Term:
    """The labels in the order of the axes that are read, if the value has no axes that fix another order."""
    if type(term.value) is Var and term.value.shape:
        return term
    return renumber_labels(term, list(dict.fromkeys([k for axis in term.axes[outs:] for k in axis.uses(term.sizes)])))


def _is_cheaper(labels: Any, lengths: dict[int, int], sparse: DiagonalSum, extra: Shape) -> bool:
    """True where vectors are not much slower than the dense product.

    A vector costs 2 µs and 1 ns for each element, a matrix product 0.1 ns for each multiply-add.
    """
    work = math.prod(lengths.values())
    free = [set(labels.x) - set(labels.y), set(labels.y) - set(labels.x)]
    dense_cost = 1e3 + (0.1 if all(free) else 0.5) * work
    sparse_cost = sum([2e3 + (term.size * math.prod(extra) if type(term.value) is Var else 0) for term in sparse.terms])
    return sparse_cost <= 2 * dense_cost + 1e4


def _product(builder: DiagonalBuilder, term: Term, x: Any, y: Any) -> Term:
    """The product of two values over the labels of a term, summed over the labels that no axis uses."""
    used = {label for axis in term.axes for label in axis.uses(term.sizes)}
    if not all([type(v) is Var and v.shape for v in (x, y)]):
        return _sum_unused_labels(builder, term._replace(value=multiply_values(builder, multiply, x, y)))
    wide = [[label for label, n in enumerate(v.shape) if n > 1] for v in (x, y)]
    summed = [label for label in wide[0] if label in wide[1] and label not in used]
    if not summed:
        return _sum_unused_labels(builder, term._replace(value=builder.emit(multiply, x, y)))
    parts = []
    for value, mine, others in ((x, wide[0], wide[1]), (y, wide[1], wide[0])):
        alone = [label for label in mine if label not in used and label not in others]
        if alone:
            value = builder.emit(reduce_sum, value, axes=tuple(alone))
        mine[:] = [label for label in mine if label not in alone]
        parts.append(builder.reshape(value, tuple([term.sizes[label] for label in mine])))
    left = tuple(sorted({*wide[0], *wide[1]} & used))
    value = builder.emit(contract, *parts, spec=spec(tuple(wide[0]), tuple(wide[1]), left))
    value = builder.reshape(value, builder.label_shape(term.sizes, left))
    contracted = [
        label for label in range(len(term.sizes)) if label not in used and max(x.shape[label], y.shape[label]) > 1
    ]
    sizes = tuple([1 if label in contracted else n for label, n in enumerate(term.sizes)])
    return _sum_unused_labels(builder, Term(value, sizes, term.axes))


def exploit_diagonal_sparsity(program: Program) -> Program:
    """Compute values that are zero except on diagonals as vectors."""
    if not any([equation.primitive.name in STARTS for equation in program.equations]):
        return program
    builder = DiagonalBuilder(program)
    values: dict[Var, Any] = {}

    def apply_rule(equation: Equation, operands: tuple[Any, ...]) -> Any:
        name = equation.primitive.name
        sums = [x for x in operands if type(x) is DiagonalSum]
        if name not in RULES or not (name in STARTS or sums):
            return None
        has_numbers = any([x.has_numbers for x in sums]) or not (sums or name == "seed")
        if name in PRODUCTS:  # at the places of the first sum the rules read the other factor
            has_numbers, divides = sums[0].has_numbers, name == "divide"
            factors = operands[1:] if divides else [x for x in operands if x is not sums[0]]
            if has_numbers and not all([builder.keeps_zeros(x, divides) for x in factors]):
                return None
        try:
            return builder.accept(equation.outputs[0], RULES[name](builder, equation, operands), has_numbers)
        except GiveUp:
            return None

    return builder.interpret(values, apply_rule, lambda value, var: builder.to_dense(value))
