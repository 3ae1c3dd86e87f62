"""The command line of the corpus: `python -m tools.corpus --help`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "chemicals colour control fluids ht lmfit pvlib pymap3d quantecon skrf spatialmath statsmodels thermo transforms3d"
)
"""The packages of the table in docs/numpy.md, by the names under which they are imported."""
MEMORY = 8 << 30
"""Bytes of addresses that a process may have."""


def work(options: argparse.Namespace) -> None:
    """A worker writes lines to a file: for each function that begins, for its kind, and for each outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    from tools.corpus import candidates, checks, sampling

    package = options.packages[0]
    modules = candidates.intercepted_modules(package, PACKAGES.split())
    with options.report.open("a") as report:

        def say(**entry: Any) -> None:
            print(json.dumps(entry), file=report, flush=True)

        for number, (name, function) in enumerate(candidates.candidates(package, options.seed)):
            if number < options.first or (options.only and not name.endswith(options.only)):
                continue
            say(number=number, name=name)
            with _silent():
                case = sampling.find_case(name, function)
            if case is None:
                continue
            say(case=name, form=case.form, smooth=case.smooth, compiled=candidates.is_compiled(function))
            for transform, check in checks.CHECKS.items():
                for way in ("plain", "intercept"):
                    if options.intercept and way == "plain":
                        continue
                    say(transform=transform, way=way)
                    with _silent():
                        found = checks.outcome(check, case, modules if way == "intercept" else None)
                    say(outcome=asdict(found))
                    if found.status == checks.RIGHT:
                        break
            say(end=name)
        say(done=True)


@contextlib.contextmanager
def _silent() -> Any:
    """Without the output and the warnings of functions."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        import numpy as np

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield


class Run:
    """The rows of one package, from the reports of its workers."""

    def __init__(self, package: str, options: argparse.Namespace, folder: Path) -> None:
        self.package = package
        self.options = options
        self.report = folder / f"{package}.lines"
        self.rows: list[dict[str, Any]] = []
        self.number = -1
        self.way: tuple[str, str] = ("", "")
        self.is_done = False

    def read(self, line: str) -> None:
        """Take in a line of a report."""
        entry = json.loads(line)
        if "number" in entry:
            self.number, self.way = entry["number"], ("", "")
        elif "case" in entry:
            self.rows.append({"name": entry["case"], "form": entry["form"], "smooth": entry["smooth"], "outcomes": {}})
        elif "transform" in entry:
            self.way = entry["transform"], entry["way"]
        elif "outcome" in entry:
            self.rows[-1]["outcomes"].setdefault(self.way[0], {})[self.way[1]] = entry["outcome"]
            self.way = ("", "")
        elif "end" in entry:
            self.way = ("", "")
            if self.options.limit and len(self.rows) >= self.options.limit:
                self.is_done = True
        elif "done" in entry:
            self.is_done = True

    def interrupted(self, why: str) -> None:
        """The outcome of a transform that ended its process, and of those behind it."""
        from tools.corpus import checks

        if self.way[0]:
            outcome = {"status": checks.REFUSED, "text": why, "place": ""}
            names = list(checks.CHECKS)
            for transform in names[names.index(self.way[0]) :]:
                self.rows[-1]["outcomes"].setdefault(transform, {}).setdefault(self.way[1], outcome)

    def run(self) -> None:
        """Run workers, each from the function behind the one that ended the last, until no functions are left."""
        while not self.is_done:
            self._run_worker()

    def _run_worker(self) -> None:
        self.report.write_text("")
        words = ["--worker", self.package, "--first", str(self.number + 1), "--seed", str(self.options.seed)]
        words += ["--report", str(self.report), "--only", self.options.only]
        words += ["--intercept"] if self.options.intercept else []
        environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        errors = self.report.with_suffix(".stderr").open("w+")
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.corpus", *words],
            cwd=self.report.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        before, changed = self.number, time.monotonic()
        with self.report.open() as lines:
            while not self.is_done:
                ended = process.poll() is not None
                while not self.is_done and (line := lines.readline()):
                    while not line.endswith("\n"):
                        line += lines.readline()
                    self.read(line)
                    changed = time.monotonic()
                limit = self.options.seconds if self.number > before else 10 * self.options.seconds
                if ended or time.monotonic() - changed > limit:
                    break
                time.sleep(0.05)
        if process.poll() is None:
            process.kill()
        status = process.wait()
        if not self.is_done:
            self.interrupted(
                f"Killed: after {self.options.seconds:.0f} s" if not ended else f"Crashed: status {status}"
            )
            if self.number == before:
                errors.seek(0)
                print(f"{self.package}: cannot go on: {errors.read()[-1000:]}", file=sys.stderr)
                self.is_done = True
        errors.close()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.corpus", description=sys.modules["tools.corpus"].__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("packages", nargs="*", help="names under which packages are imported")
    parser.add_argument("--all", action="store_true", help=f"these, where installed: {PACKAGES}")
    parser.add_argument("--limit", type=int, help="a sample of this many numeric functions of each package")
    parser.add_argument("--intercept", action="store_true", help="only inside func.intercept(modules=[package])")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one transform of a function (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only functions whose full names end so, with their errors in full")
    parser.add_argument("--json", type=Path, help="write all rows into this file")
    parser.add_argument("--markdown", action="store_true", help="the figures as a table in Markdown")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options)
        return 0
    from tools.corpus import classes

    packages = {}
    for package in options.packages or (PACKAGES.split() if options.all else []):
        if importlib.util.find_spec(package.partition(".")[0]) is None:
            print(f"{package}: not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="func-corpus-") as folder:
            run = Run(package, options, Path(folder))
            run.run()
        packages[package] = run.rows
        print(classes.table(package, run.rows), flush=True)
        if options.only:
            print(json.dumps(run.rows, indent=1))
    if options.json:
        options.json.write_text(json.dumps(packages, indent=1))
    if options.markdown or len(packages) > 1:
        print(classes.markdown(packages))
    return 1 if any(classes.summary(rows)["silently wrong"] for rows in packages.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
