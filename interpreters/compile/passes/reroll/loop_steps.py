"""Whether a stretch of equations is a loop: how each operand of one step relates to that of the step before.

An operand is fixed (one value in all steps), moved (made in the same step or so many steps back; the first steps get
what was there before), or given (made before the loop, for each step another one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from func.interpreters.compile.passes.reroll.canonical_order import INDEXED, Ordered
from func.interpreters.compile.passes.reroll.period_search import Stretch
from func.interpreters.program.program import Equation, Var

BACK = 4
"""How many steps back a value may have been made."""


class Fixed(NamedTuple):
    """The same value in all steps."""

    value: Any


class Moved(NamedTuple):
    """The value of an output of the step (counted from 0) so many steps back."""

    back: int
    output: int
    before: tuple[Any, ...]
    """What the first steps get."""


class Given(NamedTuple):
    """A value of its own for each step."""

    values: tuple[Any, ...]


class Steps:
    """Step i of equation j is at start + i * period + j."""

    __slots__ = ("_operands", "count", "period", "sequence", "start")

    def __init__(self, sequence: Ordered, start: int, period: int, count: int) -> None:
        self.sequence = sequence
        self.start = start
        self.period = period
        self.count = count
        self._operands: dict[tuple[int, int], Fixed | Moved | Given] = {}

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

    def narrowed(self, first: int, last: int) -> Steps:
        """Some of the steps."""
        return Steps(self.sequence, self.start + first * self.period, self.period, last - first)

    def origin(self, step: int = 0) -> int:
        """The number of the first output of a step."""
        return self.sequence.bases[self.start + step * self.period]

    @property
    def width(self) -> int:
        """How many outputs a step has."""
        return self.origin(1) - self.origin()

    def operand(self, j: int, k: int) -> Fixed | Moved | Given:
        """How operand k of equation j relates to the step before; for steps of which `recognised` has made sure."""
        found = self._operands.get((j, k))
        if found is None:
            found = self._operands[j, k] = self._related(j, k)
        return found

    def _related(self, j: int, k: int) -> Fixed | Moved | Given:
        column = [equation.inputs[k] for equation in self.equations(j)]
        if same(column[0], column[-1]) and all([same(column[0], x) for x in column]):
            return Fixed(column[0])
        made = self.sequence.number.get(column[-1], -1) - self.origin(self.count - 1)
        if type(column[-1]) is not Var or made < -min(BACK, self.count - 1) * self.width:
            return Given(tuple(column))
        back = -(made // self.width)
        return Moved(back, made + back * self.width, tuple(column[:back]))


def same(x: Any, y: Any) -> bool:
    """Whether two atoms are one variable, or scalars of one type and value."""
    return x is y or (type(x) is not Var and type(x) is type(y) and repr(x) == repr(y))


def recognised(sequence: Ordered, stretch: Stretch, least: int) -> Steps | None:
    """A part of a stretch that is a loop of at least so many steps, of which there must be two."""
    start = _cut(sequence, stretch)
    steps = Steps(sequence, start, stretch.period, (stretch.stop - start) // stretch.period)
    if steps.count < least or not all(
        [equation.outputs for equation in sequence.equations[start : start + stretch.period]]
    ):
        return None
    for quarter in (2, 1, 3):
        found = _around(steps, min(quarter * steps.count // 4, steps.count - 2), least)
        if found is not None:
            return found
    return None


def _cut(sequence: Ordered, stretch: Stretch) -> int:
    """Where to begin a step so that the fewest bytes are handed over from one step to the next."""
    start, stop, period = stretch
    middle = start + stretch.steps // 2 * period
    first = max(start, middle - 2 * period)
    last: dict[int, int] = {}
    for place in range(first, min(stop, middle + 2 * period)):
        for x in sequence.equations[place].inputs:
            made = sequence.number.get(x, -1)
            if made >= sequence.bases[first]:
                last[made] = place
    change = [0] * (period + 1)
    for made, place in last.items():
        at = sequence.places[made]
        low, high = max(at + 1 - middle, 0), min(place - middle, period - 1)
        if low <= high:
            equation = sequence.equations[at]
            out = equation.outputs[made - sequence.bases[at]]
            size = max(out.size, 1) * out.dtype.itemsize
            change[low] += size
            change[high + 1] -= size
    crossing, best, least = 0, 0, None
    for offset in range(period):
        crossing += change[offset]
        if least is None or crossing < least:
            best, least = offset, crossing
    return start + best


def _around(steps: Steps, pivot: int, least: int) -> Steps | None:
    """The steps around one of them in which every operand goes on as it does there."""
    first, last = 0, steps.count
    moved: list[tuple[list[Any], int, int]] = []
    for j in range(steps.period):
        equations = steps.equations(j)
        for k in range(len(equations[0].inputs)):
            limits = _limits([equation.inputs[k] for equation in equations], steps, pivot, least, moved)
            if limits is None:
                return None
            first, last = max(first, limits[0]), min(last, limits[1])
    if last - first >= least:
        first = _after_beginnings(steps, first, last, moved)
    return steps.narrowed(first, last) if last - first >= least else None


def _limits(
    column: list[Any], steps: Steps, pivot: int, least: int, moved: list[tuple[list[Any], int, int]]
) -> tuple[int, int] | None:
    """The first step, and the one after the last, in which an operand goes on as it does at the pivot."""
    here, there = column[pivot], column[pivot + 1]
    number, width, origin = steps.sequence.number, steps.width, steps.origin()
    made = [number.get(x, -1) - origin for x in column]
    if same(here, there):
        low, high = _reach(pivot, [same(here, x) for x in column])
        if high - low >= least or made[pivot] >= 0:
            return max(low, made[pivot] // width + 1), high
    if made[pivot] < 0 and made[pivot + 1] < 0:
        return _reach(pivot, [one < 0 for one in made])
    distance = made[pivot + 1] - (pivot + 1) * width
    if made[pivot + 1] - made[pivot] != width:
        return _given_inside(made, width, pivot)
    back = -(distance // width)
    if back > min(BACK, pivot):
        return _given_inside(made, width, pivot)
    low, high = _reach(pivot, [one - i * width == distance for i, one in enumerate(made)])
    if back:
        moved.append((made, back, low))
        low = max(low - back, 0)
    return low, high


def _given_inside(made: list[int], width: int, pivot: int) -> tuple[int, int] | None:
    """For values that were made in steps before the first one that is left."""
    first, last = 0, len(made)
    for i, one in enumerate(made):
        step = one // width
        if step < min(i, pivot):
            first = max(first, step + 1)
        elif i > pivot:
            last = i
            break
        else:
            first = i + 1
    return (first, last) if first < last else None


def _reach(pivot: int, good: Sequence[bool]) -> tuple[int, int]:
    first, last = pivot, pivot + 1
    while first and good[first - 1]:
        first -= 1
    while last < len(good) and good[last]:
        last += 1
    return first, last


def _after_beginnings(steps: Steps, first: int, last: int, moved: list[tuple[list[Any], int, int]]) -> int:
    """The first step for which what the first ones get of the steps before is there before the loop."""
    again = True
    while again and first < last:
        again = False
        for made, back, low in moved:
            late = [i for i in range(first, min(low, first + back)) if made[i] >= first * steps.width]
            if late:
                first, again = late[-1] + 1, True
    return first


def indices(steps: Steps, j: int) -> list[Any] | None:
    """The index of equation j in each step, where it is not the same in all."""
    equations = steps.equations(j)
    if equations[0].primitive not in INDEXED:
        return None
    found = [equation.params["index"] for equation in equations]
    return None if all([one == found[0] for one in found]) else found
