"""Terms: a sparse Jacobian computed entry by entry, without products.

The derivative of a value is a sum of few terms. A term has a number for each element, that of the input by which it
differentiates, and the derivative: arrays of the value's shape. A shift of the value shifts both, and an elementwise
primitive multiplies the derivatives by its partials. So each term costs as much as one tangent. All its elements are
entries of the Jacobian, whereas a product has zeros without a column of its colour. Terms of several operands go
through a primitive together if each element of the output then has one number. If even one term alone leads to several
numbers, as in a sum, a colouring splits it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.compiled_call import program_call
from func.interpreters.core import ZERO, Linear, NonDifferentiable, Primitive, aval_of, bind, is_inexact
from func.interpreters.drivers import stage_flat
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.elementwise.table import add
from func.interpreters.primitives.structural.diagonals import place
from func.interpreters.primitives.structural.reductions import reduce_mean
from func.interpreters.primitives.structural.shapes import broadcast, convert, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate, embed, getitem
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage
from func.sparse_derivatives.boxes import windowed
from func.sparse_derivatives.coloring import color_columns
from func.sparse_derivatives.dependence import CONTROL, UNKNOWN, Walk
from func.sparse_derivatives.index_sets import MAX_COLUMNS, IndexSets

SAMPLES = 16
"""The number of elements of two terms to compare before all others."""


class NotWorthwhile(Exception):
    """The products of a colouring are cheaper."""


class DerivativeTerm(NamedTuple):
    """The derivative of each element by the input of its number; number 0 means none."""

    numbers: Any
    """An array of integers of the value's shape: the number of the input plus one, or 0."""
    tangent: Any
    """The derivatives, zero where the number is 0. None: ones wherever the number is not 0."""


class DerivativeTerms:
    """The terms of a Program's outputs."""

    def __init__(
        self, program: Program, values: Sequence[Any], terms: Sequence[Sequence[DerivativeTerm]], walk: Walk
    ) -> None:
        self.program = program
        self.walk = walk
        """The same equations with index sets and known values."""
        self.values: dict[Var, Any] = {var: _uniform(value) for var, value in program.constants.items()}
        self.values.update(zip(program.inputs, values, strict=True))
        self.terms: dict[Var, Sequence[DerivativeTerm]] = dict(zip(program.inputs, terms, strict=True))
        self.count = next((x.count for x in walk.sets.values() if x is not None), 0)
        """The number of inputs."""
        self.work = 0
        """The number of elements of the tangents of all terms."""
        self.active = 0
        """The number of elements of the values on which a tangent depends: the work for one colour."""

    def outputs(self) -> list[Sequence[DerivativeTerm]]:
        """The terms of each output; raises NotWorthwhile for many terms."""
        for equation in self.program.equations:
            self._apply(equation)
        return [self.of(x) for x in self.program.outputs]

    def of(self, x: Any) -> Sequence[DerivativeTerm]:
        """The terms of an operand."""
        return self.terms.get(x, ()) if type(x) is Var else ()

    def value(self, x: Any) -> Any:
        """The value of an operand."""
        return self.values[x] if type(x) is Var else x

    def _apply(self, equation: Equation) -> None:
        primitive = equation.primitive
        operands = [self.of(x) for x in equation.inputs]
        is_active = any(operands)
        primals = tuple([self.value(x) for x in equation.inputs])
        if is_active and primitive is program_call:
            self._call(equation, primals, operands)
            return
        out = bind(primitive, primals, equation.params)
        outs = out if primitive.multiple else (out,)
        self.values.update(zip(equation.outputs, outs, strict=True))
        if not is_active or isinstance(primitive, NonDifferentiable):
            return
        if not any([is_inexact(x.dtype) for x in equation.outputs]):
            return
        if primitive in CONTROL or isinstance(primitive, CallPrimitive) or primitive.calls_python:
            raise NotWorthwhile
        if all([self.walk.sets.get(x) is None for x in equation.outputs]):
            return
        results = self._derived(equation, primals, out, operands)
        for x, terms in zip(equation.outputs, results, strict=True):
            if not is_inexact(x.dtype):
                continue
            size = math.prod(x.shape)
            self.work += size * len(terms)
            self.active += size
            if len(terms) > MAX_COLUMNS:
                raise NotWorthwhile
            self.terms[x] = terms

    def _call(self, equation: Equation, primals: Sequence[Any], operands: Sequence[Sequence[DerivativeTerm]]) -> None:
        """A call of a traced function: its equations."""
        called = equation.params["compiled"].program
        sets = [self.walk.sets.get(x) if type(x) is Var else None for x in equation.inputs]
        walk = Walk(called, sets, [self.walk.value(x) for x in equation.inputs], False)
        walk.outputs()
        nested = DerivativeTerms(called, primals, operands, walk)
        results = nested.outputs()
        self.work += nested.work
        self.active += nested.active
        for x, y, terms in zip(equation.outputs, called.outputs, results, strict=True):
            self.values[x] = nested.value(y)
            self.terms[x] = terms

    def _derived(
        self, equation: Equation, primals: tuple[Any, ...], out: Any, operands: Sequence[Sequence[DerivativeTerm]]
    ) -> list[list[DerivativeTerm]]:
        primitive = equation.primitive
        is_elementwise = isinstance(primitive, Linear) and primitive.mask == "elementwise"
        if is_elementwise or isinstance(primitive, Elementwise) or primitive is where:
            return [self._elementwise(equation, primals, out, operands)]
        if primitive in (reduce_sum, reduce_mean):
            return [self._summed(equation, operands[0])]
        results: list[list[DerivativeTerm]] = [[] for _ in equation.outputs]
        for group in itertools.zip_longest(*operands):
            for position, terms in enumerate(self._through(equation, primals, out, group)):
                results[position].extend(terms)
        return [merged(terms, x.dtype) for x, terms in zip(equation.outputs, results, strict=True)]

    def _elementwise(
        self, equation: Equation, primals: tuple[Any, ...], out: Any, operands: Sequence[Sequence[DerivativeTerm]]
    ) -> list[DerivativeTerm]:
        """Terms of equal numbers go together."""
        shape = equation.outputs[0].shape
        groups: list[tuple[Any, list[Any]]] = []
        for i, terms in enumerate(operands):
            for term in terms:
                numbers = np.broadcast_to(term.numbers, shape) if term.numbers.shape != shape else term.numbers
                for k, (others, members) in enumerate(groups):
                    if members[i] is None and (joint := _joint(others, numbers)) is not None:
                        members[i] = term
                        groups[k] = joint, members
                        break
                else:
                    groups.append((numbers, [term if k == i else None for k in range(len(operands))]))
        primitive, results = equation.primitive, []
        for numbers, members in groups:
            if primitive is convert and members[0].tangent is None:
                results.append(DerivativeTerm(numbers, None))
                continue
            tangents = tuple([_tangent(x, member) for x, member in zip(equation.inputs, members, strict=True)])
            tangent = primitive.tangent_of(primals, out, tangents, equation.params)
            if tangent is not ZERO:
                results.append(DerivativeTerm(numbers, tangent))
        return _without_repeated(results, equation.outputs[0].dtype)

    def _summed(self, equation: Equation, terms: Sequence[DerivativeTerm]) -> list[DerivativeTerm]:
        """A sum along short axes: a term for each summed element."""
        axes, x = equation.params["axes"], equation.inputs[0]
        lengths = [x.shape[axis] for axis in axes]
        if len(terms) * math.prod(lengths) > MAX_COLUMNS:
            raise NotWorthwhile
        scale = 1 / math.prod(lengths) if equation.primitive is reduce_mean else None
        results = []
        for places in np.ndindex(*lengths):
            at = dict(zip(axes, places, strict=True))
            index = tuple([at.get(axis, (0, length, 1)) for axis, length in enumerate(x.shape)])
            for term in terms:
                numbers = getitem.impl(np, term.numbers, index=index)
                tangent = None if term.tangent is None else getitem(term.tangent, index=index)
                if scale is not None:
                    tangent = (_ones(numbers, x.dtype) if tangent is None else tangent) * scale
                results.append(DerivativeTerm(numbers, tangent))
        return merged(results, x.dtype)

    def _through(
        self, equation: Equation, primals: tuple[Any, ...], out: Any, group: Sequence[DerivativeTerm | None]
    ) -> list[list[DerivativeTerm]]:
        """Terms of the outputs from at most one term of each operand, split where they meet in an element."""
        primitive = equation.primitive
        sets = self._sets(equation, group)
        numbers = [_single(x) for x in sets]
        if all([x is not MANY for x in numbers]):
            return self._with_numbers(equation, primals, out, group, numbers)
        if sum([term is not None for term in group]) > 1:
            alone = [[term if k == i else None for k in range(len(group))] for i, term in enumerate(group) if term]
            parts = [self._through(equation, primals, out, single_terms) for single_terms in alone]
            return [[term for part in parts for term in part[k]] for k in range(len(sets))]
        position = next(i for i, term in enumerate(group) if term is not None)
        term = group[position]
        assert term is not None
        rows = scipy.sparse.vstack([x.rows for x in sets if x is not None], format="csr")
        if np.diff(rows.indptr).max(initial=0) > MAX_COLUMNS:
            raise NotWorthwhile
        colors = np.append(0, color_columns(rows) + 1)[term.numbers]
        results: list[list[DerivativeTerm]] = [[] for _ in sets]
        for color in range(1, int(colors.max(initial=0)) + 1):
            mask = colors == color
            if not mask.any():
                continue
            part = _masked(term, mask, equation.inputs[position].dtype)
            single_terms = [part if k == position else None for k in range(len(group))]
            numbers = [_single(x) for x in self._sets(equation, single_terms)]
            assert all([x is not MANY for x in numbers]), primitive
            for k, terms in enumerate(self._with_numbers(equation, primals, out, single_terms, numbers)):
                results[k].extend(terms)
        if len(results) * max([len(terms) for terms in results]) > MAX_COLUMNS:
            raise NotWorthwhile
        return results

    def _sets(self, equation: Equation, group: Sequence[DerivativeTerm | None]) -> list[IndexSets | None]:
        """The index sets of the outputs from the numbers of the operands."""
        sets = [None if x is None else IndexSets(x.numbers.shape, self.count, x.numbers[None]) for x in group]
        return list(self.walk.outputs_of(equation, sets))

    def _with_numbers(
        self,
        equation: Equation,
        primals: tuple[Any, ...],
        out: Any,
        group: Sequence[DerivativeTerm | None],
        numbers: Sequence[Any],
    ) -> list[list[DerivativeTerm]]:
        """The tangents of outputs whose elements depend on one input each."""
        primitive = equation.primitive
        is_unit = all([term is None or term.tangent is None for term in group])
        if is_unit and primitive in MOVES and numbers[0] is not None and numbers[0].all():
            return [[DerivativeTerm(numbers[0], None)]]
        tangents = tuple([_tangent(x, term) for x, term in zip(equation.inputs, group, strict=True)])
        images = primitive.tangent_of(primals, out, tangents, equation.params)
        images = images if primitive.multiple and images is not ZERO else [images] * len(numbers)
        return [
            [] if x is None or tangent is ZERO else [DerivativeTerm(x, tangent)]
            for x, tangent in zip(numbers, images, strict=True)
        ]


MOVES: frozenset[Primitive] = frozenset((getitem, reshape, broadcast, concatenate))
"""Primitives whose outputs' elements are elements of their operands."""


MANY: Any = object()
"""The numbers of elements of which some depend on several inputs."""


def _single(sets: IndexSets | None) -> Any:
    """The one number of each element, or 0; None for none at all."""
    if sets is None:
        return None
    columns = sets.columns
    if columns is None:
        lengths = np.diff(sets.rows.indptr)
        if lengths.max(initial=0) > 1:
            return MANY
        numbers = np.zeros(sets.size, np.int64)
        numbers[lengths == 1] = sets.rows.indices + 1
        return numbers.reshape(sets.shape)
    if len(columns) == 1:
        return columns[0]
    return MANY if (np.count_nonzero(columns, axis=0) > 1).any() else columns.max(axis=0)


def _uniform(value: Any) -> Any:
    """A constant whose elements are equal, signs of zeros included, as a broadcast number."""
    if not isinstance(value, np.ndarray) or value.size < 2 or not is_inexact(value.dtype):
        return value
    repeated: Any = np.broadcast_to(value.reshape(-1)[0], value.shape)
    parts = (
        ((value.real, repeated.real), (value.imag, repeated.imag)) if value.dtype.kind == "c" else ((value, repeated),)
    )
    is_uniform = all([np.array_equal(a, b) and np.array_equal(np.signbit(a), np.signbit(b)) for a, b in parts])
    return repeated if is_uniform else value


def _tangent(x: Any, term: DerivativeTerm | None) -> Any:
    """The tangent of an operand along a term."""
    if term is None:
        return ZERO
    return _ones(term.numbers, _dtype(x)) if term.tangent is None else term.tangent


def _dtype(x: Any) -> Any:
    return x.dtype if type(x) is Var else aval_of(x).dtype


def _window(mask: Any) -> tuple[tuple[int, int, int], ...] | None:
    """The index of the window in which a mask is true, if it is false elsewhere."""
    index = []
    for axis in range(mask.ndim):
        inside = np.flatnonzero(mask.any(axis=tuple([k for k in range(mask.ndim) if k != axis])))
        index.append((int(inside[0]), int(inside[-1]) + 1, 1))
    return tuple(index) if mask[tuple([slice(*entry) for entry in index])].all() else None


def _ones(numbers: Any, dtype: Any) -> Any:
    """Ones at each number, from the fewest constants."""
    one = np.ones((), dtype)[()]
    mask = numbers != 0
    if mask.all():
        return broadcast(one, shape=mask.shape)
    index = _window(mask)
    if index is None:
        return mask.astype(dtype)
    return embed(broadcast(one, shape=tuple([stop - start for start, stop, _ in index])), index=index, shape=mask.shape)


def _masked(term: DerivativeTerm, mask: Any, dtype: Any) -> DerivativeTerm:
    """The part of a term where a mask, true in at least one place, is true."""
    numbers = np.where(mask, term.numbers, 0)
    if term.tangent is None or mask.all():
        return DerivativeTerm(numbers, term.tangent)
    index = _window(mask)
    if index is None:
        return DerivativeTerm(numbers, where(mask, term.tangent, np.zeros((), dtype)[()]))
    return DerivativeTerm(numbers, embed(getitem(term.tangent, index=index), index=index, shape=mask.shape))


def _joint(first: Any, second: Any) -> Any:
    """The numbers of two terms together; None if an element would have two."""
    if first is second:
        return first
    flat, others = _sampled(first), _sampled(second)
    if ((flat != others) & (flat != 0) & (others != 0)).any():
        return None
    if np.array_equal(first, second):
        return first
    is_empty = first == 0
    if not (is_empty | (second == 0) | (first == second)).all():
        return None
    return np.where(is_empty, second, first)


def _sampled(numbers: Any) -> Any:
    """Some elements."""
    index = tuple([slice(None, None, max(length // SAMPLES, 1)) for length in numbers.shape])
    return numbers[index]


def merged(terms: Sequence[DerivativeTerm], dtype: Any) -> list[DerivativeTerm]:
    """The sum of terms that leave one number for each element."""
    results: list[DerivativeTerm] = []
    for term in terms:
        for k, other in enumerate(results):
            joint = _joint(other.numbers, term.numbers)
            if joint is not None:
                results[k] = _added(other, term, joint, dtype)
                break
        else:
            results.append(term)
    return _without_repeated(results, dtype)


def _without_repeated(terms: list[DerivativeTerm], dtype: Any) -> list[DerivativeTerm]:
    """Terms whose numbers all appear in others at the same elements, added to those part by part."""
    k = 0
    while k < len(terms) and len(terms) > 1:
        spread = _spread(terms[k], [*terms[:k], *terms[k + 1 :]], dtype)
        if spread is None:
            k += 1
        else:
            terms, k = spread, 0
    return terms


def _spread(term: DerivativeTerm, others: list[DerivativeTerm], dtype: Any) -> list[DerivativeTerm] | None:
    """Other terms with a term added to them; None if an element of it has a number that no other has there."""
    sample = _sampled(term.numbers)
    missing = sample != 0
    for other in others:
        missing &= _sampled(other.numbers) != sample
    if missing.any():
        return None
    left = term.numbers != 0
    masks = []
    for other in others:
        masks.append(left & (other.numbers == term.numbers))
        left = left & ~masks[-1]
    if left.any():
        return None
    return [
        _added(other, _masked(term, mask, dtype), other.numbers, dtype) if mask.any() else other
        for other, mask in zip(others, masks, strict=True)
    ]


def _added(first: DerivativeTerm, second: DerivativeTerm, joint: Any, dtype: Any) -> DerivativeTerm:
    if first.tangent is None and second.tangent is None and not ((first.numbers != 0) & (second.numbers != 0)).any():
        return DerivativeTerm(joint, None)
    return DerivativeTerm(
        joint, add(*[_ones(x.numbers, dtype) if x.tangent is None else x.tangent for x in (first, second)])
    )


MAX_RUNS = 8
"""The most distinct orders of terms in rows for which the entries are written in runs."""
MAX_EQUATIONS = 4000
"""The most equations of all runs together."""


def entries(program: Program, values: Sequence[Any], inputs: Sequence[int], pattern: Any, products: int) -> Any:
    """The entries of a pattern in CSR order; raises NotWorthwhile if that number of products is cheaper."""
    terms, tangents = _traced_terms(program, values, inputs, pattern.shape[1], products)
    parts: list[Any] = []
    placements: list[Any] = []
    row = first = 0
    for out, several in zip(program.outputs, terms, strict=True):
        size, stop = math.prod(np.shape(out)), first + len(several)
        indptr = pattern.indptr[row : row + size + 1].astype(np.int64)
        indices = pattern.indices[indptr[0] : indptr[-1]]
        own = Program(tangents.inputs, tangents.equations, tangents.outputs[first:stop], tangents.constants)
        block = _Block(own, values, _dtype(out), indptr - indptr[0], indices, [term.numbers for term in several])
        for part, (offset, sizes, strides) in block.parts() if len(indices) else ():
            parts.append(part)
            placements.append((int(indptr[0] + offset), sizes, strides))
        row, first = row + size, stop
    if len(parts) < 2:
        return parts[0] if parts else np.zeros(0)
    dtype = np.result_type(*[_dtype(out) for out in program.outputs])
    return place(*parts, shape=(pattern.nnz,), dtype=dtype, placements=tuple(placements))


def _traced_terms(
    program: Program, values: Sequence[Any], inputs: Sequence[int], count: int, products: int
) -> tuple[list[Sequence[DerivativeTerm]], Program]:
    """The terms of a Program's outputs, and the Program of their derivatives, each in one dimension."""
    sets: list[Any] = [None] * len(program.inputs)
    seeds: list[Sequence[DerivativeTerm]] = [()] * len(program.inputs)
    start = 0
    for i in inputs:
        shape = program.inputs[i].shape
        sets[i] = IndexSets.identity(shape, start, count)
        seeds[i] = [DerivativeTerm(sets[i].columns[0], None)]
        start += math.prod(shape)
    walk = Walk(program, sets, [UNKNOWN] * len(sets), False)
    walk.outputs()
    results: list[Sequence[DerivativeTerm]] = []

    def tangents(*traced: Any) -> list[Any]:
        terms_of_outputs = DerivativeTerms(program, traced, seeds, walk)
        results.extend(terms_of_outputs.outputs())
        if terms_of_outputs.work > products * terms_of_outputs.active:
            raise NotWorthwhile
        return [
            np.reshape(_ones(t.numbers, _dtype(out)) if t.tangent is None else t.tangent, -1)
            for out, terms in zip(program.outputs, results, strict=True)
            for t in terms
        ]

    traced_program = stage_flat(tangents, [aval_of(value) for value in values], DerivedStage("sparsity"))
    return results, traced_program.pruned()


class _Block:
    """The rows of one output: the source of each of their entries."""

    def __init__(
        self, tangents: Program, values: Sequence[Any], dtype: Any, indptr: Any, indices: Any, numbers: Sequence[Any]
    ) -> None:
        self.tangents = tangents
        """The Program of the terms' derivatives."""
        self.values = values
        self.dtype = dtype
        self.indptr = indptr
        self.count = len(indptr) - 1
        self.rows = np.repeat(np.arange(self.count), np.diff(indptr))
        matches = [x.reshape(-1)[self.rows] == indices + 1 for x in numbers]
        self.sources, *self.more = _sources(matches, len(indices))

    def parts(self) -> list[tuple[Any, Any]]:
        """Arrays that together contain the entries, each with its placement."""
        if not self.more and np.diff(self.indptr).max() <= MAX_COLUMNS:
            orders = _orders(self.sources, self.indptr, self.rows)
            changes = 1 + np.flatnonzero((orders[:, 1:] != orders[:, :-1]).any(axis=0))
            is_short = (len(changes) + 1) * len(self.tangents.equations) <= MAX_EQUATIONS
            if len(changes) < MAX_RUNS and is_short:
                bounds = itertools.pairwise([0, *changes.tolist(), self.count])
                return [part for start, stop in bounds for part in self._run(orders[:, start], start, stop)]
        tangents = [*self.tangents.run(self.values), np.zeros(self.count, self.dtype)]
        data = _read(tangents, self.sources, self.rows)
        for layer in self.more:
            places = np.flatnonzero(layer >= 0)
            values = _read(tangents, layer[places], self.rows[places])
            total = np.zeros_like(values, shape=len(layer))
            total[places] = values
            data = data + total
        return [(data, (0, (len(self.rows),), (1,)))]

    def _run(self, order: Any, start: int, stop: int) -> list[tuple[Any, Any]]:
        """The entries of rows that have the same order of terms, term by term."""
        order = order[order != -2]
        used = [k for k in order if k >= 0]
        outputs = [self.tangents.outputs[k] for k in used]
        program = Program(self.tangents.inputs, self.tangents.equations, outputs, self.tangents.constants)
        columns = dict(zip(used, windowed(program, self.values, [((start, stop),)] * len(used)), strict=True))
        zero = np.zeros((), self.dtype)
        width, first = len(order), int(self.indptr[start])
        return [(columns.get(k, zero), (first + q, (stop - start,), (width,))) for q, k in enumerate(order)]


def _sources(matches: Sequence[Any], size: int) -> list[Any]:
    """For each entry its term, -1 for none; more such arrays if several terms have one entry."""
    layers = [np.full(size, -1, np.int16)]
    depth = np.zeros(size, np.int16)
    for k, has in enumerate(matches):
        for layer in range(int(depth[has].max(initial=-1)) + 1):
            if layer == len(layers):
                layers.append(np.full(size, -1, np.int16))
            layers[layer][has & (depth == layer)] = k
        depth += has
    return layers


def _orders(sources: Any, indptr: Any, rows: Any) -> Any:
    """The terms of the entries of each row, (entries of a row, rows); -2 behind the last."""
    width, count = int(np.diff(indptr).max(initial=0)), len(indptr) - 1
    orders = np.full((width, count), -2, np.int16)
    orders[np.arange(len(rows)) - indptr[rows], rows] = sources
    return orders


def _read(tangents: Sequence[Any], sources: Any, rows: Any) -> Any:
    """Elements of the terms at rows, read from a table in which those of a row are neighbours."""
    used = np.unique(sources)
    table = np.stack([tangents[k] for k in used], axis=-1).reshape(-1)
    places = rows * len(used) + np.searchsorted(used, sources)
    return table[places.astype(np.int32) if len(table) < 2**31 else places]
