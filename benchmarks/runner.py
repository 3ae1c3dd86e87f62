"""From a workload to its measurements: prepare, compare, time."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.agreement import difference, disagreements, flatten
from benchmarks.contestants import CONTESTANTS
from benchmarks.timing import Effort, TooSlow, ask_rounds, time_limit, time_rounds
from benchmarks.workload import Call, Measurement, NotOffered, Result, Workload


def run(
    workload: Workload,
    libraries: Mapping[str, Any],
    missing: Mapping[str, str],
    effort: Effort,
    slow: bool = False,
    only: Sequence[str] | None = None,
    begin: Callable[[str], object] = lambda _: None,
) -> Result:
    """Measure every contestant that has an entry (and is in `only`); the others are left out with a reason.

    `begin` receives the contestant whose first call is next, and "timing" after all first calls.
    """
    names = [row.name for row in CONTESTANTS if row.name in workload.entries and (only is None or row.name in only)]
    measurements = {name: Measurement(name) for name in names}
    for name in names:
        if name in missing:
            measurements[name].left_out = missing[name]
        elif name in workload.slow and not slow:
            measurements[name].left_out = "slow; --slow includes it"
    calls = _prepare(workload, libraries, measurements, effort, begin)
    begin("timing")
    rounds = ask_rounds(calls, effort) if workload.times_itself else time_rounds(calls, effort)
    for name, times in rounds.items():
        measurements[name].rounds = times
    return Result(workload, tuple(measurements.values()))


def taking_part(workload: Workload, slow: bool, only: Sequence[str] | None = None) -> set[str]:
    """The contestants to call."""
    return {name for name in workload.entries if (only is None or name in only) and (slow or name not in workload.slow)}


def _prepare(
    workload: Workload,
    libraries: Mapping[str, Any],
    measurements: Mapping[str, Measurement],
    effort: Effort,
    begin: Callable[[str], object],
) -> dict[str, Call]:
    """The calls that run and agree, after two calls each; a failure goes into its measurement."""
    calls: dict[str, Call] = {}
    outputs: dict[str, Any] = {}
    for name, measurement in measurements.items():
        if measurement.left_out:
            continue
        begin(name)
        try:
            calls[name] = workload.entries[name](libraries[name])
            with time_limit(effort.first_limit, "the first call"):
                start = time.perf_counter()
                outputs[name] = calls[name]()
                measurement.first_call = time.perf_counter() - start
            if not workload.times_itself:
                _repeat(calls[name], outputs[name], effort.call_limit)
        except (NotOffered, TooSlow) as error:
            measurement.left_out = str(error)
        except Exception as error:
            measurement.left_out, measurement.broken = f"failed ({_words(error)})", True
        if measurement.left_out:
            calls.pop(name, None)
            outputs.pop(name, None)
    if not workload.times_itself:
        for name, words in disagreements(outputs).items():
            del calls[name]
            measurements[name].left_out, measurements[name].broken = words, True
    del outputs
    gc.collect()
    return calls


def _repeat(call: Call, output: Any, limit: float) -> None:
    """The second call returns the first one's result and does not change it, within the time limit of a call."""
    kept = [leaf.copy() for leaf in flatten(output)]
    with time_limit(limit, "a call"):
        again = call()
    for results, words in ((flatten(output), "wrote into the result of the first"), (flatten(again), "differs")):
        if change := difference(results, kept):
            raise ArithmeticError(f"the second call {words}: {change}")


def _words(error: Exception) -> str:
    """The kind of an error and the first line of its message."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}"
