"""Segments of a checkpointed function: cut where few values pass, so that the residuals stay below a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from func.interpreters.calls.checkpoint import checkpointed
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.core import Array, Tracer, aval_of, example_of, shape_of
from func.interpreters.core.errors import MemoryLimitError, StagingError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import Flat, running, without_tensors
from func.interpreters.nan_safe import structural_zeros
from func.interpreters.program.program import Program, Var
from func.interpreters.program.storage import bytes_of, held_bytes, memory_roots
from func.interpreters.stage import Stage
from func.transforms.boundary import name_of
from func.transforms.memory_limits import PLANNING, shown_bytes

STEP = 0.85
"""The share of their latest size that segments may have in the next attempt."""


class Segments(NamedTuple):
    """Segments of a program: the first equation of each, and the values that it takes from earlier ones."""

    starts: tuple[int, ...]
    needs: tuple[tuple[Var, ...], ...]
    bytes: int


def in_segments(fun: Flat, args: Sequence[Array], limit: int, function: Callable[..., Any]) -> list[Array]:
    """The outputs of a function whose derivative saves at most `limit` bytes.

    Saves all intermediate values if they fit. Otherwise cuts the function into as few segments as the limit allows,
    saves the values between segments, and recomputes each segment in its pullback.
    """
    program = _traced(fun, args, function)
    times = _batch_elements(args)
    everything = times * sum(_sizes(program))
    cut = Segments((0,), ((),), everything)
    if everything > limit:
        cut = _cut(program, limit, times, function)
    plan = PLANNING.get()
    if plan is not None:
        what = f"{len(cut.starts)} segments, computed again" if everything > limit else "nothing is computed again"
        plan.notes.append(
            f"func.checkpoint of {name_of(function)}: {what}; keeps {shown_bytes(cut.bytes)} "
            f"(memory_limit {shown_bytes(limit)})"
        )
    if everything <= limit:
        return list(program.run(args))
    values: dict[Var, Any] = dict(zip(program.inputs, args, strict=True))
    stops = [*cut.starts[1:], len(program.equations)]
    for number, (start, stop) in enumerate(zip(cut.starts, stops, strict=True)):
        is_last = number == len(cut.starts) - 1
        equations = program.equations[start:stop]
        computed = {out for equation in equations for out in equation.outputs}
        needed = [x for x in program.outputs if type(x) is Var] if is_last else cut.needs[number + 1]
        outputs = list(dict.fromkeys([x for x in needed if x in computed]))
        used = dict.fromkeys([x for e in equations for x in e.inputs if type(x) is Var and x in values])
        segment = Program(list(used), equations, outputs, program.constants).pruned()
        outs = checkpointed(CompiledCall(segment).run_on, [values[x] for x in segment.inputs])
        values.update(zip(outputs, outs, strict=True))
    return [(values[x] if x in values else program.constants[x]) if type(x) is Var else x for x in program.outputs]


def _traced(fun: Flat, args: Sequence[Array], function: Callable[..., Any]) -> Program:
    """The program of a flat function on arrays like these."""

    def trace() -> tuple[Program, bool]:
        stage = Stage("checkpoint")
        stage.example = next((example for example in map(example_of, args) if example is not None), None)
        with TransformScope(stage), running(stage):
            inputs: list[Any] = [stage.variable(aval_of(x)) for x in args]
            variables = [tracer._attached for tracer in inputs]
            WIRING.link_arguments(stage, fun, inputs, args)
            return stage.program(variables, without_tensors(fun(*inputs), stage)), stage.has_pullbacks

    try:
        program, has_pullbacks = trace()
        if has_pullbacks:  # no later check for NaN looks at their cotangents
            with structural_zeros():
                program, _ = trace()
    except StagingError as error:
        raise StagingError(
            f"func.checkpoint: memory_limit needs the Program of {name_of(function)}, which cannot be traced; leave "
            f"memory_limit out\n{error}"
        ) from error
    return program


def _sizes(program: Program) -> list[int]:
    """The memory of the outputs of each equation; views take none."""
    roots = memory_roots(program)
    return [
        sum([held_bytes(out, equation) for out in equation.outputs if roots[out] is out])
        for equation in program.equations
    ]


def _batch_elements(args: Sequence[Array]) -> int:
    """The number of elements of running vmaps in an argument."""
    most = 1
    for x in args:
        value = x
        while type(value) is Tracer and value._value is not None:
            value = value._value
        size, whole = aval_of(x).size, 1
        for length in shape_of(value):
            whole *= length
        if size:
            most = max(most, whole // size)
    return most


def _cut(program: Program, limit: int, times: int, function: Callable[..., Any]) -> Segments:
    """The fewest segments that keep at most `limit` bytes."""
    sizes = [times * size for size in _sizes(program)]
    passing = _passing(program)
    widths = [times * sum(map(bytes_of, values)) for values in passing]
    best = None
    most = float(sum(sizes))
    while best is None or most > max(sizes):
        most *= STEP
        starts = _starts(sizes, widths, most)
        passing_bytes = sum([widths[start] for start in starts])
        stops = [*starts[1:], len(sizes)]
        largest = max([sum(sizes[start:stop]) for start, stop in zip(starts, stops, strict=True)])
        cut = Segments(tuple(starts), tuple([tuple(passing[start]) for start in starts]), passing_bytes + largest)
        if cut.bytes <= limit:
            return cut
        if best is None or cut.bytes < best.bytes:
            best = cut
    assert best is not None
    raise MemoryLimitError(
        f"func.checkpoint: memory_limit={shown_bytes(limit)} cannot be met: {name_of(function)} keeps "
        f"{shown_bytes(best.bytes)} in {len(best.starts)} segments, {shown_bytes(best.bytes - limit)} more"
    )


def _passing(program: Program) -> list[list[Var]]:
    """For each equation the earlier intermediate values that it or a later one takes."""
    needed: dict[Var, None] = dict.fromkeys([x for x in program.outputs if type(x) is Var])
    fixed = {*program.inputs, *program.constants}
    passing: list[list[Var]] = []
    for equation in reversed(program.equations):
        for out in equation.outputs:
            needed.pop(out, None)
        needed.update(dict.fromkeys([x for x in equation.inputs if type(x) is Var]))
        passing.append([x for x in needed if x not in fixed])
    passing.reverse()
    return passing


def _starts(sizes: Sequence[int], widths: Sequence[int], most: float) -> list[int]:
    """The starts of segments of at most this size, each cut at the smallest passing memory in its second half."""
    starts = [0]
    taken, place = 0, 0
    while place < len(sizes):
        taken += sizes[place]
        if taken > most and place > starts[-1]:
            half = starts[-1] + 1 + (place - starts[-1] - 1) // 2
            cut = min(range(half, place + 1), key=lambda number: (widths[number], -number))
            starts.append(cut)
            place, taken = cut, 0
            continue
        place += 1
    return starts
