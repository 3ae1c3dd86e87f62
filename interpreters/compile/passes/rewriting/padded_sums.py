"""Sums of padded slices, which the gradients of many slices are: neighbouring pieces are joined, not added up.

Adding the padding of the others to a piece changes nothing but the sign of a zero. Where a sum also has terms of other
kinds, these are added last.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.operand_trees import roots, terms_below
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, rewritten
from func.interpreters.compile.passes.rewriting.slice_rules import Index, interval
from func.interpreters.core import Shape
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.slicing import concatenate, embed
from func.interpreters.program.program import Equation, Program, Var


def padding(program: Program) -> Program:
    """The program with sums of padded pieces along one axis joined."""
    if sum([equation.primitive is embed for equation in program.equations]) < 2:
        return program
    sums = roots(program, add)

    def rule(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
        return _joined(rw, out, x, y) if out in sums else None

    return rewritten(program, lambda primitive: (rule,) if primitive is add else ())


def _joined(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """A sum with the padded pieces among its terms joined, axis by axis."""
    groups: dict[Any, dict[Any, list[Equation]]] = {}
    rest: list[Any] = []
    for term in terms_below(rw, x, y):
        equation = rw.maker(term, embed)
        axis = None if equation is None else _padded_axis(equation.params["index"], out.shape)
        if equation is None or axis is None or not rw.used_once(term) or equation.inputs[0].dtype != out.dtype:
            rest.append(term)
        else:
            place = equation.params["index"][axis]
            groups.setdefault(axis, {}).setdefault(interval(place), []).append(equation)
    joined = []
    for axis, places in groups.items():
        if _are_neighbours(places, out.shape[axis]):
            joined.append(_pieces(rw, places, axis, out))
        else:
            rest += [equation.outputs[0] for members in places.values() for equation in members]
    if not joined:
        return None
    total = joined[0]
    for term in [*joined[1:], *rest]:
        total = rw.emit(add, total, term)
    return total


def _padded_axis(index: Index, shape: Shape) -> int | None:
    """The only axis along which an index does not select everything in order."""
    if None in index:
        return None
    partial = [axis for axis, entry in enumerate(index) if entry != (0, shape[axis], 1)]
    if len(partial) != 1:
        return None
    entry = index[partial[0]]
    is_run = isinstance(entry, int) or (entry[2] == 1 and entry[1] > entry[0])
    return partial[0] if is_run else None


def _are_neighbours(places: dict[Any, Any], length: int) -> bool:
    """True for pieces that do not overlap, and of which there are three or which leave nothing out."""
    ordered = sorted(places)
    if any([a[1] > b[0] for a, b in itertools.pairwise(ordered)]):
        return False
    return len(ordered) > 2 or (len(ordered) == 2 and sum([stop - start for start, stop in ordered]) == length)


def _pieces(rw: Rewriter, places: dict[Any, list[Equation]], axis: int, out: Var) -> Any:
    """The pieces in order, with zeros in the gaps."""
    parts: list[Any] = []
    reached = 0
    for start, stop in sorted(places):
        parts += _gap(rw, reached, start, axis, out)
        parts.append(_piece(rw, places[start, stop], _resized(out.shape, axis, stop - start)))
        reached = stop
    parts += _gap(rw, reached, out.shape[axis], axis, out)
    return rw.emit(concatenate, *parts, axis=axis)


def _piece(rw: Rewriter, equations: Sequence[Equation], shape: Shape) -> Any:
    """What is put in one place: a sum, if several are."""
    total = equations[0].inputs[0]
    for equation in equations[1:]:
        total = rw.emit(add, total, equation.inputs[0])
    return rw.reshaped(total, shape)


def _gap(rw: Rewriter, start: int, stop: int, axis: int, out: Var) -> list[Any]:
    if start == stop:
        return []
    return [rw.constant(np.broadcast_to(np.zeros((), out.dtype), _resized(out.shape, axis, stop - start)))]


def _resized(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
