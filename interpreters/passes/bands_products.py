"""How sums and contractions act on sums of terms."""

from __future__ import annotations

import math
from typing import Any

from func.interpreters.core import Shape
from func.interpreters.passes.banded import Banded, Bands
from func.interpreters.passes.bands_rules import Rule, merged, result_of, times
from func.interpreters.passes.terms import Axis, GiveUp, Term, renumbered
from func.interpreters.primitives.contraction import contract, spec
from func.interpreters.primitives.elementwise import divide, multiply
from func.interpreters.primitives.structural import reduce_sum
from func.interpreters.program import Equation, Var


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
        bigger = state.grown(term, extra)
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
