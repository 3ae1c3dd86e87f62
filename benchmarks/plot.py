"""One picture for a run: every workload a row, every contestant a mark at its time divided by that of ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import CONTESTANTS, FUNC, FUNC_JIT
from benchmarks.figures import ROOT, Figures

PICTURE = ROOT / "docs" / "_static" / "performance.svg"
_MARKS = "osDv^<>PX*hd"
_SHARED_STYLE: dict[str, Any] = {"linestyle": "none", "markersize": 5, "alpha": 0.85}


def draw(figures: Figures, file: Path) -> None:
    """Write the picture; its kind is that of the file's ending. Marks right of 1 are slower than ours."""
    from matplotlib import use

    use("svg")
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "func"})
    shown = [(work, ours) for work in figures.works if (ours := reference(figures, work)) is not None]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.23 * len(shown)), layout="constrained")
    for contestant, mark in zip(CONTESTANTS, _MARKS, strict=False):
        points = [
            (1 / peer.ratio, row)
            for row, (work, ours) in enumerate(shown)
            if (peer := figures.peer(work, ours, contestant.name)) is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), mark, label=contestant.name, **_SHARED_STYLE)
    _label(axes, shown)
    figure.savefig(file, metadata={"Date": None, "Description": digest(figures)} if file.suffix == ".svg" else None)
    pyplot.close(figure)


def digest(figures: Figures) -> str:
    """The picture's description, which identifies the figures that it shows."""
    text = json.dumps(figures.data["workloads"], sort_keys=True)
    return f"figures.json, {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def reference(figures: Figures, work: str) -> str | None:
    """Ours, to which the row relates: compiled where it is."""
    return next((name for name in (FUNC_JIT, FUNC) if figures.row(work, name)), None)


def _label(axes: Any, shown: Sequence[tuple[str, str]]) -> None:
    """The scale, the line at 1, and the names; a name in a row of eager func has that in parentheses."""
    names = [work + ("" if ours == FUNC_JIT else f" ({FUNC})") for work, ours in shown]
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.grid(axis="both", which="major", alpha=0.3)
    axes.set_xlabel(f"time divided by that of {FUNC_JIT} (right of 1: slower than {FUNC_JIT})")
    axes.legend(fontsize=8, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
