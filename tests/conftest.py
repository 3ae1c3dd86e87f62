"""The settings of every test: one BLAS thread and one cache per worker, repeatable examples, a device or a skip."""

import atexit
import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.families import merged

ROOT = Path(__file__).parent.parent

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read once, when NumPy is first imported, which is after this file

if "FUNC_CACHE_DIR" not in os.environ:  # workers and subprocesses share that of the process that begins
    os.environ["FUNC_CACHE_DIR"] = tempfile.mkdtemp(prefix="func-tests-")
    atexit.register(shutil.rmtree, os.environ["FUNC_CACHE_DIR"], ignore_errors=True)

settings.register_profile("func", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("func")


@functools.cache
def why_no_gpu() -> str | None:
    """The reason for which tests cannot use a GPU, or None where they can."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (extra 'cuda')"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no CUDA device: {error}"
    return None if count else "CuPy finds no CUDA device"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let cases of one test that need nothing else share an item."""
    items[:] = merged(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `gpu` with the reason where there is no device."""
    if item.get_closest_marker("gpu") is not None and (reason := why_no_gpu()) is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def no_programs_from_disk() -> None:
    """Let every program of the tests be compiled: some tests change how. Subprocesses use what is on disk."""
    from func.interpreters.compile.native import stored_programs

    stored_programs.enabled = False


@pytest.fixture(autouse=True)
def no_fault_is_hidden() -> Iterator[None]:
    """Fail a test in which `func.config.validate` found a fault that other code, or the test, took for a refusal."""
    yield
    if os.environ.get("FUNC_VALIDATE", "") not in ("", "0"):
        from func.interpreters.program.translations import TRANSLATIONS

        reports, TRANSLATIONS.reports[:] = list(TRANSLATIONS.reports), []
        assert not reports, str(reports[0])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the tests themselves, which are many objects, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """So too what is left of a file of tests: caches and compiled programs, at last ten million objects."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def copy_sources() -> Callable[[Path], Path]:
    """A function that copies the sources of the package into a folder, for a test to build or to spoil."""

    def copy(folder: Path) -> Path:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        for name in ("func", "interpreters", "backends"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        return folder

    return copy
