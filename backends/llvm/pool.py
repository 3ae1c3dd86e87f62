"""The thread pool of native code, for kernels that are large enough to be split.

Native code calls

    void func_parallel(void (*task)(i8* data, i64 chunk), i8* data, i64 chunks)

which runs the task for the chunks 0 … chunks - 1, on the workers and on the calling thread, and returns when all are
done. The caller chooses the chunks, whatever the number of threads, so what is computed does not depend on it. A
call inside a task, or while another thread uses the pool, runs its chunks on its own thread; so does every call on
systems without POSIX threads. Tasks must not touch Python: the caller may hold the GIL.

Workers start at the first call that has more than one chunk. After a job they look for the next one for a moment, and
then sleep. They are no threads of Python, block the signals that Python handles, and end with the process. A forked
child begins without workers.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import llvmlite.binding as llvm

from func.backends.llvm import pool_size
from func.backends.llvm.machine import Code, compile_ir, host, lock
from func.backends.llvm.pool_ir import pool_module
from func.backends.llvm.pool_writer import System

__all__ = ["SYMBOL", "Pool", "install", "provide"]

SYMBOL = "func_parallel"
SPIN_NS = 30_000
"""How long a worker looks for the next job before it sleeps: about what it takes to wake it."""


class Pool(NamedTuple):
    """The pool of this process."""

    address: int
    """Where `func_parallel` is."""
    workers: Callable[[], int]
    """How many workers there are; the calling thread is not counted."""
    code: Code
    """The native code, which workers run as long as the process lives."""


_pool: Pool | None = None


def install() -> Pool:
    """Make the pool, once per process, and tell LLVM where `func_parallel` is."""
    global _pool
    if _pool is None:
        system = _system()
        with lock:
            if _pool is None:
                _pool = _started(compile_ir(lambda: pool_module(system), f"thread pool, {system}"))
    return _pool


def provide(name: str) -> bool:
    """Whether the name is the pool's; then it can be linked from now on."""
    return name == SYMBOL and install().address != 0


def _started(code: Code) -> Pool:
    configure = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("func_pool_set"))
    reset = ctypes.CFUNCTYPE(None)(code.address("func_pool_reset"))
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("func_pool_workers"))
    reset()
    pool_size.follow(lambda number: configure(number - 1, SPIN_NS if number <= pool_size.usable_cores() else 0))
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=reset)
    pool = Pool(code.address(SYMBOL), workers, code)
    llvm.add_symbol(SYMBOL, pool.address)
    return pool


def _system() -> System | None:
    if sys.platform == "win32" or sys.maxsize < 2**32:
        return None
    kept = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT)
    arch = host().triple.split("-")[0].replace("arm64", "aarch64")
    return System(arch, time.CLOCK_MONOTONIC, signal.SIG_SETMASK, kept)
