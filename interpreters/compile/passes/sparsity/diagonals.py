"""What the pass `bands` knows of the variables of a program, and what its rules are made of.

Identity seeds stay symbolic: values that are zero except on diagonals are computed as vectors.

The seeds of a Jacobian and what elementwise maps, slices and sums make of them are sums of terms (see terms). A product
with such a value scales rows instead of contracting; where a rule does not know the structure of its result, or the
value leaves the program, the row `place` writes the terms into zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import Emitter
from func.interpreters.compile.passes.sparsity.diagonal_terms import (
    Axis,
    GiveUp,
    SplitLabel,
    Term,
    injective,
    reshaped_axes,
    split_axis,
    whole_order,
)
from func.interpreters.core import Shape, Shaped
from func.interpreters.primitives.structural.diagonals import place, take
from func.interpreters.primitives.structural.shapes import broadcast, convert
from func.interpreters.program.program import Program, Var

MOST_TERMS = 12
"""A value of more terms is written out."""
FEW_TERMS = 3
"""So are small values of more terms, with which an equation takes the same time whatever it computes."""


class Banded(Shaped):
    """A value known as a sum of terms; `dense` is the variable that holds it, once there is one."""

    __slots__ = ("dense", "terms")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], terms: Sequence[Term], dense: Var | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.terms = tuple(terms)
        self.dense = dense

    def order(self) -> tuple[int, ...] | None:
        """The order of labels in which one term's value is the whole array; None where there is more or less to it."""
        return whole_order(*self.terms[0][1:], self.shape) if len(self.terms) == 1 else None


class Bands(Emitter):
    """What is known of the variables of a program while it is rewritten."""

    def __init__(self, source: Program) -> None:
        super().__init__(source)
        self.permuted_from: dict[Var, tuple[Var, Sequence[int]]] = {}
        self._zero: dict[Var, bool] = {}

    # --- values -------------------------------------------------------------------------------------------------

    def constant_terms(self, var: Var, terms: Sequence[tuple[Any, Shape, tuple[Axis, ...]]]) -> Banded:
        """A constant of the program by its terms."""
        made = []
        for values, sizes, axes in terms:
            first = values.flat[0]
            value = first.item() if np.all(values == first) else self.constant(np.ascontiguousarray(values))
            made.append(Term(value, sizes, axes))
        return Banded(var.shape, var.dtype, made, var)

    def is_zero(self, x: Any) -> bool:
        """True for zeros that are known as such: constants and sums without terms."""
        if type(x) is Banded:
            return not x.terms
        if type(x) is not Var:
            return bool(x == 0)
        if x not in self._zero:
            value = self.constants.get(x)
            self._zero[x] = type(value) is np.ndarray and not np.any(value)
        return self._zero[x]

    def settled(self, out: Var, result: Any) -> Any:
        """The result of a rule: written out at once where that is no larger than its terms."""
        if type(result) is not Banded:
            assert (result.shape, result.dtype) == (out.shape, out.dtype)
            return result
        terms = [Term(self.typed(term.value, out.dtype), *term[1:]) for term in result.terms]
        if not all([injective(term.sizes, term.axes) for term in terms]):
            raise GiveUp
        banded = Banded(out.shape, out.dtype, terms)
        order = banded.order()
        if order is not None:
            return self.written(banded) if order == tuple(range(len(order))) else banded
        size = math.prod(out.shape)
        large = sum([term.size for term in terms]) >= size
        return self.written(banded) if large or len(terms) > min(MOST_TERMS, FEW_TERMS + size // 2048) else banded

    def typed(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """A term's value in the dtype of the array."""
        if type(value) is not Var:
            return np.asarray(value).astype(dtype).item()
        return value if value.dtype == dtype else self.emit(convert, value, dtype=dtype)

    def written(self, x: Any) -> Any:
        """A variable (or scalar) that holds a value."""
        if type(x) is not Banded:
            return x
        if x.dense is None:
            x.dense = self._write(x)
        return x.dense

    def _write(self, x: Banded) -> Any:
        order = x.order()
        if order is not None:
            (term,) = x.terms
            full = self.emit(broadcast, self.array(term.value, x.dtype), shape=term.sizes)
            return self.reshaped(self.permuted(full, order), x.shape)
        if not x.terms:
            return self.emit(broadcast, self.constant(np.zeros((), x.dtype)), shape=x.shape)
        placements = tuple([term.placement(x.shape) for term in x.terms])
        values = [term.value for term in x.terms]
        return self.emit(place, *values, shape=x.shape, dtype=x.dtype, placements=placements)

    def array(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """A term's value as a variable."""
        return value if type(value) is Var else self.constant(np.asarray(value, dtype))

    # --- what rules are made of ---------------------------------------------------------------------------------

    def cut(self, value: Any, sizes: Shape, label: int, start: int, step: int, count: int) -> Any:
        """The value of a term whose label is restricted to start + step · l."""
        if type(value) is not Var or not value.shape or value.shape[label] == 1 or label < 0:
            return value
        entries = [slice_entry(start, step, count) if k == label else (0, n, 1) for k, n in enumerate(value.shape)]
        return self.sliced(value, tuple(entries))

    def read(self, x: Any, axes: Sequence[Axis], sizes: Shape) -> Any:
        """The elements of a dense value at the places that labels reach, one axis per label."""
        if type(x) is not Var or not x.shape:
            return x
        while x in self.permuted_from:
            x, order = self.permuted_from[x]
            places = dict(zip(order, axes, strict=True))
            axes = [places[axis] for axis in range(len(order))]
        used = [axis.uses(sizes) if n > 1 else [] for n, axis in zip(x.shape, axes, strict=True)]
        labels = [label for one in used for label in one]
        if len(labels) != len(set(labels)) or any([len(one) > 1 for one in used]):
            return self._taken(x, axes, sizes, sorted(set(labels)))
        entries: list[Any] = []
        for n, axis, one in zip(x.shape, axes, used, strict=True):
            if one:
                entries.append(slice_entry(axis.offset, axis.steps[one[0]], sizes[one[0]]))
            else:
                entries.append(axis.offset if n > 1 else 0)
        part = self.sliced(x, tuple(entries))
        order = sorted(range(len(labels)), key=lambda k: labels[k])
        return self.reshaped(self.permuted(part, order), self.spread(sizes, labels))

    def _taken(self, x: Var, axes: Sequence[Axis], sizes: Shape, labels: Sequence[int]) -> Any:
        """`read` for diagonals and labels that share an axis."""
        moving = [axis if n > 1 else Axis(0, (0,) * len(sizes)) for n, axis in zip(x.shape, axes, strict=True)]
        only = tuple([size if label in labels else 1 for label, size in enumerate(sizes)])
        if not injective(only, tuple(moving)):
            raise GiveUp
        offset, _, strides = Term(1, sizes, tuple(moving)).placement(x.shape)
        placement = (offset, tuple([sizes[k] for k in labels]), tuple([strides[k] for k in labels]))
        return self.reshaped(self.emit(take, x, placement=placement), self.spread(sizes, labels))

    def spread(self, sizes: Shape, labels: Sequence[int]) -> Shape:
        """One axis per label, of length one for all but these."""
        return tuple([size if label in labels else 1 for label, size in enumerate(sizes)])

    def reshape_term(self, term: Term, old: Shape, new: Shape) -> Term:
        """A term after its array was reshaped."""
        while True:
            try:
                return term._replace(axes=reshaped_axes(term.axes, term.sizes, old, new))
            except SplitLabel as split:
                term = self._split(term, split.label, split.inner)

    def _split(self, term: Term, label: int, inner: int) -> Term:
        value, sizes = term.value, term.sizes
        if type(value) is Var and value.shape:
            parts = (1, 1) if value.shape[label] == 1 else (sizes[label] // inner, inner)
            value = self.reshaped(value, (*value.shape[:label], *parts, *value.shape[label + 1 :]))
        sizes = (*sizes[:label], sizes[label] // inner, inner, *sizes[label + 1 :])
        return Term(value, sizes, tuple([split_axis(axis, label, inner) for axis in term.axes]))

    def contribution(self, term: Term, extra: Shape) -> Term:
        """A term with more labels, on which neither its value nor its axes depend."""
        value = term.value
        if type(value) is Var and value.shape and extra:
            value = self.reshaped(value, (*value.shape, *[1] * len(extra)))
        axes = tuple([Axis(axis.offset, (*axis.steps, *[0] * len(extra))) for axis in term.axes])
        return Term(value, (*term.sizes, *extra), axes)

    def stretched(self, x: Banded, shape: Shape) -> Banded:
        """A value broadcast to a shape: new labels for the axes that are new or of length one."""
        if x.shape == shape:
            return x
        missing = len(shape) - len(x.shape)
        have = (*[1] * missing, *x.shape)
        wider = [axis for axis, (n, m) in enumerate(zip(have, shape, strict=True)) if n != m]
        terms = []
        for term in x.terms:
            first = len(term.sizes)
            bigger = self.contribution(term, tuple([shape[axis] for axis in wider]))
            nothing = Axis(0, (0,) * len(bigger.sizes))
            axes = [*[nothing] * missing, *bigger.axes]
            for number, axis in enumerate(wider):
                axes[axis] = Axis(0, tuple([int(k == first + number) for k in range(len(bigger.sizes))]))
            terms.append(bigger._replace(axes=tuple(axes)))
        return Banded(shape, x.dtype, terms)


def slice_entry(start: int, step: int, count: int) -> tuple[int, int, int]:
    """A normalised slice of `count` elements."""
    last = start + step * (count - 1)
    return (start, last + 1, step) if step > 0 else (start, last - 1, step)
