"""Ranks that compute and exchange messages, simulated: the time of a program on another machine.

A program of a rank is a sequence of actions: work, a message to another rank, a wait for one. Ranks share cores. A rank
that waits looks for its message, and gives its core to another rank after a while, as `func.spmd` does. Reductions are
messages too: recursive doubling (small ones) or halving and doubling (Rabenseifner 2004), as MPI libraries do them.
`benchmarks.messages` measures the parameters and compares; `python -m benchmarks.ranks` predicts up to 1,000 ranks.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Action = tuple[Any, ...]
"""("work", seconds); ("send", rank, seconds of the processor, seconds on the way); ("receive", rank, seconds)."""


class Machine(NamedTuple):
    """The costs of messages, in seconds."""

    latency: float
    """From the end of a send to the arrival of its first byte, α."""
    byte: float
    """For each byte, β."""
    call: float
    """Of the processor for a send, and for a receive."""
    round: float
    """For each round of a reduction: a message inside of MPI."""
    summed_byte: float
    """For each byte of a round."""
    python: float
    """Of the processor for a collective, without MPI."""
    check: float
    """Of the processor for a check, without its reduction."""
    cores: int = 1 << 30
    looks: float = 8e-6
    """How long a rank polls for a message before others get its core."""
    switch: float = 3e-6
    """From one rank to another one on a core."""


class Ranks:
    """A run of p programs; `time` is when the last of them ends."""

    def __init__(self, size: int, program: Callable[[int, int], Iterator[Action]], machine: Machine) -> None:
        self.machine = machine
        cores = min(machine.cores, size)
        self.core = [rank % cores for rank in range(size)]
        self.programs = [program(rank, size) for rank in range(size)]
        self.ready = [deque([rank for rank in range(size) if rank % cores == core]) for core in range(cores)]
        """The ranks of a core in the order in which they get it, first the one that has it."""
        self.arrivals: dict[tuple[int, int], deque[float]] = {}
        self.awaited: list[tuple[int, int] | None] = [None] * size
        self.since = [0.0] * size
        """When a rank began to poll for its message."""
        self.events = [(0.0, core, core) for core in range(cores)]
        self.numbers = itertools.count(cores)
        self.stamps = list(range(cores))
        """The number of the event that counts for a core; later ones replace earlier ones."""
        self.due = [math.inf] * cores
        """When that event is."""
        self.time = 0.0
        while self.events:
            now, number, core = heapq.heappop(self.events)
            if number == self.stamps[core] and self.ready[core]:
                self.due[core] = math.inf
                self._go_on(now, core)
        if any(self.ready):
            raise RuntimeError(f"ranks wait for messages that nobody sends: {[x for x in self.awaited if x]}")

    def _at(self, time: float, core: int) -> None:
        number = next(self.numbers)
        self.stamps[core] = number
        self.due[core] = time
        heapq.heappush(self.events, (time, number, core))

    def _go_on(self, now: float, core: int) -> None:
        """The next action of the rank that has a core."""
        machine = self.machine
        ranks = self.ready[core]
        rank = ranks[0]
        awaited = self.awaited[rank]
        if awaited is not None:
            arrived = self.arrivals.get(awaited)
            if arrived and arrived[0] <= now:
                arrived.popleft()
                self.awaited[rank] = None
            elif len(ranks) == 1:
                if arrived:
                    self._at(arrived[0], core)  # otherwise the sender will wake this core
                return
            elif now < self.since[rank] + machine.looks:
                end = self.since[rank] + machine.looks
                self._at(min(arrived[0], end) if arrived else end, core)
                return
            else:
                self._give_way(now, core)
                return
        action = next(self.programs[rank], None)
        if action is None:
            ranks.popleft()
            self.time = max(self.time, now)
            if ranks:
                self._at(now + machine.switch, core)
        elif action[0] == "work":
            self._at(now + action[1], core)
        elif action[0] == "send":
            _, to, cost, delay = action
            self.arrivals.setdefault((rank, to), deque()).append(now + cost + delay)
            self._at(now + cost, core)
            self._wake(rank, to, now + cost + delay)
        else:
            _, source, cost = action
            self.awaited[rank] = source, rank
            self.since[rank] = now + cost
            self._at(now + cost, core)

    def _wake(self, sender: int, rank: int, arrival: float) -> None:
        """A message for a rank is on its way; its core looks when it arrives, if all of its ranks wait."""
        core = self.core[rank]
        is_next = self.awaited[rank] == (sender, rank) and len(self.arrivals[sender, rank]) == 1
        if is_next and arrival < self.due[core] and all([self.awaited[other] for other in self.ready[core]]):
            self._at(arrival, core)

    def _give_way(self, now: float, core: int) -> None:
        """The next rank of a core that can go on; if none can, the core waits for a message."""
        ranks = self.ready[core]
        for _ in range(len(ranks)):
            ranks.rotate(-1)
            now += self.machine.switch
            awaited = self.awaited[ranks[0]]
            arrived = self.arrivals.get(awaited) if awaited is not None else None
            if awaited is None or (arrived and arrived[0] <= now):
                self._at(now, core)
                return
        coming = [self.arrivals[key][0] for other in ranks if (key := self.awaited[other]) and self.arrivals.get(key)]
        if coming:
            self._at(max(now, min(coming)), core)


def exchange(rank: int, pairs: list[tuple[int, int]], size: int, machine: Machine) -> Iterator[Action]:
    """A permutation: this rank's sends, then its receive."""
    for source, destination in pairs:
        if source == rank != destination:
            yield "send", destination, machine.call, machine.latency + size * machine.byte
    for source, destination in pairs:
        if destination == rank != source:
            yield "receive", source, machine.call


def reduction(rank: int, ranks: int, size: int, machine: Machine, small: int = 8192) -> Iterator[Action]:
    """A sum that all ranks get; ranks beyond a power of two hand their values to another one and get the sum back."""
    power = 1 << (ranks.bit_length() - 1)
    if rank >= power:
        yield "send", rank - power, 0.0, machine.round + size * machine.summed_byte
        yield "receive", rank - power, 0.0
        return
    if rank + power < ranks:
        yield "receive", rank + power, 0.0
    distances = [1 << k for k in range(power.bit_length() - 1)]
    if size <= small:
        rounds = [(distance, size) for distance in distances]
    else:
        halves = [(distance, size >> (k + 1)) for k, distance in enumerate(reversed(distances))]
        rounds = [*halves, *reversed(halves)]
    for distance, part in rounds:
        yield "send", rank ^ distance, 0.0, machine.round + part * machine.summed_byte
        yield "receive", rank ^ distance, 0.0
    if rank + power < ranks:
        yield "send", rank + power, 0.0, machine.round + size * machine.summed_byte


def checked(rank: int, ranks: int, machine: Machine) -> Iterator[Action]:
    """Ranks compare their next calls."""
    if ranks > 1:
        yield "work", machine.check
        yield from reduction(rank, ranks, 32, machine)


def heat(work: float, row: int, steps: int, machine: Machine, check: bool = False) -> Callable[..., Iterator[Action]]:
    """Steps of examples/processes/heat_equation.py: `work` is that of a step without messages."""

    def program(rank: int, size: int) -> Iterator[Action]:
        up = [(rank - 1, rank), (rank, rank + 1)]
        inside = [(a, b) for a, b in up if a >= 0 and b < size]
        for _ in range(steps):
            yield "work", work
            for pairs in (inside, [(b, a) for a, b in inside]):
                if check:
                    yield from checked(rank, size, machine)
                yield from exchange(rank, pairs, row, machine)

    return program


def blocks(work: float, row: int, steps: int, machine: Machine) -> Callable[..., Iterator[Action]]:
    """Steps on a square grid of ranks, with messages to four neighbours."""

    def program(rank: int, size: int) -> Iterator[Action]:
        side = round(size**0.5)
        i, j = divmod(rank, side)
        around = [rank - side] * (i > 0) + [rank + side] * (i < side - 1) + [rank - 1] * (j > 0)
        around += [rank + 1] * (j < side - 1)
        for _ in range(steps):
            yield "work", work
            for other in around:
                yield "send", other, machine.call, machine.latency + row * machine.byte
            for other in around:
                yield "receive", other, machine.call

    return program


def gradients(work: float, steps: int, machine: Machine, check: bool = False) -> Callable[..., Iterator[Action]]:
    """Iterations of examples/processes/conjugate_gradients.py: one exchange each way, two sums of one number."""

    def program(rank: int, size: int) -> Iterator[Action]:
        inside = [(a, b) for a, b in ((rank - 1, rank), (rank, rank + 1)) if a >= 0 and b < size]
        for _ in range(steps):
            yield "work", work
            for pairs in (inside, [(b, a) for a, b in inside]):
                if check:
                    yield from checked(rank, size, machine)
                yield from exchange(rank, pairs, 8, machine)
            for _ in range(2):
                if check:
                    yield from checked(rank, size, machine)
                yield from reduction(rank, size, 8, machine)

    return program


def seconds(size: int, program: Callable[[int, int], Iterator[Action]], machine: Machine) -> float:
    """When the last rank ends."""
    return Ranks(size, program, machine).time


NETWORK = Machine(latency=2e-6, byte=1e-10, call=1e-6, round=3e-6, summed_byte=2e-10, python=6e-6, check=2e-6)
"""Of a cluster: a network of 2 µs and 10 GB/s; Python and checks as on this machine, for compiled programs."""


def main() -> None:
    number, steps, n = 1.8e-9, 10, 10_000
    print("heat, 10,000 x 10,000 numbers: microseconds a step (of linear, against one rank without messages)")
    print("  ranks       rows  rows, checked     blocks")
    alone = n * n * number
    for size in (1, 4, 16, 64, 256, 1024):
        work = alone / size + 2 * NETWORK.python
        times = [
            seconds(size, heat(work, 8 * n, steps, NETWORK), NETWORK),
            seconds(size, heat(work, 8 * n, steps, NETWORK, check=True), NETWORK),
            seconds(size, blocks(work + 2 * NETWORK.python, 8 * n // round(size**0.5), steps, NETWORK), NETWORK),
        ]
        print(f"  {size:5d}", *[f"{1e6 * t / steps:9.0f} ({alone / size / (t / steps):.2f})" for t in times])
    print("conjugate gradients, 10,000,000 unknowns: microseconds an iteration (of linear)")
    alone = 1e7 * 5e-9
    for size in (1, 4, 16, 64, 256, 1024):
        work = alone / size + 4 * NETWORK.python
        times = [seconds(size, gradients(work, steps, NETWORK, check), NETWORK) for check in (False, True)]
        print(f"  {size:5d}", *[f"{1e6 * t / steps:9.0f} ({alone / size / (t / steps):.2f})" for t in times])


if __name__ == "__main__":
    main()
