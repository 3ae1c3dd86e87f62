"""Tables of a run for the terminal: by workload, against the best peers, and against the bars.

The bars are for those who work on func. The tables of the documentation are in `pages.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median, quantiles
from typing import Any

from benchmarks.contestants import CONTESTANTS
from benchmarks.tables import Table
from benchmarks.workload import BEST_PEER, Bar, Measure, Measurement, Result

NOTHING = "-"
_OURS = tuple(contestant.name for contestant in CONTESTANTS if contestant.ours)
_MODE = {contestant.name: contestant.mode for contestant in CONTESTANTS}


def workload_table(result: Result) -> Table:
    """One row per timed contestant, with the ratio of ours to it, and a remark for each that was left out."""
    ours = [name for name in _OURS if name in result.workload.entries]
    timed = [measurement for measurement in result.measurements if measurement.rounds]
    with_peaks = any(measurement.peak is not None for measurement in timed)
    rows = tuple(
        (
            measurement.contestant,
            seconds(median(measurement.rounds)),
            quartiles(measurement.rounds),
            seconds(measurement.first_call),
            *([size(measurement.peak)] if with_peaks else []),
            *(ratio_words(result.of(name), measurement) for name in ours),
        )
        for measurement in timed
    )
    peaks = ("peak memory",) if with_peaks else ()
    header = ("contestant", "median", "quartiles", "first call", *peaks, *(f"{name} / it" for name in ours))
    remarks = [f"{m.contestant}: left out, {m.left_out}" for m in result.measurements if m.left_out]
    bars = [f"{bar}: {ratio}, {verdict}" for bar, ratio, verdict in bar_rows(result)]
    return Table(f"{result.workload.name}: {result.workload.title}", header, rows, (*bars, *remarks))


def check_table(result: Result) -> Table:
    """One row per contestant: the time of its first call, and whether it agrees or why it is left out."""
    rows = tuple((m.contestant, seconds(m.first_call), m.left_out or "agrees") for m in result.measurements)
    title = f"{result.workload.name}: {result.workload.title}"
    return Table(title, ("contestant", "first call", "result"), rows)


def summary_table(results: Iterable[Result]) -> Table:
    """One row per workload: ours against the best eager library and against the best of all libraries."""
    rows = []
    for result in results:
        for name in (name for name in _OURS if name in result.workload.entries):
            mine = result.of(name)
            best_eager = best(result, lambda mode: mode == "eager")
            best_of_all = best(result, lambda mode: mode != "reference")
            time = seconds(median(mine.rounds)) if mine else NOTHING
            rows.append((f"{result.workload.name}, {name}", time, *_against(mine, best_eager, best_of_all)))
    header = ("work", "time", "best eager peer", "ratio", "best peer", "ratio")
    return Table("Against the best peer", header, tuple(rows))


def bars_table(results: Iterable[Result]) -> Table:
    """One row per bar."""
    rows = [(result.workload.name, *cells) for result in results for cells in bar_rows(result)]
    return Table("Bars", ("work", "bar", "measured", "verdict"), tuple(rows))


def bar_rows(result: Result, measure: Measure | None = None) -> list[tuple[str, str, str]]:
    """For each bar of the workload, or each on one measure: the bar, the measured ratio, the verdict."""
    rows = []
    for bar in result.workload.bars:
        if measure not in (None, bar.measure):
            continue
        ratio = bar_ratio(result, bar)
        verdict = "not measured" if ratio is None else "reached" if ratio <= bar.limit else "MISSED"
        peer = bar_peer(result, bar)
        name = f"{bar} ({peer.contestant})" if peer and bar.peer == BEST_PEER else str(bar)
        rows.append((name, number(ratio), verdict))
    return rows


def bar_ratio(result: Result, bar: Bar) -> float | None:
    """The ratio that a bar limits, if both sides were measured."""
    mine, peer = result.of(bar.contestant), bar_peer(result, bar)
    if mine is None or peer is None:
        return None
    if bar.measure == "first call":
        return mine.first_call / peer.first_call if mine.first_call and peer.first_call else None
    if bar.measure == "peak memory":
        return mine.peak / peer.peak if mine.peak and peer.peak else None
    return paired_ratio(mine, peer)


def bar_peer(result: Result, bar: Bar) -> Measurement | None:
    """The measurement that a bar compares with."""
    return best(result, lambda mode: mode != "reference") if bar.peer == BEST_PEER else result.of(bar.peer)


def paired_ratio(mine: Measurement, peer: Measurement) -> float:
    """The median of the ratios round by round: a slow round cancels."""
    return median(a / b for a, b in zip(mine.rounds, peer.rounds, strict=True))


def best(result: Result, admits: Callable[[str], bool]) -> Measurement | None:
    """The fastest contestant of an admitted mode that is not ours."""
    peers = [m for m in result.measurements if m.rounds and m.contestant not in _OURS]
    return min((m for m in peers if admits(_MODE[m.contestant])), key=lambda m: median(m.rounds), default=None)


def as_data(environment: dict[str, str], results: Iterable[Result]) -> dict[str, Any]:
    """Everything measured, as plain data for JSON."""
    return {
        "environment": environment,
        "workloads": [
            {
                "name": result.workload.name,
                "title": result.workload.title,
                "measurements": [asdict(measurement) for measurement in result.measurements],
                "bars": [asdict(bar) | {"measured": bar_ratio(result, bar)} for bar in result.workload.bars],
            }
            for result in results
        ],
    }


def ratio_words(mine: Measurement | None, peer: Measurement) -> str:
    """The ratio to a peer; nothing for a contestant against itself."""
    return NOTHING if mine is None or mine is peer else number(paired_ratio(mine, peer))


def number(value: float | None) -> str:
    """A ratio with two significant digits below ten."""
    if value is None:
        return NOTHING
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def seconds(value: float | None) -> str:
    """A duration with three significant digits and its unit."""
    if value is None:
        return NOTHING
    unit, scale = next((row for row in (("µs", 1e-6), ("ms", 1e-3)) if value < 1000 * row[1]), ("s", 1.0))
    scaled = value / scale
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"


def size(value: int | None) -> str:
    """Bytes as MiB."""
    return NOTHING if value is None else f"{value / 2**20:.1f} MiB"


def quartiles(rounds: Sequence[float]) -> str:
    """The first and the third quartile, relative to the median."""
    if len(rounds) < 2:
        return NOTHING
    low, middle, high = quantiles(rounds, n=4, method="inclusive")
    return f"{low / middle - 1:+.0%} {high / middle - 1:+.0%}"


def _against(mine: Measurement | None, *peers: Measurement | None) -> tuple[str, ...]:
    """The name of each peer and the ratio to it."""
    pairs = [(peer.contestant, ratio_words(mine, peer)) if peer else (NOTHING, NOTHING) for peer in peers]
    return tuple(cell for pair in pairs for cell in pair)
