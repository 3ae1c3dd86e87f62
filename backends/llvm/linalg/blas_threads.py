"""The number of BLAS's threads while native code runs.

The threads of OpenBLAS wait for each other in a busy loop. If another thread has their core, a product of a tenth of a
millisecond waits for milliseconds. So native code sets one thread, cuts its products into chunks for the pool, and
restores the number afterwards. Large routines, for which the wait hardly matters, run on the user's number of threads.
"""

from __future__ import annotations

from typing import Any

from func.backends import ir
from func.backends.llvm.linalg.matrix_copies import INT
from func.backends.llvm.linalg.scipy_library import GET, SET, thread_functions


def has_control() -> bool:
    """Whether native code can read and set the number of BLAS's threads."""
    return bool(thread_functions())


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
