"""Peak memory of a call, each contestant in a separate process: python -m benchmarks.memory [PATTERN ...]

The peak is that of the process (VmHWM) during the third call minus its resident memory before the first. Libraries and
data do not count. Results count, and so does memory that the library keeps for the next call, loads or compiles.
Therefore only workloads with large arrays, those with a bar on peak memory, are measured.
"""

import argparse
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.contestants import CONTESTANTS, FUNC, FUNC_JIT, JAX_JIT, PLAIN_GRADIENT
from benchmarks.environment import limit_threads
from benchmarks.names import matches
from benchmarks.workload import Measurement, Result, Workload

MEASURED = (FUNC, FUNC_JIT, JAX_JIT, PLAIN_GRADIENT)
TIMEOUT = 300.0
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def has_memory_bar(workload: Workload) -> bool:
    """Whether peak memory tells anything about this workload."""
    return any(bar.measure == "peak memory" for bar in workload.bars)


def add_peaks(result: Result, threads: int) -> None:
    """Write the peaks into the timed measurements."""
    for measurement in result.measurements:
        if has_memory_bar(result.workload) and measurement.contestant in MEASURED and not measurement.left_out:
            measurement.peak = peak_in_new_process(result.workload.name, measurement.contestant, threads)


def peak_in_new_process(workload: str, contestant: str, threads: int) -> int | None:
    """The bytes that a call adds; None with a word on stderr if it fails."""
    command = [sys.executable, "-m", "benchmarks.memory", "--one", workload, contestant, "--threads", str(threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        print(f"peak memory of {contestant} on {workload}: more than {TIMEOUT:g} s", file=sys.stderr)
        return None
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        print(f"peak memory of {contestant} on {workload}: failed ({words[-1]})", file=sys.stderr)
        return None
    return int(done.stdout.split()[-1])


def peak_of(call: Any) -> int:
    """The bytes that three calls add to the peak of this process."""
    gc.collect()
    before = _status("VmRSS")
    call()
    call()
    _CLEAR.write_text("5")
    call()
    return max(0, _status("VmHWM") - before)


def _status(word: str) -> int:
    """A line of the kernel's account of this process, in bytes."""
    with _STATUS.open() as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(word))


def main() -> int:
    """Print a row for each contestant and workload, and the bars on peak memory; 1 if one was not measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument(
        "patterns", metavar="PATTERN", nargs="*", help="workloads with one of these texts in their name"
    )
    parser.add_argument("--slow", action="store_true", help="huge arrays too")
    parser.add_argument("--threads", type=int, default=2, help="threads for every contestant (2)")
    parser.add_argument("--one", nargs=2, metavar=("WORKLOAD", "CONTESTANT"), help="print the bytes of this one")
    options = parser.parse_args()
    if not _CLEAR.exists():
        print("peak memory is read from /proc, which this system does not have", file=sys.stderr)
        return 2
    limit_threads(options.threads)
    from benchmarks.report import bar_rows, size
    from benchmarks.workloads import WORKLOADS

    if options.one:
        name, contestant = options.one
        workload = next(workload for workload in WORKLOADS if workload.name == name)
        load = next(row.load for row in CONTESTANTS if row.name == contestant)
        print(peak_of(workload.entries[contestant](load())))
        return 0
    failed = False
    for workload in WORKLOADS:
        if not has_memory_bar(workload) or not matches(workload.name, options.patterns):
            continue
        names = [name for name in MEASURED if name in workload.entries and (options.slow or name not in workload.slow)]
        # One round of no duration makes a contestant count as measured.
        result = Result(workload, tuple(Measurement(name, rounds=[0.0]) for name in names))
        add_peaks(result, options.threads)
        failed |= any(measurement.peak is None for measurement in result.measurements)
        peaks = ", ".join(f"{measurement.contestant} {size(measurement.peak)}" for measurement in result.measurements)
        bars = [row for row in bar_rows(result, "peak memory") if names]
        print("; ".join([f"{workload.name}: {peaks or 'slow'}", *map(" ".join, bars)]), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
