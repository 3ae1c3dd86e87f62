"""Items of many cases: all run, all failures appear, and you can still choose one case."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest
from tests.support.families import merged
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items[:] = merged(items)
"""
TESTS = """
import pytest

@pytest.mark.parametrize("b", "xy")
@pytest.mark.parametrize("a", range(20))
def test_sum(a, b):
    if a == 3:
        pytest.skip("three")
    if a == 4:
        pytest.fail("four")
    assert a != 7

@pytest.mark.parametrize("a", range(3))
def test_skipped(a):
    pytest.skip("all of them")

@pytest.mark.parametrize("a", [0, pytest.param(1, marks=pytest.mark.xfail(strict=True)), 2])
def test_marked(a):
    assert a != 1

@pytest.mark.parametrize("a", range(3))
def test_with_a_folder(a, tmp_path):
    assert tmp_path.exists()

@pytest.fixture
def doubled(request):
    return 2 * request.param

@pytest.mark.parametrize("doubled", range(3), indirect=True)
def test_with_a_fixture_of_the_case(doubled):
    assert doubled % 2 == 0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cases")
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_cases.py").write_text(TESTS)
    (place / "pytest.ini").write_text("[pytest]\n")
    return place


def run(folder, *options):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in ("CI", "BUILD_NUMBER"):  # with these pytest prints whole messages in its summary
        environment.pop(name, None)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_all_cases_of_an_item_run(folder):
    out = run(folder)
    failed = [line for line in out.splitlines() if line.startswith("test_cases.py::") and "]" in line]
    assert failed == [f"test_cases.py::test_sum[{case}]" for case in ("4-x", "4-y", "7-x", "7-y")]
    assert "4 of 16 cases" in out and "assert 7 != 7" in out and "four" in out
    assert "1 failed, 10 passed, 1 skipped, 1 xfailed" in out


@pytest.mark.parametrize("option", ["test_cases.py::test_sum[7-x]", "-k=test_sum and 7-x"])
def test_one_case_is_an_item(folder, option):
    out = run(folder, option)
    assert "FAILED test_cases.py::test_sum[7-x]" in out and "1 failed" in out
