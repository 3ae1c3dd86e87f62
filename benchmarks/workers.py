"""Maps and sums on workers: overhead of a chunk, scaling, memory and throughput, and the model of many workers.

`python -m benchmarks.workers [ROW ...] [--gigabytes N] [--folder PATH]` prints one table; the rows are `overhead`,
`fits`, `sleep`, `memory`, `bits` and `model`. Processes are forked pools. `memory` writes a file of that number of
gigabytes to the folder and removes it. Bars are those of docs/workers.md.
"""

from __future__ import annotations

import argparse
import concurrent.futures as cf
import heapq
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import func

FORK = multiprocessing.get_context("fork")


def least(call: Callable[[], Any], rounds: int = 5) -> float:
    """The least wall-clock time of some calls, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def sleeping(seconds: Any) -> Any:
    """Takes its argument's time without a processor."""
    time.sleep(float(seconds))
    return seconds


STEPS = 22_000
"""Of a fit."""


def fit(theta: Any) -> Any:
    """The distance of the end of a pendulum's path from a place; about 5 ms of arithmetic on single numbers."""
    angle, speed = theta[0], theta[1]
    for _ in range(STEPS):
        speed = speed - 10 / STEPS * np.sin(angle)
        angle = angle + 10 / STEPS * speed
    return (angle - 1.0) ** 2


def overhead() -> None:
    """The overhead of a chunk: 400 chunks of one number on two processes."""
    xs = np.zeros(400)
    with cf.ProcessPoolExecutor(2, FORK) as executor:
        mapped = func.map
        mapped(np.negative, xs[:4], executor=executor, chunk_size=1)
        seconds = least(lambda: mapped(np.negative, xs, executor=executor, chunk_size=1))
        bare = least(lambda: [future.result() for future in [executor.submit(abs, 1.0) for _ in xs]])
    print(
        f"overhead   {seconds / 400 * 1e3:.2f} ms a chunk (bar 2), of which submit() itself {bare / 400 * 1e3:.2f} ms"
    )


def fits() -> None:
    """2,000 fits of an ordinary differential equation on one and two processes."""
    thetas = np.random.default_rng(0).normal(size=(2000, 2))
    start = time.perf_counter()
    expected = np.array([fit(theta) for theta in thetas[:50]])
    alone = (time.perf_counter() - start) / 50
    times = {}
    for workers in (1, 2):
        with cf.ProcessPoolExecutor(workers, FORK) as executor:
            func.map(fit, thetas[:8], executor=executor, chunk_size=1)
            start = time.perf_counter()
            found = func.map(fit, thetas, executor=executor, chunk_size=20)
            times[workers] = time.perf_counter() - start
    np.testing.assert_allclose(found[:50], expected)
    ratio = times[1] / (2 * times[2])
    print(
        f"fits       {alone * 1e3:.1f} ms each; 2,000 on one process {times[1]:.1f} s, on two {times[2]:.1f} s: "
        f"{ratio:.2f} of linear (bar 0.9)"
    )


def sleep() -> None:
    """Work that needs no processor: 8 workers against the time of one."""
    xs = np.full(800, 0.01)
    seconds = {}
    for workers in (1, 8):
        with cf.ProcessPoolExecutor(workers, FORK) as executor:
            func.map(sleeping, xs[:16], executor=executor, chunk_size=1)
            seconds[workers] = least(lambda: func.map(sleeping, xs, executor=executor, chunk_size=5), 3)
    ratio = seconds[1] / 8 / seconds[8]
    print(f"sleep      one worker {seconds[1]:.2f} s, eight {seconds[8]:.2f} s: {ratio:.3f} of linear (bar 0.95)")


MEMORY = """
import sys, time
import numpy as np, func
path = sys.argv[1]
def loss(w, x):
    z = x @ w
    return np.logaddexp(0, z) - x[:, 0] * z
objective = func.sum_over(loss, path, batched=True, chunk_size=int(sys.argv[2]))
w = np.zeros(64)
times = []
for _ in range(3):
    start = time.perf_counter()
    value, gradient = func.value_and_grad(objective)(w)
    times.append(time.perf_counter() - start)
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(peak) * 1024, min(times))
"""
READING = """
import mmap, os, sys, time
import numpy as np
path, size = sys.argv[1], int(sys.argv[2]) * 512
memory = mmap.mmap(-1, size)
values = np.frombuffer(memory, np.float64)
def seconds(flags, add):
    file = os.open(path, os.O_RDONLY | flags)
    start = time.perf_counter()
    while os.readv(file, [memory]) == size:
        if add:
            values.sum()
    os.close(file)
    return time.perf_counter() - start
print(min([seconds(0, True) for _ in range(3)]))
try:
    print(min([seconds(os.O_DIRECT, False) for _ in range(2)]))
except OSError:
    print(float("nan"))
"""


def memory(gigabytes: float, folder: str | None) -> None:
    """The gradient of a logistic regression over a file, in a process, for the peak of its memory."""
    rows = int(gigabytes * 2**30 / (64 * 8))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "x.npy"
        data = np.lib.format.open_memmap(path, "w+", np.float64, (rows, 64))
        block = np.random.default_rng(0).normal(size=(2**15, 64))
        for i in range(0, rows, len(block)):
            data[i : i + len(block)] = block[: rows - i]
        data.flush()
        size = data.nbytes
        del data
        chunk = str(2**13)

        def run(code: str) -> list[float]:
            command = [sys.executable, "-c", code, str(path), chunk]
            alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # threads of BLAS wait for each other beside busy ones
            done = subprocess.run(command, env=alone, capture_output=True, text=True, check=True)
            return [float(word) for word in done.stdout.split()]

        reading, disk = run(READING)
        peak, seconds = run(MEMORY)
    print(
        f"memory     {size / 1e9:.1f} GB in {seconds:.2f} s, {size / seconds / 1e9:.2f} GB/s; the disk alone, past the "
        f"system's cache, {size / disk / 1e9:.2f} GB/s: {disk / seconds:.2f} of it (bar 0.9); reading from the cache "
        f"and adding {size / reading / 1e9:.2f} GB/s: {reading / seconds:.2f}; peak {peak / 1e6:.0f} MB (limit 512)"
    )


def bits() -> None:
    """Value and gradient of a sum on one to four workers, compared bit by bit."""
    x = np.random.default_rng(0).normal(size=(100_000, 8)).astype(np.float32)
    seen = set()
    for workers in (1, 2, 3, 4):
        with cf.ProcessPoolExecutor(workers, FORK) as executor:
            objective = func.sum_over(lambda w, x: np.tanh(x @ w), x, executor=executor, chunk_size=3000)
            value, gradient = func.value_and_grad(objective)(np.ones(8, np.float32))
            seen.add((value.tobytes(), gradient.tobytes()))
    print(f"bits       {len(seen)} result on 1, 2, 3 and 4 processes")


def simulated(workers: int, chunks: int, work: float, parent: float, worker: float, window: int) -> float:
    """The time of a call: a parent that spends `parent` on each chunk, workers that spend `worker` beyond the work."""
    now = 0.0
    free = [0.0] * workers
    heapq.heapify(free)
    under_way: list[float] = []
    for _ in range(chunks):
        if len(under_way) >= window:
            now = max(now, heapq.heappop(under_way))
        now += parent
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + worker + work)
        heapq.heappush(under_way, start + worker + work)
    return max(now, max(under_way))


def model() -> None:
    """Chunks of 100 ms on 1 to 64 sleeping workers against the simulation, and its prediction for 1,000."""
    work = 0.1
    with cf.ProcessPoolExecutor(1, FORK) as executor:
        func.map(np.negative, np.zeros(4), executor=executor, chunk_size=1)
        used = resource.getrusage(resource.RUSAGE_SELF)
        before = used.ru_utime + used.ru_stime
        total = least(lambda: func.map(np.negative, np.zeros(500), executor=executor, chunk_size=1), 1) / 500
        used = resource.getrusage(resource.RUSAGE_SELF)
        parent = (used.ru_utime + used.ru_stime - before) / 500
    worker = max(total - parent, 1e-5)
    print(f"model      a chunk takes {parent * 1e3:.2f} ms of the parent, {worker * 1e3:.2f} ms of its worker")
    for workers in (1, 2, 4, 8, 16, 32, 64):
        chunks = 8 * workers
        with cf.ProcessPoolExecutor(workers, FORK) as executor:
            func.map(sleeping, np.full(4 * workers, 0.001), executor=executor, chunk_size=1)
            xs = np.full(chunks, work)
            seconds = least(lambda: func.map(sleeping, xs, executor=executor, chunk_size=1), 3)  # noqa: B023
        expected = simulated(workers, chunks, work, parent, worker, 2 * workers + 1)
        print(f"           {workers:5d} workers: measured {seconds:.3f} s, simulated {expected:.3f} s")
    for work in (0.05, 1.0, 10.0):
        expected = simulated(1000, 20_000, work, parent, worker, 2001)
        print(f"           1,000 workers, chunks of {work:g} s: {20 * work / expected:.2f} of linear (simulated)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="overhead, fits, sleep, memory, bits, model; all without")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--folder", help="where the file of `memory` is written")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")
    rows: dict[str, Callable[[], None]] = {
        "overhead": overhead,
        "fits": fits,
        "sleep": sleep,
        "memory": lambda: memory(options.gigabytes, options.folder),
        "bits": bits,
        "model": model,
    }
    for name in options.rows or rows:
        rows[name]()


if __name__ == "__main__":
    main()
