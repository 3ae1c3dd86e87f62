"""Check the style of pages and docstrings: `python -m tools.prose [PATH ...]`.

The rules are rows of `tools/prose.toml`; without paths the check reads the folders and files that its `checked` lists.
Code, formulas, columns, addresses of links and doctests are not prose. `--count` prints the number for each path.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import inspect
import io
import itertools
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
RULES = Path(__file__).with_suffix(".toml")
CODE = "`…`"
"""Replaces code and formulas in prose; it counts as one word."""
CODE_LIST = re.compile(r"`…`(?:,? (?:and |or )?`…`)+")
"""A list of names, which counts as one word, too."""
WORD = re.compile(r"[^\W\d_]{2,}|\b[aAI]\b|`…`")
SENTENCE_END = re.compile(r"[.!?][\"')\]*]*\s+(?=[\"'(\[*]*(?:[A-Z`]|func\b))")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|[cC]f|vs|al|etc|[eE]q|[fF]ig|[A-Z])\.$")
CLAUSE_END = re.compile(r"[;:]\s+")


@dataclass(frozen=True)
class Rule:
    """A row of the table: a pattern or a limit of words, the advice, and a pair of examples."""

    name: str
    advice: str
    bad: str
    good: str
    pattern: re.Pattern[str] | None
    words: int
    opens_clause: bool

    def matches(self, sentence: str) -> Iterator[tuple[int, str]]:
        """Position and text of each breach in a sentence."""
        if self.pattern is None:
            if (count := len(WORD.findall(CODE_LIST.sub(CODE, sentence)))) > self.words:
                yield 0, f"{count} words: {sentence}"
            return
        if not self.opens_clause:
            for match in self.pattern.finditer(sentence):
                yield match.start(), match[0]
            return
        for start in (0, *[match.end() for match in CLAUSE_END.finditer(sentence)]):
            clause = sentence[start:].lstrip("*_\"'(")
            if self.pattern.match(clause):
                yield start, " ".join(clause.split()[:8])


@cache
def rules() -> tuple[Rule, ...]:
    """The rows of the table."""
    return tuple(
        Rule(
            name=row["name"],
            advice=row["advice"],
            bad=row["bad"],
            good=row["good"],
            pattern=re.compile(row["pattern"], re.IGNORECASE) if "pattern" in row else None,
            words=row.get("words", 0),
            opens_clause=row.get("opens_clause", False),
        )
        for row in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]
    )


def checked() -> list[str]:
    """The paths that the check reads by default."""
    paths: list[str] = tomllib.loads(RULES.read_text(encoding="utf-8"))["checked"]
    return paths


class Finding(NamedTuple):
    """A breach of a rule."""

    line: int
    rule: Rule
    text: str


@dataclass
class Passage:
    """A paragraph, heading, item or cell: its prose, and the line of each part."""

    text: str = ""
    _starts: list[int] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)

    def add(self, text: str, line: int) -> None:
        """Append prose of this line."""
        self._starts.append(len(self.text))
        self._lines.append(line)
        self.text += text

    def line(self, position: int) -> int:
        """The line of a position in the text."""
        return self._lines[bisect.bisect_right(self._starts, position) - 1]

    def sentences(self) -> Iterator[tuple[int, str]]:
        """Each sentence with its position."""
        start = 0
        for end in SENTENCE_END.finditer(self.text):
            if not ABBREVIATION.search(self.text[: end.start() + 1]):
                yield start, self.text[start : end.end()].rstrip()
                start = end.end()
        yield start, self.text[start:].rstrip()


def without_formulas(text: str) -> str:
    """Markdown with its formulas and colon fences masked, and a full stop between a term and its definition."""
    masked = re.sub(r"\$\$.*?\$\$", lambda match: CODE + "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    masked = re.sub(r"(?<![\\$`\w])\$(?=\S)[^$\n`]*\$(?!\d)", CODE, masked)
    masked = re.sub(r"^:{3,}.*$", "", masked, flags=re.MULTILINE)
    return re.sub(r"\n: ", ".\n  ", masked)


def passages_of_markdown(text: str) -> Iterator[Passage]:
    """The prose of a page."""
    for token in MarkdownIt("commonmark").enable("table").parse(without_formulas(text)):
        if token.type == "inline" and token.map:
            yield passage_of(token.children or [], token.map[0] + 1)


def passage_of(tokens: Iterable[Token], line: int) -> Passage:
    """The prose of the inline tokens of a block that starts at this line."""
    passage = Passage()
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            line += 1
            passage.add(" ", line)
        elif token.type == "text":
            passage.add(token.content, line)
        elif token.type == "code_inline":
            passage.add(CODE, line)
        elif token.type == "image":
            passage.add(token.content, line)
    return passage


RST_CODE = re.compile(r"``[^`]+``|(?::[\w:]+:)?`[^`]+`_{0,2}")
SECTION = re.compile(r"^[A-Z]\w*:$")
ITEM = re.compile(r"^(?:[-*] +|\d+\. +|\.\. +|\*{0,2}[\w.]+(?:, \*{0,2}\w+)*(?: \([^)]*\))?: +(?=[A-Z`(\"]|\w+\())")
COLUMNS = re.compile(r"\S {3,}\S")
UNDERLINE = re.compile(r"^(\W)\1{2,}[\s=]*$")
OTHER_SECTIONS = ("Shapes:", "Source:", "Sources:", "Math:", "References:")


def passages_of_docstring(text: str, line: int) -> Iterator[Passage]:
    """The prose of a docstring whose first line has this number."""
    passage, skipped_indent, in_session = Passage(), -1, False
    line += len(text) - len(text.lstrip("\n"))
    lines = inspect.cleandoc(text).split("\n")
    for number, (raw, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), line):
        content = raw.strip()
        indent = len(raw) - len(raw.lstrip())
        in_session = content.startswith(">>>") or (in_session and bool(content))
        if content and indent <= skipped_indent:
            skipped_indent = -1
        opens_code = content.endswith("::" if following else ":")
        is_other = content.startswith((".. ", *OTHER_SECTIONS))
        is_frame = SECTION.match(content) or UNDERLINE.match(content) or COLUMNS.search(content)
        if not content or in_session or is_other or is_frame or skipped_indent >= 0:
            yield passage
            passage = Passage()
            if is_other and skipped_indent < 0:
                skipped_indent = indent
            continue
        if content.startswith("| "):
            for cell in content.strip("| ").split(" | "):
                yield passage
                passage = Passage()
                passage.add(RST_CODE.sub(CODE, cell), number)
            continue
        if item := ITEM.match(content):
            yield passage
            passage = Passage()
            content = content[item.end() :]
        passage.add(RST_CODE.sub(CODE, content) + " ", number)
        if opens_code:
            yield passage
            passage, skipped_indent = Passage(), indent
    yield passage


def passages_of_python(text: str) -> Iterator[Passage]:
    """The prose of the docstrings of a module and its attributes, and of the text cells of a gallery program."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from passages_of_docstring(node.value.value, node.lineno)
    for line, words in text_cells(text):
        yield from passages_of_docstring(words, line)


def text_cells(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment that follows a `# %%` line."""
    comments = {
        token.start[0]: token.string.removeprefix("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and token.start[1] == 0
    }
    for line in [line for line, comment in comments.items() if comment.startswith(" %%")]:
        numbers = itertools.takewhile(comments.__contains__, itertools.count(line + 1))
        yield line + 1, "\n".join([comments[number] for number in numbers])


def findings(text: str, suffix: str) -> list[Finding]:
    """The breaches in the text of a file with this suffix, by line."""
    passages = passages_of_python(text) if suffix == ".py" else passages_of_markdown(text)
    return sorted(
        (
            Finding(passage.line(start + position), rule, found)
            for passage in passages
            if passage.text.strip()
            for start, sentence in passage.sentences()
            for rule in rules()
            for position, found in rule.matches(sentence)
        ),
        key=lambda finding: finding.line,
    )


def files(paths: Iterable[str]) -> Iterator[Path]:
    """The pages and modules under the paths, each once; links of folders are not followed."""
    seen = set()
    for name in paths:
        path = ROOT / name
        if not path.exists():
            raise SystemExit(f"{name} does not exist")
        found = [path] if path.is_file() else sorted([*path.rglob("*.md"), *path.rglob("*.py")])
        for file in found:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def main() -> int:
    """Print the findings; the status is 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", help="files and folders, from the root of the project")
    parser.add_argument("--count", action="store_true", help="print the number of findings of each path")
    options = parser.parse_args()
    paths = options.paths or checked()
    total = 0
    for name in paths:
        counts: Counter[str] = Counter()
        for path in files([name]):
            for line, rule, found in findings(path.read_text(encoding="utf-8"), path.suffix):
                counts[rule.name] += 1
                if not options.count:
                    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                    print(f"{shown}:{line}: {rule.name}: {found} -> {rule.advice}")
        total += counts.total()
        if options.count:
            print(f"{counts.total():6} {name}  ", ", ".join(f"{rule} {count}" for rule, count in counts.most_common()))
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
