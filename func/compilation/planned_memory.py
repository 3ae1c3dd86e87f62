"""The planned memory of compiled programs, and programs that recompute values to need less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from func.interpreters.calls.compiled_call import SCANS_KEEP, CompiledCall
from func.interpreters.compile.call_memory import planned_liveness
from func.interpreters.control.scan_blocks import intervals
from func.interpreters.program.liveness import Liveness
from func.interpreters.program.program import Program
from func.interpreters.program.translations import keeps_bits, validated
from func.transforms.memory_limits import shown_bytes

SHARES_OF_SCANS = (4, 16, 64, 256)
"""Parts of a limit that the residuals of a scan may take, in the order of the attempts."""


NEIGHBOURS = 12
"""The number of intervals to try around the least plan."""


def longest_scan(program: Program) -> int:
    """The most steps of a scan in a program, or in one that it calls; 0 without scans."""
    scans = [equation for equation in program.equations if equation.primitive.name == "scan_call"]
    lengths: list[int] = [equation.params["loop"].length for equation in scans]
    nested = [longest_scan(inner) for equation in program.equations for _, inner in equation.nested()]
    return max([0, *lengths, *nested])


@contextmanager
def scans_keeping(most: int | None = None, interval: int | None = None) -> Iterator[None]:
    """Inside, a scan saves at most this many bytes for its backward pass, or runs in blocks of this length."""
    token = SCANS_KEEP.set((SCANS_KEEP.get()[0] if most is None else most, interval))
    try:
        yield
    finally:
        SCANS_KEEP.reset(token)


def interval_within(limit: int, length: int, peak_of: Callable[[int], int]) -> int | None:
    """An interval of checkpoints with a plan within the limit, for scans of this length; None if there is none.

    Carries fall and residuals rise with the interval, so the plans have one valley, up to remainders of the length.
    """
    candidates = intervals(length)
    peaks: dict[int, int] = {}

    def fits(place: int) -> bool:
        if place not in peaks:
            peaks[place] = peak_of(candidates[place])
        return peaks[place] <= limit

    first, last = 0, len(candidates) - 1
    while last - first > 2:
        third = (last - first) // 3
        a, b = first + third, last - third
        for place in (a, b):
            if fits(place):
                return candidates[place]
        first, last = (first, b - 1) if peaks[a] < peaks[b] else (a + 1, last)
    middle = (first + last) // 2
    near = sorted(range(len(candidates)), key=lambda place: abs(place - middle))[:NEIGHBOURS]
    return next((candidates[place] for place in near if fits(place)), None)


def recomputing(
    compiled: CompiledCall, limit: int, xp: Any, donated: frozenset[int], residuals: int | None
) -> tuple[Liveness, CompiledCall, tuple[str, ...]]:
    """(planned memory, the call, the measures): the call that recomputes as little as the limit allows."""
    from func.interpreters.compile.inlining import prepare_program  # here, for the start-up time
    from func.interpreters.compile.recomputation import fitting

    def peak_of(program: Program, call: CompiledCall) -> int:
        variant = (lambda: call) if call.has_pullbacks else None  # its existence changes the plan
        return planned_liveness(CompiledCall(program, variant, compiled.compiler), xp, donated)[0].peak

    def fitted(call: CompiledCall) -> Program:
        @keeps_bits
        def recompute(program: Program) -> Program:
            return fitting(program, limit, lambda program: peak_of(program, call))[0]

        return validated(recompute)(prepare_program(call.program))

    texts = [] if residuals is None else [f"scans keep at most {shown_bytes(residuals)} for their backward pass"]
    liveness = planned_liveness(compiled, xp, donated)[0]
    if liveness.peak > limit:
        before = Counter([equation.primitive.name for equation in prepare_program(compiled.program).equations])
        compiled = compiled.transformed(fitted)
        after = Counter([equation.primitive.name for equation in compiled.program.equations])
        repeated = [(name, count) for name, count in (after - before).most_common() if name != "barrier"]
        listed = ", ".join([f"{name} {count} ×" for name, count in repeated])
        texts.append(f"computed again instead of kept: {listed or 'nothing'}")
        liveness = planned_liveness(compiled, xp, donated)[0]
    return liveness, compiled, tuple(texts)
