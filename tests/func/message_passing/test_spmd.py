"""Programs on processes of a real MPI, which the tests start: equal to one process, and what ends them all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py cannot be installed here")
BESIDE_PYTHON = Path(sys.executable).with_name("mpiexec")
LAUNCHER = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(LAUNCHER is None, reason="there is no mpiexec: neither mpich nor openmpi is installed")

SECONDS = 60


def launch(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program on this many processes, also on a machine with fewer cores; it leaves nothing behind."""
    assert LAUNCHER is not None
    more: Sequence[str] = ()
    if "Open MPI" in subprocess.run([LAUNCHER, "--version"], capture_output=True, text=True).stdout:
        more = ["--oversubscribe", "--allow-run-as-root"]
    threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")
    command = [LAUNCHER, *more, "-n", str(size), sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"{command} did not end within {SECONDS} s\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run(size: int, *arguments: str) -> str:
    """The output of a program that ends well."""
    done = launch(size, "-m", "tests.support.spmd_programs", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("size", "programs"),
    [
        (1, ["examples"]),
        (2, ["equal", "examples", "same bits"]),
        (4, ["equal:value,grad of jit", "examples"]),
    ],
)
def test_processes(size: int, programs: Sequence[str]) -> None:
    """They equal a vmap and the examples one process, which send what the formulas say; ranks have the same bits."""
    run(size, *programs)


def test_errors_reach_all_ranks() -> None:
    run(3, "errors")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("abort", ["ZeroDivisionError", "rank 0 of 2 failed", "with check=False"]),
        ("stuck", ["ZeroDivisionError: on this rank alone", "rank 1 of 2 failed", "within 0.3 s"]),
        ("timeout", ["CollectiveError: rank 1 of 2 has waited 0.3 s for the others in psum of float64[] for psum(x)"]),
    ],
)
def test_an_error_that_cannot_be_told_ends_all_ranks(program: str, words: list[str]) -> None:
    start = time.perf_counter()
    done = launch(2, "-m", "tests.support.spmd_programs", program)
    assert done.returncode != 0 and time.perf_counter() - start < SECONDS / 2
    for word in [*words, "all ranks are ended by MPI_Abort"]:
        assert word in done.stderr, done.stderr
