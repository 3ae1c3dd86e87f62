"""The bar chart of README, docs/_static/peers.svg; `python -m benchmarks.figures` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contestants import BY_HAND, FUNC_JIT, JAX_JIT, TORCH_COMPILE
from benchmarks.figures import BEST_TORCH, ROOT, Figures

PICTURE = ROOT / "docs" / "_static" / "peers.svg"
PEERS: Mapping[str, tuple[str, str]] = {
    "JAX, jax.jit": (JAX_JIT, "#3465a4"),
    "PyTorch, torch.compile": (TORCH_COMPILE, "#7d2a1d"),
    "PyTorch, eager": (BEST_TORCH, "#d9806c"),
    "NumPy, derivative by hand": (BY_HAND, "#9a9a8f"),
}
"""The bars of each group: the words of the legend, the contestant, the colour."""
SHOWN: Mapping[str, str] = {
    "rosenbrock 100": "Hessian, 100 variables\n(Rosenbrock function)",
    "black-scholes 100k": "100,000 option prices\nwith all greeks",
    "logistic 10k": "logistic regression,\n10,000 rows of 100",
    "rnn scan": "recurrent network,\n200 steps",
    "mlp 1024": "training an MLP,\nbatches of 1024",
    "transformer large": "training a large\ntransformer block",
    "mlp hvp": "Hessian-vector product,\nMLP of a million weights",
}
"""The workloads of the chart, one of each kind, and their names for readers."""


def ratios_of(figures: Figures) -> dict[str, list[float | None]]:
    """For each workload of the chart the times of the peers, divided by that of func.jit."""
    peers = [name for name, _ in PEERS.values()]
    found = {work: [figures.peer(work, FUNC_JIT, name) for name in peers] for work in SHOWN}
    return {work: [1 / peer.ratio if peer else None for peer in row] for work, row in found.items()}


def draw(rows: Mapping[str, Sequence[float | None]], file: Path) -> None:
    """Horizontal bars, a group for each workload. A bar begins at func.jit's time, so its length is the factor."""
    from matplotlib import use

    use("svg")
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "func", "font.size": 9})
    figure, axes = pyplot.subplots(figsize=(8, 5.6), layout="constrained")
    measured = [number for number in range(len(PEERS)) if any(ratios[number] is not None for ratios in rows.values())]
    height = 0.84 / len(measured)
    for order, number in enumerate(measured):
        label, (_, color) = [*PEERS.items()][number]
        shift = (order - (len(measured) - 1) / 2) * height
        bars = [(row + shift, ratios[number]) for row, ratios in enumerate(rows.values())]
        timed = [(place, ratio) for place, ratio in bars if ratio is not None]
        places, widths = [place for place, _ in timed], [ratio - 1 for _, ratio in timed]
        axes.barh(places, widths, height * 0.92, left=1, color=color, label=label)
        for place, ratio in timed:
            at = (max(ratio, 1.0), place)
            axes.annotate(times(ratio), at, (3, 0), textcoords="offset points", va="center", fontsize=7)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [SHOWN[work] for work in rows])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xscale("log")
    known = [ratio for ratios in rows.values() for ratio in ratios if ratio is not None]
    axes.set_xlim(min(*known, 1.0) * 0.95, max(known) * 1.6)
    axes.set_xticks([1, 10, 100], ["1\nfunc.jit", "10 times\nas long", "100 times\nas long"])
    axes.set_xlabel("time of a call, as a multiple of func.jit's (logarithmic)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(PEERS), frameon=False, fontsize=8)
    figure.savefig(file, metadata={"Date": None, "Description": "; ".join(map(described, rows.items()))})
    pyplot.close(figure)


def times(ratio: float) -> str:
    """A factor with two digits below ten."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def described(row: tuple[str, Sequence[float | None]]) -> str:
    """The numbers of one workload, as the picture's description has them."""
    name, ratios = row
    return f"{name}: {', '.join(['-' if ratio is None else f'{ratio:.3g}' for ratio in ratios])}"
