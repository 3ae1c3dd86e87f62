"""Sums of many terms, as trees of additions: their terms, and the joining of padded slices among them.

The gradient of several slices of one array is a sum of padded slices: pad(a) + pad(b) = concatenate(a, b) where the
slices are neighbours. Only the sign of a zero can change. Terms of other kinds are added last.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.equation_builder import count_uses
from func.interpreters.compile.passes.index_arithmetic import Index, interval, partial_axes
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, rewrite
from func.interpreters.core import Primitive, Shape
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.slicing import concatenate, embed
from func.interpreters.program.program import Equation, Program, Var


def tree_roots(program: Program, primitive: Primitive, uses: Mapping[Any, int]) -> set[Var]:
    """The outputs of a primitive's equations that are not used once, by an equation of the same primitive. A sum that
    is broadcast or converted where it is added is a root, too."""
    roots: set[Var] = set()
    for equation in program.equations:
        if equation.primitive is primitive:
            out = equation.outputs[0]
            inner = [x for x in equation.inputs if type(x) is Var and uses[x] == 1]
            roots.difference_update([x for x in inner if primitive is not add or _is_like(x, out)])
            roots.add(out)
    return roots


def _is_like(x: Any, out: Var) -> bool:
    return type(x) is Var and x.shape == out.shape and x.dtype == out.dtype


def tree_terms(rw: Rewriter, out: Var, x: Any, y: Any) -> list[Any]:
    """The terms of out = x + y in order, through inner additions of this shape and dtype that are used once."""
    terms: list[Any] = []
    stack = [y, x]
    while stack:
        term = stack.pop()
        equation = rw.definition(term, add)
        if equation is None or not rw.used_once(term) or not all([_is_like(z, out) for z in (term, *equation.inputs)]):
            terms.append(term)
        else:
            stack += [equation.inputs[1], equation.inputs[0]]
    return terms


def add_all(rw: Rewriter, terms: Sequence[Any]) -> Any:
    """The sum of terms, added from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = rw.emit(add, total, term)
    return total


def join_padded_sums(program: Program) -> Program:
    """Replace sums of padded slices along one axis by concatenations."""
    if sum([equation.primitive is embed for equation in program.equations]) < 2:
        return program
    roots = tree_roots(program, add, count_uses(program))

    def join_at_root(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
        return _join_sum(rw, out, x, y) if out in roots else None

    return rewrite(program, lambda primitive: (join_at_root,) if primitive is add else ())


def _join_sum(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """A sum in which the padded slices are joined, axis by axis; None where there are none to join."""
    padded: dict[int, dict[tuple[int, int], list[Equation]]] = {}
    rest: list[Any] = []
    for term in tree_terms(rw, out, x, y):
        equation = rw.definition(term, embed) if _is_like(term, out) else None
        axis = None if equation is None else _padded_axis(equation.params["index"], out.shape)
        if equation is None or axis is None or not rw.used_once(term):
            rest.append(term)
        else:
            span = interval(equation.params["index"][axis])
            padded.setdefault(axis, {}).setdefault(span, []).append(equation)
    joined = []
    for axis, slices in padded.items():
        if _are_joinable(slices, out.shape[axis]):
            joined.append(_join_slices(rw, slices, axis, out))
        else:
            rest += [equation.outputs[0] for equations in slices.values() for equation in equations]
    return add_all(rw, [*joined, *rest]) if joined else None


def _padded_axis(index: Index, shape: Shape) -> int | None:
    """The only axis along which an index does not select everything, if it selects a run there."""
    if None in index:
        return None
    partial = partial_axes(index, shape)
    if len(partial) != 1:
        return None
    entry = index[partial[0]]
    is_run = isinstance(entry, int) or (entry[2] == 1 and entry[1] > entry[0])
    return partial[0] if is_run else None


def _are_joinable(slices: dict[tuple[int, int], Any], length: int) -> bool:
    """True for slices that do not overlap, and of which there are three or that cover the axis."""
    ordered = sorted(slices)
    if any([a[1] > b[0] for a, b in itertools.pairwise(ordered)]):
        return False
    return len(ordered) > 2 or (len(ordered) == 2 and sum([stop - start for start, stop in ordered]) == length)


def _join_slices(rw: Rewriter, slices: dict[tuple[int, int], list[Equation]], axis: int, out: Var) -> Any:
    """The slices in order, with zeros in the gaps."""
    parts: list[Any] = []
    end = 0
    for start, stop in sorted(slices):
        parts += _gap(rw, end, start, axis, out)
        values = [equation.inputs[0] for equation in slices[start, stop]]
        shape = _with_length(out.shape, axis, stop - start)
        if len({value.shape for value in values}) > 1:  # written at an integer and at a run of length one
            values = [rw.reshape(value, shape) for value in values]
        parts.append(rw.reshape(add_all(rw, values), shape))
        end = stop
    parts += _gap(rw, end, out.shape[axis], axis, out)
    return rw.emit(concatenate, *parts, axis=axis)


def _gap(rw: Rewriter, start: int, stop: int, axis: int, out: Var) -> list[Any]:
    if start == stop:
        return []
    return [rw.constant(np.broadcast_to(np.zeros((), out.dtype), _with_length(out.shape, axis, stop - start)))]


def _with_length(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
