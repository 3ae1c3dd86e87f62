"""The source distribution and the wheel as users get them: `python -m tools.dist [--keep FOLDER]`, or `make dist`.

The source distribution is built from the tracked files, and the wheel from the unpacked source distribution. A file
that one of them lacks therefore shows. The wheel is installed into a fresh environment with its dependencies. There, in
a folder away from the sources, every module is imported and the first program of README runs.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "from setuptools import build_meta; build_meta.build_{}({!r})"
CHECK = """
import importlib, pathlib, pkgutil, sys
import func
assert pathlib.Path(func.__file__).is_relative_to(sys.prefix), func.__file__
names = [module.name for module in pkgutil.walk_packages(func.__path__, "func.")]
for name in names:
    importlib.import_module(name)
print(f"{func.__version__} at {func.__file__}: {len(names)} modules imported")
"""


def run(*command: str, folder: Path) -> None:
    """Run a command in a folder; the end of the check where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}\n{done.stdout}{done.stderr}")
    if done.stdout.strip() and "setuptools" not in command[-1]:
        print(done.stdout.rstrip())


def tracked_sources(target: Path) -> Path:
    """A copy of the tracked files, without links: as an archive of the repository has them on any system."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source, place = ROOT / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            place.write_text(str(source.readlink()))
        elif source.exists():
            shutil.copy(source, place)
    return target


def built(folder: Path) -> tuple[Path, Path]:
    """(source distribution, wheel made of it), in a folder."""
    sources, made = tracked_sources(folder / "sources"), folder / "made"
    made.mkdir()
    run(sys.executable, "-c", BUILD.format("sdist", str(made)), folder=sources)
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        if links := [member.name for member in archive if member.issym() or member.islnk()]:
            sys.exit(f"the source distribution holds links: {', '.join(links)}")
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    run(sys.executable, "-c", BUILD.format("wheel", str(made)), folder=unpacked)
    (wheel,) = made.glob("*.whl")
    return sdist, wheel


def check_installed(wheel: Path, folder: Path) -> None:
    """Install a wheel into a fresh environment, and use it there."""
    venv.create(folder / "environment", with_pip=True)
    python = str(next((folder / "environment").glob("[bS]*/python*")))
    away = folder / "away"
    away.mkdir()
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), folder=away)
    run(python, "-I", "-c", CHECK, folder=away)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    if block is None:
        sys.exit("README has no program")
    run(python, "-I", "-W", "error", "-c", block[1], folder=away)
    shutil.copy(ROOT / "tests" / "project" / "typed_programs.py", away)
    run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "typed_programs.py", folder=away)
    run(sys.executable, "-m", "pyright", "--pythonpath", python, "typed_programs.py", folder=away)


def main() -> None:
    """Build both, and check the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the two files there")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as name:
        sdist, wheel = built(Path(name))
        check_installed(wheel, Path(name))
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for file in (sdist, wheel):
                shutil.copy(file, keep)
                print(keep / file.name)


if __name__ == "__main__":
    main()
