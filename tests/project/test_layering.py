"""The import contracts of pyproject.toml hold, and break where an import points upwards."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BACKENDS = "The backends import nothing above them"
ENGINE = "The engine imports the backends and nothing else of func"
DOOR = "Neither the engine nor the backends import the public package"
INSIDE = "Inside the engine"
ROOT = Path(__file__).parents[2]
RUN_CONTRACTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def check_contracts(root: Path) -> tuple[int, str]:
    """The exit status and the report of import-linter on the tree at `root`."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_CONTRACTS],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def source_files(root: Path) -> set[Path]:
    """The modules of the three folders, each once."""
    return {path.resolve() for name in ("func", "interpreters", "backends") for path in (root / name).rglob("*.py")}


def test_contracts_hold() -> None:
    status, report = check_contracts(ROOT)
    assert status == 0, report
    assert "0 broken" in report


def test_every_module_is_analysed() -> None:
    _, report = check_contracts(ROOT)
    assert f"Analyzed {len(source_files(ROOT))} files" in report


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("backends/__init__.py", "func.interpreters.core.primitive", BACKENDS),
        ("backends/__init__.py", "func.errors", BACKENDS),
        ("backends/__init__.py", "func", DOOR),
        ("interpreters/core/primitive.py", "func.errors", ENGINE),
        ("interpreters/grad.py", "func.numpy", ENGINE),
        ("interpreters/grad.py", "func", DOOR),
        ("interpreters/core/primitive.py", "func.interpreters.program.program", INSIDE),
        ("interpreters/program/program.py", "func.interpreters.primitives.elementwise.table", INSIDE),
        ("interpreters/core/primitive.py", "func.interpreters.grad", INSIDE),
    ],
)
def test_import_upwards_is_refused(
    module: str, imported: str, contract: str, copy_sources: Callable[[Path], Path], tmp_path: Path
) -> None:
    tree = copy_sources(tmp_path)
    with (tree / module).open("a") as file:
        file.write(f"\nimport {imported}\n")
    status, report = check_contracts(tree)
    assert status != 0
    assert contract in report.partition("Broken contracts")[2], report
