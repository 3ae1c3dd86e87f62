"""The thread pool as LLVM IR: jobs, and workers that spin and then sleep.

One caller at a time owns the pool (`busy`). Its job is open while the OPEN bit of the gate is set. A worker enters by
counting itself into the gate, which succeeds for an open job only, and leaves by counting itself out. A caller without
chunks left closes the gate and waits for the workers inside, never for one that is still waking up.

Twice one side publishes a change and then checks whether the other side sleeps. The other side announces its sleep and
then checks for the change. With sequentially consistent atomics at least one of them sees the other.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Any, NamedTuple

from func.backends.ir import (
    ArrayType,
    Constant,
    Function,
    FunctionType,
    GlobalVariable,
    IntType,
    IRBuilder,
    Module,
    PointerType,
    Type,
    Value,
    VoidType,
)
from func.backends.llvm.host import host
from func.backends.thread_count import MAX_THREADS

VOID, POINTER = VoidType(), PointerType()
BIT, BYTE, INT, WORD = IntType(1), IntType(8), IntType(32), IntType(64)
TASK = FunctionType(VOID, [POINTER, WORD])
"""`void task(ptr data, i64 chunk)`."""

INSIDE = (1 << 32) - 1
"""The bits of the gate that count the workers inside; above them are OPEN and the number of the job."""
OPEN = 1 << 32
JOB_NUMBER = -1 << 33
NEXT_JOB = 1 << 33

CACHE_LINES = 128
"""The alignment of shared variables: two cache lines, since processors fetch them in pairs."""
SIGNAL_SET, LOCK = 256, 128
"""Bytes that are enough for a sigset_t, and for a pthread mutex or condition, on every system."""
PAUSES = 4
"""Pauses of the processor between two reads of a shared variable."""
YIELD_NS = 2_000
"""After this time a spinning thread yields to other threads of its core: it may be waiting for one of them."""

VARIABLES = (
    "gate",
    "next_chunk",
    "busy",
    "sleepers",
    "owner_sleeps",
    "requested",
    "size",
    "spin_ns",
    "task",
    "data",
    "chunks",
    "fp_mode",
)
"""Shared words. `requested` is the desired number of workers, `size` the number at the latest resize. `fp_mode` is the
floating-point control register of the caller, under which all chunks run."""
AREAS = {"mutex": LOCK, "wake": LOCK, "done": LOCK, "alive": MAX_THREADS}
"""Shared bytes."""

EXTERNALS: dict[str, tuple[Type, ...]] = {
    "clock_gettime": (INT, INT, POINTER),
    "memset": (POINTER, POINTER, INT, WORD),
    "pthread_cond_broadcast": (INT, POINTER),
    "pthread_cond_init": (INT, POINTER, POINTER),
    "pthread_cond_signal": (INT, POINTER),
    "pthread_cond_wait": (INT, POINTER, POINTER),
    "pthread_create": (INT, POINTER, POINTER, POINTER, POINTER),
    "pthread_detach": (INT, POINTER),
    "pthread_mutex_init": (INT, POINTER, POINTER),
    "pthread_mutex_lock": (INT, POINTER),
    "pthread_mutex_unlock": (INT, POINTER),
    "pthread_sigmask": (INT, INT, POINTER, POINTER),
    "sched_yield": (INT,),
    "sigdelset": (INT, POINTER, INT),
    "sigfillset": (INT, POINTER),
    "llvm.x86.sse2.pause": (VOID,),
    "llvm.x86.sse.ldmxcsr": (VOID, POINTER),
    "llvm.x86.sse.stmxcsr": (VOID, POINTER),
    "llvm.aarch64.isb": (VOID, INT),
    "llvm.aarch64.get.fpcr": (WORD,),
    "llvm.aarch64.set.fpcr": (VOID, WORD),
}
"""Result and arguments of functions outside the module."""


class System(NamedTuple):
    """The facts about the machine that the code depends on: its architecture and constants of its C headers."""

    arch: str
    monotonic_clock: int
    set_mask: int
    unblocked_signals: tuple[int, ...]
    """Signals that a failing instruction raises in the thread itself."""


def this_system() -> System | None:
    """The machine that runs this process, or None without POSIX threads or with 32-bit addresses."""
    if sys.platform == "win32" or sys.maxsize < 2**32:
        return None
    unblocked = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT)
    arch = host().triple.split("-")[0].replace("arm64", "aarch64")
    return System(arch, time.CLOCK_MONOTONIC, signal.SIG_SETMASK, unblocked)


class PoolBuilder(IRBuilder):
    """Writes one function of the pool; all access to shared variables is sequentially consistent."""

    def __init__(self, module: Module, name: str, result: Type, *parameters: Type, is_public: bool = False) -> None:
        function = Function(module, FunctionType(result, parameters), name)
        function.linkage = "" if is_public else "internal"
        self.args: list[Value] = [*function.args]
        super().__init__(function.append_basic_block())

    def read(self, name: str) -> Value:
        """The value of a shared variable."""
        return self.load_atomic(self.module.get_global(name), "seq_cst", 8)

    def write(self, name: str, value: Value | int) -> None:
        """Set a shared variable."""
        self.store_atomic(_operand(WORD, value), self.module.get_global(name), "seq_cst", 8)

    def update(self, operation: str, name: str, value: int) -> Value:
        """The value of a shared variable before the operation that changes it."""
        return self.atomic_rmw(operation, self.module.get_global(name), WORD(value), "seq_cst")

    def compare_exchange(self, name: str, expected: Value, value: Value) -> Value:
        """Whether the shared variable had the expected value, and so has the new one now."""
        pair = self.cmpxchg(self.module.get_global(name), expected, value, "seq_cst", "seq_cst")
        return self.extract_value(pair, 1)

    def address(self, name: str) -> Value:
        """The address of a shared area or of a function."""
        return self.module.get_global(name)  # type: ignore[no-any-return]

    def alive(self, index: Value) -> Value:
        """The address of the byte that tells whether a worker is alive."""
        return self.gep(self.address("alive"), [index], source_etype=BYTE)

    def scratch(self, size: int) -> Value:
        """Bytes on the stack, allocated at the start of the function."""
        return self.alloca(WORD, size // 8)

    def local(self) -> Value:
        """A word on the stack, 0 at first, allocated at the start of the function."""
        place = self.alloca(WORD)
        self.store(WORD(0), place)
        return place

    def call_name(self, name: str, *args: Any) -> Value:
        """The result of a function of the module or of an external one; None is the null pointer."""
        if name not in self.module.globals:
            result, *parameters = EXTERNALS[name]
            Function(self.module, FunctionType(result, parameters), name)
        function = self.module.get_global(name)
        kinds = function.function_type.args
        return self.call(function, [_operand(kind, arg) for kind, arg in zip(kinds, args, strict=True)])

    def run_chunk(self, task: Value, data: Value, chunk: Value) -> None:
        """Call the task for one chunk."""
        self.call_pointer(task, TASK, [data, chunk])

    def compare(self, left: Value, sign: str, right: Value | int) -> Value:
        """A comparison of signed integers."""
        return self.icmp_signed(sign, left, _operand(left.type, right))

    def masked(self, value: Value, mask: int) -> Value:
        """The bits of a mask."""
        return self.and_(value, WORD(mask))

    def lock_and_unlock(self) -> None:
        """Wait until a thread that holds the lock on the way to its sleep is asleep."""
        self.call_name("pthread_mutex_lock", self.address("mutex"))
        self.call_name("pthread_mutex_unlock", self.address("mutex"))

    def can_join(self, index: Value, gate: Value, last_gate: Value) -> Value:
        """Whether the gate has an open job that is not the last one seen, and this worker is in use."""
        is_open = self.compare(self.masked(gate, OPEN), "!=", 0)
        is_new = self.compare(self.masked(gate, JOB_NUMBER), "!=", self.masked(last_gate, JOB_NUMBER))
        return self.and_(self.and_(is_open, is_new), self.compare(index, "<", self.read("size")))

    def is_idle(self) -> Value:
        """Whether no worker is inside the gate."""
        return self.compare(self.masked(self.read("gate"), INSIDE), "==", 0)


def _operand(kind: Any, value: Any) -> Any:
    return value if isinstance(value, Value) else Constant(kind, value)


def pool_module(system: System | None) -> Module:
    """The module of the pool; without a system every call runs its chunks in the calling thread.

    It defines `func_pool_run(task, data, first, chunks)`, `func_pool_set(workers, spin_ns)`, `func_pool_reset()` and
    `func_pool_workers()`.
    """
    module = Module("func_pool")
    for name in VARIABLES:
        _add_variable(module, name, WORD)
    for name, size in AREAS.items():
        _add_variable(module, name, ArrayType(BYTE, size))
    write_run_inline(module)
    if system is not None:
        write_spinning(module, system)
        write_jobs(module, system)
        write_worker(module, system)
        write_resize(module, system)
    write_public_functions(module, has_threads=system is not None)
    return module


def _add_variable(module: Module, name: str, kind: Type) -> None:
    variable = GlobalVariable(module, kind, name)
    variable.initializer = Constant(kind, None)
    variable.linkage = "internal"
    variable.align = CACHE_LINES


def write_run_inline(module: Module) -> None:
    """`run_inline(task, data, first, chunks)`: all chunks from the first on, one after the other, in this thread."""
    b = PoolBuilder(module, "run_inline", VOID, POINTER, POINTER, WORD, WORD)
    task, data, first, chunks = b.args
    with b.loop(b.sub(chunks, first)) as place:
        b.run_chunk(task, data, b.add(first, place))
    b.ret_void()


def write_spinning(module: Module, system: System) -> None:
    """`now`, `spin_once`, `spin_for_job`, `spin_until_idle`: the clock in nanoseconds, and waits without sleep."""
    b = PoolBuilder(module, "now", WORD)
    timespec = b.scratch(16)
    b.call_name("clock_gettime", system.monotonic_clock, timespec)
    seconds, nanoseconds = [b.load(b.gep(timespec, [WORD(i)], source_etype=WORD), typ=WORD) for i in (0, 1)]
    b.ret(b.add(b.mul(seconds, WORD(1_000_000_000)), nanoseconds))

    b = PoolBuilder(module, "spin_once", BIT, WORD)
    (start,) = b.args
    for _ in range(PAUSES):
        _pause(b, system)
    elapsed = b.sub(b.call_name("now"), start)
    with b.if_then(b.compare(elapsed, ">", YIELD_NS)):
        b.call_name("sched_yield")
    b.ret(b.compare(elapsed, "<", b.read("spin_ns")))

    b = PoolBuilder(module, "spin_for_job", WORD, WORD, WORD)
    index, last_gate = b.args
    start = b.call_name("now")
    with b.repeat():
        gate = b.read("gate")
        with b.if_then(b.can_join(index, gate, last_gate)):
            b.ret(gate)
        with b.if_then(b.not_(b.call_name("spin_once", start))):
            b.ret(gate)

    b = PoolBuilder(module, "spin_until_idle", VOID)
    start = b.call_name("now")
    with b.repeat():
        with b.if_then(b.is_idle()):
            b.ret_void()
        with b.if_then(b.not_(b.call_name("spin_once", start))):
            b.ret_void()


def write_jobs(module: Module, system: System) -> None:
    """`run_chunks`, `wake_workers`, `wait_until_idle`, `run_shared`: the owner's part of a job."""
    b = PoolBuilder(module, "run_chunks", VOID, POINTER, POINTER, WORD)
    task, data, chunks = b.args
    with b.repeat():
        chunk = b.update("add", "next_chunk", 1)
        with b.if_then(b.compare(chunk, ">=", chunks)):
            b.ret_void()
        b.run_chunk(task, data, chunk)

    b = PoolBuilder(module, "wake_workers", VOID, WORD)
    (useful,) = b.args
    sleepers = b.read("sleepers")
    with b.if_then(b.compare(sleepers, "==", 0)):
        b.ret_void()
    b.lock_and_unlock()
    with b.if_then(b.compare(sleepers, "<=", useful)):
        b.call_name("pthread_cond_broadcast", b.address("wake"))
        b.ret_void()
    with b.loop(useful):
        b.call_name("pthread_cond_signal", b.address("wake"))
    b.ret_void()

    b = PoolBuilder(module, "wait_until_idle", VOID)
    b.call_name("spin_until_idle")
    with b.if_then(b.is_idle()):
        b.ret_void()
    b.call_name("pthread_mutex_lock", b.address("mutex"))
    b.write("owner_sleeps", 1)
    with b.repeat():
        with b.if_then(b.is_idle()):
            b.write("owner_sleeps", 0)
            b.call_name("pthread_mutex_unlock", b.address("mutex"))
            b.ret_void()
        b.call_name("pthread_cond_wait", b.address("done"), b.address("mutex"))

    b = PoolBuilder(module, "run_shared", VOID, POINTER, POINTER, WORD, WORD)
    task, data, first, chunks = b.args
    _save_fp_mode(b, system)
    b.write("task", b.ptrtoint(task, WORD))
    b.write("data", b.ptrtoint(data, WORD))
    b.write("chunks", chunks)
    b.write("next_chunk", first)
    number = b.masked(b.read("gate"), JOB_NUMBER)
    b.write("gate", b.or_(b.add(number, WORD(NEXT_JOB)), WORD(OPEN)))
    b.call_name("wake_workers", b.sub(b.sub(chunks, first), WORD(1)))
    b.call_name("run_chunks", task, data, chunks)
    b.update("and", "gate", ~OPEN)
    b.call_name("wait_until_idle")
    b.ret_void()


def write_worker(module: Module, system: System) -> None:
    """`sleep_until_job`, `join_job`, `worker`: the life of a worker, identified by its index."""
    b = PoolBuilder(module, "sleep_until_job", INT, WORD, WORD)
    index, gate = b.args
    b.call_name("pthread_mutex_lock", b.address("mutex"))
    b.update("add", "sleepers", 1)
    with b.repeat():
        is_surplus = b.compare(index, ">=", b.read("size"))
        has_changed = b.compare(b.masked(b.read("gate"), JOB_NUMBER), "!=", b.masked(gate, JOB_NUMBER))
        with b.if_then(b.or_(is_surplus, has_changed)):
            with b.if_then(is_surplus):
                b.store(BYTE(0), b.alive(index))
            b.update("sub", "sleepers", 1)
            b.call_name("pthread_mutex_unlock", b.address("mutex"))
            b.ret(b.zext(is_surplus, INT))
        b.call_name("pthread_cond_wait", b.address("wake"), b.address("mutex"))

    b = PoolBuilder(module, "join_job", WORD, WORD, WORD)
    gate, last_gate = b.args
    register = b.scratch(8)
    has_entered = b.compare_exchange("gate", gate, b.add(gate, WORD(1)))
    with b.if_then(b.not_(has_entered)):
        b.ret(last_gate)
    _load_fp_mode(b, system, register)
    task, data = b.inttoptr(b.read("task"), POINTER), b.inttoptr(b.read("data"), POINTER)
    b.call_name("run_chunks", task, data, b.read("chunks"))
    before = b.update("sub", "gate", 1)
    is_last = b.compare(b.masked(before, OPEN | INSIDE), "==", 1)
    with b.if_then(b.and_(is_last, b.compare(b.read("owner_sleeps"), "!=", 0))):
        b.lock_and_unlock()
        b.call_name("pthread_cond_signal", b.address("done"))
    b.ret(gate)

    b = PoolBuilder(module, "worker", POINTER, POINTER)
    index = b.ptrtoint(b.args[0], WORD)
    last = b.local()
    with b.repeat():
        last_gate = b.load(last, typ=WORD)
        gate = b.call_name("spin_for_job", index, last_gate)
        with b.if_else(b.can_join(index, gate, last_gate)) as (can_join, cannot_join):
            with can_join:
                b.store(b.call_name("join_job", gate, last_gate), last)
            with cannot_join, b.if_then(b.compare(b.call_name("sleep_until_job", index, gate), "!=", 0)):
                b.ret(POINTER(None))


def write_resize(module: Module, system: System) -> None:
    """`resize()`: start the workers that are missing, and wake the others, so that surplus ones end."""
    b = PoolBuilder(module, "resize", VOID)
    thread, blocked, before = b.scratch(8), b.scratch(SIGNAL_SET), b.scratch(SIGNAL_SET)
    b.call_name("sigfillset", blocked)
    for number in system.unblocked_signals:
        b.call_name("sigdelset", blocked, number)
    b.call_name("pthread_sigmask", system.set_mask, blocked, before)
    b.call_name("pthread_mutex_lock", b.address("mutex"))
    requested = b.read("requested")
    b.write("size", requested)
    with b.loop(requested) as index, b.if_then(b.compare(b.load(b.alive(index), typ=BYTE), "==", 0)):
        b.store(BYTE(1), b.alive(index))
        argument = b.inttoptr(index, POINTER)
        status = b.call_name("pthread_create", thread, None, b.address("worker"), argument)
        with b.if_else(b.compare(status, "!=", 0)) as (failed, started):
            with failed:
                b.store(BYTE(0), b.alive(index))
            with started:
                b.call_name("pthread_detach", b.load(thread, typ=POINTER))
    b.call_name("pthread_mutex_unlock", b.address("mutex"))
    b.call_name("pthread_cond_broadcast", b.address("wake"))
    b.call_name("pthread_sigmask", system.set_mask, before, None)
    b.ret_void()


def write_public_functions(module: Module, has_threads: bool) -> None:
    """The functions that Python and other modules call."""
    b = PoolBuilder(module, "func_pool_run", VOID, POINTER, POINTER, WORD, WORD, is_public=True)
    _, _, first, chunks = b.args
    if has_threads:
        requested, size = b.read("requested"), b.read("size")
        has_workers = b.compare(b.or_(requested, size), "!=", 0)
        has_several_chunks = b.compare(b.sub(chunks, first), ">", 1)
        with b.if_then(b.and_(has_workers, has_several_chunks)):
            is_owner = b.compare(b.update("xchg", "busy", 1), "==", 0)
            with b.if_then(is_owner):
                with b.if_then(b.compare(requested, "!=", size)):
                    b.call_name("resize")
                with b.if_else(b.compare(b.read("size"), ">", 0)) as (shared, alone):
                    with shared:
                        b.call_name("run_shared", *b.args)
                    with alone:
                        b.call_name("run_inline", *b.args)
                b.write("busy", 0)
                b.ret_void()
    b.call_name("run_inline", *b.args)
    b.ret_void()

    b = PoolBuilder(module, "func_pool_set", VOID, WORD, WORD, is_public=True)
    workers, spin_ns = b.args
    b.write("spin_ns", spin_ns)
    b.write("requested", workers)
    b.ret_void()

    b = PoolBuilder(module, "func_pool_reset", VOID, is_public=True)
    if has_threads:
        for name in ("gate", "next_chunk", "busy", "sleepers", "owner_sleeps", "size"):
            b.write(name, 0)
        b.call_name("memset", b.address("alive"), 0, MAX_THREADS)
        b.call_name("pthread_mutex_init", b.address("mutex"), None)
        b.call_name("pthread_cond_init", b.address("wake"), None)
        b.call_name("pthread_cond_init", b.address("done"), None)
    b.ret_void()

    b = PoolBuilder(module, "func_pool_workers", WORD, is_public=True)
    total = b.local()
    with b.loop(WORD(MAX_THREADS)) as index:
        is_alive = b.zext(b.load(b.alive(index), typ=BYTE), WORD)
        b.store(b.add(b.load(total, typ=WORD), is_alive), total)
    b.ret(b.load(total, typ=WORD))


def _pause(b: PoolBuilder, system: System) -> None:
    if system.arch == "x86_64":
        b.call_name("llvm.x86.sse2.pause")
    elif system.arch == "aarch64":
        b.call_name("llvm.aarch64.isb", 15)


def _save_fp_mode(b: PoolBuilder, system: System) -> None:
    """Publish the rounding and the treatment of subnormal numbers in the caller's arithmetic."""
    if system.arch == "x86_64":
        register = b.scratch(8)
        b.call_name("llvm.x86.sse.stmxcsr", register)
        b.write("fp_mode", b.zext(b.load(register, typ=INT), WORD))
    elif system.arch == "aarch64":
        b.write("fp_mode", b.call_name("llvm.aarch64.get.fpcr"))


def _load_fp_mode(b: PoolBuilder, system: System, register: Value) -> None:
    """Let this thread's arithmetic be the caller's."""
    if system.arch == "x86_64":
        b.store(b.trunc(b.read("fp_mode"), INT), register)
        b.call_name("llvm.x86.sse.ldmxcsr", register)
    elif system.arch == "aarch64":
        b.call_name("llvm.aarch64.set.fpcr", b.read("fp_mode"))
