"""Bodies of loops and branches with structural zeros: they take and return a mask for each (co)tangent.

Operands and outputs have the layout of the body, with masks behind each group: the consts, the carry and the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.compiled_bodies import active_inputs, compiled_function, dependents, split
from func.interpreters.core import Array, Aval, shape_of
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.structural_zeros import UNTRACED, StructuralZeros, has_mask, linear_mask

BOOL = np.dtype(np.bool_)


class MaskedBody(NamedTuple):
    """A body with masks; the inputs and outputs that have one."""

    body: CompiledCall
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]


def masked_body(body: CompiledCall, consts: int, carries: int, traced: Sequence[bool]) -> MaskedBody:
    """The body of a loop for traced operands; a carry has a mask from the start if it has one after some step."""
    inputs = active_inputs(body, consts, carries, traced)
    outputs = tuple(dependents(body.program, inputs))
    outputs = (*inputs[consts : consts + carries], *outputs[carries:])
    return body.memoized(
        ("masked", consts, carries, inputs, outputs),
        lambda: MaskedBody(with_masks(body, (consts, carries), (carries,), inputs, outputs), inputs, outputs),
    )


def with_masks(
    body: CompiledCall,
    input_groups: Sequence[int],
    output_groups: Sequence[int],
    inputs: Sequence[bool],
    outputs: Sequence[bool],
) -> CompiledCall:
    """The body with a mask for each input and output whose flag is set, behind the group of the value."""
    avals = body.in_avals
    masks = [Aval(aval.shape, BOOL) if flag else UNTRACED for aval, flag in zip(avals, inputs, strict=True)]

    def run(*operands: Array) -> list[Array]:
        values, known = unjoined(operands, inputs, input_groups)
        structural = StructuralZeros()
        args = [x if mask is UNTRACED else structural.lift(x, mask) for x, mask in zip(values, known, strict=True)]
        outs = body.run_on(*args)
        return joined(
            [x._value if has_mask(x) else x for x in outs],
            [dense_mask(x) if flag else UNTRACED for x, flag in zip(outs, outputs, strict=True)],
            output_groups,
        )

    return compiled_function(run, joined(avals, masks, input_groups))


def dense_mask(value: Array) -> Array:
    """The mask of a (co)tangent as an array; of a plain value its elements that are not zero."""
    if has_mask(value):
        return full_like(value, True, None, BOOL) if value._attached is None else value._attached
    return linear_mask(value, UNTRACED)


def joined(values: Sequence[Any], masks: Sequence[Any], groups: Sequence[int]) -> list[Any]:
    """The values of each group and behind them their masks."""
    both: list[Any] = []
    for part, part_masks in zip(split(values, *groups), split(masks, *groups), strict=True):
        both += [*part, *[mask for mask in part_masks if mask is not UNTRACED]]
    return both


def unjoined(operands: Sequence[Any], flags: Sequence[bool], groups: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """(values, masks) of joined operands, UNTRACED without a flag."""
    values: list[Any] = []
    masks: list[Any] = []
    rest = list(operands)
    for part in split(list(flags), *groups):
        part_values, part_masks, rest = split(rest, len(part), sum(part))
        present = iter(part_masks)
        values += part_values
        masks += [next(present) if flag else UNTRACED for flag in part]
    return values, masks


def operands_with_masks(args: Sequence[Array], flags: Sequence[bool], groups: Sequence[int]) -> list[Array]:
    """Operands of a masked body."""
    values = [x._value if has_mask(x) else x for x in args]
    masks = [
        (dense_mask(x) if has_mask(x) else _full_mask(x)) if flag else UNTRACED
        for x, flag in zip(args, flags, strict=True)
    ]
    return joined(values, masks, groups)


def _full_mask(value: Array) -> Array:
    """The mask of an operand without one: its elements that are not zero."""
    mask = linear_mask(value, UNTRACED)
    return mask if shape_of(mask) == shape_of(value) else full_like(value, bool(mask), None, BOOL)


def outputs_with_masks(
    structural: StructuralZeros, outs: Sequence[Array], flags: Sequence[bool], groups: Sequence[int]
) -> Any:
    """The outputs of a masked body, traced where they have a mask."""
    values, masks = unjoined(outs, flags, groups)
    return tuple([x if mask is UNTRACED else structural.lift(x, mask) for x, mask in zip(values, masks, strict=True)])
