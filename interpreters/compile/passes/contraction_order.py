"""Contractions: chains in the cheapest order, sums of products as contractions, many small ones as one.

These change the order in which a result's terms are added, as BLAS does, and so its last bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from func.interpreters.compile.passes.rewriting.contraction_rules import contracted
from func.interpreters.compile.passes.rewriting.operand_trees import roots, terms_below
from func.interpreters.compile.passes.rewriting.rewriter import Rewriter, Rule, count_uses, rewritten
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.structural.contraction import Labels, Spec, contract, spec
from func.interpreters.primitives.structural.shapes import reduce_sum
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Equation, Program, Var

FEW, MANY = 8, 40
"""Chains up to the first length are ordered optimally, longer ones greedily, in runs of about the second length."""
LEAST_GAIN = 0.9
"""A chain is ordered anew where that takes less than this share of the operations."""
CALL = 2000
"""How many elements are copied in the time that one more call takes."""


def contractions(program: Program) -> Program:
    """The program with its contractions ordered, made of sums of products, and joined."""
    if not any([equation.primitive in _ROWS for equation in program.equations]):
        return program
    uses = count_uses(program)
    chains, sums, together = roots(program, contract, uses), roots(program, add, uses), rows_together(program)

    def ordered(rw: Rewriter, out: Var, x: Any, y: Any, *, spec: Spec) -> Any:
        if out in together:
            return _one_of_rows(rw, out, (x, y), spec, together[out])
        return _ordered(rw, out, x, y, spec) if out in chains else None

    def joined(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
        return _joined(rw, out, x, y) if out in sums else None

    rules: dict[Primitive, tuple[Rule, ...]] = {
        contract: (ordered,),
        add: (joined,),
        reduce_sum: (sum_of_product,),
    }
    return rewritten(program, lambda primitive: rules.get(primitive, ()))


_ROWS = frozenset({contract, reduce_sum})


# --- chains -----------------------------------------------------------------------------------------------------


Pair: TypeAlias = tuple[Any, Any]
"""The operands of a contraction."""


class Chain(NamedTuple):
    """The operands of nested contractions with their labels, what each contraction costs, and its largest result."""

    operands: list[tuple[Any, Labels]]
    cost: int
    largest: int


def _ordered(rw: Rewriter, out: Var, x: Any, y: Any, labels: Spec) -> Any:
    """Nested contractions whose inner ones are needed nowhere else, in the cheapest order."""
    if out.dtype.kind not in "fc" or not (_is_inner(rw, x) or _is_inner(rw, y)):
        return None
    sizes: dict[int, int] = {}
    chain = _chain(rw, x, y, labels, sizes)
    if len(chain.operands) < 3 or any([one.dtype != out.dtype for one, _ in chain.operands]):
        return None
    path = _cheapest(chain.operands, labels.out, sizes)
    cost, largest, _ = _walk(None, chain.operands, path, labels.out, sizes)
    if cost > LEAST_GAIN * chain.cost or largest > max(chain.largest, out.size):
        return None
    return _walk(rw, chain.operands, path, labels.out, sizes)[2]


def _is_inner(rw: Rewriter, x: Any) -> bool:
    return rw.maker(x, contract) is not None and rw.used_once(x)


def _chain(rw: Rewriter, x: Any, y: Any, labels: Spec, sizes: dict[int, int]) -> Chain:
    """Flatten nested contractions. `sizes` receives the lengths of labels, inner ones numbered on from the outer."""
    operands: list[tuple[Any, Labels]] = []
    waiting: list[tuple[Any, Any, Spec, Labels]] = [(x, y, labels, labels.out)]
    cost = largest = 0
    while waiting:
        x, y, labels, out = waiting.pop()
        names = dict(zip(labels.out, out, strict=True))
        fresh = 1 + max([*sizes, *out], default=-1)
        for label in dict.fromkeys((*labels.x, *labels.y)):
            if label not in names:
                names[label] = fresh
                fresh += 1
        sides = [(one, tuple([names[label] for label in own])) for one, own in ((x, labels.x), (y, labels.y))]
        for one, named in sides:
            sizes.update(zip(named, one.shape, strict=True))
        for one, named in sides:
            if _is_inner(rw, one) and len(operands) + 2 * len(waiting) < MANY:
                equation = rw.made[one]
                waiting.append((*equation.inputs, equation.params["spec"], named))
                largest = max(largest, one.size)
            else:
                operands.append((one, named))
        cost += math.prod([sizes[label] for label in names.values()])
    return Chain(operands, cost, largest)


def _cheapest(operands: Sequence[tuple[Any, Labels]], out: Labels, sizes: dict[int, int]) -> Sequence[tuple[int, ...]]:
    letters = {label: chr(192 + i) for i, label in enumerate(sizes)}
    inputs = [frozenset([letters[label] for label in labels]) for _, labels in operands]
    lengths = {letters[label]: size for label, size in sizes.items()}
    from opt_einsum import paths  # here: most programs have no such product

    find = paths.dynamic_programming if len(operands) <= FEW else paths.greedy
    found: Sequence[tuple[int, ...]] = find(inputs, frozenset([letters[label] for label in out]), lengths)
    return found


def _walk(
    rw: Rewriter | None,
    operands: Sequence[tuple[Any, Labels]],
    path: Sequence[tuple[int, ...]],
    out: Labels,
    sizes: dict[int, int],
) -> tuple[int, int, Any]:
    """(cost, largest intermediate, result) of a path; without a rewriter nothing is emitted."""
    left = list(operands)
    cost = largest = 0
    for pair in path:
        (x, lx), (y, ly) = [left[place] for place in pair]
        left = [one for place, one in enumerate(left) if place not in pair]
        needed = {*out, *[label for _, labels in left for label in labels]}
        made = out if not left else tuple([label for label in dict.fromkeys((*lx, *ly)) if label in needed])
        cost += math.prod([sizes[label] for label in {*lx, *ly}])
        largest = max(largest, math.prod([sizes[label] for label in made]) if left else 0)
        left.append((None if rw is None else contracted(rw, x, y, lx, ly, made), made))
    return cost, largest, left[0][0]


# --- sums of products -------------------------------------------------------------------------------------------


def sum_of_product(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
    """Σ x y is a contraction, where broadcasting makes the product larger than both of its operands."""
    equation = rw.maker(x, multiply)
    if equation is None or out.dtype.kind not in "fc" or not rw.used_once(x) or x.size == 0:
        return None
    if any([type(one) is not Var or one.dtype != out.dtype or one.size >= x.size for one in equation.inputs]):
        return None
    parts = [_labelled(rw, one, x.shape) for one in equation.inputs]
    kept: list[tuple[Any, Labels]] = []
    for (one, own), (_, other) in zip(parts, reversed(parts), strict=True):
        alone = tuple([axis for axis, label in enumerate(own) if label in axes and label not in other])
        reduced = rw.emit(reduce_sum, one, axes=alone) if alone else one
        kept.append((reduced, tuple([label for axis, label in enumerate(own) if axis not in alone])))
    (first, lx), (second, ly) = kept
    lout = tuple([label for label in range(len(x.shape)) if label not in axes])
    if not {*lout} <= {*lx, *ly}:
        return None
    return contracted(rw, first, second, lx, ly, lout)


def _labelled(rw: Rewriter, x: Var, shape: Sequence[int]) -> tuple[Any, Labels]:
    """An operand without the axes along which it is broadcast, and which axes of the product are left."""
    extra = len(shape) - len(x.shape)
    kept = [axis for axis, length in enumerate(x.shape) if length == shape[extra + axis]]
    reduced = rw.reshaped(x, tuple([x.shape[axis] for axis in kept]))
    return reduced, tuple([extra + axis for axis in kept])


# --- rows of one array ------------------------------------------------------------------------------------------


def rows_together(program: Program) -> dict[Var, int]:
    """The outputs of contractions of the rows of one array, all of them, with the same operand: {output: axis}."""
    made = {equation.outputs[0]: equation for equation in program.equations if equation.primitive is getitem}
    found: dict[Any, dict[int, Var]] = {}
    for equation in program.equations:
        if equation.primitive is not contract:
            continue
        for place, one in enumerate(equation.inputs):
            primitive = made.get(one)
            axis = None if primitive is None else _row_axis(primitive)
            if primitive is None or axis is None or equation.outputs[0].dtype.kind not in "fc":
                continue
            key = (primitive.inputs[0], axis, place, equation.inputs[1 - place], equation.params["spec"])
            found.setdefault(key, {})[primitive.params["index"][axis]] = equation.outputs[0]
    together = {}
    for (source, axis, *_), outputs in found.items():
        size = next(iter(outputs.values())).size
        if len(outputs) >= FEW and len(outputs) == source.shape[axis] and size <= CALL:
            together.update(dict.fromkeys(outputs.values(), axis))
    return together


def _row_axis(primitive: Equation) -> int | None:
    """The only axis at which an index has an integer; None where it leaves out anything else."""
    index, shape = primitive.params["index"], primitive.inputs[0].shape
    if None in index:
        return None
    axes = [axis for axis, entry in enumerate(index) if entry != (0, shape[axis], 1)]
    return axes[0] if len(axes) == 1 and isinstance(index[axes[0]], int) else None


def _one_of_rows(rw: Rewriter, out: Var, operands: tuple[Any, Any], labels: Spec, axis: int) -> Any:
    """A row of the contraction of the whole array; common subexpressions leave one of those."""
    places = [place for place, one in enumerate(operands) if _is_row(rw, one, axis)]
    if not places:
        return None
    place = places[0]
    primitive = rw.made[operands[place]]
    new = 1 + max((*labels.x, *labels.y))
    own = (labels.x, labels.y)[place]
    sides = [(operands[0], labels.x), (operands[1], labels.y)]
    sides[place] = (primitive.inputs[0], (*own[:axis], new, *own[axis:]))
    (x, lx), (y, ly) = sides
    whole = rw.emit(contract, x, y, spec=spec(lx, ly, (new, *labels.out)))
    return rw.emit(getitem, whole, index=(primitive.params["index"][axis], *[(0, n, 1) for n in out.shape]))


def _is_row(rw: Rewriter, x: Any, axis: int) -> bool:
    primitive = rw.maker(x, getitem)
    return primitive is not None and _row_axis(primitive) == axis


# --- sums of contractions ---------------------------------------------------------------------------------------


def _joined(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """Contractions of one kind that are added up: with a common operand the others are added up before; small ones
    become one contraction of joined operands."""
    if out.dtype.kind not in "fc":
        return None
    groups: dict[Any, list[Pair]] = {}
    terms = []
    for term in terms_below(rw, x, y):
        equation = rw.maker(term, contract)
        if equation is None or not rw.used_once(term) or term.shape != out.shape:
            terms.append(term)
        else:
            first, second = equation.inputs
            groups.setdefault((equation.params["spec"], first.dtype, second.dtype), []).append((first, second))
    fired = False
    for (labels, *_), pairs in groups.items():
        fewer = _with_common_operand(rw, _with_common_operand(rw, pairs, 0, out), 1, out)
        if _is_worth_joining(labels, fewer, out):
            terms.append(_one_contraction(rw, labels, fewer))
            fired = True
        else:
            terms += [rw.emit(contract, *pair, spec=labels) for pair in fewer]
            fired = fired or len(fewer) < len(pairs)
    return _summed_up(rw, terms) if fired else None


def _with_common_operand(rw: Rewriter, pairs: Sequence[Pair], place: int, out: Var) -> list[Pair]:
    """Pairs with the same operand at a place as one pair with the sum of the others, if that is the smaller sum."""
    others: dict[Any, list[Any]] = {}
    for pair in pairs:
        others.setdefault(pair[place], []).append(pair[1 - place])
    fewer: list[Pair] = []
    for common, members in others.items():
        if len(members) > 1 and members[0].size <= max(out.size, CALL):
            members = [_summed_up(rw, members)]
        fewer += [(common, member) if place == 0 else (member, common) for member in members]
    return fewer


def _summed_up(rw: Rewriter, terms: Sequence[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = rw.emit(add, total, term)
    return total


def _is_worth_joining(labels: Spec, operands: Sequence[Pair], out: Var) -> bool:
    """True for three or more of one shape, but for the summed label, if copying the operands costs less than the calls
    and sums that are saved."""
    number = len(operands)
    copied = sum([x.size + y.size for x, y in operands])
    if number < 3 or copied > CALL * (2 * number - 5) + 2 * number * out.size:
        return False
    summed = _summed(labels)
    shapes = {
        tuple([n for label, n in zip((*labels.x, *labels.y), (*x.shape, *y.shape), strict=True) if label != summed])
        for x, y in operands
    }
    return len(shapes) == 1


def _summed(labels: Spec) -> int | None:
    """A label that is summed."""
    return next(iter([label for label in labels.x if label in labels.y and label not in labels.out]), None)


def _one_contraction(rw: Rewriter, labels: Spec, pairs: Sequence[Pair]) -> Any:
    """Join operands along a label that is summed, a new one where there is none."""
    label = _summed(labels)
    new = 1 + max((*labels.x, *labels.y), default=-1)
    sides = []
    for side, own in enumerate((labels.x, labels.y)):
        parts = [pair[side] for pair in pairs]
        if label is None:
            sides.append((_stacked(rw, parts), (new, *own)))
        else:
            sides.append((rw.emit(concatenate, *parts, axis=own.index(label)), own))
    (x, lx), (y, ly) = sides
    return rw.emit(contract, x, y, spec=spec(lx, ly, labels.out))


def _stacked(rw: Rewriter, parts: Sequence[Any]) -> Any:
    """Arrays of one shape along a new first axis."""
    return rw.emit(concatenate, *[rw.reshaped(part, (1, *part.shape)) for part in parts], axis=0)
