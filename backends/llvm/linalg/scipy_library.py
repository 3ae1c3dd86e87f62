"""SciPy's BLAS and LAPACK in this process: addresses of routines, and of OpenBLAS's two functions for its threads.

SciPy's wheels contain an OpenBLAS whose names have a special prefix. The dynamic linker finds its routines there,
without an import of SciPy. Elsewhere they are SciPy's exports to Cython: C function pointers, which call the same
routines. Compiled code from the cache needs the addresses alone, so nothing here imports printers.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import Any

from func.backends.llvm import symbols

PREFIX = "func_"
GET, SET = "func_blas_get_threads", "func_blas_set_threads"
WHEEL = "scipy_{}_"
"""The name of a routine with integers of 32 bits in the OpenBLAS of SciPy's wheels."""
NAMES = tuple(
    [
        (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
        for prefix in ("scipy_", "")
        for suffix in ("", "64_")
    ]
)
"""The names of the two functions in SciPy's wheels and in other builds of OpenBLAS."""


def _exports(module: str) -> dict[str, Any]:
    """The capsules of `cython_blas` or `cython_lapack`: each has an address, and the C signature as its name."""
    exports: dict[str, Any] = _module(module).__dict__["__pyx_capi__"]
    return exports


@functools.cache
def _module(module: str) -> ModuleType:
    name = f"scipy.linalg.{module}"
    loaded = sys.modules.get(name) or (None if sys.platform == "win32" else _loaded_alone(module))
    return loaded if loaded is not None else importlib.import_module(name)


def _loaded_alone(module: str) -> ModuleType | None:
    """The extension module without its package, whose import takes ten times as long; None if that fails.

    A regular import later on makes the same module known under its name.
    """
    name = f"scipy.linalg.{module}"
    known = set(sys.modules)
    try:
        spec = importlib.util.spec_from_file_location(name, _file(module))
        if spec is not None and spec.loader is not None:
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            return loaded
    except ImportError:
        pass
    finally:
        if name not in known:
            sys.modules.pop(name, None)
    return None


@functools.cache
def _file(module: str) -> str:
    """The file of an extension module of `scipy.linalg`. Raises: ImportError where there is none."""
    package = importlib.util.find_spec("scipy")
    for place in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            file = os.path.join(place, "linalg", module + suffix)
            if os.path.exists(file):
                return file
    raise ImportError(f"SciPy has no file of scipy.linalg.{module}")


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The module `cython_blas` as a library, with its BLAS; None without a file.

    Also None on Windows, which does not look names up in the libraries of a library.
    """
    if sys.platform == "win32":
        return None
    try:
        return ctypes.CDLL(_file("cython_blas"))
    except (ImportError, OSError):
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
    library = _library()
    if library is None:
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
    routine, library = name.removeprefix(PREFIX), _library()
    address = None if library is None else symbols.address_in(library, WHEEL.format(routine))
    return address or _exported(routine)


def _exported(routine: str) -> int | None:
    """The address that SciPy exports to Cython."""
    try:
        exported = capsule(routine)
    except ImportError:
        return None
    if exported is None:
        return None
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer: int = get_pointer(exported, capsule_name(exported))
    return pointer
