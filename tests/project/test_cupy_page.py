"""The tables of the page on CuPy are those of the code."""

from __future__ import annotations

from tests.support import cupy_page


def test_the_tables_are_those_of_the_code() -> None:
    text = cupy_page.PAGE.read_text(encoding="utf-8")
    assert text == cupy_page.page_with(cupy_page.tables()), "run python -m tests.support.cupy_page"
