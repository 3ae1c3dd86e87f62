"""Functions in the style of the world's numeric packages, in every transform."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from pathlib import Path

import pytest

import func
from tests.support.natural_code import Row, outcomes

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("test_"))


def rows(module: str) -> list[Row]:
    """The table of a module."""
    table: list[Row] = importlib.import_module(f"tests.natural.{module}").ROWS
    return table


@pytest.mark.parametrize("module", MODULES)
def test_module(module: str) -> None:
    wrong = []
    for row in rows(module):
        modules = () if row.intercept is True else row.intercept
        block = func.intercept(modules=modules) if row.intercept else contextlib.nullcontext()
        with block, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outcomes(row.function, row.args)
        for name in sorted({*found, *row.refused}):
            text, is_refused = found.get(name, "right"), name in row.refused
            if not is_refused or row.word not in text:
                expected = f", not an error with {row.word!r}" if is_refused else ""
                wrong.append(f"{row.function.__name__} in {name}: {text}{expected}")
    assert not wrong, "\n".join(wrong)


def test_every_function_has_a_row() -> None:
    assert sum(len(rows(module)) for module in MODULES) >= 150
