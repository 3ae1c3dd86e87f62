"""The command line: `python -m benchmarks.devices`, what `make gpu` runs; `--help` lists the options."""

import argparse
import contextlib
import functools
import importlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agreement import difference, flatten
from benchmarks.devices import predicting
from benchmarks.devices.contestants import BY_HAND, FUNC_JIT, LIBRARIES, synchronize, to_host
from benchmarks.devices.jobs import JOBS, DeviceJob
from benchmarks.devices.page import MARKER, Outcome, bars_table, outcomes_table, page_text, predictions_table
from benchmarks.libraries import to_library
from benchmarks.trees import convert

ROUNDS = 7
BLOCK = 0.05
"""Seconds that a contestant runs in a round."""
PATIENCE = 60.0
"""Seconds that a contestant has for its compilation and its first calls."""
AT_THE_END = 15.0
"""Seconds reserved for the bandwidth and the page."""
NO_TIME = "no time was left"
PAGE = Path(__file__).parents[2] / "docs" / "performance-gpu.md"
TESTS = ("tests/interpreters/primitives/test_devices.py", "tests/backends", "tests/func")
SANITIZED = "tests/backends/cuda/test_on_device.py"


def why_no_device() -> str | None:
    """The reason for which nothing can be measured, None where a device is there."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return "CuPy is not installed: pip install 'cupy-cuda13x[ctk]'"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no CUDA device: {error}"
    return None if count else "CuPy finds no CUDA device"


def main(arguments: Sequence[str] | None = None) -> int:
    """Tests, sanitizer, benchmark and page, until the time is up; 1 if something failed, 3 without a device."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="workloads whose names have one of these in them")
    parser.add_argument("--predict", action="store_true", help="predict all workloads and write the file; no device")
    parser.add_argument("--minutes", type=float, default=8.0, help="the most that all of it may take")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--no-tests", action="store_true", help="only the benchmark")
    options = parser.parse_args(arguments)
    titles = {job.name: job.title for job in JOBS}
    if options.predict:
        print(predictions_table(predicting.write(), titles).text())
        return 0
    reason = why_no_device()
    if reason is not None:
        print(f"no device: {reason}\nNothing was measured, and {options.page.name} stays as it is.", file=sys.stderr)
        return 3
    deadline = time.monotonic() + 60 * options.minutes
    checks = {} if options.no_tests else run_checks(deadline - 60 * options.minutes * 0.45)
    jobs = [job for job in JOBS if not options.patterns or any([each in job.name for each in options.patterns])]
    device = CupyClock()
    outcomes = measure(jobs, deadline - AT_THE_END, device)
    predictions = predicting.stored()
    by_job = {each.job: each for each in predictions}
    bandwidth = device.copy_bandwidth()
    text = page_text(device.environment(bandwidth), outcomes, predictions, bandwidth, checks)
    write_page(options.page, text)
    print(outcomes_table(outcomes, by_job, bandwidth).text())
    print(bars_table(outcomes, by_job, bandwidth).text())
    failed = [words for words in checks.values() if not words.startswith(("passed", "not here"))]
    return int(bool(failed) or any([FUNC_JIT in outcome.left_out for outcome in outcomes]))


def run_checks(deadline: float) -> dict[str, str]:
    """The tests marked `gpu`, and some of them under compute-sanitizer."""
    python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu"]
    half = (deadline + time.monotonic()) / 2  # the other half is the sanitizer's
    checks = {"gpu tests": _ran([*python, "-x", *TESTS], half)}
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        checks["compute-sanitizer"] = "not here"
        return checks
    for tool in ("memcheck", "racecheck"):
        command = [sanitizer, "--tool", tool, "--error-exitcode", "9", *python, SANITIZED]
        checks[f"compute-sanitizer {tool}"] = _ran(command, deadline)
    return checks


def _ran(command: Sequence[str], deadline: float) -> str:
    """How a command ended: the last line that it printed."""
    left = deadline - time.monotonic()
    if left < 5:
        return "not run: no time was left"
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
    except subprocess.TimeoutExpired:
        return f"FAILED: more than {left:.0f} s"
    lines = (done.stdout + done.stderr).strip().splitlines() or [""]
    return f"passed ({lines[-1]})" if done.returncode == 0 else f"FAILED ({lines[-1]})"


class CupyClock:
    """Times on a device, by CuPy."""

    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")

    def seconds(self, call: Callable[[], Any]) -> float:
        """Seconds of a call: the calls of a block start one after the other, and the clock stops after all of them."""
        synchronize()
        start = time.perf_counter()
        call()
        synchronize()
        once = max(time.perf_counter() - start, 1e-7)
        number = max(1, min(2000, round(BLOCK / once)))
        start = time.perf_counter()
        for _ in range(number):
            call()
        synchronize()
        return (time.perf_counter() - start) / number

    def copy_bandwidth(self) -> float:
        """Bytes a second of a copy of 1 GiB, read and written."""
        source = self.cupy.zeros(1 << 27)
        target = self.cupy.empty_like(source)
        return 2 * source.nbytes / min([self.seconds(lambda: self.cupy.copyto(target, source)) for _ in range(5)])

    def environment(self, bandwidth: float) -> dict[str, str]:
        """The facts that a reader needs."""
        runtime = self.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(runtime.getDevice())
        versions = {"CuPy": self.cupy.__version__, "NumPy": np.__version__, "python": platform.python_version()}
        return {
            "device": properties["name"].decode(),
            "driver": str(runtime.driverGetVersion()),
            "CUDA of CuPy": str(runtime.runtimeGetVersion()),
            "copy bandwidth": f"{bandwidth / 1e12:.2f} TB/s",
            **versions,
        }

    def release(self) -> None:
        """Give memory back between workloads."""
        self.cupy.get_default_memory_pool().free_all_blocks()


def measure(jobs: Sequence[DeviceJob], deadline: float, clock: Any) -> list[Outcome]:
    """All jobs, until the time is up: contestants take turns, and no time counts before results agree."""
    libraries: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, (load, _) in LIBRARIES.items():
        try:
            libraries[name] = load()
        except Exception as error:
            missing[name] = str(error)
    outcomes = []
    for job in jobs:
        outcome = Outcome(job.name, job.title, left_out=dict(missing))
        outcomes.append(outcome)
        if time.monotonic() > deadline:
            outcome.left_out[FUNC_JIT] = NO_TIME
            continue
        _measure(job, outcome, libraries, clock, deadline)
        clock.release()
    return outcomes


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Inside, a TimeoutError after this number of seconds."""

    def interrupt(*_: object) -> None:
        raise TimeoutError(f"more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _measure(job: DeviceJob, outcome: Outcome, libraries: dict[str, Any], clock: Any, deadline: float) -> None:
    data = job.data()
    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        name: functools.partial(_call_of, job, LIBRARIES[name][1](module), data) for name, module in libraries.items()
    }
    if job.by_hand is not None and FUNC_JIT in libraries:
        given = convert(LIBRARIES[FUNC_JIT][1](libraries[FUNC_JIT]).array, data)
        makers[BY_HAND] = lambda: functools.partial(job.by_hand, *given)  # type: ignore[arg-type]
    calls: dict[str, Callable[[], Any]] = {}
    results: dict[str, Any] = {}
    for name, make in makers.items():
        left = deadline - time.monotonic()
        if left < 1:
            outcome.left_out[name] = NO_TIME
            continue
        _prepare(name, make, outcome, calls, results, min(PATIENCE, left))
    _compare(outcome, calls, results)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS):
        if number and time.monotonic() > deadline:
            break
        for name, call in calls.items():
            times[name].append(clock.seconds(call))
    outcome.seconds = {name: statistics.median(values) for name, values in times.items()}


def _call_of(job: DeviceJob, library: Any, data: tuple[Any, ...]) -> Callable[[], Any]:
    return library.call(job.make_job(library), to_library(library, data))


def _prepare(
    name: str,
    make: Callable[[], Callable[[], Any]],
    outcome: Outcome,
    calls: dict[str, Any],
    results: dict[str, Any],
    seconds: float,
) -> None:
    try:
        with at_most(seconds):
            start = time.perf_counter()
            call = make()
            results[name] = flatten(convert(to_host, call()))
            outcome.first_call[name] = time.perf_counter() - start
            for _ in range(3):
                call()
        calls[name] = call
    except Exception as error:
        results.pop(name, None)
        first, *_ = str(error).splitlines() or [""]
        outcome.left_out[name] = f"failed ({type(error).__name__}: {first})"


def _compare(outcome: Outcome, calls: dict[str, Any], results: dict[str, Any]) -> None:
    """Leave out the peers that differ from the first one, and ours if it does."""
    names = [name for name in results if name != FUNC_JIT] or list(results)
    for name in list(results):
        words = difference(results[name], results[names[0]]) if names else ""
        if words:
            calls.pop(name, None)
            outcome.left_out[name] = f"differs from {names[0]}: {words}"


def write_page(file: Path, text: str) -> None:
    """Write the text below the marker of the page."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    head = before.partition(MARKER)[0].rstrip()
    file.write_text(f"{head}\n\n{MARKER}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
