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
