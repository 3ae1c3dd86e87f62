"""CONTRIBUTING's walk-through works: its blocks, added to a copy of the source, make a function with all its forms."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^ *```python file=(?P<file>\S+)(?: list=(?P<list>\S+))?\n(?P<code>.*?)^ *```$", re.DOTALL | re.MULTILINE
)
CHECK = """
import inspect
import numpy as np, scipy.special, func
x = np.linspace(0.3, 4.0, 7)
function, slope = func.special.itstruve0, scipy.special.struve(0, x)
np.testing.assert_array_equal(function(x), scipy.special.itstruve0(x))
np.testing.assert_allclose(func.vmap(func.grad(function))(x), slope, rtol=1e-12)
np.testing.assert_allclose(func.jvp(scipy.special.itstruve0, (x,), (np.ones(7),))[1], slope, rtol=1e-12)
np.testing.assert_array_equal(func.jit(function)(x), scipy.special.itstruve0(x))
assert function.__doc__.startswith("The integral of") and list(inspect.signature(function).parameters) == ["x"]
np.testing.assert_allclose(func.jit(func.vmap(func.grad(function)))(x), slope, rtol=1e-12)
"""
CHECK_NATIVE = """
import numpy as np, scipy.special, func
from func.interpreters.compile.native.translate import translate
x = np.linspace(1e-5, 4.0, 7)
translate(func.make_program(lambda x: func.special.itstruve0(x) + x)(x))
compiled = func.jit(func.special.itstruve0, compiler="llvm")
np.testing.assert_array_equal(compiled(x), scipy.special.itstruve0(x))
translate(func.make_program(func.special.cosm1)(x))
compiled = func.jit(func.special.cosm1, compiler="llvm")
np.testing.assert_allclose(compiled(x), scipy.special.cosm1(x), rtol=1e-14)
"""


def run(tree: Path, *arguments: str) -> str:
    """The output of Python in the tree."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with the blocks of CONTRIBUTING in their places."""
    copy = tmp_path_factory.mktemp("contributing") / "func"
    for name in ("func", "interpreters", "backends", "tests"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for block in BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        path, code = copy / block["file"], textwrap.dedent(block["code"])
        text = path.read_text(encoding="utf-8")
        if block["list"] is None:
            text += f"\n\n{code}"
        else:
            head = f"{block['list']} = [\n"
            assert text.count(head) == 1
            text = text.replace(head, f"{head}    {code.strip()},\n")
        path.write_text(text, encoding="utf-8")
    return copy


def test_a_function_takes_two_places() -> None:
    files = [block["file"] for block in BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))]
    assert len(set(files)) == 2 + 1  # the native form


def test_value_derivative_batch_and_compilation(tree: Path) -> None:
    run(tree, "-c", CHECK)


def test_the_native_form(tree: Path) -> None:
    pytest.importorskip("llvmlite")
    run(tree, "-c", CHECK_NATIVE)


def test_the_other_tests_know_the_function(tree: Path) -> None:
    tests = [
        "tests/interpreters/primitives/test_samples.py",
        "tests/func/special/test_special.py",
        "tests/interpreters/compile/native/test_scipy_functions.py",
    ]
    out = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "itstruve0 or every", *tests)
    (passed,) = re.findall(r"(\d+) passed", out)
    assert int(passed) > 20
