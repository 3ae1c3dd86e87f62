"""docs/coverage.md is true: every public function has a sample, and every row of the page holds."""

from __future__ import annotations

import pytest

from tests.support.coverage import FUNCTIONS, PAGE, page_text, public_names, row, table_line


def test_every_public_function_has_a_sample() -> None:
    names = set(public_names())
    assert names <= set(FUNCTIONS), f"without a sample in tests/support/functions.py: {sorted(names - set(FUNCTIONS))}"
    assert set(FUNCTIONS) <= names, f"samples of functions that are not public: {sorted(set(FUNCTIONS) - names)}"


@pytest.mark.parametrize("name", public_names())
def test_row(name: str) -> None:
    assert table_line(name, row(name)) in PAGE.read_text(encoding="utf-8").splitlines()


def test_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert text == page_text(lines), "run python -m tests.support.coverage"
