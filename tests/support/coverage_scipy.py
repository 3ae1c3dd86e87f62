"""The page of what holds for SciPy's functions: `python -m tests.support.coverage_scipy` writes docs/scipy-coverage.md.

The page is made of the tables of rows; the tests of each module check that every column holds that the page claims.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

from tests.support.scipy_rows import COLUMNS, Row

PAGE = Path(__file__).parents[2] / "docs" / "scipy-coverage.md"
MODULES = (
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "sparse.linalg", "spatial",
    "spatial.distance", "spatial.transform", "special", "stats",
)  # fmt: skip
INCOMPLETE: tuple[str, ...] = ()
"""Modules of which some public names have neither a row nor a reason yet."""
YES, NO = "✓", "–"


def tables(module: str) -> tuple[Mapping[str, Row], Mapping[str, str]] | None:
    """The rows of a module and the reasons for the names without a row; None where it has no table."""
    name = f"tests.support.scipy_{module.replace('.', '_')}"
    if importlib.util.find_spec(name) is None:
        return None
    table = importlib.import_module(name)
    return table.ROWS, getattr(table, "WITHOUT", {})


def public_name(row: str) -> str:
    """The function that a row is about: rows may add words to its name, as in `lfilter axis` or `norm-logpdf`."""
    return re.split(r"[ :(\[-]", row)[0]


def cells(row: Row) -> list[str]:
    """The marks of a row."""
    return [NO if column in row.without else YES for column in COLUMNS]


def notes(module: str) -> Mapping[str, str]:
    """Facts about a name beyond its marks, such as arguments that raise an error."""
    return getattr(importlib.import_module(f"tests.support.scipy_{module.replace('.', '_')}"), "NOTES", {})


def section(module: str, rows: Mapping[str, Row], without: Mapping[str, str]) -> str:
    """The part of the page for one module."""
    names = dict.fromkeys([public_name(name) for name in rows])
    held = {
        name: [
            YES if all(cells(row)[i] == YES for key, row in rows.items() if public_name(key) == name) else NO
            for i in range(len(COLUMNS))
        ]
        for name in names
    }
    lines = [f"## scipy.{module}", "", f"{len(names)} names with {len(rows)} calls.", ""]
    lines += [f"| name | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}"]
    lines += [f"| `{name}` | {' | '.join(held[name])} |" for name in sorted(names)]
    reasons: dict[str, list[str]] = {}
    for name, note in notes(module).items():
        reasons.setdefault(note, []).append(name)
    for key, row in rows.items():
        for column, reason in row.without.items():
            reasons.setdefault(f"no *{column}*: {reason}", []).append(key)
    for name, reason in without.items():
        reasons.setdefault(reason, []).append(name)
    if reasons:
        lines += ["", "| limit | names |", "|---|---|"]
        lines += [f"| {reason} | {', '.join([f'`{n}`' for n in sorted(set(n))])} |" for reason, n in reasons.items()]
    return "\n".join(lines) + "\n"


def _not_complete() -> str:
    """The page's sentence about modules with missing names."""
    if not INCOMPLETE:
        return "Every public name of these modules has a row or a reason."
    modules = ", ".join([f"`scipy.{module}`" for module in INCOMPLETE])
    return f"Not complete yet: {modules}. Names that are missing there have not been looked at."


def page_text() -> str:
    """The whole page."""
    found = {module: table for module in MODULES if (table := tables(module)) is not None}
    total = sum(len({public_name(name) for name in rows}) for rows, _ in found.values())
    head = f"""# Coverage of SciPy

On this page you find every public name of these SciPy modules, and the modes that support it. `python -m
tests.support.coverage_scipy` writes it from the tables in `tests/support/scipy_*.py`, and the tests check every mark.
{total} names.

- **value**: as SciPy's, in both modes, with its shape and dtype.
- **jvp**, **vjp**, **order 2**: checked against extrapolated differences, as adjoints, and against each other.
- **vmap**: values and gradients equal the stack of single calls. **jit**: as without it, also for other values.
- **unmodified**: all of these with SciPy's own function, called on traced values.
- {NO}: does not hold; the table of reasons is below the table of the module.

{_not_complete()}"""
    return "\n".join([head, *[section(module, *table) for module, table in found.items()]])


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
    print(f"wrote {PAGE}")
