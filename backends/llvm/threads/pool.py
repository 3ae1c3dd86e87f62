"""The thread pool of native code, for kernels that are large enough to be split.

Native code calls

    void func_parallel(void (*task)(i8* data, i64 chunk), i8* data, i64 chunks)

which runs the task for the chunks 0 … chunks - 1, on the workers and on the calling thread, and returns when all are
done. The caller chooses the chunks, whatever the number of threads, so what is computed does not depend on it. A
call inside a task, or while another thread uses the pool, runs its chunks on its own thread; so does every call on
systems without POSIX threads. Tasks must not touch Python: the caller may hold the GIL.

`func_parallel` is a trampoline of a few instructions. The pool behind it takes longer to compile than most programs, so
it is compiled in the background (`background.py`): until then the calling thread runs the chunks itself, and hands the
rest of them to the pool as soon as that is there.

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
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from func.backends.llvm.machine import Code, compile_ir, existing_code, host, lock
from func.backends.llvm.threads import background, pool_size

SYMBOL = "func_parallel"
SPIN_NS = 30_000
"""How long a worker looks for the next job before it sleeps: about what it takes to wake it."""

DOOR = """
@func_pool = global ptr null

define void @func_parallel(ptr %task, ptr %data, i64 %chunks) {
begin:
  br label %look
look:
  %chunk = phi i64 [ 0, %begin ], [ %next, %here ]
  %pool = load atomic ptr, ptr @func_pool acquire, align 8
  %is_missing = icmp eq ptr %pool, null
  br i1 %is_missing, label %alone, label %shared
shared:
  tail call void %pool(ptr %task, ptr %data, i64 %chunk, i64 %chunks)
  ret void
alone:
  %is_left = icmp slt i64 %chunk, %chunks
  br i1 %is_left, label %here, label %end
here:
  call void %task(ptr %data, i64 %chunk)
  %next = add i64 %chunk, 1
  br label %look
end:
  ret void
}
"""
"""`func_parallel`, and the address of the pool's `func_pool_run`, which also takes the number of the first chunk."""


class System(NamedTuple):
    """What the code must know of the machine: its architecture and the constants of its C headers."""

    arch: str
    monotonic_clock: int
    set_mask: int
    kept_signals: tuple[int, ...]


class Pool(NamedTuple):
    """The pool of this process."""

    address: int
    """Where `func_parallel` is."""
    workers: Callable[[], int]
    """How many workers there are; the calling thread is not counted."""
    code: Code
    """The native code, which workers run as long as the process lives."""


_door: Code | None = None
_pool: Pool | None = None


def install() -> Pool:
    """Make the pool, once per process, and tell LLVM where `func_parallel` is."""
    return _installed(lambda: compile_ir(_module, _key()))


def provide(name: str) -> bool:
    """Whether the name is the pool's; then it can be linked from now on, and the pool is made now or later."""
    if name != SYMBOL:
        return False
    _opened()
    pool_size.follow(_make_later)
    return True


def _opened() -> Code:
    """The door, which LLVM knows from now on."""
    global _door
    with lock:
        if _door is None:
            _door = compile_ir(DOOR)
            llvm.add_symbol(SYMBOL, _door.address(SYMBOL))
        return _door


def _make_later(threads: int) -> None:
    """See to it that there will be a pool, if it is needed for so many threads; at once where that takes no time."""
    if _pool is None and threads > 1:
        code = existing_code(_module, _key())
        if code is None:
            background.ask("thread pool", install)
        else:
            _installed(lambda: code)


def _installed(compiled: Callable[[], Code]) -> Pool:
    global _pool
    with lock:
        if _pool is None:
            _pool = _started(compiled())
        return _pool


def _started(code: Code) -> Pool:
    configure = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("func_pool_set"))
    reset = ctypes.CFUNCTYPE(None)(code.address("func_pool_reset"))
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("func_pool_workers"))
    reset()
    pool_size.follow(lambda number: configure(number - 1, SPIN_NS if number <= pool_size.usable_cores() else 0))
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=reset)
    door = _opened()
    ctypes.c_void_p.from_address(door.address("func_pool")).value = code.address("func_pool_run")
    return Pool(door.address(SYMBOL), workers, code)


def _module() -> Any:
    """The code of the pool; what writes it is imported only if it is not on disk."""
    from func.backends.llvm.threads.pool_code import pool_module

    return pool_module(_system())


def _key() -> str:
    return f"thread pool, {_system()}"


def _system() -> System | None:
    if sys.platform == "win32" or sys.maxsize < 2**32:
        return None
    kept = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT)
    arch = host().triple.split("-")[0].replace("arm64", "aarch64")
    return System(arch, time.CLOCK_MONOTONIC, signal.SIG_SETMASK, kept)
