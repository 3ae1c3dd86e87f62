"""The corpus: the criteria of numeric functions, and a small package with functions of every class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tools.corpus import classes, sampling

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
    import numpy as np
    import os, time, random

    counter = [0]

    def smooth(x, scale=2.0):
        return np.sin(x) * scale

    def several(a, theta):
        return {"first": a * np.cos(theta), "second": (a**2, 3)}

    def of_matrix(m):
        if m.ndim != 2:
            raise ValueError("a matrix")
        return np.linalg.inv(m) @ m.T @ m

    def of_numbers(temperature):
        if temperature > 1e6:
            raise ValueError("too hot")
        return float(temperature) ** 2

    def looping(x):
        out = np.zeros(3)
        for i in range(3):
            out[i] = x[i] ** 2
        return out

    def swallowing(x):
        try:
            return float(np.sum(x)) ** 2
        except Exception:
            return 1.0

    def wrong(x):
        values = [v for v in np.ravel(x)]
        return np.sum(x) * (1.0 if type(values[0]) is np.float64 or type(x) is float else 2.0)

    def steps(x): return np.floor(x) + 0.5
    def text(x): return "text"
    def changing(x):
        counter[0] += 1
        return x * counter[0]
    def integers(x): return np.asarray(x).astype(int)
    def slow(x): time.sleep(5); return x
    def needs_names(name): return len(name)
    def crashing(x):
        if not isinstance(x, (float, np.ndarray)) or type(x) not in (float, np.ndarray, np.float64):
            os._exit(3)
        return x * 2.0
    def hanging(x):
        if type(x) not in (float, np.ndarray, np.float64):
            time.sleep(1000)
        return x * 3.0
    def _private(x): return x
    def plot(x): return x
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "smallpackage" / "tests").mkdir(parents=True)
    (folder / "smallpackage" / "__init__.py").write_text("")
    (folder / "smallpackage" / "numbers.py").write_text(textwrap.dedent(MODULE))
    (folder / "smallpackage" / "broken.py").write_text("import a_module_that_is_not_there")
    (folder / "smallpackage" / "tests" / "test_it.py").write_text("def helper(x): return x")
    report = folder / "rows.json"
    words = ["smallpackage", "--seconds", "8", "--json", str(report)]
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "FUNC_CACHE_DIR": ""}
    command = [sys.executable, "-m", "tools.corpus", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert report.exists(), done.stderr
    found = json.loads(report.read_text())["smallpackage"]
    return {"text": done.stdout, "code": done.returncode} | {row["name"].rpartition(".")[2]: row for row in found}


def test_numeric_functions_are_found(rows: dict[str, Any]) -> None:
    right = {"smooth", "several", "of_matrix", "looping"}
    refused = {"of_numbers", "swallowing", "crashing", "hanging"}
    assert set(rows) - {"text", "code"} == right | refused | {"wrong"}
    assert rows["several"]["smooth"] == ["a", "theta"]


@pytest.mark.parametrize("name", ["smooth", "several", "of_matrix", "looping"])
def test_right_functions(rows: dict[str, Any], name: str) -> None:
    assert {classes.status_of(rows[name], transform) for transform in classes.CHECKS} == {"right"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("of_numbers", "TracerConversionError: float() of a traced value"),
        ("swallowing", "`except` caught this error"),
        ("crashing", "Crashed: status 3"),
        ("hanging", "Killed: after 8 s"),
    ],
)
def test_refused_functions(rows: dict[str, Any], name: str, words: str) -> None:
    assert classes.status_of(rows[name], "grad") == "refused"
    assert words in rows[name]["outcomes"]["grad"]["plain"]["text"]


def test_wrong_functions(rows: dict[str, Any]) -> None:
    assert classes.status_of(rows["wrong"], "grad") == "wrong"
    assert rows["code"] == 1 and "WRONG smallpackage.numbers.wrong" in rows["text"]


def test_errors_of_one_class_have_one_text() -> None:
    first = "ValueError: shape (3, 2) of `x` in 4 places\n at /a/b.py:3"
    assert classes.normalised(first) == classes.normalised("ValueError: shape (5, 1) of `yz` in 17 places")


def test_differences_know_their_noise() -> None:
    smooth = sampling.differences(np.sin, np.array([0.3, 1.2]))
    assert smooth is not None and smooth.is_smooth
    np.testing.assert_allclose(smooth.value, np.diag(np.cos([0.3, 1.2])), rtol=1e-9, atol=1e-9)
    noisy = sampling.differences(lambda x: (x + 1e8) - 1e8, np.array([0.3]))
    assert noisy is not None and abs(noisy.value[0, 0] - 1.0) < 20 * noisy.error[0, 0]
    kink = sampling.differences(lambda x: np.floor(1e3 * x), np.array([0.30001]))
    assert kink is None or not kink.is_smooth
