"""Rules for contractions: what happens to one operand alone happens to the labels, or afterwards.

Products with constant matrices of the identity's kind are selections: where the other operand is infinite or NaN, they
give finite numbers in the places for which NumPy computes 0 · ∞.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.reduction_rules import factored
from func.interpreters.compile.passes.rewriting.rewriter import LARGE, Rewriter, Rule
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import multiply, negative
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural.contraction import Labels, Spec, contract, spec
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import broadcast, permute, reduce_sum
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.program.program import Var


def of_operands(rw: Rewriter, out: Var, x: Any, y: Any, *, spec: Spec) -> Any:
    """The rules for one operand, tried for both."""
    if type(x) is not Var or type(y) is not Var:
        return None
    units = 1 in x.shape or 1 in y.shape
    first, second = (_is_special(rw, one) for one in (x, y))
    if not (units or first or second) or not _agree(x, y, spec):
        return None
    found = unit_labels(rw, out, x, y, spec.x, spec.y, spec.out) if units else None
    for rule in (of_permuted, by_selection, of_broadcast, of_multiple):
        if found is None and first:
            found = rule(rw, out, x, y, spec.x, spec.y, spec.out)
        if found is None and second:
            found = rule(rw, out, y, x, spec.y, spec.x, spec.out)
    return found


def _is_special(rw: Rewriter, x: Var) -> bool:
    """True for constants and for what one of the rules below sees through."""
    equation = rw.made.get(x)
    return x in rw.constants if equation is None else equation.primitive in _SEEN_THROUGH


def _agree(x: Var, y: Var, labels: Spec) -> bool:
    """True where each label stands for one length."""
    sizes = dict(zip(labels.x, x.shape, strict=True))
    return all([sizes.setdefault(label, length) == length for label, length in zip(labels.y, y.shape, strict=True)])


def contracted(rw: Rewriter, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A contraction; where one operand has no axes, a product."""
    if lx and ly:
        return rw.emit(contract, x, y, spec=spec(lx, ly, lout))
    (full, labels), scalar = ((y, ly), x) if ly else ((x, lx), y)
    return rw.permuted(rw.emit(multiply, full, scalar), [labels.index(label) for label in lout])


def unit_labels(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """Labels of length one are left out."""
    units = {label for label, n in zip((*lx, *ly), (*x.shape, *y.shape), strict=True) if n == 1}
    parts = []
    for one, labels in ((x, lx), (y, ly)):
        kept = [axis for axis, label in enumerate(labels) if label not in units]
        parts.append((rw.reshaped(one, tuple([one.shape[axis] for axis in kept])), tuple([labels[k] for k in kept])))
    (x, lx), (y, ly) = parts
    made = contracted(rw, x, y, lx, ly, tuple([label for label in lout if label not in units]))
    return rw.reshaped(made, out.shape)


def of_permuted(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A transposed operand has its labels in another order."""
    equation = rw.maker(x, permute)
    if equation is None:
        return None
    order = equation.params["order"]
    labels = [0] * len(lx)
    for axis, source in enumerate(order):
        labels[source] = lx[axis]
    return rw.emit(contract, equation.inputs[0], y, spec=spec(tuple(labels), ly, lout))


def of_broadcast(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """Along labels along which one operand does not change, the other one is summed, or the result does not either."""
    if out.dtype.kind not in "fc" or x.size == 0 or y.size == 0:
        return None
    inner = rw.inside(x, broadcast)
    if type(inner) is Var:
        extra = len(x.shape) - len(inner.shape)
        kept = [axis for axis in range(extra, len(x.shape)) if inner.shape[axis - extra] == x.shape[axis]]
        x = rw.reshaped(inner, tuple([x.shape[axis] for axis in kept]))
    elif rw.scalar(x) is not None and x.shape and rw.scalar(x) != 0:
        kept, x = [], rw.constant(np.asarray(rw.scalar(x), x.dtype))
    else:
        return None
    labels = tuple([lx[axis] for axis in kept])
    summed = [axis for axis, label in enumerate(ly) if label in lx and label not in lout and label not in labels]
    y = rw.emit(reduce_sum, y, axes=tuple(summed)) if summed else y
    others = tuple([label for axis, label in enumerate(ly) if axis not in summed])
    present = tuple([label for label in lout if label in labels or label in others])
    made = contracted(rw, x, y, labels, others, present)
    shape = tuple([n if label in present else 1 for label, n in zip(lout, out.shape, strict=True)])
    return rw.emit(broadcast, rw.reshaped(made, shape), shape=out.shape)


def of_multiple(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A factor of an operand, or its sign, is one of the result, if that is not larger."""
    if out.size > x.size or not rw.used_once(x) or out.dtype.kind not in "fc" or out.dtype.itemsize < 4:
        return None
    if rw.inside(x, negative) is not None:
        return rw.emit(negative, rw.emit(contract, rw.inside(x, negative), y, spec=spec(lx, ly, lout)))
    rest, factor = factored(rw, x)
    return None if rest is None else rw.emit(multiply, rw.emit(contract, rest, y, spec=spec(lx, ly, lout)), factor)


# --- selections -------------------------------------------------------------------------------------------------


def by_selection(rw: Rewriter, out: Var, x: Any, y: Any, lx: Labels, ly: Labels, lout: Labels) -> Any:
    """A constant vector or matrix that has one element not zero for each row selects from the other operand."""
    value = rw.value(x)
    if not isinstance(value, np.ndarray) or not 1 <= value.ndim <= 2 or not 1 < value.size <= LARGE:
        return None
    for axis, label in enumerate(lx):
        if label not in ly or label in lout or any([other in ly for other in lx if other != label]):
            continue
        chosen = _chosen(value, axis)
        if chosen is not None:
            return _selected(rw, y, chosen, lx[1 - axis : 2 - axis] if value.ndim == 2 else (), label, ly, lout)
    return None


def _chosen(value: Any, axis: int) -> tuple[Any, Any] | None:
    """(positions along an axis, the factor) where a constant selects."""
    hits = value != 0
    if int(np.count_nonzero(hits)) * value.shape[axis] != value.size or not (np.count_nonzero(hits, axis) == 1).all():
        return None
    factors = value[hits]
    positions = np.argmax(hits, axis)
    return (positions, factors[0].item()) if (factors == factors[0]).all() else None


def _selected(rw: Rewriter, y: Any, chosen: tuple[Any, Any], free: Labels, label: int, ly: Labels, lout: Labels) -> Any:
    positions, factor = chosen
    axis = ly.index(label)
    whole = tuple([(0, length, 1) for length in y.shape])
    if np.ndim(positions) == 0:
        taken = rw.emit(getitem, y, index=(*whole[:axis], int(positions), *whole[axis + 1 :]))
    else:
        steps = np.diff(positions)
        if (steps == steps[:1]).all() and steps[:1].all():
            taken = rw.emit(getitem, y, index=(*whole[:axis], _progression(positions), *whole[axis + 1 :]))
        else:
            taken = rw.emit(gather, y, rw.constant(positions), axis=axis)
    labels = (*ly[:axis], *free, *ly[axis + 1 :])
    scaled = taken if factor == 1 else rw.emit(multiply, taken, factor)
    return rw.permuted(scaled, [labels.index(one) for one in lout])


def _progression(positions: Any) -> tuple[int, int, int]:
    first, last = int(positions[0]), int(positions[-1])
    step = int(positions[1]) - first if len(positions) > 1 else 1
    return first, last + (1 if step > 0 else -1), step


# --- around contractions ----------------------------------------------------------------------------------------


def permuted_product(rw: Rewriter, out: Var, x: Any, *, order: tuple[int, ...]) -> Any:
    """A contraction that is only needed transposed."""
    equation = rw.maker(x, contract)
    if equation is None or not rw.used_once(x):
        return None
    labels = equation.params["spec"]
    return rw.emit(
        contract, *equation.inputs, spec=spec(labels.x, labels.y, tuple([labels.out[axis] for axis in order]))
    )


def summed_product(rw: Rewriter, out: Var, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
    """A sum over labels of a contraction: over one operand, or within the contraction."""
    equation = rw.maker(x, contract)
    if equation is None or not rw.used_once(x) or x.dtype.kind not in "fc" or params.get("dtype") is not None:
        return None
    labels = equation.params["spec"]
    gone = [labels.out[axis] for axis in axes]
    parts: list[tuple[Any, Labels]] = []
    for one, own, other in zip(equation.inputs, (labels.x, labels.y), (labels.y, labels.x), strict=True):
        alone = tuple([axis for axis, label in enumerate(own) if label in gone and label not in other])
        reduced = rw.emit(reduce_sum, one, axes=alone) if alone else one
        parts.append((reduced, tuple([label for axis, label in enumerate(own) if axis not in alone])))
    (first, lx), (second, ly) = parts
    return contracted(rw, first, second, lx, ly, tuple([label for label in labels.out if label not in gone]))


_SEEN_THROUGH = frozenset({permute, broadcast, multiply, divide, negative})

TABLE: dict[Primitive, tuple[Rule, ...]] = {
    contract: (of_operands,),
    permute: (permuted_product,),
    reduce_sum: (summed_product,),
}
