"""First calls of a process, and imports: every measurement is a separate process.

`python -m benchmarks.first_calls [NAMES] [--rounds N] [--threads N] [--json FILE]` prints a row for each workload with
compiled contestants. A row has the time of func.jit's first call with its program on disk (warm) and with an empty
folder (cold). It also has that of jax.jit. Libraries are imported and the data is made before the clock starts; the
function is traced, compiled or found, and called after it. Rounds are interleaved, and the least counts. Rows for
imports follow.

A process with the program on disk must not import llvmlite; the row reports it if it does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants import FUNC_JIT, JAX_JIT
from benchmarks.environment import limit_threads

WARM_BAR = 0.040
"""Seconds of a warm first call."""
COLD_BAR = 0.5
"""A cold first call divided by jax.jit's."""
TINY, TINY_BAR = ("small gradient",), 1.0
"""Workloads of some ten operations, where jax.jit has little to compile."""
IMPORT_BAR = 1.2
IMPORTS = ("import numpy, optree", "import func", "from func import grad")
LIMIT = 120.0
"""Seconds after which a process is left out."""


@dataclass(frozen=True)
class FirstCall:
    """One measured process: seconds of wall-clock and processor time, and whether it imported llvmlite."""

    wall: float
    processor: float
    imported: bool


def child(contestant: str, name: str) -> None:
    """Measure one first call here, and print it."""
    import importlib

    library = importlib.import_module("func" if contestant == FUNC_JIT else "jax")
    if contestant == JAX_JIT:
        library.config.update("jax_enable_x64", True)
        library.block_until_ready(library.numpy.zeros(3) + 1)  # starts the backend
    workload = _workload(name)
    call = workload.entries[contestant](library)
    wall, processor = time.perf_counter(), time.process_time()
    call()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps([wall, processor, "llvmlite" in sys.modules]), flush=True)


def _workload(name: str) -> object:
    from benchmarks.workloads import WORKLOADS

    return next(workload for workload in WORKLOADS if workload.name == name)


def measured(contestant: str, name: str, folder: str) -> FirstCall | None:
    """One process; None if it fails or takes too long."""
    command = [sys.executable, "-m", "benchmarks.first_calls", "--child", contestant, name]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, env=environment | {"FUNC_CACHE_DIR": folder}, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode or not done.stdout.strip():
        print(done.stderr, file=sys.stderr)
        return None
    return FirstCall(*json.loads(done.stdout.strip().splitlines()[-1]))


def least(calls: Sequence[FirstCall | None]) -> FirstCall | None:
    """The process with the least time."""
    return min([call for call in calls if call is not None], key=lambda call: call.wall, default=None)


def first_calls(name: str, rounds: int, contestants: Sequence[str]) -> Mapping[str, FirstCall | None]:
    """The least first calls of a workload by the words warm, cold and jax.jit."""
    found: dict[str, list[FirstCall | None]] = {"warm": [], "cold": [], JAX_JIT: []}
    with tempfile.TemporaryDirectory() as folder:
        measured(FUNC_JIT, name, folder)
        measured(FUNC_JIT, name, folder)  # it finishes the work of the background
        for _ in range(rounds):
            found["warm"].append(measured(FUNC_JIT, name, folder))
            with tempfile.TemporaryDirectory() as empty:
                found["cold"].append(measured(FUNC_JIT, name, empty))
            if JAX_JIT in contestants:
                found[JAX_JIT].append(measured(JAX_JIT, name, ""))
    return {word: least(calls) for word, calls in found.items()}


def imports(rounds: int) -> dict[str, float]:
    """The least seconds of each import in a fresh interpreter, interleaved."""
    from benchmarks.workloads.import_time import importing

    calls = {statement: importing(statement)(None) for statement in IMPORTS}
    times: dict[str, list[float]] = {statement: [] for statement in IMPORTS}
    for _ in range(rounds):
        for statement, call in calls.items():
            times[statement].append(call())
    return {statement: min(values) for statement, values in times.items()}


def _milliseconds(call: FirstCall | None) -> str:
    return "–" if call is None else f"{1e3 * call.wall:.0f}"


def _row(name: str, calls: Mapping[str, FirstCall | None]) -> str:
    warm, cold, jax = calls["warm"], calls["cold"], calls[JAX_JIT]
    ratio, verdict = "–", []
    if warm is not None:
        verdict.append("warm " + ("reached" if warm.wall <= WARM_BAR else "MISSED"))
        if warm.imported:
            verdict.append("imports llvmlite")
    if cold is not None and jax is not None:
        bar = TINY_BAR if name in TINY else COLD_BAR
        ratio = f"{cold.wall / jax.wall:.2f}"
        verdict.append("cold " + ("reached" if cold.wall <= bar * jax.wall else "MISSED"))
    numbers = " | ".join(map(_milliseconds, (warm, cold, jax)))
    return f"| {name} | {numbers} | {ratio} | {', '.join(verdict)} |"


def names_of(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The workloads of func.jit with one of these texts in their names, and the compiled contestants of each."""
    from benchmarks.workloads import WORKLOADS

    return {
        workload.name: tuple([name for name in (FUNC_JIT, JAX_JIT) if name in workload.entries])
        for workload in WORKLOADS
        if FUNC_JIT in workload.entries
        and FUNC_JIT not in workload.slow
        and (not words or any([word in workload.name for word in words]))
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the seconds to this file, for python -m benchmarks.figures")
    parser.add_argument("--no-imports", action="store_true")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    limit_threads(options.threads)
    print("| workload | warm, ms | cold, ms | jax.jit, ms | cold / jax.jit | bars |\n|---|---:|---:|---:|---:|---|")
    data: dict[str, dict[str, Any]] = {"first calls": {}, "imports": {}}
    for name, contestants in names_of(options.names).items():
        calls = first_calls(name, options.rounds, contestants)
        data["first calls"][name] = {word: call.wall for word, call in calls.items() if call is not None}
        print(_row(name, calls), flush=True)
    if not options.no_imports:
        data["imports"] = found = imports(4 * options.rounds)
        base = found[IMPORTS[0]]
        rows = ["", "| import | ms | over numpy and optree |", "|---|---:|---:|"]
        rows += [f"| `{name}` | {1e3 * value:.0f} | {value / base:.2f} |" for name, value in found.items()]
        print("\n".join(rows))
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
