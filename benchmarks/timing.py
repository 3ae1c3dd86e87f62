"""Interleaved timing: every contestant runs once per round, in a new random order each round."""

import gc
import itertools
import random
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.workload import Call


@dataclass(frozen=True)
class Effort:
    """How long to measure: the number of rounds, the least seconds of a contestant per round, and those of the warm-up.

    A contestant whose first call takes longer than `first_limit` seconds, or a later one longer than `call_limit`, is
    left out.
    """

    rounds: int = 15
    block: float = 0.02
    warm_up: float = 0.0
    first_limit: float = 60.0
    call_limit: float = 15.0


class TooSlow(Exception):
    """A call took longer than its limit."""


@contextmanager
def time_limit(seconds: float, words: str) -> Iterator[None]:
    """Raise TooSlow in the block after this many seconds; code of a library that never returns to Python goes on."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    message = f"{words} takes more than {seconds:g} s"
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise TooSlow(message)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Exception:
        # A library may have caught the interruption and raised its own error, or put its words into this one.
        if interrupted.is_set():
            raise TooSlow(message) from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    if interrupted.is_set():
        raise TooSlow(message)


@contextmanager
def no_collector() -> Iterator[None]:
    """Collect garbage, then keep the collector off for the duration of the block."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def seconds_per_call(call: Call, number: int) -> float:
    """The mean over `number` calls."""
    repeats = itertools.repeat(None, number)
    start = time.perf_counter()
    for _ in repeats:
        call()
    return (time.perf_counter() - start) / number


def warm_up(call: Call, seconds: float) -> None:
    """Call for this time, in which a library compiles while it runs."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()


def calls_per_block(call: Call, block: float) -> int:
    """How many calls fill a block of this many seconds, found by doubling."""
    number = 1
    while (elapsed := number * seconds_per_call(call, number)) < block / 2:
        number *= 2
    return max(1, round(number * block / elapsed))


def time_rounds(calls: Mapping[str, Call], effort: Effort) -> dict[str, list[float]]:
    """Seconds per call of every contestant in every round. Repeated calls warm up first."""
    if not effort.rounds:
        return {name: [] for name in calls}
    for call in calls.values():
        warm_up(call, effort.warm_up)
    with no_collector():
        numbers = {name: calls_per_block(call, effort.block) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for names in shuffled_rounds(calls, effort.rounds):
        for name in names:
            with no_collector():
                for _ in range(numbers[name] // 10):
                    calls[name]()
                times[name].append(seconds_per_call(calls[name], numbers[name]))
    return times


def ask_rounds(calls: Mapping[str, Call], effort: Effort) -> dict[str, list[float]]:
    """As `time_rounds`, for calls that return their own seconds; each runs once per round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for names in shuffled_rounds(calls, effort.rounds):
        for name in names:
            times[name].append(calls[name]())
    return times


def shuffled_rounds(calls: Mapping[str, Call], rounds: int) -> Iterator[list[str]]:
    """The names in a random order, once per round; the orders are the same in every run."""
    generator = random.Random(0)
    for _ in range(rounds):
        yield generator.sample(list(calls), len(calls))


def medians(contestants: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """The median time of each in seconds, in rounds where all take turns, after a call of each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        call()
    for _ in range(rounds):
        for name, call in contestants.items():
            times[name].append(seconds_per_call(call, 1))
    return {name: statistics.median(values) for name, values in times.items()}
