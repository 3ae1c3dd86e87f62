"""The style check finds a planted sentence for each of its rules, on its line, and accepts good English."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("markdown_it")

from tools import prose

ROOT = Path(__file__).resolve().parents[2]
RULES = prose.rules()


def found(text: str, suffix: str = ".md") -> list[tuple[int, str]]:
    """The line and the rule of each finding."""
    return [(finding.line, finding.rule.name) for finding in prose.findings(text, suffix)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_its_bad_sentence_and_accepts_the_good_one(rule: prose.Rule) -> None:
    assert found(f"Two words.\nMore words.\n\n{rule.bad}\n") == [(4, rule.name)]
    assert found(f'"""A module."""\n\n\ndef f():\n    """One.\n\n    {rule.bad}\n    """\n', ".py") == [(7, rule.name)]
    assert found(rule.good) == []


def test_rules_have_separate_names_and_advice() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.advice and (rule.pattern is None) == bool(rule.words) for rule in RULES)


def test_a_limit_counts_words() -> None:
    (limit,) = [rule.words for rule in RULES if rule.words]
    assert found("word " * (limit - 1) + "`code`.\n") == []
    assert found("word " * limit + "`code`.\n") == [(1, "long-sentence")]
    assert found("word " * limit + "$x^2 + y$ = 3.5.\n") == [(1, "long-sentence")]
    assert found("word " * (limit - 1) + "`a`, `b` and `c`.\n") == []
    assert found(("Word" + " word" * 20 + " at 1.5, e.g. Here. ") * 3) == []
    assert found(("Word" + " word" * 20 + " by J. Smith of x. ") * 3) == []


PAGE = """# Title

A session prints so
many lines.

```python
>>> "a session prints so many lines"
```

$$
so many
$$

:::{container} so many
:::

| head | `so many` |
|---|---|
| [so many](so%20many.md "so many") | cell |

- one
- which is one: what is left
  so many

**term**
: Which is not a clause of the term.
"""


def test_lines_of_a_page_without_its_code() -> None:
    assert found(PAGE) == [
        (3, "so-many"),
        (19, "so-many"),
        (22, "relative-headline"),
        (22, "relative-headline"),
        (23, "so-many"),
        (26, "relative-headline"),
    ]


MODULE = '''"""First line.

    >>> "so many"
    so many

Shapes:
    x: so many

Source: A. Author (1990), so many.

Math::

    so many

    f(x)    is so many

Then so many, or:

    so many
"""

LIMIT = 3
"""So many attributes."""

text = "so many"

# so many


class C:
    def f(self):
        """
        Args:
            x: What is passed.
            kind: "which is a value".
            f: f(x) is a function.
            so_many: f(x) or so many.

        | which is a | cell of a table |
        |---|---|
        | a cell | so many |
            so_many: Returns ``so many`` and `so many`.
        """


# %%
# Title
# =====
# So many.
'''


def test_lines_of_a_module_without_its_code() -> None:
    assert found(MODULE, ".py") == [
        (17, "so-many"),
        (23, "so-many"),
        (34, "relative-headline"),
        (35, "relative-headline"),
        (37, "so-many"),
        (39, "relative-headline"),
        (41, "so-many"),
        (49, "so-many"),
    ]


def test_command_prints_findings_and_fails(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("What is bad fails.\n")
    command = [sys.executable, "-m", "tools.prose"]
    bad = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert bad.returncode == 1
    assert bad.stdout.startswith(f"{tmp_path}/page.md:1: relative-headline: What is bad fails. -> name the subject")
    (tmp_path / "page.md").write_text("The subject works.\n")
    good = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert (good.returncode, good.stdout) == (0, "")
    gone = subprocess.run([*command, str(tmp_path / "gone")], cwd=ROOT, capture_output=True, text=True)
    assert gone.returncode == 1 and "does not exist" in gone.stderr


def test_checked_paths_exist() -> None:
    assert all((ROOT / path).exists() for path in prose.checked())
