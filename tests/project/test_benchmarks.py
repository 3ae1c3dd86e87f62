"""The benchmarks run, compare and report; no peer is needed, and nothing is timed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from benchmarks import apart, ranks
from benchmarks.contestants import BY_HAND, FUNC, FUNC_JIT, HIPS, JAX_JIT, TORCH
from benchmarks.names import matches
from benchmarks.report import bar_ratio, bar_rows, check_table, workload_table
from benchmarks.runner import run
from benchmarks.timing import Effort, TooSlow, time_limit
from benchmarks.trees import convert, leaves, rebuild
from benchmarks.workload import BEST_PEER, Bar, Measurement, NotOffered, Result, Workload
from benchmarks.workloads import WORKLOADS

OURS = {FUNC: func, FUNC_JIT: func, BY_HAND: np}
SMALL = (
    "small gradient",
    "rosenbrock 10",
    "functional step",
    "chain 10",
    "black-scholes 1k",
    "gelu small",
    "softmax small",
    "layer norm small",
    "logistic 1k",
    "transformer small",
    "rnn scan",
    "nested 1",
    "nested 3",
    "gmm small",
    "bundle 1k",
)


def test_names_differ() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", SMALL)
def test_ours_agree_with_the_derivative_by_hand(name: str) -> None:
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    result = run(workload, OURS, {}, Effort(rounds=0), only=tuple(OURS))
    assert [measurement.left_out for measurement in result.measurements] == [""] * len(result.measurements)
    assert "agrees" in check_table(result).text()


def raising(error: Exception) -> Callable[[Any], Any]:
    """An entry whose call fails."""

    def call() -> Any:
        raise error

    return lambda _: call


def test_a_contestant_that_fails_is_left_out() -> None:
    entries = {
        FUNC: lambda _: lambda: np.ones(3),
        FUNC_JIT: lambda _: lambda: np.zeros(3),
        BY_HAND: lambda _: lambda: np.ones(3),
        HIPS: raising(ValueError("no\nsuch thing")),
        TORCH: raising(NotOffered("has none")),
        JAX_JIT: lambda _: lambda: time.sleep(60),
    }
    workload = Workload("w", "work", entries)
    libraries = dict.fromkeys(entries)
    result = run(workload, libraries, {}, Effort(rounds=1, block=1e-6, first_limit=1.0))
    words = {measurement.contestant: measurement.left_out for measurement in result.measurements}
    broken = {measurement.contestant for measurement in result.measurements if measurement.broken}
    assert words[FUNC] == words[BY_HAND] == ""
    assert words[FUNC_JIT].startswith("differs from NumPy by hand")
    assert words[HIPS] == "failed (ValueError: no)"
    assert words[TORCH] == "has none"
    assert words[JAX_JIT] == "the first call takes more than 1 s"
    assert broken == {FUNC_JIT, HIPS}
    assert result.of(FUNC) is not None and result.of(HIPS) is None


def test_a_contestant_under_which_the_process_ends_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def child(folder: Path, settings: apart.Settings) -> tuple[str, str]:
        if FUNC in settings.only:
            return FUNC, "the process ended with status -11"
        (folder / apart.RESULTS).write_text(json.dumps([asdict(Measurement(name)) for name in settings.only]))
        return apart.TIMING, ""

    monkeypatch.setattr(apart, "_child", child)
    settings = apart.Settings("w", Effort(rounds=0), (BY_HAND, FUNC, HIPS), slow=False, threads=1)
    result = apart.run_apart(Workload("w", "work", {}), settings)
    assert [(row.contestant, row.left_out, row.broken) for row in result.measurements] == [
        (FUNC, "the process ended with status -11", True),
        (HIPS, "", False),
        (BY_HAND, "", False),
    ]


def test_a_workload_in_its_own_process() -> None:
    workload = next(workload for workload in WORKLOADS if workload.name == "small gradient")
    settings = apart.Settings(workload.name, Effort(rounds=1, block=1e-6), (FUNC, BY_HAND), slow=False, threads=1)
    result = apart.run_apart(workload, settings)
    assert all(result.of(name) for name in (FUNC, BY_HAND))


def test_a_second_call_must_repeat_the_first() -> None:
    numbers, kept = iter(range(100)), np.zeros(1)

    def overwriting() -> Any:
        kept[0] = next(numbers)
        return kept

    def counting() -> Any:
        return np.full(1, float(next(numbers)))

    for call, words in ((overwriting, "wrote into"), (counting, "differs")):
        workload = Workload("w", "work", {FUNC: partial(lambda call, _: call, call)})
        (measurement,) = run(workload, {FUNC: None}, {}, Effort(rounds=0)).measurements
        assert measurement.broken and words in measurement.left_out


def test_a_library_cannot_swallow_the_limit() -> None:
    def swallowing() -> None:
        try:
            time.sleep(60)
        except TooSlow as error:
            raise RuntimeError("the compiler failed") from error

    with pytest.raises(TooSlow, match="it takes more"), time_limit(0.05, "it"):
        swallowing()
    with time_limit(60, "nothing"):
        pass


def measured(bars: tuple[Bar, ...]) -> Result:
    """Ours next to two peers and the work by hand."""
    times = {FUNC_JIT: 2.0, JAX_JIT: 4.0, HIPS: 8.0, BY_HAND: 1.0}
    rows = [
        Measurement(name, rounds=[value, value], first_call=value, peak=int(value)) for name, value in times.items()
    ]
    return Result(Workload("w", "work", {name: raising(ValueError()) for name in times}, bars), tuple(rows))


def test_bars() -> None:
    bars = (
        Bar(BEST_PEER, 1.0, FUNC_JIT),
        Bar(BY_HAND, 1.0, FUNC_JIT),
        Bar(HIPS, 0.2, FUNC_JIT, "first call"),
        Bar(JAX_JIT, 1.0, FUNC_JIT, "peak memory"),
        Bar(TORCH, 1.0, FUNC_JIT),
    )
    result = measured(bars)
    assert [bar_ratio(result, bar) for bar in bars] == [0.5, 2.0, 0.25, 0.5, None]
    rows = bar_rows(result)
    assert rows[0] == ("func.jit ≤ 1 of the best peer (jax.jit)", "0.50", "reached")
    assert [verdict for *_, verdict in rows] == ["reached", "MISSED", "MISSED", "reached", "not measured"]


def test_the_terminal_has_the_bars_of_a_workload() -> None:
    text = workload_table(measured((Bar(JAX_JIT, 0.1, FUNC_JIT),))).text()
    assert "func.jit ≤ 0.1 of jax.jit: 0.50, MISSED" in text and "2.00 s" in text


def test_patterns_and_trees() -> None:
    assert matches("gaussian process 200", ["process-2"]) and matches("any", []) and not matches("any", ["other"])
    tree = {"b": (1, [2]), "a": 3}
    assert leaves(tree) == [1, 2, 3]
    assert convert(lambda leaf: -leaf, tree) == rebuild(tree, iter([-1, -2, -3])) == {"b": (-1, [-2]), "a": -3}


MACHINE = ranks.Machine(
    latency=2.0, byte=0.25, call=1.0, round=3.0, summed_byte=0.5, python=7.0, check=5.0, looks=8.0, switch=0.5
)


def test_simulated_ranks_take_what_the_formulas_say() -> None:
    def along(rank: int, size: int) -> Any:
        yield "work", 10.0 * (rank + 1)
        yield from ranks.exchange(rank, [(i, i + 1) for i in range(size - 1)], 8, MACHINE)

    def total(rank: int, size: int) -> Any:
        yield from ranks.reduction(rank, size, 8, MACHINE)

    def large(rank: int, size: int) -> Any:
        yield from ranks.reduction(rank, size, 80_000, MACHINE)

    assert ranks.seconds(1, along, MACHINE) == 10.0
    assert ranks.seconds(4, along, MACHINE) == 41.0  # the last rank works longest, and its message has come
    assert ranks.seconds(2, ranks.heat(5.0, 8, 3, MACHINE), MACHINE) == 3 * (5 + 2 * (1 + 2 + 2))
    for size in (1, 2, 4, 8, 64):
        rounds = math.log2(size)
        assert ranks.seconds(size, total, MACHINE) == rounds * (3 + 4)
        assert ranks.seconds(size, large, MACHINE) == 2 * (3 * rounds + 40_000 * (size - 1) / size)
    assert ranks.seconds(5, total, MACHINE) == 3 * (3 + 4)  # there, two rounds while others are ahead, and back
    assert ranks.seconds(64, ranks.gradients(5.0, 2, MACHINE), MACHINE) >= 2 * (5 + 12 * 7)


def test_simulated_ranks_share_cores() -> None:
    work = lambda rank, size: iter([("work", 10.0)] * 3)  # noqa: E731
    one = MACHINE._replace(cores=1)
    assert ranks.seconds(3, work, one) == 90.0 + 2 * one.switch

    def there_and_back(rank: int, size: int) -> Any:
        yield from ranks.exchange(rank, [(0, 1)], 0, one)
        yield from ranks.exchange(rank, [(1, 0)], 0, one)

    apart = ranks.seconds(2, there_and_back, MACHINE)
    assert ranks.seconds(2, there_and_back, one) > apart + one.looks
    with pytest.raises(RuntimeError, match=r"nobody sends: \[\(0, 1\)\]"):
        ranks.seconds(2, lambda rank, size: iter([("receive", 0, 1.0)] * rank), MACHINE)
