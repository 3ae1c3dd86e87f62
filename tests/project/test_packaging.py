"""The package as users get it: its packages, its version, its wheel, no clash with modules of the user."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import func

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "func": ROOT / "func",
    "func.interpreters": ROOT / "interpreters",
    "func.backends": ROOT / "backends",
}
LINKS = {"func/interpreters": "../interpreters", "func/backends": "../backends"}


def modules_of_the_tree() -> set[Path]:
    """Every module as a path inside the installed package, such as func/interpreters/grad.py."""
    found = set()
    for package, name in FOLDERS.items():
        for folder, inner, files in os.walk(ROOT / name):  # which does not walk into links
            place = Path(*package.split("."), Path(folder).relative_to(ROOT / name))
            found |= {place / file for file in files if file.endswith(".py")}
            inner[:] = [one for one in inner if one != "__pycache__"]
    return found


def run_python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter, started in the given folder as a user's script would be."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, copy_sources: Callable[[Path], Path]) -> Path:
    """A wheel built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    done = run_python(code, copy_sources(tmp_path_factory.mktemp("sources")))
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_listed_packages_are_those_of_the_tree() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(module.parent.parts) for module in modules_of_the_tree()}
    assert sorted(listed) == sorted(found)


def test_every_folder_with_modules_is_a_package() -> None:
    modules = modules_of_the_tree()
    assert {module.parent / "__init__.py" for module in modules} <= modules


def test_wheel_holds_every_module_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packaged = sorted(name for name in names if name.endswith(".py"))
    assert packaged == sorted(module.as_posix() for module in modules_of_the_tree())
    assert "func/py.typed" in names


def test_wheel_works_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    code = """if True:
        import sys
        sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in finder.__module__]
        import func
        print(func.__file__)
        print(func.grad(lambda x: x * x)(3.0))
    """
    done = run_python(code, tmp_path, PYTHONPATH=str(wheel))
    assert done.returncode == 0, done.stderr
    place, value = done.stdout.split("\n")[:2]
    assert place.startswith(str(wheel))
    assert float(value) == 6.0


def test_version_has_one_source() -> None:
    assert func.__version__ == "0.1.0"
    assert metadata.version("func") == func.__version__
    assert f"\nversion: {func.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_links_are_relative_and_reach_the_folders() -> None:
    for link, target in LINKS.items():
        path = ROOT / link
        assert path.is_symlink(), f"{link} is not a link"
        assert os.readlink(path) == target
        assert (path / "__init__.py").samefile(path.parent / target / "__init__.py")


def test_a_checkout_without_links_works(tmp_path: Path, copy_sources: Callable[[Path], Path]) -> None:
    folder = copy_sources(tmp_path)
    for link, target in LINKS.items():
        (folder / link).unlink()
        (folder / link).write_text(target)
    code = """if True:
        import sys
        sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in finder.__module__]
        import func
        print(func.__file__, func.backends.__file__, func.grad(lambda x: x * x)(3.0))
    """
    done = run_python(code, folder, PYTHONPATH=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / name / "__init__.py") for name in ("func", "backends")] + ["6.0"]


def test_the_source_distribution_has_no_part_of_the_tests(tmp_path: Path, copy_sources: Callable[[Path], Path]) -> None:
    """setuptools adds the files tests/test*.py, which cannot run without the others."""
    folder = copy_sources(tmp_path)
    shutil.copy(ROOT / "MANIFEST.in", folder)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_alone.py").touch()
    code = "from setuptools import build_meta; build_meta.build_sdist('made')"
    done = run_python(code, folder)
    assert done.returncode == 0, done.stderr
    (archive,) = (folder / "made").iterdir()
    with tarfile.open(archive) as made:
        names = made.getnames()
    assert not [name for name in names if "/tests" in name]
    modules = {name.split("/", 1)[1] for name in names if name.endswith(".py")}
    assert {"func/__init__.py", "interpreters/grad.py", "backends/__init__.py"} <= modules


def test_engine_refuses_to_be_a_top_level_module() -> None:
    done = run_python("import interpreters", ROOT)
    assert done.returncode != 0
    assert "ImportError" in done.stderr and "func.interpreters" in done.stderr


@pytest.mark.parametrize("name", ["backends", "interpreters"])
def test_module_of_the_user_does_not_shadow_ours(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("mine = True\n")
    code = f"import {name}, func, func.{name} as ours; print({name}.mine, hasattr(ours, 'mine'))"
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "False"]


def test_import_needs_no_optional_package(tmp_path: Path) -> None:
    optional = ["cupy", "llvmlite", "ml_dtypes", "matplotlib", "sklearn"]
    code = f"import sys, func; print([name for name in {optional} if name in sys.modules])"
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
