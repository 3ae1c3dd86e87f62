"""Exported C: many modules compiled together, and loaded."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from func.compilation.c_export import CFunction, CModule

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")
COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")


def loaded(
    modules: Sequence[CModule], folder: Path, flags: Sequence[str] = (*STRICT, "-O1"), apart: bool = False
) -> list[CFunction]:
    """The functions of modules of different names, compiled into one library. If `apart`, each module is separate; else
    shared helper functions occur once, which takes a third of the time.
    """
    if apart:
        sources = [str(module.save(folder)[0]) for module in modules]
    else:
        sources = [str(source) for source in merged(modules, folder)]
    library = folder / "all.so"
    assert COMPILER is not None
    command = [COMPILER, *flags, "-shared", "-fPIC", "-o", str(library), *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    whole = ctypes.CDLL(str(library))
    return [CFunction(module, whole) for module in modules]


DEFINED = re.compile(r"^static [^=;]*?\b(\w+)(?:\[[^;]*?\]\s*=|\([^;]*?\)\s*\{)", re.M | re.S)


def merged(modules: Sequence[CModule], folder: Path) -> list[Path]:
    """Few files with the texts of all modules, in which a helper of several modules stands once."""
    units: list[Unit] = []
    for module in modules:
        module.save(folder)
        paragraphs = module.source.split("\n\n")
        own = {name: text for text in paragraphs for name in DEFINED.findall(text)}
        unit = next((unit for unit in units if unit.can_take(own)), None)
        if unit is None:
            unit = Unit()
            units.append(unit)
        unit.defined.update(own)
        unit.paragraphs.update(dict.fromkeys(paragraphs))
    files = []
    for number, unit in enumerate(units):
        files.append(folder / f"unit{number}.c")
        files[-1].write_text("\n\n".join(unit.paragraphs) + "\n")
    return files


class Unit:
    """A file in the making."""

    def __init__(self) -> None:
        self.defined: dict[str, str] = {}
        """The texts of what is static, by its name."""
        self.paragraphs: dict[str, None] = {}

    def can_take(self, own: dict[str, str]) -> bool:
        """Whether no name of a module stands for something else here."""
        return all([self.defined.get(name, text) == text for name, text in own.items()])
