"""Loops among equations: stretches whose signatures repeat, and how the operands of one step relate to other steps.

An operand is invariant (one value in all steps), carried or per step. A carried value is computed in the same step or a
fixed number of steps earlier; the first steps take values from before the loop. A value per step is computed before the
loop, another one for each step.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.compile.passes.reroll.canonical_order import INDEXED, OrderedEquations
from func.interpreters.program.program import Equation, Var

MAX_BACK = 4
"""The largest number of steps between the computation of a carried value and its use."""
MAX_PERIOD = 4096
"""The longest period that is searched, in equations."""
SAMPLED = 16
"""Places of a run that are compared before all of them: chance seldom makes this many equal."""
NEARLY_ALL = 0.75
"""Among stretches that cover this share of the longest one, the shortest period is tried first."""


class Stretch(NamedTuple):
    """A run of equations with signatures[i] == signatures[i + period] for start ≤ i < stop − period."""

    start: int
    stop: int
    period: int

    @property
    def steps(self) -> int:
        """The number of whole periods."""
        return (self.stop - self.start) // self.period


def find_stretches(signatures: np.ndarray[Any, Any], start: int, stop: int, least: int, many: int) -> list[Stretch]:
    """The stretches between two places with at least `least` steps and `many` equations, the most promising first."""
    part = signatures[start:stop]
    stretches = []
    for period in range(1, min((stop - start) // least, MAX_PERIOD) + 1):
        needed = max((least - 1) * period, many - period)
        if not _may_repeat(part, period, needed):
            continue
        differ = part[period:] != part[:-period]
        if len(differ) - int(np.count_nonzero(differ)) < needed:
            continue
        ends = np.flatnonzero(differ)
        starts = np.concatenate([[0], ends + 1])
        lengths = np.concatenate([ends, [len(differ)]]) - starts
        for i in np.flatnonzero(lengths >= needed):
            first = start + int(starts[i])
            stretches.append(Stretch(first, first + int(lengths[i]) + period, period))
    if not stretches:
        return stretches
    stretches.sort(key=lambda stretch: (-stretch.steps * stretch.period, stretch.period))
    enough = NEARLY_ALL * stretches[0].steps * stretches[0].period
    return sorted(stretches, key=lambda s: s.period if s.steps * s.period >= enough else MAX_PERIOD + 1)


def _may_repeat(part: np.ndarray[Any, Any], period: int, needed: int) -> bool:
    """Whether a sample allows a run of `needed` places that are equal to those a period later.

    Such a run has SAMPLED places in a row, or more, of any that are needed / (SAMPLED + 1) apart.
    """
    step = needed // (SAMPLED + 1)
    if step < 2:
        return True
    is_equal = part[period::step] == part[:-period:step]
    if np.count_nonzero(is_equal) < SAMPLED:
        return False
    ends = np.flatnonzero(~is_equal)
    edges = np.concatenate([[-1], ends, [len(is_equal)]])
    return bool((np.diff(edges) > SAMPLED).any())


class Invariant(NamedTuple):
    """The same value in all steps."""

    value: Any


class Carried(NamedTuple):
    """The value that an output of the step, given by its number in the step, had `back` steps earlier."""

    back: int
    output: int
    initial: tuple[Any, ...]
    """The values for the first `back` steps."""


class PerStep(NamedTuple):
    """A value for each step."""

    values: tuple[Any, ...]


Operand: TypeAlias = Invariant | Carried | PerStep


class Steps:
    """The steps of a loop: equation j of step i is at start + i · period + j."""

    __slots__ = ("_operands", "count", "period", "sequence", "start")

    def __init__(self, sequence: OrderedEquations, start: int, period: int, count: int) -> None:
        self.sequence = sequence
        self.start = start
        self.period = period
        self.count = count
        self._operands: dict[tuple[int, int], Operand] = {}

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count

    def equation(self, j: int, step: int = 0) -> Equation:
        """Equation j of a step."""
        return self.sequence.equations[self.start + step * self.period + j]

    def equations(self, j: int) -> list[Equation]:
        """Equation j of every step."""
        return self.sequence.equations[self.start + j : self.stop : self.period]

    def outputs(self) -> list[list[Var]]:
        """The outputs of a step, each with its variables in all steps."""
        return [
            [equation.outputs[k] for equation in equations]
            for equations in map(self.equations, range(self.period))
            for k in range(len(equations[0].outputs))
        ]

    def sub_range(self, first: int, last: int) -> Steps:
        """The steps from `first` up to `last`."""
        return Steps(self.sequence, self.start + first * self.period, self.period, last - first)

    def origin(self, step: int = 0) -> int:
        """The number of the first output of a step."""
        return self.sequence.first_output[self.start + step * self.period]

    @property
    def width(self) -> int:
        """The number of outputs of a step."""
        return self.origin(1) - self.origin()

    def operand(self, j: int, k: int) -> Operand:
        """The relation of operand k of equation j to other steps, for a loop that `recognize_loop` has checked."""
        operand = self._operands.get((j, k))
        if operand is None:
            operand = self._operands[j, k] = self._classify(j, k)
        return operand

    def _classify(self, j: int, k: int) -> Operand:
        column = [equation.inputs[k] for equation in self.equations(j)]
        if is_same(column[0], column[-1]) and all([is_same(column[0], x) for x in column]):
            return Invariant(column[0])
        distance = self.sequence.number.get(column[-1], -1) - self.origin(self.count - 1)
        if type(column[-1]) is not Var or distance < -min(MAX_BACK, self.count - 1) * self.width:
            return PerStep(tuple(column))
        back = -(distance // self.width)
        return Carried(back, distance + back * self.width, tuple(column[:back]))


def is_same(x: Any, y: Any) -> bool:
    """True for the same variable, and for scalars of the same type and value."""
    return x is y or (type(x) is not Var and type(x) is type(y) and repr(x) == repr(y))


def recognize_loop(sequence: OrderedEquations, stretch: Stretch, least: int) -> Steps | None:
    """A part of a stretch that is a loop of at least `least` ≥ 2 steps, or None."""
    start = _cheapest_start(sequence, stretch)
    steps = Steps(sequence, start, stretch.period, (stretch.stop - start) // stretch.period)
    has_outputs = [bool(equation.outputs) for equation in sequence.equations[start : start + stretch.period]]
    if steps.count < least or not all(has_outputs):
        return None
    for quarter in (2, 1, 3):
        loop = _extend_from(steps, min(quarter * steps.count // 4, steps.count - 2), least)
        if loop is not None:
            return loop
    return None


def _cheapest_start(sequence: OrderedEquations, stretch: Stretch) -> int:
    """The start for which the fewest bytes are live between one step and the next.

    Counts the bytes that are live at each equation of a step in the middle of the stretch.
    """
    start, stop, period = stretch
    middle = start + stretch.steps // 2 * period
    first = max(start, middle - 2 * period)
    last: dict[int, int] = {}
    for place in range(first, min(stop, middle + 2 * period)):
        for x in sequence.equations[place].inputs:
            number = sequence.number.get(x, -1)
            if number >= sequence.first_output[first]:
                last[number] = place
    change = [0] * (period + 1)
    for number, place in last.items():
        at = sequence.place_of[number]
        low, high = max(at + 1 - middle, 0), min(place - middle, period - 1)
        if low <= high:
            equation = sequence.equations[at]
            out = equation.outputs[number - sequence.first_output[at]]
            size = max(out.size, 1) * out.dtype.itemsize
            change[low] += size
            change[high + 1] -= size
    live = list(itertools.accumulate(change[:period]))
    return start + live.index(min(live))


def _extend_from(steps: Steps, pivot: int, least: int) -> Steps | None:
    """The steps around a pivot step in which every operand relates to other steps as it does there."""
    first, last = 0, steps.count
    carried: list[tuple[list[int], int, int]] = []
    for j in range(steps.period):
        equations = steps.equations(j)
        for k in range(len(equations[0].inputs)):
            limits = _limits([equation.inputs[k] for equation in equations], steps, pivot, least, carried)
            if limits is None:
                return None
            first, last = max(first, limits[0]), min(last, limits[1])
    if last - first >= least:
        first = _skip_late_initial_values(steps, first, last, carried)
    return steps.sub_range(first, last) if last - first >= least else None


def _limits(
    column: list[Any], steps: Steps, pivot: int, least: int, carried: list[tuple[list[int], int, int]]
) -> tuple[int, int] | None:
    """The first step, and the one after the last, in which an operand relates to other steps as at the pivot.

    Appends (output numbers by step, back, first step) to `carried` for an operand from an earlier step.
    """
    here, there = column[pivot], column[pivot + 1]
    number, width, origin = steps.sequence.number, steps.width, steps.origin()
    numbers = [number.get(x, -1) - origin for x in column]
    if is_same(here, there):
        low, high = _run_around(pivot, [is_same(here, x) for x in column])
        if high - low >= least or numbers[pivot] >= 0:
            return max(low, numbers[pivot] // width + 1), high
    if numbers[pivot] < 0 and numbers[pivot + 1] < 0:
        return _run_around(pivot, [n < 0 for n in numbers])
    distance = numbers[pivot + 1] - (pivot + 1) * width
    if numbers[pivot + 1] - numbers[pivot] != width:
        return _sequence_limits(numbers, width, pivot)
    back = -(distance // width)
    if back > min(MAX_BACK, pivot):
        return _sequence_limits(numbers, width, pivot)
    low, high = _run_around(pivot, [n - i * width == distance for i, n in enumerate(numbers)])
    if back:
        carried.append((numbers, back, low))
        low = max(low - back, 0)
    return low, high


def _sequence_limits(numbers: list[int], width: int, pivot: int) -> tuple[int, int] | None:
    """The steps around the pivot for which all values were computed before the first of these steps."""
    first, last = 0, len(numbers)
    for i, n in enumerate(numbers):
        step = n // width
        if step < min(i, pivot):
            first = max(first, step + 1)
        elif i > pivot:
            last = i
            break
        else:
            first = i + 1
    return (first, last) if first < last else None


def _run_around(pivot: int, is_alike: Sequence[bool]) -> tuple[int, int]:
    """The run of true values around the pivot."""
    first, last = pivot, pivot + 1
    while first and is_alike[first - 1]:
        first -= 1
    while last < len(is_alike) and is_alike[last]:
        last += 1
    return first, last


def _skip_late_initial_values(steps: Steps, first: int, last: int, carried: list[tuple[list[int], int, int]]) -> int:
    """The first step for which the initial values of all carries are computed before the loop."""
    again = True
    while again and first < last:
        again = False
        for numbers, back, low in carried:
            late = [i for i in range(first, min(low, first + back)) if numbers[i] >= first * steps.width]
            if late:
                first, again = late[-1] + 1, True
    return first


def varying_indices(steps: Steps, j: int) -> list[Any] | None:
    """The index of equation j in each step; None where it is the same in all."""
    equations = steps.equations(j)
    if equations[0].primitive not in INDEXED:
        return None
    indices = [equation.params["index"] for equation in equations]
    return None if all([index == indices[0] for index in indices]) else indices
