"""The settings of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.backends import thread_count
from func.errors import ArgumentError
from func.interpreters.program.translations import TRANSLATIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def settings_restored() -> Iterator[None]:
    with func.config.override(num_threads=func.config.num_threads, compiler=func.config.compiler):
        yield


def run(code: str, **environment: str) -> str:
    """The output of a fresh Python."""
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("number", [1, 3, np.int64(2), 1024])
def test_num_threads(number: Any) -> None:
    func.config.num_threads = number
    assert func.config.num_threads == number == thread_count.num_threads()
    assert type(func.config.num_threads) is int


@pytest.mark.parametrize("number", [0, -1, 1025])
def test_num_threads_out_of_range(number: int) -> None:
    before = func.config.num_threads
    with pytest.raises(ArgumentError, match=rf"func\.config\.num_threads: .* from 1 to 1024, not {number}"):
        func.config.num_threads = number
    assert func.config.num_threads == before


@pytest.mark.parametrize("number", [1.5, 2.0, "2", None, True])
def test_num_threads_of_another_type(number: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must be a whole number of threads, not"):
        func.config.num_threads = number


def test_the_environment_is_read_at_first_use() -> None:
    code = "import os, func; os.environ['FUNC_NUM_THREADS'] = '7'; print(func.config.num_threads)"
    assert run(code, FUNC_NUM_THREADS="5") == "7"


def test_a_wrong_environment_is_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(thread_count, "_num_threads", None)
        patch.setenv("FUNC_NUM_THREADS", "all")
        with pytest.raises(ArgumentError, match=r"FUNC_NUM_THREADS must be a whole number .* not 'all'"):
            _ = func.config.num_threads
        func.config.num_threads = 2
        assert func.config.num_threads == 2


def test_compiler() -> None:
    for name in ("numpy", "llvm", None):
        func.config.compiler = name
        assert func.config.compiler == name
    with pytest.raises(ArgumentError, match=r"func\.config\.compiler='gcc' is not one of None, 'numpy', 'llvm'"):
        func.config.compiler = "gcc"
    assert func.config.compiler is None


def test_validate_begins_as_the_environment_says() -> None:
    for value, expected in (("1", "True"), ("0", "False"), ("", "False")):
        assert run("import func; print(func.config.validate)", FUNC_VALIDATE=value) == expected
    with func.config.override(validate=True):
        assert func.config.validate is True


def test_override_restores() -> None:
    func.config.num_threads = 2
    with pytest.raises(KeyError), func.config.override(num_threads=1, compiler="numpy"):
        assert (func.config.num_threads, func.config.compiler) == (1, "numpy")
        with func.config.override(num_threads=4):
            assert (func.config.num_threads, func.config.compiler) == (4, "numpy")
        assert func.config.num_threads == 1
        raise KeyError
    assert (func.config.num_threads, func.config.compiler) == (2, None)


def test_override_that_fails_changes_nothing() -> None:
    func.config.num_threads = 2
    wrong: list[dict[str, Any]] = [{"num_threads": 1, "compiler": "gcc"}, {"compiler": "numpy", "num_threads": 0}]
    for settings in wrong:
        with pytest.raises(ArgumentError), func.config.override(**settings):
            raise AssertionError("not reached")
        assert (func.config.num_threads, func.config.compiler) == (2, None)


def test_unknown_settings() -> None:
    threads: Any = {"threads": 1}
    with (
        pytest.raises(ArgumentError, match=r"'threads' is not a setting; those are num_threads, compiler"),
        func.config.override(**threads),
    ):
        raise AssertionError("not reached")
    config: Any = func.config
    with pytest.raises(AttributeError, match="threads"):
        config.threads = 1
    with pytest.raises(AttributeError, match="cache_dir"):
        config.cache_dir = "/"


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))
    assert func.config.cache_dir == tmp_path
    monkeypatch.setenv("FUNC_CACHE_DIR", "")
    assert func.config.cache_dir is None


def test_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNC_CACHE_DIR", "")
    monkeypatch.setattr(TRANSLATIONS, "are_validated", False)
    func.config.num_threads = 3
    assert repr(func.config) == (
        "func.config(num_threads=3, compiler=None, check_frozen=False, validate=False, promote_integers=False, "
        "compile_backward=True, array_cache=268435456, matmul_precision='highest', cache_dir=None)"
    )


def test_settings_do_not_import_the_compiler() -> None:
    code = "import sys, func; func.config.num_threads = 2; repr(func.config); print('llvmlite' in sys.modules)"
    assert run(code) == "False"
