"""Cheaper contractions: chains in the best order, sums of products as contractions, and many small ones as one.

These passes change the order in which the terms of a result are added, as BLAS does, and so its last bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from func.interpreters.compile.passes.equation_builder import count_uses
from func.interpreters.compile.passes.index_arithmetic import partial_axes, whole_index
from func.interpreters.compile.passes.rewriting.contraction_rules import can_be_summed, contract_or_scale, sum_alone
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule, rewrite
from func.interpreters.compile.passes.rewriting.sum_trees import add_all, tree_roots, tree_terms
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.structural.contraction import Labels, Spec, contract, spec
from func.interpreters.primitives.structural.shapes import reduce_sum
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Equation, Program, Var

MAX_OPTIMAL = 8
"""Chains of up to this many operands get an optimal order, longer ones a greedy one."""
MAX_CHAIN = 40
"""A chain is cut at about this many operands."""
MIN_GAIN = 0.9
"""A new order of a chain must take less than this share of the operations."""
MIN_SLICES = 8
"""Contractions with all slices of an array are joined from this many slices on."""
CALL = 2000
"""The number of elements that are copied in the time of one call."""


def order_contractions(program: Program) -> Program:
    """Reorder chains of contractions, turn sums of products into contractions, and join contractions."""
    if not any([equation.primitive in (contract, reduce_sum) for equation in program.equations]):
        return program
    uses = count_uses(program)
    chains, sums = tree_roots(program, contract, uses), tree_roots(program, add, uses)
    slices = contractions_of_slices(program)

    def reorder(rw: Rewriter, out: Var, x: Any, y: Any, *, spec: Spec) -> Any:
        if out in slices:
            return _slice_of_contraction(rw, out, (x, y), spec, slices[out])
        return _reorder_chain(rw, out, x, y, spec) if out in chains else None

    def join(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
        return _join_contractions(rw, out, x, y) if out in sums else None

    rules: dict[Primitive, tuple[Rule, ...]] = {
        contract: (reorder,),
        add: (join,),
        reduce_sum: (sum_of_product,),
    }
    return rewrite(program, lambda primitive: rules.get(primitive, ()))


Pair: TypeAlias = tuple[Any, Any]
"""The operands of a contraction."""


class Chain(NamedTuple):
    """Nested contractions: their operands with labels, the cost as written, and the size of the largest result."""

    operands: list[tuple[Any, Labels]]
    cost: int
    largest: int


def _reorder_chain(rw: Rewriter, out: Var, x: Any, y: Any, labels: Spec) -> Any:
    """Nested contractions in the cheapest order, if inner ones are used once; None where they stay."""
    if out.dtype.kind not in "fc" or not (_is_inner(rw, x) or _is_inner(rw, y)):
        return None
    sizes: dict[int, int] = {}
    chain = _flatten_chain(rw, x, y, labels, sizes)
    if (
        len(chain.operands) < 3
        or 0 in sizes.values()
        or any([operand.dtype != out.dtype for operand, _ in chain.operands])
    ):
        return None
    path = _cheapest_path(chain.operands, labels.out, sizes)
    cost, largest, _ = _follow_path(None, chain.operands, path, labels.out, sizes)
    if cost > MIN_GAIN * chain.cost or largest > max(chain.largest, out.size):
        return None
    return _follow_path(rw, chain.operands, path, labels.out, sizes)[2]


def _is_inner(rw: Rewriter, x: Any) -> bool:
    return rw.definition(x, contract) is not None and rw.used_once(x)


def _flatten_chain(rw: Rewriter, x: Any, y: Any, labels: Spec, sizes: dict[int, int]) -> Chain:
    """Flatten nested contractions. Labels of inner ones get new numbers; `sizes` receives the lengths of all labels."""
    operands: list[tuple[Any, Labels]] = []
    pending: list[tuple[Any, Any, Spec, Labels]] = [(x, y, labels, labels.out)]
    cost = largest = 0
    while pending:
        x, y, labels, out = pending.pop()
        numbers = dict(zip(labels.out, out, strict=True))
        unused = 1 + max([*sizes, *out], default=-1)
        for label in dict.fromkeys((*labels.x, *labels.y)):
            if label not in numbers:
                numbers[label] = unused
                unused += 1
        sides = [(operand, tuple([numbers[label] for label in own])) for operand, own in ((x, labels.x), (y, labels.y))]
        for operand, numbered in sides:
            sizes.update(zip(numbered, operand.shape, strict=True))
        for operand, numbered in sides:
            if _is_inner(rw, operand) and len(operands) + 2 * len(pending) < MAX_CHAIN:
                equation = rw.definitions[operand]
                pending.append((*equation.inputs, equation.params["spec"], numbered))
                largest = max(largest, operand.size)
            else:
                operands.append((operand, numbered))
        cost += math.prod([sizes[label] for label in numbers.values()])
    return Chain(operands, cost, largest)


def _cheapest_path(
    operands: Sequence[tuple[Any, Labels]], out: Labels, sizes: dict[int, int]
) -> Sequence[tuple[int, ...]]:
    """A contraction path in the convention of opt_einsum."""
    letters = {label: chr(192 + i) for i, label in enumerate(sizes)}
    inputs = [frozenset([letters[label] for label in labels]) for _, labels in operands]
    lengths = {letters[label]: size for label, size in sizes.items()}
    from opt_einsum import paths  # for start-up time: most programs have no chain

    find = paths.dynamic_programming if len(operands) <= MAX_OPTIMAL else paths.greedy
    path: Sequence[tuple[int, ...]] = find(inputs, frozenset([letters[label] for label in out]), lengths)
    return path


def _follow_path(
    rw: Rewriter | None,
    operands: Sequence[tuple[Any, Labels]],
    path: Sequence[tuple[int, ...]],
    out: Labels,
    sizes: dict[int, int],
) -> tuple[int, int, Any]:
    """(cost, size of the largest intermediate, result) of a path; without a rewriter, emit nothing."""
    remaining = list(operands)
    cost = largest = 0
    for pair in path:
        (x, lx), (y, ly) = [remaining[place] for place in pair]
        remaining = [operand for place, operand in enumerate(remaining) if place not in pair]
        needed = {*out, *[label for _, labels in remaining for label in labels]}
        labels = tuple([label for label in dict.fromkeys((*lx, *ly)) if label in needed]) if remaining else out
        cost += math.prod([sizes[label] for label in {*lx, *ly}])
        largest = max(largest, math.prod([sizes[label] for label in labels]) if remaining else 0)
        remaining.append((None if rw is None else contract_or_scale(rw, x, y, lx, ly, labels), labels))
    return cost, largest, remaining[0][0]


def sum_of_product(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
    """Σ x y = contract(x, y), where broadcasting makes the product larger than both operands."""
    equation = rw.definition(x, multiply)
    if equation is None or out.dtype.kind not in "fc" or not rw.used_once(x) or x.size == 0:
        return None
    if any(
        [
            type(operand) is not Var or operand.dtype != out.dtype or operand.size >= x.size
            for operand in equation.inputs
        ]
    ):
        return None
    parts = [_drop_broadcast_axes(rw, operand, x.shape) for operand in equation.inputs]
    operands, labels = zip(*parts, strict=True)
    (first, lx), (second, ly) = sum_alone(rw, operands, labels, set(axes))
    lout = tuple([label for label in range(len(x.shape)) if label not in axes])
    if not {*lout} <= {*lx, *ly}:
        return None
    return contract_or_scale(rw, first, second, lx, ly, lout)


def _drop_broadcast_axes(rw: Rewriter, x: Var, shape: Sequence[int]) -> tuple[Any, Labels]:
    """An operand without the axes along which it is broadcast to a shape, and the axes of the shape that it has."""
    extra = len(shape) - len(x.shape)
    axes = [axis for axis, length in enumerate(x.shape) if length == shape[extra + axis]]
    return rw.reshape(x, tuple([x.shape[axis] for axis in axes])), tuple([extra + axis for axis in axes])


def contractions_of_slices(program: Program) -> dict[Var, int]:
    """The outputs of contractions of x[0], x[1], …, all slices of an array, with one operand; {output: sliced axis}."""
    slices = {equation.outputs[0]: equation for equation in program.equations if equation.primitive is getitem}
    groups: dict[Any, dict[int, Var]] = {}
    for equation in program.equations:
        if equation.primitive is not contract:
            continue
        for place, operand in enumerate(equation.inputs):
            source = slices.get(operand)
            axis = None if source is None else _sliced_axis(source)
            if source is None or axis is None or equation.outputs[0].dtype.kind not in "fc":
                continue
            key = (source.inputs[0], axis, place, equation.inputs[1 - place], equation.params["spec"])
            groups.setdefault(key, {})[source.params["index"][axis]] = equation.outputs[0]
    joined = {}
    for (array, axis, *_), outputs in groups.items():
        size = next(iter(outputs.values())).size
        if len(outputs) >= MIN_SLICES and len(outputs) == array.shape[axis] and size <= CALL:
            joined.update(dict.fromkeys(outputs.values(), axis))
    return joined


def _sliced_axis(equation: Equation) -> int | None:
    """The axis at which an index has an integer, if it selects everything along the others."""
    index, shape = equation.params["index"], equation.inputs[0].shape
    if None in index:
        return None
    axes = partial_axes(index, shape)
    return axes[0] if len(axes) == 1 and isinstance(index[axes[0]], int) else None


def _slice_of_contraction(rw: Rewriter, out: Var, operands: tuple[Any, Any], labels: Spec, axis: int) -> Any:
    """contract(x[i], y) = contract(x, y)[i]; common-subexpression elimination keeps one contraction of the array."""
    slices = [rw.definition(operand, getitem) for operand in operands]
    place = next((i for i, e in enumerate(slices) if e is not None and _sliced_axis(e) == axis), None)
    equation = None if place is None else slices[place]
    if place is None or equation is None:
        return None
    new = 1 + max((*labels.x, *labels.y))
    own = (labels.x, labels.y)[place]
    sides = [(operands[0], labels.x), (operands[1], labels.y)]
    sides[place] = (equation.inputs[0], (*own[:axis], new, *own[axis:]))
    (x, lx), (y, ly) = sides
    joined = rw.emit(contract, x, y, spec=spec(lx, ly, (new, *labels.out)))
    return rw.emit(getitem, joined, index=(equation.params["index"][axis], *whole_index(out.shape)))


def _join_contractions(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """Join the contractions of equal labels that a sum adds: Σ xᵢ y = (Σ xᵢ) y, and small ones by concatenation."""
    if out.dtype.kind not in "fc":
        return None
    groups: dict[Any, list[Pair]] = {}
    terms = []
    for term in tree_terms(rw, out, x, y):
        equation = rw.definition(term, contract)
        is_joinable = equation is not None and rw.used_once(term) and term.shape == out.shape
        if equation is None or not is_joinable or not all([can_be_summed(x, out) for x in equation.inputs]):
            terms.append(term)
        else:
            first, second = equation.inputs
            groups.setdefault((equation.params["spec"], first.dtype, second.dtype), []).append((first, second))
    changed = False
    for (labels, *_), pairs in groups.items():
        fewer = _factor_out(rw, _factor_out(rw, pairs, 0, out), 1, out)
        if _is_worth_joining(labels, fewer, out):
            terms.append(_concatenated_contraction(rw, labels, fewer))
            changed = True
        else:
            terms += [rw.emit(contract, *pair, spec=labels) for pair in fewer]
            changed = changed or len(fewer) < len(pairs)
    return add_all(rw, terms) if changed else None


def _factor_out(rw: Rewriter, pairs: Sequence[Pair], place: int, out: Var) -> list[Pair]:
    """Pairs with the same operand at a place as one pair with the sum of the others, where this sum is small."""
    partners: dict[Any, list[Any]] = {}
    for pair in pairs:
        partners.setdefault(pair[place], []).append(pair[1 - place])
    fewer: list[Pair] = []
    for shared, others in partners.items():
        if len(others) > 1 and others[0].size <= max(out.size, CALL):
            others = [add_all(rw, others)]
        fewer += [(shared, other) if place == 0 else (other, shared) for other in others]
    return fewer


def _is_worth_joining(labels: Spec, pairs: Sequence[Pair], out: Var) -> bool:
    """True for three or more pairs that differ in at most one summed length, if joining them saves time.

    It costs copies of the operands, and saves calls and additions."""
    number = len(pairs)
    copied = sum([x.size + y.size for x, y in pairs])
    if number < 3 or copied > CALL * (2 * number - 5) + 2 * number * out.size:
        return False
    summed = _summed_label(labels)
    shapes = {
        tuple([n for label, n in zip((*labels.x, *labels.y), (*x.shape, *y.shape), strict=True) if label != summed])
        for x, y in pairs
    }
    return len(shapes) == 1


def _summed_label(labels: Spec) -> int | None:
    """The first label that is summed."""
    return next(iter([label for label in labels.x if label in labels.y and label not in labels.out]), None)


def _concatenated_contraction(rw: Rewriter, labels: Spec, pairs: Sequence[Pair]) -> Any:
    """Σᵢ contract(xᵢ, yᵢ) as one contraction of concatenations along a summed label, or stacks along a new one."""
    label = _summed_label(labels)
    new = 1 + max((*labels.x, *labels.y), default=-1)
    sides = []
    for side, own in enumerate((labels.x, labels.y)):
        parts = [pair[side] for pair in pairs]
        if label is None:
            stack = rw.emit(concatenate, *[rw.reshape(part, (1, *part.shape)) for part in parts], axis=0)
            sides.append((stack, (new, *own)))
        else:
            sides.append((rw.emit(concatenate, *parts, axis=own.index(label)), own))
    (x, lx), (y, ly) = sides
    return rw.emit(contract, x, y, spec=spec(lx, ly, labels.out))
