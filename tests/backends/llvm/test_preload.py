"""LLVM's library loads while Python works, and several threads generate the modules of one program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import cache, concurrent_modules, llvm_library, machine, preload, symbols
from func.backends.llvm.math import own_functions

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(llvm_library.path() is None, reason="llvmlite's library is called on Linux alone")

STATE = """
import sys, threading
import numpy as np, func
{before}
f = func.jit(lambda x: np.tanh(np.exp(x)) * 2)
print(f(np.linspace(0.0, 1.0, 9)).tobytes().hex())
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
early = sys.modules.get("func.backends.llvm.preload")
print(early is not None and early._begun, "llvmlite.binding" in sys.modules)
{after}
"""


def fresh(folder: Path | str, before: str = "", after: str = "") -> list[str]:
    """The output of a fresh process that compiles a function."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUNC_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", STATE.format(before=before, after=after)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split("\n")


def test_it_begins_where_code_has_to_be_generated(tmp_path: Path) -> None:
    cold, warm = fresh(tmp_path), fresh(tmp_path)
    assert cold[1] == "True False"
    assert warm[1] == "False False"
    assert cold[0] == warm[0] == fresh("")[0]


def test_it_leaves_llvmlite_alone_where_that_is_imported(tmp_path: Path) -> None:
    assert fresh(tmp_path, before="import llvmlite.binding")[1] == "False True"


def test_other_functions_on_a_known_machine_begin_when_they_are_not_on_disk(tmp_path: Path) -> None:
    fresh(tmp_path)
    after = "func.jit(lambda x: np.sin(x) + 1)(np.ones(3)); print(sys.modules['func.backends.llvm.preload']._begun)"
    assert fresh(tmp_path, after=after)[1:3] == ["False False", "True"]


def test_programs_in_parts_are_known_to_be_such(tmp_path: Path) -> None:
    script = "func.jit(lambda x: np.fft.fft(np.exp(x) * x).real * np.sin(x))(np.ones(64))"
    assert fresh(tmp_path, before=script)[1] == "True False"
    assert fresh(tmp_path, before=script)[1] == "False False"


FORKS = """
import os, sys, threading
import numpy as np, func
from func.backends.llvm import preload, machine
import func.interpreters.compile.native.translate

f = func.jit(lambda x: np.cos(x) * x)
preload.begin()
children = []
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(0 if abs(f(np.ones(3))[0] - np.cos(1.0)) < 1e-15 else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children] == [0] * 20)
"""


def children_end(script: str, folder: Path, times: int) -> None:
    """All children of a script end, in processes with a cache of their own each."""
    for number in range(times):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUNC_CACHE_DIR": str(folder / str(number))}
        command = [sys.executable, "-W", "ignore", "-c", script]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_forks_wait_for_it(tmp_path: Path) -> None:
    children_end(FORKS, tmp_path, 3)


IMPORTS = """
import os, threading
import numpy as np, func

def forks():
    for _ in range(10):
        child = os.fork()
        if not child:
            import func.interpreters.compile.native.executable, func.interpreters.compile.native.translate
            os._exit(0)
        children.append(child)

children = []
thread = threading.Thread(target=forks)
thread.start()
func.jit(lambda x: np.tanh(np.exp(x)) * 2)(np.ones(3))
thread.join()
print([os.waitpid(child, 0)[1] for child in children] == [0] * 10)
"""


def test_children_do_not_wait_for_modules_that_nobody_imports(tmp_path: Path) -> None:
    """A fork waits for an import lock, and another thread begins an import meanwhile."""
    children_end(IMPORTS, tmp_path, 4)


def test_no_thread_can_start(tmp_path: Path) -> None:
    before = """
class Never(threading.Thread):
    def start(self):
        if "preload" in self.name or "concurrent_modules" in self.name:
            raise RuntimeError("can't start new thread")
        super().start()
threading.Thread = Never
"""
    assert fresh(tmp_path, before=before)[0] == fresh("")[0]


def test_a_library_that_does_not_load_is_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    preload._work(b"/no/such/library.so")  # is_usable() loads the right one
    monkeypatch.setattr(llvm_library, "emit", lambda *args: 1 / 0)
    preload._work(b"/no/such/library.so")
    monkeypatch.undo()
    assert machine.compile_ir("define i32 @nine() { ret i32 9 }").address("nine")


# -- Modules beside a program --------------------------------------------------------------------------------------


NAMES = ("func_own_256f_v4f64_exp", "func_own_256f_v4f64_tanh")
CALLING = """
define double @both(double %x) {{
  %a = insertelement <4 x double> undef, double %x, i32 0
  %b = call <4 x double> @"{}"(<4 x double> %a)
  %c = call <4 x double> @"{}"(<4 x double> %b)
  %d = extractelement <4 x double> %c, i32 0
  ret double %d
}}
declare <4 x double> @"{}"(<4 x double>)
declare <4 x double> @"{}"(<4 x double>)
""".format(*NAMES, *NAMES)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is compiled."""
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(own_functions, "_compiled", {})
    monkeypatch.setattr(machine, "_loaded", type(machine._loaded)())
    monkeypatch.setattr(machine, "generator", lambda: llvm_library)
    symbols.find.cache_clear()


def test_modules_that_a_text_refers_to() -> None:
    assert [key for key, _ in concurrent_modules.missing_in(CALLING)] == list(NAMES)
    assert concurrent_modules.missing_in("define void @f() { ret void }\ndeclare void @exp()\n") == []


@pytest.mark.usefixtures("unknown")
def test_they_are_generated_by_a_thread_and_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    if not own_functions.host_features().fma or own_functions.host_features().bits < 256:
        pytest.skip("the functions are for AVX2")
    import ctypes

    emit, threads = llvm_library.emit_object, []

    def watched(*args: Any) -> cache.ObjectCode:
        threads.append(threading.current_thread() is threading.main_thread())
        return emit(*args)

    monkeypatch.setattr(llvm_library, "emit_object", watched)
    code = machine.compile_ir(CALLING)
    assert sorted(threads) == [False, False, True]
    both = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("both"))
    assert both(0.3) == pytest.approx(np.tanh(np.exp(0.3)), rel=1e-15)


@pytest.mark.usefixtures("unknown")
def test_what_the_thread_does_not_generate_the_caller_does(monkeypatch: pytest.MonkeyPatch) -> None:
    emit, threads = llvm_library.emit_object, []

    def failing(*args: Any) -> cache.ObjectCode:
        is_main = threading.current_thread() is threading.main_thread()
        threads.append(is_main)
        if not is_main:
            raise MemoryError
        return emit(*args)

    monkeypatch.setattr(llvm_library, "emit_object", failing)
    machine.compile_ir(CALLING)
    assert sorted(threads) == [False, True, True, True]


@pytest.mark.usefixtures("unknown")
def test_a_program_that_llvm_refuses_leaves_nothing_running() -> None:
    with pytest.raises(machine.CompileError):
        machine.compile_ir(CALLING + "\ndefine nonsense")
    assert not [thread for thread in threading.enumerate() if thread.name == concurrent_modules.__name__]
    machine.compile_ir(CALLING)


def test_results_are_the_same_bits(tmp_path: Path) -> None:
    """Products of few rows, functions and the pool, from code that was generated side by side, and from disk."""
    before = """
w = np.linspace(-1, 1, 600 * 300).reshape(600, 300).astype("f")
x = np.linspace(0, 1, 8 * 600).reshape(8, 600).astype("f")
print(func.jit(lambda w, x: np.tanh(x @ w))(w, x).tobytes().hex()[:400])
"""
    assert fresh(tmp_path, before=before)[0] == fresh(tmp_path, before=before)[0] == fresh("", before=before)[0]
    assert func.jit(np.tanh)(0.0) == 0.0
