"""SciPy's BLAS and LAPACK in this process: addresses of routines, and of OpenBLAS's two functions for its threads.

SciPy exports every routine to Cython as a C function pointer. Compiled code from the cache needs the addresses alone,
so nothing here imports what prints code.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from func.backends.llvm import symbols

PREFIX = "func_"
GET, SET = "func_blas_get_threads", "func_blas_set_threads"
NAMES = tuple(
    [
        (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
        for prefix in ("scipy_", "")
        for suffix in ("", "64_")
    ]
)
"""The names of the two functions in SciPy's wheels and in other builds of OpenBLAS."""


def library_path() -> str:
    """The file of the module that exports BLAS. Raises: ImportError, AttributeError without such a module."""
    return str(_module("cython_blas").__file__)


def _exports(module: str) -> dict[str, Any]:
    """The capsules of `cython_blas` or `cython_lapack`: each holds an address, and has the C signature as its name."""
    exports: dict[str, Any] = _module(module).__dict__["__pyx_capi__"]
    return exports


@functools.cache
def _module(module: str) -> ModuleType:
    name = f"scipy.linalg.{module}"
    loaded = sys.modules.get(name) or (None if sys.platform == "win32" else _loaded_alone(module))
    return loaded if loaded is not None else importlib.import_module(name)


def _loaded_alone(module: str) -> ModuleType | None:
    """The extension module without its package, whose import takes ten times as long; None where that fails.

    A regular import later on makes the same module known under its name.
    """
    name = f"scipy.linalg.{module}"
    package = importlib.util.find_spec("scipy")
    known = set(sys.modules)
    try:
        places = package.submodule_search_locations if package is not None else None
        files = [file for place in places or () for file in sorted(Path(place, "linalg").glob(f"{module}.*"))]
        for file in files:
            spec = importlib.util.spec_from_file_location(name, file)
            if file.suffix in (".so", ".pyd") and spec is not None and spec.loader is not None:
                loaded = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(loaded)
                return loaded
    except ImportError:
        pass
    finally:
        if name not in known:
            sys.modules.pop(name, None)
    return None


def capsule(name: str) -> Any | None:
    """The capsule of a routine, None for one that SciPy does not export."""
    for module in ("cython_blas", "cython_lapack"):
        exported = _exports(module).get(name)
        if exported is not None:
            return exported
    return None


def capsule_name(exported: Any) -> bytes:
    """The C signature of a routine."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name: bytes = get_name(exported)
    return name


@functools.cache
def thread_functions() -> dict[str, int]:
    """The addresses of OpenBLAS's two functions, as SciPy's own module sees them; none for another BLAS."""
    if sys.platform == "win32":  # a module's libraries are not searched there
        return {}
    try:
        library = ctypes.CDLL(library_path())
    except (ImportError, OSError):
        return {}
    for names in NAMES:
        addresses = [symbols.address_in(library, name) or 0 for name in names]
        if all(addresses):
            return dict(zip((GET, SET), addresses, strict=True))
    return {}


def address_of(name: str) -> int | None:
    """The address of the routine with this symbol; None if there is none.

    >>> address_of("func_dpotrf") is None, address_of("func_of_nobody") is None
    (False, True)
    """
    if name in (GET, SET):
        return thread_functions().get(name)
    try:
        exported = capsule(name.removeprefix(PREFIX))
    except ImportError:
        return None
    if exported is None:
        return None
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get_pointer(exported, capsule_name(exported))
    return address
