"""Windows: a Program evaluated for a part of its outputs, an index box of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import Linear, bind, shape_of
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.structural.shapes import broadcast, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate, embed, getitem
from func.interpreters.program.program import Equation, Program, Var

Box: TypeAlias = tuple[tuple[int, int], ...]
"""(start, stop) along each axis."""


def windowed(program: Program, values: Sequence[Any], boxes: Sequence[Box]) -> list[Any]:
    """The index boxes of a Program's outputs."""
    needed: dict[Var, Box] = {}
    for out, box in zip(program.outputs, boxes, strict=True):
        _need(needed, out, box)
    for equation in reversed(program.equations):
        output_boxes = [needed[x] for x in equation.outputs if x in needed]
        if not output_boxes:
            continue
        parts = _operand_windows(equation, output_boxes[0])
        if parts is None:
            needed.update({x: _whole(x.shape) for x in equation.outputs})
            parts = [_whole(shape_of(x)) for x in equation.inputs]
        for x, part in zip(equation.inputs, parts, strict=True):
            if part is not None:
                _need(needed, x, part)
    known = dict(program.constants)
    known.update(zip(program.inputs, values, strict=True))
    parts_of: dict[Var, Any] = {x: _cut(value, _whole(x.shape), needed[x]) for x, value in known.items() if x in needed}
    for equation in program.equations:
        if any([x in needed for x in equation.outputs]):
            out = _evaluate(equation, needed, parts_of)
            parts_of.update(zip(equation.outputs, out if equation.primitive.multiple else (out,), strict=True))
    return [_at(parts_of, needed, out, box) for out, box in zip(program.outputs, boxes, strict=True)]


def _whole(shape: Sequence[int]) -> Box:
    return tuple([(0, length) for length in shape])


def _need(needed: dict[Var, Box], x: Any, box: Box) -> None:
    """Note the need for a box of a value: the hull of all such boxes will be computed."""
    if type(x) is Var:
        other = needed.get(x, box)
        needed[x] = tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(box, other, strict=True)])


def _cut(value: Any, box: Box, part: Box) -> Any:
    """The part for a box of an available value."""
    if part == box:
        return value
    return getitem(
        value, index=tuple([(a - start, b - start, 1) for (a, b), (start, _) in zip(part, box, strict=True)])
    )


def _at(parts: dict[Var, Any], needed: dict[Var, Box], x: Any, box: Box) -> Any:
    """A box of an operand."""
    return _cut(parts[x], needed[x], box) if type(x) is Var else _cut(x, _whole(np.shape(x)), box)


def _is_elementwise(equation: Equation) -> bool:
    primitive = equation.primitive
    is_linear = isinstance(primitive, Linear) and primitive.mask == "elementwise"
    return is_linear or isinstance(primitive, Elementwise) or primitive in (where, broadcast)


def _operand_windows(equation: Equation, box: Box) -> list[Box | None] | None:
    """The necessary box of each operand for a box of the output: None for nothing; None alone for all of all."""
    primitive, params = equation.primitive, equation.params
    shapes = [tuple(shape_of(x)) for x in equation.inputs]
    if any([start == stop for start, stop in box]):
        return None
    if _is_elementwise(equation):
        return [_broadcast_box(shape, box) for shape in shapes]
    if primitive is reshape and shapes[0] == equation.outputs[0].shape:
        return [box]
    if primitive is getitem:
        return _box_before_index(params["index"], box)
    if primitive is embed:
        return _box_inside(params["index"], box)
    if primitive is concatenate:
        parts: list[Box | None] = []
        axis = params["axis"]
        end = 0
        for shape in shapes:
            start, end = end, end + shape[axis]
            a, b = max(box[axis][0], start) - start, min(box[axis][1], end) - start
            parts.append((*box[:axis], (a, b), *box[axis + 1 :]) if a < b else None)
        return parts
    return None


def _broadcast_box(shape: Sequence[int], box: Box) -> Box:
    """The box of an operand that broadcasts to a value."""
    aligned = box[len(box) - len(shape) :]
    return tuple([(0, 1) if length == 1 else part for length, part in zip(shape, aligned, strict=True)])


def _box_before_index(index: Sequence[Any], box: Box) -> list[Box | None] | None:
    """The box of an array whose slice has this box."""
    result = []
    remaining = iter(box)
    for entry in index:
        if entry is None:
            next(remaining)
        elif isinstance(entry, int):
            result.append((entry, entry + 1))
        elif entry[2] == 1:
            a, b = next(remaining)
            result.append((entry[0] + a, entry[0] + b))
        else:
            return None
    return [tuple(result)]


def _box_inside(index: Sequence[Any], box: Box) -> list[Box | None] | None:
    """The box of an embedded value, empty if the box misses it; None for an index that is not a box."""
    if any([not isinstance(entry, tuple) or entry[2] != 1 for entry in index]):
        return None
    inside = [(max(a, i) - i, min(b, j) - i) for (a, b), (i, j, _) in zip(box, index, strict=True)]
    return [tuple(inside) if all([a < b for a, b in inside]) else None]


def _evaluate(equation: Equation, needed: dict[Var, Box], parts: dict[Var, Any]) -> Any:
    """An equation for the boxes of its outputs."""
    primitive, params = equation.primitive, equation.params
    box = needed[next(x for x in equation.outputs if x in needed)]
    out = equation.outputs[0]
    boxes = _operand_windows(equation, box)
    if boxes is None:
        return bind(primitive, tuple([_at(parts, needed, x, _whole(shape_of(x))) for x in equation.inputs]), params)
    shape = tuple([b - a for a, b in box])
    operands = [_at(parts, needed, x, b) for x, b in zip(equation.inputs, boxes, strict=True) if b is not None]
    if primitive is broadcast:
        return broadcast(operands[0], shape=shape)
    if primitive is getitem and all([isinstance(entry, tuple) for entry in params["index"]]):
        return operands[0]
    if primitive is getitem:
        index = tuple(
            [None if e is None else 0 if isinstance(e, int) else (0, b, 1) for e, b in _lengths(params, boxes[0])]
        )
        return getitem(operands[0], index=index)
    if primitive is reshape:
        return operands[0]
    if primitive is embed:
        if not operands:
            return broadcast(np.zeros((), out.dtype)[()], shape=shape)
        start = [max(i - a, 0) for (a, _), (i, _, _) in zip(box, params["index"], strict=True)]
        lengths = shape_of(operands[0])
        if tuple(lengths) == shape:
            return operands[0]
        index = tuple([(a, a + n, 1) for a, n in zip(start, lengths, strict=True)])
        return embed(operands[0], index=index, shape=shape)
    if primitive is concatenate and len(operands) == 1:
        return operands[0]
    return bind(primitive, tuple(operands), params)


def _lengths(params: Any, box: Box | None) -> list[tuple[Any, int]]:
    """The entries of an index with the lengths of the operand's box along their axes."""
    assert box is not None
    remaining = iter(box)
    pairs = []
    for entry in params["index"]:
        a, b = (0, 0) if entry is None else next(remaining)
        pairs.append((entry, b - a))
    return pairs
