"""How sums and contractions act on sums of terms.

How rows act on sums of terms. A rule raises GiveUp where the result has no such structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.sparsity.diagonal_terms import (
    Axis,
    GiveUp,
    Term,
    cut_axis,
    renumbered,
    shifted,
    unit_axes,
)
from func.interpreters.compile.passes.sparsity.diagonals import Banded, Bands
from func.interpreters.core import Shape
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.diagonals import place
from func.interpreters.primitives.structural.shapes import broadcast, reduce_sum, where
from func.interpreters.program.program import Equation, Var


def total(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Labels that only summed axes use are summed; the others stay where they are."""
    gone = equation.params["axes"]
    terms = []
    for term in operands[0].terms:
        axes = [axis for k, axis in enumerate(term.axes) if k not in gone]
        terms.append(_summed(state, term._replace(axes=tuple(axes))))
    return result_of(equation, merged(state, terms))


def average(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """A sum, divided."""
    summed = total(state, equation, operands)
    count = math.prod([operands[0].shape[axis] for axis in equation.params["axes"]])
    return result_of(equation, [term._replace(value=state.emit(divide, term.value, count)) for term in summed.terms])


def _summed(state: Bands, term: Term) -> Term:
    """A term without the labels that no axis uses."""
    used = {label for axis in term.axes for label in axis.uses(term.sizes)}
    gone = [label for label in range(len(term.sizes)) if label not in used]
    value, factor = term.value, 1
    if type(value) is Var and value.shape:
        inside = [label for label in gone if value.shape[label] > 1]
        factor = math.prod([term.sizes[label] for label in gone if label not in inside])
        kept = tuple([n for label, n in enumerate(value.shape) if label in used])
        if inside:
            value = state.emit(reduce_sum, value, axes=tuple(inside))
        value = state.reshaped(value, kept)
    else:
        factor = math.prod([term.sizes[label] for label in gone])
    if factor != 1:
        value = state.emit(multiply, value, factor)
    axes = tuple([Axis(a.offset, tuple([s for k, s in enumerate(a.steps) if k in used])) for a in term.axes])
    return Term(value, tuple([n for label, n in enumerate(term.sizes) if label in used]), axes)


def product(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """The dense operand is read where the terms are: rows are scaled, and only labels that are left are summed."""
    x, y = operands
    labels = equation.params["spec"]
    sparse, dense, own, other = (x, y, labels.x, labels.y) if type(x) is Banded else (y, x, labels.y, labels.x)
    lengths = dict(zip((*own, *other), (*sparse.shape, *dense.shape), strict=True))
    new = [label for label in other if label not in own]
    extra = tuple([lengths[label] for label in new])
    if sparse.order() is not None or not _pays(labels, lengths, sparse, extra):
        raise GiveUp
    dense = state.written(dense)
    terms = []
    for term in sparse.terms:
        bigger = state.contribution(term, extra)
        along = dict(zip(own, bigger.axes, strict=True))
        for number, label in enumerate(new):
            at = len(term.sizes) + number
            along[label] = Axis(0, tuple([int(k == at) for k in range(len(bigger.sizes))]))
        axes = [along[label] for label in (*labels.out, *other)]
        bigger = _in_order(Term(bigger.value, bigger.sizes, tuple(axes)), len(labels.out))
        part = state.read(dense, bigger.axes[len(labels.out) :], bigger.sizes)
        pair = (bigger.value, part) if type(x) is Banded else (part, bigger.value)
        terms.append(_product(state, Term(None, bigger.sizes, bigger.axes[: len(labels.out)]), *pair))
    return result_of(equation, merged(state, terms))


def _in_order(term: Term, outs: int) -> Term:
    """The labels in the order of the axes that are read, where the term's value does not fix it."""
    if type(term.value) is Var and term.value.shape:
        return term
    return renumbered(term, list(dict.fromkeys([k for axis in term.axes[outs:] for k in axis.uses(term.sizes)])))


def _pays(labels: Any, lengths: dict[int, int], sparse: Banded, extra: Shape) -> bool:
    """Vectors cost a nanosecond an element and two microseconds each, matrix products a tenth of that an element."""
    work = math.prod(lengths.values())
    free = [set(labels.x) - set(labels.y), set(labels.y) - set(labels.x)]
    dense = 1e3 + (0.1 if all(free) else 0.5) * work
    ours = sum([2e3 + (term.size * math.prod(extra) if type(term.value) is Var else 0) for term in sparse.terms])
    return ours <= 2 * dense + 1e4


def _product(state: Bands, term: Term, x: Any, y: Any) -> Term:
    """The product of two values over the labels of a term, summed over those that no axis uses."""
    used = {label for axis in term.axes for label in axis.uses(term.sizes)}
    if not all([type(v) is Var and v.shape for v in (x, y)]):
        return _summed(state, term._replace(value=times(state, multiply, x, y)))
    wide = [[label for label, n in enumerate(v.shape) if n > 1] for v in (x, y)]
    common = [label for label in wide[0] if label in wide[1] and label not in used]
    if not common:
        return _summed(state, term._replace(value=state.emit(multiply, x, y)))
    parts = []
    for value, mine, others in ((x, wide[0], wide[1]), (y, wide[1], wide[0])):
        alone = [label for label in mine if label not in used and label not in others]
        if alone:
            value = state.emit(reduce_sum, value, axes=tuple(alone))
        mine[:] = [label for label in mine if label not in alone]
        parts.append(state.reshaped(value, tuple([term.sizes[label] for label in mine])))
    left = tuple(sorted({*wide[0], *wide[1]} & used))
    value = state.emit(contract, *parts, spec=spec(tuple(wide[0]), tuple(wide[1]), left))
    value = state.reshaped(value, state.spread(term.sizes, left))
    done = [label for label in range(len(term.sizes)) if label not in used and max(x.shape[label], y.shape[label]) > 1]
    sizes = tuple([1 if label in done else n for label, n in enumerate(term.sizes)])
    return _summed(state, Term(value, sizes, term.axes))


PRODUCTS: dict[str, Rule] = {"sum": total, "mean": average, "contract": product}
"""By row, as RULES."""


Rule: TypeAlias = Callable[[Bands, Equation, tuple[Any, ...]], Any]
RULES: dict[str, Rule] = {}
"""By row: (state, equation, operands) -> a Banded, or a variable. Operands are Banded, variables or scalars."""
STARTS = ("scatter", "scatter_add")
"""Rows whose rule is asked although no operand is known as a sum of terms."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for rows."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def result_of(equation: Equation, terms: Sequence[Term]) -> Banded:
    """A sum of terms of the shape and dtype of an equation's output."""
    out = equation.outputs[0]
    return Banded(out.shape, out.dtype, terms)


# --- elementwise ------------------------------------------------------------------------------------------------


@rule("negative", "positive", "conjugate", "real", "imag", "convert", "named", "stop_gradient")
def map_linear(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Functions that are additive: term by term."""
    (x,) = operands
    if equation.outputs[0].dtype.kind not in "fc":
        raise GiveUp
    made = [term._replace(value=state.emit(equation.primitive, term.value, **equation.params)) for term in x.terms]
    return result_of(equation, made)


@rule("square", "absolute", "sqrt")
def map_single(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Functions that are zero at zero: where there is one term."""
    if len(operands[0].terms) != 1:
        raise GiveUp
    return map_linear(state, equation, operands)


@rule("add", "subtract")
def combine(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Any:
    """Sums of terms are joined; a dense operand gets the terms added in place."""
    out = equation.outputs[0]
    x, y = operands
    minus = equation.primitive.name == "subtract"
    if type(x) is Banded and type(y) is Banded:
        both = [*_terms(state, x, out.shape, False), *_terms(state, y, out.shape, minus)]
        return result_of(equation, merged(state, both))
    sparse, dense, flipped = (x, y, False) if type(x) is Banded else (y, x, minus)
    terms = _terms(state, sparse, out.shape, flipped)
    if state.is_zero(dense):
        return result_of(equation, terms)
    if type(dense) is not Var or dense.dtype != out.dtype or sparse.order() is not None:
        raise GiveUp
    dense = state.emit(broadcast, dense, shape=out.shape)
    if minus and not flipped:
        dense = state.emit(negative, dense)
    whole = Term(dense, out.shape, unit_axes(out.shape))
    values = [dense, *[state.typed(term.value, out.dtype) for term in terms]]
    placements = tuple([term.placement(out.shape) for term in (whole, *terms)])
    return state.emit(place, *values, shape=out.shape, dtype=out.dtype, placements=placements)


def _terms(state: Bands, x: Banded, shape: Shape, minus: bool) -> list[Term]:
    terms = state.stretched(x, shape).terms
    return [term._replace(value=state.emit(negative, term.value)) for term in terms] if minus else list(terms)


def merged(state: Bands, terms: Sequence[Term]) -> list[Term]:
    """Terms at the same places become one."""
    found: dict[Any, Term] = {}
    for term in terms:
        key = term[1:]
        if key in found:
            term = term._replace(value=state.emit(add, found[key].value, term.value))
        found[key] = term
    return list(found.values())


@rule("multiply", "nan_safe_multiply", "divide")
def scale(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """A dense factor is read where the terms are."""
    out = equation.outputs[0]
    x, y = operands
    first = type(x) is Banded
    if type(y) is Banded and (first or equation.primitive.name == "divide"):
        if not first:
            raise GiveUp
        y = state.written(y)
    sparse, dense = (x, y) if first else (y, x)
    terms = []
    for term in state.stretched(sparse, out.shape).terms:
        factor = _aligned(state, dense, term)
        pair = (term.value, factor) if first else (factor, term.value)
        terms.append(term._replace(value=times(state, equation.primitive, *pair)))
    return result_of(equation, terms)


def _aligned(state: Bands, dense: Any, term: Term) -> Any:
    rank = len(dense.shape) if type(dense) is Var else 0
    return state.read(dense, term.axes[len(term.axes) - rank :], term.sizes)


def times(state: Bands, primitive: Any, x: Any, y: Any) -> Any:
    """A product or quotient of values; the number one makes none."""
    if type(y) is not Var and y == 1:
        return x
    if primitive is not divide and type(x) is not Var and x == 1:
        return y
    return state.emit(primitive, x, y)


@rule("where")
def choose(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Each side masked on its own; both must be sums of terms, or zero."""
    condition, *sides = operands
    out = equation.outputs[0]
    terms = []
    for place_of, side in enumerate(sides):
        if type(side) is not Banded:
            if not state.is_zero(side):
                raise GiveUp
            continue
        for term in state.stretched(side, out.shape).terms:
            mask = _aligned(state, state.written(condition), term)
            pair = (term.value, 0.0) if place_of == 0 else (0.0, term.value)
            terms.append(term._replace(value=state.emit(where, mask, *pair)))
    return result_of(equation, merged(state, terms))


# --- shape ------------------------------------------------------------------------------------------------------


@rule("permute")
def reorder(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """The axes of every term in another order."""
    order = equation.params["order"]
    terms = operands[0].terms
    return result_of(equation, [term._replace(axes=tuple([term.axes[k] for k in order])) for term in terms])


@rule("broadcast")
def stretch(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """New axes are new labels."""
    return state.stretched(operands[0], equation.outputs[0].shape)


@rule("reshape")
def regroup(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Axes are joined and divided; labels are split where an axis is."""
    (x,), shape = operands, equation.outputs[0].shape
    return result_of(equation, [state.reshape_term(term, x.shape, shape) for term in x.terms])


@rule("getitem")
def select(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """The elements of each term within the slices."""
    terms = [selected(state, term, equation.params["index"]) for term in operands[0].terms]
    return result_of(equation, [term for term in terms if term is not None])


def selected(state: Bands, term: Term, index: Sequence[Any]) -> Term | None:
    """A term under a basic index; None where nothing of it is left."""
    kept: list[int] = []
    for position, entry in enumerate([entry for entry in index if entry is not None]):
        start, stop, step = (entry, entry + 1, 1) if isinstance(entry, int) else entry
        cut = cut_axis(term.axes[position], term.sizes, start, step, len(range(start, stop, step)))
        if cut is None:
            return None
        if not isinstance(entry, int):
            kept.append(position)
        axes = [cut.axis if k == position else shifted(axis, cut) for k, axis in enumerate(term.axes)]
        value, sizes = term.value, term.sizes
        if cut.label >= 0:
            value = state.cut(value, sizes, cut.label, cut.start, cut.step, cut.length)
            sizes = (*sizes[: cut.label], cut.length, *sizes[cut.label + 1 :])
        term = Term(value, sizes, tuple(axes))
    remaining = iter(kept)
    nothing = Axis(0, (0,) * len(term.sizes))
    axes = [nothing if entry is None else term.axes[next(remaining)] for entry in index if not isinstance(entry, int)]
    return term._replace(axes=tuple(axes))


@rule("embed")
def pad(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """The axes are moved and spread; values stay as they are."""
    return result_of(equation, [_embedded(term, equation.params["index"]) for term in operands[0].terms])


def _embedded(term: Term, index: Sequence[Any]) -> Term:
    sources = iter(term.axes)
    axes = []
    for entry in index:
        if isinstance(entry, int):
            axes.append(Axis(entry, (0,) * len(term.sizes)))
            continue
        axis = next(sources)
        if entry is not None:
            axes.append(_moved(axis, entry[0], entry[2]))
    return term._replace(axes=tuple(axes))


@rule("concatenate")
def join(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Terms are moved along the axis; a dense part is a term of its own."""
    along = equation.params["axis"]
    terms: list[Term] = []
    start = 0
    for x in operands:
        if type(x) is Banded:
            parts = list(x.terms)
        elif state.is_zero(x):
            parts = []
        else:
            parts = [Term(x, x.shape, unit_axes(x.shape))]
        for term in parts:
            axes = [Axis(a.offset + start, a.steps) if k == along else a for k, a in enumerate(term.axes)]
            terms.append(term._replace(axes=tuple(axes)))
        start += x.shape[along]
    return result_of(equation, merged(state, terms))


@rule("update")
def overwrite(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """What is outside of the slice stays: the parts before and after it, where it is whole along all axes but one."""
    (x, value), index = operands, equation.params["index"]
    out = equation.outputs[0]
    if type(x) is not Banded:
        if not state.is_zero(x):
            raise GiveUp
        x = Banded(out.shape, out.dtype, ())
    if type(value) is not Banded and not state.is_zero(value):
        raise GiveUp
    if None in index:
        raise GiveUp
    terms: list[Term] = []
    if x.terms:
        partial = [axis for axis, entry in enumerate(index) if entry != (0, out.shape[axis], 1)]
        if len(partial) > 1:
            raise GiveUp
        for axis in partial:
            entry = index[axis]
            start, stop, step = (entry, entry + 1, 1) if isinstance(entry, int) else entry
            if step != 1 or stop <= start:
                raise GiveUp
            for part in ((0, start, 1), (stop, out.shape[axis], 1)):
                box = tuple([part if k == axis else (0, n, 1) for k, n in enumerate(out.shape)])
                left = [selected(state, term, box) for term in x.terms] if part[1] > part[0] else []
                terms += [_embedded(term, box) for term in left if term is not None]
    if type(value) is Banded:
        region = tuple([len(range(*entry)) for entry in index if not isinstance(entry, int)])
        terms += [_embedded(term, index) for term in state.stretched(value, region).terms]
    return result_of(equation, merged(state, terms))


@rule(*STARTS)
def scatter_diagonal(state: Bands, equation: Equation, operands: tuple[Any, ...]) -> Banded:
    """Values written into, or added to, zeros at constant, evenly spaced indices: what np.diag does."""
    x, value, *indices = operands
    axis, out = equation.params["axis"], equation.outputs[0]
    lines = [_line(state, index, n) for index, n in zip(indices, out.shape[axis:], strict=False)]
    terms: list[Term] = []
    if type(x) is Banded and equation.primitive.name == "scatter_add":
        terms += x.terms
    elif not state.is_zero(x):
        raise GiveUp
    if None in lines or type(value) not in (Var, Banded):
        raise GiveUp
    if value.shape != (*out.shape[:axis], indices[0].shape[0], *out.shape[axis + len(indices) :]):
        raise GiveUp
    for term in value.terms if type(value) is Banded else [Term(value, value.shape, unit_axes(value.shape))]:
        moved = [_moved(term.axes[axis], *line) for line in lines if line is not None]
        terms.append(term._replace(axes=(*term.axes[:axis], *moved, *term.axes[axis + 1 :])))
    return result_of(equation, merged(state, terms))


def _moved(axis: Axis, start: int, step: int) -> Axis:
    return Axis(start + step * axis.offset, tuple([step * s for s in axis.steps]))


def _line(state: Bands, index: Any, length: int) -> tuple[int, int] | None:
    """(start, step) of a constant vector of indices that are evenly spaced."""
    array = state.constants.get(index) if type(index) is Var else None
    if type(array) is not np.ndarray or array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        return None
    array = np.where(array < 0, array + length, array)
    step = int(array[1] - array[0]) if array.size > 1 else 1
    return (int(array[0]), step) if np.array_equal(array, array[0] + step * np.arange(array.size)) else None
