"""Mutation check: small faults are planted in the source, one at a time, and the tests named for each must notice.

    python -m tools.mutants                    # all mutants of tools/faults/*.toml
    python -m tools.mutants --only cumsum      # those whose name contains the word
    python -m tools.mutants --jobs 2

A mutant that no test notices is printed as a survivor, and the exit status is 1. The working tree is not touched: every
job has a copy of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "tools" / "faults"
FOLDERS = ("func", "interpreters", "backends", "tests", "tools", "docs", "examples")
FILES = ("pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md")
LIMIT = 600
"""Seconds that the tests of one mutant may take; a fault that makes them hang is noticed, too."""


class Mutant(NamedTuple):
    """A fault: in `file`, the text `before` (which occurs once) becomes `after`; `tests` are expected to notice."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """The source with the fault.

        Raises: ValueError where the text does not occur exactly once.
        """
        count = source.count(self.before)
        if count != 1:
            raise ValueError(f"mutant {self.name!r}: its text occurs {count} times in {self.file}")
        return source.replace(self.before, self.after)


def mutants(tables: Path = TABLES) -> list[Mutant]:
    """The mutants of all tables in a folder."""
    entries = [entry for table in sorted(tables.glob("*.toml")) for entry in tomllib.loads(table.read_text())["mutant"]]
    return [Mutant(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


def copy_tree(folder: Path) -> Path:
    """A copy of the working tree, without what builds and tests have left in it."""
    ignored = shutil.ignore_patterns("__pycache__", "_build", "output", "*.egg-info")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def is_noticed(mutant: Mutant, tree: Path) -> bool:
    """Whether the mutant's tests fail in a tree that has the fault."""
    path = tree / mutant.file
    source = path.read_text()
    path.write_text(mutant.planted(source))
    environment = os.environ | {"PYTHONPATH": str(tree), "FUNC_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(source)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"mutant {mutant.name!r}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}")
    return done.returncode != 0


def survivors(chosen: Sequence[Mutant], jobs: int) -> list[Mutant]:
    """The mutants that their tests do not notice; prints a line for each mutant."""
    with tempfile.TemporaryDirectory(prefix="func-mutants-") as base, ThreadPoolExecutor(jobs) as pool:
        trees: Queue[Path] = Queue()
        for number in range(jobs):
            folder = Path(base, str(number))
            folder.mkdir()
            trees.put(copy_tree(folder))

        def check(mutant: Mutant) -> bool:
            tree, start = trees.get(), time.monotonic()
            try:
                noticed = is_noticed(mutant, tree)
            finally:
                trees.put(tree)
            print(
                f"{'noticed ' if noticed else 'SURVIVES'} {time.monotonic() - start:5.0f} s  {mutant.name}", flush=True
            )
            return noticed

        results = list(pool.map(check, chosen))
    return [mutant for mutant, noticed in zip(chosen, results, strict=True) if not noticed]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Plant small faults, one at a time, and look whether tests notice.")
    parser.add_argument("--only", default="", help="only mutants whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if options.only in mutant.name]
    alive = survivors(chosen, options.jobs)
    print(f"{len(chosen)} mutants, {len(alive)} survivors")
    for mutant in alive:
        print(f"  {mutant.name}: {mutant.file}, tests {' '.join(mutant.tests)}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
