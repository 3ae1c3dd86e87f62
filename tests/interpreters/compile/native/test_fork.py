"""Forked processes compile, also where another thread of the parent was compiling at that moment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

SCRIPT = """
import os, threading, warnings
import numpy as np, func
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads beside os.fork
func.jit(np.sin)(np.ones(3))
def compile_many():
    for size in range(4, 14):
        func.jit(lambda x: np.sum(np.sin(x) * x))(np.ones(size))
thread = threading.Thread(target=compile_many)
thread.start()
codes = []
for size in range(20, 25):
    child = os.fork()
    if child == 0:
        out = func.jit(lambda x: np.sum(np.cos(x) + x))(np.ones(size))
        os._exit(0 if abs(out - size * (1 + np.cos(1))) < 1e-9 else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_processes_compile() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[0, 0, 0, 0, 0]", done.stderr


IMPORTING = """
import os, threading, time, warnings
from importlib.machinery import SourceFileLoader
import func
warnings.simplefilter("ignore", DeprecationWarning)
name = "func.interpreters.compile.native.spectral"
begun = threading.Event()

execute = SourceFileLoader.exec_module

def slowly(loader, module):
    if module.__name__ == name:
        begun.set()
        time.sleep(0.3)
    execute(loader, module)

SourceFileLoader.exec_module = slowly
thread = threading.Thread(target=__import__, args=[name])
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    __import__(name)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_finds_no_module_that_a_lost_thread_had_begun_to_import() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


CIRCLE = """
import os, threading, time, warnings
from importlib.machinery import SourceFileLoader
import func
warnings.simplefilter("ignore", DeprecationWarning)
func._LONGEST_WAIT = 0.2
name = "func.interpreters.compile.native.spectral"
begun, forked = threading.Event(), threading.Event()

execute = SourceFileLoader.exec_module

def slowly(loader, module):
    if module.__name__ == name:
        begun.set()
        forked.wait()  # for the thread that forks
    execute(loader, module)

SourceFileLoader.exec_module = slowly
thread = threading.Thread(target=__import__, args=[name])
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(0)
forked.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_for_a_time_only() -> None:
    done = subprocess.run([sys.executable, "-c", CIRCLE], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0", done.stderr
