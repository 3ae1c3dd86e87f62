"""From a job, written once, to a workload with all contestants and the bars of compiled code."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.contestants import (
    BY_HAND,
    FUNC,
    FUNC_JIT,
    HIPS,
    JAX_JIT,
    TORCH,
    TORCH_COMPILE,
    TORCH_FUNC,
)
from benchmarks.libraries import LIBRARIES, Library, to_library
from benchmarks.workload import BEST_PEER, Bar, Call, Workload

MakeJob = Callable[[Library], Callable[..., Any]]
MakeData = Callable[[], tuple[Any, ...]]
Entry = Callable[[Any], Call]

CONTESTANTS = (FUNC, FUNC_JIT, HIPS, TORCH_FUNC, TORCH, TORCH_COMPILE, JAX_JIT)


def entry(contestant: str, make_job: MakeJob, make_data: MakeData) -> Entry:
    """A contestant's way of doing the job."""

    def prepare(module: Any) -> Call:
        library = LIBRARIES[contestant](module)
        return library.call(make_job(library), to_library(library, make_data()))

    return prepare


def by_hand(job: Callable[..., Any], make_data: MakeData) -> Entry:
    """The derivative written in NumPy, as an entry."""

    def prepare(_: Any) -> Call:
        data = make_data()
        return lambda: job(*data)

    return prepare


def compiled_bars(
    against_jax: float, against_best: float = 1.0, against_hand: float | None = None, memory: bool = False
) -> tuple[Bar, ...]:
    """The bars of func.jit: how many times faster than jax.jit, the share of the best peer's time, the first call.

    With `memory` the arrays are large enough for a measurement of peak memory.
    """
    bars = [
        Bar(JAX_JIT, 1 / against_jax, FUNC_JIT),
        Bar(BEST_PEER, against_best, FUNC_JIT),
        Bar(JAX_JIT, 0.2, FUNC_JIT, "first call"),
    ]
    if against_hand is not None:
        bars.append(Bar(BY_HAND, against_hand, FUNC_JIT))
    if memory:
        bars.append(Bar(JAX_JIT, 1.0, FUNC_JIT, "peak memory"))
    return tuple(bars)


def workload(
    name: str,
    title: str,
    make_job: MakeJob,
    make_data: MakeData,
    bars: tuple[Bar, ...] = (),
    hand: Callable[..., Any] | None = None,
    others: Mapping[str, Entry] | None = None,
    without: tuple[str, ...] = (),
    slow: tuple[str, ...] = (),
    huge: bool = False,
) -> Workload:
    """The workload of a job.

    `hand` is the job by hand, on the same data. `others` are separate entries of contestants; `without` names those
    that take no part. The start of torch.compile is always slow; for a `huge` workload everything is slow.
    """
    entries = {name: entry(name, make_job, make_data) for name in CONTESTANTS if name not in without}
    if hand is not None:
        entries[BY_HAND] = by_hand(hand, make_data)
    entries |= others or {}
    return Workload(name, title, entries, bars, frozenset(entries if huge else {TORCH_COMPILE, *slow}))
