"""Private modules of SciPy, imported at the first use of one of their names.

A version of SciPy without the name then raises its error in the call that needs it, and nowhere else.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


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
