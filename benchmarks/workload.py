"""Workloads and their measurements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.contestants import FUNC

Call = Callable[[], Any]
Measure = Literal["call", "first call", "peak memory"]
BEST_PEER = "the best peer"


class NotOffered(Exception):
    """The library has no function for this job; a contestant that raises it is left out with these words."""


@dataclass(frozen=True)
class Bar:
    """A limit to reach: the time of `contestant` divided by that of `peer` is at most `limit`.

    The peer `BEST_PEER` is the fastest library of the run.
    """

    peer: str
    limit: float
    contestant: str = FUNC
    measure: Measure = "call"

    def __str__(self) -> str:
        measure = "" if self.measure == "call" else f", {self.measure}"
        return f"{self.contestant} ≤ {self.limit:.3g} of {self.peer}{measure}"


@dataclass(frozen=True)
class Workload:
    """One job, for every contestant.

    An entry receives the contestant's library, prepares the data, and returns a call without arguments. The call does
    the job and returns its result: arrays in tuples, lists or dicts, equal for all contestants. `slow`
    names the contestants that are left out unless asked for. With `times_itself`, a call returns seconds.
    """

    name: str
    title: str
    entries: Mapping[str, Callable[[Any], Call]]
    bars: tuple[Bar, ...] = ()
    slow: frozenset[str] = frozenset()
    times_itself: bool = False


@dataclass
class Measurement:
    """One contestant on one workload: seconds per call in each round, or the reason that there are none.

    `peak` is the memory that a call adds to the process, in bytes.
    """

    contestant: str
    rounds: list[float] = field(default_factory=list)
    first_call: float | None = None
    left_out: str = ""
    broken: bool = False
    peak: int | None = None


@dataclass(frozen=True)
class Result:
    """A workload and its measurements, in the order of the contestants."""

    workload: Workload
    measurements: tuple[Measurement, ...]

    def of(self, contestant: str) -> Measurement | None:
        """The measurement of a contestant, if it was timed."""
        for measurement in self.measurements:
            if measurement.contestant == contestant and measurement.rounds:
                return measurement
        return None
