"""The command line of the differential tester: `python -m tools.fuzz --help`."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.fuzz import cases

ROOT = Path(__file__).resolve().parents[2]
SLICE = 300.0
"""Seconds that one process runs: its memory is returned, and a process that dies loses little."""


def seconds(text: str) -> float:
    """A time such as 90, 90s, 10m or 2h in seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    return float(number) * unit


def work(name: str, seed: int, first: int, limit: float, report: Path) -> None:
    """A worker runs cases, and writes lines to a file: one for each difference, and at last the counts.

    A second file has the number of the present case. A case that takes too long ends the process, which writes the
    stacks of its threads to stderr; so does making it small.
    """
    with report.open("w") as lines, report.with_suffix(".case").open("w") as current:

        def began(number: int) -> None:
            current.seek(0)
            current.write(f"{number:12d}")
            current.flush()
            faulthandler.dump_traceback_later(cases.case_limit(), exit=True)

        def found(difference: cases.Difference) -> None:
            print(json.dumps({"difference": asdict(difference) | {"drawn": ()}}), file=lines, flush=True)
            faulthandler.dump_traceback_later(cases.case_limit(), exit=True)

        tally = cases.run_campaign(name, seed, limit, first=first, began=began, found=found)
        faulthandler.cancel_dump_traceback_later()
        counted = {"cases": tally.cases, "checks": tally.checks, "refusals": dict(tally.refusals)}
        print(json.dumps({"counted": counted}), file=lines)


def run_slice(name: str, seed: int, first: int, limit: float, folder: Path) -> dict[str, Any]:
    """Run cases in a separate process; return the counts and the differences, one more if the process died."""
    report = folder / f"{name}-{first}.lines"
    words = ["--worker", name, "--seed", str(seed), "--first", str(first)]
    words += ["--time", str(limit), "--report", str(report)]
    command = [sys.executable, "-m", "tools.fuzz", *words]
    environment = {"FUNC_VALIDATE": "1"} | os.environ
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    entries = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    differences = {entry["difference"]["place"]: entry["difference"] for entry in entries if "difference" in entry}
    counted = next((entry["counted"] for entry in entries if "counted" in entry), None)
    if counted is None:
        current = report.with_suffix(".case")
        number = int(current.read_text() or first) if current.exists() else first
        text = f"the process ended with {done.returncode}\n{done.stderr[-3000:]}"
        died = cases.Difference(name, f"{seed}:{name}:{number}", text, "", f"died {done.returncode}")
        differences[died.place] = asdict(died)
        counted = {"cases": number - first + 1, "checks": 0, "refusals": {}}
    return counted | {"differences": list(differences.values())}


def run_all(names: Sequence[str], seed: int, limit: float, jobs: int) -> list[dict[str, Any]]:
    """All campaigns, each for its share of the time; one outcome for each, with the differences of unlike places."""
    share = limit * jobs / len(names)

    def run_one(name: str) -> dict[str, Any]:
        total: dict[str, Any] = {"name": name, "cases": 0, "checks": 0, "refusals": {}, "differences": {}}
        end = time.monotonic() + share
        while (left := end - time.monotonic()) > 1:
            outcome = run_slice(name, seed, total["cases"], min(left, SLICE), Path(folder))
            total["cases"] += outcome["cases"]
            total["checks"] += outcome["checks"]
            for error, count in outcome["refusals"].items():
                total["refusals"][error] = total["refusals"].get(error, 0) + count
            for difference in outcome["differences"]:
                if total["differences"].setdefault(difference["place"], difference) is difference:
                    print(cases.Difference(**difference).report(), flush=True)
        refused = sum(total["refusals"].values())
        found = len(total["differences"])
        counts = f"{total['cases']:8d} cases {total['checks']:9d} checks {refused:7d} refused {found:4d} differences"
        print(f"{name:12s} {counts}", flush=True)
        return total

    with tempfile.TemporaryDirectory(prefix="func-fuzz-") as folder, ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run_one, names))


def main() -> int:
    """The command line."""
    known = cases.campaigns()
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Random programs against the truth.")
    parser.add_argument("names", nargs="*", metavar="campaign", help=f"some of: {', '.join(known)}")
    parser.add_argument("--time", type=seconds, default=120.0, help="for all together: 90, 10m, 2h (default: 120)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (default: 2)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--case", type=int, help="run one case again and make it small")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.seed, options.first, options.time, options.report)
        return 0
    names = options.names or known
    if unknown := set(names) - set(known):
        parser.error(f"no such campaign: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.case is not None:
        if len(names) != 1:
            parser.error("--case needs one campaign")
        run = cases.campaign(names[0]).case
        found = cases.attempt(names[0], run, f"{options.seed}:{names[0]}:{options.case}", cases.Tally())
        print(cases.shrunk(names[0], run, found).report() if found else "no difference")
        return 1 if found else 0
    for name in list(names):
        if reason := cases.why_unavailable(name):
            print(f"{name:12s} left out: {reason}", flush=True)
            names = [other for other in names if other != name]
    if not names:
        return 0
    print(f"seed {options.seed}", flush=True)
    outcomes = run_all(names, options.seed, options.time, options.jobs)
    return 1 if any(outcome["differences"] for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
