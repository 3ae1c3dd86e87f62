"""The costs of messages, and a simulation of programs: `mpiexec -n N python -m benchmarks.messages`.

Measures, through func, an exchange between neighbours, a check, a psum, a step of the heat equation and an iteration of
conjugate gradients. The parameters of the simulation (`benchmarks.ranks`) come from ranks without partners, one for
each core, and from a pair of ranks, while the others sleep. Then the work of all ranks together is measured and
simulated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

import func
from benchmarks import ranks
from benchmarks.ranks import Action, Machine
from examples.processes import conjugate_gradients, heat_equation
from func.collectives import ppermute, psum

COMM = MPI.COMM_WORLD
CORES = len(os.sched_getaffinity(0))
SIZES = (1, 1_000, 100_000, 1_000_000)
SUMS = (1, 1_000, 100_000)
COLUMNS = (64, 512, 4096)
UNKNOWNS = (1_000, 100_000)
COUNT = 50


def least(call: Callable[[], Any], comm: Any, repeat: int = 15) -> float:
    """The least time of a call, of the slowest rank, in seconds."""
    times = []
    for _ in range(repeat):
        comm.Barrier()
        begin = time.perf_counter()
        call()
        times.append(comm.allreduce(time.perf_counter() - begin, MPI.MAX))
    return min(times)


def per_call(collective: Callable[[Any], Any], size: int, check: bool, comm: Any) -> float:
    """The time of one collective on this number of numbers, in seconds."""

    def many(x: Any) -> Any:
        for _ in range(COUNT):
            collective(x)
        return x

    program = func.spmd(many, comm, check=check)
    return least(lambda: program(np.ones(size)), comm) / COUNT


def around(x: Any) -> Any:
    """Every rank sends to the next one."""
    size = func.collectives.axis_size("ranks")
    return ppermute(x, "ranks", [(i, (i + 1) % size) for i in range(size)])


def along(x: Any) -> Any:
    """The first rank sends to the second one."""
    return ppermute(x, "ranks", [(0, 1)])


def to_and_fro(x: Any) -> Any:
    """The first rank sends to the second one, which answers."""
    return ppermute(ppermute(x, "ranks", [(0, 1)]), "ranks", [(1, 0)])


def total(x: Any) -> Any:
    return psum(x, "ranks")


def heat(columns: int, comm: Any, rows: int = 64, steps: int = 20) -> float:
    """The time of one step on this number of rows for each rank, in seconds."""
    step = func.jit(lambda u: heat_equation.diffused(u, steps))
    program = func.spmd(step, comm, check=False)
    u = np.ones((rows, columns))
    program(u)
    return least(lambda: program(u), comm) / steps


def gradients(unknowns: int, comm: Any, steps: int = 20) -> float:
    """The time of one iteration of conjugate gradients with this number of unknowns for each rank, in seconds."""

    def solve(b: Any) -> Any:
        product = lambda u: conjugate_gradients.operator(0.05, u)  # noqa: E731
        return conjugate_gradients.conjugate_gradients(product, b, tolerance=0.0, most=steps)

    program = func.spmd(func.jit(solve), comm, check=False)
    b = np.random.default_rng(comm.rank).normal(size=unknowns)
    program(b)
    return least(lambda: program(b), comm) / steps


def alone() -> dict[Any, float]:
    """The costs of a rank without partners."""
    own = MPI.COMM_SELF
    found: dict[Any, float] = {("exchange", n): per_call(around, n, False, own) for n in SIZES}
    found |= {("psum", n): per_call(total, n, False, own) for n in SUMS}
    found |= {("heat", columns): heat(columns, own) for columns in COLUMNS}
    return found | {("gradients", n): gradients(n, own) for n in UNKNOWNS}


def machine(pair: Any, one: dict[Any, float]) -> Machine:
    """The parameters, from the times of two ranks."""
    send = per_call(along, 1, False, pair)
    latency = max(per_call(to_and_fro, 1, False, pair) / 2 - send, 1e-7)
    exchanges = {n: per_call(around, n, False, pair) for n in (1, 1_000_000)}
    call = max((heat(64, pair) - one["heat", 64]) / 2 - latency, 1e-7)
    byte = (exchanges[1_000_000] - exchanges[1]) / 8e6
    sums = {n: per_call(total, n, False, pair) for n in (1, 100_000)}
    a_round = max(sums[1] - one["psum", 1], 1e-7)
    summed = max(sums[100_000] - one["psum", 100_000] - 2 * a_round, 0.0) / 8e5
    check = max(per_call(around, 1, True, pair) - exchanges[1] - a_round, 0.0)
    return Machine(latency, byte, call, a_round, summed, send - call, check, CORES)


def simulated(one: dict[Any, float], parameters: Machine, size: int) -> dict[Any, float]:
    """The simulated values of all measurements."""
    ring = [(i, (i + 1) % size) for i in range(size)]

    def repeated(work: float, actions: Callable[[int], Iterator[Action]], check: bool = False) -> float:
        def program(rank: int, size: int) -> Iterator[Action]:
            for _ in range(COUNT):
                yield "work", work
                if check:
                    yield from ranks.checked(rank, size, parameters)
                yield from actions(rank)

        return ranks.seconds(size, program, parameters) / COUNT

    def sum_of(n: int) -> float:
        return repeated(one["psum", n], lambda rank: ranks.reduction(rank, size, 8 * n, parameters))

    found: dict[Any, float] = {
        ("exchange", n): repeated(parameters.python, lambda rank, n=n: ranks.exchange(rank, ring, 8 * n, parameters))
        for n in SIZES
    }
    found["checked", 1] = repeated(
        parameters.python, lambda rank: ranks.exchange(rank, ring, 8, parameters), check=True
    )
    found |= {("psum", n): sum_of(n) for n in SUMS}
    for columns in COLUMNS:
        program = ranks.heat(one["heat", columns], 8 * columns, 20, parameters)
        found["heat", columns] = ranks.seconds(size, program, parameters) / 20
    for n in UNKNOWNS:
        program = ranks.gradients(one["gradients", n], 20, parameters)
        found["gradients", n] = ranks.seconds(size, program, parameters) / 20
    return found


def asleep() -> None:
    """Wait for all ranks without a processor."""
    request = COMM.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


def main() -> None:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[COMM.rank % CORES]})  # as in the simulation
    one: dict[Any, float] = {}
    parameters = None
    own = COMM.Split(0 if COMM.rank < CORES else 1)
    if COMM.rank < CORES:
        mine = alone()
        one = {key: own.allreduce(value, MPI.MAX) for key, value in mine.items()}
    asleep()
    pair = COMM.Split(0 if COMM.rank < 2 else 1)
    if COMM.size > 1 and COMM.rank < 2:
        parameters = machine(pair, one)
    asleep()
    found: dict[Any, float] = {("exchange", n): per_call(around, n, False, COMM) for n in SIZES}
    found["checked", 1] = per_call(around, 1, True, COMM)
    found |= {("psum", n): per_call(total, n, False, COMM) for n in SUMS}
    found |= {("heat", columns): heat(columns, COMM) for columns in COLUMNS}
    found |= {("gradients", n): gradients(n, COMM) for n in UNKNOWNS}
    if COMM.rank == 0:
        expected = one if parameters is None else simulated(one, parameters, COMM.size)
        print(f"{COMM.size} ranks on {CORES} cores; {parameters}")
        print("                      measured   simulated, in microseconds")
        for (what, n), value in found.items():
            text = f"{1e6 * expected[what, n]:8.1f}" if (what, n) in expected else "       -"
            print(f"{what:>10} {n:>8}   {1e6 * value:8.1f}   {text}")


if __name__ == "__main__":
    main()
