"""The contraction as one matmul, between the transposes and reshapes that its labels ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from func.backends.support.arrays import matmul_into
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import dtype_text, literal
from func.interpreters.core import Shape

Labels = tuple[int, ...]


@lowering("contract")
def _contract(context: LoweringContext) -> Code:
    spec = context.params["spec"]
    summed = [label for label in spec.x if label in spec.y and label not in spec.out]
    code = _matmul(context, summed) if summed else _product(context)
    strong = np.result_type(context.avals[0].dtype, context.avals[1].dtype)
    if strong.kind == "V" and context.avals[0].dtype == context.avals[1].dtype:
        return Code(f"{code.fresh}.astype({dtype_text(strong)})")
    return code if strong == context.out.dtype else Code(code.fresh, support=code.support)


def _product(context: LoweringContext) -> Code:
    """Nothing is summed: both in the order of the output, broadcast and multiplied."""
    spec = context.params["spec"]
    x, y = _spread(context.array(0), spec.x, spec.out), _spread(context.array(1), spec.y, spec.out)
    inplace = tuple([place for place in context.matching() if (spec.x, spec.y)[place] == spec.out])
    return Code(f"np.multiply({x}, {y}, {{out}})", out=True, plain=f"np.multiply({x}, {y})", inplace=inplace)


def _spread(operand: str, labels: Labels, out: Labels) -> str:
    """An operand with its axes in the order of the output and axes of length one for the others."""
    moved = _transposed(operand, [labels.index(label) for label in out if label in labels])
    entries = [":" if label in labels else "None" for label in out]
    while entries and entries[-1] == ":":
        entries.pop()
    first_kept = next((i for i, entry in enumerate(entries) if entry == ":"), len(entries))
    return moved if first_kept == 0 and "None" not in entries else _led(moved, entries, first_kept)


def _led(operand: str, entries: list[str], first_kept: int) -> str:
    """Leading axes of length one need not be written: NumPy adds them."""
    rest = entries[first_kept:]
    return f"{operand}[{', '.join(rest)}]" if rest else operand


def _transposed(operand: str, order: Sequence[int]) -> str:
    if tuple(order) == tuple(range(len(order))):
        return operand
    if tuple(order) == tuple(range(len(order)))[::-1]:
        return f"{operand}.T"
    return f"{operand}.transpose({literal(tuple(order))})"


def _reshaped(operand: str, have: Shape, want: Shape) -> str:
    return operand if have == want else f"{operand}.reshape({literal(want)})"


def _matmul(context: LoweringContext, summed: list[int]) -> Code:
    spec = context.params["spec"]
    sizes = dict(zip((*spec.x, *spec.y), (*context.avals[0].shape, *context.avals[1].shape), strict=True))
    batch = [label for label in spec.out if label in spec.x and label in spec.y]
    only_x = [label for label in spec.x if label not in spec.y]
    only_y = [label for label in spec.y if label not in spec.x]
    made = [*batch, *only_x, *only_y]
    order = [made.index(label) for label in spec.out]
    simple = len(summed) == 1 and len(only_x) <= 1 and len(only_y) <= 1 and (not batch or len(made) == len(batch) + 2)
    if simple and order == [1, 0]:  # out = (…, y, x): multiplied the other way round it comes out in order
        x = _transposed(context.array(0), [spec.x.index(label) for label in (*summed, *only_x)])
        y = _transposed(context.array(1), [spec.y.index(label) for label in (*only_y, *summed)])
        return Code(f"np.matmul({y}, {x}, {{out}})", out=True, plain=f"np.matmul({y}, {x})")
    x_labels, y_labels = [*batch, *only_x, *summed], [*batch, *summed, *only_y]
    x = _transposed(context.array(0), [spec.x.index(label) for label in x_labels])
    y = _transposed(context.array(1), [spec.y.index(label) for label in y_labels])
    if simple:
        plain = _transposed(f"np.matmul({x}, {y})", order)
        in_order = order == sorted(order)
        return Code(f"np.matmul({x}, {y}, {{out}})", out=True, plain=plain) if in_order else Code(plain)

    def lengths(labels: Sequence[int]) -> Shape:
        return tuple([sizes[label] for label in labels])

    nb, depth = lengths(batch), math.prod(lengths(summed))
    flat = (*nb, math.prod(lengths(only_x)), math.prod(lengths(only_y)))
    x = _reshaped(x, lengths(x_labels), (*nb, flat[-2], depth))
    y = _reshaped(y, lengths(y_labels), (*nb, depth, flat[-1]))
    product = _reshaped(f"np.matmul({x}, {y})", flat, lengths(made))
    plain = _transposed(product, order)
    if order != sorted(order):
        return Code(plain)
    if flat == lengths(made):
        return Code(f"np.matmul({x}, {y}, {{out}})", out=True, plain=plain)
    text = f"matmul_into(np, {x}, {y}, {literal(flat)}, {{out}})"
    return Code(text, out=True, plain=plain, support=(matmul_into,))
