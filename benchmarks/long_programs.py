"""The growth of the first call of a long program with its length.

`python -m benchmarks.long_programs [--longest N]` measures straight code without a pattern and an unrolled loop of the
differential equation's steps. It prints the processor time of tracing, of the passes with the search for loops, and of
the rest (rules, printing, LLVM). Times are microseconds for each traced equation, with the slope of the logarithms: 1
is linear. Nothing comes from the cache.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["FUNC_CACHE_DIR"] = ""

import numpy as np

import func
from benchmarks.libraries.compiling import Func
from benchmarks.workloads import lotka_volterra
from func.interpreters.compile.execution import Prepared
from func.interpreters.compile.native.executable import with_loops

Job = tuple[Callable[..., Any], tuple[Any, ...]]
LENGTHS = (1_000, 5_000, 20_000, 100_000)
SLOPE_BAR = 1.15


def irregular(equations: int) -> Job:
    """The gradient of a program of random operations on random earlier values."""
    steps = max(equations // 4, 1)  # the backward pass makes the others
    rng = np.random.default_rng(0)
    kinds, distances = rng.integers(0, 6, steps), rng.integers(1, 30, steps)

    def loss(x: Any) -> Any:
        values = [x]
        for kind, distance in zip(kinds.tolist(), distances.tolist(), strict=True):
            a, b = values[-1], values[max(0, len(values) - distance)]
            one = (np.sin, np.cos, np.tanh)[kind](a) if kind < 3 else None
            values.append(one if one is not None else a * b if kind == 3 else a + b * 0.5 if kind == 4 else a - b)
        return np.sum(values[-1])

    return func.grad(loss), (np.linspace(0.1, 1.0, 8),)


def unrolled(equations: int) -> Job:
    """The gradient through Runge-Kutta steps in a Python loop."""
    steps = max(equations // 218, 1)
    observed = np.random.default_rng(0).normal(size=(steps, 2))
    job = lotka_volterra.make_loop(Func(func))
    return job, (np.array([1.0, 0.1, 0.1, 1.0]), np.array([10.0, 5.0]), observed)


def measured(job: Job) -> tuple[int, dict[str, float]]:
    """The number of traced equations, and the seconds of the parts of a first call."""
    function, args = job
    jitted = func.jit(function)
    times: dict[str, float] = {}
    before = time.process_time()
    compiled = jitted.cached_call(args, {})[3].compiled
    times["trace"] = time.process_time() - before
    before = time.process_time()
    with_loops(Prepared(compiled.program, np))
    times["passes"] = time.process_time() - before
    before = time.process_time()
    jitted(*args)
    times["rest"] = time.process_time() - before - times["passes"]
    return len(compiled.program.equations), times


def slope(sizes: list[int], seconds: list[float]) -> float:
    """The exponent of the power law through the points, by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(max(value, 1e-6)) for value in seconds]
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    options = parser.parse_args()
    print("| program | equations | trace, µs each | passes | rest | total, s |\n|---|---:|---:|---:|---:|---:|")
    for name, make in (("irregular", irregular), ("unrolled", unrolled)):
        measured(make(300))  # imports the modules
        sizes: list[int] = []
        parts: dict[str, list[float]] = {}
        for length in LENGTHS:
            if length <= options.longest:
                size, times = measured(make(length))
                sizes.append(size)
                for part, seconds in {**times, "total": sum(times.values())}.items():
                    parts.setdefault(part, []).append(seconds)
                each = " | ".join([f"{1e6 * seconds / size:.0f}" for seconds in times.values()])
                print(f"| {name} | {size} | {each} | {sum(times.values()):.2f} |", flush=True)
        slopes = {part: slope(sizes[1:], values[1:]) for part, values in parts.items()}
        words = ", ".join([f"{part} {value:.2f}" for part, value in slopes.items()])
        verdict = "reached" if slopes["total"] <= SLOPE_BAR else "MISSED"
        print(f"| {name}: slope from the second row on | {words} | | | | at most {SLOPE_BAR}: {verdict} |", flush=True)


if __name__ == "__main__":
    main()
