"""Dependence: the pattern of a Program's Jacobian, from index sets passed through its equations.

Linear primitives have rules: moves of elements, sums, contractions, triangular and sparse solves. A nonlinear primitive
that is not elementwise uses them through its tangent map, traced from its jvp. So the softmax of each row depends on
that row, and the factor of a matrix of a batch on that matrix. Without a rule or a jvp, each output depends on
everything that any operand depends on.

Integers, truth values and constants depend on nothing. Values that follow from them alone are known, and tighten
patterns: indices of gathers, zeros of factors, conditions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.array_helpers.strided import strided_places
from func.backends.array_helpers.windows import lags_of
from func.backends.array_helpers.windows import windows as windows_of
from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.control.branches import cond_call
from func.interpreters.control.scan import scan_call
from func.interpreters.control.while_loops import while_call
from func.interpreters.core import ZERO, Aval, Linear, NonDifferentiable, Primitive, aval_of, bind, is_inexact
from func.interpreters.drivers import stage_flat
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.elementwise.table import divide, multiply
from func.interpreters.primitives.linalg.solving import solve, triangular_solve
from func.interpreters.primitives.linalg.sparse import sparse_product, sparse_solve
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.convolution import correlate, overlap_add, windows
from func.interpreters.primitives.structural.cumulative import cumsum
from func.interpreters.primitives.structural.diagonals import place, take
from func.interpreters.primitives.structural.fft import fft, irfft, rfft
from func.interpreters.primitives.structural.filling import absent
from func.interpreters.primitives.structural.filters import correlate_windows, recurrence, spline_coefficients
from func.interpreters.primitives.structural.indexing import gather, scatter, scatter_add
from func.interpreters.primitives.structural.reductions import reduce_mean
from func.interpreters.primitives.structural.segment_sums import segment_bounds, segment_sum
from func.interpreters.primitives.structural.shapes import broadcast, permute, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate, embed, getitem, update
from func.interpreters.primitives.structural.sorting import reorder
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage
from func.sparse_derivatives.index_sets import IndexSets, union

MAX_UNROLLED = 2000
"""A scan of more steps is followed to a fixed point instead of step by step."""

Sets: TypeAlias = IndexSets | None
"""The inputs on which a value depends; None: on nothing."""
UNKNOWN: Any = object()
"""A value that does not follow from constants and known inputs."""


class Operands:
    """The facts of one equation for its rule: the index sets, the avals, and, on demand, the known values."""

    __slots__ = ("avals", "out", "params", "primitive", "sets", "value")

    def __init__(
        self,
        primitive: Primitive,
        sets: Sequence[Sets],
        avals: Sequence[Aval],
        params: Any,
        out: Aval,
        value: Callable[[int], Any],
    ) -> None:
        self.primitive = primitive
        self.sets = sets
        self.avals = avals
        self.params = params
        self.out = out
        self.value = value
        """value(i): the value of operand i, or UNKNOWN."""


def dependence(program: Program, sets: Sequence[Sets], values: Sequence[Any], at_point: bool = False) -> list[Sets]:
    """The index sets of a Program's outputs from those of its inputs; unknown values are UNKNOWN.

    With `at_point` each partial derivative that is zero at the known values removes its entry.
    """
    return Walk(program, sets, values, at_point).outputs()


class Walk:
    """One pass over the equations of a Program."""

    def __init__(self, program: Program, sets: Sequence[Sets], values: Sequence[Any], at_point: bool) -> None:
        self.program = program
        self.at_point = at_point
        self.sets: dict[Var, Sets] = dict(zip(program.inputs, sets, strict=True))
        self.known: dict[Var, Any] = dict(program.constants)
        self.known.update({x: v for x, v in zip(program.inputs, values, strict=True) if v is not UNKNOWN})
        self.sources: dict[Var, Equation] = {}
        """The equations of known values, computed on demand."""

    def outputs(self) -> list[Sets]:
        for equation in self.program.equations:
            self._apply(equation)
        return [self.sets.get(x) if type(x) is Var else None for x in self.program.outputs]

    def values(self) -> list[Any]:
        """The known outputs."""
        return [self.value(x) for x in self.program.outputs]

    def value(self, x: Any) -> Any:
        """The value of an operand, computed now if it follows from known values; UNKNOWN otherwise."""
        if type(x) is not Var:
            return x
        pending = [x]
        while pending:
            var = pending[-1]
            equation = self.sources.get(var)
            if var in self.known or equation is None:
                pending.pop()
                continue
            missing = [v for v in equation.inputs if type(v) is Var and v not in self.known]
            if missing:
                pending.extend(missing)
                continue
            operands = tuple([self.known[v] if type(v) is Var else v for v in equation.inputs])
            outs = _evaluated(equation, operands)
            self.known.update(zip(equation.outputs, outs, strict=True))
            pending.pop()
        return self.known.get(x, UNKNOWN)

    def _apply(self, equation: Equation) -> None:
        primitive, inputs = equation.primitive, equation.inputs
        if not primitive.calls_python or isinstance(primitive, CallPrimitive):
            is_known = all(
                [type(x) is not Var or x in self.sources or self.known.get(x, UNKNOWN) is not UNKNOWN for x in inputs]
            )
            if is_known:
                self.sources.update(dict.fromkeys(equation.outputs, equation))
        sets = [self.sets.get(x) if type(x) is Var else None for x in inputs]
        if isinstance(primitive, NonDifferentiable) or all([x is None for x in sets]):
            return
        if not any([is_inexact(out.dtype) for out in equation.outputs]):
            return
        results = self.outputs_of(equation, sets)
        for out, result in zip(equation.outputs, results, strict=True):
            if is_inexact(out.dtype) and result is not None and out.aval.size:
                assert result.shape == out.shape, (primitive, result.shape, out.shape)
                self.sets[out] = result

    def outputs_of(self, equation: Equation, sets: list[Sets]) -> Sequence[Sets]:
        primitive, params = equation.primitive, equation.params
        avals = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
        sets = [x if is_inexact(aval.dtype) else None for x, aval in zip(sets, avals, strict=True)]
        values = [self.value(x) for x in equation.inputs] if primitive in CONTROL else []
        if primitive in CONTROL:
            return CONTROL[primitive](equation, sets, values, self.at_point)
        called = getattr(params.get("compiled"), "program", None)
        if isinstance(called, Program):
            walk = Walk(called, sets, [self.value(x) for x in equation.inputs], self.at_point)
            return walk.outputs()
        out = equation.outputs[0].aval
        operands = Operands(primitive, sets, avals, params, out, lambda i: self.value(equation.inputs[i]))
        if isinstance(primitive, Elementwise):
            return [self._elementwise(primitive, operands)]
        if isinstance(primitive, Linear) and primitive.mask == "elementwise":
            return [union(out.shape, [x for x in sets if x is not None])]
        rule = RULES.get(primitive)
        result = None if rule is None else rule(operands)
        return [result] if rule is not None and result is not GENERAL else self._by_tangent(equation, sets, avals)

    def _elementwise(self, primitive: Elementwise, operands: Operands) -> Sets:
        """The union over the operands that have a partial derivative."""
        parts = []
        for i, (sets, partial) in enumerate(zip(operands.sets, primitive.partials, strict=True)):
            if sets is None or partial is None:
                continue
            factor: Any = UNKNOWN
            if self.at_point:
                factor = _partial_at(primitive, i, [operands.value(k) for k in range(len(operands.sets))])
            elif primitive is multiply:
                factor = operands.value(1 - i)
            elif primitive is divide and i == 0:
                factor = operands.value(1)
                factor = UNKNOWN if factor is UNKNOWN else ~np.isinf(factor)  # x / inf
            part = _without_zeros(sets.broadcast(operands.out.shape), factor)
            parts.extend([] if part is None else [part])
        return union(operands.out.shape, parts) if parts else None

    def _by_tangent(self, equation: Equation, sets: Sequence[Sets], avals: Sequence[Aval]) -> Sequence[Sets]:
        """The dependence of a primitive as that of its tangent map, at primals that depend on nothing."""
        primitive, values = equation.primitive, [self.value(x) for x in equation.inputs]
        program = _tangent_program(primitive, equation.params, avals, [x is not None for x in sets])
        if program is None and isinstance(primitive, CallPrimitive) and primitive.jvp is not None:
            program = _body_program(primitive, equation.params, avals)
            if program is not None:
                return dependence(program, sets, values, self.at_point)
        if program is None:
            return _on_everything(equation, sets)
        active = [x for x in sets if x is not None]
        return dependence(program, [*[None] * len(avals), *active], [*values, *[UNKNOWN] * len(active)], self.at_point)


def _evaluated(equation: Equation, operands: tuple[Any, ...]) -> Sequence[Any]:
    """The outputs at known values; UNKNOWN if one of them is unknown."""
    if all([operand is not UNKNOWN for operand in operands]):
        try:
            with np.errstate(all="ignore"):
                out = bind(equation.primitive, operands, equation.params)
        except Exception:  # the call itself will raise it, or never get here
            pass
        else:
            return out if equation.primitive.multiple else (out,)
    return [UNKNOWN] * len(equation.outputs)


def _on_everything(equation: Equation, sets: Sequence[Sets]) -> list[Sets]:
    """Each element of each output depends on all that any operand depends on."""
    parts = [x.everything(()) for x in sets if x is not None]
    merged = union((), parts)
    return [merged.everything(out.shape) for out in equation.outputs]


def _tangent_program(
    primitive: Primitive, params: Any, avals: Sequence[Aval], active: Sequence[bool]
) -> Program | None:
    """The Program (primals, active tangents) -> tangents of the outputs; None if none is more precise."""

    def tangents_of(*operands: Any) -> list[Any]:
        remaining = iter(operands[len(avals) :])
        tangents = tuple([next(remaining) if is_active else ZERO for is_active in active])
        out, tangent = primitive.forward(operands[: len(avals)], tangents, params)
        outs, out_tangents = (out, tangent) if primitive.multiple else ((out,), (tangent,))
        if out_tangents is ZERO:
            out_tangents = [ZERO] * len(outs)
        return [0.0 if t is ZERO else t for t in out_tangents]

    seeds = [aval for aval, is_active in zip(avals, active, strict=True) if is_active]
    try:
        program = stage_flat(tangents_of, [*avals, *seeds], DerivedStage("sparsity"))
    except Exception:  # no jvp, or one that depends on numbers
        return None
    program = program.pruned()
    on_tangents = set(program.inputs[len(avals) :])
    for equation in program.equations:
        if on_tangents.isdisjoint([x for x in equation.inputs if type(x) is Var]):
            continue
        on_tangents.update(equation.outputs)
        if equation.primitive is primitive:
            return None
    return program


def _body_program(primitive: Primitive, params: Any, avals: Sequence[Aval]) -> Program | None:
    """The Program of the function of a call, if the derivative of the call is that of the function."""
    if primitive.body is None:
        return None
    try:
        return stage_flat(primitive.body(params), avals, DerivedStage("sparsity"))
    except Exception:  # a function that depends on numbers
        return None


def _partial_at(primitive: Elementwise, position: int, values: Sequence[Any]) -> Any:
    """The partial derivative at known values."""
    if any([value is UNKNOWN for value in values]):
        return UNKNOWN
    with np.errstate(all="ignore"):
        shape = np.broadcast_shapes(*[np.shape(value) for value in values])
        primals = tuple([np.broadcast_to(value, shape) if np.ndim(value) else value for value in values])
        dtype = aval_of(values[position]).dtype
        seed = np.ones(np.shape(values[position]), dtype if is_inexact(dtype) else np.float64)
        seed = np.broadcast_to(seed, shape).copy() if seed.ndim else seed
        tangents = tuple([seed if i == position else ZERO for i in range(len(values))])
        tangent = primitive.forward(primals, tangents, {})[1]
    return 0.0 if tangent is ZERO else tangent


def _without_zeros(sets: IndexSets, factor: Any) -> Sets:
    """The sets without those of elements that a known factor zeroes."""
    if factor is UNKNOWN:
        return sets
    mask = np.asarray(factor) != 0
    if mask.all():
        return sets
    return sets.where(np.broadcast_to(mask, sets.shape)) if mask.any() else None


GENERAL: Any = object()
"""The result of a rule for unsupported operands: use the tangent map."""
Rule: TypeAlias = Callable[[Operands], Any]
RULES: dict[Primitive, Rule] = {}


def rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Register the rule of primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, function))
        return function

    return register


@rule(getitem, embed, permute, broadcast)
def _moved_elements(operands: Operands) -> Sets:
    """Trace moves: the primitive itself, applied to integers, shows the source of each element."""
    sets, primitive = operands.sets[0], operands.primitive
    assert sets is not None
    return sets.after_move(lambda x: primitive.impl(np, x, **operands.params), operands.out.shape)


@rule(reshape)
def _reshaped(operands: Operands) -> Sets:
    assert operands.sets[0] is not None
    return operands.sets[0].reshaped(operands.out.shape)


@rule(absent)
def _absent(operands: Operands) -> Sets:
    return None


def _joined(operands: Operands, parts: Sequence[Sets], join: Callable[..., Any]) -> Sets:
    """A move of several operands at once: columns padded to equal number, or positions in all operands' rows."""
    count = next(x.count for x in parts if x is not None)
    shapes = [aval.shape for aval in operands.avals[: len(parts)]]
    if all([x is None or x.columns is not None for x in parts]):
        width = max([len(x.columns) for x in parts if x is not None])
        dtype = next(x.columns.dtype for x in parts if x is not None)
        columns = []
        for k in range(width):
            nothing = [np.zeros(shape, dtype) for shape in shapes]
            column = [
                x.columns[k] if x is not None and k < len(x.columns) else zeros
                for x, zeros in zip(parts, nothing, strict=True)
            ]
            columns.append(join(*column))
        return IndexSets(operands.out.shape, count, np.stack(columns))
    alone = []
    for i, x in enumerate(parts):
        if x is not None:

            def move(numbers: Any, i: int = i) -> Any:
                return join(*[numbers if k == i else np.zeros(shape, np.int64) for k, shape in enumerate(shapes)])

            alone.append(x.after_move(move, operands.out.shape))
    return union(operands.out.shape, alone)


@rule(concatenate)
def _concatenated(operands: Operands) -> Sets:
    axis = operands.params["axis"]
    return _joined(operands, operands.sets, lambda *xs: np.concatenate(xs, axis))


@rule(update)
def _updated(operands: Operands) -> Sets:
    def join(x: Any, value: Any) -> Any:
        return update.impl(np, x.copy(), value, **operands.params)

    return _joined(operands, operands.sets, join)


@rule(where)
def _chosen(operands: Operands) -> Sets:
    shape = operands.out.shape
    condition = operands.value(0)
    parts = []
    for x, is_first in zip(operands.sets[1:], (True, False), strict=True):
        if x is not None:
            mask = UNKNOWN if condition is UNKNOWN else np.asarray(condition, bool) == is_first
            part = _without_zeros(x.broadcast(shape), mask)
            parts.extend([] if part is None else [part])
    return union(shape, parts) if parts else None


@rule(reduce_sum, reduce_mean)
def _summed(operands: Operands) -> Sets:
    assert operands.sets[0] is not None
    return operands.sets[0].merged(operands.params["axes"])


@rule(fft, rfft, irfft, spline_coefficients)
def _along_axis(operands: Operands) -> Sets:
    assert operands.sets[0] is not None
    return operands.sets[0].spread((operands.params["axis"],), operands.out.shape)


@rule(cumsum)
def _accumulated(operands: Operands) -> Sets:
    sets, axis = operands.sets[0], operands.params["axis"]
    assert sets is not None
    length = sets.shape[axis]
    after, before = np.tril_indices(length)
    if operands.params["reverse"]:
        after, before = before, after
    numbers = np.moveaxis(np.arange(sets.size).reshape(sets.shape), axis, 0)
    return sets.times(numbers[after], numbers[before], sets.shape)


@rule(segment_sum)
def _summed_in_segments(operands: Operands) -> Sets:
    sets, axis = operands.sets[0], operands.params["axis"]
    assert sets is not None
    bounds = segment_bounds(operands.params["starts"], sets.shape[axis])
    places = np.concatenate([np.arange(start, stop) for start, stop in bounds])
    segments = np.repeat(np.arange(len(bounds)), [stop - start for start, stop in bounds])
    ins = np.moveaxis(np.arange(sets.size).reshape(sets.shape), axis, 0)[places]
    outs = np.moveaxis(_numbers(operands.out.shape), axis, 0)[segments]
    return sets.times(outs, ins, operands.out.shape)


def _numbers(shape: Sequence[int]) -> Any:
    """The flat numbers of the elements of an array of a shape."""
    return np.arange(math.prod(shape)).reshape(tuple(shape))


@rule(windows)
def _windowed(operands: Operands) -> Sets:
    assert operands.sets[0] is not None
    return operands.sets[0].after_move(lambda x: windows_of(np, x, **operands.params), operands.out.shape)


@rule(overlap_add)
def _overlapped(operands: Operands) -> Sets:
    sets, shape = operands.sets[0], operands.out.shape
    assert sets is not None
    params = {key: value for key, value in operands.params.items() if key != "shape"}
    return sets.sent(windows_of(np, _numbers(shape), **params), shape)


@rule(take)
def _taken(operands: Operands) -> Sets:
    sets = operands.sets[0]
    assert sets is not None
    places = strided_places(np, *operands.params["placement"])
    return sets.after_move(lambda x: np.reshape(x, -1)[places], operands.out.shape)


@rule(place)
def _placed(operands: Operands) -> Sets:
    shape = operands.out.shape
    parts = []
    for x, placement in zip(operands.sets, operands.params["placements"], strict=True):
        if x is not None:
            parts.append(x.broadcast(placement[1]).sent(strided_places(np, *placement), shape))
    return union(shape, parts)


@rule(reorder)
def _reordered(operands: Operands) -> Sets:
    sets, order, axis = operands.sets[0], operands.value(1), operands.params["axis"]
    assert sets is not None
    if order is UNKNOWN:
        return sets.spread((axis,), operands.out.shape)
    return sets.after_move(lambda x: np.take_along_axis(x, np.asarray(order), axis), operands.out.shape)


def _index(operands: Operands, first: int) -> Any:
    """The index from operand `first` on behind full slices, or UNKNOWN."""
    indices = [operands.value(i) for i in range(first, len(operands.avals))]
    if any([index is UNKNOWN for index in indices]):
        return UNKNOWN
    return (*[slice(None)] * operands.params["axis"], *[np.asarray(index) for index in indices])


@rule(gather)
def _gathered(operands: Operands) -> Sets:
    sets, index, shape = operands.sets[0], _index(operands, 1), operands.out.shape
    assert sets is not None
    if index is not UNKNOWN:
        return sets.after_move(lambda x: x[index], shape)
    axis, count = operands.params["axis"], len(operands.avals) - 1
    merged = sets.merged(range(axis, axis + count))
    ones = (1,) * len(operands.avals[1].shape)
    return merged.reshaped((*merged.shape[:axis], *ones, *merged.shape[axis:])).broadcast(shape)


def _written_anywhere(operands: Operands) -> Sets:
    """The sets after a write of a value at unknown places along the indexed axes."""
    x, value = operands.sets[:2]
    shape, axis, count = operands.out.shape, operands.params["axis"], len(operands.avals) - 2
    parts = [] if x is None else [x]
    if value is not None:
        rank = len(operands.avals[2].shape)
        region = (*shape[:axis], *operands.avals[2].shape, *shape[axis + count :])
        merged = value.broadcast(region).merged(range(axis, axis + rank))
        ones = (*merged.shape[:axis], *(1,) * count, *merged.shape[axis:])
        parts.append(merged.reshaped(ones).broadcast(shape))
    return union(shape, parts)


@rule(scatter)
def _scattered(operands: Operands) -> Sets:
    index = _index(operands, 2)
    if index is UNKNOWN:
        return _written_anywhere(operands)

    def join(x: Any, value: Any) -> Any:
        out = np.array(x)
        out[index] = value
        return out

    return _joined(operands, operands.sets[:2], join)


@rule(scatter_add)
def _added_at(operands: Operands) -> Sets:
    index = _index(operands, 2)
    if index is UNKNOWN:
        return _written_anywhere(operands)
    x, value = operands.sets[:2]
    parts = [] if x is None else [x]
    if value is not None:
        targets = _numbers(operands.out.shape)[index]
        parts.append(value.broadcast(targets.shape).sent(targets, operands.out.shape))
    return union(operands.out.shape, parts)


@rule(contract)
def _contracted(operands: Operands) -> Sets:
    parts = [
        _contracted_with(operands, i) for i in range(2) if operands.sets[i] is not None and operands.avals[1 - i].size
    ]
    remaining = [x for x in parts if x is not None]
    return union(operands.out.shape, remaining) if remaining else None


MAX_TERMS = 50_000_000
"""The most products of a contraction to examine one by one."""


def _contracted_with(operands: Operands, position: int) -> Sets:
    """The dependence of a contraction through one operand; a known other one contributes its nonzero elements only."""
    spec, shape = operands.params["spec"], operands.out.shape
    sets = operands.sets[position]
    assert sets is not None
    mine, others = (spec.x, spec.y) if position == 0 else (spec.y, spec.x)
    lengths = dict(zip(mine, sets.shape, strict=True)) | dict(
        zip(others, operands.avals[1 - position].shape, strict=True)
    )
    other = operands.value(1 - position)
    alone = [label for label in mine if label not in others]
    if other is not UNKNOWN:
        nonzero = np.nonzero(np.asarray(other))
        count = len(nonzero[0]) if nonzero else int(np.asarray(other) != 0)
        if count == 0:
            return None
        if count < np.size(other) and count * math.prod([lengths[a] for a in alone]) <= MAX_TERMS:
            at: dict[int, Any] = {
                label: places.reshape(-1, *[1] * len(alone)) for label, places in zip(others, nonzero, strict=True)
            }
            for i, label in enumerate(alone):
                at[label] = np.arange(lengths[label]).reshape([-1 if k == i else 1 for k in range(len(alone))])[None]
            outs = np.ravel_multi_index(np.broadcast_arrays(*[at[label] for label in spec.out]), shape) if shape else 0
            ins = np.ravel_multi_index(np.broadcast_arrays(*[at[label] for label in mine]), sets.shape)
            outs, ins = np.broadcast_arrays(outs, ins)
            return sets.times(outs, ins, shape)
    merged = sets.merged([axis for axis, label in enumerate(mine) if label not in spec.out])
    labels = [label for label in mine if label in spec.out]
    order = sorted(range(len(labels)), key=lambda k: spec.out.index(labels[k]))
    permuted = merged.after_move(lambda x: np.transpose(x, order), tuple([merged.shape[k] for k in order]))
    ones = tuple([lengths[label] if label in labels else 1 for label in spec.out])
    return permuted.reshaped(ones).broadcast(shape)


@rule(correlate)
def _correlated(operands: Operands) -> Sets:
    shape = operands.out.shape
    lengths = [aval.shape[-1] for aval in operands.avals]
    first, stop = lags_of(lengths[0], lengths[1], operands.params["mode"])
    parts = []
    for i in range(2):
        sets, other = operands.sets[i], operands.value(1 - i)
        if sets is None:
            continue
        if (stop - first) * lengths[1 - i] > MAX_TERMS:
            parts.append(sets.spread((len(sets.shape) - 1,), shape))
            continue
        lags, partners = np.meshgrid(np.arange(first, stop), np.arange(lengths[1 - i]), indexing="ij")
        ins = lags - (lengths[1] - 1) + partners if i == 0 else partners - lags + (lengths[1] - 1)
        is_valid = (ins >= 0) & (ins < lengths[i])
        is_zero = np.zeros(operands.avals[1 - i].shape, bool) if other is UNKNOWN else np.asarray(other) == 0
        outs, ins, partners = (lags - first)[is_valid], ins[is_valid], partners[is_valid]
        part = _paired_along_last(operands, sets, outs, ins, partners, is_zero)
        parts.extend([] if part is None else [part])
    return union(shape, parts) if parts else None


def _paired_along_last(operands: Operands, sets: IndexSets, outs: Any, ins: Any, partners: Any, is_zero: Any) -> Sets:
    """The sets of sums of products along the last axis, from the positions that meet there."""
    out_numbers = _numbers(operands.out.shape)[..., outs]
    in_numbers = np.broadcast_to(_numbers(sets.shape)[..., ins], out_numbers.shape)
    live = np.broadcast_to(~is_zero[..., partners], out_numbers.shape)
    return sets.times(out_numbers[live], in_numbers[live], operands.out.shape) if live.any() else None


@rule(correlate_windows)
def _filtered(operands: Operands) -> Sets:
    (x, w), axes, stack = operands.sets, operands.params["axes"], operands.params["stack"]
    shape = operands.out.shape
    parts = []
    if x is not None:
        sizes = operands.avals[1].shape[stack:]
        ins = windows_of(np, _numbers(x.shape), sizes=sizes, axes=axes)
        outs = _numbers(shape).reshape((*shape, *[1] * len(axes)))
        weights = operands.value(1)
        live = np.ones(ins.shape, bool)
        if weights is not UNKNOWN:
            used = np.asarray(weights) != 0
            live &= used.reshape((*used.shape[:stack], *[1] * (len(shape) - stack), *sizes))
        parts.append(x.times(np.broadcast_to(outs, ins.shape)[live], ins[live], shape))
    if w is not None:
        merged = w.merged(range(stack, len(w.shape)))
        parts.append(merged.reshaped((*merged.shape, *[1] * (len(shape) - stack))).broadcast(shape))
    return union(shape, parts)


@rule(recurrence)
def _recurred(operands: Operands) -> Any:
    if operands.sets[1] is not None:
        return GENERAL
    assert operands.sets[0] is not None
    return operands.sets[0].spread((len(operands.out.shape) - 1,), operands.out.shape)


@rule(solve, triangular_solve)
def _solved(operands: Operands) -> Any:
    a, b = operands.sets[:2]
    if a is not None or b is None or len(b.shape) < 2:
        return GENERAL
    shape = operands.out.shape
    return b.spread((len(b.shape) - 2,), (*b.shape[:-2], shape[-2], b.shape[-1])).broadcast(shape)


@rule(sparse_product)
def _multiplied_sparsely(operands: Operands) -> Any:
    data, _, _, x = operands.sets
    rows, cols = operands.value(1), operands.value(2)
    if rows is UNKNOWN or cols is UNKNOWN:
        return GENERAL
    shape, entries = operands.out.shape, _numbers((len(rows),))
    numbers = _numbers(shape)
    parts = []
    if x is not None:
        parts.append(x.times(numbers[rows], _numbers(x.shape)[cols], shape))
    if data is not None:
        parts.append(data.times(numbers[rows], np.broadcast_to(entries[:, None], (len(rows), shape[1])), shape))
    return union(shape, parts)


@rule(sparse_solve)
def _solved_sparsely(operands: Operands) -> Sets:
    data, b = operands.sets[0], operands.sets[3]
    parts = [] if data is None else [data.everything(operands.out.shape)]
    if b is not None:
        parts.append(b.spread((len(b.shape) - 2,), operands.out.shape))
    return union(operands.out.shape, parts)


def _cond(equation: Equation, sets: Sequence[Sets], values: Sequence[Any], at_point: bool) -> list[Sets]:
    """The union of all branches; only the branch taken if the index is known."""
    branches = equation.params["branches"]
    if values[0] is not UNKNOWN:
        branches = [branches[int(np.clip(values[0], 0, len(branches) - 1))]]
    results = [dependence(branch.program, sets[1:], values[1:], at_point) for branch in branches]
    return [
        union(out.shape, parts) if (parts := [x for x in column if x is not None]) else None
        for out, column in zip(equation.outputs, zip(*results, strict=True), strict=True)
    ]


def _same(old: Sequence[Sets], new: Sequence[Sets]) -> bool:
    return all([b is None or (a is not None and a.contains(b)) for a, b in zip(old, new, strict=True)])


def _joint(shapes: Sequence[Any], old: Sequence[Sets], new: Sequence[Sets]) -> list[Sets]:
    """The union of two lists of sets."""
    pairs = [[x for x in pair if x is not None] for pair in zip(old, new, strict=True)]
    return [union(shape, pair) if pair else None for shape, pair in zip(shapes, pairs, strict=True)]


MAX_ROUNDS = 100
"""The rounds after which growing sets of a loop count as everything."""


def _fixed_point(
    step: Callable[[Sequence[Sets]], list[Sets]], carry: list[Sets], others: Sequence[Sets], outs: Sequence[Var]
) -> list[Sets]:
    """The least sets of the carry that a step does not enlarge, or all that any operand depends on."""
    shapes = [out.shape for out in outs]
    for _ in range(MAX_ROUNDS):
        after = step(carry)
        if _same(carry, after):
            return carry
        carry = _joint(shapes, carry, after)
    merged = union((), [x.everything(()) for x in (*carry, *others) if x is not None])
    return [
        merged.everything(shape) if is_inexact(out.dtype) else None for out, shape in zip(outs, shapes, strict=True)
    ]


def _while(equation: Equation, sets: Sequence[Sets], values: Sequence[Any], at_point: bool) -> list[Sets]:
    """The least sets of the carry that the body does not enlarge."""
    body, loop = equation.params["body"].program, equation.params["loop"]
    consts = sets[loop.conditions : loop.conditions + loop.consts]
    known = values[loop.conditions : loop.conditions + loop.consts]
    carry = list(sets[loop.conditions + loop.consts :])
    known = [*known, *[UNKNOWN] * len(carry)]
    return _fixed_point(lambda carry: dependence(body, [*consts, *carry], known), carry, consts, equation.outputs)


def _scan(equation: Equation, sets: Sequence[Sets], values: Sequence[Any], at_point: bool) -> list[Sets]:
    """Step by step; for many steps as one step on the rows of all, to a fixed point."""
    body, loop = equation.params["body"].program, equation.params["loop"]
    middle = loop.consts + loop.carries
    consts, carry, xs = list(sets[: loop.consts]), list(sets[loop.consts : middle]), list(sets[middle:])
    known_consts, known_carry, known_xs = values[: loop.consts], values[loop.consts : middle], values[middle:]
    outs = equation.outputs
    rows: list[list[Sets]] = [[None] * loop.length for _ in outs[loop.carries :]]
    if loop.length > MAX_UNROLLED:
        return _long_scan(equation, consts, carry, xs, known_consts)
    for step in reversed(range(loop.length)) if loop.reverse else range(loop.length):
        row = [None if x is None else x.after_move(operator.itemgetter(step), x.shape[1:]) for x in xs]
        known_row = [UNKNOWN if x is UNKNOWN else np.asarray(x)[step] for x in known_xs]
        walk = Walk(body, [*consts, *carry, *row], [*known_consts, *known_carry, *known_row], at_point)
        results = walk.outputs()
        carry = results[: loop.carries]
        known_carry = [walk.value(x) for x in body.outputs[: loop.carries]]
        for row_sets, result in zip(rows, results[loop.carries :], strict=True):
            row_sets[step] = result
    stacked = [_stacked(out, row_sets) for out, row_sets in zip(outs[loop.carries :], rows, strict=True)]
    return [*carry, *stacked]


def _stacked(out: Var, rows: Sequence[Sets]) -> Sets:
    """The sets of an array from those of its rows."""
    first = next((x for x in rows if x is not None), None)
    if first is None:
        return None
    aval = Aval((1, *out.shape[1:]), out.dtype)
    parts = [None if x is None else x.reshaped(aval.shape) for x in rows]
    operands = Operands(concatenate, parts, [aval] * len(rows), {}, out.aval, lambda i: UNKNOWN)
    return _joined(operands, parts, lambda *xs: np.concatenate(xs, 0))


def _long_scan(
    equation: Equation, consts: list[Sets], carry: list[Sets], xs: Sequence[Sets], known: Sequence[Any]
) -> list[Sets]:
    body, loop = equation.params["body"].program, equation.params["loop"]
    rows = [None if x is None else x.merged((0,)) for x in xs]
    known = [*known, *[UNKNOWN] * (loop.carries + len(xs))]

    def step(carry: Sequence[Sets]) -> list[Sets]:
        return dependence(body, [*consts, *carry, *rows], known)

    outs = equation.outputs[: loop.carries]
    carry = _fixed_point(lambda carry: step(carry)[: loop.carries], carry, [*consts, *rows], outs)
    spread = [
        None if x is None else x.reshaped((1, *x.shape)).broadcast(out.shape)
        for x, out in zip(step(carry)[loop.carries :], equation.outputs[loop.carries :], strict=True)
    ]
    return [*carry, *spread]


CONTROL: dict[Primitive, Callable[..., list[Sets]]] = {cond_call: _cond, while_call: _while, scan_call: _scan}
