"""How many threads BLAS uses while native code runs.

The threads of OpenBLAS wait for each other in a busy loop. Where another thread has their core, a product of a tenth
of a millisecond waits for milliseconds. Native code therefore asks for one thread, cuts its products into chunks for
the pool, and restores the number afterwards. Routines so large that waiting hardly matters run on the threads
that the user has set for BLAS.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import llvmlite.binding as llvm

from func.backends.llvm import ir
from func.backends.llvm.linalg import routines
from func.backends.llvm.linalg.matrix_copies import INT
from func.backends.llvm.machine import lock

GET, SET = "func_blas_get_threads", "func_blas_set_threads"
NAMES = tuple(
    [
        (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
        for prefix in ("scipy_", "")
        for suffix in ("", "64_")
    ]
)
"""The names of the two functions in SciPy's wheels and in other builds of OpenBLAS."""


@functools.cache
def _addresses() -> dict[str, int]:
    """The addresses of OpenBLAS's two functions, as SciPy's own module sees them; none for another BLAS."""
    if sys.platform == "win32":  # a module's libraries are not searched there
        return {}
    try:
        library = ctypes.CDLL(routines.library_path())
    except (ImportError, OSError):
        return {}
    for names in NAMES:
        addresses = [_address(library, name) for name in names]
        if all(addresses):
            return dict(zip((GET, SET), addresses, strict=True))
    return {}


def _address(library: ctypes.CDLL, name: str) -> int:
    """The address of a function of a library; 0 if the library does not have it."""
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def has_control() -> bool:
    """Whether native code can read and set the number of BLAS's threads."""
    return bool(_addresses()) and all([provide(name) for name in (GET, SET)])


def provide(name: str) -> bool:
    """Register the address of one of OpenBLAS's two functions; False for other names or without OpenBLAS."""
    address = _addresses().get(name) if name in (GET, SET) else None
    if not address:
        return False
    with lock:
        llvm.add_symbol(name, address)
    return True


class BlasThreads:
    """The number of BLAS's threads in one function of native code."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder
        self._user_threads: Any = None

    def hold(self) -> None:
        """Use one thread from the beginning of the function on."""
        if self._user_threads is None and has_control():
            b = self.builder
            with b.goto_entry_block():
                self._user_threads = b.call(self._function(GET, INT, []), [])
                self._set(ir.Constant(INT, 1))

    def release(self) -> None:
        """The number of threads from before `hold`."""
        if self._user_threads is not None:
            self._set(self._user_threads)

    def resume(self) -> None:
        """One thread again, after `release`."""
        if self._user_threads is not None:
            self._set(ir.Constant(INT, 1))

    def _set(self, number: ir.Value) -> None:
        self.builder.call(self._function(SET, ir.VoidType(), [INT]), [number])

    def _function(self, name: str, result: Any, args: list[Any]) -> ir.Function:
        known = self.builder.module.globals.get(name)
        return known or ir.Function(self.builder.module, ir.FunctionType(result, args), name)
