"""One figure for a run: every workload a row, every contestant a mark at its time divided by that of ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import CONTESTANTS, FUNC, FUNC_JIT
from benchmarks.report import paired_ratio
from benchmarks.workload import Measurement, Result

_MARKS = "osDv^<>PX*hd"
_SHARED_STYLE: dict[str, Any] = {"linestyle": "none", "markersize": 6, "alpha": 0.85}


def draw(results: Sequence[Result], file: Path) -> None:
    """Write the figure; its kind is that of the file's ending. Marks right of 1 are slower than ours."""
    from matplotlib import use

    use("Agg")
    from matplotlib import pyplot

    shown = [(result, ours) for result in results if (ours := reference(result)) is not None]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.27 * len(shown)), layout="constrained")
    for contestant, mark in zip(CONTESTANTS, _MARKS, strict=False):
        points = [
            (paired_ratio(other, ours), row)
            for row, (result, ours) in enumerate(shown)
            if (other := result.of(contestant.name)) is not None and other is not ours
        ]
        if points:
            axes.plot(*zip(*points, strict=True), mark, label=contestant.name, **_SHARED_STYLE)
    _label(axes, shown)
    figure.savefig(file, dpi=150)
    pyplot.close(figure)


def reference(result: Result) -> Measurement | None:
    """Ours, to which the row relates: compiled where it is."""
    return result.of(FUNC_JIT) or result.of(FUNC)


def _label(axes: Any, shown: Sequence[tuple[Result, Measurement]]) -> None:
    """The scale, the line at 1, and the names; a row that relates to eager func says so."""
    names = [result.workload.name + ("" if ours.contestant == FUNC_JIT else f" ({FUNC})") for result, ours in shown]
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.grid(axis="both", which="major", alpha=0.3)
    axes.set_xlabel(f"time divided by that of {FUNC_JIT} (right of 1: slower than {FUNC_JIT})")
    axes.legend(fontsize=8, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
