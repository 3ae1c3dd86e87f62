"""Rules for contractions of permuted, broadcast, scaled and one-hot operands.

A seed with a single nonzero entry in each row, like the identity, makes a product a selection: its zeros are
structural. A product with another constant is not a selection, since 0 · ∞ is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.compile.passes.index_arithmetic import run, whole_index
from func.interpreters.compile.passes.rewriting.reduction_rules import split_factor
from func.interpreters.compile.passes.rewriting.rewriter import MAX_SCANNED, Rewriter, Rule
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural.contraction import Labels, Spec, contract, spec
from func.interpreters.primitives.structural.identity import seed
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import broadcast, permute, reduce_sum
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.program.program import Var


def of_operands(rw: Rewriter, out: Var, x: Any, y: Any, *, spec: Spec) -> Any:
    """Apply the rules for a single operand to either one."""
    if type(x) is not Var or type(y) is not Var:
        return None
    units = 1 in x.shape or 1 in y.shape
    first, second = (_has_rule(rw, operand) for operand in (x, y))
    if not (units or first or second) or not _have_equal_lengths(x, y, spec):
        return None
    replacement = drop_unit_labels(rw, out, x, y, spec.x, spec.y, spec.out) if units else None
    for rule in (of_permute, of_selection, of_broadcast, of_multiple):
        if replacement is None and first:
            replacement = rule(rw, out, x, y, spec.x, spec.y, spec.out)
        if replacement is None and second:
            replacement = rule(rw, out, y, x, spec.y, spec.x, spec.out)
    return replacement


def _has_rule(rw: Rewriter, x: Var) -> bool:
    """True for constants and for outputs of primitives that one of the rules below matches."""
    equation = rw.definitions.get(x)
    return x in rw.constants if equation is None else equation.primitive in _MATCHED


def _have_equal_lengths(x: Var, y: Var, labels: Spec) -> bool:
    """True where each label has one length."""
    sizes = dict(zip(labels.x, x.shape, strict=True))
    return all([sizes.setdefault(label, length) == length for label, length in zip(labels.y, y.shape, strict=True)])


def contract_or_scale(rw: Rewriter, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A contraction, or a multiplication where one operand has no axes."""
    if lx and ly:
        return rw.emit(contract, x, y, spec=spec(lx, ly, lout))
    (full, labels), scalar = ((y, ly), x) if ly else ((x, lx), y)
    return rw.permute(rw.emit(multiply, full, scalar), [labels.index(label) for label in lout])


def drop_unit_labels(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """Labels of length one are dropped by reshapes."""
    units = {label for label, n in zip((*lx, *ly), (*x.shape, *y.shape), strict=True) if n == 1}
    parts = []
    for operand, labels in ((x, lx), (y, ly)):
        axes = [axis for axis, label in enumerate(labels) if label not in units]
        shape = tuple([operand.shape[axis] for axis in axes])
        parts.append((rw.reshape(operand, shape), tuple([labels[axis] for axis in axes])))
    (x, lx), (y, ly) = parts
    result = contract_or_scale(rw, x, y, lx, ly, tuple([label for label in lout if label not in units]))
    return rw.reshape(result, out.shape)


def of_permute(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """contract(permute x, y) = contract(x, y) with the labels of x in another order."""
    equation = rw.definition(x, permute)
    if equation is None:
        return None
    order = equation.params["order"]
    labels = [0] * len(lx)
    for axis, source in enumerate(order):
        labels[source] = lx[axis]
    return rw.emit(contract, equation.inputs[0], y, spec=spec(tuple(labels), ly, lout))


def of_broadcast(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """Σₖ x yₖ = x Σₖ yₖ where x does not depend on the label k; the result is broadcast along free labels of x."""
    if not can_be_summed(y, out) or x.size == 0 or y.size == 0:
        return None
    inner = rw.operand(x, broadcast)
    if type(inner) is Var:
        extra = len(x.shape) - len(inner.shape)
        axes = [axis for axis in range(extra, len(x.shape)) if inner.shape[axis - extra] == x.shape[axis]]
        x = rw.reshape(inner, tuple([x.shape[axis] for axis in axes]))
    elif rw.scalar(x) is not None and x.shape and rw.scalar(x) != 0:
        axes, x = [], rw.constant(np.asarray(rw.scalar(x), x.dtype))
    else:
        return None
    labels = tuple([lx[axis] for axis in axes])
    summed = [axis for axis, label in enumerate(ly) if label in lx and label not in lout and label not in labels]
    y = rw.emit(reduce_sum, y, axes=tuple(summed)) if summed else y
    others = tuple([label for axis, label in enumerate(ly) if axis not in summed])
    present = tuple([label for label in lout if label in labels or label in others])
    result = contract_or_scale(rw, x, y, labels, others, present)
    shape = tuple([n if label in present else 1 for label, n in zip(lout, out.shape, strict=True)])
    return rw.emit(broadcast, rw.reshape(result, shape), shape=out.shape)


def of_multiple(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """contract(c x, y) = c contract(x, y) and contract(−x, y) = −contract(x, y), if the result is not larger than x."""
    if out.size > x.size or not rw.used_once(x) or out.dtype.kind not in "fc" or out.dtype.itemsize < 4:
        return None
    if rw.negated(x) is not None:
        return rw.emit(negative, rw.emit(contract, rw.negated(x), y, spec=spec(lx, ly, lout)))
    rest, factor = split_factor(rw, x)
    return None if rest is None else rw.emit(multiply, rw.emit(contract, rest, y, spec=spec(lx, ly, lout)), factor)


def of_selection(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A seed with one entry other than zero along the summed label selects from the other operand."""
    value = rw.constant_value(rw.operand(x, seed))
    if not isinstance(value, np.ndarray) or not 1 <= value.ndim <= 2 or not 1 < value.size <= MAX_SCANNED:
        return None
    for axis, label in enumerate(lx):
        if label not in ly or label in lout or any([other in ly for other in lx if other != label]):
            continue
        selection = _selection(value, axis)
        if selection is not None:
            return _select(rw, y, selection, lx[1 - axis : 2 - axis] if value.ndim == 2 else (), label, ly, lout)
    return None


def _selection(value: Any, axis: int) -> tuple[Any, Any] | None:
    """(positions along an axis, factor) where a constant is factor · one-hot along this axis."""
    hits = value != 0
    if int(np.count_nonzero(hits)) * value.shape[axis] != value.size or not (np.count_nonzero(hits, axis) == 1).all():
        return None
    factors = value[hits]
    positions = np.argmax(hits, axis)
    return (positions, factors[0].item()) if (factors == factors[0]).all() else None


def _select(
    rw: Rewriter, y: Any, selection: tuple[Any, Any], free: Labels, label: int, ly: Labels, lout: Labels
) -> Any:
    positions, factor = selection
    axis = ly.index(label)
    whole = whole_index(y.shape)
    if np.ndim(positions) == 0:
        selected = rw.emit(getitem, y, index=(*whole[:axis], int(positions), *whole[axis + 1 :]))
    else:
        steps = np.diff(positions)
        if (steps == steps[:1]).all() and steps[:1].all():
            positions_run = run(int(positions[0]), int(steps[0]) if steps.size else 1, len(positions))
            selected = rw.emit(getitem, y, index=(*whole[:axis], positions_run, *whole[axis + 1 :]))
        else:
            selected = rw.emit(gather, y, rw.constant(positions), axis=axis)
    labels = (*ly[:axis], *free, *ly[axis + 1 :])
    scaled = selected if factor == 1 else rw.emit(multiply, selected, factor)
    return rw.permute(scaled, [labels.index(label) for label in lout])


def permute_of_contraction(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """permute(contract(x, y)) = contract(x, y) with the output labels in another order."""
    equation = rw.definition(x, contract)
    if equation is None or not rw.used_once(x):
        return None
    labels = equation.params["spec"]
    return rw.emit(
        contract, *equation.inputs, spec=spec(labels.x, labels.y, tuple([labels.out[axis] for axis in order]))
    )


def sum_of_contraction(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
    """Σₖ contract(x, y) sums k in the operand that alone has it, or within the contraction."""
    equation = rw.definition(x, contract)
    if equation is None or not rw.used_once(x) or x.dtype.kind not in "fc" or params.get("dtype") is not None:
        return None
    if x.size == 0 or not all([can_be_summed(operand, x) for operand in equation.inputs]):
        return None
    labels = equation.params["spec"]
    summed = {labels.out[axis] for axis in axes}
    (x, lx), (y, ly) = sum_alone(rw, equation.inputs, (labels.x, labels.y), summed)
    return contract_or_scale(rw, x, y, lx, ly, tuple([label for label in labels.out if label not in summed]))


def can_be_summed(x: Var, out: Var) -> bool:
    """Whether a sum of x has the digits of an inexact output: integers wrap, and single precision rounds."""
    is_part = out.dtype.kind == "c" and x.dtype.kind == "f" and 2 * x.dtype.itemsize == out.dtype.itemsize
    return out.dtype.kind in "fc" and (x.dtype == out.dtype or is_part)


def sum_alone(
    rw: Rewriter, operands: Sequence[Any], labels: Sequence[Labels], summed: set[int]
) -> list[tuple[Any, Labels]]:
    """Each operand of a contraction, and its labels, after a sum over the summed labels that it alone has."""
    sides = []
    for operand, own, others in zip(operands, labels, reversed(labels), strict=True):
        alone = tuple([axis for axis, label in enumerate(own) if label in summed and label not in others])
        reduced = rw.emit(reduce_sum, operand, axes=alone) if alone else operand
        sides.append((reduced, tuple([label for axis, label in enumerate(own) if axis not in alone])))
    return sides


_MATCHED = frozenset({permute, broadcast, multiply, divide, negative, seed})

TABLE: dict[Primitive, tuple[Rule, ...]] = {
    contract: (of_operands,),
    permute: (permute_of_contraction,),
    reduce_sum: (sum_of_contraction,),
}
