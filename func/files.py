"""save and load: Programs in files."""

from __future__ import annotations

import os

from func.interpreters.errors import ArgumentError
from func.interpreters.program import Program

__all__ = ["load", "save"]


def save(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a Program into a file, from which `func.load` makes an equal one.

    The file is a zip archive of a JSON document and of the constants as .npy members; it is replaced in one step.
    Source lines are kept without their folders, device arrays as host arrays. Rows whose parameters are Python
    functions (custom rules, checkpoints, callbacks) cannot be saved; the program of `func.jit(f).trace(*args)` has
    custom rules and checkpoints replaced by what they compute.

    Raises:
        ProgramFileError: A parameter or constant is of a kind that a file cannot hold.

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> program = func.make_program(lambda x: np.sin(x) * 2)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     func.save(program, os.path.join(folder, "double_sine.func"))
        ...     loaded = func.load(os.path.join(folder, "double_sine.func"))
        >>> loaded == program
        True
    """
    from func.interpreters.files import write_program

    if not isinstance(program, Program):
        raise ArgumentError(
            f"func.save: expected a Program, got {type(program).__name__}; func.make_program(f)(*args) makes one"
        )
    write_program(program, _path(path, "save"))


def load(path: str | os.PathLike[str]) -> Program:
    """The Program in a file that `func.save` wrote. Loading runs no code from the file, and the program is checked.

    Raises:
        ProgramFileError: The file is of another kind, damaged, of a newer version, or applies unknown rows.
    """
    from func.interpreters.files import read_program

    return read_program(_path(path, "load"))


def _path(path: str | os.PathLike[str], function: str) -> str:
    if isinstance(path, (str, os.PathLike)):
        found = os.fspath(path)
        if isinstance(found, str):
            return found
    raise ArgumentError(f"func.{function}: expected a path, got {type(path).__name__}")
