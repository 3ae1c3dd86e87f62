"""The addresses behind the names that compiled code refers to.

A name belongs to libc or libm, to glibc's vector library, or to a module of func. These provide BLAS routines and
special functions of SciPy, sorts of NumPy, the trampoline of the thread pool, elementary functions and products of
matrices. The first look-up of a name compiles functions of func's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

Text: TypeAlias = Callable[[], Any]
"""A function that prints a module."""

PROVIDERS = tuple(
    [
        f"func.backends.{name}"
        for name in (
            "llvm.math.own_functions",
            "llvm.threads.pool",
            "llvm.call_stubs.numpy_sorts",
            "llvm.linalg.thin_products",
            "scalars.scipy_exports",
            "llvm.linalg.scipy_library",
        )
    ]
)
"""Modules that know addresses: `address_of(name)` is the address of a name that the module provides, and None for other
names. The last module looks into SciPy's BLAS and LAPACK, which take longest to load."""
PRINTERS = tuple(
    [f"func.backends.llvm.{name}" for name in ("math.own_functions", "threads.pool", "linalg.thin_products")]
)
"""Modules that compile what they provide: `module_of(name)` is the key of the code and a function that prints it, None
for other names."""
OWN_PREFIX = "func_"
"""The beginning of all names that the modules provide."""
VECTOR_PREFIX = "_ZGV"
"""The beginning of the names of libmvec."""
MATH_LIBRARIES = ("libm.so.6", "libm.so", "libm.dylib")


@functools.cache
def find(name: str) -> int | None:
    """The address of a function in this process; None for a name that nothing provides.

    >>> find("cos") is not None or sys.platform == "win32", find("func_of_nobody")
    (True, None)
    """
    if not name.startswith(OWN_PREFIX):
        return _in_libraries(name)
    for provider in PROVIDERS:
        address: int | None = importlib.import_module(provider).address_of(name)
        if address:
            return address
    return None


def module_of(name: str) -> tuple[str, Text] | None:
    """The key of the code that defines a name, and the printer of its text; None if nothing needs compilation.

    >>> module_of("func_own_256f_v4f64_exp")[0], module_of("func_dpotrf")
    ('func_own_256f_v4f64_exp', None)
    """
    for printer in PRINTERS:
        module: tuple[str, Text] | None = importlib.import_module(printer).module_of(name)
        if module is not None:
            return module
    return None


def address_in(library: ctypes.CDLL, name: str) -> int | None:
    """The address of a function of a library; None if the library lacks it."""
    function = getattr(library, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def load_libmvec() -> ctypes.CDLL | None:
    """glibc's vector library; None if there is none."""
    return _opened("libmvec.so.1") if sys.platform == "linux" else None


def _in_libraries(name: str) -> int | None:
    libraries = _libraries()
    if name.startswith(VECTOR_PREFIX) and (libmvec := load_libmvec()) is not None:
        libraries = (*libraries, libmvec)
    for library in libraries:
        address = address_in(library, name)
        if address:
            return address
    return None


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """The libraries of the process, and libm. Windows has no name for the former; there LLVM finds them."""
    if sys.platform == "win32":
        return ()
    process = ctypes.CDLL(None)
    if address_in(process, "cos"):
        return (process,)
    return (process, *[library for library in map(_opened, MATH_LIBRARIES) if library is not None][:1])


def _opened(name: str) -> ctypes.CDLL | None:
    with contextlib.suppress(OSError):
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    return None
