"""Rows of the benchmark in two working trees of func, in turns: the cost of a change.

    git worktree add ../before COMMIT
    python -m benchmarks.two_trees ../before                      # all rows but huge ones, one thread
    python -m benchmarks.two_trees ../before gelu chain --rounds 21 --threads 2

Each tree has a process for each workload, which loads the benchmark and func of that tree. The two measure a block of
calls one after the other, in an order that alternates. Ratios are this tree's time by the other's. One is that of the
fastest blocks, which a busy machine disturbs least. Another is the median over the rounds, and a third that of first
calls with caches on disk off.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
CONTESTANTS = ("func", "func.jit")
HUGE = ("black-scholes 10M", "mlp memory")


class Tree:
    """A process that measures one workload with the code of a tree."""

    def __init__(self, root: Path, workload: str, threads: int) -> None:
        environment = os.environ | {"PYTHONPATH": str(root), "PYTHONSAFEPATH": "1", "FUNC_CACHE_DIR": ""}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", workload, "--threads", str(threads), "-"],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = dict(zip(*[iter(self._line().split("|"))] * 2, strict=True))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def seconds(self, contestant: str) -> float:
        """Seconds a call in one block."""
        assert self.process.stdin is not None
        print(contestant, file=self.process.stdin, flush=True)
        return float(self._line())

    def end(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(name: str, threads: int) -> None:
    """Prepare a workload, print the seconds of first calls, then measure the contestants of each line."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from benchmarks.environment import limit_threads

    limit_threads(threads)
    import time

    from benchmarks.contestants import load_libraries
    from benchmarks.timing import calls_per_block, no_collector, seconds_per_call, warm_up
    from benchmarks.workloads import WORKLOADS

    workload = next(workload for workload in WORKLOADS if workload.name == name)
    libraries, _ = load_libraries({name for name in CONTESTANTS if name in workload.entries})
    calls, numbers, first = {}, {}, []
    for contestant, library in libraries.items():
        call = workload.entries[contestant](library)
        start = time.perf_counter()
        call()
        first += [contestant, str(time.perf_counter() - start)]
        warm_up(call, 1.0)
        calls[contestant], numbers[contestant] = call, calls_per_block(call, 0.02)
    print("|".join(first), file=out, flush=True)
    for line in sys.stdin:
        contestant = line.strip()
        with no_collector():
            print(seconds_per_call(calls[contestant], numbers[contestant]), file=out, flush=True)


def compare(workload: str, other: Path, rounds: int, threads: int) -> list[tuple[str, float, float, float]]:
    """For each contestant its name, the ratios of the fastest and the median block, and the ratio of first calls."""
    here, there = Tree(HERE, workload, threads), Tree(other, workload, threads)
    rows = []
    try:
        for contestant, first in here.first.items():
            times: dict[Tree, list[float]] = {here: [], there: []}
            for number in range(rounds):
                for tree in (here, there) if number % 2 else (there, here):
                    times[tree].append(tree.seconds(contestant))
            middle = statistics.median([x / y for x, y in zip(times[here], times[there], strict=True)])
            fastest = min(times[here]) / min(times[there])
            rows.append((contestant, fastest, middle, float(first) / float(there.first[contestant])))
    finally:
        here.end()
        there.end()
    return rows


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Rows of the benchmark in two working trees, in turns.")
    parser.add_argument("other", help="the root of the other tree")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads)
        return 0
    from benchmarks.names import matches
    from benchmarks.workloads import WORKLOADS

    ratios = []
    for workload in WORKLOADS:
        if workload.name in HUGE or workload.times_itself or not matches(workload.name, options.patterns):
            continue
        for contestant, fastest, middle, first in compare(
            workload.name, Path(options.other).resolve(), options.rounds, options.threads
        ):
            ratios.append(fastest)
            print(
                f"{workload.name:22}{contestant:10}{fastest:6.3f}  median {middle:6.3f}  first {first:5.2f}", flush=True
            )
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, largest {max(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
