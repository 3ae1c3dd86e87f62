"""Choices that make a program, all of them in order, or a seeded sample; and the parts of a machine."""

from __future__ import annotations

import importlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class OutOfScope(Exception):
    """The choices make no program of the part."""


class Choices:
    """Picks of one program: those of `path` first, then the first option or, with `numbers`, a random one."""

    def __init__(self, path: Sequence[int] = (), numbers: random.Random | None = None) -> None:
        self.taken: list[tuple[int, int]] = []
        """The index and the number of options of each pick so far."""
        self._path = path
        self._numbers = numbers

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        if not options:
            raise OutOfScope
        place, count = len(self.taken), len(options)
        if place < len(self._path):
            index = self._path[place]
        else:
            index = self._numbers.randrange(count) if self._numbers is not None else 0
        self.taken.append((index, count))
        return options[index]

    def resume(self, taken: Sequence[tuple[int, int]]) -> bool:
        """Go on after the picks of an earlier program, if the path begins with these."""
        if self.taken or [index for index, _ in taken] != list(self._path[: len(taken)]):
            return False
        self.taken = list(taken)
        return True

    @property
    def path(self) -> str:
        """The indices as the command line takes them."""
        return ".".join(str(index) for index, _ in self.taken)


@dataclass(frozen=True)
class Part:
    """A family of programs of a machine, and how one of them is compared with the truth."""

    name: str
    build: Callable[[Choices], Any]
    check: Callable[[Any], str | None]
    quick: int | None = None
    """How many of its programs the tests run; None: as many as its machine says."""


@dataclass(frozen=True)
class Difference:
    """A program whose results differ from the truth."""

    part: str
    path: str
    program: str
    text: str


@dataclass
class Outcome:
    """The record of one run of a part."""

    part: str
    programs: int = 0
    is_complete: bool = False
    stopped_at: str = ""
    """The path of the first program that a complete run had no time for."""
    differences: list[Difference] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each kind of difference came; the first line of its text is the kind."""


def everything(build: Callable[[Choices], T], start: str = "") -> Iterator[tuple[str, T]]:
    """All programs of a part with their paths, in the order of their choices, from the path `start` on."""
    path = indices(start)
    while True:
        choices = Choices(path)
        try:
            program = build(choices)
        except OutOfScope:
            pass
        else:
            yield choices.path, program
        taken = choices.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        path = [index for index, _ in taken[:-1]] + [taken[-1][0] + 1]


def indices(path: str) -> list[int]:
    """The picks of a path of the command line."""
    return [int(index) for index in path.split(".") if index]


def sampled(build: Callable[[Choices], T], seed: object) -> Iterator[tuple[str, T]]:
    """Random programs of a part with their paths, without end; the same ones for the same seed."""
    numbers = random.Random(str(seed))
    while True:
        choices = Choices(numbers=numbers)
        try:
            program = build(choices)
        except OutOfScope:
            continue
        yield choices.path, program


def replayed(part: Part, path: str) -> Any:
    """The program of a path."""
    return part.build(Choices(indices(path)))


def compare(part: Part, path: str, program: Any) -> Difference | None:
    """The difference of one program, if there is one; an exception of `check` is one."""
    try:
        text = part.check(program)
    except Exception as error:
        text = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-6)}"
    return None if text is None else Difference(part.name, path, str(program), text)


def run_part(
    part: Part,
    *,
    seed: object = 0,
    limit: float | None = None,
    most: int | None = None,
    complete: bool = False,
    start: str = "",
    worker: tuple[int, int] = (0, 1),
    kept: int = 3,
) -> Outcome:
    """Run a part: all programs from a path on, or a sample, until time or number are spent.

    Worker (i, n) takes each n-th program. It stores at most `kept` differences of a kind, and counts all.
    """
    outcome, began = Outcome(part.name), time.monotonic()
    index, count = worker
    programs = everything(part.build, start) if complete else sampled(part.build, f"{seed}:{part.name}:{index}")
    for number, (path, program) in enumerate(programs):
        if complete and number % count != index:
            continue
        if outcome.programs == most or (limit is not None and time.monotonic() - began > limit):
            outcome.stopped_at = path if complete else ""
            return outcome
        outcome.programs += 1
        difference = compare(part, path, program)
        if difference is not None:
            kind = difference.text.partition("\n")[0]
            outcome.kinds[kind] += 1
            if outcome.kinds[kind] <= kept:
                outcome.differences.append(difference)
    outcome.is_complete = complete
    return outcome


def machines() -> list[str]:
    """The names of the machines: the modules of this folder that define PARTS."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "\nPARTS" in path.read_text())


def parts(machine: str) -> tuple[Part, ...]:
    """The parts of a machine."""
    found: tuple[Part, ...] = importlib.import_module(f"tools.enumerate.{machine}").PARTS
    return found


def quick(machine: str) -> int:
    """How many programs of each part of a machine the tests run."""
    found: int = importlib.import_module(f"tools.enumerate.{machine}").QUICK
    return found


def run_named(machine: str, name: str, options: dict[str, Any]) -> Outcome:
    """`run_part` for a part by its name, in another process."""
    part = next(part for part in parts(machine) if part.name == name)
    return run_part(part, **options)
