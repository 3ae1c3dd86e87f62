"""The import contracts of pyproject.toml hold, and break where an import points upwards."""

import ast
import functools
import graphlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

BACKENDS = "The backends import nothing above them"
ENGINE = "The engine imports the backends and nothing else of func"
PUBLIC = "Neither the engine nor the backends import the public package"
INSIDE = "Inside the engine"
INSIDE_PUBLIC = "Inside the public package"
PRIMITIVES = "Inside the primitives"
COMPILER = "Inside the compiler"
PASSES = "Inside the passes"
INSIDE_BACKENDS = "Inside the backends"
LLVM = "Inside the LLVM backend"
ROOT = Path(__file__).parents[2]
RUN_CONTRACTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


PARTS = {"func.numpy.linalg", "func.scipy.signal.windows", "func.scipy.sparse.linalg", "func.scipy.spatial.transform"}
"""Packages that are parts of a module, which NumPy and SciPy name so."""


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


def test_contracts_name_every_package() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = {
        f"{container}.{member.strip()}"
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract["containers"]
        for layer in contract["layers"]
        for member in re.split("[:|]", layer)
    }
    named |= {name.rpartition(".")[0] for name in named} - {"func", *PARTS}
    assert packages(ROOT) - named == {"func", *PARTS}


def packages(root: Path) -> set[str]:
    """The packages of the three folders by their full names."""
    names = set()
    for folder, top in (("func", "func"), ("interpreters", "func.interpreters"), ("backends", "func.backends")):
        for path in (root / folder).rglob("__init__.py"):
            inside = path.parent.relative_to(root / folder).parts
            if not (folder == "func" and inside[:1] in (("interpreters",), ("backends",))):
                names.add(".".join((top, *inside)))
    return names


def test_the_core_stays_an_afternoon_long() -> None:
    files = sorted((ROOT / "interpreters" / "core").glob("*.py"))
    assert len(files) <= 10
    assert sum([len(file.read_text().splitlines()) for file in files]) <= 2200


def test_the_reading_path_stays_an_afternoon_long() -> None:
    page = (ROOT / "docs" / "reading-the-core.md").read_text(encoding="utf-8")
    files = re.findall(r"^## \d+\. `(interpreters/[a-z_/]+\.py)`", page, re.MULTILINE)
    assert len(files) == 10
    assert sum([len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files]) <= 2500


def test_the_architecture_is_one_page_with_the_decisions_beside_it() -> None:
    docs = ROOT / "docs"
    assert len((docs / "architecture.md").read_text(encoding="utf-8").splitlines()) <= 220
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (docs / "decisions").glob("*.md")}
    index = pages.pop("index")
    for name, text in pages.items():
        title, date = re.match(r"# (.+)\n\n\*(\d{4}-\d\d-\d\d)\*\n", text).groups()  # type: ignore[union-attr]
        assert f"| {date} | [{title}]({name}.md) |" in index and f"\n{name}\n" in index


def test_no_two_files_import_each_other() -> None:
    """Not even in a round, nor by imports inside functions; imports for the type checker alone do not count."""
    imports = {name: imported_modules(path) for name, path in modules(ROOT).items()}
    order = {name: sorted(targets & imports.keys()) for name, targets in imports.items()}
    graphlib.TopologicalSorter(order).prepare()  # raises CycleError with the files of a round


@functools.cache
def modules(root: Path) -> dict[str, Path]:
    """The modules of the three folders by their full names."""
    paths = {}
    for folder, top in (("func", "func"), ("interpreters", "func.interpreters"), ("backends", "func.backends")):
        for path in (root / folder).rglob("*.py"):
            inside = path.relative_to(root / folder).with_suffix("").parts
            if not (folder == "func" and inside[0] in ("interpreters", "backends")):
                paths[".".join((top, *inside)).removesuffix(".__init__")] = path
    return paths


def imported_modules(path: Path) -> set[str]:
    """Everything that a file imports, as names of modules, and of members, which are no modules."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) not in for_types and isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            known = members & modules(ROOT).keys()
            names |= known if len(known) == len(members) else known | {node.module}
        elif id(node) not in for_types and isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


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
        ("backends/__init__.py", "func", PUBLIC),
        ("interpreters/core/primitive.py", "func.errors", ENGINE),
        ("interpreters/grad.py", "func.numpy", ENGINE),
        ("interpreters/grad.py", "func", PUBLIC),
        ("interpreters/core/primitive.py", "func.interpreters.program.program", INSIDE),
        ("interpreters/program/program.py", "func.interpreters.primitives.elementwise.table", INSIDE),
        ("interpreters/core/primitive.py", "func.interpreters.grad", INSIDE),
        ("func/transforms/reverse.py", "func.autograd.tensor", INSIDE_PUBLIC),
        ("func/numpy/fft.py", "func.transforms.reverse", INSIDE_PUBLIC),
        ("interpreters/primitives/structural/fft.py", "func.interpreters.primitives.linalg.qr", PRIMITIVES),
        ("interpreters/compile/inlining.py", "func.interpreters.compile.native.rules", COMPILER),
        ("interpreters/compile/passes/rewriting/algebra.py", "func.interpreters.compile.passes.reroll.reroll", PASSES),
        ("backends/loops/kernels.py", "func.backends.llvm.machine", INSIDE_BACKENDS),
        ("backends/llvm/ir/ir_types.py", "func.backends.llvm.codegen.printer", LLVM),
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
