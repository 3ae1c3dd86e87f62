"""Private names of SciPy, which its versions may lack: the error comes in the call that needs one, and nowhere else."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line


class _PrivateModule(ModuleType):
    """A module that is imported when an attribute is read."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask of any module
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def private_module(name: str) -> Any:
    """The private module of a name, imported late."""
    return _PrivateModule(name)


def with_reason(error: Exception, name: str) -> Exception:
    """The error of a call with traced values; UnsupportedFunctionError if a private name is missing from SciPy."""
    if isinstance(error, ImportError):
        place, missing = error.name or "", getattr(error, "name_from", None) or ""
    elif isinstance(error, AttributeError):
        place, missing = getattr(error.obj, "__name__", ""), error.name
    else:
        return error
    if not str(place).startswith("scipy.") or "._" not in f"{place}.{missing}":
        return error
    return UnsupportedFunctionError(
        f"{name} takes no traced values with SciPy {sys.modules['scipy'].__version__}{at_line()}\n"
        f"func's version needs {'.'.join(filter(None, [place, missing]))}, which this SciPy lacks: install an earlier "
        "SciPy, or a newer func."
    )
