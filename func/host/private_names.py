"""Private names of SciPy, which its versions may lack: the error comes in the call that needs one, and nowhere else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

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


def of_other_scipy(name: str, error: ImportError | AttributeError) -> Callable[..., Any]:
    """A function that raises UnsupportedFunctionError, where func's version needs a private name that SciPy lacks.

    Raises the error itself where no name of SciPy is missing.
    """
    scipy = sys.modules["scipy"]
    if isinstance(error, ImportError):
        place, missing = error.name or "", getattr(error, "name_from", None) or ""
    else:
        place, missing = getattr(error.obj, "__name__", ""), error.name
    if not place.startswith("scipy.") or "._" not in f"{place}.{missing}":
        raise error

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFunctionError(
            f"{name} takes no traced values with SciPy {scipy.__version__}{at_line()}\n"
            f"func's version needs {'.'.join(filter(None, [place, missing]))}, which this SciPy lacks: install an "
            "earlier SciPy, or a newer func."
        )

    return function
