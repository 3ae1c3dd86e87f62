"""docs/scipy-coverage.md is current, and the tables behind it name every public function of SciPy."""

from __future__ import annotations

import importlib

import pytest

from tests.support.coverage_scipy import INCOMPLETE, MODULES, PAGE, page_text, public_name, tables


def test_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(), "run python -m tests.support.coverage_scipy"


@pytest.mark.parametrize("module", [module for module in MODULES if module not in INCOMPLETE])
def test_every_public_name_has_a_row_or_a_reason(module: str) -> None:
    table = tables(module)
    assert table is not None
    rows, without = table
    names = {public_name(name) for name in rows}
    public = set(importlib.import_module(f"scipy.{module}").__all__)
    assert public <= names | set(without), f"neither a row nor a reason: {sorted(public - names - set(without))}"
