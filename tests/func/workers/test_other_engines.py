"""Executors that need a launcher or a cluster: MPI's pool, and Ray by the class of the page."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*command: str) -> None:
    """Run a program that prints that it is done."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def test_a_pool_of_mpi() -> None:
    pytest.importorskip("mpi4py", reason="mpi4py cannot be installed here")
    beside_python = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec: neither mpich nor openmpi is installed")
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    more = ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in version else []
    program = ["-m", "mpi4py.futures", "-m", "tests.support.engine_programs", "mpi"]
    run(launcher, *more, "-n", "3", sys.executable, *program)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray, 80 MB and no extra of func, is not installed")
def test_a_cluster_of_ray() -> None:
    run(sys.executable, "-m", "tests.support.engine_programs", "ray")
