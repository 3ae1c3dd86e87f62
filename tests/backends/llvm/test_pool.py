"""The thread pool of native code: every chunk once, from any thread, after a fork, and to a quiet end."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

import llvmlite.binding as llvm

from func.backends import thread_count
from func.backends.llvm import symbols
from func.backends.llvm.machine import compile_ir
from func.backends.llvm.threads import pool
from func.backends.llvm.threads.pool_code import System, pool_module
from tests.support.pool_tasks import IS_X86, native, parallel, tasks, words

ROOT = Path(__file__).parents[3]
needs_threads = pytest.mark.skipif(sys.platform == "win32", reason="calls run inline without POSIX threads")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(autouse=True)
def number_restored() -> Iterator[None]:
    number = thread_count.num_threads()
    yield
    thread_count.set_num_threads(number)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 100])
def test_every_chunk_runs_once(threads: int, chunks: int) -> None:
    thread_count.set_num_threads(threads)
    data = words(101)
    parallel("mark", data, chunks)
    assert list(data) == [1] * chunks + [0] * (101 - chunks)


@needs_threads
@pytest.mark.parametrize("threads", [2, 5])
def test_chunks_run_at_the_same_time(threads: int) -> None:
    thread_count.set_num_threads(threads)
    for _ in range(20):
        data = words(1, threads)
        parallel("meet", data, threads)
        assert data[0] == 0


@needs_threads
def test_sleeping_workers_wake() -> None:
    thread_count.set_num_threads(3)
    for _ in range(20):
        data = words(1, 3)
        parallel("meet", data, 3)  # returns only when three threads have met
        assert data[0] == 0
        time.sleep(0.002)


def test_many_small_calls() -> None:
    thread_count.set_num_threads(2)
    data = words(4)
    parallel("mark", data, 4, times=100_000)
    assert list(data) == [100_000] * 4


def test_calls_of_many_python_threads_at_once() -> None:
    thread_count.set_num_threads(3)
    arrays = [words(8) for _ in range(8)]
    with ThreadPoolExecutor(len(arrays)) as executor:
        list(executor.map(lambda data: [parallel("mark", data, 8, times=50) for _ in range(100)], arrays))
    assert all(list(data) == [5_000] * 8 for data in arrays)


def test_calls_inside_a_task_run_inline() -> None:
    thread_count.set_num_threads(3)
    data = words(16 * 32)
    parallel("nest", data, 32, times=100)
    assert list(data) == [100] * (16 * 32)


def workers_after_a_moment(expected: int) -> int:
    """The workers, once they are as many as expected, or in ten seconds."""
    until = time.monotonic() + 10
    while pool.install().workers() != expected and time.monotonic() < until:
        time.sleep(0.001)
    return pool.install().workers()


@needs_threads
def test_the_number_of_threads_changes_at_the_next_call() -> None:
    for threads in (2, 6, 3, 1, 4, 4, 2):
        thread_count.set_num_threads(threads)
        parallel("mark", words(8), 8)
        assert workers_after_a_moment(threads - 1) == threads - 1
        parallel("meet", words(1, threads), threads)


def test_the_number_of_threads_changes_during_calls() -> None:
    data = [words(16) for _ in range(3)]
    callers = [threading.Thread(target=parallel, args=("mark", counts, 16, 20_000)) for counts in data]
    for caller in callers:
        caller.start()
    for index in range(200):
        thread_count.set_num_threads(1 + index % 5)
        parallel("mark", words(2), 2)
    for caller in callers:
        caller.join()
    assert all(list(counts) == [20_000] * 16 for counts in data)


@on_linux
def test_idle_workers_use_no_time() -> None:
    thread_count.set_num_threads(3)
    parallel("meet", words(1, 3), 3)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


@on_linux
def test_workers_leave_signals_to_python() -> None:
    thread_count.set_num_threads(1)
    parallel("mark", words(2), 2)
    assert workers_after_a_moment(0) == 0
    before = set(os.listdir("/proc/self/task"))
    thread_count.set_num_threads(3)
    parallel("meet", words(1, 3), 3)
    added = set(os.listdir("/proc/self/task")) - before
    assert len(added) == 2
    for thread in added:
        status = Path(f"/proc/self/task/{thread}/status").read_text()
        blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")), 16)
        assert blocked >> 1 & 1, "SIGINT is blocked"
        assert not blocked >> 10 & 1, "SIGSEGV is not"


@pytest.mark.skipif(not IS_X86, reason="sets the control register of x86 processors")
def test_all_chunks_compute_as_the_caller_does() -> None:
    default, flush_to_zero = 0x1F80, 0x1F80 | 1 << 15
    smallest = sys.float_info.min
    for threads in (1, 4):
        thread_count.set_num_threads(threads)
        for mode, half in ((default, smallest / 2), (flush_to_zero, 0.0), (default, smallest / 2)):
            data = (ctypes.c_double * 1000)(*[smallest] * 1000)
            set_mode = native("set_mode", 1)
            try:
                set_mode(mode)
                parallel("halve", data, 1000)
            finally:
                set_mode(default)
            assert set(data) == {half}


def test_without_posix_threads_calls_run_inline() -> None:
    code = compile_ir(str(pool_module(None)))
    data = words(5)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(code.address("func_pool_run"))
    run(tasks().address("mark"), ctypes.addressof(data), 2, 5)
    assert list(data) == [0, 0, 1, 1, 1]
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("func_pool_workers"))() == 0


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_the_code_is_valid_for_other_processors(arch: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(str(pool_module(System(arch, 1, 2, (11,)))), llvm.create_context())
    module.verify()
    try:
        target = llvm.Target.from_triple(f"{arch}-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip(f"this LLVM has no target {arch}")
    assert "func_pool_run" in target.create_target_machine().emit_assembly(module)


def test_the_pool_is_made_once() -> None:
    assert pool.install() is pool.install()
    assert symbols.find(pool.SYMBOL) == pool.install().address
    assert pool.address_of(pool.SYMBOL) == symbols.find(pool.SYMBOL) and pool.address_of("exp") is None


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The output of the script in a fresh Python."""
    start = "import os, threading\nfrom tests.support.pool_tasks import *\nfrom func.backends import thread_count\n"
    variables = os.environ | {"PYTHONPATH": str(ROOT), "FUNC_NUM_THREADS": "2"} | environment
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", start + script]
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=120)


CALLING_THREAD = """
parallel("mark", words(8), 8)
threading.Thread(target=parallel, args=("mark", words(8), 8, 10**9), daemon=True).start()
"""

FORK = """
def child():
    data = words(1, 2)
    parallel("meet", data, 2, times=1)
    os._exit(data[0])

for _ in range(20):
    pid = os.fork()
    if pid == 0:
        child()
    assert os.waitpid(pid, 0)[1] == 0
    parallel("meet", words(1, 2), 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", id="before-any-call"),
        pytest.param('parallel("mark", words(8), 8)', id="after-a-call"),
        pytest.param(
            CALLING_THREAD,
            id="during-calls",
        ),
    ],
)
def test_a_forked_child_has_a_pool_of_its_own(before: str) -> None:
    script = FORK if "daemon" not in before else FORK.replace('    parallel("meet", words(1, 2), 2)\n', "")
    done = run(before + "\n" + script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "parallel('mark', words(8), 8)",
        "thread_count.set_num_threads(40); parallel('mark', words(99), 99, 1000)",
        CALLING_THREAD,
        "parallel('mark', words(8), 8); thread_count.set_num_threads(1)",
    ],
)
def test_a_process_with_workers_ends(script: str) -> None:
    done = run(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("text", "expected"), [("3", 3), (" 1 ", 1), ("", thread_count.usable_cores())])
def test_the_environment_sets_the_number(text: str, expected: int) -> None:
    done = run("print(thread_count.num_threads())", FUNC_NUM_THREADS=text)
    assert done.stdout.strip() == str(expected), done.stderr


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "100000"])
def test_a_wrong_number_in_the_environment_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_count, "_num_threads", None)
    monkeypatch.setenv("FUNC_NUM_THREADS", text)
    with pytest.raises(ValueError, match=rf"FUNC_NUM_THREADS must be a whole number from 1 to 1024, not '{text}'"):
        thread_count.num_threads()
    monkeypatch.undo()


@pytest.mark.parametrize("number", [0, -3, 1025])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to 1024, not {number}"):
        thread_count.set_num_threads(number)
