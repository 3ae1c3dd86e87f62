"""The page of results: predictions and outcomes, by workload."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.devices.contestants import FUNC_JIT
from benchmarks.tables import Table

MARKER = "<!-- Below this line: written by python -m benchmarks.devices. -->"
NOTHING = "-"


@dataclass(frozen=True)
class Prediction:
    """The model's prediction for a workload, before any run."""

    job: str
    machine: str
    seconds: float
    launches: int
    bytes: float
    operations: float
    bound: str
    """The titles of the steps that take most of the time."""


@dataclass
class Outcome:
    """The measurements of a workload: seconds of a call, by contestant, or the reason why there are none."""

    job: str
    title: str
    seconds: dict[str, float] = field(default_factory=dict)
    first_call: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def predictions_table(predictions: Sequence[Prediction], titles: Mapping[str, str]) -> Table:
    """The predictions alone."""
    rows = tuple(
        (
            each.job,
            titles.get(each.job, ""),
            seconds(each.seconds),
            str(each.launches),
            f"{each.bytes / 1e6:,.1f} MB",
            each.bound,
        )
        for each in predictions
    )
    machine = predictions[0].machine if predictions else "a device"
    header = ("work", "what", f"predicted on {machine}", "kernels", "bytes moved", "most of it")
    return Table("Predictions", header, rows)


def outcomes_table(outcomes: Sequence[Outcome], predictions: Mapping[str, Prediction], copy_bandwidth: float) -> Table:
    """Every workload: func.jit, the prediction, the peers, and the share of the copy bandwidth."""
    peers = sorted({name for outcome in outcomes for name in outcome.seconds if name != FUNC_JIT})
    rows = []
    for outcome in outcomes:
        mine, prediction = outcome.seconds.get(FUNC_JIT), predictions.get(outcome.job)
        ratio = NOTHING if mine is None or prediction is None else f"{mine / prediction.seconds:.2f}"
        share = NOTHING
        if mine is not None and prediction is not None and copy_bandwidth:
            share = f"{100 * prediction.bytes / mine / copy_bandwidth:.0f} %"
        rows.append(
            (
                outcome.job,
                seconds(mine),
                seconds(None if prediction is None else prediction.seconds),
                ratio,
                share,
                *(_against(outcome.seconds.get(name), mine) for name in peers),
            )
        )
    header = ("work", FUNC_JIT, "predicted", "outcome / predicted", "of copy bandwidth", *peers)
    remarks = tuple(
        f"{outcome.job}, {name}: left out, {words}" for outcome in outcomes for name, words in outcome.left_out.items()
    )
    return Table("Outcomes beside predictions", header, tuple(rows), remarks)


def _against(peer: float | None, mine: float | None) -> str:
    if peer is None:
        return NOTHING
    return seconds(peer) if mine is None else f"{seconds(peer)} ({mine / peer:.2f})"


def bars_table(outcomes: Sequence[Outcome], predictions: Mapping[str, Prediction], copy_bandwidth: float) -> Table:
    """The aims: first among compiled peers, 80 % of the copy bandwidth, a small replay in 10 µs."""
    rows = []
    for outcome in outcomes:
        mine = outcome.seconds.get(FUNC_JIT)
        if mine is None:
            rows.append((outcome.job, "measured", NOTHING, "MISSED"))
            continue
        for peer in ("jax.jit", "torch.compile"):
            other = outcome.seconds.get(peer)
            verdict = "not measured" if other is None else "reached" if mine <= other else "MISSED"
            rows.append(
                (outcome.job, f"first against {peer}", NOTHING if other is None else f"{mine / other:.2f}", verdict)
            )
        prediction = predictions.get(outcome.job)
        if prediction is not None and prediction.bound.startswith("memory") and copy_bandwidth:
            share = prediction.bytes / mine / copy_bandwidth
            rows.append((outcome.job, "80 % of copy bandwidth", f"{100 * share:.0f} %", _verdict(share >= 0.8)))
        if outcome.job == "small gradient":
            rows.append((outcome.job, "replay in 10 µs", seconds(mine), _verdict(mine <= 10e-6)))
    return Table("Bars", ("work", "bar", "measured", "verdict"), tuple(rows))


def _verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"


def page_text(
    environment: Mapping[str, str],
    outcomes: Sequence[Outcome],
    predictions: Sequence[Prediction],
    copy_bandwidth: float,
    checks: Mapping[str, str],
) -> str:
    """The measured part of the page."""
    by_job = {each.job: each for each in predictions}
    parts = [
        f"Measured on {environment['device']}.",
        "",
        *[f"- {name}: {value}" for name, value in environment.items()],
    ]
    parts += [f"- {name}: {value}" for name, value in checks.items()]
    parts += ["", outcomes_table(outcomes, by_job, copy_bandwidth).markdown(), ""]
    parts += [bars_table(outcomes, by_job, copy_bandwidth).markdown()]
    return "\n".join(parts)


def seconds(value: float | None) -> str:
    """A time in the unit that fits it."""
    if value is None:
        return NOTHING
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return f"{value * factor:.3g} {unit}"
    raise AssertionError


def as_data(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Predictions as plain data for JSON."""
    return [asdict(each) for each in predictions]
