"""One case of a campaign: its choices, what it counts, and how a failing case is made small."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from func.interpreters.program.translations import TRANSLATIONS

CASE_LIMIT = 120
"""Seconds that one case may take on a machine that does nothing else."""


def case_limit() -> float:
    """Seconds that one case may take now; the runner of a campaign decides what follows."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0
    return CASE_LIMIT * max(1.0, waiting)


SHRINK_TIME = 20.0
"""Seconds for making a failing case small."""


class Choices(random.Random):
    """Random numbers that are recorded; those of an earlier run come first, and zeros follow where these end.

    Every method of `random.Random` draws by `random` and `getrandbits`, which are replaced here. A zero leads to the
    first of several possibilities, so that a case of zeros is a small one.
    """

    def __init__(self, key: str, replayed: Sequence[int] | None = None) -> None:
        super().__init__(key)
        self.drawn: list[int] = []
        self._replayed = replayed

    def _next(self, fresh: Callable[[], int]) -> int:
        if self._replayed is None:
            number = fresh()
        else:
            place = len(self.drawn)
            number = self._replayed[place] if place < len(self._replayed) else 0
        self.drawn.append(number)
        return number

    def random(self) -> float:
        return (self._next(lambda: super(Choices, self).getrandbits(53)) & (1 << 53) - 1) / (1 << 53)

    def getrandbits(self, k: int, /) -> int:
        return self._next(lambda: super(Choices, self).getrandbits(k)) & ((1 << k) - 1)


@dataclass
class Tally:
    """The counts of the cases of a campaign."""

    cases: int = 0
    checks: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    text: str = ""

    def show(self, text: str) -> None:
        """The program of the present case, for the report."""
        self.text = text

    def checked(self, count: int = 1) -> None:
        """Count this number of comparisons."""
        self.checks += count

    def refused(self, error: BaseException) -> None:
        """Count a refusal by name."""
        self.refusals[type(error).__name__] += 1


Case = Callable[[random.Random, Tally], None]


@dataclass
class Difference:
    """A failing case."""

    campaign: str
    key: str
    error: str
    text: str
    place: str
    drawn: tuple[int, ...] = ()

    def report(self) -> str:
        """The program and the fault."""
        return f"--- {self.campaign}, case {self.key}\n{self.text}\n{self.error}\n"


def campaigns() -> list[str]:
    """The names of the campaigns: the modules of this folder that have a `case`."""
    folder = Path(__file__).parent
    names = [info.name for info in pkgutil.iter_modules([str(folder)])]
    return [name for name in names if re.search(r"^def case\(", (folder / f"{name}.py").read_text(), re.MULTILINE)]


def why_unavailable(name: str) -> str | None:
    """The reason why a campaign cannot run here, from its `unavailable()` if it has one."""
    unavailable = getattr(campaign(name), "unavailable", None)
    return None if unavailable is None else unavailable()


def campaign(name: str) -> Any:
    """The module of a campaign."""
    return importlib.import_module(f"tools.fuzz.{name}")


def _place(error: BaseException) -> str:
    """Where an error comes from: its class and its innermost frames; equal for the same difference of many programs."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    words = "".join(f"{Path(frame.filename).name}:{frame.lineno};" for frame in frames)
    message = re.sub(r"[-+]?\d[\d.e+-]*", "0", str(error).split("\n")[0])[:60]
    return hashlib.sha256(f"{type(error).__name__}{words}{message}".encode()).hexdigest()[:12]


def attempt(name: str, run: Case, key: str, tally: Tally, replayed: Sequence[int] | None = None) -> Difference | None:
    """Run one case; the difference, if there is one."""
    choices = Choices(key, replayed)
    tally.text = ""
    TRANSLATIONS.reports.clear()
    try:
        run(choices, tally)
        if TRANSLATIONS.reports:  # a fault that the case took for a refusal
            raise TRANSLATIONS.reports[0]
    except Exception as error:
        where = traceback.format_exc(limit=-4)
        return Difference(name, key, where, tally.text, _place(error), tuple(choices.drawn))
    return None


def shrunk(name: str, run: Case, found: Difference, limit: float = SHRINK_TIME) -> Difference:
    """The difference by a smaller case: fewer choices, and smaller ones, if it comes from the same place."""
    best: Sequence[int] = found.drawn
    end = time.monotonic() + limit

    def smaller(choices: Sequence[int]) -> Iterator[list[int]]:
        size = max(1, len(choices) // 2)
        while size:
            for start in range(0, len(choices), size):
                yield [*choices[:start], *choices[start + size :]]
            for start in range(0, len(choices), size):
                if any(choices[start : start + size]):
                    yield [*choices[:start], *[0] * len(choices[start : start + size]), *choices[start + size :]]
            size //= 2

    progress = True
    while progress:
        progress = False
        for candidate in smaller(best):
            if time.monotonic() > end:
                return found
            other = attempt(name, run, found.key, Tally(), candidate)
            if other is not None and other.place == found.place:
                found, best, progress = other, candidate, True
                break
    return found


def run_campaign(
    name: str,
    seed: int,
    seconds: float,
    *,
    first: int = 0,
    most: int | None = None,
    began: Callable[[int], None],
    found: Callable[[Difference], None],
) -> Tally:
    """Cases from the number `first` on, until the time is over.

    `began` hears the number of each, `found` the first difference of every place, and the same made small.
    """
    run: Case = campaign(name).case
    tally, places, end = Tally(), set[str](), time.monotonic() + seconds
    number = first
    while time.monotonic() < end and (most is None or number - first < most):
        began(number)
        difference = attempt(name, run, f"{seed}:{name}:{number}", tally)
        tally.cases += 1
        if difference is not None and difference.place not in places:
            places.add(difference.place)
            found(difference)  # making it small may end the process
            found(shrunk(name, run, difference))
        number += 1
    return tally
