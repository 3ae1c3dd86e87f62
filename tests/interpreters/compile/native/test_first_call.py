"""First calls wait neither for the code of call stubs nor for the thread pool; later calls use both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from func.interpreters.compile.native.executable import REROLLED
from func.interpreters.compile.passes.reroll import reroll

ROOT = Path(__file__).parents[4]
START = """
import gc, logging, os, sys, threading, time
import numpy as np, func
from func.backends.llvm.call_stubs import binding, capi
from func.backends.llvm.threads import background, pool
from func.backends.llvm.machine import lock

gradient = func.jit(func.grad(lambda x: np.sum(np.sin(x) * x)))
x = np.linspace(0.0, 3.0, 50)

def is_native(jitted):
    return type(jitted._fast_call).__name__ == "builtin_function_or_method"

def becomes_native(jitted, *args):
    until = time.monotonic() + 60
    while not is_native(jitted) and time.monotonic() < until:
        jitted(*args)
        time.sleep(0.001)
    return is_native(jitted)
"""

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def run(script: str, **variables: str) -> str:
    """The output of a fresh process without a cache, or validation, which waits for the compiler."""
    settings = {"PYTHONPATH": str(ROOT), "FUNC_CACHE_DIR": "", "FUNC_NUM_THREADS": "3", "FUNC_VALIDATE": "0"}
    environment = {**os.environ, **settings, **variables}
    command = [sys.executable, "-W", "error", "-c", START + script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_the_first_calls_do_without_native_stubs() -> None:
    script = """
with lock:  # nothing is compiled beside
    outs = [gradient(x) for _ in range(3)]
    print(is_native(gradient), background.is_done())
print(becomes_native(gradient, x), background.is_done())
outs.append(gradient(x))
print({out.tobytes() for out in outs} == {outs[0].tobytes()}, np.allclose(outs[0], np.sin(x) + x * np.cos(x)))
"""
    assert run(script).split() == ["False", "False", "True", "True", "True", "True"]


def test_repeated_calls_wait_for_the_native_stub() -> None:
    script = """
for count in range(binding.MAX_DEFERRED_CALLS + 2):
    gradient(x)
print(is_native(gradient), background.is_done())
"""
    assert run(script) == "True True"


def test_parts_of_programs_get_native_stubs() -> None:
    script = """
def f(x):
    return np.fft.fft(np.sin(x) * x + 1.0).real * 2.0 + x

jitted = func.jit(f)
with lock:
    early = jitted(x)
while not binding.can_bind_natively():
    jitted(x)
    time.sleep(0.001)
print(jitted(x).tobytes() == early.tobytes(), np.allclose(early, f(x)))
"""
    assert run(script) == "True True"


def test_chunks_give_the_same_bits_with_and_without_the_pool() -> None:
    script = """
def f(x):
    return np.sum(np.exp(x) * x), np.mean(np.sin(x), axis=0), np.cumsum(x, axis=1), x @ x.T

jitted, x = func.jit(f), np.linspace(-1.0, 1.0, 900 * 800).reshape(900, 800)
with lock:
    early = jitted(x)
    print(pool._pool is None)
print(becomes_native(jitted, x), pool._pool is not None)
late = jitted(x)
print(pool.install().workers(), all(a.tobytes() == b.tobytes() for a, b in zip(early, late)))
"""
    assert run(script).split() == ["True", "True", "True", "2", "True"]


def test_the_pool_takes_over_chunks_that_are_left() -> None:
    script = """
import ctypes
from func.backends.llvm.machine import compile_ir

# The first chunk waits for the first number, the others until all of them run at once.
code = compile_ir('''
declare void @func_parallel(ptr, ptr, i64)
define void @task(ptr %data, i64 %chunk) {
begin:
  %missing = getelementptr i64, ptr %data, i64 1
  %is_first = icmp eq i64 %chunk, 0
  br i1 %is_first, label %wait, label %count
wait:
  %go = load atomic i64, ptr %data seq_cst, align 8
  %goes = icmp ne i64 %go, 0
  br i1 %goes, label %end, label %wait
count:
  %before = atomicrmw sub ptr %missing, i64 1 seq_cst
  br label %meet
meet:
  %left = load atomic i64, ptr %missing seq_cst, align 8
  %met = icmp sle i64 %left, 0
  br i1 %met, label %end, label %meet
end:
  ret void
}
define void @job(ptr %data) {
  call void @func_parallel(ptr @task, ptr %data, i64 4)
  ret void
}''')
data = (ctypes.c_int64 * 2)(0, 3)
job = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("job"))
thread = threading.Thread(target=job, args=(data,))
thread.start()
pool.install()
data[0] = 1
thread.join()
print(data[1])
"""
    assert run(script) == "0"


def test_profiles_are_those_of_many_threads() -> None:
    script = """
func.jit(lambda x: np.sum(np.exp(x))).profile(np.ones(1_000_000), repeat=1)
print(pool._pool is not None, background._thread is not None)
"""
    assert run(script) == "True True"


def test_one_thread_needs_no_pool() -> None:
    script = """
jitted, x = func.jit(lambda x: np.sum(np.exp(x))), np.ones(1_000_000)
with lock:
    jitted(x)
    print(*background._pending)
    func.config.num_threads = 2
    print(*background._pending)
print(becomes_native(jitted, x), pool._pool is not None)
"""
    assert run(script, FUNC_NUM_THREADS="1").split("\n") == [
        "code of call stubs",
        "code of call stubs thread pool",
        "True True",
    ]


@posix
def test_children_without_the_thread_get_stubs_and_pool() -> None:
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads beside os.fork

def child(before, held=0):
    process = os.fork()
    if process == 0:
        for _ in range(held):
            lock.release()
        well = becomes_native(jitted, y) and pool._pool is not None and jitted(y) == before
        sys.stdout.flush()
        os._exit(0 if well else 1)
    return process

jitted, y = func.jit(lambda y: np.sum(np.exp(y) * y)), np.linspace(0.0, 1.0, 300_000)
with lock:  # the thread waits for it
    before = jitted(y)
    waiting = child(before, held=1)
children = [waiting]
while not is_native(jitted):  # the thread works
    children.append(child(before))
    jitted(y)
    time.sleep(0.02)
children.append(child(before))
print({os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in children})
"""
    assert run(script) == "{0}"


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "while lock.acquire(blocking=False): lock.release(); time.sleep(0.0005)",
        "import atexit; atexit.register(lambda: print(func.jit(np.cos)(np.zeros(3)).sum()))",
        "threading.Thread(target=lambda: (time.sleep(0.05), gradient(x))).start()",
        "gradient = None; gc.collect()",
    ],
    ids=["at once", "while the thread works", "in a handler", "behind another thread", "without the function"],
)
def test_processes_end(ending: str) -> None:
    assert run(f"print(gradient(x).shape)\n{ending}").split("\n")[0] == "(50,)"


def test_calls_in_a_handler_at_exit() -> None:
    assert run("import atexit; atexit.register(lambda: print(gradient(x).shape))") == "(50,)"


def test_without_threads_it_is_done_at_once() -> None:
    script = """
def refuse(self):
    raise RuntimeError("can't start new thread")

threading.Thread.start = refuse
print(gradient(x).shape, background.is_done(), is_native(gradient))
"""
    assert run(script) == "(50,) True True"


def test_what_fails_is_done_without() -> None:
    script = """
def fail():
    raise ValueError("no stub today")

binding._stub_module = fail
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(message)s")
first = gradient(x)
while background._thread is not None and background._thread.is_alive():
    time.sleep(0.001)
print(all(gradient(x).tobytes() == first.tobytes() for _ in range(5)), is_native(gradient), background.is_done())
"""
    out = run(script).split("\n")
    assert [line for line in out if "no stub today" in line][:1] == [
        "native code does without the code of call stubs: no stub today"
    ]
    assert out[-1] == "True False True" and out[:-1].count(out[0]) == 1


def test_many_threads_call_first() -> None:
    script = """
sys.setswitchinterval(1e-5)
outs, gate = [], threading.Barrier(6)

def work():
    gate.wait()
    until = time.monotonic() + 60
    while not is_native(gradient) and time.monotonic() < until:
        outs.append(gradient(x).tobytes())
    outs.append(gradient(x).tobytes())

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(set(outs)), is_native(gradient))
"""
    assert run(script) == "1 True"


def test_code_on_disk_is_used_at_once(tmp_path: Path) -> None:
    script = """
with lock:
    gradient(x)
    print(is_native(gradient), background.is_done())
while not background.is_done():
    time.sleep(0.001)
"""
    assert [run(script, FUNC_CACHE_DIR=str(tmp_path)) for _ in range(2)] == ["False False", "True True"]


def test_short_programs_are_not_searched_for_loops() -> None:
    assert reroll.MIN_EQUATIONS == REROLLED
