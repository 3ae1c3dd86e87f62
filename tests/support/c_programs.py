"""Exported C: many modules compiled together, and loaded."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from func.compilation.c_export import CFunction, CModule

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")
COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")


def loaded(modules: Sequence[CModule], folder: Path, flags: Sequence[str] = (*STRICT, "-O1")) -> list[CFunction]:
    """The functions of modules of different names, compiled into one library."""
    sources = [str(module.save(folder)[0]) for module in modules]
    library = folder / "all.so"
    assert COMPILER is not None
    command = [COMPILER, *flags, "-shared", "-fPIC", "-o", str(library), *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    whole = ctypes.CDLL(str(library))
    return [CFunction(module, whole) for module in modules]
