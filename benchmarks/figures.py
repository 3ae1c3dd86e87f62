"""The figures of one run: `benchmarks/figures.json`, the only source of every figure in the documentation.

`python -m benchmarks.figures` renews the generated tables, the charts and the figures in prose. With `--collect
FOLDER` it first makes the file from the measurements that `make bench` leaves in a folder.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contestants import CONTESTANTS, FUNC, FUNC_JIT, JAX_JIT, TORCH, TORCH_FUNC

ROOT = Path(__file__).parents[1]
FILE = ROOT / "benchmarks" / "figures.json"
COVERAGE = ROOT / "docs" / "coverage.md"
EXAMPLES = ROOT / "examples"

BEST, BEST_EAGER, BEST_TORCH = "the best library", "the best eager library", "PyTorch, eager"
"""Names for the fastest of several contestants; references such as NumPy by hand are not among them."""
_MODE = {contestant.name: contestant.mode for contestant in CONTESTANTS}
OURS = tuple(contestant.name for contestant in CONTESTANTS if contestant.ours)
GROUPS: Mapping[str, tuple[str, ...]] = {
    BEST: tuple(name for name, mode in _MODE.items() if mode != "reference" and name not in OURS),
    BEST_EAGER: tuple(name for name, mode in _MODE.items() if mode == "eager" and name not in OURS),
    BEST_TORCH: (TORCH_FUNC, TORCH),
}
RUNS = {"two threads": 2, "one thread": 1, "torch.compile": 2}
"""The parts of a run, each a file of measurements (`two threads.json`), and the threads of each."""

DISTURBED = 1.5
"""A median so far above the least round shows that other work took the cores."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Peer:
    """A contestant to compare with: its name, its measurement, and our time divided by its time."""

    name: str
    row: Row
    ratio: float


@dataclass(frozen=True)
class Figures:
    """The file, and the statistics that tables, charts and prose take from it."""

    data: Mapping[str, Any]

    @property
    def works(self) -> tuple[str, ...]:
        """The names of all workloads, in the order of the run."""
        return tuple(self.data["workloads"])

    def chosen(self, patterns: str = "*") -> list[str]:
        """The workloads whose names match one of the patterns, which commas separate.

        Raises ValueError if a pattern matches none.
        """
        found: set[str] = set()
        for pattern in patterns.split(","):
            matching = fnmatch.filter(self.works, pattern.strip())
            if not matching:
                raise ValueError(f"no workload matches {pattern.strip()!r}")
            found |= {*matching}
        return [name for name in self.works if name in found]

    def title(self, work: str) -> str:
        """The line that describes a workload."""
        return str(self.data["workloads"][work]["title"])

    def row(self, work: str, contestant: str, threads: int = 2) -> Row | None:
        """The measurement of a contestant, if it was timed."""
        rows: Mapping[str, Row] = self.data["workloads"][work].get(str(threads), {})
        return rows.get(contestant)

    def rows(self, work: str, threads: int = 2) -> Mapping[str, Row]:
        """The measurements of all contestants that were timed."""
        rows: Mapping[str, Row] = self.data["workloads"][work].get(str(threads), {})
        return rows

    def peer(self, work: str, mine: str, peer: str, threads: int = 2) -> Peer | None:
        """A contestant, or the fastest of a group, to compare ours with; no group with a disturbed member."""
        names = GROUPS.get(peer, (peer,))
        if {*names} & self.disturbed(work, threads):
            return None
        found = [
            Peer(name, row, row["ratios"][mine])
            for name in names
            if (row := self.row(work, name, threads)) is not None and mine in row["ratios"]
        ]
        return max(found, key=lambda each: each.ratio, default=None)

    def disturbed(self, work: str, threads: int = 2) -> set[str]:
        """The contestants whose measurements are left out, since other work on the machine disturbed them."""
        parts = [rows for part, rows in self.data["disturbed"].items() if RUNS[part] == threads]
        return {name for rows in parts for name in rows.get(work, [])}

    def ratio(self, work: str, mine: str, peer: str, threads: int = 2) -> float:
        """Our time divided by that of a peer. Raises ValueError if either was not timed."""
        found = self.peer(work, mine, peer, threads)
        if found is None:
            raise ValueError(f"{work!r}: {mine} beside {peer} was not measured on {threads} threads")
        return found.ratio

    def ratios(self, mine: str, peer: str, works: str = "*", threads: int = 2) -> list[float]:
        """Our time divided by that of a peer for each chosen workload where both were timed."""
        peers = [self.peer(work, mine, peer, threads) for work in self.chosen(works)]
        return [each.ratio for each in peers if each is not None]

    def first_calls(self, works: str = "*") -> list[float]:
        """The first call of func.jit, which compiles, divided by that of jax.jit, for each workload with both."""
        rows = [(self.row(work, FUNC_JIT), self.row(work, JAX_JIT)) for work in self.chosen(works)]
        return [mine["first call"] / peer["first call"] for mine, peer in rows if mine and peer]

    def first_call(self, work: str, contestant: str) -> float:
        """The seconds of a first call. Raises ValueError if it was not timed."""
        row = self.row(work, contestant)
        if row is None:
            raise ValueError(f"{work!r}: {contestant} was not measured")
        return float(row["first call"])

    def memory(self, works: str = "*", mine: str = FUNC_JIT, peer: str = JAX_JIT) -> list[float]:
        """Our peak memory divided by that of a peer for each chosen workload with large arrays."""
        found = []
        for work in self.chosen(works):
            ours, theirs = self.row(work, mine), self.row(work, peer)
            if ours and theirs and ours.get("peak") and theirs.get("peak"):
                found.append(ours["peak"] / theirs["peak"])
        return found

    def seconds(self, work: str, contestant: str, threads: int = 2) -> float:
        """The least time of a call. Raises ValueError if it was not timed."""
        row = self.row(work, contestant, threads)
        if row is None:
            raise ValueError(f"{work!r}: {contestant} was not measured on {threads} threads")
        return float(row["least"])

    def names(self) -> dict[str, Any]:
        """The names that an expression of `claims.toml` may use."""
        return {
            **{
                name: getattr(self, name)
                for name in ("peer", "ratio", "ratios", "first_call", "first_calls", "memory", "seconds", "chosen")
            },
            **{"commands": self.data["commands"], "rounds": self.data["rounds"]["two threads"]},
            **{"compiled": len([w for w in self.works if self.row(w, FUNC_JIT) or FUNC_JIT in self.disturbed(w)])},
            **{"func": FUNC, "jit": FUNC_JIT, "jax": JAX_JIT},
            **{"best": BEST, "best_eager": BEST_EAGER, "torch": BEST_TORCH},
            **{"disturbed": DISTURBED, "mean": geometric_mean, "median": median, "below": below, "above": above},
            **{"functions": functions, "examples": examples},
            **{"min": min, "max": max, "len": len, "all": all, "any": any, "sum": sum},
        }


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def below(limit: float, values: Iterable[float]) -> int:
    """How many values lie below a limit."""
    return sum(value < limit for value in values)


def above(limit: float, values: Iterable[float]) -> int:
    """How many values lie above a limit."""
    return sum(value > limit for value in values)


def functions(prefix: str = "") -> int:
    """How many functions the page of coverage lists under a prefix, such as `linalg.`."""
    return len(re.findall(rf"^\| `{re.escape(prefix)}", COVERAGE.read_text(encoding="utf-8"), re.MULTILINE))


def examples() -> int:
    """How many programs the gallery has."""
    return len([*EXAMPLES.rglob("*.py")])


def load(file: Path = FILE) -> Figures:
    """The committed figures."""
    return Figures(json.loads(file.read_text(encoding="utf-8")))


def summary(measurement: Row, ours: Mapping[str, Row]) -> dict[str, Any]:
    """One measurement for the file: times in seconds, memory in bytes, and our time divided by this one."""
    rounds = measurement["rounds"]
    others = {name: mine for name, mine in ours.items() if name != measurement["contestant"]}
    ratios = {name: rounded(min(mine["rounds"]) / min(rounds)) for name, mine in others.items()}
    times = {"least": min(rounds), "median": median(rounds), "first call": measurement["first_call"]}
    row: dict[str, Any] = {name: rounded(value) for name, value in times.items() if value is not None}
    return row | ({} if measurement.get("peak") is None else {"peak": measurement["peak"]}) | {"ratios": ratios}


def collect(runs: Mapping[str, Sequence[Row]], first: Row, commands: Row, date: str) -> dict[str, Any]:
    """The file's data, from the measurements of each part of a run, as `report.as_data` gives them.

    Where a part has several, the later ones replace workloads that other work on the machine disturbed. Measurements
    that are still disturbed are left out.
    """
    workloads: dict[str, dict[str, Any]] = {}
    again: set[str] = set()
    noisy: dict[str, dict[str, list[str]]] = {part: {} for part in runs}
    for part, measured in runs.items():
        rows: dict[str, dict[str, Any]] = {}
        for number, each in [(number, each) for number, run in enumerate(measured) for each in run["workloads"]]:
            timed = {row["contestant"]: row for row in each["measurements"] if row["rounds"]}
            noisy[part][each["name"]] = [name for name, row in timed.items() if disturbed(row["rounds"])]
            timed = {name: row for name, row in timed.items() if name not in noisy[part][each["name"]]}
            ours = {name: timed[name] for name in OURS if name in timed}
            rows[each["name"]] = {name: summary(row, ours) for name, row in timed.items()}
            workloads.setdefault(each["name"], {"title": each["title"]})
            again |= {each["name"]} if number else set()
        for work, found in rows.items():
            threads = str(RUNS[part])
            both = found | workloads[work].get(threads, {})
            workloads[work][threads] = {name: both[name] for name in _MODE if name in both}
    environment = dict(runs["two threads"][0]["environment"])
    for name in ("threads per contestant", "load average at the start", "rounds"):
        environment.pop(name, None)
    return {
        "date": date,
        "machine": environment,
        "rounds": {part: int(measured[0]["environment"]["rounds"]) for part, measured in runs.items()},
        "measured again": [name for name in workloads if name in again],
        "disturbed": {part: {work: names for work, names in rows.items() if names} for part, rows in noisy.items()},
        "commands": dict(commands),
        "imports": dict(first.get("imports", {})),
        "first calls": dict(first.get("first calls", {})),
        "workloads": {name: entry for name, entry in workloads.items() if any(map(entry.get, ("1", "2")))},
    }


def disturbed(rounds: Sequence[float]) -> bool:
    """Whether other work on the machine disturbed most rounds of a measurement."""
    return median(rounds) > DISTURBED * min(rounds)


def rounded(value: float) -> float:
    """A number with four significant digits."""
    return float(f"{value:.4g}")


def text_of(data: Row) -> str:
    """The file's text: a line for each contestant."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\{[^{}]*?(?:\{[^{}]*\}[^{}]*?)?\}", lambda match: re.sub(r"\s*\n\s*", " ", match[0]), text) + "\n"


def main() -> None:
    """Write everything that comes from the figures."""
    from benchmarks import bars, claims, pages, plot

    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("--collect", metavar="FOLDER", type=Path, help="make the file from measurements first")
    folder = parser.parse_args().collect
    if folder is not None:
        files = {part: sorted(folder.glob(f"{part}*.json")) for part in RUNS}
        runs = {part: [json.loads(file.read_text("utf-8")) for file in found] for part, found in files.items() if found}
        first_calls = folder / "first calls.json"
        first = json.loads(first_calls.read_text(encoding="utf-8")) if first_calls.exists() else {}
        commands = load().data["commands"]
        date = datetime.date.today().isoformat()
        FILE.write_text(text_of(collect(runs, first, commands, date)), encoding="utf-8")
    figures = load()
    for part, works in figures.data["disturbed"].items():
        print(f"{part}: other work disturbed {', '.join(works) or 'nothing'}")
    pages.write(figures)
    claims.write(figures)
    bars.draw(bars.ratios_of(figures), bars.PICTURE)
    plot.draw(figures, plot.PICTURE)


if __name__ == "__main__":
    main()
