"""Test suites of others: their calls run in transforms, and a wrong result fails the command."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """
import numpy as np
from numpy.linalg import det

def test_calls():
    assert np.cumsum(np.array([1.0, 2.0]))[1] == 3.0
    assert det(np.array([[2.0, 1.0], [0.0, 1.0]])) == 2.0
    np.cumsum(np.array([1, 2]))
    np.cumsum(np.array([3.0, 4.0]))
"""
RUN = "import sys; from tools import suites\n{}\nsys.argv[1:] = [{!r}]; sys.exit(suites.main())"
FAULT = """
from tools.corpus import checks, classes
def wrong(case, inside):
    raise checks.Differs("planted")
checks.CHECKS = {{"vmap": checks.CHECKS["vmap"], "jit": wrong if {} else checks.CHECKS["jit"]}}
classes.CHECKS = checks.CHECKS
"""


@pytest.mark.parametrize("is_wrong", [False, True])
def test_calls_of_a_suite_run_in_transforms(is_wrong: bool, tmp_path: Path) -> None:
    suite = tmp_path / "test_small.py"
    suite.write_text(SUITE)
    script = RUN.format(FAULT.format(is_wrong), str(suite))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == is_wrong, done.stderr
    assert "1 passed" in done.stdout and ": 2 functions" in done.stdout
    assert ("WRONG jit of numpy.cumsum" in done.stdout) is is_wrong
