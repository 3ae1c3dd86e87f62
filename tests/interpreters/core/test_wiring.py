"""The late-bound functions: the modules that the table names define them, and nothing else is late-bound."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from func.interpreters.core.wiring import PORTS, WIRING, Wiring

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("module", "names"), PORTS.items(), ids=str)
def test_modules_define_what_the_table_says(module: str, names: str) -> None:
    for name in names.split():
        assert getattr(Wiring(), name) is getattr(importlib.import_module(module), name)


def test_all_uses_are_in_the_table_and_all_entries_are_used() -> None:
    used = {
        name
        for folder in ("func", "interpreters", "backends")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"WIRING\.(\w+)", path.read_text())
    }
    assert used == {name for names in PORTS.values() for name in names.split()}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no function 'subtract'"):
        WIRING.subtract  # noqa: B018
