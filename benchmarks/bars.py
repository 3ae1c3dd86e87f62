"""The bar chart of README, from the page of measurements: `python -m benchmarks.bars` renews docs/_static/peers.svg."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "peers.svg"
PAGE = ROOT / "docs" / "performance.md"
HEADER = "| work | func.jit | jax.jit | best of torch | by hand |"
PEERS = {"jax.jit": "#3465a4", "best of torch": "#c8553d", "NumPy by hand": "#9a9a8f"}


SHOWN = (
    "rosenbrock 100", "black-scholes 100k", "logistic 10k", "mlp 1024", "transformer small", "rnn scan", "mlp hvp",
)  # fmt: skip
"""The workloads of the chart: one of each kind."""


def compiled_rows(page: str) -> dict[str, list[float | None]]:
    """For each workload of the chart the times of the peers, divided by func.jit's, as the page's table has them."""
    rows: dict[str, list[float | None]] = {}
    for line in page[page.index(HEADER) :].splitlines()[2:]:
        if not line.startswith("|"):
            break
        name, _, *ratios = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name] = [1 / float(ratio) if re.fullmatch(r"[\d.]+", ratio) else None for ratio in ratios[: len(PEERS)]]
    return {name: rows[name] for name in SHOWN}


def draw(rows: dict[str, list[float | None]], file: Path) -> None:
    """Horizontal bars on a logarithmic scale, a group for each workload."""
    from matplotlib import use

    use("svg")
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "func", "font.size": 9})
    figure, axes = pyplot.subplots(figsize=(8, 4.6), layout="constrained")
    height = 0.8 / len(PEERS)
    for number, (peer, color) in enumerate(PEERS.items()):
        for row, ratios in enumerate(rows.values()):
            ratio = ratios[number]
            if ratio is None:
                continue
            place = row + (number - (len(PEERS) - 1) / 2) * height
            axes.barh(place, ratio, height, left=0, color=color, label=peer if row == 0 else None)
            at = (max(ratio, 1.0), place)
            axes.annotate(f"{ratio:.3g}", at, (3, 0), textcoords="offset points", va="center", fontsize=7)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.5, 1000)
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.set_xlabel("time divided by that of func.jit (right of the line: slower than func)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(file, metadata={"Date": None, "Description": "; ".join(map(described, rows.items()))})
    pyplot.close(figure)


def described(row: tuple[str, list[float | None]]) -> str:
    """The numbers of one workload, as the picture's description has them."""
    name, ratios = row
    return f"{name}: {', '.join(['-' if ratio is None else f'{ratio:.3g}' for ratio in ratios])}"


def main() -> None:
    """Draw the picture of the table as it is now."""
    draw(compiled_rows(PAGE.read_text(encoding="utf-8")), PICTURE)


if __name__ == "__main__":
    main()
