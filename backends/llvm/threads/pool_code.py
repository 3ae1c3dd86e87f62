"""The thread pool as LLVM IR: jobs, workers that spin and then sleep, and their life.

One caller at a time owns the pool (`busy`). Its job is open as long as the gate's OPEN bit is set; workers enter by
counting themselves into the gate, which succeeds for an open job only, and count themselves out. So a caller that has
run out of chunks closes the gate and waits for those inside, never for a worker that is still waking up.

Twice one side publishes something and then looks whether the other sleeps, while the other announces its sleep and
then looks for what was published: with sequentially consistent atomics one of them sees the other.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from func.backends.llvm.threads.pool import System
from func.backends.llvm.threads.pool_size import MAX_THREADS
from func.backends.llvm.threads.pool_writer import (
    BIT,
    BYTE,
    BYTES,
    INT,
    TASK,
    VOID,
    WORD,
    Body,
    add_area,
    add_word,
    word,
)

INSIDE = (1 << 32) - 1
"""The bits of the gate that count the workers inside; above them are OPEN and the number of the job."""
OPEN = 1 << 32
NUMBER = -1 << 33
ONE_JOB = 1 << 33

SIGNAL_SET, LOCK = 256, 128
"""Bytes that are enough for a sigset_t, and for a pthread mutex or condition, on every system."""
PAUSES = 4
"""Pauses of the processor between two looks at a shared variable."""
YIELD_NS = 2_000
"""After so long the one who looks gives way to other threads of its core: it may be the very one it waits for."""

WORDS = ("gate", "next", "busy", "sleepers", "waiting", "helpers", "wanted", "spin", "task", "data", "chunks", "mode")
"""The shared variables. `helpers` is how many workers there shall be, `wanted` how many the pool has been fitted to;
`mode` is the floating-point control register of the caller, under which all chunks run."""
AREAS = {"mutex": LOCK, "wake": LOCK, "done": LOCK, "alive": MAX_THREADS}


def pool_module(system: System | None) -> ir.Module:
    """The module of the pool; None stands for a system without POSIX threads, where every call runs inline.

    It defines `func_pool_run(task, data, first, chunks)`, `func_pool_set(helpers, spin_ns)`, `func_pool_reset()` and
    `func_pool_workers()`.
    """
    module = ir.Module("func_pool")
    for name in WORDS:
        add_word(module, name)
    for name, size in AREAS.items():
        add_area(module, name, size)
    write_inline(module)
    if system is not None:
        write_waiting(module, system)
        write_jobs(module, system)
        write_worker(module, system)
        write_fit(module, system)
    write_doors(module, threads=system is not None)
    return module


def write_inline(module: ir.Module) -> None:
    """`inline(task, data, first, chunks)`: all chunks from the first on, one after the other, here."""
    body = Body(module, "inline", VOID, TASK, BYTES, WORD, WORD)
    task, data, first, chunks = body.args
    left = body.builder.sub(chunks, first)
    with body.when(body.is_(left, ">", 0)), body.count(left) as place:
        body.builder.call(task, [data, body.builder.add(first, place)])
    body.give()


def write_waiting(module: ir.Module, system: System) -> None:
    """`now`, `rest`, `look`, `linger`: the clock in nanoseconds, and the waits that look and do not sleep."""
    body = Body(module, "now", WORD)
    time = body.scratch(16)
    body.call("clock_gettime", system.monotonic_clock, time)
    words = body.builder.bitcast(time, WORD.as_pointer())
    seconds, rest = [body.builder.load(body.builder.gep(words, [word(i)], source_etype=WORD), typ=WORD) for i in (0, 1)]
    body.give(body.builder.add(body.builder.mul(seconds, word(1_000_000_000)), rest))

    body = Body(module, "rest", BIT, WORD)
    for _ in range(PAUSES):
        pause(body, system)
    waited = body.builder.sub(body.call("now"), body.args[0])
    with body.when(body.is_(waited, ">", YIELD_NS)):
        body.call("sched_yield")
    body.give(body.is_(waited, "<", body.read("spin")))

    body = Body(module, "look", WORD, WORD, WORD)
    index, seen = body.args
    start = body.call("now")
    with body.repeat():
        gate = body.read("gate")
        with body.when(joinable(body, index, gate, seen)):
            body.give(gate)
        with body.when(body.builder.not_(body.call("rest", start))):
            body.give(gate)

    body = Body(module, "linger", VOID)
    start = body.call("now")
    with body.repeat():
        with body.when(is_empty(body)):
            body.give()
        with body.when(body.builder.not_(body.call("rest", start))):
            body.give()


def write_jobs(module: ir.Module, system: System) -> None:
    """`take`, `wake_up`, `finish`, `share`: what the owner of the pool does for one job."""
    body = Body(module, "take", VOID, TASK, BYTES, WORD)
    task, data, chunks = body.args
    with body.repeat():
        chunk = body.change("add", "next", 1)
        with body.when(body.is_(chunk, ">=", chunks)):
            body.give()
        body.builder.call(task, [data, chunk])

    body = Body(module, "wake_up", VOID, WORD)
    (useful,) = body.args
    sleepers = body.read("sleepers")
    with body.when(body.is_(sleepers, "==", 0)):
        body.give()
    pass_lock(body)
    with body.when(body.is_(sleepers, "<=", useful)):
        body.call("pthread_cond_broadcast", body.area("wake"))
        body.give()
    with body.count(useful):
        body.call("pthread_cond_signal", body.area("wake"))
    body.give()

    body = Body(module, "finish", VOID)
    body.call("linger")
    with body.when(is_empty(body)):
        body.give()
    body.call("pthread_mutex_lock", body.area("mutex"))
    body.write("waiting", 1)
    with body.repeat():
        with body.when(is_empty(body)):
            body.write("waiting", 0)
            body.call("pthread_mutex_unlock", body.area("mutex"))
            body.give()
        body.call("pthread_cond_wait", body.area("done"), body.area("mutex"))

    body = Body(module, "share", VOID, TASK, BYTES, WORD, WORD)
    task, data, first, chunks = body.args
    keep_mode(body, system)
    body.write("task", body.builder.ptrtoint(task, WORD))
    body.write("data", body.builder.ptrtoint(data, WORD))
    body.write("chunks", chunks)
    body.write("next", first)
    number = body.masked(body.read("gate"), NUMBER)
    body.write("gate", body.builder.or_(body.builder.add(number, word(ONE_JOB)), word(OPEN)))
    body.call("wake_up", body.builder.sub(body.builder.sub(chunks, first), word(1)))
    body.call("take", task, data, chunks)
    body.change("and", "gate", ~OPEN)
    body.call("finish")
    body.give()


def write_worker(module: ir.Module, system: System) -> None:
    """`doze`, `serve`, `worker`: the life of a worker, which is known by its index."""
    body = Body(module, "doze", INT, WORD, WORD)
    index, gate = body.args
    body.call("pthread_mutex_lock", body.area("mutex"))
    body.change("add", "sleepers", 1)
    with body.repeat():
        gone = body.is_(index, ">=", body.read("wanted"))
        changed = body.is_(body.masked(body.read("gate"), NUMBER), "!=", body.masked(gate, NUMBER))
        with body.when(body.builder.or_(gone, changed)):
            with body.when(gone):
                body.builder.store(BYTE(0), body.byte("alive", index))
            body.change("sub", "sleepers", 1)
            body.call("pthread_mutex_unlock", body.area("mutex"))
            body.give(body.builder.zext(gone, INT))
        body.call("pthread_cond_wait", body.area("wake"), body.area("mutex"))

    body = Body(module, "serve", WORD, WORD, WORD)
    gate, seen = body.args
    mode = body.scratch(8)
    entered = body.exchange_if("gate", gate, body.builder.add(gate, word(1)))
    with body.when(body.builder.not_(entered)):
        body.give(seen)
    adopt_mode(body, system, mode)
    task, data = body.builder.inttoptr(body.read("task"), TASK), body.builder.inttoptr(body.read("data"), BYTES)
    body.call("take", task, data, body.read("chunks"))
    before = body.change("sub", "gate", 1)
    is_last = body.is_(body.masked(before, OPEN | INSIDE), "==", 1)
    with body.when(body.builder.and_(is_last, body.is_(body.read("waiting"), "!=", 0))):
        pass_lock(body)
        body.call("pthread_cond_signal", body.area("done"))
    body.give(gate)

    body = Body(module, "worker", BYTES, BYTES)
    index = body.builder.ptrtoint(body.args[0], WORD)
    last = body.variable()
    with body.repeat():
        seen = body.builder.load(last, typ=WORD)
        gate = body.call("look", index, seen)
        with body.builder.if_else(joinable(body, index, gate, seen)) as (joins, rests):
            with joins:
                body.builder.store(body.call("serve", gate, seen), last)
            with rests, body.when(body.is_(body.call("doze", index, gate), "!=", 0)):
                body.builder.ret(BYTES(None))


def write_fit(module: ir.Module, system: System) -> None:
    """`fit()`: start the workers that are missing, and wake the others, so that those out of use see it and end."""
    body = Body(module, "fit", VOID)
    thread, blocked, before = body.scratch(8), body.scratch(SIGNAL_SET), body.scratch(SIGNAL_SET)
    body.call("sigfillset", blocked)
    for number in system.kept_signals:
        body.call("sigdelset", blocked, number)
    body.call("pthread_sigmask", system.set_mask, blocked, before)
    body.call("pthread_mutex_lock", body.area("mutex"))
    helpers = body.read("helpers")
    body.write("wanted", helpers)
    with body.when(body.is_(helpers, ">", 0)), body.count(helpers) as index:
        alive = body.byte("alive", index)
        with body.when(body.is_(body.builder.load(alive, typ=BYTE), "==", 0)):
            body.builder.store(BYTE(1), alive)
            worker, argument = body.address("worker"), body.builder.inttoptr(index, BYTES)
            failed = body.is_(body.call("pthread_create", thread, None, worker, argument), "!=", 0)
            with body.builder.if_else(failed) as (no_thread, started):
                with no_thread:
                    body.builder.store(BYTE(0), alive)
                with started:
                    handle = body.builder.load(body.builder.bitcast(thread, WORD.as_pointer()), typ=WORD)
                    body.call("pthread_detach", body.builder.inttoptr(handle, BYTES))
    body.call("pthread_mutex_unlock", body.area("mutex"))
    body.call("pthread_cond_broadcast", body.area("wake"))
    body.call("pthread_sigmask", system.set_mask, before, None)
    body.give()


def write_doors(module: ir.Module, threads: bool) -> None:
    """The functions that others call."""
    body = Body(module, "func_pool_run", VOID, TASK, BYTES, WORD, WORD, public=True)
    if threads:
        left = body.builder.sub(body.args[3], body.args[2])
        helpers, wanted = body.read("helpers"), body.read("wanted")
        has_pool = body.is_(body.builder.or_(helpers, wanted), "!=", 0)
        with body.when(body.builder.and_(has_pool, body.is_(left, ">", 1))):
            is_mine = body.is_(body.change("xchg", "busy", 1), "==", 0)
            with body.when(is_mine):
                with body.when(body.is_(helpers, "!=", wanted)):
                    body.call("fit")
                with body.builder.if_else(body.is_(body.read("wanted"), ">", 0)) as (shared, alone):
                    with shared:
                        body.call("share", *body.args)
                    with alone:
                        body.call("inline", *body.args)
                body.write("busy", 0)
                body.give()
    body.call("inline", *body.args)
    body.give()

    body = Body(module, "func_pool_set", VOID, WORD, WORD, public=True)
    body.write("spin", body.args[1])
    body.write("helpers", body.args[0])
    body.give()

    body = Body(module, "func_pool_reset", VOID, public=True)
    if threads:
        for name in ("gate", "next", "busy", "sleepers", "waiting", "wanted"):
            body.write(name, 0)
        body.call("memset", body.area("alive"), 0, MAX_THREADS)
        body.call("pthread_mutex_init", body.area("mutex"), None)
        body.call("pthread_cond_init", body.area("wake"), None)
        body.call("pthread_cond_init", body.area("done"), None)
    body.give()

    body = Body(module, "func_pool_workers", WORD, public=True)
    number = body.variable()
    with body.count(word(MAX_THREADS)) as index:
        alive = body.builder.load(body.byte("alive", index), typ=BYTE)
        total = body.builder.add(body.builder.load(number, typ=WORD), body.builder.zext(alive, WORD))
        body.builder.store(total, number)
    body.give(body.builder.load(number, typ=WORD))


def pass_lock(body: Body) -> None:
    """Wait until whoever is on the way to its sleep, holding the lock, sleeps."""
    body.call("pthread_mutex_lock", body.area("mutex"))
    body.call("pthread_mutex_unlock", body.area("mutex"))


def pause(body: Body, system: System) -> None:
    if system.arch == "x86_64":
        body.call("llvm.x86.sse2.pause")
    elif system.arch == "aarch64":
        body.call("llvm.aarch64.isb", 15)


def keep_mode(body: Body, system: System) -> None:
    """Note how the caller's arithmetic rounds and treats subnormal numbers."""
    if system.arch == "x86_64":
        mode = body.scratch(8)
        body.call("llvm.x86.sse.stmxcsr", mode)
        words = body.builder.bitcast(mode, INT.as_pointer())
        body.write("mode", body.builder.zext(body.builder.load(words, typ=INT), WORD))
    elif system.arch == "aarch64":
        body.write("mode", body.call("llvm.aarch64.get.fpcr"))


def adopt_mode(body: Body, system: System, scratch: Any) -> None:
    """Compute as the caller does."""
    if system.arch == "x86_64":
        words = body.builder.bitcast(scratch, INT.as_pointer())
        body.builder.store(body.builder.trunc(body.read("mode"), INT), words)
        body.call("llvm.x86.sse.ldmxcsr", scratch)
    elif system.arch == "aarch64":
        body.call("llvm.aarch64.set.fpcr", body.read("mode"))


def joinable(body: Body, index: Any, gate: Any, seen: Any) -> Any:
    """Whether the gate shows an open job other than the one seen last, and this worker is in use."""
    is_open = body.is_(body.masked(gate, OPEN), "!=", 0)
    is_other = body.is_(body.masked(gate, NUMBER), "!=", body.masked(seen, NUMBER))
    return body.builder.and_(body.builder.and_(is_open, is_other), body.is_(index, "<", body.read("wanted")))


def is_empty(body: Body) -> Any:
    return body.is_(body.masked(body.read("gate"), INSIDE), "==", 0)
