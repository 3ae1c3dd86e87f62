"""The tables that translate names of other libraries, and the one that compares them, say what programs do."""

import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.project.peer_programs import COMPARED, PROGRAMS
from tests.support.peer_values import exists, names_for, outcome, plain, run_program

ROOT = Path(__file__).parents[2]
LIBRARIES = ("func", "jax", "torch", "autograd")
ROWS = [(page, row) for page, (_, rows) in PROGRAMS.items() for row in rows]
NAME = re.compile(r"\b(?:func|np|jax|torch|autograd)(?:\.[A-Za-z_]\w*)+")


def table_rows(page: str) -> list[list[str]]:
    """The rows of all tables of a page as cells, without the heads."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    heads = {i - 1 for i, line in enumerate(lines) if re.fullmatch(r"\|[-:|]+\|", line)}
    rows = [line for i, line in enumerate(lines) if line.startswith("| ") and i not in heads]
    return [[cell.strip() for cell in row[1:-1].split(" | ")] for row in rows]


def values_of_peer(library: str, programs: dict[str, str]) -> dict[str, Any]:
    """The results of another library's programs, by their names; one process runs them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.peer_values", library],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def needs(library: str) -> None:
    """Skip a test where a library is not installed."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def alike(a: Any, b: Any) -> bool:
    """Whether two plain values agree, to single precision."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return bool(np.isclose(a, b, rtol=1e-4, atol=1e-6))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("page", PROGRAMS)
def test_every_row_has_a_program(page: str) -> None:
    assert [row[0] for row in table_rows(page)] == list(PROGRAMS[page][1])


@pytest.mark.parametrize(("page", "row"), ROWS, ids=[f"{page[:-3]}:{row[:60]}" for page, row in ROWS])
def test_row_is_true_here(page: str, row: str) -> None:
    program = PROGRAMS[page][1][row]
    value = plain(run_program(program[0], names_for("func")))
    assert value is not None
    if len(program) == 1:
        assert value == 1.0


@pytest.mark.parametrize("page", ["from_autograd.md", "from_jax.md", "from_pytorch.md"])
def test_rows_give_what_the_other_library_gives(page: str) -> None:
    library, rows = PROGRAMS[page]
    needs(library)
    names = [name for row in table_rows(page) for name in NAME.findall(row[0])]
    programs = {row: program[1] for row, program in rows.items() if len(program) > 1}
    there = values_of_peer(library, programs | {name: f"exists({name!r})" for name in names})
    assert not {name for name in names if there[name] != 1.0}
    pairs = {row: (outcome(rows[row][0], names_for("func")), there[row]) for row in programs}
    assert not {row: pair for row, pair in pairs.items() if "error" in pair or not alike(*pair)}


@pytest.mark.parametrize("page", PROGRAMS)
def test_names_of_func_in_tables_exist(page: str) -> None:
    names = [name for row in table_rows(page) for name in NAME.findall(" ".join(row[1:]))]
    names = [re.sub(r"^np\b", "numpy", name) for name in names]
    assert names and not [name for name in names if name.startswith(("func", "numpy")) and not exists(name)]


def cell(value: Any) -> str:
    """A value as the table of comparisons shows it."""
    if value == "error":
        return "error"
    flat = np.ravel(np.array(value, float))
    return "`nan`" if np.all(np.isnan(flat)) else f"`{written(value)}`"


def written(value: Any) -> str:
    """A number with two digits, or a list of such numbers."""
    if isinstance(value, list):
        return f"[{', '.join(written(item) for item in value)}]"
    return f"{int(value)}" if math.isfinite(value) and value == int(value) else f"{value:.2g}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_comparison_shows_what_programs_give(library: str) -> None:
    needs(library)
    column = LIBRARIES.index(library) + 1
    table = {row[0]: row[column] for row in table_rows("comparison.md") if row[0] in COMPARED}
    assert list(table) == list(COMPARED)
    programs = {row: of[library] for row, of in COMPARED.items() if library in of}
    if library == "func":
        values = {row: outcome(text, names_for("func")) for row, text in programs.items()}
    else:
        values = values_of_peer(library, programs)
    assert table == {row: cell(values[row]) if row in values else "–" for row in COMPARED}


def test_program_that_differs_is_noticed() -> None:
    assert not alike([1.0, [2.0]], [1.0, [2.1]]) and not alike([1.0], 1.0) and not alike("error", 1.0)
    assert outcome("1 / 0", {}) == "error" and cell(outcome("[1 / 4, 2.0]", {})) == "`[0.25, 2]`"
