"""What messages cost: `mpiexec -n N python -m benchmarks.messages`.

Measures, through func, the latency and the bandwidth of an exchange between neighbours, a check, a psum, and a step of
the heat equation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import func
from examples.processes import heat_equation
from func.collectives import ppermute, psum

COMM = MPI.COMM_WORLD
RING = [(i, (i + 1) % COMM.size) for i in range(COMM.size)]


def least(call: Callable[[], Any], repeat: int = 15) -> float:
    """The least time of a call, of the slowest rank, in seconds."""
    times = []
    for _ in range(repeat):
        COMM.Barrier()
        begin = time.perf_counter()
        call()
        times.append(COMM.allreduce(time.perf_counter() - begin, MPI.MAX))
    return min(times)


def per_call(collective: Callable[[Any], Any], size: int, check: bool, count: int = 50) -> float:
    """The time of one collective on so many numbers, in seconds."""

    def many(x: Any) -> Any:
        for _ in range(count):
            collective(x)
        return x

    program = func.spmd(many, COMM, check=check)
    return least(lambda: program(np.ones(size))) / count


def heat(columns: int, rows: int, steps: int = 20) -> float:
    """The time of one step on so many rows for each rank, in seconds."""
    step = func.jit(lambda u: heat_equation.diffused(u, steps))
    program = func.spmd(step, COMM, check=False)
    u = np.ones((rows, columns))
    program(u)
    return least(lambda: program(u)) / steps


def main() -> None:
    exchanges = {n: per_call(lambda x: ppermute(x, "ranks", RING), n, False) for n in (1, 1_000, 100_000, 1_000_000)}
    checked = per_call(lambda x: ppermute(x, "ranks", RING), 1, True)
    sums = {n: per_call(lambda x: psum(x, "ranks"), n, False) for n in (1, 1_000, 100_000)}
    steps = {columns: heat(columns, 64) for columns in (64, 512, 4096)}
    if COMM.rank == 0:
        latency = exchanges[1]
        bandwidth = 8 * (1_000_000 - 1) / (exchanges[1_000_000] - latency)
        print(f"{COMM.size} ranks: exchange {1e6 * latency:.1f} µs + bytes / {bandwidth / 1e9:.2f} GB/s", end="; ")
        print(f"checked {1e6 * checked:.1f} µs; psum {', '.join(f'{n}: {1e6 * t:.1f} µs' for n, t in sums.items())}")
        for n, t in exchanges.items():
            print(f"  exchange of {n} numbers: {1e6 * t:.1f} µs, model {1e6 * (latency + 8 * n / bandwidth):.1f} µs")
        for columns, t in steps.items():
            print(f"  heat, 64 × {columns} numbers on each rank: {1e6 * t:.1f} µs a step")


if __name__ == "__main__":
    main()
