"""Figures in prose: `claims.toml` ties the words of the pages to `figures.json`.

A claim has the page, the words with `{}` for each number, and an expression for each number. Without the comparisons in
`holds` the words would be false. `python -m benchmarks.figures` puts the present numbers into the pages; a test
compares them, and looks for figures that no claim covers.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import ROOT, Figures

FILE = ROOT / "benchmarks" / "claims.toml"
PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("index", "quickstart", "comparison", "jit", "performance", "performance-howto")),
    *(f"docs/from_{name}.md" for name in ("autograd", "jax", "pytorch", "scipy")),
)
"""The pages whose figures must come from the run."""

NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = (
    r"(?:[nµum]s|s|(?:nano|micro|milli)?seconds?|minutes?|hours?|[KMG]i?B(?:/s)?|kB|bytes|%|×|x|times|fold|Gflop/s"
    r"|workloads?|rows|functions|programs|examples|scripts|tests)"
)
_PART = r"(?:half|third|thirds|quarter|quarters|fifth|sixth|eighth|tenth|twentieth|hundredth|thousandth)"
_FEW = r"(?:two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|hundred|several|many)"
_TIME = r"(?:[a-z]*seconds?|minutes?|hours?)"
_SPELLED = (
    rf"\b(?:twice|thrice) (?:as|the)\b|\b(?:doubl|tripl)es? (?:the|its)\b|\b{_FEW} times\b"
    rf"|\b(?:(?:an?|one|two|three) )?{_PART} (?:of|as)\b|\b(?:tens|dozens|hundreds|thousands) of (?:{_TIME}|times)\b"
    rf"|\b(?:in|within|takes?|took|about|under|over|than|for|half|of) (?:an?|a few|{_FEW}) {_TIME}\b"
    rf"|\b(?!several|many){_FEW} (?:workloads|functions|programs|examples|scripts)\b"
)
_DECIMAL = r"(?<![\w.])\d[\d,]*\.\d+(?![\w.]*\d)"
FIGURE = re.compile(rf"(?<![\w.,]){NUMBER}[ -]?{_UNIT}(?!\w)|{_DECIMAL}|{_SPELLED}", re.IGNORECASE)
"""Text that looks like a figure: a number with a unit or a counted thing, a decimal fraction, a spelled multiple."""
_VERSION = re.compile(r"(?:Python|JAX|PyTorch|torch|autograd|NumPy|SciPy|CUDA|Version|Apache License),? \d+(?:\.\d+)*")
_HIDDEN = re.compile(
    r"^(?P<fence>`{3,}|~~~+).*?^(?P=fence)[ \t]*$"  # code
    r"|<!-- begin (?P<name>[^>]*) -->.*?<!-- end (?P=name) -->"  # generated tables
    r"|<!--.*?-->|`[^`\n]*`|(?<=\])\([^)]*\)",  # comments, code in a line, targets of links
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Claim:
    """Words of a page, the expressions of their numbers, and what must hold."""

    page: str
    words: str
    values: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    def computed(self, figures: Figures) -> list[Any]:
        """The numbers of these figures. The file of claims is part of the repository, so it may be evaluated."""
        return [evaluated(expression, figures) for expression in self.values]

    def filled(self, figures: Figures) -> str:
        """The words with the numbers of these figures. Raises ValueError if a comparison is false."""
        false = [expression for expression in self.holds if not evaluated(expression, figures)]
        if false:
            raise ValueError(f"{self.page}: {self.words!r} is no longer true: {'; '.join(false)}")
        return self.words.format(*self.computed(figures))

    def pattern(self) -> re.Pattern[str]:
        """Where the page has these words, with any numbers and any line breaks."""
        parts = []
        for literal, name, _, _ in string.Formatter().parse(self.words):
            parts.append(r"\s+".join(map(re.escape, re.split(r"\s+", literal))))
            parts.append(f"({NUMBER})" if name is not None else "")
        return re.compile("".join(parts))


def evaluated(expression: str, figures: Figures) -> Any:
    """The value of an expression of the file of claims."""
    return eval(expression, {"__builtins__": {}} | figures.names())


def load(file: Path = FILE) -> list[Claim]:
    """The claims of the file."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["claim"]
    return [Claim(row["page"], row["words"], tuple(row.get("values", ())), tuple(row.get("holds", ()))) for row in rows]


def renewed(text: str, claims: Iterable[Claim], figures: Figures) -> str:
    """A page with the present numbers in the words of its claims. Raises ValueError where it lacks the words."""
    for claim in claims:
        numbers = [part.strip() for part in numbers_of(claim, figures)]
        found = [*claim.pattern().finditer(text)]
        if len(found) != 1:
            raise ValueError(f"{claim.page} has {claim.words!r} {len(found)} times")
        match = found[0]
        for group in range(len(numbers), 0, -1):
            text = text[: match.start(group)] + numbers[group - 1] + text[match.end(group) :]
    return text


def numbers_of(claim: Claim, figures: Figures) -> list[str]:
    """The numbers as the words write them."""
    specs = [spec or "" for _, name, spec, _ in string.Formatter().parse(claim.words) if name is not None]
    return [format(value, spec) for value, spec in zip(claim.computed(figures), specs, strict=True)]


def spans(text: str, claims: Iterable[Claim]) -> Iterator[tuple[int, int]]:
    """Where a page has the words of its claims."""
    for claim in claims:
        yield from [match.span() for match in claim.pattern().finditer(text)]


def unclaimed(text: str, claims: Iterable[Claim]) -> list[str]:
    """The figures of a page that no claim covers, each with the words around it."""
    covered = [*spans(text, claims)]
    shown = _HIDDEN.sub(lambda match: " " * len(match[0]), text)
    shown = _VERSION.sub(lambda match: " " * len(match[0]), shown)
    found = [
        match.span()
        for match in FIGURE.finditer(shown)
        if not any(first <= match.start() and match.end() <= last for first, last in covered)
    ]
    return [" ".join(text[max(first - 40, 0) : last + 30].split()) for first, last in found]


def write(figures: Figures, root: Path = ROOT) -> None:
    """Put the present numbers into all pages, and name the words that are no longer true."""
    claims, false = load(), []
    for page in PAGES:
        own = [claim for claim in claims if claim.page == page]
        file = root / page
        file.write_text(renewed(file.read_text(encoding="utf-8"), own, figures), encoding="utf-8")
        for claim in own:
            try:
                claim.filled(figures)
            except ValueError as error:
                false.append(str(error))
    if false:
        raise SystemExit("\n".join(["Rewrite these words:", *false]))
