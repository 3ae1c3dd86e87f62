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
from typing import Any, NamedTuple

import pytest

import func

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


class Reading(NamedTuple):
    """The parts of a file that the tests ask for."""

    imports: list[tuple[ast.Import | ast.ImportFrom, bool, bool]]
    """Each with whether it is for the type checker alone, and whether it is inside a function."""
    texts: set[str]
    """The texts that begin with `func.`."""


@functools.cache
def reading(path: Path) -> Reading:
    """A file, which is parsed once for all tests."""
    found = Reading([], set())
    waiting: list[tuple[ast.AST, bool, bool]] = [(ast.parse(path.read_text()), False, False)]
    while waiting:
        node, for_types, is_inside = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.imports.append((node, for_types, is_inside))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("func."):
            found.texts.add(node.value)
        for_types |= isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        is_inside |= isinstance(node, ast.FunctionDef)
        waiting += [(child, for_types, is_inside) for child in ast.iter_child_nodes(node)]
    return found


def imported_modules(path: Path) -> set[str]:
    """Everything that a file imports, as names of modules, and of members, which are not modules."""
    names = set()
    for node, for_types, _ in reading(path).imports:
        if for_types:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            known = members & modules(ROOT).keys()
            names |= known if len(known) == len(members) else known | {node.module}
    return names


NAMES_FROM_ABOVE = {
    "func.backends.devices": "what tracebacks call the module of public errors",
    "func.host.patching": "np.r_ and np.c_ are func's while a transform runs, imported when one is used",
    "func.host.scipy_hooks": "where NumPy's series have their versions, which use hooks of SciPy's kind",
    "func.interpreters.core.wiring": "the table of what is bound late: no other module imports from above by name",
    "func.interpreters.primitives.structural.rank_collectives": "what messages call collectives",
    "func.numpy.methods": "attributes of tensors, which func.autograd puts on the class when one is first looked for",
    "func.numpy.protocol": "the first ufunc of SciPy's on a traced array imports the rules that func has for them",
    "func.transforms.transformed": "the modules of frames between a pickler and a function that looks for it",
}
"""The modules in which a text is the name of a module above them, each with the reason."""


def test_texts_name_no_modules_from_above() -> None:
    """An import by name, `import_module("func.…")`, and the tables for such imports follow the layers, too."""
    upwards = {
        (name, text): contract
        for name, path in modules(ROOT).items()
        for text in texts(path)
        if (contract := broken_contract(name, text)) is not None
    }
    assert {name for name, _ in upwards} == set(NAMES_FROM_ABOVE), upwards


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("func.transforms.vmapping", "func.workers.mapping", INSIDE_PUBLIC),
        ("func.interpreters.compile.execution", "func.interpreters.compile.native.executable", COMPILER),
        ("func.interpreters.core.types", "func.interpreters.host.swallowed_errors", INSIDE),
        ("func.linalg", "func.special", INSIDE_PUBLIC),
        ("func.workers.mapping", "func.transforms.vmapping", None),
        ("func.interpreters.host.swallowed_errors", "func.interpreters.host.display", None),
    ],
)
def test_name_from_above_is_seen(module: str, imported: str, contract: str | None) -> None:
    found = broken_contract(module, imported)
    assert (found or "").partition(":")[0] == (contract or "")


def texts(path: Path) -> set[str]:
    """The texts of a file that are names of func's modules, or begin one, as `func.numpy.` does in an f-string."""
    return {text.partition(":")[0].removesuffix(".") for text in reading(path).texts} & modules(ROOT).keys()


def broken_contract(source: str, target: str) -> str | None:
    """The contract that an import breaks, by its name; None where it points downwards."""
    for contract in layered_contracts():
        for container in contract["containers"]:
            places = [place_in(contract, container, module) for module in (source, target)]
            if None in places:
                continue
            (above, member, _), (below, other, is_apart) = places
            if member != other and (below < above or (below == above and is_apart)):
                return str(contract["name"])
    return None


@functools.cache
def layered_contracts() -> list[dict[str, Any]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["type"] == "layers"]


def place_in(contract: dict[str, Any], container: str, module: str) -> Any:
    """(number of the layer from the top, member, whether members of the layer are independent) of a module, or None."""
    places = [
        (number, name, "|" in layer)
        for number, layer in enumerate(contract["layers"])
        for member in re.split("[:|]", layer)
        if f"{module}.".startswith(f"{(name := f'{container}.{member.strip()}')}.")
    ]
    return max(places, key=lambda place: len(place[1]), default=None)


def test_imports_inside_functions_say_why() -> None:
    """By a comment on the first of them, or above. Some of `func.scipy`'s are about circles among SciPy's modules."""
    silent = []
    for name, path in modules(ROOT).items():
        lines = path.read_text().splitlines()
        places = sorted(
            node.lineno
            for node, _, is_inside in reading(path).imports
            if is_inside and isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "func"
        )
        explained = 0
        for place in dict.fromkeys(places):
            if "#" in lines[place - 1] + lines[place - 2] or explained == place - 1:
                explained = place
            elif not name.startswith("func.scipy."):
                silent.append(f"{name}:{place}")
    assert not silent


NOT_PUBLIC = {"curvature": 30, "message_passing": 12, "sample_gradients": 54, "sparse_derivatives": 76, "workers": 52}
"""How many names that are not public each application imports: parts of transforms, and of the engine, on whose
Programs and primitives it works. The numbers may only fall."""


@pytest.mark.parametrize("application", NOT_PUBLIC)
def test_applications_import_public_names(application: str) -> None:
    private = {
        f"{node.module}.{alias.name}"
        for name, path in modules(ROOT).items()
        if name.startswith(f"func.{application}")
        for node, _, _ in reading(path).imports
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("func.")
        for alias in node.names
        if not is_public(str(node.module), alias.name)
    }
    assert len(private) == NOT_PUBLIC[application], "\n".join(sorted(private))


def is_public(module: str, name: str) -> bool:
    """Whether users may import a name from a module, or the module is one of an application."""
    public = {f"func.{part}" for part in (*func._SUBMODULES, *NOT_PUBLIC)}
    return func._IN_MODULES.get(name) == module or ".".join(module.split(".")[:2]) in public


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
        ("func/transforms/reverse.py", "func.autograd.tensors", INSIDE_PUBLIC),
        ("func/numpy/fft.py", "func.transforms.reverse", INSIDE_PUBLIC),
        ("interpreters/primitives/structural/fft.py", "func.interpreters.primitives.linalg.qr", PRIMITIVES),
        ("interpreters/compile/inlining.py", "func.interpreters.compile.native.rules", COMPILER),
        ("interpreters/compile/passes/rewriting/algebra.py", "func.interpreters.compile.passes.reroll.reroll", PASSES),
        ("backends/loops/kernels.py", "func.backends.llvm.machine", INSIDE_BACKENDS),
        ("backends/scalars/operations.py", "func.backends.llvm.machine", INSIDE_BACKENDS),
        ("backends/llvm/symbols.py", "func.backends.llvm.codegen.printer", LLVM),
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
