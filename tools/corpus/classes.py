"""The tables: how many functions are right, and the errors that refuse the others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tools.corpus.checks import CHECKS, REFUSED, RIGHT, WRONG

Row = dict[str, Any]
"""A function: name, form of its arguments, and the outcomes by transform, plain and intercepted."""


def normalised(text: str) -> str:
    """The first line of an error, without the names, numbers and lines that differ from case to case."""
    line = text.strip().partition("\n")[0]
    line = re.sub(r"(,? at | in )?\S*\w+\.py:\d+.*", "", line)
    line = re.sub(r"NaN in place of numbers.*", "NaN in place of numbers", line)
    line = re.sub(r"`[^`]*`", "`…`", line)
    line = re.sub(r"'[^']*'", "'…'", line)
    line = re.sub(r"\([\d, ]+\)", "(…)", line)
    return re.sub(r"\b\d+(\.\d+)?\b", "#", line)[:160]


def status_of(row: Row, transform: str) -> str:
    """The outcome of a transform: wrong if it is so in either way, right if in one of them."""
    ways = [way["status"] for way in row["outcomes"].get(transform, {}).values()]
    if WRONG in ways:
        return WRONG
    return RIGHT if RIGHT in ways else REFUSED


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """How many functions are right in each transform and in all of them, and how many are wrong in some."""
    statuses = [[status_of(row, transform) for transform in CHECKS] for row in rows]
    counts: dict[str, Any] = {
        transform: sum(status[place] == RIGHT for status in statuses) for place, transform in enumerate(CHECKS)
    }
    counts["every transform"] = sum(all(part == RIGHT for part in status) for status in statuses)
    counts["silently wrong"] = sum(WRONG in status for status in statuses)
    counts["functions"] = len(rows)
    return counts


def table(name: str, rows: Sequence[Row]) -> str:
    """The figures of a package and its classes of errors, the most frequent first."""
    counts = summary(rows)
    total = max(counts["functions"], 1)
    lines = [f"{name}: {counts['functions']} functions"]
    for transform in CHECKS:
        statuses = [status_of(row, transform) for row in rows]
        plain = sum(row["outcomes"].get(transform, {}).get("plain", {}).get("status") == RIGHT for row in rows)
        right, wrong, refused = [statuses.count(status) for status in (RIGHT, WRONG, REFUSED)]
        lines.append(
            f"  {transform:16s} {right:5d} right ({right / total:4.0%}; {plain} without intercept)"
            f" {wrong:4d} silently wrong {refused:5d} refused"
        )
    every, wrong = counts["every transform"], counts["silently wrong"]
    lines.append(f"  {'every transform':16s} {every:5d} right ({every / total:4.0%})  {wrong} wrong in some")
    return "\n".join([*lines, *_wrong_lines(rows), *_class_lines(rows)])


def _wrong_lines(rows: Sequence[Row]) -> list[str]:
    return [
        f"  WRONG {row['name']} ({row['form']}) {transform} {way}: {found['text']}"
        for row in rows
        for transform, ways in row["outcomes"].items()
        for way, found in ways.items()
        if found["status"] == WRONG
    ]


def _class_lines(rows: Sequence[Row]) -> list[str]:
    functions: dict[str, set[str]] = defaultdict(set)
    transforms: dict[str, set[str]] = defaultdict(set)
    examples: dict[str, str] = {}
    for row in rows:
        for transform, ways in row["outcomes"].items():
            if status_of(row, transform) != REFUSED:
                continue
            found = list(ways.values())[-1]
            kind = normalised(found["text"])
            functions[kind].add(row["name"])
            transforms[kind].add(transform)
            examples.setdefault(kind, f"{row['name']} [{found['place']}]")
    lines = []
    for kind in sorted(functions, key=lambda kind: -len(functions[kind])):
        places = ", ".join(transform for transform in CHECKS if transform in transforms[kind])
        lines += [f"  [{len(functions[kind])}] {kind}", f"      {places}; {examples[kind]}"]
    return lines


def markdown(packages: dict[str, list[Row]]) -> str:
    """The table of docs/numpy.md."""
    lines = ["| package | functions | grad | jit(grad) | every transform | silently wrong |", "|---" * 6 + "|"]
    together = [row for rows in packages.values() for row in rows]
    for name, listed in (packages | {"together": together}).items():
        counts = summary(listed)
        share = [f"{counts[key] / max(len(listed), 1):.0%}" for key in ("grad", "jit(grad)", "every transform")]
        lines.append(f"| {name} | {len(listed)} | {' | '.join(share)} | {counts['silently wrong']} |")
    return "\n".join(lines)
