"""The thread pool of native code, for kernels that are large enough to run in chunks.

Native code calls

    void func_parallel(void (*task)(i8* data, i64 chunk), i8* data, i64 chunks)

It runs the task for the chunks 0 … chunks - 1 on the workers and on the calling thread, and returns when all are done.
The caller chooses the chunks independently of the number of threads, so results do not depend on it. A call inside a
task, or while another thread uses the pool, runs its chunks on its own thread. So does every call on systems without
POSIX threads. Tasks must not touch Python: the caller may hold the GIL.

`func_parallel` is a trampoline of a few instructions. The pool behind it takes longer to compile than most programs, so
it is compiled in the background (`background.py`). Until the pool exists the calling thread runs the chunks itself; it
then hands over the remaining ones.

Workers start at the first call that has more than one chunk. After a job they spin for a moment, and then sleep. They
are not threads of Python, block the signals that Python handles, and end with the process. A forked child begins
without workers.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from func.backends import thread_count
from func.backends.llvm.machine import MachineCode, compile_ir, existing_code, lock
from func.backends.llvm.threads import background

SYMBOL = "func_parallel"
POOL_VARIABLE = "func_pool"
"""The variable of the trampoline with the address of the pool's `func_pool_run`, or null."""
KEY, TRAMPOLINE_KEY = "thread pool", "trampoline of the thread pool"
SPIN_NS = 30_000
"""How long a worker spins before it sleeps: about as long as it takes to wake it."""


class Pool(NamedTuple):
    """The pool of this process."""

    address: int
    """The address of `func_parallel`."""
    workers: Callable[[], int]
    """The number of workers, without the calling thread."""
    code: MachineCode
    """The native code, which workers run as long as the process lives."""


_trampoline: MachineCode | None = None
_pool: Pool | None = None


def install() -> Pool:
    """The pool, made once per process; `func_parallel` uses it from now on."""
    return _installed(lambda: compile_ir(_pool_module, KEY))


def address_of(name: str) -> int | None:
    """The address of `func_parallel`, and None for other names; makes the pool now or later."""
    if name != SYMBOL:
        return None
    trampoline = _linked_trampoline()
    thread_count.subscribe(_request_pool)
    return trampoline.address(SYMBOL)


def module_of(name: str) -> tuple[str, Callable[[], Any]] | None:
    """The key of the trampoline's code and its printer; None for other names."""
    return (TRAMPOLINE_KEY, trampoline_module) if name == SYMBOL else None


def _linked_trampoline() -> MachineCode:
    """The code of `func_parallel`."""
    global _trampoline
    with lock:
        if _trampoline is None:
            _trampoline = compile_ir(trampoline_module, TRAMPOLINE_KEY)
        return _trampoline


def trampoline_module() -> Any:
    """`func_parallel`, which calls the pool with the number of the first remaining chunk, or runs this chunk."""
    from func.backends import ir  # the import is needed only if the object code is not on disk

    void, pointer, word = ir.VoidType(), ir.PointerType(), ir.IntType(64)
    task_type = ir.FunctionType(void, [pointer, word])
    run_type = ir.FunctionType(void, [pointer, pointer, word, word])
    module = ir.Module(SYMBOL)
    variable = ir.GlobalVariable(module, pointer, POOL_VARIABLE)
    variable.initializer = pointer(None)
    function = ir.Function(module, ir.FunctionType(void, [pointer, pointer, word]), SYMBOL)
    task, data, chunks = function.args
    b = ir.IRBuilder(function.append_basic_block("start"))
    with b.loop(chunks) as chunk:
        pool = b.load_atomic(variable, "acquire", 8)
        with b.if_then(b.icmp_unsigned("!=", pool, pointer(None))):
            b.call_pointer(pool, run_type, [task, data, chunk, chunks], tail=True)
            b.ret_void()
        b.call_pointer(task, task_type, [data, chunk])
    b.ret_void()
    return module


def _request_pool(threads: int) -> None:
    """Provide a pool if that many threads need one: at once if its code is there, or else in the background."""
    if _pool is None and threads > 1:
        code = existing_code(_pool_module, KEY)
        if code is None:
            background.request("thread pool", install)
        else:
            _installed(lambda: code)


def _installed(compiled: Callable[[], MachineCode]) -> Pool:
    global _pool
    with lock:
        if _pool is None:
            _pool = _started(compiled())
        return _pool


def _started(code: MachineCode) -> Pool:
    configure = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("func_pool_set"))
    reset = ctypes.CFUNCTYPE(None)(code.address("func_pool_reset"))
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("func_pool_workers"))
    reset()
    thread_count.subscribe(
        lambda number: configure(number - 1, SPIN_NS if number <= thread_count.usable_cores() else 0)
    )
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=reset)
    trampoline = _linked_trampoline()
    ctypes.c_void_p.from_address(trampoline.address(POOL_VARIABLE)).value = code.address("func_pool_run")
    return Pool(trampoline.address(SYMBOL), workers, code)


def _pool_module() -> Any:
    # The import is needed only if the object code is not on disk.
    from func.backends.llvm.threads.pool_code import pool_module, this_system

    return pool_module(this_system())
