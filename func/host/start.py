"""Setup at the first public name: the interface of traced arrays, and hooks into NumPy, warnings and imports.

`func` imports this module at the first use of a public name, or the first import of a module of the package. The
modules behind the names follow at their first use.

NumPy's warnings inside func's code show the user's line that called func. Python shows a warning once for each line, so
it would show one warning for all that come from one line of func. A warning for a line of func is issued again for the
user's line, by the filters for that line.

Importing func imports nothing of SciPy and changes nothing in it. A finder in `sys.meta_path` learns of the import of a
module with hooks. The next first transform or tensor installs the hooks; a running one does so at once.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from func import numpy
from func.interpreters.core import TRACED
from func.interpreters.core.scopes import Turns
from func.interpreters.host.source import is_engine_file, user_frame

__all__ = ["numpy"]

_python: Any = warnings
_shown: Any = getattr(_python, "_showwarnmsg", None)
"""Python's function that shows or records a warning after the filters."""


def _shown_at_user_line(message: Any) -> None:
    frame = user_frame() if is_engine_file(message.filename) else None
    if frame is None:
        _shown(message)
        return
    _forget_lines_of(message.filename)
    names = frame.f_globals
    warnings.warn_explicit(
        message.message,
        message.category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=names.get("__name__", "<string>"),
        registry=names.setdefault("__warningregistry__", {}),
        source=message.source,
    )


def _forget_lines_of(file: str) -> None:
    """Let Python forget the lines of a module of func that have warned."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    if frame is not None:
        frame.f_globals["__warningregistry__"] = None  # the C code of warnings takes None for "keep no record"


MODULES = frozenset(
    [
        f"scipy.{name}"
        for name in (
            "_lib._util", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
            "signal.windows", "sparse", "sparse.linalg", "spatial", "spatial.distance", "spatial.transform", "special",
            "special._multiufuncs", "stats",
        )
    ]
    + [
        f"numpy.polynomial.{name}"
        for name in ("polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polyutils")
    ]
)  # fmt: skip
"""The modules that `func.host.scipy_hooks` has a table for."""
_NUMBA = "numba.core.dispatcher"
"""The module of the functions that Numba compiles."""


class ImportWatch:
    """A finder that defers to others, and learns when a module that gets hooks has run."""

    def __init__(self) -> None:
        self._searched: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of another finder, with a loader that reports when the module has run."""
        if (name not in MODULES and name != _NUMBA) or name in self._searched:
            return None
        self._searched.add(name)
        try:
            spec = _other_spec(self, name, path, target)
        finally:
            self._searched.discard(name)
        loader: Any = None if spec is None else spec.loader
        if hasattr(loader, "__dict__") and hasattr(loader, "exec_module"):
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                del loader.exec_module
                run(module)
                imported(name)

            loader.exec_module = exec_module
        return spec


def _other_spec(
    watch: ImportWatch, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not watch and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def imported(name: str) -> None:
    """Note the import of a module that gets hooks."""
    TRACED.pending.append(name)
    if TRACED.run or TRACED.stay:
        install_hooks()


def install_hooks() -> None:
    """Install the hooks of imported modules; the first time also those of NumPy, which take longer."""
    if "numpy" in TRACED.pending:
        with _TURNS.take():  # a thread that starts its first transform meanwhile waits
            if "numpy" in TRACED.pending:
                dispatchers = importlib.import_module("func.host.dispatchers")
                dispatchers.install([*dispatchers.numpy_dispatchers(), *dispatchers.hidden_dispatchers()])
                importlib.import_module("func.host.patching").hook_vectorize()
                TRACED.pending[:] = [name for name in TRACED.pending if name != "numpy"]
    while TRACED.pending:
        name = TRACED.pending.pop()
        if name == _NUMBA:
            importlib.import_module("func.host.numba_functions").install()
        else:
            importlib.import_module("func.host.scipy_hooks").install(name)


def _install_indexing() -> None:
    """Let plain arrays take traced indices."""
    with _TURNS.take():
        if TRACED.install_indexing is not None:
            importlib.import_module("func.host.array_indexing").install()
            TRACED.install_indexing = None


_TURNS = Turns()


def _renew_turns() -> None:
    global _TURNS
    _TURNS = Turns()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turns)


def watch_imports() -> None:
    """Start to watch; called once, when func is imported."""
    TRACED.pending.append("numpy")
    TRACED.install_indexing = _install_indexing
    TRACED.pending.extend([name for name in (*MODULES, _NUMBA) if name in sys.modules])
    sys.meta_path.insert(0, ImportWatch())


if _shown is not None:  # in a Python without that function, warnings stay at func's lines
    _python._showwarnmsg = _shown_at_user_line
watch_imports()
