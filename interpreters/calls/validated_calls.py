"""Validation of the programs that derive from a call: its derivatives and its batched form.

Validation compares a derivative with that of the equations one by one, a batched program with that on each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.partition import Partition, expand, output_avals, select
from func.interpreters.core import ZERO, Array, Aval, is_inexact
from func.interpreters.core.wiring import WIRING
from func.interpreters.program.plain_runs import Run, plain_run
from func.interpreters.program.program import Program
from func.interpreters.program.translations import TRANSLATIONS

MOST_ELEMENTS = 8
"""Elements of the largest batch that is validated."""
COLLECTIVES = "func.interpreters.primitives.structural.collectives"
"""The module of the primitives by which the elements of a batch exchange values."""


def validated_partition(
    partition: Callable[[Program, Sequence[bool]], Partition],
    program: Program,
    active: tuple[bool, ...],
    is_reverse: bool = False,
) -> Partition:
    """The partition of a program for active arguments, validated if the settings ask for it."""
    made = partition(program, active)
    if not TRANSLATIONS.are_validated:
        return made
    passive = set(select(program.inputs, [not is_active for is_active in active]))

    def flags(other: Program) -> list[bool]:
        return [is_inexact(var.dtype) and var not in passive for var in other.inputs]

    def avals(other: Program) -> list[Aval]:
        inexact = [aval for aval in output_avals(other) if is_inexact(aval.dtype)]
        seeds = inexact if is_reverse else [var.aval for var in select(other.inputs, flags(other))]
        return [*[var.aval for var in other.inputs], *[Aval(aval.shape, aval.dtype) for aval in seeds]]

    def results(other: Program) -> Sequence[Aval]:
        return [var.aval for var in select(other.inputs, flags(other))] if is_reverse else output_avals(other)

    def by_partition(other: Program, parts: Partition) -> Run:
        known, linear = plain_run(parts.known), plain_run(parts.linear)

        def run(*values: Array) -> list[Any]:
            args, seeds = values[: len(other.inputs)], values[len(other.inputs) :]
            outs = known(*args)
            count = len(other.outputs)
            found = expand(linear(*outs[count:], *seeds), parts.has_result)
            return [*outs[:count], *_dense(found, results(other))]

        return run

    def by_equations(other: Program) -> Run:
        def run(*values: Array) -> list[Any]:
            args, seeds = values[: len(other.inputs)], values[len(other.inputs) :]
            plain_run(other)(*args)  # raises Undefined for a loop without end
            if is_reverse:
                places = [place for place, aval in enumerate(output_avals(other)) if is_inexact(aval.dtype)]
                chosen = [place for place, flag in enumerate(flags(other)) if flag]
                pullback = drivers.PullbackFlat(lambda *xs: other.run(xs), args, chosen)
                return [*pullback.outs, *_dense(pullback(dict(zip(places, seeds, strict=True))), results(other))]
            outs, tangents = drivers.jvp_flat(lambda *xs: other.run(xs), args, expand(seeds, flags(other)))
            return [*outs, *_dense(tangents, results(other))]

        return run

    WIRING.check_translation(
        f"the partition for {'reverse' if is_reverse else 'forward'} mode",
        program,
        lambda other: by_partition(other, partition(other, flags(other))),
        by_partition(program, made),
        reference=by_equations,
        avals=avals,
    )
    return made


def _dense(values: Sequence[Any], avals: Sequence[Aval]) -> list[Any]:
    """(Co)tangents, with zeros for ZERO."""
    return [
        np.zeros(aval.shape, aval.dtype) if x is ZERO else np.broadcast_to(x, aval.shape)
        for x, aval in zip(values, avals, strict=True)
    ]


def check_batch(
    program: Program, size: int, which: Sequence[bool], batched: Callable[[Program, int, Sequence[bool]], Program]
) -> None:
    """Raise ValidationError if a batched program differs from the program on each element; a large batch becomes small.

    Elements that exchange values differ from single ones.
    """
    if _exchanges(program):
        return
    whole = set(select(program.inputs, [not is_mapped for is_mapped in which]))
    size = size if size <= MOST_ELEMENTS else 2

    def flags(other: Program) -> list[bool]:
        return [var not in whole for var in other.inputs]

    def avals(other: Program) -> list[Aval]:
        return [
            Aval((size, *var.shape), var.dtype) if is_mapped else var.aval
            for var, is_mapped in zip(other.inputs, flags(other), strict=True)
        ]

    def one_by_one(other: Program) -> Run:
        run, is_mapped = plain_run(other), flags(other)

        def stacked(*args: Array) -> list[Any]:
            elements = [
                run(*[x[i] if flag else x for x, flag in zip(args, is_mapped, strict=True)]) for i in range(size)
            ]
            outs: list[tuple[Any, ...]] = [()] * len(other.outputs)
            if elements:
                outs = list(zip(*elements, strict=True))
            return [
                np.stack([np.asarray(x, aval.dtype) for x in values]) if values else np.zeros((0, *aval.shape))
                for values, aval in zip(outs, output_avals(other), strict=True)
            ]

        return stacked

    WIRING.check_translation(
        f"a batch of {size}",
        program,
        lambda other: plain_run(batched(other, size, flags(other))),
        reference=one_by_one,
        avals=avals,
    )


def _exchanges(program: Program) -> bool:
    """Whether a program, or one inside it, has a collective over a batch axis."""
    return any(
        [
            equation.primitive.defined_in == COLLECTIVES or any([_exchanges(inner) for _, inner in equation.nested()])
            for equation in program.equations
        ]
    )
